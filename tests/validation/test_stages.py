"""Without kernels: a search for the time beside simple ones, C until the best is inside."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

import dhsk
from dhsk.samples import open_samples
from dhsk.validation.start import first_scales

pytestmark = pytest.mark.threads


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    """The first 200 digits of three classes."""
    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:200], y[:200]


@pytest.fixture(scope="module")
def result(digits: Any) -> dhsk.CvResult:
    """The default grid."""
    return dhsk.cross_validate(*digits, cv=3, multi_class="ovo")


def kernels(result: dhsk.CvResult) -> list[str]:
    """Families of kernels, in the order of the results."""
    return list(dict.fromkeys(cell.kernel for cell in result.summary))


def test_linear_and_cosine_run_beside_the_heat_kernel(result: Any, digits: Any) -> None:
    """Linear on the samples as they are, cosine on the mapped ones, as scikit-learn has them."""
    X, y = digits
    assert sorted(kernels(result)) == ["cosine", "heat", "linear"]
    U, folds = dhsk.hyperspherical_map(X), StratifiedKFold(3, shuffle=True, random_state=0)
    for rows, name in ((X, "linear"), (U, "cosine")):
        cells = [cell for cell in result.summary if cell.kernel == name]
        spread = np.sum(rows**2, axis=1).mean() - np.sum(rows.mean(axis=0) ** 2)
        assert [c.C * spread for c in cells] == pytest.approx([c.C_scaled for c in cells], rel=1e-5)
        svc = SVC(kernel="precomputed", C=cells[1].C)
        scores = cross_val_score(svc, rows @ rows.T, y, cv=folds)
        assert [row.score for row in result.rows_of[cells[1].point]] == pytest.approx(scores)


@pytest.fixture(scope="module")
def texts() -> tuple[list[str], list[int]]:
    """Texts of two kinds of words, from 5 to 60 of them each."""
    rng = np.random.default_rng(0)
    labels = [i % 2 for i in range(40)]
    words = [rng.integers(0, 40, rng.integers(5, 60)) + 15 * y for y in labels]
    return [" ".join(f"word{number}" for number in own) for own in words], labels


@pytest.mark.slow
def test_texts_get_tfidf_untold(texts: Any) -> None:
    """The cosine kernel on it, and no linear one, as texts have different lengths."""
    result = dhsk.cross_validate(*texts, cv=2)
    assert kernels(result) == ["heat", "cosine", "tf-idf cosine"]
    assert all(stage.time_scales or "C" in stage.why for stage in result.search)
    asked = dhsk.cross_validate(*texts, cv=2, kernels="cosine", C=1, sphere_map="auto")
    own = {cell.kernel: cell.mean for cell in asked.summary}
    found = dhsk.cross_validate(*texts, cv=2, C=1)
    mean = next(cell.mean for cell in found.summary if cell.kernel == "tf-idf cosine")
    assert mean == own["tf-idf cosine"]


@pytest.mark.parametrize(
    "options", [{"sphere_map": "hyperspherical"}, {"time_scale": "auto"}], ids=str
)
def test_what_was_asked_for_has_no_tfidf(texts: Any, options: Any) -> None:
    """A map, or a kernel; scorers of probabilities have it."""
    assert "tf-idf cosine" not in kernels(dhsk.cross_validate(*texts, cv=2, **options))
    assert "tf-idf cosine" in kernels(dhsk.cross_validate(*texts, cv=2, scoring="neg_log_loss"))


@pytest.mark.slow
@pytest.mark.parametrize("sphere_map", [None, "tfidf"])
def test_linear_stands_aside_where_totals_of_counts_differ(sphere_map: Any) -> None:
    """Of sequencing counts it would follow the depths; of proportions, with one total, it runs."""
    rng, y = np.random.default_rng(0), np.arange(40) % 2
    depths = rng.lognormal(6, 1, (40, 1))
    X = rng.poisson(depths * rng.dirichlet(np.full(20, 2.0), 40))
    raw = dhsk.cross_validate(X, y, cv=2, sphere_map=sphere_map, out=dhsk.Output(baselines=False))
    assert "linear" not in kernels(raw)
    shares = X / X.sum(axis=1, keepdims=True)
    same = dhsk.cross_validate(
        shares, y, cv=2, sphere_map=sphere_map, out=dhsk.Output(baselines=False)
    )
    assert "linear" in kernels(same)
    assert "linear" in kernels(dhsk.cross_validate(X, y, cv=2, kernels="linear"))


@pytest.mark.parametrize("map_", [None, "projective"])
def test_linear_of_unit_rows_is_the_cosine_of_directions(map_: Any) -> None:
    """It is tried once; rows of other lengths, and square roots, have both."""
    rng, y = np.random.default_rng(0), np.arange(40) % 2
    X = np.abs(rng.normal(size=(40, 4))) + 0.1
    no_methods = {"cv": 2, "sphere_map": map_, "out": dhsk.Output(baselines=False)}
    assert "linear" in kernels(dhsk.cross_validate(X, y, **no_methods))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    unit = kernels(dhsk.cross_validate(X, y, **no_methods))
    assert ("linear" in unit) == (map_ is None)


def test_times_start_where_the_samples_are(result: Any, digits: Any) -> None:
    """The decision compares the families; what it takes is the cell of the result."""
    X, _ = digits
    assert result.search[0].time_scales == tuple(first_scales(open_samples(X), None, "center"))
    assert result.choice.rule == "simplest"
    assert result.best == result.decision.simplest.cell
    assert result.decision.best.mean == max(cell.mean for cell in result.summary)
    assert [one.cell.kernel for one in result.decision.compared] == ["linear", "cosine", "heat"]
    assert result.data["decision"]["sentence"] == result.decision.sentence
    json.dumps(result.data)


def test_named_kernels_and_times_are_all_that_runs(digits: Any) -> None:
    """With C of old."""
    found = dhsk.cross_validate(*digits, time_scale=1.0, cv=3)
    assert kernels(found) == ["heat"]
    assert [cell.C for cell in found.summary] == [0.1, 1.0, 10.0]
    assert found.search == ()
    found = dhsk.cross_validate(*digits, kernels="heat", cv=3)
    assert [cell.time_scale for cell in found.summary[::3]] == [0.7, 1.0, 1.4]


def test_C_that_is_given_is_kept(digits: Any) -> None:
    """For all kernels, times are looked for all the same."""
    found = dhsk.cross_validate(*digits, C=[2.0], cv=3, multi_class="ovo")
    assert {cell.C for cell in found.summary} == {2.0}
    assert sorted(kernels(found)) == ["cosine", "heat", "linear"]


@pytest.mark.slow
def test_stores_give_what_they_hold(digits: Any) -> None:
    """Cosines: no linear kernel; another matrix: itself; unit samples: cosine is linear."""
    X, y = digits
    pairs: Any = {"cv": 3, "multi_class": "ovo"}
    cosines = dhsk.cross_validate(dhsk.compute_gram(X, "cosine"), y, **pairs)
    assert sorted(kernels(cosines)) == ["cosine", "heat"]
    assert kernels(dhsk.cross_validate(dhsk.compute_gram(X, "linear"), y, **pairs)) == ["linear"]
    unit = dhsk.cross_validate(dhsk.hyperspherical_map(X), y, sphere_map="identity", **pairs)
    assert sorted(kernels(unit)) == ["cosine", "heat"]
    assert unit.best_score_ == pytest.approx(cosines.best_score_)


@pytest.mark.slow
def test_C_grows_while_that_pays() -> None:
    """A large feature without information takes most of the spread: another needs a large C."""
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 60)
    # Of 40 features, as heat kernels of two are proven in ten times the time.
    small, large = rng.uniform(0, 1.4, 120), rng.uniform(0, 60, 120)
    X = np.column_stack([y + small, large, rng.uniform(0, 6, (120, 38))])
    found = dhsk.cross_validate(X, y, cv=4)
    linear = [cell for cell in found.summary if cell.kernel == "linear"]
    tried = sorted(cell.penalty for cell in linear)
    assert tried == [0.5, 1.5, 5.0, 15.0, 50.0, 150.0]
    reasons = [stage.why for stage in found.search]
    assert any(why.startswith("the largest C was the best of") for why in reasons)


@pytest.mark.slow
def test_low_rank_searches_too(digits: Any) -> None:
    """With the same kernels, each at every rank."""
    found = dhsk.cross_validate(*digits, cv=3, low_rank=dhsk.LowRank([10, 40]))
    assert sorted(kernels(found)) == ["cosine", "heat", "linear"]
    assert {cell.rank for cell in found.summary} == {10, 40}
    assert len(found.decision.compared) == 6


def test_a_finished_run_is_not_computed_again(digits: Any, tmp_path: Path) -> None:
    """Every stage finds its fits; the rows are the same, even their seconds."""
    # Whether common methods are tried untold hangs on the seconds that the fits took.
    first = dhsk.cross_validate(*digits, cv=3, out=dhsk.Output(tmp_path, baselines=False))
    fits = {file: file.stat().st_mtime_ns for file in (tmp_path / "fits").iterdir()}
    again = dhsk.cross_validate(*digits, cv=3, out=dhsk.Output(tmp_path, baselines=False))
    assert again.rows == first.rows
    assert again.search == first.search
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "fits").iterdir()} == fits
