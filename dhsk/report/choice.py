"""Sections on the choice of the best cell: grid, folds, search, table of all cells."""

from typing import Any

from dhsk.report import figures, low_rank
from dhsk.report.markup import Html, colour_scale, figure_row, joined, section, table, tag
from dhsk.report.words import (
    brief,
    capitalised,
    count_of,
    duration,
    listed,
    metric,
    named,
    score,
    two_digits,
    whole,
)
from dhsk.results.columns import Cell
from dhsk.results.parts import HIGHEST, Results

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
    folds = count_of(results.folds.n, "fold")
    shown = f"Mean {metric(results)} over {folds}{_units(results)}"
    note = f"{shown}; {_chosen(results)} {_edges(results)}"
    scale = colour_scale(figures.colours_of(figures.SCORES), score(low), score(high))
    return section(title, note, scale, maps)


def _units(results: Results) -> str:
    """Say which units C has."""
    if results.best.C_scaled is None:
        return ""
    return (
        ", with C itself below it: the columns have C times the spread of the samples under each "
        "kernel (mean diagonal less mean of its matrix), as C counts in units of it"
    )


def _chosen(results: Results) -> str:
    """Say what the outlined cell is."""
    choice, best = results.choice, results.best
    if choice is None or choice.rule == HIGHEST:
        return "the outlined cell is the best."
    error = f"one standard error ({choice.standard_error:.2g})"
    highest = choice.highest
    if highest == best:
        return (
            "the outlined cell has the highest mean, and no other within "
            f"{error} of it has fewer support vectors."
        )
    return (
        f"the outlined cell has the fewest support vectors of those within {error} of the highest "
        f"mean, {score(highest.mean)} of {named(highest)}."
    )


def _edges(results: Results) -> str:
    """Say which parameters of the winner end the grid, so that better may lie outside."""
    best = results.best
    rivals = [c for c in results.cells if c.kernel == best.kernel]
    names = [
        f"{side} {name}"
        for name in ("time scale", "sigma", "rank", "penalty")
        if not (name == "time scale" and results.search_ended)  # the search says why it ended
        for side, end in (("smallest", min), ("largest", max))
        if _at_end(best, rivals, name.replace(" ", "_"), end)
    ]
    if not names:
        return ""
    listing = " and the ".join(names).replace("penalty", "C")
    return f"It has the {listing} that was tried: better may lie outside the grid. "


def _at_end(best: Cell, rivals: list[Cell], field: str, end: Any) -> bool:
    values = {getattr(c, field) for c in rivals} - {None}
    return len(values) > 1 and getattr(best, field) == end(values)


def search(results: Results) -> Html:
    """Return the stages of the search for a time scale; empty if there was none."""
    if not results.search:
        return Html()
    rows = [
        (
            number,
            listed(trial.time_scales),
            f"{listed(trial.C_scaled)} over the spread" if trial.C_scaled else listed(trial.C),
            named(trial.best),
            score(trial.best.mean),
            trial.why,
        )
        for number, trial in enumerate(results.search, start=1)
    ]
    head = ("round", "time scales", "C", "best", f"mean {metric(results)}", "what followed")
    ended = f" The search {results.search_ended}." if results.search_ended else ""
    note = f"The time scale was sought in {count_of(len(rows), 'round')}.{ended}"
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
    row = _row if exact else _low_rank_row
    head: tuple[str, ...] = COLUMNS if exact else LOW_RANK_COLUMNS
    rows = [row(results, cell) for cell in results.cells]
    if results.best.C_scaled is not None:
        place = head.index("C") + 1
        head = (*head[:place], "C times spread", *head[place:])
        scaled = (brief(cell.C_scaled) for cell in results.cells)
        rows = [(*r[:place], s, *r[place:]) for r, s in zip(rows, scaled, strict=True)]
    shown = [table(head, rows[:OPEN_ROWS], class_="numbers cells")]
    if len(rows) > OPEN_ROWS:
        more = table(head, rows[OPEN_ROWS:], class_="numbers cells")
        words = f"The other {count_of(len(rows) - OPEN_ROWS, 'cell')}"
        shown.append(tag("details", tag("summary", words), more))
    proof = EXACT if exact else low_rank.proof(results)
    note = (
        f"{_order(results)}; mean and standard deviation are of the {metric(results)}. {proof}; "
        "the times of the fits are summed."
    )
    return section("All cells", note, *shown)


def _order(results: Results) -> str:
    """Say how the table of cells is sorted."""
    simplest = results.choice is not None and results.choice.rule != HIGHEST
    return "Best first" if not simplest else "The chosen cell first, then by mean"


def _low_rank_row(results: Results, cell: Cell) -> tuple[object, ...]:
    return (
        _name(results, cell), whole(cell.rank or 0), _penalty(cell),
        score(cell.mean), score(cell.std), brief(cell.trace_error),
        two_digits(cell.gradient), two_digits(cell.gap), duration(cell.seconds),
    )  # fmt: skip


def _row(results: Results, cell: Cell) -> tuple[object, ...]:
    return (
        _name(results, cell), _penalty(cell), score(cell.mean), score(cell.std),
        whole(cell.n_support or 0), two_digits(cell.kkt), two_digits(cell.gap),
        brief(cell.vc), brief(cell.effective), duration(cell.seconds),
    )  # fmt: skip


def _penalty(cell: Cell) -> str:
    return f"{cell.C:g}" if cell.C_scaled is None else f"{cell.C:.4g}"


def _name(results: Results, cell: Cell) -> Html:
    if cell.converged:
        return joined([cell.label])
    fits = count_of(len(results.rows_of[cell.point]), "fit")
    words = f"{results.unfinished(cell)} of {fits} not converged"
    return joined([cell.label, tag("small", words, class_="warning")])
