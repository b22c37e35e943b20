"""A device that is the processor: CUDA functions are compiled as C++ and run by one thread.

What a GPU adds, its compiler, its matrix products and its memory, is tested where there is one, by
the plugin `tests.devices.on_cuda`; all that this package does around it is tested here, on any
machine with a C++ compiler.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

COMPILER = shutil.which("c++") or shutil.which("g++")

_SHIM = """
#include <cmath>
#include <cstring>
#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__
struct Place { int x, y; };
static const Place blockIdx{0, 0}, gridDim{1, 1}, blockDim{1, 1}, threadIdx{0, 0};
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

    def __init__(self, folder: Path, room: int = 1 << 34) -> None:
        self._folder = folder
        self._room = room
        self._functions: dict[str, Any] = {}
        self._lock = Lock()
        self.launched = 0
        self.taken = 0

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

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        """Copy."""
        return array.copy().view(HostArray)

    def get(self, array: NDArray[Any], out: NDArray[Any]) -> None:
        """Copy to an array of the same type."""
        np.copyto(out, array.view(np.ndarray), casting="no")

    def launch(self, code: str, shape: tuple[int, int], arguments: Sequence[Any]) -> None:
        """Compile and run."""
        with self._lock:
            self.launched += 1
            if code not in self._functions:
                self._functions[code] = self._compiled(code)
        assert all(one.flags.c_contiguous for one in arguments)
        pointers = [ctypes.c_void_p(one.ctypes.data) for one in arguments]
        self._functions[code](*pointers, *map(ctypes.c_longlong, shape))

    def _compiled(self, code: str) -> Any:
        assert COMPILER is not None
        source = self._folder / f"entries{len(self._functions)}.cpp"
        library = source.with_suffix(".so")
        source.write_text(_SHIM + code)
        options = ["-std=c++17", "-O2", "-ffp-contract=off", "-shared", "-fPIC"]
        subprocess.run([COMPILER, *options, str(source), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library)).entries
