"""deploy/docker, deploy/local and CLIENT.md, as far as they can be checked without Docker."""

import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from dhsk.execution.cluster_options import BatchJobs
from dhsk.execution.pods import USER

ROOT = Path(__file__).parents[2]
DOCKER, LOCAL = ROOT / "deploy" / "docker", ROOT / "deploy" / "local"
LINES = [
    line for line in (DOCKER / "Dockerfile").read_text().splitlines() if not line.startswith("#")
]
COPIED = [
    word
    for line in LINES
    if line.startswith("COPY ") and "--from" not in line
    for word in line.split()[1:-1]
]


def test_it_ends_as_the_user_of_the_manifests() -> None:
    """The last stage is not root's."""
    last = LINES[max(i for i, line in enumerate(LINES) if line.startswith("FROM")) :]
    assert [line for line in last if line.startswith("USER")] == [f"USER {USER}:{USER}"]


def test_every_instruction_is_known_and_plain() -> None:
    """Nothing is fetched but the base image and Python packages; base images have tags."""
    known = {"FROM", "ARG", "WORKDIR", "COPY", "RUN", "ENV", "USER", "CMD"}
    assert {line.split()[0] for line in LINES if line} == known
    for line in LINES:
        if line.startswith("FROM"):
            assert re.fullmatch(r"FROM python:3\.\d+-slim( AS build)?", line)
        if line.startswith("RUN"):
            assert line.startswith("RUN pip install --no-cache-dir ")
    assert "# fmt" not in "".join(LINES)


def test_what_is_copied_is_there_and_not_ignored() -> None:
    """Every source of a COPY exists, and the ignore file lets it through."""
    assert COPIED
    assert all((ROOT / word).exists() for word in COPIED)
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == set(COPIED)


def test_what_is_copied_is_enough_to_build(tmp_path: Path) -> None:
    """Metadata of the package name no file beside those."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (readme,) = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["fragments"]
    named = {readme["path"], *project["project"]["license-files"]}
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert named | set(packages) | {"pyproject.toml"} == set(COPIED)
    extras = project["project"]["optional-dependencies"]
    chosen = next(line.partition("=")[2] for line in LINES if line.startswith("ARG EXTRAS"))
    assert chosen in extras


@pytest.mark.slow(seconds=20)
def test_laptop(tmp_path: Path) -> None:
    """The recipe's file starts its workers, and its README's commands run."""
    shutil.copy(LOCAL / "laptop.toml", tmp_path)
    np.save(tmp_path / "counts.npy", np.random.default_rng(0).poisson(2.0, (60, 9)) + 1.0)
    readme = (LOCAL / "README.md").read_text()
    commands = [line[2:].split("#")[0].split() for line in readme.splitlines() if "$ dhsk" in line]
    assert len(commands) == 5
    for words in commands:
        if words[1] == "demo":  # a test of its own
            continue
        done = subprocess.run(
            [str(Path(sys.executable).with_name("dhsk")), *words[1:]],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_options_of_jobs_are_documented() -> None:
    """CLIENT.md of deploy/slurm has a line for each option of a cluster file, and no other."""
    text = (ROOT / "deploy" / "slurm" / "CLIENT.md").read_text()
    named = re.findall(r"^\| `(\w+)`.* \|.* \|$", text, re.MULTILINE)
    options = {field.name for field in fields(BatchJobs)}
    assert set(named) == options - {"queue"} | {"partition"}
    assert "| `partition`, or `queue` |" in text


def test_every_file_of_deploy_is_named_in_a_test() -> None:
    """No recipe is without one."""
    tests = "".join(file.read_text() for file in Path(__file__).parent.glob("*.py"))
    kept = [file for file in (ROOT / "deploy").rglob("*") if file.is_file()]
    missing = [
        str(file.relative_to(ROOT))
        for file in kept
        if file.name not in tests and file.suffix != ".pyc"
    ]
    assert not missing
