"""Results in a notebook: the best cells and the heat maps."""

from dhsk.report.drawing import apart
from dhsk.report.grid import heat_maps
from dhsk.report.markup import Html, joined, listing, tag
from dhsk.report.words import count_of, metric, penalty_text, score
from dhsk.results.parts import Results

SHOWN = 10
"""Cells of the table."""


def results_html(results: Results, said: str) -> Html:
    """Return one line, a table of the best cells, and the heat maps beside it."""
    columns = {
        "kernel": lambda cell: cell.kernel_words,
        "C": lambda cell: penalty_text(cell.C),
        f"mean {metric(results)}": lambda cell: score(cell.mean),
        "std": lambda cell: score(cell.std),
    }
    n = results.unfinished(*results.cells)
    warning = [tag("p", f"{count_of(n, 'fit')} did not converge: see result.report(...)")]
    maps = (tag("figure", apart(svg), style="margin: 0") for svg in heat_maps(results))
    best = listing(results.cells[:SHOWN], columns)
    shown = tag("div", best, *maps, style="display: flex; flex-wrap: wrap; gap: 24px")
    return joined([tag("p", said), *(warning if n else []), shown])
