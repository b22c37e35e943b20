"""The scripts of the paper's tables and figures, each on a small slice of its data."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(script: str, out: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a script as its README says, with one small run."""
    command = [sys.executable, str(EXAMPLES / script), "--out", str(out), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


CASES = {
    "lafferty_lebanon/curves.py": ("webkb", "quick/curves", "exact heat"),
    "tcga/imputation.py": ("tcga", "quick/imputation", "heat times total"),
    "figure1/figure1.py": ("", "quick/figure1", "parametrix at 60"),
    "sp500/table4.py": ("sp500", "quick/table4", "exact heat"),
    "webkb/tables.py": ("webkb", "quick/tables", "exact heat"),
}
"""Folder of the data, if there are any; written files without their endings; words of the table."""


@pytest.mark.parametrize("script", CASES)
def test_slice(script: str, tmp_path: Path) -> None:
    """A small slice gives table and picture; a second call takes what is there."""
    folder, written, word = CASES[script]
    if not (Path(os.environ.get("DHSK_DATA", "")) / folder).is_dir():
        pytest.skip(f"set DHSK_DATA to a folder with {folder}/, see the example's README")
    first = run(script, tmp_path, "--quick", "--runs", "1")
    assert first.returncode == 0, first.stderr
    assert word in first.stdout
    assert "..." in first.stderr or not folder
    assert (tmp_path / f"{written}.md").read_text() in first.stdout
    assert (tmp_path / f"{written}.png").read_bytes()[:4] == b"\x89PNG"
    again = run(script, tmp_path, "--quick", "--runs", "1")
    assert again.stdout == first.stdout
    assert "..." not in again.stderr


def test_a_killed_write_leaves_nothing_under_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run would take half of a file for a whole one."""
    monkeypatch.syspath_prepend(EXAMPLES)
    whole, path = import_module("_shared").whole, tmp_path / "kept.txt"

    def write(text: str, ends: type[BaseException] | None = None) -> None:
        with whole(path) as part:
            part.write_text(text)
            if ends:
                raise ends

    with pytest.raises(KeyboardInterrupt):
        write("half", KeyboardInterrupt)
    assert not path.exists()
    write("whole")
    assert [p.name for p in tmp_path.iterdir()] == ["kept.txt"]
    assert path.read_text() == "whole"


@pytest.mark.parametrize("script", [script for script in CASES if CASES[script][0]])
def test_missing_data_are_named(script: str, tmp_path: Path) -> None:
    """A folder without the data ends with exit code 2 and one sentence."""
    ended = run(script, tmp_path / "out", "--data", str(tmp_path))
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ")
    assert CASES[script][0] in ended.stderr
    assert "Traceback" not in ended.stderr
