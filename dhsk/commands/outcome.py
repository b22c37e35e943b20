"""Measured time, memory and disk of a computation, beside those of its plan."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import perf_counter
from typing import Any, cast

import psutil

from dhsk.commands.console import print_table
from dhsk.costs import Cost
from dhsk.execution.limits import core_count
from dhsk.execution.lock import is_occupied
from dhsk.execution.resources import Resources
from dhsk.gram import GramMatrix
from dhsk.gram.graph_plan import plan_of
from dhsk.gram.plan import make_plan
from dhsk.gram.sides import GramSides
from dhsk.gram.storage.parts import is_begun
from dhsk.gram.storage.store import GramStore
from dhsk.gram.storage.tiling import DtypeName
from dhsk.kernels import Kernel
from dhsk.objects.places import Place, bytes_below
from dhsk.planning.overlap import measured_overlap
from dhsk.planning.prediction import Prediction
from dhsk.planning.rates import kernel_seconds, known_rates
from dhsk.progress import OnProgress, Progress
from dhsk.samples import Samples
from dhsk.systems import peak_resident
from dhsk.units import counted, format_bytes, human_seconds

INTERVAL_SECONDS = 0.5
"""Time between two samples of the memory; more if sampling is slow, see `LARGEST_COST`."""

LARGEST_COST = 0.01
"""Share of a core that sampling may take."""


class TreeMemory:
    """Peak memory of this process and its descendants together, sampled by a thread.

    It sums proportional set sizes, which count shared pages once. Those of descendants are raised
    to their own peaks, which the kernel keeps (Linux), so that no tile is missed between two
    samples; peaks at different times count as one. Elsewhere it sums the unique set sizes, or on
    macOS the resident ones of workers.
    """

    def __init__(self) -> None:
        self.peak = 0
        self._ended = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "TreeMemory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._look(psutil.Process())

    def _look(self, process: psutil.Process) -> None:
        self.peak = max(self.peak, tree_bytes(process))

    def _watch(self) -> None:
        process = psutil.Process()
        pause = 0.0
        while not self._ended.wait(pause):
            begin = perf_counter()
            self._look(process)
            pause = max(INTERVAL_SECONDS, (perf_counter() - begin) / LARGEST_COST)


def tree_bytes(process: psutil.Process) -> int:
    """Bytes of a process, and of its descendants at their peaks; 0 for those that ended."""
    total = 0
    for member in (process, *process.children(recursive=True)):
        with suppress(psutil.Error, OSError):
            own, resident = _sizes_of(member)
            total += own
            if member.pid != process.pid:
                total += max(0, peak_resident(member.pid) - resident)
    return total


def _sizes_of(member: psutil.Process) -> tuple[int, int]:
    """Bytes that a process has, and those that are resident, with pages that others share.

    On macOS only root may see which of other processes' pages are shared: all are counted there.
    """
    try:
        full = member.memory_full_info()
    except psutil.AccessDenied:
        resident = int(member.memory_info().rss)
        return resident, resident
    return int(getattr(full, "pss", full.uss)), int(full.rss)


class Outcome:
    """Measures a run of `compute_gram` from here on, and prints it beside its plan.

    `local` says that the workers are processes of this machine, whose memory can be seen.
    """

    def __init__(self, kernel: Kernel, product_dtype: str, *, local: bool) -> None:
        self.local = local
        self._cores = core_count() if local else None
        self.rates = known_rates()
        self.kernel = kernel_seconds(kernel, cast("DtypeName", product_dtype))
        self.seconds = 0.0
        self.found: int | None = None
        """Tiles that an earlier run had computed."""
        self.total = 0
        """Tiles of the matrix, or of the part of it that is computed."""
        self.staged = True
        self._overlap: float | None = None
        self._memory = TreeMemory()
        self._begin = perf_counter()

    def cost(
        self,
        samples: Samples,
        store: Place,
        resources: Resources,
        part: tuple[int, int] | None,
        tiles: Mapping[str, Any],
    ) -> Cost:
        """What a run into a store will cost: what is missing there, or one part of several."""
        self._overlap = measured_overlap(samples)[0] if samples.is_sparse else None
        sides = GramSides.of([samples], self._overlap)
        found = GramStore.open(store) if is_occupied(store) and not is_begun(store) else None
        edge = tiles["tile"] if found is None else found.header.tile
        plan = make_plan(sides, resources, **{**tiles, "tile": edge})
        total = plan.tiling.n_tiles
        todo = total if found is None else len(found.missing_tiles())
        share = max(todo, 1) / total / (1 if part is None else part[1])
        prediction = Prediction(plan, self.rates, self.kernel, cores=self._cores, share=share)
        of_part = "" if part is None else f", part {part[0]} of {part[1]}"
        n, dim = samples.shape
        return Cost(
            what=f"matrix of {n:,} samples of {counted(dim, 'feature')}{of_part}, "
            f"{todo:,} of {total:,} tiles",
            seconds=prediction.seconds,
            memory=plan.peak_bytes,
            disk=plan.disk_bytes,
            stays=plan.disk_bytes,
        )

    @contextmanager
    def watched(self, progress: OnProgress, begins: Callable[[], None]) -> Iterator[OnProgress]:
        """Measure while the context lasts; yield the receiver of progress for the computation.

        `begins` is called at its first event: no place or plan was refused.
        """
        begun = False

        def note(event: Progress) -> None:
            nonlocal begun
            if not begun:
                begun = True
                begins()
            if event.stage == "staging":
                self.staged = False
            if event.stage == "tiles" and self.found is None:
                self.found, self.total = event.done, event.total
            progress(event)

        with self._memory:
            yield note
        self.seconds = perf_counter() - self._begin

    def show(self, G: GramMatrix, samples: Samples, resources: Resources) -> None:
        """Print predicted and measured seconds, bytes and tiles."""
        plan = plan_of(G.header, resources, GramSides.of([samples], self._overlap))
        total = plan.tiling.n_tiles
        computed = total - (self.found or 0)
        prediction = Prediction(
            plan, self.rates, self.kernel, cores=self._cores, share=computed / total,
            staged=self.staged,
        )  # fmt: skip
        on_disk = bytes_below(G.path)
        seen = format_bytes(self._memory.peak) if self.local else "not seen from here"
        print_table(
            ["", "predicted", "measured"],
            [
                ("seconds", human_seconds(prediction.seconds), human_seconds(self.seconds)),
                ("on disk", format_bytes(plan.disk_bytes), format_bytes(on_disk)),
                ("peak memory, all processes", format_bytes(plan.peak_bytes), seen),
                ("tiles computed", f"{total:,}", f"{computed:,}"),
            ],
        )
