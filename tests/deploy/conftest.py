"""A Slurm of two nodes on this host, started once for all tests that need it."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from slurm_nodes import GRAM, Slurm, local

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel")


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """Two running Slurm nodes, or a skip that says what is missing."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"Slurm is not installed: no {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("slurmd and munged need root")
    # Not tmp_path: the path of a Unix socket has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="dhsk-slurm-") as folder:
        cluster = Slurm(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture(scope="session")
def local_gram(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The store of `GRAM` by a worker of this machine."""
    folder = tmp_path_factory.mktemp("local")
    Slurm.make_counts(folder)
    return local(*GRAM, cwd=folder, out="local.gram")
