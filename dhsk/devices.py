"""Accelerators on which blocks of matrices are computed: GPUs of NVIDIA, by CuPy.

A device is chosen for the calls within a block, or by the environment for a process and all that it
starts, and travels with tasks; arrays of users stay in the memory of the machine. Two tasks at a
time use a device, each on a stream of its own, so that one copies while the other computes.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from queue import SimpleQueue
from threading import Lock
from typing import Any, Final, TypeAlias, TypeVar
from weakref import finalize

import numba
import numpy as np
from numpy.typing import NDArray

from dhsk.errors import BudgetError, InputError
from dhsk.units import format_bytes

Result = TypeVar("Result")

DeviceArray: TypeAlias = Any
"""An array in the memory of a device, which numpy's functions take."""

VARIABLE: Final = "DHSK_DEVICE"
"""Environment variable with the device of a process, "cpu" or as for `device`."""

CUDA: Final = "cuda"
TF32: Final = "cuda-tf32"
"""Kinds of devices: that of all types as they are, and one of shorter factors in float32."""

LANES: Final = 2
"""Tasks that use a device at a time."""

STRIP_BYTES: Final = 256 << 20
"""Bytes of inner products that are computed at a time, at most. Measured on an H200 with 784
features in float64: products at 46 TFLOP/s in strips of 64 MB, 54 in those of 256 MB and 57 in
those of 1 GB."""

_OPTIONS: Final = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true")
"""IEEE arithmetic, where a multiplication and a sum are rounded once only if the code says so."""

_START: Final = 2e-4
_COPIED: Final = 1.0e10
_MULTIPLIED: Final = 2.0e10
"""Seconds of a call; bytes that are copied in a second, measured on an H200: 8.5 thousand million
to it, 11 from it; and numbers that a core multiplies. The first and the last are guesses. They
decide only what goes to the device."""

_THREADS: Final = 256
_BLOCKS: Final = 16, 4096
"""Threads of a block, and most blocks along columns and rows: each thread takes several entries."""


class KeptByOwner:
    """Values that are made once for an owner, and are gone with it."""

    def __init__(self) -> None:
        self._values: dict[int, dict[object, Any]] = {}
        self._lock = Lock()

    def of(self, owner: object, key: object, make: Callable[[], Result]) -> Result:
        """The value of a key, made unless it is there; two threads may both make it."""
        with self._lock:
            own = self._values.get(id(owner))
            if own is None:
                own = self._values[id(owner)] = {}
                finalize(owner, self._values.pop, id(owner), None)
        if key not in own:
            own.setdefault(key, make())
        found: Result = own[key]
        return found


class Device:
    """A GPU, used through CuPy.

    Attributes
    ----------
    name
        Kind and number.
    xp
        Module with numpy's functions for arrays of the device.
    strip_bytes
        Bytes of the inner products that are computed at a time.
    blocks
        Blocks of threads that a task may have at the same time, so that they wait for others.
    """

    def __init__(self, cupy: Any, number: int, kind: str = CUDA) -> None:
        self.name, self.xp = f"{kind}:{number}", cupy
        self._number, self._tf32 = number, kind == TF32
        self._lanes: SimpleQueue[Any] = SimpleQueue()
        with cupy.cuda.Device(number):
            total: int = cupy.cuda.runtime.memGetInfo()[1]
            self.strip_bytes = min(STRIP_BYTES, total // 64)
            known = cupy.cuda.runtime.getDeviceProperties(number)
            self.blocks = int(known["multiProcessorCount"]) // LANES
            for _ in range(LANES):
                self._lanes.put(cupy.cuda.Stream(non_blocking=True))
        self._kept = KeptByOwner()
        self._compiled: Callable[[str], Any] = cache(self._compile)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Context of a task that uses the device, and has arrays there; it waits for others.

        What is begun within, on a stream of its own, is done at the end.
        """
        errors = self.xp.cuda.memory.OutOfMemoryError
        lane = self._lanes.get()
        try:
            with self.xp.cuda.Device(self._number), lane:
                yield
                lane.synchronize()
        except errors as error:
            raise BudgetError(
                f"{self.name} has no memory left ({error}): end other programs on it, or use the"
                " processor"
            ) from error
        finally:
            self._lanes.put(lane)

    def room(self) -> int:
        """Bytes that are free, those that CuPy keeps for later arrays included."""
        free: int = self.xp.cuda.runtime.memGetInfo()[0]
        return free + int(self.xp.get_default_memory_pool().free_bytes())

    def pays(self, multiplied: int, copied: int) -> bool:
        """Whether it multiplies so many numbers, and copies bytes, sooner than all cores would."""
        of_cores = multiplied / (_MULTIPLIED * numba.get_num_threads())
        return _START + copied / _COPIED < of_cores

    def products(self, rows: DeviceArray, columns: DeviceArray) -> DeviceArray:
        """Inner products of all pairs of rows, (a, b), C-ordered, in their type.

        They are a product of transposed matrices to cuBLAS.
        """
        if not self._tf32 or rows.dtype != np.float32 or not (len(rows) and len(columns)):
            return rows @ columns.T
        xp, (a, dim), b = self.xp, rows.shape, len(columns)
        blas, single = xp.cuda.cublas, xp.cuda.runtime.CUDA_R_32F
        rows, columns = map(xp.ascontiguousarray, (rows, columns))
        found, (one, zero) = xp.empty((a, b), np.float32), np.array([[1], [0]], np.float32)
        blas.gemmEx(
            xp.cuda.device.get_cublas_handle(), blas.CUBLAS_OP_T, blas.CUBLAS_OP_N, b, a, dim,
            one.ctypes.data, columns.data.ptr, single, dim, rows.data.ptr, single, dim,
            zero.ctypes.data, found.data.ptr, single, b,
            blas.CUBLAS_COMPUTE_32F_FAST_TF32, blas.CUBLAS_GEMM_DEFAULT,
        )  # fmt: skip
        return found

    def put(self, array: NDArray[Any]) -> DeviceArray:
        """Copy an array to the device; one that nobody may write is copied once."""
        stream = self.xp.cuda.get_current_stream()
        if array.flags.writeable:
            return self._copied(array, stream)
        return self.kept(array, "copy", partial(self._copied, array, stream))

    def kept(self, owner: object, key: object, make: Callable[[], Result]) -> Result:
        """What `make` puts on the device, made once for each key while its owner lives."""

        def made() -> Result:
            found = make()
            self.xp.cuda.get_current_stream().synchronize()  # other streams read it too
            return found

        return self._kept.of(owner, key, made)

    def _copied(self, array: NDArray[Any], stream: Any) -> DeviceArray:
        """Copy in the order of a stream; CuPy's asarray would lock memory for it, which is slow."""
        found = self.xp.empty(array.shape, array.dtype)
        found.set(np.ascontiguousarray(array), stream=stream)
        return found

    def get(self, array: DeviceArray, out: NDArray[Any]) -> None:
        """Copy an array from the device."""
        array.get(out=out)

    def launch(
        self,
        code: str,
        shape: tuple[int, int],
        arguments: Sequence[DeviceArray],
        together: tuple[int, int] | None = None,
    ) -> None:
        """Run the CUDA function `entries` of some code for each entry of a matrix.

        With `together` each row has as many blocks of threads, of as many threads: several only if
        all of them are at most `blocks`, as they may wait for one another.
        """
        rows, columns = shape
        grid, threads = (min(-(-columns // _THREADS), _BLOCKS[0]), min(rows, _BLOCKS[1])), _THREADS
        if together is not None:
            grid, threads = (together[0], rows), together[1]
        sizes = np.int64(rows), np.int64(columns)
        self._compiled(code)(grid, (threads,), (*arguments, *sizes))

    def _compile(self, code: str) -> Any:
        return self.xp.RawKernel(code, "entries", options=_OPTIONS)


_chosen: ContextVar[Device | str | None] = ContextVar("dhsk_device", default="")
"""Device of the code in progress, None for the processor; "" for that of the environment."""


@contextmanager
def device(which: str | Device) -> Iterator[None]:
    """Context in which blocks of matrices are computed on a device.

    Inner products, kernel values and products with a matrix that is not stored are computed on the
    device, in the same types and within the same error bounds; results come back as arrays of
    numpy. That is done for dense samples, and the heat, Gaussian, cosine and linear kernels; what
    is left, and blocks too small to gain, are computed on the processor as ever. Last digits of
    inner products differ from the processor's, as they are summed in another order. Workers of a
    Dask client use their own GPU: start one worker for each.

    Parameters
    ----------
    which
        "cuda" or "cuda:1" for a GPU of NVIDIA, which needs CuPy (``pip install "dhsk[cuda]"``), or
        "cpu". With "cuda-tf32" inner products in float32 are computed by its units for TF32: they
        are off by up to `tf32_error` for unit rows, others as ever. The environment variable
        ``DHSK_DEVICE`` sets it for whole programs.

    Raises
    ------
    InputError
        There is no such device, or no CuPy.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> X = np.random.default_rng(0).random((300, 20))
    >>> with dhsk.device("cpu"):  # or "cuda"
    ...     G = dhsk.compute_gram(X, "heat")
    ...     product = G @ np.ones(300)
    """
    token = _chosen.set(_opened(which) if isinstance(which, str) else which)
    try:
        yield
    finally:
        _chosen.reset(token)


def current_device() -> Device | None:
    """Device of the code in progress; None for the processor."""
    chosen = _chosen.get()
    if isinstance(chosen, str):
        return _opened(chosen or os.environ.get(VARIABLE, "cpu") or "cpu")
    return chosen


def chosen_device() -> str | None:
    """Kind of the device that `device` has chosen, "cpu" too, as it travels; None outside of it.

    Workers use the first GPU that they see.
    """
    chosen = _chosen.get()
    if chosen == "":
        return None
    return "cpu" if chosen is None or isinstance(chosen, str) else chosen.name.partition(":")[0]


def call_on_device(name: str, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function on a device of this process: the task of a worker."""
    with device(name):
        return function(*arguments)


def _opened(name: str) -> Device | None:
    kind, _, number = name.partition(":")
    if name == "cpu":
        return None
    if kind not in (CUDA, TF32) or not (number or "0").isdigit():
        raise InputError(
            f"device must be 'cpu', 'cuda' or 'cuda:' and a number, or 'cuda-tf32', not {name!r}"
        )
    return _cuda(int(number or 0), kind)


@cache
def _cuda(number: int, kind: str) -> Device:
    try:
        import cupy
    except ImportError as error:
        raise InputError(
            f"device 'cuda' needs CuPy, which cannot be imported ({error}): pip install"
            ' "dhsk[cuda]", or cupy-cuda12x for a driver of CUDA 12'
        ) from error
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise InputError(f"no GPU can be used: {error}") from error
    if number >= count:
        raise InputError(f"there is no device cuda:{number}: this machine has {count}")
    return Device(cupy, number, kind)


def tf32_error(dim: int) -> float:
    """Largest error of a cosine of rows of dim features, in float32, by TF32.

    Factors keep 10 bits after the first, rounded or cut off, and terms are summed in float32, in
    which a sum may be cut off too.
    """
    term = (1.0 + 2.0**-10) ** 2
    return float(term * (1.0 + 2.0**-22) ** dim - 1.0)


def is_numpys(array: NDArray[Any]) -> bool:
    """Whether an array is one of numpy, which compiled code takes, not one of a device."""
    return type(array) is np.ndarray


def moved(device: Device, value: Any) -> Any:
    """A value with all arrays within it on a device: in tuples, and fields of data classes."""
    if isinstance(value, np.ndarray):
        return device.put(value)
    if isinstance(value, tuple):
        parts = [moved(device, part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{f.name: moved(device, getattr(value, f.name)) for f in fields(value)}
        )
    return value


def fetched(device: Device, value: Any) -> Any:
    """A value with the arrays of a device within it, in lists and tuples, as those of numpy."""
    if isinstance(value, device.xp.ndarray):
        found = np.empty(value.shape, value.dtype)
        device.get(value, found)
        return found
    if isinstance(value, list | tuple):
        return type(value)(fetched(device, part) for part in value)
    return value


def refuse_too_large(device: Device, needed: int, what: str) -> None:
    """Raise BudgetError if a device has not so many bytes free for each of its tasks."""
    room = device.room() // LANES
    if needed > room:
        raise BudgetError(
            f"{what} take {format_bytes(needed)} on {device.name}, and each of {LANES} tasks has"
            f" {format_bytes(room)} of it free: give smaller tiles (tile=), or use the processor"
        )


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """View of an array that nobody writes while it is used, so that a device keeps its copy."""
    view = array.view()
    view.flags.writeable = False
    return view
