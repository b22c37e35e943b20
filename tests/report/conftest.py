"""Results of cross-validations of every shape, and a reader of the pages made of them."""

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from dhsk.report import write_report
from dhsk.results.parts import Results
from dhsk.results.schema import read_results

VOID = {"meta"}
HEAT = ("heat s=0.7", "heat s=1", "heat s=1.4")
PARAMETERS = {"s": "time_scale", "t": "time", "sigma": "sigma"}


def kernel(label: str) -> dict[str, Any]:
    """Return the fields that say which kernel a row is of: "heat s=1", "cosine"."""
    name, *parts = label.split(" ")
    found = {PARAMETERS.get(k): float(v) for k, _, v in (p.partition("=") for p in parts)}
    fields = {field: found.get(field) for field in PARAMETERS.values()}
    if fields["time_scale"]:
        fields["time"] = 0.0158 * fields["time_scale"]
    return {"kernel": name, "label": label, **fields}


def certificate(size: float) -> dict[str, Any]:
    """Return what proves a fit whose effective sample size is `size`."""
    return {"n_support": 1240, "kkt": 0.00093, "gap": 0.00047, "converged": True, "n_iter": 9000,
            "margin": 0.0625, "vc": 258, "effective": size, "seconds": 6.1}  # fmt: skip


def make_results(
    kernels: tuple[str, ...] = HEAT,
    C: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0),
    classes: tuple[str, ...] | list[str] = ("course", "faculty"),
    n_folds: int = 5,
    samples: dict[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Return a results.json whose best cell is the second kernel (or the only one) at C = 10."""
    summary, rows = [], []
    best = kernels[min(1, len(kernels) - 1)]
    for i, label in enumerate(kernels):
        for c in C:
            mean = 0.9281 if label is best and c == 10 else 0.5 + 0.01 * i + 0.001 * c
            cell = {**kernel(label), "C": c} | certificate(1.25 + i + 1 / c)
            summary.append({**cell, "mean": mean, "std": 0.0061})
            rows += [{**cell, "fold": f, "score": mean + 0.004 * (f - 2)}
                     for f in range(n_folds)]  # fmt: skip
    n = len(classes)
    confusion = [[90 if i == j else 10 * (j == (i + 1) % n) for j in range(n)] for i in range(n)]
    described = {"source": "counts.npz", "n_samples": 100 * n, "dim": 375, "nnz": None,
                 "sphere_map": "hyperspherical", "fingerprint": "ab12cd34"}  # fmt: skip
    return {
        "schema": 3,
        "version": "0.1.0",
        "created": "2026-11-21T06:00:00Z",
        "samples": described | (samples or {}),
        "classes": list(classes),
        "class_counts": [100] * n,
        "folds": {"n": n_folds, "splitter": "StratifiedKFold(n_splits=5)"},
        "scoring": "accuracy",
        "tol": 1e-3,
        "rows": rows,
        "summary": summary,
        "best": max(summary, key=lambda cell: cell["mean"]),
        "choice": None,
        "low_rank": None,
        "confusion": confusion,
        "eigenvalues": [100.0, 40.0, 1.0, 1e-3],
        "eigenvalues_exact": True,
        "trace": 200.0,
        "plan": [["tiles", "3 tiles of 1,400 x 1,400"]],
        "seconds": {"gram": 3.1, "fits": 40.0, "total": 185.2},
        **changes,
    }


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


@pytest.fixture(scope="session")
def results() -> Callable[..., dict[str, Any]]:
    """Maker of a results.json."""
    return make_results


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], str]:
    """Writer of the report, which returns its text."""

    def write(data: dict[str, Any]) -> str:
        path = tmp_path_factory.mktemp("report") / "report.html"
        write_report(read_results(Results, data), path)
        return path.read_text(encoding="utf-8")

    return write


@pytest.fixture(scope="session")
def page_of(written: Callable[[dict[str, Any]], str]) -> Callable[[dict[str, Any]], Page]:
    """Writer of the report, which returns it parsed."""
    return lambda data: Page(written(data))


@pytest.fixture(scope="session")
def source(written: Callable[[dict[str, Any]], str]) -> str:
    """The page of five kernels, four C and two classes."""
    return written(make_results((*HEAT, "cosine", "gaussian sigma=2")))


@pytest.fixture(scope="session")
def page(source: str) -> Page:
    """The same page, parsed."""
    return Page(source)
