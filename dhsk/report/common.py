"""Section on common methods of scikit-learn, beside the kernels on the same folds."""

from dhsk.report.markup import Html, code, listing, section, tag
from dhsk.report.words import capitalised, metric, score, time_cell
from dhsk.results.baselines import Baseline
from dhsk.results.parts import Results


def common(results: Results) -> Html:
    """Return the best setting of each method, and the code of the best; empty without any."""
    found, beside = results.baselines, results.beside
    if not found.tried and not found.left_out:
        return Html()
    left_out = f" Left out: {'; '.join(found.left_out)}." if found.left_out else ""
    words = f"What is usually done with such data, from scikit-learn, on the same folds.{left_out}"
    if beside is None:
        return section("Common methods", words, anchor="common")
    best = code(f"model = {beside.baseline.code}.fit(X, y)")
    parts = (
        tag("p", f"{capitalised(beside.words)}."),
        _table(results),
        tag("p", "The best of them:"),
    )
    return section("Common methods", words, *parts, best, anchor="common")


def _table(results: Results) -> Html:
    tried: dict[str, list[Baseline]] = {}
    for one in results.baselines.tried:
        tried.setdefault(one.method, []).append(one)
    columns = {
        "method": lambda one: one.method,
        "C": lambda one: "–" if one.C is None else f"{one.C:g}",
        f"mean {metric(results)}": lambda one: score(one.mean),
        "std": lambda one: score(one.std),
        "settings": lambda one: len(tried[one.method]),
        "all fits": lambda one: time_cell(sum(other.seconds for other in tried[one.method])),
    }
    return listing(results.baselines.best_of_each, columns, class_="numbers")
