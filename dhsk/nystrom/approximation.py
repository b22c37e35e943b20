"""Low-rank approximations of a kernel matrix, each with the error that it has."""

from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows
from dhsk.caching import cached_value
from dhsk.execution.checkpoint import digest_of
from dhsk.execution.limits import core_count, own_room
from dhsk.execution.options import RunOptions
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.workers import Workers, borrow_client
from dhsk.gram.compute import compute_gram
from dhsk.gram.prepare import scan_side
from dhsk.gram.row_map import RowMap
from dhsk.kernels import Kernel
from dhsk.nystrom.centres import kmeans
from dhsk.nystrom.checkpoint import LandmarkCheckpoint
from dhsk.nystrom.cholesky import ComputedFactor, HeldFactor
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
from dhsk.progress import OnProgress, ignore
from dhsk.samples import Samples

SELECTIONS: Final = ("rpcholesky", "uniform", "kmeans")
"""Ways to choose landmarks."""


@dataclass(frozen=True, eq=False)
class LandmarkOptions:
    """How landmarks are chosen, and how many features are made of them.

    Attributes
    ----------
    rank
        Most features.
    selection
        "rpcholesky", "uniform", "kmeans" (centres of groups, which are no samples), or numbers of
        samples, (m,), which are all taken.
    oversampling
        Landmarks for each feature, at least 1: of more landmarks than features the leading
        components are kept.
    landmark_tol
        Relative trace error, below 1, that is small enough: "rpcholesky" takes no more landmarks
        than reach it; if they are more than `rank`, leaving out components adds to it.
    seed
        Of all random choices.
    """

    rank: int
    selection: str | Indices = "rpcholesky"
    oversampling: float = 1.0
    landmark_tol: float = 0.0
    seed: int = 0

    def count(self, n: int) -> int:
        """Landmarks of n samples."""
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
        Numbers of the landmarks among the samples, (m,); None where they are none of them.
    root
        R, (m, r), float64.
    features
        Z, (N, r), by passes over all samples.
    values
        Z in memory, (N, r); None where passes compute it.
    trace_error
        Trace norm of K - Z Z' as a part of the trace of K, of a positive semi-definite matrix:
        exact to rounding.
    trace
        Trace of K.
    plan
        Where it was made, and the memory that was planned for it.
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
        """What is in memory, and where passes run."""
        return self.plan.tier


def approximate(
    samples: Samples,
    row_map: RowMap,
    how: LandmarkOptions,
    options: RunOptions = RunOptions(),  # noqa: B008  # frozen
    plan: ApproximationPlan | None = None,
) -> Approximation:
    """Choose landmarks, and make features of all samples.

    Features are held in memory if they fit; else mapped samples are held and features are computed
    in every pass; else samples are read and mapped in every pass too. The landmarks of a seed are
    the same bits on any number of threads or workers; those of different ways differ by rounding.

    Parameters
    ----------
    samples
        What to approximate the kernel matrix of.
    row_map
        The kernel, and how samples become its rows.
    how
        Landmarks and features.
    options
        Memory; workers for the passes, for which samples go to a temporary folder that all of them
        must see. The journal keeps the state of "rpcholesky" after every round, unless features
        are in memory: the same call goes on from there to the same bits.
    plan
        What is in memory, of a caller that has divided it; None to plan by the options.

    Returns
    -------
    Approximation
        Landmarks and features.

    Raises
    ------
    InputError
        A row cannot be used, which is named, or the kernel is not positive semi-definite.
    BudgetError
        It does not fit the memory.

    References
    ----------
    .. [1] C. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines",
       NIPS 13 (2000).
    """
    m = how.count(samples.shape[0])
    with ExitStack() as stack:
        # One thread and several give the same bits only with BLAS on one thread in both.
        stack.enter_context(one_blas_thread())
        if options.client is not None:
            stack.enter_context(borrow_client(options.client))
        plan = plan or _plan(samples, row_map, m, options)
        making = _Making(_placed(samples, row_map, plan, options), plan, how, options.report)
        return making.approximation(m, _checkpoint(samples, row_map, making, options.journal))


def _plan(samples: Samples, row_map: RowMap, m: int, options: RunOptions) -> ApproximationPlan:
    """What is in memory, and where passes run."""
    n, itemsize = samples.shape[0], np.dtype(row_map.dtype).itemsize
    need = ApproximationNeed.of(n, row_map.bytes_of(samples), itemsize, m)
    what = f"{m} landmarks of {n} samples"
    if options.client is None:
        return plan_here(need, what, own_room(options.memory), core_count())
    return plan_on_workers(need, what, own_room(None), options.memory, options.client)


def _placed(
    samples: Samples, row_map: RowMap, plan: ApproximationPlan, options: RunOptions
) -> Placed:
    """Samples where passes find them."""
    if options.client is not None:
        G = compute_gram(
            samples,
            row_map.kernel,
            sphere_map=row_map.sphere_map,
            product_dtype=row_map.dtype,
            zero_rows=row_map.zero_rows,
            memory=options.memory,
            client=options.client,
            progress=options.report,
        )
        row_bytes = row_map.bytes_of(samples) / samples.shape[0]
        return in_folder(G, row_bytes, Workers(options.client, plan.threads))
    if plan.tier == "samples read in every pass":
        return in_source(samples, row_map, plan.threads)
    rows = row_map.all_of(samples, plan.planned, options.report, threads=plan.threads)
    return in_memory(rows, row_map.kernel, plan.threads)


def _checkpoint(
    samples: Samples, row_map: RowMap, making: "_Making", folder: Path | None
) -> LandmarkCheckpoint:
    """Where the state of a choice is kept: under a name of all that determines it."""
    if folder is None or making.held or making.how.selection != "rpcholesky":
        return LandmarkCheckpoint(None, "")
    how, kernel, sphere_map = making.how, row_map.kernel, row_map.sphere_map
    print_ = making.placed.fingerprint
    if print_ is None:
        print_ = scan_side(samples, [kernel], sphere_map, ignore, row_map.zero_rows).fingerprint
    m = how.count(samples.shape[0])
    key = [kernel.to_spec(), print_, sphere_map, row_map.dtype, making.plan.tier]
    return LandmarkCheckpoint(folder, digest_of("landmarks", [*key, m, how.landmark_tol, how.seed]))


@dataclass(frozen=True, eq=False)
class _Found:
    """Landmarks and what they give, as in `Approximation`."""

    landmarks: Rows
    indices: Indices | None
    root: Floats
    values: NDArray[Any] | None
    error: float


@dataclass(frozen=True, eq=False)
class _Making:
    """The steps of an approximation."""

    placed: Placed
    plan: ApproximationPlan
    how: LandmarkOptions
    report: OnProgress

    @property
    def held(self) -> bool:
        """Whether features are in memory."""
        return self.plan.tier == "features held"

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
        """That of the kernel matrix, (N,): of some kernels it takes a pass."""
        return self.placed.diagonal()

    @property
    def trace(self) -> float:
        """Its sum."""
        return float(self.diagonal.sum())

    def by(self, m: int, rounds: LandmarkCheckpoint) -> _Found:
        """Landmarks as they were asked for."""
        selection = self.how.selection
        if not isinstance(selection, str):
            return self.by_inverse(self.placed.take(selection), selection)
        if selection == "uniform":
            chosen = uniform(self.placed.n, m, np.random.default_rng(self.how.seed))
            return self.by_inverse(self.placed.take(chosen), chosen)
        if selection == "kmeans":
            return self.by_inverse(kmeans(self.placed, m, self.how.seed), None)
        return self.by_cholesky(m, rounds)

    def by_cholesky(self, m: int, rounds: LandmarkCheckpoint) -> _Found:
        """Landmarks by randomly pivoted Cholesky, whose factor is the features."""
        last = rounds.last()
        begun, root = (None, None) if last is None else last
        factor: HeldFactor | ComputedFactor
        if self.held:
            factor = HeldFactor(self.placed, m)
        else:
            factor = ComputedFactor(self.placed, None if begun is None else begun.pivots, root)
        rng, tol = np.random.default_rng(self.how.seed), self.how.landmark_tol
        pivoting = RandomPivots(self.placed, factor, self.diagonal, m, rng, tol)
        choice = pivoting.choose(begun, lambda now: rounds.keep(now, factor), self.report)
        values = factor.finished() if isinstance(factor, HeldFactor) else None
        return _Found(factor.landmarks, choice.pivots, factor.root, values, choice.error)

    def by_inverse(self, landmarks: Rows, indices: Indices | None) -> _Found:
        """Features of any landmarks, by the inverse root of their matrix."""
        placed = self.placed
        root = inverse_root(placed.kernel.of_rows(landmarks))
        Z, R = placed.values(landmarks), root.astype(placed.dtype)
        values = np.empty((placed.n, root.shape[1]), placed.dtype) if self.held else None
        if values is None:
            gained = sum(Z.map(squared_length, (), R))
        else:
            gained = sum(Z.map(write_features, (values,), R))
        error = max(0.0, 1.0 - gained / self.trace)
        return _Found(landmarks, indices, root, values, error)

    def leading(self, found: _Found, k: int) -> _Found:
        """The leading components of features."""
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
        """Features by passes, from memory or computed."""
        if found.values is None:
            return self.placed.values(found.landmarks, found.root)
        return FeatureMatrix.held(found.values, self.placed.executor)
