"""Sections about the choice of the best cell: the grid, the folds, what was tried, the table."""

from typing import Any

from dhsk.report import figures, low_rank
from dhsk.report.markup import Html, colour_scale, figure_row, joined, section, table, tag
from dhsk.report.results import Cell, Results
from dhsk.report.words import (
    brief,
    capitalised,
    count_of,
    duration,
    listed,
    metric,
    score,
    unbroken,
    whole,
)

EXACT = (
    "KKT is the largest violation of the conditions of optimality, gap the largest duality gap as "
    "a part of the primal objective, VC bound the largest and effective size the smallest, over "
    "pairs of classes and folds"
)

OPEN_ROWS = 20
"""Cells shown before the table folds the others away."""

COLUMNS = (
    "kernel", "C", "mean", "std", "support", "KKT", "gap", "VC bound", "effective size", "fits"
)  # fmt: skip

LOW_RANK_COLUMNS = (
    "kernel", "rank", "C", "mean", "std", "trace error", "gradient", "gap", "fits"
)  # fmt: skip


def grid(results: Results) -> Html:
    """Return heat maps of all cells."""
    title = f"Every kernel at every {'rank and ' if len(results.ranks) > 1 else ''}C"
    maps = figure_row(figures.grids(results))
    if len(results.cells) == 1:
        return section(title, "One kernel at one C was tried, so there is no choice to show.", maps)
    low, high = figures.score_range(results)
    folds = count_of(results.n_folds, "fold")
    note = f"Mean {metric(results)} over {folds}; the outlined cell is the best. {_edges(results)}"
    scale = colour_scale(figures.colours_of(figures.SCORES), score(low), score(high))
    return section(title, note, scale, maps)


def _edges(results: Results) -> str:
    """Say where the winner lies at the end of what was tried, so that better may lie outside."""
    best = results.best
    rivals = [c for c in results.cells if c.kernel == best.kernel]
    names = [
        f"{side} {name}"
        for name in ("time scale", "sigma", "rank", "C")
        for side, end in (("smallest", min), ("largest", max))
        if _at_end(best, rivals, name.replace(" ", "_"), end)
    ]
    if not names:
        return ""
    return f"It has the {' and the '.join(names)} that was tried: better may lie outside the grid. "


def _at_end(best: Cell, rivals: list[Cell], field: str, end: Any) -> bool:
    values = {getattr(c, field) for c in rivals} - {None}
    return len(values) > 1 and getattr(best, field) == end(values)


def search(results: Results) -> Html:
    """Return what the search for a time scale tried; nothing if there was none."""
    if not results.search:
        return Html()
    rows = [
        (
            number,
            listed(trial.time_scales),
            listed(trial.C),
            unbroken(f"{trial.best_label}, C = {trial.best_penalty:g}"),
            score(trial.best_mean),
            trial.why,
        )
        for number, trial in enumerate(results.search, start=1)
    ]
    head = ("round", "time scales", "C", "best", f"mean {metric(results)}", "what followed")
    note = f"The time scale was sought in {count_of(len(rows), 'round')}."
    return section("What was tried", note, table(head, rows, class_="tried"))


def folds(results: Results) -> Html:
    """Return the score of each fold."""
    name = metric(results)
    note = (
        "The best cell of each family of kernels: a dot for each fold (first fold on top), a line "
        "at the mean, a band of one standard deviation."
    )
    if len(results.cells) > 1:
        note += (
            " Every cell saw the same folds. The best was chosen by these very folds, so its "
            f"{name} on new samples tends to be a little lower."
        )
    return section(f"{capitalised(name)} by fold", note, figure_row([figures.folds(results)]))


def cells(results: Results) -> Html:
    """Return the table of all cells, of which the later ones are folded away."""
    exact = results.low_rank is None
    head, row = (COLUMNS, _row) if exact else (LOW_RANK_COLUMNS, _low_rank_row)
    rows = [row(cell) for cell in results.cells]
    shown = [table(head, rows[:OPEN_ROWS], class_="numbers cells")]
    if len(rows) > OPEN_ROWS:
        more = table(head, rows[OPEN_ROWS:], class_="numbers cells")
        words = f"The other {count_of(len(rows) - OPEN_ROWS, 'cell')}"
        shown.append(tag("details", tag("summary", words), more))
    proof = EXACT if exact else low_rank.proof(results)
    note = (
        f"Best first; mean and standard deviation are of the {metric(results)}. {proof}; "
        "the times of the fits are summed."
    )
    return section("All cells", note, *shown)


def _low_rank_row(cell: Cell) -> tuple[object, ...]:
    return (
        _name(cell),
        whole(cell.rank or 0),
        f"{cell.C:g}",
        score(cell.mean),
        score(cell.std),
        brief(cell.trace_error),
        f"{cell.proof.kkt:.2g}",
        f"{cell.proof.gap:.2g}",
        duration(cell.proof.seconds),
    )


def _row(cell: Cell) -> tuple[object, ...]:
    proof = cell.proof
    return (
        _name(cell),
        f"{cell.C:g}",
        score(cell.mean),
        score(cell.std),
        whole(proof.n_support),
        f"{proof.kkt:.2g}",
        f"{proof.gap:.2g}",
        brief(proof.vc),
        brief(proof.effective),
        duration(proof.seconds),
    )


def _name(cell: Cell) -> Html:
    if cell.proof.converged:
        return joined([cell.kernel_label])
    words = f"{cell.unfinished} of {count_of(len(cell.folds), 'fit')} not converged"
    return joined([cell.kernel_label, tag("small", words, class_="warning")])
