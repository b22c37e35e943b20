"""Summary that `dhsk cv` prints: the best cells, what to take, warnings."""

from typing import Any, Final

from dhsk.commands.console import print_table, say, say_wrapped
from dhsk.report.words import listed, metric, named
from dhsk.results.baselines import Baseline, Baselines
from dhsk.results.columns import Cell, flat
from dhsk.results.decision import simplicity
from dhsk.results.parts import Results, SearchStage
from dhsk.units import human_seconds

LOW_RANK_WORDS = (
    "trace error: share of the kernel matrix's trace that the features miss; gradient norm: as a "
    "part of that at 0, where fits stop at tol times the share of the smaller class)"
)
"""What the columns of classifiers on Nyström features are."""


def print_result(result: Results) -> None:
    """Print the best cells, the search, what to take, and warnings about it."""
    word = result.scoring.replace("_", " ")
    decision, best = result.decision, result.decision.best
    _print_cells(result, word)
    for stage in result.search:
        say_wrapped("tried:  ", f"{_tried(stage, result.search[0])} ({stage.why})")
    if result.search_ended:
        say_wrapped("search: ", result.search_ended)
    say_wrapped("best:   ", _in_words(result, best))
    _print_rare(result)
    compared = len(decision.compared) > 1 or result.best != best or result.baselines.tried
    if compared or result.unlearnt:
        say_wrapped("decide: ", result.advice)
    if "rank" in (ends := result.ends_of_grid):  # C and time were searched, or are on the page
        say_wrapped("beware: ", f"what is taken has {ends}: better may lie outside the grid")
    if decision.unseen and not result.unlearnt:
        say_wrapped("beware: ", decision.unseen)
    unfinished = result.unfinished(*result.summary)
    if unfinished:
        say(f"beware: {unfinished} fits did not reach the tolerance of {result.tol:g}")
    _print_few_samples(result)
    if result.test is not None:
        say(f"test:   {word} {result.test.score:.4f} on {result.test.n:,} samples held out")


def rows_of_result(result: Results) -> list[tuple[str, str]]:
    """What was found, in few words, as pairs of what and value."""
    samples, best = result.samples, result.decision.best
    tried = f"{len(result.summary):,} candidates, {result.created}, by dhsk {result.version}"
    return [
        ("samples", f"{samples.n_samples:,} x {samples.dim:,}, {len(result.classes)} classes"),
        ("best", _in_words(result, best)),
        *([("taken", _in_words(result, result.best))] if result.best != best else []),
        ("decide", result.advice),
        ("tried", tried),
    ]


def facts_of_result(result: Results) -> dict[str, Any]:
    """What was found, for programs."""
    best, taken = flat(result.decision.best), flat(result.best)
    return {"best": best, "taken": taken, "advice": result.advice}


def _in_words(result: Results, cell: Cell) -> str:
    return f"{named(cell)}: mean {metric(result)} {cell.mean:.4f} over {result.folds.n} folds"


def _tried(stage: SearchStage, first: SearchStage) -> str:
    """Time scales of a stage, or values of C, or both if these are not those of the first one."""
    parts = [] if stage.samples is None else [f"on {stage.samples:,} samples"]
    if stage.time_scales:
        parts.append("time scales " + listed(stage.time_scales))
    if stage.C_scaled != first.C_scaled or not parts:
        own = f"{listed(stage.C_scaled)} / variance" if stage.C_scaled else listed(stage.C)
        parts.append(f"C = {own}")
    return ", ".join(parts)


_MOST_NAMED: Final = 5
"""Most classes of which each is named."""


_MOST_OF_ONE: Final = 0.8
"""Share of the largest class from which on an accuracy hides what is found of the others."""


def _print_rare(result: Results) -> None:
    """Print how many samples of the small classes are found, and what the largest alone gives."""
    tested, repeats = result.tested_counts, result.repeats
    share = max(tested) / sum(tested)
    found = sorted(
        (sum(row) / repeats, row[k] / repeats, result.class_names[k])
        for k, row in enumerate(result.confusion)
        if any(row)
    )
    if result.scoring != "accuracy" or share <= _MOST_OF_ONE:
        _print_unfound([(name, of) for of, right, name in found if not right], result)
        return
    *rare, (_, _, largest) = found
    parts = [f"{name}: {right:,.0f} of {of:,.0f}" for of, right, name in rare[:_MOST_NAMED]]
    more = ", ..." if len(rare) > _MOST_NAMED else ""
    own = f"{', '.join(parts)}{more} are found by {result.best.brief}; " if rare else ""
    say_wrapped("rare:   ", f'{own}always "{largest}" is right for {share:.3f}')


def _print_unfound(classes: list[tuple[str, float]], result: Results) -> None:
    """Print the classes of which no sample is found, and how many they have."""
    if classes:
        own = ", ".join(f"{name} ({of:,.0f})" for name, of in classes[:_MOST_NAMED])
        more = ", ..." if len(classes) > _MOST_NAMED else ""
        which = f"{len(classes)} of {len(result.class_names)} classes: {own}{more}"
        weighted = (result.settings or {}).get("class_weight") is not None
        way = "" if weighted else "; --class-weight balanced weighs them more"
        say_wrapped("beware: ", f"{result.best.brief} has a recall of 0 for {which}{way}")


def _print_few_samples(result: Results) -> None:
    """Print the classes that were left out, and those that some folds lack in training."""
    from dhsk.validation.folds import sizes  # loads scikit-learn

    dropped = result.dropped_classes
    if dropped:
        found = sizes([(few.name, few.samples) for few in dropped])
        total = sum(few.samples for few in dropped)
        say_wrapped("beware: ", f"{found} too few samples: left out, {total:,} samples in all")
    untrained = result.untrained_classes
    if len(untrained) > _MOST_NAMED:
        say_wrapped(
            "beware: ",
            f"{len(untrained):,} classes of few samples are missing where some folds were trained: "
            "they count them wrong (--min-class 5 leaves out those of fewer than 5)",
        )
        return
    for few in untrained:
        say_wrapped(
            "beware: ",
            f"class {few.name} ({few.samples:,} in all) is missing where {few.folds} of "
            f"{result.folds.n} folds were trained: they count it wrong",
        )


def _print_cells(result: Results, word: str) -> None:
    """Print the best cell of every kernel and rank, or the best cells of the only one."""
    low_rank = result.low_rank is not None
    # Of equals the one that the decision takes is the first, whatever their last bits.
    ranked = sorted(result.summary, key=lambda cell: (-round(cell.mean, 9), simplicity(cell)))
    best = {(cell.kernel, cell.rank): cell for cell in reversed(ranked)}
    several = len(best) > 1
    firsts = [cell for cell in ranked if cell is best[cell.kernel, cell.rank]]
    shown = firsts if several else ranked[:10]
    scores = [f"mean {word}", "std"]
    if low_rank:
        head = ["kernel", "rank", "C", *scores, "trace error", "gradient norm"]
    else:
        head = ["kernel", "C", *scores, "support vectors", "tol reached"]
    lines = [(cell.mean, _line(cell)) for cell in shown]
    beside = result.baselines.best_of_each
    lines += [(one.mean, _baseline_line(one, low_rank=low_rank)) for one in beside]
    print_table(head, [line for _, line in sorted(lines, key=lambda line: -line[0])])
    if len(ranked) > len(shown):
        each = f"the best candidate of each kernel{' and rank' if low_rank else ''}"
        which = each if several else "the ten best candidates"
        say(f"({which}; all {len(ranked)} in results.csv)")
    if low_rank:
        say_wrapped("(", LOW_RANK_WORDS)
    _print_baselines(result.baselines)


def _print_baselines(baselines: Baselines) -> None:
    """Print where the lines of common methods are from, and which were left out."""
    if baselines.tried:
        names = ", ".join(one.method for one in baselines.best_of_each)
        seconds = sum(one.seconds for one in baselines.tried)
        tried = f"{len(baselines.tried)} candidates, {human_seconds(seconds)}"
        say_wrapped("(", f"of scikit-learn, on the same folds: {names}; {tried})")
    if baselines.left_out:
        why = "; ".join(baselines.left_out)
        more = "; --baselines tries these too" if " takes " in why else ""
        say_wrapped("(", f"common methods left out: {why}{more})")


def _baseline_line(one: Baseline, *, low_rank: bool) -> tuple[str, ...]:
    """Texts of the line of a common method, which has no certificate."""
    rank = ("–",) if low_rank else ()
    C = "–" if one.C is None else f"{one.C:g}"
    return (one.method, *rank, C, f"{one.mean:.4f}", f"{one.std:.4f}", "–", "–")


def _line(cell: Cell) -> tuple[str, ...]:
    tried = (f"{cell.C:g}", f"{cell.mean:.4f}", f"{cell.std:.4f}")
    if cell.rank is None:
        return (cell.label, *tried, f"{cell.size:.0f}", f"{cell.kkt:.1e}")
    return (cell.label, f"{cell.rank}", *tried, f"{cell.trace_error:.2g}", f"{cell.gradient:.1e}")
