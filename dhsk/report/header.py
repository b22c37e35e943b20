"""Top of the page: the result in one sentence, warnings, key numbers."""

from itertools import starmap
from typing import TypeAlias

import numpy as np

from dhsk.report import low_rank, unfinished
from dhsk.report.classes import recall_of
from dhsk.report.markup import Html, tag
from dhsk.report.words import (
    brief,
    capitalised,
    cell_words,
    count_of,
    duration,
    folds_of,
    mean_and_std,
    metric,
    score,
    two_digits,
    unbroken,
    whole,
)
from dhsk.results.parts import Results

Tiles: TypeAlias = tuple[tuple[str, str, str], ...]
"""Names, values and details."""


def header(title: str, results: Results) -> Html:
    """Return title, result, warnings and key numbers."""
    lede = tag("p", _lede(results), class_="lede")
    warning, tiles = unfinished.warning(results), _tiles(results)
    return tag("header", tag("h1", title), lede, _decision(results), warning, tiles)


def _decision(results: Results) -> Html:
    """Say which kernel is the simplest that is about as good; nothing of one that learnt alone."""
    decision = results.decision
    if len(decision.compared) == 1 and not results.baselines.tried and not results.unlearnt:
        return Html()
    unseen = "" if results.unlearnt else decision.unseen
    sentence = ". ".join(filter(None, (results.advice, capitalised(unseen))))
    for sign in (" ± ", " = "):
        sentence = sentence.replace(sign, unbroken(sign))
    return tag("p", f"Decision: {sentence}.", class_="decision")


def _lede(results: Results) -> str:
    best = results.best
    word = "Best and taken" if best == results.decision.best else "Taken"
    word += " of the kernels" if results.beside is not None and results.beside.ahead else ""
    word = "Not clear of guessing" if results.unlearnt else word
    said = (
        f"{word}: {cell_words(best)}: mean {metric(results)} {mean_and_std(best)} over "
        f"{folds_of(results)}"
    )
    if results.beside is not None and results.beside.ahead and not results.unlearnt:
        other = results.beside.baseline
        said = f"Take {other.brief}, of scikit-learn: {mean_and_std(other)}. {said}"
    if results.test is None:
        return said
    held_out = f"{score(results.test.score)} on {count_of(results.test.n, 'held-out sample')}"
    return f"{said}, {held_out}"


def _tiles(results: Results) -> Html:
    samples, best = results.samples, results.best
    fits = count_of(len(results.rows), "fit")
    shared = f"{duration(results.seconds.gram)} for the {prepared(results)}"
    tiles = (
        (f"mean {metric(results)}", score(best.mean), _comparison(results)),
        ("samples", whole(samples.n_samples), _features(results)),
        ("classes", whole(len(results.classes)), _class_sizes(results)),
        ("candidates", whole(len(results.cells)), f"{fits} on the folds"),
        *(_exact_tiles(results) if results.low_rank is None else _low_rank_tiles(results)),
        ("total time", duration(results.seconds.total), shared),
    )
    return tag("dl", *starmap(_tile, tiles), class_="tiles")


def _tile(name: str, value: str, detail: str) -> Html:
    value, detail = tag("dd", value, class_="value"), tag("dd", detail, class_="detail")
    return tag("div", tag("dt", name), value, detail)


def _exact_tiles(results: Results) -> Tiles:
    best = results.best
    asked = f"how far the worst fit is from its optimum; tolerance {results.tol:g}"
    return (
        ("support vectors", whole(best.n_support or 0), "taken candidate, mean over folds"),
        ("tol reached", two_digits(best.kkt), asked),
        ("mean recall", score(_mean_recall(results)), "every class counts the same"),
    )


def _low_rank_tiles(results: Results) -> Tiles:
    """Return tiles in place of the exact ones; the recalls are in the table of classes."""
    best = results.best
    how = f"taken candidate, landmarks by {low_rank.chosen(results)}"
    missed = "share of the kernel matrix not in the features"
    worst = "relative to that at 0, as tol is; taken candidate, worst fold"
    return (
        ("features", whole(best.rank or 0), how),
        ("trace error", brief(best.trace_error), missed),
        ("gradient norm", two_digits(best.gradient), worst),
    )


def prepared(results: Results) -> str:
    """Return the name of what the fits share."""
    return "Gram matrix" if results.low_rank is None else "features"


def _comparison(results: Results) -> str:
    """Give an accuracy its baseline, and any other score the accuracy of the same fits."""
    if results.scoring == "accuracy":
        largest = max(results.tested_counts) / sum(results.tested_counts)
        return f"always the largest class: {score(largest)}"
    counts = np.array(results.confusion)
    return f"accuracy of the same fits: {score(np.trace(counts) / max(counts.sum(), 1))}"


def _features(results: Results) -> str:
    samples = results.samples
    features = count_of(samples.dim, "feature")
    if samples.nnz is None:
        return f"{features}, dense"
    share = 100 * samples.nnz / max(samples.n_samples * samples.dim, 1)
    return f"{features}, {unbroken(f'{share:.2g} %')} not zero"


def _class_sizes(results: Results) -> str:
    low, high = min(results.class_counts), max(results.class_counts)
    return f"{whole(low)} samples each" if low == high else f"{whole(low)} to {whole(high)} samples"


def _mean_recall(results: Results) -> float:
    counts = np.array(results.confusion)
    known = counts.sum(axis=1) > 0
    return float(recall_of(counts)[known].mean()) if known.any() else 0.0
