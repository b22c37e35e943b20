"""Single samples for the report, against scikit-learn and by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import KernelPCA
from sklearn.metrics import roc_auc_score

import dhsk
from dhsk.validation.examined import MOST_MAPPED, RUN, SPREAD_OUT, _chosen, components

ROUNDED = 1e-4
"""Half a unit of the last digit that is kept, twice over."""


@pytest.fixture(params=["exact", "low rank"])
def result(request: pytest.FixtureRequest, counts: Any) -> dhsk.CvResult:
    """Three classes that overlap."""
    X = counts(90, 12)
    for k in range(3):
        X[30 * k : 30 * (k + 1), k] += 1.5
    y = np.repeat(["a", "b", "c"], 30)
    options = {} if request.param == "exact" else {"low_rank": dhsk.LowRank(20)}
    return dhsk.cross_validate(
        X, y, time_scale=0.5, C=1.0, cv=dhsk.StratifiedFolds(3, n_repeats=2), **options
    )


def test_mistakes_are_those_of_the_first_repeat(result: dhsk.CvResult) -> None:
    """All of them, the surest first, with their classes and decisions."""
    found, seen = result.out_of_fold(), result.examined
    assert seen is not None
    first = found.repeat == 0
    wrong = {int(k) for k in found.samples[first & found.wrong]}
    assert wrong
    assert seen.n_wrong == len(seen.wrong) == len(wrong)
    assert {one.sample for one in seen.wrong} == wrong
    margins = [one.margin for one in seen.wrong]
    assert margins == sorted(margins, reverse=True)
    place = {int(k): n for n, k in enumerate(found.samples[first])}
    assert found.decisions is not None
    for one in seen.wrong:
        n = place[one.sample]
        assert (one.true, one.predicted) == (found.true[first][n], found.predicted[first][n])
        sides = dict(zip("abc", found.decisions[first][n].tolist(), strict=True))
        assert one.margin == pytest.approx(sides[one.predicted] - sides[one.true], rel=1e-3)


def test_areas_are_those_of_scikit_learn(result: dhsk.CvResult) -> None:
    """Of each class against the rest, pooled over the folds; curves rise from 0 to 1."""
    found, seen = result.out_of_fold(), result.examined
    assert seen is not None
    assert found.decisions is not None
    first = found.repeat == 0
    assert [curve.positive for curve in seen.curves] == ["a", "b", "c"]
    for k, curve in enumerate(seen.curves):
        expected = roc_auc_score(found.true[first] == curve.positive, found.decisions[first][:, k])
        assert curve.area == pytest.approx(expected, abs=1e-6)
        for rates in (curve.false_positives, curve.true_positives):
            assert (rates[0], rates[-1]) == (0, 1)
            assert sorted(rates) == list(rates)
        drawn = np.trapezoid(curve.true_positives, curve.false_positives)
        assert drawn == pytest.approx(expected, abs=0.02)  # from a hundred points


def test_the_map_is_kernel_pca(counts: Any) -> None:
    """Coordinates are scikit-learn's but for signs and scale; shares are of the variance."""
    X = dhsk.hyperspherical_map(counts(50, 7))
    K = dhsk.HeatKernel.at_scale(7, 0.5)(X)
    points, shares = components(K)
    expected = KernelPCA(2, kernel="precomputed", eigen_solver="dense").fit_transform(K)
    scale = np.abs(expected[:, 0]).max()
    for k in range(2):
        ours, theirs = points[:, k], expected[:, k] / scale
        assert min(np.abs(ours - theirs).max(), np.abs(ours + theirs).max()) < ROUNDED
    centred = K - K.mean(0) - K.mean(1)[:, None] + K.mean()
    values = np.linalg.eigvalsh(centred)[::-1]
    assert shares == pytest.approx(tuple(values[:2] / values.sum()), abs=1e-6)


def test_the_map_shows_what_was_held_out(result: dhsk.CvResult) -> None:
    """Every sample once, with its class and what it was taken for."""
    found, seen = result.out_of_fold(), result.examined
    assert seen is not None
    assert seen.map is not None
    assert seen.map.samples == tuple(range(90))
    names = np.array(["a", "b", "c"])
    assert names[list(seen.map.true)].tolist() == found.true[found.repeat == 0].tolist()
    assert names[list(seen.map.predicted)].tolist() == found.predicted[found.repeat == 0].tolist()
    assert max(map(abs, (*seen.map.x, *seen.map.y))) == 1.0


@pytest.mark.parametrize("n", [5, MOST_MAPPED, 2000, SPREAD_OUT + 1, 10**6])
def test_a_map_has_few_samples(n: int) -> None:
    """Ascending and different ones; of very many they lie together, so that few parts are read."""
    chosen = _chosen(n, MOST_MAPPED)
    assert len(chosen) == min(n, MOST_MAPPED)
    assert (np.diff(chosen) > 0).all()
    assert chosen[-1] < n
    if n > SPREAD_OUT:
        assert np.count_nonzero(np.diff(chosen) > 1) == MOST_MAPPED // RUN - 1


def test_they_are_in_the_file(result: dhsk.CvResult, tmp_path: Path) -> None:
    """So the page can be made anew from results.json."""
    result.to_json(tmp_path / "results.json")
    assert dhsk.CvResult.from_json(tmp_path / "results.json").examined == result.examined


@pytest.mark.parametrize("ids", [True, False])
def test_samples_have_their_ids(tmp_path: Path, counts: Any, ids: bool) -> None:
    """Those of a column, where there is one."""
    X, path = counts(40, 4), tmp_path / "counts.csv"
    lines = [f"s{k}," + ",".join(f"{v:g}" for v in row) for k, row in enumerate(X)]
    path.write_text("name,a,b,c,d\n" + "\n".join(lines))
    source = dhsk.open_samples(
        path, id_column="name" if ids else None, drop_columns=() if ids else ("name",)
    )
    y = np.tile([0, 1], 20)  # nothing to be learned: there are mistakes
    result = dhsk.cross_validate(source, y, time_scale=1.0, C=1.0, cv=2)
    assert result.examined is not None
    assert result.examined.wrong
    for one in result.examined.wrong:
        assert one.name == (f"s{one.sample}" if ids else "")


def test_two_classes_have_one_curve(counts: Any) -> None:
    """Of the second class; a precomputed matrix has a map too."""
    X = dhsk.hyperspherical_map(counts(40, 5))
    y = np.tile([0, 1], 20)
    result = dhsk.cross_validate(X @ X.T, y, kernels="precomputed", C=1.0, cv=2)
    assert result.examined is not None
    (curve,) = result.examined.curves
    assert curve.positive == 1
    assert result.examined.map is not None
