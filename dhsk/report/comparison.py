"""One page of several cross-validations: which is better, by how much, and what differs."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dhsk.objects.places import Place
from dhsk.report.classes import recall_of
from dhsk.report.document import write_page
from dhsk.report.folds import Dots, fold_figure
from dhsk.report.markup import Html, Keyed, figure_row, listing, section, table, tag
from dhsk.report.words import (
    capitalised,
    cell_words,
    count_of,
    give_or_take,
    mean_and_std,
    metric,
    penalty_cell,
    score,
    shortened,
    time_cell,
    whole,
)
from dhsk.results.columns import Cell
from dhsk.results.paired import PairedDifference
from dhsk.results.parts import Results

Runs = Mapping[str, Results]


def write_comparison(runs: Runs, path: str | Place, links: Mapping[str, str] | None = None) -> None:
    """Write several cross-validations as one HTML page that loads nothing.

    Parameters
    ----------
    runs
        Results by the name of their run, in the order of the page.
    path
        The file to write; its folder must exist.
    links
        Addresses of the runs' own pages, relative to this one, by name; may be incomplete.

    Raises
    ------
    InputError
        There is no such folder.
    """
    sections = [
        _table(runs, links or {}),
        _folds(runs),
        _kernels(runs),
        _classes(runs),
        _differences(runs),
    ]
    title = f"{count_of(len(runs), 'cross-validation')} side by side"
    head = tag("header", tag("h1", title), tag("p", _lede(runs), class_="lede"))
    write_page(path, title, head, sections)


def _leader(runs: Runs) -> str:
    """Return the name of the run with the highest mean, of equals the first."""
    return max(runs, key=lambda name: runs[name].best.mean)


def _one(values: Sequence[object]) -> bool:
    return all(value == values[0] for value in values)


def _same_scorer(runs: Runs) -> bool:
    return _one([run.scoring for run in runs.values()])


def _lede(runs: Runs) -> str:
    if not _same_scorer(runs):
        names = ", ".join(sorted({metric(run) for run in runs.values()}))
        return f"These runs were scored by {names}: their scores cannot be compared."
    name = _leader(runs)
    best = runs[name]
    said = f"Highest mean {metric(best)}: {mean_and_std(best.best)}, of {name}"
    return f"{said} ({cell_words(best.best)})"


def same_folds(one: Results, other: Results) -> bool:
    """Whether two runs divided the same labels in the same way, as far as the results tell.

    Folds depend on the labels and the splitter alone, so the samples may have other features.
    """
    labels = [(run.settings or {}).get("labels") for run in (one, other)]
    return (
        (one.folds.n, one.folds.splitter) == (other.folds.n, other.folds.splitter)
        and one.classes == other.classes
        and one.class_counts == other.class_counts
        and one.scoring == other.scoring
        and (labels[0] == labels[1] or None in labels)
    )


def paired(one: Results, other: Results) -> PairedDifference:
    """Mean of the fold-wise differences of two taken cells, and its standard error."""
    first, second = ([row.score for row in r.rows_of[r.best.point]] for r in (one, other))
    return one.fold_sizes.paired(first, second)


def _table(runs: Runs, links: Mapping[str, str]) -> Html:
    leader, best = runs[_leader(runs)], {name: run.best for name, run in runs.items()}
    columns: dict[str, Callable[[str], object]] = {
        "run": lambda name: tag("a", name, href=links[name]) if name in links else name,
        "scorer": lambda name: metric(runs[name]),
        "mean": lambda name: score(best[name].mean),
        "std": lambda name: score(best[name].std),
        "less than the first": lambda name: _behind(leader, runs[name]),
        "kernel": lambda name: best[name].kernel_words,
        "C": lambda name: penalty_cell(best[name].C),
        "samples": lambda name: whole(runs[name].samples.n_samples),
        "features": lambda name: whole(runs[name].samples.dim),
        "time": lambda name: time_cell(runs[name].seconds.total),
    }
    if _same_scorer(runs):
        del columns["scorer"]
    words = (
        "The taken candidate of each run. The difference from the highest mean is paired: a mean "
        "of differences fold by fold, ± its standard error, corrected for training sets that "
        "overlap, where the runs have the same folds. A difference within about two standard "
        "errors may be chance."
    )
    ordered = sorted(runs, key=lambda name: -best[name].mean)
    shown = listing(ordered, columns, class_="numbers runs sortable")
    return section("Taken in each run", words, shown, anchor="runs")


def _behind(leader: Results, run: Results) -> object:
    if run is leader:
        return "–"
    if not same_folds(leader, run):
        return "other folds"
    found = paired(leader, run)
    words = give_or_take(found.difference, found.standard_error)
    return Keyed(words, found.difference)


def _folds(runs: Runs) -> Html:
    if not _same_scorer(runs):
        return Html()
    words = (
        "The taken candidate of each run: a dot for each fold (first fold on top), a line at the "
        "mean, a band of one standard deviation."
    )
    axis = metric(next(iter(runs.values())))
    title = f"{capitalised(axis)} by fold"
    rows = [
        Dots(shortened(name), name, run.best, run.rows_of[run.best.point])
        for name, run in runs.items()
    ]
    shown = figure_row([fold_figure("runs", f"{title}, of every run", axis, rows)])
    return section(title, words, shown, anchor="folds")


def _kernels(runs: Runs) -> Html:
    """Return the best mean of every family of kernels in every run."""
    best: dict[str, dict[str, Cell]] = {}
    for name, run in runs.items():
        sound = [cell for cell in run.cells if cell.converged]
        for cell in sound or run.cells:
            own = best.setdefault(cell.kernel, {})
            if name not in own or cell.mean > own[name].mean:
                own[name] = cell
    if not _same_scorer(runs) or len(best) < 2:
        return Html()
    rows = [
        (kernel, *(score(own[name].mean) if name in own else "–" for name in runs))
        for kernel, own in best.items()
    ]
    shown = table(("kernel", *runs), rows, class_="numbers sortable")
    words = "The highest mean of each family of kernels in each run; a dash where none was found."
    return section("Kernel by kernel", words, shown, anchor="kernels")


def _classes(runs: Runs) -> Html:
    """Return the recall of every class in every run; empty if the runs have other classes."""
    first = next(iter(runs.values()))
    if not _one([run.classes for run in runs.values()]):
        return Html()
    recalls = {name: recall_of(np.array(run.confusion)) for name, run in runs.items()}
    rows = [
        (name, whole(first.class_counts[k]), *(score(recalls[run][k]) for run in runs))
        for k, name in enumerate(first.class_names)
    ]
    words = (
        "Of the taken candidates. Recall: the share of a class that was found, in the folds that "
        "did not train on it."
    )
    shown = table(("class", "samples", *runs), rows, class_="numbers sortable")
    return section("Recall of each class", words, shown, anchor="classes")


def _differences(runs: Runs) -> Html:
    """Return the facts in which the runs differ."""
    facts = {name: _facts(run) for name, run in runs.items()}
    names = next(iter(facts.values()))
    rows = [
        (what, *(facts[run][what] for run in runs))
        for what in names
        if not _one([facts[run][what] for run in runs])
    ]
    same = [what for what in names if what not in {row[0] for row in rows}]
    words = f"The same in all runs: {', '.join(same)}." if same else ""
    if not rows:
        return section("What differs", words or "Nothing.", anchor="differences")
    shown = table(("", *runs), rows, class_="stacked")
    return section("What differs", words, shown, anchor="differences")


def _facts(run: Results) -> dict[str, str]:
    settings = run.settings or {}
    return {
        "samples": run.samples.source,
        "hash of the samples": run.samples.fingerprint,
        "map to the sphere": run.samples.sphere_map,
        "classes": whole(len(run.classes)),
        "folds": run.folds.splitter + (f", {run.repeats} times" if run.repeats > 1 else ""),
        "scorer": run.scoring,
        "classifier": "exact" if run.low_rank is None else f"low rank, {run.low_rank.loss}",
        "candidates": whole(len(run.cells)),
        "tolerance": f"{run.tol:g}",
        "class weight": str(settings.get("class_weight")),
        "dhsk": run.version,
        "date": run.created,
    }
