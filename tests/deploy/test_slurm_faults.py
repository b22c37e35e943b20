"""What loses a part on Slurm finishes all the same, with the bits of one process.

An attempt of each kind; `ordeal.py` makes many, at random moments, of all commands.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ordeal_runs import ArrayRun, BatchRun, ClientRun, Run
from slurm_nodes import GRAM, Slurm

from dhsk.gram.plan import LARGEST_GROUP

pytestmark = [pytest.mark.real, pytest.mark.slow]

NEEDS_JOBQUEUE = pytest.mark.skipif(
    find_spec("dask_jobqueue") is None, reason="worker jobs need dask-jobqueue"
)
WORKERS = 2
IN_FLIGHT = WORKERS * LARGEST_GROUP**2
"""Most tiles of tasks that workers have begun.

A lost worker takes along what it had not reported, and the other one, which may be lost later, as
in a requeue, writes all tiles of such a task once more.
"""

# What is missing here is in test_slurm_array and test_client.
KINDS = [
    (BatchRun, "worker"),
    (BatchRun, "requeue"),
    (BatchRun, "node"),
    (ArrayRun, "node"),
    pytest.param(ClientRun, "node", marks=NEEDS_JOBQUEUE),
]


@pytest.mark.parametrize(("recipe", "fault"), KINDS)
def test_fault_halfway(
    slurm: Slurm, tmp_path: Path, local_gram: dict[str, Any], recipe: type[Run], fault: str
) -> None:
    """The store is that of one worker, a new start computes no tile again, nothing is left."""
    slurm.make_counts(tmp_path)
    run = recipe(slurm, tmp_path, GRAM, "slurm.gram")
    rng = np.random.default_rng(16)
    run.start()
    slurm.await_tiles(tmp_path / "slurm.gram", 100)
    before = slurm.tiles_of(tmp_path / "slurm.gram")
    assert run.is_at_work()
    run.suffer(fault, rng)
    end = run.finish()
    if isinstance(run, BatchRun):
        assert ("has ended (code 137)" if fault == "worker" else "1 restarts") in run.job.log + end
    after = slurm.tiles_of(tmp_path / "slurm.gram")
    again = [tile for tile, written in before.items() if after[tile] != written]
    assert len(again) <= IN_FLIGHT, again
    assert slurm.outcome_of(tmp_path / "slurm.gram") == local_gram
    assert not run.left()
