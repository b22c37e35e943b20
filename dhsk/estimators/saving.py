"""Saving and loading of fitted estimators, without pickles."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, ClassVar, Final, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import assert_all_finite, check_is_fitted, validate_data

from dhsk.errors import InputError
from dhsk.estimators.documentation import describe
from dhsk.kernels import Kernel
from dhsk.models.files import FittedState, Loaded, load_any, read_by, save_fitted
from dhsk.objects.places import Place
from dhsk.samples.memory import (
    are_strings,
    as_table,
    refuse_anndata,
    refuse_gram,
    refuse_lists,
    refuse_texts,
    refuse_words,
)
from dhsk.samples.names import names_in, table_in_order

_OF_A_MACHINE: Final = ("memory", "client", "store", "journal")
"""Parameters that say where a fit runs."""


def in_python(found: Loaded, path: str | Place) -> str:
    """How an estimator is made of a file in Python."""
    return f"dhsk.{_reader_of(found)}.load({str(path)!r})"


def read_by_other(found: Loaded, path: str | Place) -> InputError:
    """Error for a file of another estimator."""
    return read_by(_reader_of(found), path)


def _reader_of(found: Loaded) -> str:
    """Name of the estimator that reads a file."""
    if isinstance(found, FittedState):
        return found.estimator
    import dhsk  # the package's front door knows the classifiers, which stand above

    readers = {one._model_type: one for one in (dhsk.HeatSVC, dhsk.NystromSVC)}
    return str(found.notes.get("estimator", readers[type(found)].__name__))


def is_of(found: Loaded, reader: type) -> bool:
    """Whether an estimator reads a file; models of commands and grids do not name theirs."""
    return _reader_of(found) == reader.__name__


class SavedEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of the estimators: what a fit has learnt goes to a file and comes back."""

    _learnt: ClassVar[tuple[str, ...]] = ()
    """Attributes of a fit that are in the file, without underscores at both ends there."""
    _takes_any_order: bool = False
    """Whether named columns may be in any order, as for loaded estimators; see `_in_order`."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Complete the docstrings of the class."""
        super().__init_subclass__(**options)
        describe(cls)

    def save(self, path: str | Place) -> None:
        """Write the fitted estimator to a file of arrays and JSON, without pickles.

        Parameters
        ----------
        path
            File to write, with any ending, or ``s3://BUCKET/KEY``; an existing one is replaced
            atomically.
        """
        check_is_fitted(self)
        self._write(path)

    @classmethod
    def load(cls, path: str | Place) -> Self:
        """Read an estimator that `save` wrote; its results are the same to the last bit.

        Parameters
        ----------
        path
            The file, or its ``s3://`` URL.

        Returns
        -------
        Self
            A fitted estimator. Parameters that are not in the file, such as memory and client, have
            their defaults. If the file has feature names, columns of a DataFrame may be in any
            order, unlike for estimators that were fitted here.

        Raises
        ------
        InputError
            The file does not exist, or is not of this estimator.
        """
        return cls._read(path)

    def _write(self, path: str | Place) -> None:
        state = FittedState(
            estimator=type(self).__name__,
            parameters=self._kept_parameters(),
            learnt={name.strip("_"): getattr(self, name) for name in self._learnt},
            row_map=getattr(self, "_fitted_map", None),
            n_features=self.n_features_in_,
            feature_names=self._names,
            notes={"dhsk": version("dhsk")},
        )
        save_fitted(state, path)

    @classmethod
    def _read(cls, path: str | Place) -> Self:
        state = load_any(path)
        if not isinstance(state, FittedState) or state.estimator != cls.__name__:
            raise read_by_other(state, path)
        try:
            made = cls(**state.parameters)
            learnt = {name: state.learnt[name.strip("_")] for name in cls._learnt}
        except (KeyError, TypeError) as error:
            raise InputError(f"{path} is a damaged model, or of a later dhsk: {error}") from error
        for name, value in learnt.items():
            setattr(made, name, value)
        if state.row_map is not None:
            made._fitted_map, made.kernel_ = state.row_map, state.row_map.kernel
        made._keep_features(state.n_features, state.feature_names)
        made._takes_any_order = True
        return made

    def _kept_parameters(self) -> dict[str, Any]:
        """Parameters for the file: those of JSON, and kernels, but none of this machine."""
        found = {}
        for name, value in self.get_params(deep=False).items():
            plain = value.item() if isinstance(value, np.generic) else value
            kept = isinstance(plain, bool | int | float | str | Kernel | None)
            if kept and name not in _OF_A_MACHINE:
                found[name] = plain
        return found

    def _keep_features(self, dim: int, names: Sequence[str] | None) -> None:
        """Set `n_features_in_` and `feature_names_in_`, as scikit-learn's validation does."""
        self.n_features_in_ = dim
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_

    def _validated(self, X: Any, **options: Any) -> Any:
        """Validate X, or X and y, by scikit-learn."""
        refuse_anndata(X)
        refuse_gram(X)
        refuse_texts(X, type(self).__name__)
        X = as_table(X)
        refuse_lists(X)
        X = self._in_order(X, reset=options.get("reset", True))
        if "category" in map(str, getattr(X, "dtypes", ())):  # scikit-learn takes their words
            refuse_words(X)
        try:
            found = validate_data(self, X, accept_sparse="csr", **options)
        except (ValueError, TypeError):
            refuse_words(X)  # by their columns; scikit-learn names a value
            if not are_strings(X):
                raise
            objects = np.asarray(X).astype(object)  # it makes numbers of these
            found = validate_data(self, objects, accept_sparse="csr", **options)
        if options.get("y_numeric"):  # None becomes NaN after scikit-learn's own check
            assert_all_finite(found[1], input_name="y")
        return found

    @property
    def _names(self) -> tuple[str, ...] | None:
        """Feature names of the fit; None for no names."""
        return names_in(getattr(self, "feature_names_in_", ()))

    def _in_order(self, X: Any, *, reset: bool) -> Any:
        """Samples of a fit, or of a prediction, whose named columns are in the order of the fit.

        Reordered columns are an error by scikit-learn's contract; a loaded estimator reorders them,
        as it may have been fitted elsewhere.
        """
        if reset:
            self._takes_any_order = False
        return table_in_order(X, self._names) if self._takes_any_order else X
