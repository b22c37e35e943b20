"""What the estimators check in the words that scikit-learn expects."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dhsk.errors import InputError


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
