"""What the figures after the papers are drawn of: numbers that are known in another way."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import eval_gegenbauer, roots_gegenbauer

import dhsk

EXAMPLES = Path(__file__).parents[2] / "examples"
EPS = np.finfo(float).eps


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a script of an example as a module."""
    before = set(sys.modules)

    def load(name: str) -> Any:
        path = EXAMPLES / name
        monkeypatch.syspath_prepend(path.parent)
        return import_module(path.stem)

    yield load
    for name in set(sys.modules) - before & {"nested", "taxa", "prepare"}:
        del sys.modules[name]


# Covering numbers


@pytest.mark.parametrize("n", [3, 10])
def test_eigenvalues_are_those_of_the_kernel(n: int, script: Any) -> None:
    """Gauss quadrature of `HeatKernel` times a Gegenbauer polynomial, over that of the constant."""
    time, levels = 0.05, 8
    logs, _ = script("lafferty_lebanon/covering.py").spectrum(n, time, -30.0)
    points, weights = roots_gegenbauer(200, (n - 2) / 2)
    values = weights * dhsk.HeatKernel(dim=n, time=time).of_cosine(points)
    ratios = [
        (values * eval_gegenbauer(level, (n - 2) / 2, points)).sum()
        / eval_gegenbauer(level, (n - 2) / 2, 1.0)
        / values.sum()
        for level in range(levels)
    ]
    rounding = 200 * 10 * EPS  # of 200 terms, none above the sum of all, a few eps each
    assert np.exp(logs[:levels]) == pytest.approx(ratios, abs=rounding)


def test_multiplicities_count_polynomials(script: Any) -> None:
    """Harmonics up to a degree are polynomials of it less those of two degrees below."""
    _, count = script("lafferty_lebanon/covering.py").spectrum(4, 0.1, -20.0)
    # On S^3 the degree l has (l + 1)² harmonics; logarithms of factorials keep about 13 digits.
    assert count == pytest.approx((np.arange(len(count)) + 1.0) ** 2, rel=1e-12)


@pytest.mark.parametrize("distance", [0.9, 0.1, 0.013])
def test_one_axis_is_covered_by_intervals(distance: float, script: Any) -> None:
    """At a long time only the constant counts: [-1, 1] needs the next integer above 1/e."""
    low, high = script("lafferty_lebanon/covering.py").bounds(3, 50.0, distance)
    assert low <= np.log(np.ceil(1 / distance)) <= high
    assert low == pytest.approx(-np.log(distance), rel=4 * EPS)


@pytest.mark.parametrize("n", [3, 4])
def test_growth_is_the_limit_of_the_lower_bound(n: int, script: Any) -> None:
    """Sums over degrees differ from Weyl's integral by about one part in the largest degree."""
    covering = script("lafferty_lebanon/covering.py")
    time, distance = 1e-3, 1e-8
    largest = (2 * -np.log(distance) / time) ** 0.5
    low, _ = covering.bounds(n, time, distance)
    # Degrees l stand for l + (n - 2)/2, each of d = n - 1 powers: d²/largest of the whole.
    error = (n - 1) ** 2 / largest
    assert np.log(low) == pytest.approx(covering.growth(n, time, distance), abs=error)


# Decision boundaries


def test_chances_are_those_of_drawing(script: Any) -> None:
    """They sum to 1, and 20,000 draws have the mean of squares that they say."""
    boundaries = script("lafferty_lebanon/boundaries.py")
    world = boundaries.Trinomials()
    terms = len(world.all)
    assert world.chances.sum(axis=1) == pytest.approx(1.0, abs=terms * 100 * EPS)  # of gammaln
    rng = np.random.default_rng(0)
    for chance, alpha in zip(world.chances, (boundaries.MIDDLE, boundaries.EDGE), strict=True):
        drawn = rng.multinomial(boundaries.WORDS, rng.dirichlet(alpha, 20_000))
        squares = (drawn**2).sum(axis=1)
        standard_error = squares.std() / len(squares) ** 0.5
        said = chance @ (world.all**2).sum(axis=1)
        assert squares.mean() == pytest.approx(said, abs=4 * standard_error)


def test_the_best_decision_has_the_least_error(script: Any) -> None:
    """Bayes' rule attains the bound, and no decision by one word does better."""
    world = script("lafferty_lebanon/boundaries.py").Trinomials()
    rule = world.chances.argmax(axis=0)
    assert world.error(lambda _: rule) == pytest.approx(world.best(), rel=300 * EPS)
    assert min(world.error(lambda X, k=k: X[:, 0] > k) for k in range(20)) > world.best()


# Microbes


@pytest.fixture
def table() -> tuple[Any, Any]:
    """Samples whose first two taxa tell the classes apart, and the rest nothing."""
    rng = np.random.default_rng(0)
    X = rng.poisson(5.0, (60, 8)).astype(float)
    y = np.repeat(["a", "b"], 30)
    X[:30, 0] += 60
    X[30:, 1] += 60
    return X, y


def test_coefficients_on_log_ratios_sum_to_zero(table: Any, script: Any) -> None:
    """And are the classifier: the decision is their product with the log-ratios, and a number."""
    taxa = script("microbiome/taxa.py")
    X, y = table
    model = dhsk.HeatSVC(sphere_map="clr", kernel="linear").fit(X, y)
    w = taxa.coefficients(model)
    n, alpha = X.shape[1], np.abs(model.dual_coef_).sum()
    rounding = n * EPS * n**0.5 * alpha  # n terms, whose sum of absolute values is at most √n
    assert abs(w.sum()) <= rounding
    assert w[0] < -1 < 1 < w[1]
    decided = dhsk.clr_map(X) @ w + model.intercept_
    assert model.decision_function(X) == pytest.approx(decided, abs=100 * rounding)


def test_exchanged_taxa_fall_where_they_decide(table: Any, script: Any) -> None:
    """Half of the lead over chance or more for both together, nothing for a taxon of noise."""
    taxa = script("microbiome/taxa.py")
    X, y = table
    model = dhsk.HeatSVC(sphere_map="clr").fit(X, y)
    genera = [np.array([0, 1]), np.array([5])]
    fall = taxa.falls(model, X, y, genera, np.random.default_rng(0), 20)
    # Exchanged, each sample has the taxa of either class: 1/2 right, ± 0.5/√(60 x 20).
    assert fall == pytest.approx([0.5, 0.0], abs=4 * 0.5 / 1200**0.5)


def test_taxa_of_a_genus_stand_together(script: Any) -> None:
    """With or without blanks; those of no known genus one by one."""
    taxa = script("microbiome/taxa.py")
    lineages = ["k__B; f__F; g__G", "k__B;f__F;g__G;s__x", "k__B;f__F;g__;s__y", "k__B;f__F", ""]
    found = taxa.members(lineages)
    assert [list(columns) for columns in found.values()] == [[0, 1], [2], [3], [4]]
    assert [taxa.short(genus) for genus in found] == ["G", "y (s.)", "F (f.)", "without a name"]


# Genes


@pytest.fixture
def entries() -> list[dict[str, Any]]:
    """Three genes, on which two Gaussian kernels are the best in turn."""
    families = {"linear": 60.0, "cosine": 61.0, "parametrix": 62.0, "heat": 63.0}
    found = []
    for mutants, first, second in ((40, 66.0, 63.0), (45, 64.0, 69.0), (300, 60.0, 63.0)):
        cells = {f"{name}|{name}|1": [score, 2.0] for name, score in families.items()}
        cells |= {"gaussian|a|1": [first, 3.0], "gaussian|b|1": [second, None]}
        found.append({"gene": f"G{mutants}", "mutants": mutants, "cells": cells})
    return found


def test_candidates_are_of_each_gene_or_of_all(entries: Any, script: Any) -> None:
    """The best of each gene is never below the one that is best in the mean."""
    found = script("tcga/figure2.py").gathered(entries)["gaussian"]
    assert found["own"].tolist() == [66.0, 69.0, 63.0]
    assert (found["name"], found["same"].tolist()) == ("gaussian|b|1", [63.0, 69.0, 63.0])
    assert found["size"].tolist() == pytest.approx([3.0, np.nan, np.nan], nan_ok=True)


def test_bins_have_means_and_errors_of_ratios(entries: Any, script: Any) -> None:
    """Ratios gene by gene; a bin without genes has no row."""
    figure2 = script("tcga/figure2.py")
    found = figure2.gathered(entries)
    first, *_, last = figure2.table(found, "own").splitlines()[2:]
    ratios = np.array([66 / 60, 69 / 60])
    expected = f"{ratios.mean():.3f} ± {ratios.std(ddof=1) / 2**0.5:.3f}"
    assert first.startswith("| 40 to 49 | 2 | 60.0 ± 0.0 | " + expected)
    assert last.startswith("| 250 to 500 | 1 | 60.0 ± 0.0 | 1.050 ± 0.000")
    assert len(figure2.table(found, "own").splitlines()) == 4


def test_half_a_line_of_a_killed_run_is_dropped(entries: Any, script: Any, tmp_path: Path) -> None:
    """Whole lines are taken as they are, and the file has whole lines again."""
    figure2, path = script("tcga/figure2.py"), tmp_path / "figure2.jsonl"
    lines = [json.dumps(entry) + "\n" for entry in entries]
    path.write_text("".join(lines) + lines[0][:20])
    genes = [(entry["gene"], entry["mutants"]) for entry in entries]
    assert list(figure2.measured(None, None, genes, path)) == entries
    assert path.read_text() == "".join(lines)
