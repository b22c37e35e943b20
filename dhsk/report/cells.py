"""Tables of what was tried: common methods, all cells; and in a notebook."""

import re
from collections.abc import Sequence

from dhsk.report import low_rank
from dhsk.report.drawing import apart
from dhsk.report.grid import heat_maps
from dhsk.report.markup import Columns, Html, code, joined, listing, section, tag
from dhsk.report.reproduce import class_weight_in_code, counting
from dhsk.report.unfinished import marked
from dhsk.report.words import (
    brief,
    capitalised,
    count_of,
    metric,
    penalty_cell,
    penalty_text,
    score,
    time_cell,
    two_digits,
    whole,
)
from dhsk.results.baselines import HOMES, Baseline
from dhsk.results.columns import Cell, grouped
from dhsk.results.parts import Results

EXACT = (
    "Tol reached is the largest violation of the conditions of optimality, which scikit-learn's "
    "SVC compares with tol; gap the largest duality gap as a part of the primal objective; VC "
    "bound the largest and effective size the smallest, over pairs of classes and folds (see "
    "Capacity)"
)

OPEN_ROWS = 20
"""Cells from which on the table scrolls in a box of its own."""

SHOWN = 10
"""Cells of the table in a notebook."""


def common(results: Results) -> Html:
    """Return the best setting of each method, and the code of the best; empty without any.

    Where no score is clear of guessing there is no code: none is to be used.
    """
    found, beside = results.baselines, results.beside
    if not found.tried and not found.left_out:
        return Html()
    left_out = f" Left out: {'; '.join(found.left_out)}." if found.left_out else ""
    words = f"What is usually done with such data, from scikit-learn, on the same folds.{left_out}"
    if beside is None:
        return section("Common methods", words, anchor="common")
    said = beside.difference if results.unlearnt else beside.words
    parts = [tag("p", f"{capitalised(said)}."), _methods(results)]
    if not results.unlearnt:
        best = code("\n".join(common_method(results, beside.baseline)))
        parts += [tag("p", "The best of them:"), best]
    return section("Common methods", words, *parts, anchor="common")


def common_method(results: Results, baseline: Baseline) -> list[str]:
    """Return lines of Python that fit a common method as its folds were, to samples X, y."""
    weight, made = class_weight_in_code(results), baseline.code
    lines = [*_imports(made), *counting(results)]
    predicted = ["model.predict(X_new)"] if counting(results) else []
    if not weight:
        return [*lines, f"model = {made}.fit(X, y)", *predicted]
    # Not as class_weight: one-vs-rest classifiers leave the weight of the rest at 1 by that.
    last = re.search(r"(\w+)\([^()]*\)\)$", made)  # of the pipeline's steps
    step = f"{last[1].lower()}__" if last else ""
    return [
        *lines,
        "from sklearn.utils.class_weight import compute_sample_weight",
        f"weights = compute_sample_weight({weight}, y)",
        f"model = {made}.fit(X, y, {step}sample_weight=weights)",
        *predicted,
    ]


def _imports(made: str) -> list[str]:
    """Return the lines that import what an expression names."""
    words = set(re.findall(r"\w+", made))
    modules = {"dhsk": "import dhsk", "np": "import numpy as np"}
    lines = [line for name, line in modules.items() if name in words]
    found = {
        module: [n for n, own in HOMES.items() if own == module and n in words]
        for module in sorted(set(HOMES.values()))
    }
    return lines + [f"from {m} import {', '.join(names)}" for m, names in found.items() if names]


def _methods(results: Results) -> Html:
    tried = grouped(results.baselines.tried, lambda one: one.method)
    columns = {
        "method": lambda one: one.method,
        "C": lambda one: "–" if one.C is None else f"{one.C:g}",
        f"mean {metric(results)}": lambda one: score(one.mean),
        "std": lambda one: score(one.std),
        "settings": lambda one: len(tried[one.method]),
        "all fits": lambda one: time_cell(sum(other.seconds for other in tried[one.method])),
    }
    return listing(results.baselines.best_of_each, columns, class_="numbers")


def cells(results: Results) -> Html:
    """Return the table of all cells; a long one scrolls in a box of its own."""
    long = " long" if len(results.cells) > OPEN_ROWS else ""
    first = "Best first"
    if results.best != results.decision.best:
        first = "The taken candidate first, then by mean"
    words = (
        f"{first}; mean and standard deviation are of the {metric(results)}. "
        f"{EXACT if results.low_rank is None else low_rank.proof(results)}; the times of the fits "
        f"are summed. A click on a head sorts the table{', which scrolls' if long else ''}."
    )
    shown = listing(results.cells, _columns(results), class_=f"numbers cells sortable{long}")
    return section("All candidates", words, shown, anchor="cells")


def _columns(results: Results) -> Columns[Cell]:
    """Cells of the table by their heads."""
    exact = results.low_rank is None
    rank: Columns[Cell] = {} if exact else {"rank": lambda cell: whole(cell.rank or 0)}
    scaled: Columns[Cell] = {"C × variance": lambda cell: brief(cell.C_scaled)}
    return {
        "kernel": lambda cell: marked(results, cell),
        **rank,
        "C": lambda cell: penalty_cell(cell.C),
        **({} if results.best.C_scaled is None else scaled),
        "mean": lambda cell: score(cell.mean),
        "std": lambda cell: score(cell.std),
        **(_EXACT if exact else _LOW_RANK),
        "fits": lambda cell: time_cell(cell.seconds),
    }


_EXACT: Columns[Cell] = {
    "support": lambda cell: whole(cell.n_support or 0),
    "tol reached": lambda cell: two_digits(cell.kkt),
    "gap": lambda cell: two_digits(cell.gap),
    "VC bound": lambda cell: brief(cell.vc),
    "effective size": lambda cell: brief(cell.effective),
}

_LOW_RANK: Columns[Cell] = {
    "trace error": lambda cell: brief(cell.trace_error),
    "gradient norm": lambda cell: two_digits(cell.gradient),
    "gap": lambda cell: two_digits(cell.gap),
}


def brief_cells(results: Results, cells: Sequence[Cell]) -> Html:
    """Return a table of cells with their scores alone."""
    columns: Columns[Cell] = {
        "kernel": lambda cell: cell.kernel_words,
        "C": lambda cell: penalty_text(cell.C),
        f"mean {metric(results)}": lambda cell: score(cell.mean),
        "std": lambda cell: score(cell.std),
    }
    return listing(cells, columns, class_="numbers")


def results_html(results: Results, said: str) -> Html:
    """Return one line, the advice, a table of the best cells, and the heat maps beside it."""
    n = results.unfinished(*results.cells)
    warning = [tag("p", f"{count_of(n, 'fit')} did not converge: see result.report(...)")]
    maps = (tag("figure", apart(svg), style="margin: 0") for svg in heat_maps(results))
    best = brief_cells(results, results.cells[:SHOWN])
    shown = tag("div", best, *maps, style="display: flex; flex-wrap: wrap; gap: 24px")
    legend = (
        "In the maps the taken candidate is outlined; those with a dot are within one standard "
        "error of the highest mean."
    )
    advice = tag("p", f"Advice: {results.advice}.")
    return joined([tag("p", said), advice, *(warning if n else []), shown, tag("p", legend)])
