"""Results in a notebook: the best cells and the heat maps."""

from dhsk.report.drawing import apart
from dhsk.report.grid_figure import grids
from dhsk.report.markup import Html, joined, table, tag
from dhsk.report.words import count_of, label, metric, penalty_text, score
from dhsk.results.parts import Results

SHOWN = 10
"""Cells of the table."""


def results_html(results: Results, said: str) -> Html:
    """Return one line, a table of the best cells, and the heat maps beside it."""
    head = ("kernel", "C", f"mean {metric(results)}", "std")
    rows = [
        (label(c), penalty_text(c.C), score(c.mean), score(c.std)) for c in results.cells[:SHOWN]
    ]
    n = results.unfinished(*results.cells)
    warning = [tag("p", f"{count_of(n, 'fit')} did not converge: see result.report(...)")]
    maps = (tag("figure", apart(svg), style="margin: 0") for svg in grids(results))
    shown = tag("div", table(head, rows), *maps, style="display: flex; flex-wrap: wrap; gap: 24px")
    return joined([tag("p", said), *(warning if n else []), shown])
