"""Nyström approximations of a kernel matrix, each with its trace error."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows
from dhsk.caching import cached_value
from dhsk.execution.checkpoint import digest_of
from dhsk.execution.limits import core_count
from dhsk.execution.run import Run
from dhsk.execution.workers import Workers
from dhsk.gram.compute import compute_gram
from dhsk.gram.row_map import RowMap
from dhsk.kernels import Kernel
from dhsk.nystrom.centres import kmeans
from dhsk.nystrom.checkpoint import LandmarkCheckpoint
from dhsk.nystrom.cholesky import ComputedFactor, InMemoryFactor
from dhsk.nystrom.components import components, squared_length, turned, write_features
from dhsk.nystrom.landmarks import RandomPivots, uniform
from dhsk.nystrom.placed import Placed, in_folder, in_memory, in_source
from dhsk.nystrom.room import (
    ApproximationNeed,
    ApproximationPlan,
    Tier,
    plan_here,
    plan_on_workers,
)
from dhsk.nystrom.root import inverse_root
from dhsk.nystrom.spans import FeatureMatrix
from dhsk.progress import Progress, counter
from dhsk.samples import Samples

SELECTIONS: Final = ("rpcholesky", "uniform", "kmeans")
"""Methods of choosing landmarks."""

_GUESSES: Final[Mapping[str, Mapping[str, float]]] = {
    "rpcholesky": {"landmarks": 10},
    "kmeans": {"clustering": 5, "features": 3},
}
"""Parts of an approximation besides reading, and what they are guessed to take in proportion."""


@dataclass(frozen=True, eq=False)
class LandmarkOptions:
    """Choice of landmarks, and number of features.

    Attributes
    ----------
    rank
        Upper bound on the number of features.
    selection
        "rpcholesky", "uniform", "kmeans" (cluster centres, which are not samples), or the indices
        of samples, (m,).
    oversampling
        Number of landmarks for each feature, at least 1. If there are more landmarks than features,
        the leading principal components are kept.
    landmark_tol
        Relative trace error, below 1, at which "rpcholesky" stops. With more than `rank` landmarks,
        the components that are dropped add to the error.
    seed
        Seed of all random choices.
    """

    rank: int
    selection: str | Indices = "rpcholesky"
    oversampling: float = 1.0
    landmark_tol: float = 0.0
    seed: int = 0

    def count(self, n: int) -> int:
        """Number of landmarks of n samples."""
        if isinstance(self.selection, str):
            return ceil(min(n, self.oversampling * self.rank))
        return len(self.selection)


@dataclass(frozen=True, eq=False)
class Approximation:
    """Features Z = K(X, L) R of samples X, whose inner products approximate their kernel.

    Attributes
    ----------
    kernel
        The kernel.
    landmarks
        L, mapped rows, (m, dim).
    indices
        Indices of the landmarks among the samples, (m,); None for cluster centres.
    root
        R, (m, r), float64.
    features
        Z, (N, r), read in passes over all samples.
    values
        Z in memory, (N, r); None if passes compute it.
    trace_error
        Trace norm of K - Z Z' relative to the trace of K, exact to rounding if K is positive
        semi-definite.
    trace
        Trace of K.
    plan
        Tier and planned memory.
    """

    kernel: Kernel
    landmarks: Rows
    indices: Indices | None
    root: Floats
    features: FeatureMatrix
    values: NDArray[Any] | None
    trace_error: float
    trace: float
    plan: ApproximationPlan

    @property
    def width(self) -> int:
        """Number of features, r."""
        return int(self.root.shape[1])

    @property
    def tier(self) -> Tier:
        """Data in memory, and where passes run."""
        return self.plan.tier


def approximate(
    samples: Samples,
    row_map: RowMap,
    how: LandmarkOptions,
    run: Run = Run(),  # noqa: B008  # frozen
    plan: ApproximationPlan | None = None,
) -> Approximation:
    """Choose landmarks, and compute the features of all samples by the Nyström method [1]_.

    Features are kept in memory if they fit. Otherwise passes compute them: from mapped samples in
    memory if those fit, else from samples that are read and mapped in every pass. The landmarks of
    a seed are the same bits on any number of threads or workers; between tiers they may differ by
    rounding.

    Workers read the samples from a temporary folder that all of them must see. The checkpoint in
    `run.journal` stores the state of "rpcholesky" after every round, unless features are in
    memory; the same call resumes from there to the same bits. Without a plan, the memory is planned
    by the options.

    Raises
    ------
    InputError
        A row cannot be used, which is named, or the kernel is not positive semi-definite.
    BudgetError
        The approximation does not fit in memory.

    References
    ----------
    .. [1] C. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines",
       NIPS 13 (2000).
    """
    m = how.count(samples.shape[0])
    # One thread and several give the same bits only with BLAS on one thread in both.
    with run.told(reading=1, **_GUESSES.get(str(how.selection), {"features": 3})) as (run, _):
        plan = plan or _plan(samples, row_map, m, run)
        making = _Making(_placed(samples, row_map, plan, run), plan, how, run)
        return making.approximation(m, _checkpoint(samples, row_map, making))


def _plan(samples: Samples, row_map: RowMap, m: int, run: Run) -> ApproximationPlan:
    """Plan by the memory of this process, or of the workers."""
    n, itemsize = samples.shape[0], np.dtype(row_map.dtype).itemsize
    need = ApproximationNeed.of(n, row_map.bytes_of(samples), itemsize, m)
    what = f"{m} landmarks of {n} samples"
    if run.client is None:
        return plan_here(need, what, run.room, core_count())
    return plan_on_workers(need, what, run)


def _placed(samples: Samples, row_map: RowMap, plan: ApproximationPlan, run: Run) -> Placed:
    """Mapped samples in memory, in their source, or in a folder of all workers."""
    if run.client is not None:
        G = compute_gram(
            samples,
            row_map.kernel,
            sphere_map=row_map.sphere_map,
            product_dtype=row_map.dtype,
            zero_rows=row_map.zero_rows,
            memory=run.memory,
            client=run.client,
            scratch=run.scratch,
            progress=run.report,
        )
        row_bytes = row_map.bytes_of(samples) / samples.shape[0]
        return in_folder(G, row_bytes, Workers(run.client, plan.threads))
    if plan.tier == "samples read in every pass":
        return in_source(samples, row_map, plan.threads)
    rows = row_map.all_of(samples, run, room=plan.planned, threads=plan.threads)
    return in_memory(rows, row_map.kernel, plan.threads)


def _checkpoint(samples: Samples, row_map: RowMap, making: "_Making") -> LandmarkCheckpoint:
    """Checkpoint of a choice, named by everything that determines it."""
    folder = making.run.journal
    if folder is None or making.in_memory or not making.pivoted:
        return LandmarkCheckpoint(None, "")
    how, kernel, sphere_map = making.how, row_map.kernel, row_map.sphere_map
    print_ = making.placed.fingerprint
    if print_ is None:
        print_ = row_map.scan(samples, Run()).fingerprint
    m = how.count(samples.shape[0])
    key = [kernel.to_spec(), print_, sphere_map, row_map.dtype, making.plan.tier]
    return LandmarkCheckpoint(folder, digest_of("landmarks", [*key, m, how.landmark_tol, how.seed]))


@dataclass(frozen=True, eq=False)
class _Found:
    """Landmarks, root, features and error of an `Approximation`."""

    landmarks: Rows
    indices: Indices | None
    root: Floats
    values: NDArray[Any] | None
    error: float


@dataclass(frozen=True, eq=False)
class _Making:
    """Steps of an approximation."""

    placed: Placed
    plan: ApproximationPlan
    how: LandmarkOptions
    run: Run

    @property
    def in_memory(self) -> bool:
        """Whether features are in memory."""
        return self.plan.tier == "features in memory"

    @property
    def pivoted(self) -> bool:
        """Whether landmarks are chosen by randomly pivoted Cholesky."""
        return isinstance(self.how.selection, str) and self.how.selection == "rpcholesky"

    def approximation(self, m: int, rounds: LandmarkCheckpoint) -> Approximation:
        """Choose m landmarks, and make features of them."""
        found = self.by(m, rounds)
        if isinstance(self.how.selection, str) and found.root.shape[1] > self.how.rank:
            found = self.leading(found, self.how.rank)
        return Approximation(
            kernel=self.placed.kernel,
            landmarks=found.landmarks,
            indices=found.indices,
            root=found.root,
            features=self.features(found),
            values=found.values,
            trace_error=found.error,
            trace=self.trace,
            plan=self.plan,
        )

    @cached_value
    def diagonal(self) -> Floats:
        """Diagonal of the kernel matrix, (N,), which takes a pass for some kernels."""
        return self.placed.diagonal()

    @property
    def trace(self) -> float:
        """Trace of the kernel matrix."""
        return float(self.diagonal.sum())

    def by(self, m: int, rounds: LandmarkCheckpoint) -> _Found:
        """Choose landmarks by the selection of the options."""
        selection = self.how.selection
        if not isinstance(selection, str):
            return self.by_inverse(self.placed.take(selection), selection)
        if selection == "uniform":
            chosen = uniform(self.placed.n, m, np.random.default_rng(self.how.seed))
            return self.by_inverse(self.placed.take(chosen), chosen)
        if selection == "kmeans":
            self.run.report(Progress("clustering", 0, 1))
            centres = kmeans(self.placed, m, self.how.seed)
            self.run.report(Progress("clustering", 1, 1))
            return self.by_inverse(centres, None)
        return self.by_cholesky(m, rounds)

    def by_cholesky(self, m: int, rounds: LandmarkCheckpoint) -> _Found:
        """Choose landmarks by randomly pivoted Cholesky, whose factor are the features."""
        last = rounds.last()
        begun, root = (None, None) if last is None else last
        factor: InMemoryFactor | ComputedFactor
        if self.in_memory:
            factor = InMemoryFactor(self.placed, m)
        else:
            factor = ComputedFactor(self.placed, None if begun is None else begun.pivots, root)
        rng, tol = np.random.default_rng(self.how.seed), self.how.landmark_tol
        pivoting = RandomPivots(self.placed, factor, self.diagonal, m, rng, tol)
        choice = pivoting.choose(begun, lambda now: rounds.keep(now, factor), self.run)
        values = factor.finished() if isinstance(factor, InMemoryFactor) else None
        return _Found(factor.landmarks, choice.pivots, factor.root, values, choice.error)

    def by_inverse(self, landmarks: Rows, indices: Indices | None) -> _Found:
        """Features of given landmarks, by the inverse root of their kernel matrix."""
        placed = self.placed
        root = inverse_root(placed.kernel.of_rows(landmarks))
        Z, R = placed.values(landmarks), root.astype(placed.dtype)
        values = np.empty((placed.n, root.shape[1]), placed.dtype) if self.in_memory else None
        if values is None:
            spans = Z.map(squared_length, (), R)
        else:
            spans = Z.map(write_features, (values,), R)
        advance, gained = counter(self.run.report, "features", placed.n), []
        for rows, squares in spans:
            gained.append(squares)
            advance(rows)
        error = max(0.0, 1.0 - sum(gained) / self.trace)
        return _Found(landmarks, indices, root, values, error)

    def leading(self, found: _Found, k: int) -> _Found:
        """Replace features by their k leading principal components."""
        Z = self.features(found)
        V, weights, total = components(Z, k)
        lost = (total - float(weights.sum())) / self.trace
        return _Found(
            landmarks=found.landmarks,
            indices=found.indices,
            root=found.root @ V,
            values=None if found.values is None else turned(Z, found.values, V),
            error=found.error + max(0.0, lost),
        )

    def features(self, found: _Found) -> FeatureMatrix:
        """Features in memory, or computed in passes."""
        if found.values is None:
            return self.placed.values(found.landmarks, found.root)
        return FeatureMatrix.in_memory(found.values, self.placed.executor)
