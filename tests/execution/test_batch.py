"""The job scripts that are submitted, without a batch system. Real jobs: tests/deploy."""

import sys
from pathlib import Path
from typing import Any

import pytest

import dhsk
from dhsk.execution import batch
from dhsk.execution.batch import temporary_security
from dhsk.execution.cluster_options import BATCH_KINDS, BatchJobs
from dhsk.execution.upstream import WatchedJob

jobqueue = pytest.importorskip("dask_jobqueue", reason="worker jobs need dask-jobqueue")


@pytest.fixture
def script(tmp_path: Path, monkeypatch: Any) -> Any:
    """Maker of the script of one worker job."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(batch, "_own_address", "10.0.0.1".format)

    def make(kind: Any, security: Any = None, **given: Any) -> str:
        arguments = batch._arguments(kind, BatchJobs.of(given))
        del arguments["scheduler_options"]  # of the cluster, not of its jobs
        base = getattr(jobqueue, f"{kind.upper()}Cluster").job_cls
        job = type("Job", (WatchedJob, base), {})
        if kind == "lsf":
            arguments["lsf_units"] = "mb"  # else it reads the files of an LSF
        made = job("tls://10.0.0.1:1", name="w", security=security, **arguments)
        return str(made.job_script())

    return make


def test_slurm_script(script: Any) -> None:
    """Options become directives, and the workers get one thread each."""
    text = script(
        "slurm", cores=2, memory="2GiB", walltime="01:00:00", partition="main", account="p1",
        directives=["--constraint=icelake"], setup=["module load x"], local_folder="/my scratch",
    )  # fmt: skip
    directives = {line[8:] for line in text.splitlines() if line.startswith("#SBATCH ")}
    assert {
        "-p main", "-A p1", "-n 1", "--cpus-per-task=2", "--mem=2G", "-t 01:00:00",
        "--constraint=icelake", "-J dhsk-worker",
    } <= directives  # fmt: skip
    *_, setup, command = text.strip().splitlines()
    assert setup == "module load x"
    assert "--nworkers 2 " in command
    assert "--nthreads 1 " in command
    assert "--local-directory '/my scratch'" in command
    for name in ("OMP", "OPENBLAS", "MKL"):
        assert f"export {name}_NUM_THREADS=1\n" in text


def test_memory_of_a_worker_leaves_room(script: Any) -> None:
    """The last limit counts: that without the process that watches the workers."""
    words = script("slurm", cores=2, memory="2GiB").split()
    limits = [words[i + 1] for i, word in enumerate(words) if word == "--memory-limit"]
    assert limits[-1] == f"{((2 << 30) - (200 << 20)) // 2}B"


def test_workers_listen_on_one_address(script: Any) -> None:
    """That of an interface, or that from which the scheduler is reached."""
    assert "--interface ib0 " in script("slurm", interface="ib0")
    assert "--host $(" in script("slurm")
    for kind in BATCH_KINDS:
        assert "--no-dashboard --dashboard-address 127.0.0.1:0" in script(kind)


def test_paths_of_credentials_are_words(script: Any, tmp_path: Path) -> None:
    """A blank in the name of a folder does not end the path."""
    folder = tmp_path / "my folder"
    folder.mkdir()
    text = script("slurm", security=temporary_security(folder))
    assert f"--tls-key '{folder}/tls.key'" in text
    assert "PRIVATE KEY" not in text


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("pbs", ["-q long", "-A p1", "-l select=1:ncpus=2:mem=4096MB", "-l walltime=01:00:00"]),
        ("sge", ["-q long", "-P p1", "-l h_rt=01:00:00"]),
        ("lsf", ["-q long", '-P "p1"', "-n 2", "-M 4295", "-W 01:00:00"]),
    ],
)
def test_other_systems(script: Any, kind: str, lines: list[str]) -> None:
    """The same options in the directives of the other batch systems."""
    text = script(kind, cores=2, memory="4GiB", queue="long", account="p1", walltime="01:00:00")
    mark = {"pbs": "#PBS", "sge": "#$", "lsf": "#BSUB"}[kind]
    assert {f"{mark} {line}" for line in lines} <= set(text.splitlines())


def test_missing_package_is_named(monkeypatch: Any) -> None:
    """The extra to install is said."""
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(dhsk.InputError, match=r'pip install "dhsk\[slurm\]"'):
        dhsk.connect("slurm")


def test_no_slurm_is_named(monkeypatch: Any, tmp_path: Path) -> None:
    """Where no job can be submitted that is said, and no file is left."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(dhsk.InputError, match="no scontrol on PATH: run this where jobs are"):
        dhsk.connect("slurm")
    assert list(tmp_path.iterdir()) == []
