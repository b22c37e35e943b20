"""Base of the estimators: common parameters, clones, mapped rows, messages."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats, Rows
from dhsk.bars import Show, passes_shown, unless_told
from dhsk.clock import NO_END, Deadline
from dhsk.errors import InputError
from dhsk.estimators.automatic import Auto, SamplePairs, check_auto, is_auto, time_scale_of
from dhsk.estimators.saving import SavedEstimator
from dhsk.execution.run import Run
from dhsk.gram.compute import compute_gram
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.prepare import check_kernels
from dhsk.gram.row_map import RowMap
from dhsk.kernels import NAMED, HeatKernel, Kernel, SmoothedKernel, named_family, parse_kernel
from dhsk.kernels.base import Indefinite, check_semidefinite, positive_parameter
from dhsk.kernels.centre import with_all_entries
from dhsk.models.combined import column_blocks, combined
from dhsk.models.predict import Predictor
from dhsk.models.problem import sample_factors
from dhsk.objects.places import Place, parse_place
from dhsk.progress import OnProgress, ignore
from dhsk.run_progress import passes_of_call
from dhsk.samples import (
    Samples,
    ZeroRows,
    ZeroRule,
    of_counts,
    open_samples,
    parse_sphere_map,
    parse_zero_rule,
)
from dhsk.samples.memory import are_texts, from_memory
from dhsk.samples.names import shown
from dhsk.samples.paths import Origin
from dhsk.samples.refusals import in_pipelines
from dhsk.samples.variance import width_of
from dhsk.samples.weighted import MapName, fixed_map
from dhsk.units import parse_bytes

if TYPE_CHECKING:
    from distributed import Client

_HEADINGS: Final = {
    "must be finite": "X contains NaN or infinity",
    "non-negative": "Negative values in data passed to {name}",
    "holds a negative number": "Negative values in data passed to {name}",
}
"""Beginnings of messages that scikit-learn's checks expect, by words of dhsk's messages."""

_OF_A_TIME: Final = (None, "heat", "parametrix")
"""Kernels by name that `time_scale` is for."""

OF_UNIT_ROWS: Final = (*_OF_A_TIME, "cosine")
"""Spherical kernels by name."""


class HeatEstimator(SavedEstimator):
    """Base of the estimators; a fit sets `kernel_` and `_fitted_map`.

    They are dataclasses of their parameters: these stay as they are given, as
    scikit-learn's contract asks.
    """

    time_scale: float | Auto
    sphere_map: MapName | None
    zero_rows: ZeroRule
    kernel: Any
    dtype: str | None
    memory: int | str | None
    client: "Client | None" = None
    store: str | Place | None = None
    journal: str | Place | None = None
    indefinite: Indefinite = "allow"
    _fitted_map: RowMap
    _rows: Rows
    """Samples of the fit, mapped, if predictions need them; a CSR row may stand for the centre."""
    _headings: ClassVar[Mapping[str, str]] = _HEADINGS
    """Beginnings of messages, by words of dhsk's."""
    _dtypes: ClassVar[tuple[str | None, ...]] = ("float32", "float64")
    _scales: ClassVar[bool] = False
    """Whether there is a map that scales columns."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        own = self._family.default_map
        chosen = own if self.sphere_map is None else self.sphere_map
        tags.input_tags.sparse = True
        counts = of_counts(str(chosen)) or isinstance(self.kernel, SmoothedKernel)
        tags.input_tags.positive_only = counts
        return tags

    @property
    def _meant(self) -> Any:
        """The kernel that is meant, where the map has a say."""
        return self.kernel

    @property
    def _family(self) -> Kernel | type[Kernel]:
        """The kernel, or its class, which knows its default map."""
        given = self._meant
        if given is None or isinstance(given, str):
            known = given in NAMED  # `fit` raises for unknown names
            return named_family(given) if known else HeatKernel
        family: Kernel = given
        return family

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the client, as a connection cannot be pickled."""
        return {name: value for name, value in super().__getstate__().items() if name != "client"}

    def __sklearn_clone__(self) -> Self:
        """Clone that shares the client, so that parameter searches can use it."""
        clone: Self = super(HeatEstimator, copy(self)).__sklearn_clone__()
        if self.client is not None:
            clone.client = self.client
        return clone

    def _check(self, *positive: str) -> None:
        """Check that the named parameters are above 0, and check those of all estimators."""
        for name in positive:
            positive_parameter(name, getattr(self, name))
        self._check_kernel()
        self._check_map()
        parse_zero_rule(self.zero_rows)
        dtype: Any = self.dtype  # an array has no one truth value
        if not isinstance(dtype, str | None) or dtype not in self._dtypes:
            known = " or ".join(map(repr, self._dtypes))
            raise InputError(f"dtype must be {known}, but it is {dtype!r}")
        self._bytes()

    def _check_kernel(self) -> None:
        """Check the name of the kernel, and its time."""
        if not isinstance(self.kernel, Kernel):
            named_family(HeatKernel.name if self.kernel is None else self.kernel)
            check_auto("time_scale", self.time_scale)

    def _kernel_at(self, few: SamplePairs, time_scale: float) -> Kernel:
        """The kernel for the samples of a fit, at a time if its name has one."""
        width = width_of(few.samples, fixed_map(self.sphere_map), few.weights)
        name = self._meant or HeatKernel.name
        return parse_kernel(name, few.samples.shape[1], time_scale, width)

    def _check_map(self) -> None:
        if self.sphere_map is not None:
            parse_sphere_map(self.sphere_map)

    @property
    def _most_steps(self) -> int | None:
        """Bound on the steps of the solver of one problem; None for none."""
        return None

    def _bytes(self) -> int | None:
        return None if self.memory is None else parse_bytes(self.memory)

    def _run(self, report: OnProgress = ignore) -> Run:
        """Where this estimator computes, within what memory, and where it is recorded."""
        places = {"store": self.store, "journal": self.journal}
        parsed = {k: None if v is None else parse_place(k, v) for k, v in places.items()}
        return Run(self._bytes(), self.client, **parsed, report=report, over=self._over())

    def _over(self) -> Deadline:
        """When the time of a fit that begins is over."""
        return NO_END

    def _validated(self, X: Any, **options: Any) -> Any:
        """Validate X, or X and y, by scikit-learn; the map checks the values."""
        if isinstance(X, str | os.PathLike):
            taken = signature(fit).parameters if (fit := getattr(self, "fit_samples", None)) else ()
            own = "fit_samples(FILE, y)" if "y" in taken else "fit_samples(FILE)"
            way = f"{own} reads one" if taken else "read it"
            raise InputError(f"X is the name of a file, {os.fspath(X)!r}: {way}, or give an array")
        return super()._validated(X, ensure_all_finite=False, **options)

    def _shows(self, progress: Show) -> Show:
        """What is done with events of progress, where `progress` was given."""
        return unless_told(progress, f"{type(self).__name__}.fit")

    @contextmanager
    def _begun(self, progress: Show, **guesses: float) -> Iterator[Run]:
        """The run of a fit, told with its passes; errors are in scikit-learn's words."""
        with passes_shown(self._shows(progress), **guesses) as told, in_scikit_words(self):
            yield self._run(told.report)

    def _current(self) -> AbstractContextManager[Any]:
        """Have the client's workers make passes."""
        return self.client.as_current() if self.client else nullcontext()

    def _factors(self, sample_weight: Any, n: int) -> Floats:
        """Checked weights of n samples, (n,)."""
        return sample_factors(sample_weight, n)

    def _samples(self, X: Any) -> Samples:
        """Open validated samples, with their feature names."""
        return from_memory(X, feature_names=self._names)

    def _row_map(self, few: SamplePairs) -> RowMap:
        """Row map, after a check that kernel, map and samples are compatible."""
        samples, dim = few.samples, few.samples.shape[1]
        if self._meant in _OF_A_TIME and dim < 2:
            raise InputError(
                "n_features=1, but the heat kernel on a sphere needs at least 2 features: "
                "with one, every sample maps to the same point or its opposite"
            )
        first: Any = 1.0 if is_auto(self.time_scale) else self.time_scale
        kernel = self._kernel_at(few, first)
        dtype = self._product_dtype(kernel, samples.shape[0])
        chosen = check_kernels([kernel], [samples], fixed_map(self.sphere_map), dtype)
        check_semidefinite(kernel, self.indefinite)
        row_map = RowMap(kernel, chosen, dtype, ZeroRows(self.zero_rows))
        if is_auto(self.time_scale) and self._meant in _OF_A_TIME:
            return replace(row_map, kernel=few.kernel_at_spread(row_map))
        return row_map

    def _product_dtype(self, kernel: Kernel, n_samples: int) -> str:
        """Type of mapped rows, inner products and kernel values of a fit."""
        del kernel, n_samples
        return str(self.dtype)

    def _keep_map(self, row_map: RowMap) -> None:
        self._fitted_map = row_map.anew()
        self.kernel_ = row_map.kernel

    @property
    def time_scale_(self) -> float | None:
        """Time of the kernel in units of log(dim)/dim; None for kernels without one."""
        check_is_fitted(self)
        return time_scale_of(self.kernel_, self.n_features_in_)

    def _map_to_fit(self, X: Any, run: Run, weights: Floats | None = None) -> Rows:
        """Map the samples of a fit, in memory."""
        samples = self._samples(X)
        row_map = self._row_map(SamplePairs(samples, weights))
        self._keep_map(row_map)
        rows = row_map.all_of(samples, run)
        row_map.warn(samples)
        return rows

    def _gram(self, X: Any) -> GramMatrix:
        """The kernel matrix of the samples of a fit, computed on demand, or in the store."""
        return compute_gram(
            self._samples(X),
            self.kernel_,
            sphere_map=fixed_map(self.sphere_map),
            zero_rows=ZeroRows(self.zero_rows),  # the warning was given when the rows were mapped
            store=self.store,
            dtype=self._fitted_map.dtype,
            product_dtype=self._fitted_map.dtype,
            memory=self.memory,
            client=self.client,
        )

    def _predicted(
        self, X: Any, fitted: Rows, function: Callable[[Rows], Any], width: int, row_bytes: int
    ) -> NDArray[Any]:
        """Results of a function of samples, see `Predictor`, of row_bytes each."""
        row_map = self._fitted_map.anew()
        run = Run(self._bytes(), self.client, report=passes_of_call().report)
        with in_scikit_words(self):
            samples = row_map.to_predict(self._new_samples(X))
            found = Predictor(row_map, fitted, function, width).whole(samples, run, row_bytes)
        row_map.warn(samples)
        return found

    def _new_samples(self, X: Any) -> Samples:
        """Open samples to predict: texts, if the model knows the words to count, or numbers."""
        vectorizer = getattr(getattr(self, "model_", None), "vectorizer", None)
        if vectorizer is not None and are_texts(X):
            return open_samples(X, vectorizer=vectorizer)
        if vectorizer is not None and isinstance(X, str) and not _is_a_file(X):
            raise InputError(f"X is one text, {shown(X)}: give a list of texts, as [text]")
        return self._samples(self._validated(X, reset=False))

    def _sums(self, X: Any, fitted: Rows, coef: Floats, kernel: Kernel | None = None) -> Floats:
        """Products of the kernel matrix of samples and fitted rows with coefficients."""
        function = partial(_sums_of_block, kernel or self.kernel_, fitted, coef)
        return self._predicted(X, fitted, function, coef.shape[1], 8 * coef.shape[1])


def _is_a_file(text: str) -> bool:
    """Whether there is such a file, or a part of one, as a text of words is none."""
    try:
        return bool(Origin.of(text))
    except InputError:
        return False


@dataclass(eq=False, repr=False, kw_only=True)
class KernelEstimator(HeatEstimator):
    """Base of the estimators of any kernel of dhsk: the parameters that all of them have."""

    zero_rows: ZeroRule = "center"
    kernel: Kernel | str | None = None
    dtype: str = "float64"
    memory: int | str | None = None
    client: "Client | None" = None


def rows_of_fit(estimator: HeatEstimator) -> Rows:
    """Samples of the fit, mapped to the sphere, (N, dim)."""
    check_is_fitted(estimator)
    return with_all_entries(estimator._rows)


def _sums_of_block(kernel: Kernel, fitted: Rows, coef: Floats, rows: Rows) -> Any:
    """Products of the kernel matrix of a block and fitted rows with coefficients."""
    return combined(kernel.of_rows, rows, column_blocks(fitted, coef), coef.shape[1])


@contextmanager
def in_scikit_words(estimator: BaseEstimator) -> Iterator[None]:
    """Begin messages of `InputError` as scikit-learn's checks expect."""
    try:
        yield
    except InputError as error:
        said = str(error) if getattr(estimator, "_scales", False) else in_pipelines(str(error))
        for words, heading in getattr(estimator, "_headings", _HEADINGS).items():
            if words in said:
                begin = heading.format(name=type(estimator).__name__)
                raise InputError(f"{begin}: {said}") from None
        raise
