"""Nyström approximations of a kernel matrix, each with its trace error."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, Rows
from dhsk.caching import cached_value
from dhsk.execution.array_job import ArrayJob
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.limits import core_count
from dhsk.execution.memory import Share
from dhsk.execution.run import Run
from dhsk.execution.threads import Threads
from dhsk.gram.compute import gram_of
from dhsk.gram.row_map import RowMap
from dhsk.kernels import Kernel
from dhsk.nystrom.centres import kmeans
from dhsk.nystrom.cholesky import ComputedFactor, Factor, InMemoryFactor
from dhsk.nystrom.components import components, inverse_root, squared_length, turned, write_features
from dhsk.nystrom.kept_values import KeptPasses
from dhsk.nystrom.landmarks import PivotState, RandomPivots, searched, uniform
from dhsk.nystrom.placed import Placed, in_folder, in_memory, in_source
from dhsk.nystrom.room import (
    ApproximationNeed,
    choosing_threads,
    computed_on_device,
    plan_here,
    plan_on_workers,
)
from dhsk.nystrom.spans import FeatureMatrix
from dhsk.objects.places import bytes_below, free_bytes
from dhsk.progress import Progress, counter
from dhsk.results.low_rank import LowRank
from dhsk.samples import Samples

PREFIX: Final = "landmarks-"
"""Begins the names of the entries of rounds."""

_FREE: Final = 2
"""Features in memory are kept if this multiple of their bytes is free."""

_GUESSES: Final[Mapping[str, Mapping[str, float]]] = {
    "rpcholesky": {"landmarks": 10},
    "kmeans": {"clustering": 5, "features": 3},
}
"""Parts of an approximation besides reading, and what they are guessed to take in proportion."""


@dataclass(frozen=True, eq=False)
class Approximation:
    """Features Z = K(X, L) R of samples X, whose inner products approximate their kernel."""

    kernel: Kernel
    """The kernel."""
    landmarks: Rows
    """L, mapped rows, (m, dim)."""
    indices: Indices | None
    """Indices of the landmarks among the samples, (m,); None for cluster centres."""
    root: Floats
    """R, (m, r), float64."""
    features: FeatureMatrix
    """Z, (N, r), read in passes over all samples, in memory or computed in each."""
    trace_error: float
    """Trace norm of K - Z Z' relative to the trace of K, exact to rounding if K is positive
    semi-definite."""
    trace: float
    """Trace of K."""
    plan: Share
    """Tier and planned memory."""

    @property
    def width(self) -> int:
        """Number of features, r."""
        return int(self.root.shape[1])

    @property
    def tier(self) -> str:
        """Data in memory, and where passes run, a `Tier`."""
        return self.plan.way


def approximate(
    samples: Samples,
    row_map: RowMap,
    how: LowRank,
    run: Run = Run(),  # noqa: B008  # frozen
    plan: Share | None = None,
    *,
    seed: int = 0,
    fingerprint: str | None = None,
) -> Approximation:
    """Choose landmarks, and compute the features of all samples by the Nyström method [1]_.

    Of many samples a random part is searched for landmarks, see `dhsk.nystrom.landmarks.searched`.

    Features are kept in memory if they fit. Otherwise passes compute them: from mapped samples in
    memory if those fit, else from samples that are read and mapped in every pass. The landmarks of
    a seed are the same bits on any number of threads or workers; between tiers they may differ by
    rounding.

    Workers read the samples from a temporary folder that all of them must see. The checkpoint in
    `run.journal` keeps what is finished, features in memory included if twice their size is free on
    that disk; the same call resumes from there to the same bits. Its entries have the fingerprint
    of the samples, which are read for it if none is given. Without a plan, the memory is planned
    for the largest rank. The seed is that of all random choices.

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
    with run.told(reading=1, **_GUESSES.get(how.method, {"features": 3})) as (run, _):
        kept = plan is not None and plan.whole
        on_device = not kept and computed_on_device(samples, row_map, m)
        plan = plan or _plan(samples, row_map, m, run, on_device=on_device)
        placed = _placed(samples, row_map, plan, run, on_device=on_device)
        passes = KeptPasses(_entries(run, placed, m, plan))
        if passes.entries.folder is not None:
            mark = fingerprint or placed.fingerprint or row_map.scan(samples, Run()).fingerprint
            where = ["on a device"] if on_device else []
            name = digest_of("landmarks 3", mark, *_key(row_map, plan, how, m), seed, *where)
            passes = replace(passes, name=name)
        part = searched(samples.shape[0], row_map.bytes_of(samples) / samples.shape[0], m)
        return _Making(placed, plan, how, run, seed, passes, part).approximation(m)


def _plan(samples: Samples, row_map: RowMap, m: int, run: Run, *, on_device: bool) -> Share:
    """Plan by the memory of this process, or of the workers."""
    n, itemsize = samples.shape[0], np.dtype(row_map.dtype).itemsize
    mapped = row_map.bytes_of(samples)
    need = ApproximationNeed.of(n, mapped, itemsize, m, on_device=on_device)
    if run.client is not None:
        return plan_on_workers(need, run)
    return plan_here(need, run.room, core_count())


def _placed(samples: Samples, row_map: RowMap, plan: Share, run: Run, *, on_device: bool) -> Placed:
    """Mapped samples in memory, in their source, or in a folder of all workers."""
    if run.client is not None:
        G = gram_of(samples, row_map, replace(run, store=None))
        row_bytes = row_map.bytes_of(samples) / samples.shape[0]
        return in_folder(G, row_bytes, run.executor(plan.at_once), on_device=on_device)
    if plan.way == "samples read in every pass":
        return in_source(samples, row_map, plan.at_once, on_device=on_device)
    rows = row_map.all_of(samples, run, room=plan.need.total, threads=plan.at_once)
    return in_memory(rows, row_map.kernel, plan.at_once, on_device=on_device)


def _entries(run: Run, placed: Placed, m: int, plan: Share) -> Checkpoint:
    """Where a repeated call finds what was done; nowhere if that disk is too small."""
    journal, held = run.journal, placed.n * m * np.dtype(placed.dtype).itemsize
    if journal is not None and plan.whole:
        free = free_bytes(journal)
        if free is not None and _FREE * held > free + bytes_below(journal):
            journal = None
    return Checkpoint(journal, PREFIX)


def _key(row_map: RowMap, plan: Share, how: LowRank, m: int) -> list[Any]:
    """JSON values that determine an approximation, with the samples and the seed."""
    selection: Any = how.selection
    if not isinstance(selection, str):
        selection = np.asarray(selection).tolist()
    mapped = [row_map.kernel.to_spec(), row_map.sphere_map, row_map.dtype]
    return [*mapped, plan.way, m, how.landmark_tol, selection, how.largest if how.method else 0]


@dataclass(frozen=True, eq=False)
class _Making:
    """Steps of an approximation."""

    placed: Placed
    plan: Share
    how: LowRank
    run: Run
    seed: int
    passes: KeptPasses
    """Passes over the features, which a repeated call goes on with."""
    searched: int
    """How many of the samples are searched for landmarks."""

    def approximation(self, m: int) -> Approximation:
        """Choose m landmarks, and make features of them."""
        found = self.by(m)
        if self.how.method and found.width > self.how.largest:
            return self.leading(found, self.how.largest)
        return found

    @cached_value
    def trace(self) -> float:
        """Trace of the kernel matrix, which takes a pass for some kernels."""
        return self.placed.trace()

    def by(self, m: int) -> Approximation:
        """Choose landmarks by the selection of the options."""
        selection = self.how.selection
        if not isinstance(selection, str):
            return self.by_inverse(self.placed.take(selection), selection)
        if selection == "uniform":
            chosen = uniform(self.placed.n, m, np.random.default_rng(self.seed))
            return self.by_inverse(self.placed.take(chosen), chosen)
        if selection == "kmeans":
            self.run.report(Progress("clustering", 0, 1))
            centres = kmeans(self.placed, m, self.seed)
            self.run.report(Progress("clustering", 1, 1))
            return self.by_inverse(centres, None)
        return self.by_cholesky(m)

    def by_cholesky(self, m: int) -> Approximation:
        """Choose landmarks by randomly pivoted Cholesky, whose factor are the features."""
        if self.searched < self.placed.n:
            return self.by_part(m)
        factor: Factor
        if self.plan.whole:
            factor = InMemoryFactor(self.placed, m, self.passes)
        else:
            factor = ComputedFactor(self.placed, self.passes)
        choice = self.choice(self.placed, factor, m)
        values = factor.finished() if isinstance(factor, InMemoryFactor) else None
        return self.found(factor.landmarks, choice.pivots, factor.root, values, choice.error)

    def by_part(self, m: int) -> Approximation:
        """Choose landmarks as `by_cholesky`, but among a random part of the samples."""
        self.run.report(Progress("landmarks", 0, m))
        n, client = self.placed.n, self.run.client
        some = np.random.default_rng([self.seed, n]).choice(n, self.searched, replace=False)
        executor = self.placed.executor
        if client is not None and not isinstance(client, ArrayJob):  # workers would be sent rows
            executor = Threads(choosing_threads())
        part = self.placed.only(some, executor)
        factor = ComputedFactor(part, self.passes)
        choice = self.choice(part, factor, m)
        return self.by_root(factor.landmarks, some[choice.pivots], factor.root)

    def choice(self, among: Placed, factor: Factor, m: int) -> PivotState:
        """Extend the factor of samples by m random pivots, or go on with it."""
        begun = None if factor.begun is None else PivotState(**factor.begun)
        rng, tol = np.random.default_rng(self.seed), self.how.landmark_tol
        pivoting = RandomPivots(among, factor, among.diagonal(), m, rng, tol)

        def keep(now: PivotState) -> None:
            arrays = dict(vars(now))
            random = dict(arrays.pop("random"))
            factor.keep(arrays, {"random": random})

        return pivoting.choose(begun, keep, self.run)

    def by_inverse(self, landmarks: Rows, indices: Indices | None) -> Approximation:
        """Features of given landmarks, by the inverse root of their kernel matrix."""
        root = inverse_root(self.placed.kernel.of_rows(landmarks))
        return self.by_root(landmarks, indices, root)

    def by_root(self, landmarks: Rows, indices: Indices | None, root: Floats) -> Approximation:
        """Features of given landmarks and root."""
        placed = self.placed
        Z, R = placed.values(landmarks), root.astype(placed.dtype)
        values = np.empty((placed.n, root.shape[1]), placed.dtype) if self.plan.whole else None
        passes = replace(self.passes, advance=counter(self.run.report, "features", placed.n))
        if values is None:
            gained = passes.sum(Z, squared_length, (), R)
        else:
            gained = passes.sum(Z, write_features, (values,), R, written=[values])
        error = max(0.0, 1.0 - gained / self.trace)
        return self.found(landmarks, indices, root, values, error)

    def leading(self, found: Approximation, k: int) -> Approximation:
        """Replace features by their k leading principal components."""
        Z = found.features
        V, weights, total = components(Z, k, self.passes)
        lost = (total - float(weights.sum())) / self.trace
        root = found.root @ V
        values = None if Z.values is None else turned(Z, Z.values, V, self.passes)
        return replace(
            found,
            root=root,
            features=self.features(found.landmarks, root, values),
            trace_error=found.trace_error + max(0.0, lost),
        )

    def found(
        self,
        landmarks: Rows,
        indices: Indices | None,
        root: Floats,
        values: NDArray[Any] | None,
        error: float,
    ) -> Approximation:
        """Approximation by all features of some landmarks, in memory if there are values."""
        Z, kernel = self.features(landmarks, root, values), self.placed.kernel
        return Approximation(kernel, landmarks, indices, root, Z, error, self.trace, self.plan)

    def features(self, landmarks: Rows, root: Floats, values: NDArray[Any] | None) -> FeatureMatrix:
        """Features in memory, or computed in passes."""
        if values is None:
            return self.placed.values(landmarks, root)
        return FeatureMatrix.in_memory(values, self.placed.executor)
