"""Fits of all pairs of classes on kernel matrices: from the checkpoint, whole, or in rounds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from time import perf_counter
from typing import Any, Final

import numpy as np

from dhsk.arrays import Codes, Floats, Indices, blocks
from dhsk.caching import cached_value
from dhsk.execution.checkpoint import NOWHERE, Checkpoint, digest_of
from dhsk.execution.memory import Share
from dhsk.execution.tasks import Executor
from dhsk.models.admission import Admission
from dhsk.models.fit_entries import entry_of_fits, fits_of_entry
from dhsk.models.pair_tasks import (
    MatrixProblem,
    PairFits,
    PairPart,
    SharedBlocks,
    SharedProblems,
    decide_parts,
    solve_parts,
)
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.solvers.decomposition import RoundWatch
from dhsk.solvers.dual import Fit
from dhsk.solvers.held_out import (
    ROUNDING,
    SupportVectors,
    held_out_decisions,
    sample_bytes,
    settle_rounding,
)
from dhsk.solvers.pairs import solve_pairs, way_of
from dhsk.solvers.problems import (
    MultiClass,
    Pair,
    make_pairs,
    problems_of_classes,
)
from dhsk.solvers.task_groups import in_groups, seconds_on_matrix
from dhsk.solvers.whole import (
    BegunPair,
    BegunPairs,
    Solved,
    Unsolved,
)

DECIDED_TASKS: Final = 2
"""Number of tasks of held-out decisions a thread, where parts are small."""

DECIDED_BYTES: Final = 1 << 27
"""Bytes of the coefficients of the folds that share a pass for held-out decisions, and of the sums
of a task, about."""


DECISIONS: Final = "held-out decisions"

DECIDED_ENTRIES: Final = 1 << 28
"""Kernel values that are computed for held-out decisions at a time, some seconds of work."""

KEPT_SECONDS: Final = 1.0
"""Least time of decisions that go into the checkpoint."""


@dataclass(eq=False)
class PairSolver:
    """Solves all pairs of classes on the matrices of some kernels."""

    codes: Codes
    """Class of each sample as an integer from 0, (N,); -1 for samples that are left out."""
    weights: Floats
    """Factors of C, (folds, N); 0 for test samples."""
    tol: float
    """Tolerance of the KKT violation."""
    problems: Sequence[MatrixProblem]
    """Matrices, with equal numbers of values of C."""
    executor: Executor
    share: Share
    """Memory of the matrix of a task, and whether folds are tasks and tasks share the memory."""
    entries: Checkpoint = NOWHERE
    """Where finished fits are kept."""
    fine: bool = False
    """Whether to continue below the tolerance, see `dhsk.solvers.whole.solve_whole`."""
    balls: bool = False
    """Whether to compute the balls that contain the samples of the pairs."""
    multi_class: MultiClass = "ovo"
    on_fits: Callable[[int, bool], None] = lambda _count, _found: None
    """Called with numbers of finished fits, and whether they were found in the checkpoint."""
    watch: RoundWatch = field(default_factory=RoundWatch)
    """Told of rounds on working sets."""
    told: OnProgress = ignore
    """Told of held-out decisions."""
    _made: dict[tuple[float, ...], list[Pair]] = field(default_factory=dict, init=False)
    _decisions: list[str] = field(default_factory=list, init=False)
    """Names of held-out decisions in the checkpoint."""

    @cached_value
    def n_pairs(self) -> int:
        """Number of pairs of classes."""
        return len(self._problems.pairs)

    def pairs(self, k: int = 0) -> list[Pair]:
        """Problems of a kernel, in its unit; consecutive kernels of equal C share them."""
        C = tuple(value * self.problems[k].unit for value in self.problems[k].C)
        if C not in self._made:
            self._made = {C: make_pairs(self.codes, self.weights, C, self.multi_class)}
        return self._made[C]

    def solved(self, wanted: Sequence[int] = (0,)) -> Iterator[tuple[int, PairFits]]:
        """Solve the problems of some kernels; yield each index and its fits once complete."""
        found: dict[int, dict[PairPart, tuple[list[Fit], float]]] = {k: {} for k in wanted}
        kept: dict[PairPart, Solved] = {}
        missing, whole = [], {k: self._whole(k) for k in wanted}
        for part in (part for k in wanted for part in self._parts(k)):
            entry = None
            if self.entries.folder is not None:
                entry = self.entries.get(self._name_of(part), fits_of_entry)
            if entry is not None:
                kept[part] = part, entry[0], entry[1]
            if entry is None or not whole[part.kernel]:
                missing.append(part)
            else:
                found[part.kernel][part] = entry[0], entry[1]
                self.on_fits(len(entry[0]), True)
        yield from ((k, self._joined(found.pop(k), k)) for k in wanted if self._complete(found, k))
        for together in self._solve(missing, kept):
            for part, fits, radius2 in together:
                if part not in kept and self.entries.folder is not None:
                    self.entries.put(self._name_of(part), *entry_of_fits(fits, radius2))
                found[part.kernel][part] = fits, radius2
            self.on_fits(sum(len(fits) for _, fits, _ in together), together[0][0] in kept)
            for k in {part.kernel for part, *_ in together}:
                if self._complete(found, k):
                    yield k, self._joined(found.pop(k), k)

    def held_out(self, k: int, solved: PairFits, folds: Sequence[Indices]) -> Iterator[Floats]:
        """Decisions of a kernel's fits for the held-out samples of each fold.

        They are (values of C, samples, pairs), fold by fold; those of rounding alone are 0, so that
        no score is made of them.
        """
        n_C = len(self.problems[k].C)
        for fold, decided in enumerate(self._held_out(k, solved, folds)):
            columns = range(fold * n_C, (fold + 1) * n_C)
            settle_rounding(decided, partial(self._rounding, k, solved, columns))
            yield decided

    def _rounding(self, k: int, solved: PairFits, columns: Sequence[int]) -> Floats:
        """Largest decisions that may be rounding alone, (columns, pairs)."""
        sizes = [[np.abs(fits[c].coef).sum() for fits in solved.fits] for c in columns]
        entry = float(np.abs(self.problems[k].source.diagonal()).max())
        return ROUNDING * entry * np.array(sizes)

    def _held_out(self, k: int, solved: PairFits, folds: Sequence[Indices]) -> Iterator[Floats]:
        """Decisions as they were computed."""
        classes, n_C = self._problems.classes, len(self.problems[k].C)
        if all(fit.outside is not None for own in solved.fits for fit in own):
            yield from self._seen(k, solved, folds)
            return
        problems = problems_of_classes(len(classes), self.multi_class)
        done, total = 0, sum(map(len, folds))
        self.told(Progress(DECISIONS, done, total))
        # A sample has coefficients in the pairs of its own class, but sums in all.
        each = sample_bytes(problems, n_C) // len(classes) * len(self.codes)
        at_once = 1 if self.problems[k].source.computes else max(1, DECIDED_BYTES // each)
        for some in blocks(len(folds), at_once):
            columns = slice(some.start * n_C, some.stop * n_C)
            own = [fits[columns] for fits in solved.fits]
            found = SupportVectors.of(own, classes, n_C, self.multi_class)
            for decided in self._decided(k, folds[some], found):
                done += decided.shape[1]
                self.told(Progress(DECISIONS, done, total))
                yield decided

    def _seen(self, k: int, solved: PairFits, folds: Sequence[Indices]) -> Iterator[Floats]:
        """Decisions that came with the fits, which each have all samples."""
        members, n_C = np.concatenate(self._problems.classes), len(self.problems[k].C)
        for fold, test in enumerate(folds):
            others = members[self.weights[fold][members] == 0]
            order = np.argsort(others)
            places = order[np.searchsorted(others, test, sorter=order)]
            columns = range(fold * n_C, (fold + 1) * n_C)
            own = [[fits[c].outside for fits in solved.fits] for c in columns]
            yield np.ascontiguousarray(np.array(own)[:, :, places].transpose(0, 2, 1))

    def _decided(self, k: int, tests: Sequence[Indices], found: SupportVectors) -> Sequence[Floats]:
        """Decisions for the samples of some folds, which share what is read of the matrix."""
        sizes, (_, n_pairs, n_C) = [len(test) for test in tests], found.intercepts.shape
        folds, rows = np.repeat(np.arange(len(tests)), sizes), np.concatenate(tests)
        source = self.problems[k].source
        values: Iterator[Floats]
        if source.computes:
            each = max(1, DECIDED_ENTRIES // max(1, sum(map(len, found.groups))))
            parts = [np.arange(len(rows))[part] for part in blocks(len(rows), each)]
            values = (self._kept_decisions(k, rows[part], folds[part], found) for part in parts)
        else:
            most = max(1, DECIDED_BYTES // sample_bytes(found.problems, n_C))
            parts = source.row_parts(rows, most)
            shared = self.executor.share(found)
            tasks = (
                (self._shared, k, [(rows[part], folds[part]) for part in some], shared)
                for some in self._tasks_of(parts, most)
            )
            values = chain.from_iterable(self.executor.run(decide_parts, tasks, ordered=True))
        decided = np.empty((n_C, len(rows), n_pairs))
        for part, own in zip(parts, values, strict=True):
            decided[:, part] = own
        return np.split(decided, np.cumsum(sizes)[:-1], axis=1)

    def _tasks_of(self, parts: Sequence[Indices], most: int) -> Iterator[list[Indices]]:
        """Parts of held-out samples in tasks of at most that many samples, or of one part."""
        total = sum(map(len, parts))
        most = min(most, -(-total // (DECIDED_TASKS * self.share.at_once)))
        own = list[Indices]()
        for part in parts:
            if own and sum(map(len, own)) + len(part) > most:
                yield own
                own = []
            own.append(part)
        if own:
            yield own

    def _kept_decisions(
        self, k: int, rows: Indices, folds: Indices, found: SupportVectors
    ) -> Floats:
        """Decisions for some samples, from the checkpoint or computed, in tasks of the source."""
        name = digest_of(self.problems[k].name, DECISIONS, rows, folds)
        decided: Floats | None = self.entries.get(name, lambda kept: kept[DECISIONS])
        begin = perf_counter()
        if decided is None:
            decided = held_out_decisions(self.problems[k].source, rows, folds, found)
            if perf_counter() - begin < KEPT_SECONDS:
                return decided
            self.entries.put(name, {DECISIONS: decided})
        self._decisions.append(name)
        return decided

    def forget(self, k: int) -> None:
        """Delete the fits of a kernel, and its rounds, from the checkpoint."""
        parts = self._parts(k)
        self.entries.drop(*map(self._name_of, parts), *self._decisions)
        self._decisions.clear()
        self.forget_rounds(k)

    def forget_rounds(self, k: int = 0) -> None:
        """Delete the rounds of a kernel from the checkpoint."""
        name = self._rounds_of(self._parts(k))
        self.watch.checkpoint.drop(name, f"{name}-rounds")

    def _parts(self, k: int) -> list[PairPart]:
        """Tasks of a kernel."""
        shares = self._shares(k)
        return [PairPart(k, pair, share) for pair in range(self.n_pairs) for share in shares]

    def _shares(self, k: int) -> list[tuple[int, ...]]:
        """Folds of each task of a pair."""
        folds = range(len(self.weights))
        # A pair in rounds is one task: its folds share every pass.
        split = self.share.split_folds and self._whole(k)
        return [(fold,) for fold in folds] if split else [tuple(folds)]

    def _whole(self, k: int) -> bool:
        """Whether the matrix of every pair is read as a whole, and each is resumed by itself.

        On working sets and in rounds pairs share columns and passes, and so a checkpoint.
        """
        source, room = self.problems[k].source, self.share.room
        # Against the rest, all classes need most columns of one matrix.
        wanted = self.balls or (self.multi_class == "ovr" and not self._on_device[k])
        return way_of(self._most, source, room, whole=wanted) == "whole matrices"

    @cached_value
    def _on_device(self) -> list[bool]:
        """Whether a device holds the whole matrix of each kernel."""
        members = np.concatenate(self._problems.classes)
        return [one.source.whole_on_device(members) is not None for one in self.problems]

    @cached_value
    def _most(self) -> int:
        """Number of samples of the largest pair."""
        return max(self._problems.sizes)

    def _name_of(self, part: PairPart) -> str:
        return digest_of(self.problems[part.kernel].name, part.pair, list(part.folds))

    def _rounds_of(self, parts: Sequence[PairPart]) -> str:
        """Name of the checkpoint of rounds, in which the memory decides the largest sets."""
        return digest_of(self.share.room, [self._name_of(part) for part in parts])

    @cached_value
    def _problems(self) -> SharedProblems:
        problems, blocks = tuple(self.problems), SharedBlocks(self.share.blocks)
        given = self.codes, self.weights, problems, self.balls, self.multi_class
        return SharedProblems(*given, blocks)

    @cached_value
    def _shared(self) -> Any:
        """The problems as an argument of tasks."""
        return self.executor.share(self._problems)

    def _solve(
        self, parts: Sequence[PairPart], kept: Mapping[PairPart, Solved]
    ) -> Iterator[list[Solved]]:
        """Parts, those of a task together: on whole matrices, and then the others by kernel.

        They come as they finish. Of others that share columns, those that are left to whole
        matrices may be `kept`.
        """
        room, executor = self.share.room, self.executor
        whole = {k: self._whole(k) for k in {part.kernel for part in parts}}
        small = [part for part in parts if whole[part.kernel]]
        if self.share.shared:  # the small ones run beside the large ones
            turn = {part.kernel: number for number, part in reversed([*enumerate(small)])}
            small.sort(key=lambda part: (turn[part.kernel], -self._problems.sizes[part.pair]))
        of_kernels = (own for _, own in groupby(small, key=lambda part: part.kernel))
        groups = [group for own in of_kernels for group in in_groups(own, self._seconds_of)]
        admission = Admission(self.share.shared, map(self._problems.bytes_of, groups), groups)
        begun = BegunPairs(self.entries, digest_of([one.name for one in self.problems]))
        while admission.waiting:
            own = (
                (self._shared, group, self._begun_of(group, begun), self.tol, self.fine)
                for group in admission
            )
            for found in executor.run(solve_parts, own):
                size = self._problems.bytes_of([part for part, *_ in found])
                admission.release(size)
                done = [one for one in found if not isinstance(one, Unsolved)]
                for one in found:
                    if isinstance(one, Unsolved):
                        begun.put(one)
                        admission.waiting.append((size, [one.key]))
                if done:
                    yield done
                for part, *_ in done:
                    begun.drop(part)
        others = (part for part in parts if not whole[part.kernel])
        for _, some in groupby(others, key=lambda part: part.kernel):
            group = list(some)
            watch = replace(self.watch, name=self._rounds_of(group))
            tasks = map(self._problems.task, group)
            for one in solve_pairs(
                tasks, self.tol, room, executor, fine=self.fine, watch=watch, found=kept
            ):
                yield [one]

    def _begun_of(self, parts: Sequence[PairPart], begun: BegunPairs) -> list[BegunPair | None]:
        """What is done of each part."""
        return [begun.of(part, self._problems.sizes[part.pair]) for part in parts]

    def _seconds_of(self, part: PairPart) -> float:
        """About the seconds of a part on its whole matrix."""
        columns = len(part.folds) * len(self.problems[part.kernel].C)
        return seconds_on_matrix(self._problems.sizes[part.pair], columns)

    def _complete(self, found: dict[int, dict[PairPart, tuple[list[Fit], float]]], k: int) -> bool:
        """Whether every part of a kernel is solved."""
        return len(found[k]) == self.n_pairs * len(self._shares(k))

    def _joined(self, found: dict[PairPart, tuple[list[Fit], float]], k: int) -> PairFits:
        fits: list[list[Fit]] = [[] for _ in range(self.n_pairs)]
        radii2 = [0.0] * self.n_pairs
        for part in sorted(found):
            own, radius2 = found[part]
            fits[part.pair] += own
            radii2[part.pair] = max(radii2[part.pair], radius2)
        return PairFits(fits, radii2, self.problems[k].unit)
