"""`CvResult`: what it prints, its tables and its files."""

import json
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

import dhsk

OLD = Path(__file__).parents[1] / "compatibility" / "files"


@pytest.fixture(params=["cv", "cv-rank"])
def result(request: pytest.FixtureRequest) -> dhsk.CvResult:
    """An exact one, and one of low rank."""
    return dhsk.CvResult.from_json(OLD / f"{request.param}.json")


def test_it_prints_the_winner_and_the_advice(result: dhsk.CvResult) -> None:
    """Kernel, rank, C, score and size of the grid; then what to take, if anything."""
    rank, cells = ("", 4) if result.low_rank is None else (", rank 8", 8)
    mean = f"{result.best_score_:.3f}"
    expected = (
        f"CvResult(taken: heat s=0.7{rank}, C = 10; mean accuracy {mean}; {cells} candidates, 3"
    )
    assert repr(result) == f"{expected} folds)\nadvice: {result.advice}"


def test_notebooks_show_a_table_of_the_best_cells(result: dhsk.CvResult) -> None:
    """Best first."""
    page = result._repr_html_()
    assert page.count("<tr>") == 1 + min(10, len(result.summary))
    means = re.findall(r"<td>([^<]*)</td>", page)[1::3]
    assert means == [f"{cell.mean:.3f}" for cell in result.cells[:10]]


def test_notebooks_show_the_heat_maps(result: dhsk.CvResult) -> None:
    """Two results in one notebook share no id, and references stay inside their picture."""
    page = result._repr_html_()
    maps = len({cell.rank for cell in result.summary})
    assert page.count("<svg") == maps
    other = dhsk.CvResult.from_json(OLD / ("cv.json" if maps > 1 else "cv-rank.json"))
    ids, others = (set(re.findall(' id="([^"]+)"', one)) for one in (page, other._repr_html_()))
    assert ids
    assert not ids & others
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= ids


def test_a_frame_has_the_rows(result: dhsk.CvResult) -> None:
    """A column for each key, a line for each row."""
    frame = result.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == list(result.results_[0])
    assert frame["score"].tolist() == [row["score"] for row in result.results_]


def test_without_pandas_a_frame_is_refused(
    result: dhsk.CvResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the way out."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(dhsk.InputError, match=r"needs pandas.*install it, or use results_"):
        result.to_frame()


def test_best_cells_are_sorted(result: dhsk.CvResult) -> None:
    """The chosen one, then by mean, of equals the smaller C."""
    first, *others = result.cells
    assert first == result.best
    assert sorted(others, key=lambda c: (-c.mean, c.C, c.label)) == others
    assert set(result.cells) == set(result.summary)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b"[1, 2]", b"{}"])
def test_a_damaged_file_is_named(content: bytes, tmp_path: Path) -> None:
    """One sentence, whatever the damage."""
    (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(dhsk.InputError, match=r"r\.json: ") as caught:
        dhsk.CvResult.from_json(tmp_path / "r.json")
    assert "\n" not in str(caught.value)


def test_settings_are_kept(result: dhsk.CvResult, tmp_path: Path) -> None:
    """The command line writes what it was given beside the results."""
    from dataclasses import replace

    replace(result, settings={"folds": 3}).to_json(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["settings"] == {"folds": 3}
    assert dhsk.CvResult.from_json(tmp_path / "r.json").settings == {"folds": 3}
