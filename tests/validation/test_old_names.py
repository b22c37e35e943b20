"""Arguments of `cross_validate` by their old names still work, with a warning."""

from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_wine

import dhsk

pytestmark = pytest.mark.filterwarnings("ignore:the values of X have:dhsk.InputWarning")  # of wine


def run(**options: Any) -> dhsk.CvResult:
    """A small grid."""
    X, y = load_wine(return_X_y=True)
    return dhsk.cross_validate(X, y, time_scale=0.3, C=10.0, cv=2, **options)


def scores(result: dhsk.CvResult) -> list[dict[str, Any]]:
    """Rows without the clock."""
    return [row | {"seconds": 0} for row in result.results_]


def test_rank_is_low_rank() -> None:
    """With its options; the warning is a call that works, and points here."""
    new = run(low_rank=dhsk.LowRank([10, 5], loss="logistic"))
    message = r"rank, loss of cross_validate .* low_rank=dhsk\.LowRank\(rank=\[10, 5\], loss='log"
    with pytest.warns(FutureWarning, match=message) as caught:
        old = run(rank=[10, 5], loss="logistic")
    assert caught[0].filename == __file__
    assert scores(old) == scores(new)
    assert new.low_rank == dhsk.LowRank((5, 10), loss="logistic")


def test_no_rank_is_exact() -> None:
    """Options of low rank without a rank had no effect."""
    with pytest.warns(FutureWarning, match="rank, selection of cross_validate"):
        assert run(rank=None, selection="uniform").low_rank is None


def test_journal_and_table_keep_their_paths(tmp_path: Path) -> None:
    """Where they were asked for; `out` has them in one folder."""
    with (
        pytest.warns(FutureWarning, match="journal of cross_validate .* out=FOLDER.* as fits"),
        pytest.warns(FutureWarning, match=r"table of cross_validate .* as results\.csv"),
    ):
        run(journal=tmp_path / "j", table=tmp_path / "t.csv")
    run(out=tmp_path / "out")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"fits", "results.csv"}
    assert {p.name for p in (tmp_path / "j").iterdir()} == {
        p.name for p in (tmp_path / "out" / "fits").iterdir()
    }
    header = (tmp_path / "t.csv").read_text().splitlines()[0]
    assert header == (tmp_path / "out" / "results.csv").read_text().splitlines()[0]


def test_seed_is_random_state() -> None:
    """Other folds than by default."""
    with pytest.warns(FutureWarning, match="seed of cross_validate .* give random_state=5$"):
        old = run(seed=5)
    assert scores(old) == scores(run(random_state=5)) != scores(run())


def test_a_store_may_lie_elsewhere(tmp_path: Path) -> None:
    """It is shared by several grids."""
    run(out=tmp_path / "out", store=tmp_path / "store")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"fits", "results.csv"}
    assert (tmp_path / "store" / "cosine").exists()


def test_both_names_at_once_are_refused(tmp_path: Path) -> None:
    """Which of them counts is not guessed."""
    with pytest.raises(dhsk.InputError, match="low_rank takes the place of rank"):
        run(low_rank=dhsk.LowRank(5), rank=5)
    with pytest.raises(dhsk.InputError, match="random_state takes the place of seed"):
        run(random_state=5, seed=5)
    with pytest.raises(dhsk.InputError, match="out takes the place of journal"):
        run(out=tmp_path, journal=tmp_path)


def test_unknown_arguments_are_refused() -> None:
    """As Python does."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'ranks'"):
        run(ranks=5)


def test_only_a_low_rank_is_one() -> None:
    """A number has no loss."""
    with pytest.raises(dhsk.InputError, match=r"must be a dhsk\.LowRank, got 5"):
        run(low_rank=5)
