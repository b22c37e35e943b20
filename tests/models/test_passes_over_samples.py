"""How often all samples are read: they may be larger than memory, or far away."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.arrays import Rows
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.models.problem import Problem
from dhsk.models.train_exact import train_svc
from dhsk.models.train_low_rank import train_low_rank
from dhsk.samples import Samples, open_samples

N, DIM = 120, 8
KERNEL = dhsk.HeatKernel.at_scale(DIM, 0.5)


@dataclass(frozen=True, eq=False)
class Watched(Samples):
    """Samples that count how often they were read to the end."""

    inner: Samples = field(kw_only=True)
    ended: list[int] = field(default_factory=list, kw_only=True)
    """Rows of a block, of every reading."""

    @property
    def passes(self) -> int:
        """Number of readings."""
        return len(self.ended)

    def _blocks(self, rows: int) -> Iterator[Rows]:
        yield from self.inner._blocks(rows)
        self.ended.append(rows)


@pytest.fixture
def samples(counts: Callable[[int, int], Any]) -> Watched:
    """Counts in memory."""
    return Watched("X", (N, DIM), inner=open_samples(counts(N, DIM)))


def problem() -> Problem:
    """Two classes."""
    return Problem(np.arange(2), np.arange(N) % 2, np.ones(N), 1.0, 1e-3)


def row_map() -> RowMap:
    """The heat kernel of counts."""
    return RowMap(KERNEL, "hyperspherical")


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "on demand"])
def test_a_matrix_takes_two(samples: Watched, tmp_path: Path, stored: bool) -> None:
    """Every row is checked before the first is written: bad samples leave nothing on disk."""
    dhsk.compute_gram(samples, KERNEL, store=tmp_path / "g" if stored else None)
    assert samples.passes == 2


def test_a_store_that_is_there_takes_one(samples: Watched, tmp_path: Path) -> None:
    """To see that it is of these samples; none of them is staged again."""
    for passes in (2, 3):
        dhsk.compute_gram(samples, KERNEL, store=tmp_path / "g")
        assert samples.passes == passes


def test_a_part_takes_two_and_the_next_one(samples: Watched, tmp_path: Path) -> None:
    """One part stages for all."""
    for number, passes in ((1, 2), (2, 3)):
        dhsk.compute_gram(samples, KERNEL, store=tmp_path / "g", part=(number, 2))
        assert samples.passes == passes


def test_a_repair_takes_one(samples: Watched, tmp_path: Path) -> None:
    """Two where the staged samples are damaged too."""
    dhsk.compute_gram(samples, KERNEL, store=tmp_path / "g")
    (tmp_path / "g" / "gram" / "c" / "0" / "0").unlink()
    assert dhsk.repair_gram(tmp_path / "g", samples) == [(0, 0)]
    assert samples.passes == 3
    (tmp_path / "g" / "rows" / "dense" / "c" / "0" / "0").unlink()
    assert dhsk.repair_gram(tmp_path / "g", samples) == []
    assert samples.passes == 5


def test_an_exact_classifier_in_memory_takes_one(samples: Watched) -> None:
    """Rows are checked as they are mapped."""
    train_svc(problem(), samples, row_map(), Run())
    assert samples.passes == 1


def test_probabilities_take_no_more(samples: Watched, client: Any) -> None:
    """What the folds hold out is decided from the matrix, also on workers."""
    folds = replace(problem(), fold_of=np.arange(N) % 3, sample_weights=np.ones(N))
    here = train_svc(folds, samples, row_map(), Run())
    assert samples.passes == 1
    there = train_svc(folds, samples, row_map(), Run(client=client))
    assert samples.passes == 3
    np.testing.assert_allclose(here.sigmoids, there.sigmoids, rtol=0, atol=1e-9)


def test_a_classifier_of_low_rank_in_memory_takes_one(samples: Watched) -> None:
    """Its features stay in memory."""
    train_low_rank(problem(), samples, row_map(), dhsk.LowRank(10), Run())
    assert samples.passes == 1


def test_workers_take_two(samples: Watched, client: Any) -> None:
    """Samples are staged for them, as for a matrix."""
    train_low_rank(problem(), samples, row_map(), dhsk.LowRank(10), Run(client=client))
    assert samples.passes == 2
    train_svc(problem(), samples, row_map(), Run(client=client))
    assert samples.passes == 4
