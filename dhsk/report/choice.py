"""Sections on the choice of the best cell: grid, folds, search, table of all cells."""

from typing import Any

from dhsk.report import fold_figure, grid_figure, low_rank
from dhsk.report.alike import alike_words
from dhsk.report.markup import Html, Keyed, colour_scale, figure_row, section, table, tag
from dhsk.report.mosaic import SCORES, colours_of
from dhsk.report.unfinished import marked
from dhsk.report.words import (
    brief,
    capitalised,
    count_of,
    duration,
    folds_of,
    label,
    listed,
    metric,
    named,
    penalty_text,
    score,
    two_digits,
    unbroken,
    whole,
)
from dhsk.results.columns import Cell
from dhsk.results.decision import Comparison, Decision
from dhsk.results.parts import Results

EXACT = (
    "Tol reached is the largest violation of the conditions of optimality, which scikit-learn's "
    "SVC compares with tol; gap the largest duality gap as a part of the primal objective; VC "
    "bound the largest and effective size the smallest, over pairs of classes and folds (see "
    "Capacity)"
)

OPEN_ROWS = 20
"""Cells from which on the table scrolls in a box of its own."""

COLUMNS = (
    "kernel", "C", "mean", "std", "support", "tol reached", "gap", "VC bound", "effective size",
    "fits",
)  # fmt: skip

LOW_RANK_COLUMNS = (
    "kernel", "rank", "C", "mean", "std", "trace error", "gradient norm", "gap", "fits"
)  # fmt: skip


def grid(results: Results) -> Html:
    """Return heat maps of all cells."""
    title = f"Every kernel at every {'rank and ' if len(results.ranks) > 1 else ''}C"
    maps = figure_row(grid_figure.grids(results))
    if len(results.cells) == 1:
        words = "One kernel at one C was tried, so there is no choice to show."
        return section(title, words, maps, anchor="grid")
    low, high = grid_figure.score_range(results)
    folds = folds_of(results)
    cell = f"a candidate is one kernel at one {'rank and ' if results.low_rank else ''}C"
    note = f"Mean {metric(results)} over {folds}; {cell}, {_chosen(results)} {_edges(results)}"
    more = [tag("p", words, class_="note") for words in (_units(results),) if words]
    alike = alike_words(results, low, high)
    more += [tag("p", alike, class_="note")] if alike else []
    scale = colour_scale(colours_of(SCORES), score(low), score(high))
    return section(title, note, *more, scale, maps, anchor="grid")


def _units(results: Results) -> str:
    """Say which units C has."""
    if results.best.C_scaled is None:
        return ""
    return (
        "The columns have C times the variance of the samples under each kernel (their mean "
        "squared distance from their mean): the same multiple is the same problem for a steep and "
        "a flat kernel. C itself is in the table of all candidates."
    )


def _chosen(results: Results) -> str:
    """Say what the outlined candidate is."""
    decision = results.decision
    highest = f"the highest mean, {score(decision.best.mean)} of {named(decision.best)}"
    if results.best == decision.best:
        return "the outlined candidate is the best."
    return (
        "the outlined candidate is the one to take, of the simplest kernel within one standard "
        f"error of {highest}."
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
            listed(trial.time_scales) or "–",
            f"{listed(trial.C_scaled)} / variance" if trial.C_scaled else listed(trial.C),
            named(trial.best),
            score(trial.best.mean),
            trial.why,
        )
        for number, trial in enumerate(results.search, start=1)
    ]
    head = ("round", "time scales", "C", "best", f"mean {metric(results)}", "what followed")
    ended = f" The search {results.search_ended}." if results.search_ended else ""
    of_times = sum(bool(trial.time_scales) for trial in results.search)
    more = f", C in {len(rows) - of_times} more" if len(rows) > of_times else ""
    note = f"The time scale was sought in {count_of(of_times, 'round')}{more}.{ended}"
    tried = table(head, rows, class_="tried stacked")
    return section("What was tried", note, tried, anchor="search")


def folds(results: Results) -> Html:
    """Return the score of each fold, and paired differences from the best."""
    name = metric(results)
    note = (
        "The best of each family of kernels: a dot for each fold (first fold on top), a line at "
        "the mean, a band of one standard deviation of the dots (beside them mean ± standard "
        "deviation)."
    )
    if len(results.cells) > 1:
        note += (
            " All were scored on the same folds. The best was chosen by these very folds, so its "
            f"{name} on new samples tends to be a little lower."
        )
    shown = figure_row([fold_figure.folds(results)])
    return section(f"{capitalised(name)} by fold", note, shown, *_paired(results), anchor="folds")


PAIRED = (
    "The bands overlap where some folds are harder than others for every kernel, so they do not "
    "say which kernel is better. The decision compares fold by fold: the best less the other on "
    "the same fold. Here is the mean of these differences, ± its standard error, corrected for "
    "training sets that overlap."
)


def _paired(results: Results) -> list[Html]:
    """Return what the decision compares; nothing of one family of kernels."""
    decision = results.decision
    if len(decision.compared) == 1:
        return []
    rows = [
        (
            label(one.cell), Keyed(penalty_text(one.cell.C), one.cell.C), score(one.cell.mean),
            _below(decision, one), _verdict(decision, one),
        )
        for one in _rivals(decision)
    ]  # fmt: skip
    head = ("kernel", "C", "mean", "below the best", "verdict")
    shown = table(head, rows, class_="numbers paired sortable")
    return [tag("p", PAIRED, class_="note"), shown]


def _rivals(decision: Decision) -> list[Comparison]:
    """Return the best cell, then that of each other family, by their means."""
    best = decision.best
    others = [one for one in decision.compared if one.cell != best]
    return [Comparison(0.0, 0.0, cell=best), *sorted(others, key=lambda one: one.difference)]


def _below(decision: Decision, one: Comparison) -> object:
    if one.cell == decision.best:
        return "–"
    return Keyed(unbroken(one.words.replace("-", "\N{MINUS SIGN}")), one.difference)


def _verdict(decision: Decision, one: Comparison) -> str:
    """Say what a difference means, by the rule of the decision."""
    if one.cell == decision.best:
        return "the best"
    if one.within:
        return "as good: within one standard error"
    if one.standard_error < 5e-5:  # shown as zero
        return "worse"
    return f"worse by {one.difference / one.standard_error:.1f} standard errors"


def cells(results: Results) -> Html:
    """Return the table of all cells; a long one scrolls in a box of its own."""
    exact = results.low_rank is None
    row = _row if exact else _low_rank_row
    head: tuple[str, ...] = COLUMNS if exact else LOW_RANK_COLUMNS
    rows = [row(results, cell) for cell in results.cells]
    if results.best.C_scaled is not None:
        place = head.index("C") + 1
        head = (*head[:place], "C × variance", *head[place:])
        scaled = (brief(cell.C_scaled) for cell in results.cells)
        rows = [(*r[:place], s, *r[place:]) for r, s in zip(rows, scaled, strict=True)]
    long = " long" if len(rows) > OPEN_ROWS else ""
    proof = EXACT if exact else low_rank.proof(results)
    note = (
        f"{_order(results)}; mean and standard deviation are of the {metric(results)}. {proof}; "
        "the times of the fits are summed. A click on a head sorts the table"
        f"{', which scrolls' if long else ''}."
    )
    shown = table(head, rows, class_=f"numbers cells sortable{long}")
    return section("All candidates", note, shown, anchor="cells")


def _order(results: Results) -> str:
    """Say how the table of cells is sorted."""
    best = results.best == results.decision.best
    return "Best first" if best else "The chosen candidate first, then by mean"


def _low_rank_row(results: Results, cell: Cell) -> tuple[object, ...]:
    return (
        marked(results, cell), whole(cell.rank or 0), _penalty(cell),
        score(cell.mean), score(cell.std), brief(cell.trace_error),
        two_digits(cell.gradient), two_digits(cell.gap), _seconds(cell),
    )  # fmt: skip


def _row(results: Results, cell: Cell) -> tuple[object, ...]:
    return (
        marked(results, cell), _penalty(cell), score(cell.mean), score(cell.std),
        whole(cell.n_support or 0), two_digits(cell.kkt), two_digits(cell.gap),
        brief(cell.vc), brief(cell.effective), _seconds(cell),
    )  # fmt: skip


def _penalty(cell: Cell) -> Keyed:
    return Keyed(penalty_text(cell.C), cell.C)


def _seconds(cell: Cell) -> Keyed:
    return Keyed(duration(cell.seconds), cell.seconds)
