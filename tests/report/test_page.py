"""The page: well-formed, loads nothing, and the same every time, for every shape of result."""

import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from dhsk.errors import InputError
from dhsk.report import write_report
from dhsk.results.parts import Results
from dhsk.results.schema import read_results

FIVE = ("heat s=0.7", "heat s=1", "heat s=1.4", "cosine", "gaussian sigma=2")
"""Kernels of the fixture `page`."""

LONG = [f"Kidney renal cell carcinoma, primary tumour, subtype {k}" for k in range(25)]


def test_nothing_is_loaded(source: str, page: Any) -> None:
    """The page refers to nothing but its own parts, and may run only the script that it holds."""
    assert {"link", "img", "iframe", "object"}.isdisjoint(page.tags)
    assert page.tags.count("script") == 1
    references = page.values("src", "href", "xlink:href")
    assert references
    assert all(reference.startswith("#") for reference in references)
    script = source.split("<script>")[1].split("</script>")[0]
    allowed = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    assert policy in page.values("content")
    rest = source.replace(script, "").replace(allowed, "")
    assert "//" not in rest.replace("*/", "").replace("/*", "")
    assert source.count("url(") == source.count("url(#")
    assert "@import" not in source


@pytest.mark.slow
def test_files_beside_the_page_are_linked(results: Any, tmp_path: Path) -> None:
    """Links name files of the same folder, and stand only where they were asked for."""
    found = read_results(Results, results())
    write_report(found, tmp_path / "report.html", ("results.json", "results.csv"))
    source = (tmp_path / "report.html").read_text()
    assert '<a href="results.json">results.json</a>' in source
    assert '<a href="results.csv">results.csv</a>' in source
    write_report(found, tmp_path / "report.html")
    assert "results.csv" not in (tmp_path / "report.html").read_text()


@pytest.mark.slow
def test_the_title_names_the_samples_and_not_their_folders(results: Any, tmp_path: Path) -> None:
    """A path is long, and of one machine."""
    given = results()
    given["samples"]["source"] = "/home/me/data/cosines.gram/"
    write_report(read_results(Results, given), tmp_path / "report.html")
    source = (tmp_path / "report.html").read_text()
    assert "<title>Cross-validation of cosines.gram</title>" in source


def test_the_contents_lead_to_every_section(source: str, page: Any) -> None:
    """Each section has a link at the top, with its heading as words."""
    contents = source.split("<nav")[1].split("</nav>")[0]
    headings = re.findall("<h2>(.*?)</h2>", source)
    assert re.findall('<a href="#([a-z]+)">', contents) == re.findall('<section id="(.*?)"', source)
    assert re.findall(">([^<]+)</a>", contents) == headings
    assert page.tags.count("section") == len(headings)


def test_ids_are_unique_and_references_resolve(page: Any) -> None:
    """No two elements share an id, even between figures, and each reference has its target."""
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {reference[1:] for reference in page.values("xlink:href")} <= set(ids)


def test_the_result_stands_on_top(page: Any) -> None:
    """The first sentence names the winner, its mean, its spread and the folds."""
    kernel = "heat kernel at time scale 1, C = 10"
    said = f"Best and taken: {kernel}: mean accuracy 0.928 (std 0.006) over 5 folds"
    assert said in page.text


@pytest.mark.parametrize(
    "fact",
    ["0.928", "1,240", "0.00093", "tolerance 0.001", "3 min 5 s", "counts.npz", "ab12cd34",
     "dhsk 0.1.0", "2026-11-21T06:00:00Z", "StratifiedKFold(n_splits=5, random_state=0",
     "3 tiles of 1,400 x 1,400", "100 fits", "course", "faculty", "gaussian sigma=2",
     "heat s=0.7", "375 features, dense", "always the largest class: 0.500"],
)  # fmt: skip
def test_facts_appear(page: Any, fact: str) -> None:
    """Numbers of the best cell, the samples, the plan and the provenance are on the page."""
    assert fact in page.text


def test_every_figure_is_described(page: Any) -> None:
    """Each figure has a title, a description and a label for readers who do not see it."""
    n = page.tags.count("svg")
    assert n == 8  # heat, others without a time, folds, bars, confusion, capacity, eigenvalues
    assert page.tags.count("title") == n + 1
    assert page.tags.count("desc") == n
    assert page.values("role") == ["img"] * n
    assert all(page.values("aria-label"))


def test_every_cell_of_the_grid_is_written_in_its_heat_map(page: Any, results: Any) -> None:
    """The score of each cell stands in a figure as well as in the table."""
    for cell in results(FIVE)["summary"]:
        assert page.words.count(f"{cell['mean']:.3f}") >= 2


@pytest.mark.slow
def test_class_scores_follow_from_the_confusion_matrix(results: Any, page_of: Any) -> None:
    """Precision and recall are the ones worked out by hand, and a dash where undefined."""
    confusion = [[8, 2, 0], [4, 6, 0], [1, 0, 0]]
    text = page_of(
        results(classes=["a", "b", "c"], confusion=confusion, class_counts=[10, 10, 1])
    ).text
    assert "a 10 0.615 0.800 0.696 b (2)" in text  # 8/13, 8/10, 16/23
    assert "b 10 0.750 0.600 0.667 a (4)" in text  # 6/8, 6/10, 12/18
    assert "c 1 – 0.000 0.000 a (1)" in text  # never predicted


def test_labels_are_escaped_everywhere(results: Any, written: Any, page_of: Any) -> None:
    """Markup in names, samples, plan, scorer and search is shown, never executed."""
    evil = '<script>alert("1")</script>&\'$x$'
    samples = dict.fromkeys(("source", "fingerprint", "sphere_map"), evil)
    data = results((evil,), classes=[evil, "b"], samples=samples, scoring=evil, plan=[[evil, evil]])
    data["version"] = data["created"] = data["folds"]["splitter"] = evil
    stage = {"time_scales": [1.0], "C": [1.0], "C_scaled": [], "best": data["best"], "why": evil}
    data["search"] = [stage]
    page = page_of(data)
    assert page.tags.count("script") == 1  # our own
    assert written(data).count("<script") == 1
    assert page.words.count(evil) >= 13


@pytest.mark.slow
def test_dollars_in_a_name_are_no_formula(results: Any, page_of: Any) -> None:
    """A class called $x$ keeps its dollars in the figures too."""
    page = page_of(results(classes=["$x$", "b"]))
    assert page.words.count("$x$") == 4  # bars, table, a row and a column of the confusion matrix


CASES: dict[str, dict[str, Any]] = {
    "one cell": {"kernels": ("heat s=1",), "C": (10.0,)},
    "one C": {"C": (10.0,)},
    "one kernel without a time": {"kernels": ("cosine",)},
    "only times": {"kernels": ("heat t=0.1",)},
    "two kernels at one time scale": {
        "kernels": ("parametrix order=0 s=1", "parametrix order=1 s=1")
    },
    "seventeen families": {"kernels": tuple(f"family-{k}" for k in range(17))},
    "one fold, no plan": {"n_folds": 1, "plan": []},
    "twenty-five classes with long names": {"classes": LONG},
    "names in another script": {"classes": ["胃腺癌", "нет"]},
    "one class": {"classes": ["only"]},
    "no eigenvalues": {"eigenvalues": []},
    "one eigenvalue": {"eigenvalues": [3.0]},
    "equal eigenvalues": {"eigenvalues": [1.0] * 7},
    "zero and negative eigenvalues": {"eigenvalues": [5.0, 1.0, 0.0, -1e-17, -1e-9]},
    "no positive eigenvalue": {"eigenvalues": [0.0, -1e-17]},
    "no trace": {"trace": 0.0},
    "sparse samples": {"samples": {"nnz": 1234, "n_samples": 4199}},
    "empty confusion": {"confusion": [[0, 0], [0, 0]]},
    "millions of samples": {"confusion": [[12_345_678, 9], [123_456, 1]]},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_unusual_results_give_a_whole_page(case: Any, results: Any, page_of: Any) -> None:
    """Small, empty and large parts give a well-formed page with every name and without nan."""
    data = results(**case)
    page = page_of(data)
    assert all(name in page.text for name in data["classes"])
    assert {"nan", "inf", "None"}.isdisjoint(page.text.split())
    # One cell has no others to compare its capacity with.
    left_out = (len(data["summary"]) == 1) + (not data["eigenvalues"])
    assert page.tags.count("section") == 10 - left_out


@pytest.mark.slow
def test_an_incomplete_grid_leaves_a_gap(results: Any, page_of: Any) -> None:
    """A kernel that was not tried at every C has an empty cell, not a number."""
    data = results()
    missing = data["summary"].pop(0)
    page = page_of(data)
    assert f"{missing['mean']:.3f}" not in page.words
    assert "nan" not in page.words


@pytest.mark.slow
def test_eigenvalues_below_rounding_are_counted_and_not_drawn(results: Any, page_of: Any) -> None:
    """Zero, negative and tiny eigenvalues are not on the logarithmic axis, and the page says so."""
    text = page_of(results(eigenvalues=[5.0, 1.0, 1e-17, 0.0, -1e-9], trace=8.0)).text
    assert "2 eigenvalues, largest first, together 75.0 % of the trace (50 % with 1)" in text
    assert "3 more are zero within rounding" in text


@pytest.mark.slow
def test_a_winner_at_the_end_of_the_grid_is_pointed_out(
    page: Any, results: Any, page_of: Any
) -> None:
    """The page says that better may lie outside, and only where it may."""
    assert "was tried" not in page.text
    text = page_of(results(("heat s=0.7", "heat s=1"), C=(1.0, 10.0))).text
    assert "the largest time scale and the largest C that was tried" in text


@pytest.mark.slow
def test_a_long_table_scrolls(page: Any, results: Any, page_of: Any) -> None:
    """More than twenty cells stand in a box of their own; none is left out."""
    longer = page_of(results(C=tuple(float(c) for c in range(4, 12))))
    assert longer.text.split("All candidates")[1].count("heat s=") == 24
    assert "numbers cells sortable long" in longer.values("class")
    assert "numbers cells sortable" in page.values("class")


def test_cells_are_sorted_best_first(page: Any) -> None:
    """The table of cells runs from the best mean to the worst."""
    table = page.text.split("All candidates")[1]
    assert table.index("0.928") < table.index("0.640") < table.index("0.500")


def test_the_same_data_give_the_same_bytes(source: str, results: Any, written: Any) -> None:
    """Neither time, nor order of keys, nor the user's matplotlib settings show in the page."""
    data = dict(reversed(results(FIVE).items()))
    with mpl.rc_context({"font.size": 20, "axes.facecolor": "red", "axes.grid": True}):
        assert written(data) == source


@pytest.mark.slow
def test_matplotlib_is_left_as_it_was(results: Any, tmp_path: Path) -> None:
    """Writing a report changes no global setting and opens no figure of pyplot."""
    before = dict(mpl.rcParams)
    write_report(read_results(Results, results()), tmp_path / "report.html")
    assert dict(mpl.rcParams) == before


@pytest.mark.slow
def test_importing_the_room_is_cheap() -> None:
    """Importing `dhsk.report` does not import matplotlib."""
    code = "import sys, dhsk.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_folder_is_named(results: Any, tmp_path: Path) -> None:
    """The folder is not made in passing: a typing error would go unseen."""
    with pytest.raises(InputError, match=r"folder '.*nowhere' for the report does not exist"):
        write_report(read_results(Results, results()), tmp_path / "nowhere" / "report.html")


def test_a_failed_write_keeps_the_old_page(
    results: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the last step fails, the old page is whole and no temporary file is left."""
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(read_results(Results, results()), path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
