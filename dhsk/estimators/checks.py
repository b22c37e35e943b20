"""What the estimators check: parameters, and samples in the words that scikit-learn expects."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dhsk.errors import InputError
from dhsk.gram.sizes import parse_bytes
from dhsk.kernels import Kernel
from dhsk.kernels.base import positive_parameter
from dhsk.samples import parse_sphere_map


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse parameters of `HeatSVC` before any work.

    Parameters
    ----------
    parameters
        By name.

    Raises
    ------
    InputError
        The first that cannot be used.
    """
    positive_parameter("C", parameters["C"])
    positive_parameter("tol", parameters["tol"])
    kernel, sphere_map, dtype = (parameters[name] for name in ("kernel", "sphere_map", "dtype"))
    if kernel is None:
        positive_parameter("time_scale", parameters["time_scale"])
    elif not isinstance(kernel, Kernel):
        raise InputError(f"kernel must be a kernel of dhsk or None, but it is {kernel!r}")
    if sphere_map is not None:
        parse_sphere_map(sphere_map)
    if dtype not in ("float32", "float64"):
        raise InputError(f"dtype must be 'float32' or 'float64', but it is {dtype!r}")
    if parameters["memory"] is not None:
        parse_bytes(parameters["memory"])


@contextmanager
def in_scikit_words(X: Any, name: str) -> Iterator[None]:
    """Begin what the hyperspherical map says of negative samples as scikit-learn's checks want it.

    Parameters
    ----------
    X
        The samples, an array or a sparse matrix that scikit-learn has validated.
    name
        Of the estimator.

    Raises
    ------
    InputError
        With the words "Negative values in data" if there are some.
    """
    try:
        yield
    except InputError as error:
        if "non-negative" in str(error) and X.min() < 0:
            raise InputError(f"Negative values in data passed to {name}: {error}") from None
        raise
