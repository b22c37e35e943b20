"""Section on common methods of scikit-learn, beside the kernels on the same folds."""

from dhsk.report.markup import Html, Keyed, code, section, table, tag
from dhsk.report.words import capitalised, duration, metric, score
from dhsk.results.baselines import Baseline
from dhsk.results.parts import Results


def common(results: Results) -> Html:
    """Return the best setting of each method, and the code of the best; empty without any."""
    found = results.baselines
    if not found.tried and not found.left_out:
        return Html()
    left_out = f" Left out: {'; '.join(found.left_out)}." if found.left_out else ""
    note = f"What is usually done with such data, from scikit-learn, on the same folds.{left_out}"
    parts = []
    if results.beside is not None:
        head = ("method", "C", f"mean {metric(results)}", "std", "settings", "all fits")
        rows = [_row(results, one) for one in found.best_of_each]
        parts = [
            tag("p", f"{capitalised(results.beside.words)}."),
            table(head, rows, class_="numbers"),
            tag("p", "The best of them:"),
            code(f"model = {results.beside.baseline.code}.fit(X, y)"),
        ]
    return section("Common methods", note, *parts, anchor="common")


def _row(results: Results, one: Baseline) -> tuple[object, ...]:
    own = [other for other in results.baselines.tried if other.method == one.method]
    seconds = sum(other.seconds for other in own)
    C = "–" if one.C is None else f"{one.C:g}"
    return (
        one.method, C, score(one.mean), score(one.std), len(own),
        Keyed(duration(seconds), seconds),
    )  # fmt: skip
