"""The report: one well-formed page that loads nothing, for every shape of result."""

import copy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from dhsk.errors import InputError
from dhsk.report import write_report
from dhsk.report.results import parse

VOID = {"meta"}
LONG = [f"Kidney renal cell carcinoma, primary tumour, subtype {k}" for k in range(25)]


def kernel(name: str, label: str, **parameters: float | None) -> dict[str, Any]:
    """Return the fields that say which kernel a row is of."""
    return {"kernel": name, "label": label, **dict.fromkeys(("time_scale", "time", "sigma")),
            **parameters}  # fmt: skip


HEAT = [kernel("heat", f"heat s={s:g}", time_scale=s, time=0.0158 * s) for s in (0.7, 1.0, 1.4)]
PLAIN = [kernel("cosine", "cosine"), kernel("gaussian", "gaussian sigma=2", sigma=2.0)]


def results(
    kernels: list[dict[str, Any]] = HEAT,
    C: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0),
    classes: tuple[str, ...] | list[str] = ("course", "faculty"),
    n_folds: int = 5,
    **changes: Any,
) -> dict[str, Any]:
    """Return a results.json whose best cell is the second kernel (or the only one) at C = 10."""
    summary, rows = [], []
    best = kernels[min(1, len(kernels) - 1)]
    for i, k in enumerate(kernels):
        for c in C:
            mean = 0.9281 if k is best and c == 10 else 0.5 + 0.01 * i + 0.001 * c
            cell = {**k, "C": c}
            summary.append({**cell, "mean": mean, "std": 0.0061, "n_support": 1240.2,
                            "kkt": 0.00093, "seconds": 6.1})  # fmt: skip
            rows += [{**cell, "fold": f, "score": mean + 0.004 * (f - 2), "seconds": 1.2,
                      "n_support": 1240, "kkt": 0.0009} for f in range(n_folds)]  # fmt: skip
    n = len(classes)
    confusion = [[90 if i == j else 10 * (j == (i + 1) % n) for j in range(n)] for i in range(n)]
    return {
        "schema": 1,
        "version": "0.1.0",
        "created": "2026-11-21T06:00:00Z",
        "samples": {"source": "counts.npz", "n_samples": 100 * n, "dim": 375, "nnz": None,
                    "sphere_map": "hyperspherical", "fingerprint": "ab12cd34"},
        "classes": list(classes),
        "class_counts": [100] * n,
        "folds": {"n": n_folds, "splitter": "StratifiedKFold(n_splits=5)"},
        "rows": rows,
        "summary": summary,
        "best": max(summary, key=lambda cell: cell["mean"]),
        "confusion": confusion,
        "eigenvalues": [100.0, 40.0, 1.0, 1e-3],
        "trace": 200.0,
        "plan": [["tiles", "3 tiles of 1,400 x 1,400"]],
        "seconds": {"gram": 3.1, "fits": 40.0, "total": 185.2},
        **changes,
    }  # fmt: skip


class Page(HTMLParser):
    """Read a page and refuse tags that do not match."""

    def __init__(self, text: str) -> None:
        """Read the whole text."""
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an element and its attributes."""
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember an element that closes itself, as SVG has them."""
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost element."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep what a reader sees."""
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        """The words of the page with single blanks."""
        return " ".join(" ".join(self.words).split())

    def values(self, *names: str) -> list[str]:
        """Return the values of all attributes of these names."""
        return [value for name, value in self.attributes if name in names]


def written(data: dict[str, Any], folder: Path) -> str:
    """Write the report and return it."""
    path = folder / "report.html"
    write_report(data, path)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of five kernels, four C and two classes."""
    return written(results(HEAT + PLAIN), tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    """The same page, parsed."""
    return Page(source)


def test_nothing_is_loaded(source: str, page: Page) -> None:
    """The page has no script, and refers to nothing but its own parts."""
    assert {"script", "link", "img", "iframe", "object"}.isdisjoint(page.tags)
    references = page.values("src", "href", "xlink:href")
    assert references
    assert all(reference.startswith("#") for reference in references)
    assert "//" not in source.replace("*/", "").replace("/*", "")
    assert source.count("url(") == source.count("url(#")
    assert "@import" not in source
    assert "default-src 'none'; style-src 'unsafe-inline'" in page.values("content")


def test_ids_are_unique_and_references_resolve(page: Page) -> None:
    """No two elements share an id, even between figures, and each reference has its target."""
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {reference[1:] for reference in page.values("xlink:href")} <= set(ids)


def test_the_result_stands_on_top(page: Page) -> None:
    """The first sentence names the winner, its mean, its spread and the folds."""
    said = "Best: heat kernel at time scale 1, C = 10: mean accuracy 0.928 ± 0.006 over 5 folds"
    assert said in page.text


@pytest.mark.parametrize(
    "fact",
    ["0.928", "1,240", "0.00093", "3 min 5 s", "counts.npz", "ab12cd34", "dhsk 0.1.0",
     "2026-11-21T06:00:00Z", "StratifiedKFold(n_splits=5)", "3 tiles of 1,400 x 1,400", "100 fits",
     "course", "faculty", "gaussian sigma=2", "heat s=0.7", "375 features, dense"],
)  # fmt: skip
def test_facts_appear(page: Page, fact: str) -> None:
    """Numbers of the best cell, the samples, the plan and the provenance are on the page."""
    assert fact in page.text


def test_every_figure_is_described(page: Page) -> None:
    """Each figure has a title, a description and a label for readers who do not see it."""
    n = page.tags.count("svg")
    assert n == 6  # heat, kernels without a time, folds, confusion, two of eigenvalues
    assert page.tags.count("title") == n + 1
    assert page.tags.count("desc") == n
    assert page.values("role") == ["img"] * n
    assert all(page.values("aria-label"))


def test_every_cell_of_the_grid_is_written_in_its_heat_map(page: Page) -> None:
    """The accuracy of each cell stands in a figure as well as in the table."""
    for cell in results(HEAT + PLAIN)["summary"]:
        assert page.words.count(f"{cell['mean']:.3f}") >= 2


def test_class_scores_follow_from_the_confusion_matrix(tmp_path: Path) -> None:
    """Precision and recall are the ones worked out by hand, and a dash where undefined."""
    confusion = [[8, 2, 0], [4, 6, 0], [1, 0, 0]]
    data = results(classes=["a", "b", "c"], confusion=confusion, class_counts=[10, 10, 1])
    text = Page(written(data, tmp_path)).text
    assert "a 10 0.615 0.800 0.696 b (2)" in text  # 8/13, 8/10, 16/23
    assert "b 10 0.750 0.600 0.667 a (4)" in text  # 6/8, 6/10, 12/18
    assert "c 1 – 0.000 0.000 a (1)" in text  # never predicted


def test_labels_are_escaped_everywhere(tmp_path: Path) -> None:
    """Markup in names, samples, plan and splitter is shown, never executed."""
    evil = '<script>alert("1")</script>&\'$x$'
    data = results([kernel(evil, evil, time_scale=1.0, time=0.1)], classes=[evil, "b"])
    data["samples"]["source"] = data["samples"]["fingerprint"] = data["samples"]["sphere_map"] = (
        evil
    )
    data["version"] = data["created"] = data["folds"]["splitter"] = evil
    data["plan"] = [[evil, evil]]
    text = written(data, tmp_path)
    page = Page(text)
    assert "script" not in page.tags
    assert "<script" not in text
    assert page.words.count(evil) >= 10


def test_dollars_in_a_name_are_no_formula(tmp_path: Path) -> None:
    """A class called $x$ keeps its dollars in the figures too."""
    page = Page(written(results(classes=["$x$", "b"]), tmp_path))
    assert page.words.count("$x$") == 3  # the table, a row and a column of the confusion matrix


ORDERS = [kernel("parametrix", f"parametrix order={k}", time_scale=1.0, time=0.1) for k in (0, 1)]
CASES: dict[str, dict[str, Any]] = {
    "one cell": results(HEAT[:1], C=(10.0,)),
    "one C": results(C=(10.0,)),
    "one kernel without a time": results(PLAIN[:1]),
    "only times": results([kernel("heat", "heat t=0.1", time=0.1)]),
    "two kernels at one time scale": results(ORDERS),
    "one fold, no plan": results(n_folds=1, plan=[]),
    "twenty-five classes with long names": results(classes=LONG),
    "names in another script": results(classes=["胃腺癌", "нет"]),
    "one class": results(classes=["only"]),
    "no eigenvalues": results(eigenvalues=[]),
    "one eigenvalue": results(eigenvalues=[3.0]),
    "equal eigenvalues": results(eigenvalues=[1.0] * 7),
    "zero and negative eigenvalues": results(eigenvalues=[5.0, 1.0, 0.0, -1e-17, -1e-9]),
    "no positive eigenvalue": results(eigenvalues=[0.0, -1e-17]),
    "no trace": results(trace=0.0),
    "sparse samples": results(
        samples={**results()["samples"], "nnz": 1234, "n_samples": 4199}
    ),
    "empty confusion": results(confusion=[[0, 0], [0, 0]]),
    "millions of samples": results(confusion=[[12_345_678, 9], [123_456, 1]]),
}  # fmt: skip


@pytest.mark.parametrize("data", CASES.values(), ids=CASES.keys())
def test_unusual_results_give_a_whole_page(data: dict[str, Any], tmp_path: Path) -> None:
    """Small, empty and large parts give a well-formed page with every name and without nan."""
    page = Page(written(data, tmp_path))
    assert all(name in page.text for name in data["classes"])
    assert {"nan", "inf", "None"}.isdisjoint(page.text.split())
    assert page.tags.count("section") == 8


def test_an_incomplete_grid_leaves_a_gap(tmp_path: Path) -> None:
    """A kernel that was not tried at every C has an empty cell, not a number."""
    data = results()
    missing = data["summary"].pop(0)
    page = Page(written(data, tmp_path))
    assert f"{missing['mean']:.3f}" not in page.words
    assert "nan" not in page.words


def test_eigenvalues_below_rounding_are_counted_and_not_drawn(tmp_path: Path) -> None:
    """Zero, negative and tiny eigenvalues are not on the logarithmic axis, and the page says so."""
    data = results(eigenvalues=[5.0, 1.0, 1e-17, 0.0, -1e-9], trace=8.0)
    text = Page(written(data, tmp_path)).text
    assert "2 eigenvalues, largest first, together 75.0 % of the trace (50 % with 1)" in text
    assert "3 more are zero within rounding" in text


def test_a_winner_at_the_end_of_the_grid_is_pointed_out(tmp_path: Path, page: Page) -> None:
    """The page says that better may lie outside, and only where it may."""
    assert "was tried" not in page.text
    text = Page(written(results(HEAT[:2], C=(1.0, 10.0)), tmp_path)).text
    assert "the largest time scale and the largest C that was tried" in text


def test_a_long_table_is_folded(tmp_path: Path, page: Page) -> None:
    """The best twenty cells are open, the others wait behind a summary."""
    many = tuple(float(c) for c in range(4, 12))
    longer = Page(written(results(C=many), tmp_path))
    assert "The other 4 cells" in longer.text
    assert longer.tags.count("details") == 1
    assert "details" not in page.tags
    first, rest = longer.text.split("All cells")[1].split("The other 4 cells")
    assert first.count("heat s=") == 20
    assert rest.count("heat s=") == 4


def test_scores_of_the_folds_are_those_of_the_cell() -> None:
    """Rows may come in any order: each cell has its own scores, first fold first."""
    data = results()
    best = parse({**data, "rows": data["rows"][::-1]}).best
    assert best.folds == tuple(0.9281 + 0.004 * (fold - 2) for fold in range(5))


def test_cells_are_sorted_best_first(page: Page) -> None:
    """The table of cells runs from the best mean to the worst."""
    table = page.text.split("All cells")[1]
    assert table.index("0.928") < table.index("0.640") < table.index("0.500")


def test_the_same_data_give_the_same_bytes(source: str, tmp_path: Path) -> None:
    """Neither time, nor order of keys, nor the user's matplotlib settings show in the page."""
    data = dict(reversed(results(HEAT + PLAIN).items()))
    with mpl.rc_context({"font.size": 20, "axes.facecolor": "red", "axes.grid": True}):
        assert written(data, tmp_path) == source


def test_matplotlib_is_left_as_it_was(tmp_path: Path) -> None:
    """Writing a report changes no global setting and opens no figure of pyplot."""
    before = dict(mpl.rcParams)
    write_report(results(), tmp_path / "report.html")
    assert dict(mpl.rcParams) == before


def test_importing_the_room_is_cheap() -> None:
    """Importing `dhsk.report` does not import matplotlib."""
    code = "import sys, dhsk.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def keys(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the place of every key, descending into the first item of a list."""
    if isinstance(value, dict):
        below = [keys(v, (*place, k)) for k, v in value.items()]
        return [(*place, k) for k in value] + [p for places in below for p in places]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return keys(value[0], (*place, 0))
    return []


# A row gives its score; the rest of it, and the numbers of `best`, stand in `summary` as well.
UNREAD = {("rows", k) for k in results()["rows"][0]} - {
    ("rows", k) for k in ("label", "C", "fold", "score")
} | {("best", k) for k in results()["best"]} - {("best", "label"), ("best", "C")}
NEEDED = [p for p in keys(results()) if (p[0], p[-1]) not in UNREAD]


@pytest.mark.parametrize("place", NEEDED, ids=lambda p: ".".join(map(str, p)))
def test_a_missing_key_is_named(place: tuple[Any, ...], tmp_path: Path) -> None:
    """Each key that is lacking gives one sentence with its place, and no file."""
    data = copy.deepcopy(results())
    inner: Any = data
    for step in place[:-1]:
        inner = inner[step]
    del inner[place[-1]]
    with pytest.raises(InputError, match=rf"have no '.*{place[-1]}'.*results\.json") as caught:
        write_report(data, tmp_path / "report.html")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 2}, "have schema 2, but this version of dhsk reads schema 1"),
        ({"trace": float("nan")}, "'trace' of the results must be a finite number, but it is nan"),
        ({"eigenvalues": [1.0, "x"]}, r"'eigenvalues\[1\]' .* finite number, but it is 'x'"),
        ({"eigenvalues": None}, "'eigenvalues' of the results must be a list"),
        ({"class_counts": [1]}, "'class_counts' .* list of 2 numbers"),
        ({"confusion": [[1, 2]]}, "'confusion' .* 2 rows of 2 counts"),
        ({"classes": [], "class_counts": [], "confusion": []}, "'confusion' .* 0 rows"),
        ({"summary": []}, "'summary' .* at least one cell"),
        ({"rows": []}, r"no fold of summary\[0\] \(label 'heat s=0.7', C = 0.1\)"),
        ({"best": {"label": "heat s=9", "C": 1}}, "label 'heat s=9', C = 1.* none of the 12 cells"),
        ({"plan": [["tiles"]]}, r"'plan\[0\]' .* a pair"),
        ({"samples": "counts.npz"}, "'samples' .* an object with named values"),
    ],
)
def test_wrong_values_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    """A value of the wrong kind is named with its place, what it should be and what it is."""
    with pytest.raises(InputError, match=message) as caught:
        write_report(results(**changes), tmp_path / "report.html")
    assert "\n" not in str(caught.value)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """The folder is not made in passing: a typing error would go unseen."""
    with pytest.raises(InputError, match=r"folder '.*nowhere' for the report does not exist"):
        write_report(results(), tmp_path / "nowhere" / "report.html")


def test_a_failed_write_keeps_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the last step fails, the old page is whole and no temporary file is left."""
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(results(), path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
