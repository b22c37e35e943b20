"""Options of clusters of jobs and pods, from keywords and from a TOML file."""

from pathlib import Path
from typing import Any

import pytest

import dhsk
from dhsk.execution.cluster_options import (
    NANNY_BYTES,
    BatchJobs,
    Pods,
    read_cluster_file,
)

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_workers_share_the_memory_of_a_job() -> None:
    """One worker per core, in whole jobs, with room for the process that watches them."""
    options = BatchJobs.of({"cores": 4, "memory": "4GiB", "n_workers": 8})
    assert (options.jobs, options.workers) == (2, 8)
    assert options.worker_bytes == ((4 << 30) - NANNY_BYTES) // 4


def test_without_a_number_there_is_one_job() -> None:
    """A command without --workers starts one job."""
    options = BatchJobs.of({"cores": 3, "n_workers": None})
    assert (options.jobs, options.workers) == (1, 3)


def test_partition_is_a_queue() -> None:
    """Slurm's word stands for that of the others."""
    assert BatchJobs.of({"partition": "main"}).queue == "main"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"partiton": "main"}, "no option 'partiton' of such a cluster: there are account, cores"),
        ({"partition": "a", "queue": "b"}, "queue and partition are the same option"),
        ({"cores": 0}, "cores must be a whole number, at least 1"),
        ({"cores": 4, "n_workers": 6}, "n_workers must be a multiple of the 4 cores"),
        ({"memory": "lots"}, "memory must be a positive size"),
        ({"cores": 64, "memory": "4GB"}, "memory is 4GB for 64 workers: each needs at least"),
        ({"wait": "soon"}, "wait must be a time such as 10m, got 'soon'"),
        ({"tls": "no"}, "tls must be true or false"),
        ({"walltime": 3600}, "walltime must be a string, got 3600"),
        ({"directives": "--constraint=x"}, "directives must be a list of strings"),
    ],
)
def test_wrong_options_are_named(given: dict[str, Any], message: str) -> None:
    """Nothing is submitted with an option that is unknown or wrong."""
    with pytest.raises(dhsk.InputError, match=message):
        BatchJobs.of(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "kubernetes needs an image with dhsk"),
        ({"image": "dhsk", "environment": ["A"]}, "environment has NAME=VALUE words, got 'A'"),
        ({"image": "dhsk", "cores": 2}, "no option 'cores'"),
        ({"image": "dhsk", "wait": "soon"}, "wait must be a time such as 10m, got 'soon'"),
    ],
)
def test_wrong_pods_are_named(given: dict[str, Any], message: str) -> None:
    """Pods need an image, and options that are theirs."""
    with pytest.raises(dhsk.InputError, match=message):
        Pods.of(given)


def test_file_of_the_recipe(tmp_path: Path) -> None:
    """The example of deploy/slurm is valid, also with all its comments taken as lines."""
    text = (DEPLOY / "slurm" / "cluster.toml").read_text()
    _, *lines = text.split('kind = "slurm"')[1].splitlines()
    path = tmp_path / "cluster.toml"
    path.write_text('kind = "slurm"\n' + "\n".join(line.removeprefix("# ") for line in lines))
    kind, given = read_cluster_file(path)
    options = BatchJobs.of(given)
    assert (kind, options.jobs, options.queue, options.interface) == ("slurm", 2, "main", "ib0")
    assert options.directives == ("--constraint=icelake",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "slum"', "kind must be one of local, slurm, pbs, .*, kubernetes, got 'slum'"),
        ("n_workers = 4", "kind must be one of .*, got None"),
        ("kind = slurm", "is not a TOML file that can be read: "),
        (None, "no cluster file .*: check the path"),
    ],
)
def test_file_that_is_no_cluster(tmp_path: Path, text: str | None, message: str) -> None:
    """What is wrong with a file is said with its path."""
    path = tmp_path / "cluster.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(dhsk.InputError, match=message):
        dhsk.connect(str(path))


@pytest.mark.slow
def test_local_file_with_a_keyword(tmp_path: Path) -> None:
    """A file may describe workers of this machine; a keyword replaces its line."""
    path = tmp_path / "laptop.toml"
    path.write_text('kind = "local"\nn_workers = 3\nthreads_per_worker = 2\n')
    with dhsk.connect(str(path), n_workers=1) as client:
        assert list(client.nthreads().values()) == [2]
