"""A device that is the processor: CUDA functions are compiled as C++, and run by one thread or few.

What a GPU adds, its compiler, its matrix products and its memory, is tested where there is one, by
the plugin `tests.devices.on_cuda`; all that this package does around it is tested here, on any
machine with a C++ compiler.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dhsk.devices import KeptByOwner

COMPILER = shutil.which("c++") or shutil.which("g++")

_LIBRARIES: dict[str, Any] = {}
_LOCK = Lock()
"""What is compiled of each code, once a process; threads of one block run at a time."""

_SHIM = """
#include <barrier>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>
#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(threads)
#define __nanosleep(time) std::this_thread::yield()
#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define atomicAdd(counter, more) __atomic_fetch_add(counter, more, __ATOMIC_SEQ_CST)
struct Place { int x, y; };
static Place gridDim{1, 1}, blockDim{1, 1};
static thread_local Place blockIdx{0, 0}, threadIdx{0, 0};
static std::vector<std::unique_ptr<std::barrier<>>> barriers;  // of all threads, and of each warp
static void __syncthreads() { if (blockDim.x > 1) barriers[0]->arrive_and_wait(); }
static void __syncwarp() { if (blockDim.x > 1) barriers[1 + threadIdx.x / 32]->arrive_and_wait(); }
extern "C" void prepare(int blocks, int threads) {
    gridDim.x = blocks, blockDim.x = threads;
    barriers.clear();
    barriers.push_back(std::make_unique<std::barrier<>>(threads));
    for (int first = 0; first < threads; first += 32)
        barriers.push_back(std::make_unique<std::barrier<>>(std::min(32, threads - first)));
}
extern "C" void be(int block, int row, int thread) {
    blockIdx = {block, row}, threadIdx.x = thread;
}
template <class To, class From> static To as(From value) {
    To found; std::memcpy(&found, &value, sizeof found); return found;
}
#define __double_as_longlong as<long long>
#define __longlong_as_double as<double, unsigned long long>
#define __float_as_int as<int>
#define __int_as_float as<float, unsigned int>
using std::fma;
"""


class HostArray(np.ndarray[Any, Any]):
    """An array of the device, which as CuPy's does not mix with arrays of numpy."""

    def __array_ufunc__(self, function: Any, method: str, *given: Any, **named: Any) -> Any:
        """Compute as numpy does, of arrays of the device alone."""
        out = {"out": tuple(map(_plain, named.pop("out")))} if "out" in named else {}
        return _on_host(getattr(function, method)(*_plain(given), **_plain(named), **out))

    def __array_function__(self, function: Any, types: Any, given: Any, named: Any) -> Any:
        """Likewise."""
        return _on_host(function(*_plain(given), **_plain(named)))


def _plain(value: Any) -> Any:
    """Arrays of numpy in the place of those of the device; TypeError if there are any."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    if type(value) is np.ndarray:
        raise TypeError("an array of numpy beside one of a device")
    return value.view(np.ndarray) if isinstance(value, HostArray) else value


def _on_host(value: Any) -> Any:
    """Arrays of the device in the place of those of numpy."""
    if isinstance(value, tuple | list):
        return tuple(map(_on_host, value))
    if isinstance(value, np.generic):  # as CuPy gives arrays without axes
        value = np.asarray(value)
    return value.view(HostArray) if isinstance(value, np.ndarray) else value


class HostFunctions:
    """Functions of numpy, or of a module of it, for arrays of the device."""

    ndarray = HostArray

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        """A function that takes and gives arrays of the device."""
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            return HostFunctions(found)
        return lambda *given, **named: _on_host(found(*_plain(given), **_plain(named)))


class HostDevice:
    """The processor as a `dhsk.devices.Device`; counts what it did."""

    name = "cpu"  # as which it travels to workers
    xp = HostFunctions(np)
    strip_bytes = 1 << 16

    def __init__(
        self, folder: Path, room: int = 1 << 34, *, blocks: int = 1, threads: int = 1
    ) -> None:
        assert 1 in (blocks, threads)  # the memory of a block is that of a thread, or of all
        self._folder = folder
        self._room = room
        self._kept = KeptByOwner()
        self.blocks = blocks
        self._threads = threads
        self.launched = 0
        self.taken = 0
        self.copied = 0

    def room(self) -> int:
        """Bytes that it says are free."""
        return self._room

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Count a task."""
        self.taken += 1
        yield

    def pays(self, multiplied: int, copied: int) -> bool:
        """Every block pays."""
        return multiplied > 0 and copied > 0

    def products(self, rows: Any, columns: Any) -> Any:
        """By numpy."""
        return rows @ columns.T

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        """Copy, and count its bytes."""
        self.copied += array.nbytes
        return array.copy().view(HostArray)

    def kept(self, owner: object, key: object, make: Callable[[], Any]) -> Any:
        """Keep what is made."""
        return self._kept.of(owner, key, make)

    def get(self, array: NDArray[Any], out: NDArray[Any]) -> None:
        """Copy to an array of the same type."""
        np.copyto(out, array.view(np.ndarray), casting="no")

    def launch(
        self,
        code: str,
        shape: tuple[int, int],
        arguments: Sequence[Any],
        together: tuple[int, int] | None = None,
    ) -> None:
        """Compile and run, in one thread, or in several that work together."""
        shared = "static thread_local" if self._threads == 1 else "static"
        key = f"#define __shared__ {shared}\n{code}"
        with _LOCK:
            self.launched += 1
            if key not in _LIBRARIES:
                _LIBRARIES[key] = self._compiled(key)
        assert all(one.flags.c_contiguous for one in arguments)
        pointers = [ctypes.c_void_p(one.ctypes.data) for one in arguments]
        library, given = _LIBRARIES[key], (*pointers, *map(ctypes.c_longlong, shape))
        if together is None:
            library.entries(*given)
            return

        def run(block: int, row: int, thread: int) -> None:
            library.be(block, row, thread)
            library.entries(*given)

        number = together[0] * self._threads
        with _LOCK, ThreadPoolExecutor(number) as pool:
            library.prepare(together[0], self._threads)
            for row in range(shape[0]):
                places = product(range(together[0]), [row], range(self._threads))
                for done in [pool.submit(run, *place) for place in places]:
                    done.result()

    def _compiled(self, code: str) -> Any:
        if COMPILER is None:
            pytest.skip("there is no C++ compiler, which the device of these tests needs")
        source = self._folder / f"entries{len(_LIBRARIES)}.cpp"
        library = source.with_suffix(".so")
        source.write_text(_SHIM + code)
        options = ["-std=c++20", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-pthread"]
        subprocess.run([COMPILER, *options, str(source), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))
