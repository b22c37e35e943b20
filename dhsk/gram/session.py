"""A store that is written: locked, made or opened, its samples staged, its tiles computed.

Samples are scanned before anything is made, so that bad ones leave nothing on disk: a new store
takes two passes over them. Rejected: one pass that checks and stages, and removes what it has
staged at the first bad row (a killed process would leave it, and other parts have begun on it).
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Final, Self

from dhsk.errors import InputError, SamplesChangedError, StoreError, warn
from dhsk.execution.array_job import ArrayJob
from dhsk.execution.folder import TemporaryPlace, temporary_place
from dhsk.execution.folder_check import shared_by_workers
from dhsk.execution.lock import TURN_SECONDS, Turns, is_occupied
from dhsk.execution.owner import one_of_several_at, sole_writer_of
from dhsk.execution.run import Run
from dhsk.gram.plan import GramPlan
from dhsk.gram.storage.header import Header
from dhsk.gram.storage.parts import TilePart, forget_parts, is_begun, note_parts, share_of
from dhsk.gram.storage.staging import stage_samples
from dhsk.gram.storage.store import GramStore
from dhsk.gram.tile_tasks import Task, compute_group, groups_of, samples_of
from dhsk.gram.tiles import TileSource
from dhsk.objects.places import Place, free_bytes, is_url, remove_unfinished
from dhsk.progress import Progress, counter
from dhsk.samples import Samples

PATIENCE_SECONDS: Final = 3600.0
"""Time for which a part waits for the first one, where there are no locks to see it by."""


@dataclass(frozen=True, eq=False)
class Session:
    """A store that this process writes; see `begun`."""

    run: Run
    path: Place
    planned: Callable[[int | None], GramPlan]
    """Gives the plan of tiles of an edge; None for the default."""
    plan: GramPlan
    folder: TemporaryPlace | None
    """Where the store is, if it is temporary."""
    part: TilePart | None = None
    turns: Turns | None = None
    """By which several parts do one after the other what only one of them may do."""
    tile: int | None = None
    """Edge of the tiles of a new store, if one was asked for."""

    @classmethod
    @contextmanager
    def begun(
        cls,
        run: Run,
        plan_with: Callable[..., GramPlan],
        tile: int | None = None,
        part: TilePart | None = None,
    ) -> Iterator[Self]:
        """Lock the store of a run, or a temporary place without one, for one writer or parts.

        `plan_with` is given resources and `tile`. What exceeds memory or disk, or is no store, is
        refused before anything is locked.
        """
        resources = replace(run.resources, to_server=is_url(run.store))

        def planned(edge: int | None) -> GramPlan:
            plan = plan_with(resources=resources, tile=edge)
            plan.check()
            return plan

        if run.store is not None and isinstance(run.client, ArrayJob):
            raise InputError(
                f"{run.store}: an array job stores no matrix; leave store out, or compute it "
                "outside of the job with part=(3, 64)"
            )
        if run.store is None and part is not None:
            raise InputError(f"{part} is for a store: give the folder that all parts share")
        plan, turns = planned(tile), None
        folder = temporary_place(run.scratch) if run.store is None else None
        path = run.store if folder is None else folder.path
        assert path is not None  # one of both
        if is_occupied(path) and not (part and is_begun(path)):
            GramStore.open(path)  # raises before anything else is locked
        else:
            plan.check(disk_free=free_bytes(path))
        with ExitStack() as stack:
            if part is not None:
                turns = stack.enter_context(one_of_several_at(path))
            else:
                stack.enter_context(sole_writer_of(path))
                stack.enter_context(shared_by_workers(run.client, path))
            yield cls(run, path, planned, plan, folder, part, turns, tile)

    @property
    def existing(self) -> GramStore | None:
        """The store that is to be finished; None for a new one."""
        begun = is_occupied(self.path) and not is_begun(self.path)
        return GramStore.open(self.path) if begun else None

    def made(self, header: Header, sides: Sequence[Samples]) -> GramStore:
        """Make the store, or open that of the same samples and options, and compute its tiles.

        Of several parts one makes the store and stages its samples while the others wait; without
        locks that is part 1. Raises StoreMismatchError if the store is of other samples or options.
        """
        if self.turns is not None and self.part is not None:
            store = self._in_turn(self.turns, self.part, header, sides)
            self._fill(store, sides)
            return store
        with _removed_if_samples_change(self.path):
            store = GramStore.create(self.path, header, sides[0].feature_names)
            self._fill(store, sides)
        return store

    def repaired(self, store: GramStore, sides: Sequence[Samples]) -> list[tuple[int, int]]:
        """Compute missing and damaged tiles, whose indices are returned."""
        damaged = store.discard_damage(sides[0].feature_names)
        self._fill(store, sides)
        return damaged

    def _fill(self, store: GramStore, sides: Sequence[Samples]) -> None:
        """Stage what samples the store lacks, and compute the tiles that it lacks."""
        staging = stage_samples(store, sides, self.run)
        if store.arrays:
            self._compute(store, staging)
        deque(staging, maxlen=0)
        if store.arrays and self.part is None:
            remove_unfinished(store.path)  # of workers that were killed
            store.check_complete()
            store.record()
            forget_parts(store.path)

    def _compute(self, store: GramStore, staging: Iterator[int]) -> None:
        """Compute the missing tiles, or those of a part, the first ones while samples are staged.

        Where samples change, the tasks in flight end first, so that none writes to a store that is
        being removed.
        """
        edge, tiling = store.header.tile, store.header.tiling
        if self.tile not in (None, edge):
            warn(
                f"{store.path} has tiles of {edge:,} x {edge:,}, which stay: tile={self.tile} is "
                "for a new store"
            )
        same = edge == self.plan.tiling.tile
        plan = self.plan if same else self.planned(edge)  # an existing store keeps its tiles
        missing, total = store.missing_tiles(), tiling.n_tiles
        if self.part is not None:
            share = share_of(tiling, self.part)
            missing, total = [tile for tile in missing if tile in share], len(share)
        else:
            store.forget(missing)
        source = TileSource(store.path.absolute(), store.kernels, compute=True)
        changed: list[SamplesChangedError] = []

        def tasks() -> Iterator[Task]:
            staged = 0
            groups = groups_of(missing, store.header, plan)
            try:
                for group in sorted(groups, key=lambda group: samples_of(group, store.header)):
                    while staged < samples_of(group, store.header):
                        staged = next(staging)
                    yield source, group
            except SamplesChangedError as error:
                changed.append(error)

        advance = counter(self.run.report, "tiles", total, total - len(missing))
        with closing(self.run.executor(plan.window).run(compute_group, tasks())) as counts:
            for count in counts:
                advance(count)
        if changed:
            raise changed[0]

    def _in_turn(
        self,
        turns: Turns,
        part: TilePart,
        header: Header,
        sides: Sequence[Samples],
    ) -> GramStore:
        """Make the store with its samples, unless another part has done it."""
        if not turns.has_locks and part.number > 1:
            self._await_first()
        with turns.alone(self._wait):
            note_parts(self.path, part.count)
            if not _is_prepared(self.path):
                remove_unfinished(self.path)  # of a part that was killed while it made the store
                with _removed_if_samples_change(self.path):
                    store = GramStore.create(self.path, header, sides[0].feature_names)
                    deque(stage_samples(store, sides, self.run), maxlen=0)
            store = GramStore.open(self.path)
            store.check_same(header)
            share = share_of(store.header.tiling, part)
            store.forget([tile for tile in store.missing_tiles() if tile in share])
        return store

    def _wait(self) -> None:
        self.run.report(Progress("waiting", 0, 1, "another part stages the samples"))

    def _await_first(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not _is_prepared(self.path):
            if time.monotonic() > deadline:
                raise StoreError(
                    f"{self.path} has no locks and is not prepared after {PATIENCE_SECONDS:.0f} s:"
                    " part 1 stages the samples for all others, start it"
                )
            self._wait()
            time.sleep(TURN_SECONDS)


def _is_prepared(path: Place) -> bool:
    """Whether a store has all that its tiles are computed from."""
    if not (path / "zarr.json").is_file():
        return False
    store = GramStore.open(path)
    arrays = all((array.folder / "zarr.json").is_file() for array in store.arrays)
    return arrays and store.has_sound_names() and all(map(store.samples.has, store.samples.sides))


@contextmanager
def _removed_if_samples_change(path: Place) -> Iterator[None]:
    """Remove a new store, but not an older one, if its samples change."""
    new = not is_occupied(path)
    try:
        yield
    except SamplesChangedError:
        if new:
            GramStore.open(path).remove()
        raise
