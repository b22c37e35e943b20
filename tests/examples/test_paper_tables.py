"""The scripts of the paper's tables and figures, each on a small slice of its data."""

import os
import runpy
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

Run = Callable[..., tuple[int, str, str]]
"""Run a script with --out and further words; exit code, standard output, standard error."""


@pytest.fixture(scope="module")
def words_read_once() -> Any:
    """Two scripts read the same 8,000 pages of text, which takes seconds."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(EXAMPLES / "webkb")
        prepare = import_module("prepare")
        patched.setattr(prepare, "read_words", cache(prepare.read_words))
        yield


@pytest.fixture
def run(words_read_once: None, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """As ``python script``, but in this process, where the libraries are loaded."""

    def command(script: str, out: Path, *arguments: str) -> tuple[int, str, str]:
        path = EXAMPLES / script
        monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
        monkeypatch.setattr(sys, "argv", [script, "--out", str(out), *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(path), run_name="__main__")
        return ended.value.code, *capfd.readouterr()

    return command


CASES = {
    "lafferty_lebanon/curves.py": ("webkb", "quick/curves", "exact heat"),
    "lafferty_lebanon/boundaries.py": ("", "quick/boundaries", "trinomial"),
    "lafferty_lebanon/covering.py": ("", "quick/covering", "upper bound"),
    "microbiome/taxa.py": ("microbiome", "quick/taxa", "linear classifier"),
    "tcga/imputation.py": ("tcga", "quick/imputation", "heat times total"),
    "tcga/figure2.py": ("tcga", "quick/figure2", "Effective sample size"),
    "figure1/figure1.py": ("", "quick/figure1", "parametrix at 60"),
    "sp500/table4.py": ("sp500", "quick/table4", "exact heat"),
    "webkb/tables.py": ("webkb", "quick/tables", "exact heat"),
}
"""Folder of the data, if there are any; written files without their endings; words of the table."""


@pytest.mark.slow
@pytest.mark.parametrize("script", CASES)
def test_slice(script: str, run: Run, tmp_path: Path) -> None:
    """A small slice gives table and picture; a second call takes what is there."""
    folder, written, word = CASES[script]
    if not (Path(os.environ.get("DHSK_DATA", "")) / folder).is_dir():
        pytest.skip(f"set DHSK_DATA to a folder with {folder}/, see the example's README")
    code, out, err = run(script, tmp_path, "--quick", "--runs", "1")
    assert code == 0, err
    assert word in out
    assert "..." in err or not folder
    assert (tmp_path / f"{written}.md").read_text() in out
    assert (tmp_path / f"{written}.png").read_bytes()[:4] == b"\x89PNG"
    code, again, err = run(script, tmp_path, "--quick", "--runs", "1")
    assert again == out
    assert "..." not in err


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
def test_missing_data_are_named(script: str, run: Run, tmp_path: Path) -> None:
    """A folder without the data ends with exit code 2 and one sentence."""
    code, _, err = run(script, tmp_path / "out", "--data", str(tmp_path))
    assert code == 2
    assert err.startswith("error: ")
    assert CASES[script][0] in err
