"""Processes that share the passes of a program have the results of one process, to the bit."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk import InputError, StoreError
from dhsk.execution.array_job import ArrayJob
from dhsk.gram.passes import grouped
from dhsk.gram.plan import LARGEST_GROUP as GROUP
from dhsk.gram.storage.tiling import Tiling

PARTS = 3
rng = np.random.default_rng(0)
X = rng.poisson(2.0, (1200, 6)) + 0.5
y = X[:, 0] > X[:, 1]

Result = dict[str, Any]


def passes(number: int = 1, client: Any = None) -> Result:
    """What several calls find in 21 tiles."""
    del number
    G = dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(6, 0.7), tile=200)
    found = dhsk.maximum_mean_discrepancy(
        dhsk.compute_gram(X, "heat", tile=200), np.repeat([0, 1], 600), random_state=0
    )
    ridge = dhsk.NystromRidge(50, client=client, random_state=0).fit(X, X[:, 0])
    return {
        "product": G @ np.arange(1200.0),
        "alignment": G.alignment(y),
        "eigenvalues": G.eigh(2)[0],
        "p": found.p_value,
        "ridge": ridge.predict(X[:5]),
    }


def in_parts(folder: Path, program: Callable[..., Any], parts: int = PARTS) -> list[Any]:
    """Results of a program in so many threads, each one part of a job."""

    def one(number: int) -> Any:
        with dhsk.array_job((number, parts), folder) as job:
            return program(number, job)

    with ThreadPoolExecutor(parts) as pool:
        return list(pool.map(one, range(1, parts + 1)))


def same(one: Result, other: Result) -> bool:
    """Whether all results have the same bits."""
    return all(np.array_equal(one[name], other[name]) for name in one)


def test_all_have_the_results_of_one_process(tmp_path: Path) -> None:
    """Products, alignment, eigenvalues, a test and a regression."""
    alone, found = passes(), in_parts(tmp_path / "job", passes)
    of_low_rank = [one.pop("ridge") for one in [alone, *found]]
    assert all(same(alone, one) for one in found)
    # Alone it keeps its features in memory, which rounds in another way.
    np.testing.assert_allclose(of_low_rank[1], of_low_rank[0], rtol=1e-6)
    assert all(np.array_equal(of_low_rank[1], one) for one in of_low_rank[2:])


def test_each_computes_its_share(tmp_path: Path) -> None:
    """Of nine groups of four tiles and less, three each, whose results are in the folder."""

    def product(number: int, job: ArrayJob) -> tuple[int, int]:
        G = dhsk.compute_gram(X, "heat", tile=200)
        before = set(job.folder.iterdir())
        G @ np.ones(1200)
        own = f"part-(\\d+)-{number}-0.npz"
        new = [one for one in job.folder.iterdir() if re.fullmatch(own, one.name)]
        assert not before & set(new)
        return len(new), len(job.entries.get(new[0].name[5:-4], lambda kept: kept["marks"]))

    shares = in_parts(tmp_path / "job", product)
    assert [files for files, _ in shares] == [1] * PARTS
    tasks = [count for _, count in shares]
    assert sum(tasks) == len(grouped(Tiling(1200, 1200, 200, symmetric=True).tiles(), GROUP))
    assert max(tasks) - min(tasks) <= 1


def test_a_job_that_has_ended_is_not_begun_again(tmp_path: Path) -> None:
    """Its results are gone, and whoever waits for others would wait for ever."""
    folder = tmp_path / "job"
    in_parts(folder, lambda *_: None)
    with pytest.raises(StoreError, match="remove it to run them again"):
        in_parts(folder, lambda *_: None, parts=PARTS)


def test_other_labels_are_refused(tmp_path: Path) -> None:
    """Half of the sums would be of the ones, half of the others; also those of groupings."""
    G = dhsk.compute_gram(X, "heat", tile=200)
    permuted = {"permutations": 9, "random_state": 1}
    for name, call in {
        "alignment": lambda number: G.alignment(np.roll(y, number)),
        "tested": lambda n: dhsk.maximum_mean_discrepancy(G, np.arange(1200) < n * 300, **permuted),
    }.items():
        failed = []

        def shared(number: int, _: ArrayJob, call: Any = call, failed: Any = failed) -> None:
            with pytest.raises(InputError) as error:
                call(number)
            failed.append(str(error.value))

        in_parts(tmp_path / name, shared, parts=2)
        assert len(failed) == 2
        assert "labels and options" in failed[0], name


@pytest.mark.parametrize(
    "other",
    [
        lambda: dhsk.compute_gram(X + 1.0, "heat"),
        lambda: dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(6, 0.8)),
    ],
)
def test_other_samples_or_kernels_are_refused(tmp_path: Path, other: Callable[[], Any]) -> None:
    """Half of the tiles would be of one matrix, half of another."""
    folder = tmp_path / "job"
    with dhsk.array_job((1, 2), folder):
        dhsk.compute_gram(X, "heat")
    with (
        dhsk.array_job((2, 2), folder),
        pytest.raises(InputError, match="other samples or kernels than part 2 of 2 has now"),
    ):
        other()


def test_what_is_not_shared_is_refused(tmp_path: Path) -> None:
    """Stores, cross-validation, and no part."""
    with dhsk.array_job((1, 1), tmp_path / "job"):
        with pytest.raises(InputError, match=r"stores no matrix.*part=\(3, 64\)"):
            dhsk.compute_gram(X, "heat", store=tmp_path / "store")
        with pytest.raises(InputError, match="does not share a cross-validation"):
            dhsk.cross_validate(X[:100], y[:100])
    with pytest.raises(InputError, match="no part 3 of 2"), dhsk.array_job((3, 2), tmp_path):
        pass
    assert not list(tmp_path.glob("store*"))
