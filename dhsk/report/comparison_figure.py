"""Figure of the folds of several runs."""

from collections.abc import Mapping

from dhsk.report.axes import LABEL_WIDTH
from dhsk.report.drawing import drawing
from dhsk.report.fold_figure import draw_folds
from dhsk.report.markup import Html
from dhsk.report.words import capitalised, metric, shortened, spread
from dhsk.results.parts import Results


def runs_by_fold(runs: Mapping[str, Results]) -> Html:
    """Return the score of each fold of the best cell of every run."""
    first = next(iter(runs.values()))
    with drawing("runs", 5.2, 0.5 * len(runs) + 0.1) as picture:
        names = [shortened(name, LABEL_WIDTH) for name in runs]
        rows = [(run.best, run.rows_of[run.best.point]) for run in runs.values()]
        draw_folds(picture.axes, names, rows)
        picture.axes.set_xlabel(metric(first))
        said = "; ".join(f"{name}: {spread(run.best)}" for name, run in runs.items())
        title = f"{capitalised(metric(first))} by fold, of every run"
        return picture.svg(title, f"Mean and standard deviation: {said}.")
