"""Section on fits that did not converge: which they are, and what to do."""

from dhsk.report import low_rank
from dhsk.report.markup import Html, Keyed, joined, listing, note, section, tag
from dhsk.report.words import (
    capitalised,
    count_of,
    named,
    penalty_text,
    score,
    two_digits,
    unbroken,
    whole,
)
from dhsk.results.columns import Cell
from dhsk.results.parts import Results

ANCHOR = "unfinished"

_SHOWN = 30
"""Cells that are listed one by one."""

SHORT = 24
"""Names of fewer characters stand on one line."""


def warning(results: Results) -> Html:
    """Return one sentence at the top of the page; empty if all fits converged."""
    cells, n = _cells(results), results.unfinished(*results.cells)
    stopped = []
    if n:
        among = ", the taken candidate's among them," if results.unfinished(results.best) else ""
        share = f"{whole(n)} of {count_of(len(results.rows), 'fit')} on the folds"
        stopped.append(f"{share} ({count_of(len(cells), 'candidate')}){among}")
    if _refit_stopped(results):
        stopped.append("the refit of the taken candidate")
    if not stopped:
        return Html()
    words = capitalised(f"{' and '.join(stopped)} did not converge. ")
    link = tag("a", "Which, and what to do", href=f"#{ANCHOR}")
    return tag("p", words, link, class_="warning")


def unfinished(results: Results) -> Html:
    """Return the cells whose fits did not converge, and ways out; empty if there are none."""
    cells = _cells(results)
    if not cells and not _refit_stopped(results):
        return Html()
    content = [tag("ul", *(tag("li", way) for way in _ways_out(results, cells)))]
    if cells:
        content.append(_table(results, cells))
    if len(cells) > _SHOWN:
        more = count_of(len(cells) - _SHOWN, "other candidate")
        content.append(note(f"And {more}, marked in the table of all candidates."))
    return section("Fits that did not converge", _meaning(results), *content, anchor=ANCHOR)


def _cells(results: Results) -> list[Cell]:
    return [cell for cell in results.cells if not cell.converged]


def _refit_stopped(results: Results) -> bool:
    return results.refit is not None and not results.refit.converged


def _table(results: Results, cells: list[Cell]) -> Html:
    name = "tol reached" if results.low_rank is None else "gradient norm"
    columns = {
        "kernel": lambda cell: cell.kernel_words,
        "C": lambda cell: penalty_text(cell.C),
        "fits": lambda cell: f"{results.unfinished(cell)} of {len(results.rows_of[cell.point])}",
        name: lambda cell: Keyed(two_digits(_violation(cell)), _violation(cell) or 0.0),
        "mean": lambda cell: score(cell.mean),
    }
    return listing(cells[:_SHOWN], columns, class_="numbers sortable")


def _meaning(results: Results) -> str:
    if results.low_rank is not None:
        return (
            "The solver stopped while the norm of the gradient was above the tolerance, "
            f"{low_rank.tolerance(results)}. The scores of these fits may be off; they win only "
            "where no other candidate has converged."
        )
    return (
        "The solver stopped while the violation of the optimality conditions, how far a fit is "
        f"from its optimum, was above the tolerance of {results.tol:g}. The scores and bounds of "
        "these fits may be off; they win only where no other candidate has converged."
    )


def _ways_out(results: Results, cells: list[Cell]) -> list[str]:
    """Say what to do, the cheapest first."""
    ways = []
    sound = [cell for cell in results.cells if cell.converged]
    if sound and cells:
        best = max(sound, key=lambda cell: cell.mean)
        rival = max(cells, key=lambda cell: cell.mean)
        if rival.mean <= best.mean:
            ways.append(
                "Nothing, if you only want a model: the best candidate that converged, "
                f"{named(best)}, scores {score(best.mean)}, and none of these scores more."
            )
        large = _too_large(cells, sound)
        if large is not None:
            ways.append(
                f"Leave out C from {penalty_text(large)} on: all candidates that converged have a "
                "smaller one."
            )
    worst = max((_violation(cell) or 0.0 for cell in cells), default=0.0)
    accepted = _above(worst)
    if worst > 0 and accepted <= 0.1:
        ways.append(
            f"Accept what is left: with --tol {accepted:g} (tol={accepted:g} in Python) these fits "
            "count as converged."
        )
    ways.append(
        "Try a smaller C, which makes a fit easier"
        + ("; more memory (--memory) also helps." if results.low_rank is None else ".")
    )
    return ways


def _violation(cell: Cell) -> float | None:
    return cell.kkt if cell.rank is None else cell.gradient


def _too_large(cells: list[Cell], sound: list[Cell]) -> float | None:
    """Return the least C of the unfinished cells if it is above that of every other one."""
    least = min(cell.C for cell in cells)
    return least if least > max(cell.C for cell in sound) else None


def _above(value: float) -> float:
    """Return the next number with one digit: 3e-9 for 2.1e-9."""
    rounded = float(f"{value:.0e}")
    return rounded if rounded > value else float(f"{value + 10.0 ** _exponent(value):.0e}")


def _exponent(value: float) -> int:
    return int(f"{value:e}".split("e")[1]) if value else 0


def marked(results: Results, cell: Cell) -> Html:
    """Return the name of a kernel, with a mark if fits of the cell did not converge."""
    name = unbroken(cell.label) if len(cell.label) < SHORT else cell.label
    if cell.converged:
        return joined([name])
    fits = count_of(len(results.rows_of[cell.point]), "fit")
    words = f"{results.unfinished(cell)} of {fits} not converged"
    return joined([name, tag("small", words, class_="warning")])
