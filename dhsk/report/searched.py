"""What a search tried: its stages, and what rounds on samples have left."""

from collections.abc import Iterator

from dhsk.report.markup import Html, joined, section, table, tag
from dhsk.report.words import count_of, listed, metric, named, score, whole
from dhsk.results.columns import Cell, grouped, rows_by_point, summarise
from dhsk.results.decision import comparisons, highest, rivals_in
from dhsk.results.parts import Results, SearchRound, SearchStage

ALL = "all"
"""Samples of the last round."""


def search(results: Results) -> Html:
    """Return the stages of a search; empty if there was none."""
    trials = results.search
    if not trials:
        return Html()
    on_samples = ("samples",) if results.rounds else ()
    head = ("round", *on_samples, "time scales", "C", "best", f"mean {metric(results)}", "why")
    rows = [
        (number, *([_samples(trial)] if on_samples else []), *_columns(trial))
        for number, trial in enumerate(trials, start=1)
    ]
    stages = table(head, rows, class_="tried stacked")
    return section("What was tried", _words(results), stages, _left(results), anchor="search")


def _words(results: Results) -> str:
    """How the search went, in sentences."""
    ended = f" The search {results.search_ended}." if results.search_ended else ""
    if results.rounds:
        sizes = " and ".join(whole(one.samples) for one in results.rounds)
        return (
            f"Everything was tried on a sample ({sizes} of {whole(results.samples.n_samples)} "
            'samples), and what may win on more: search="full" (--search full) tries everything '
            f"on all.{ended}"
        )
    of_times = sum(bool(trial.time_scales) for trial in results.search)
    others = len(results.search) - of_times
    if not of_times:
        return f"Kernels and C were sought in {count_of(others, 'round')}.{ended}"
    more = f", C in {others} more" if others else ""
    return f"The time scale was sought in {count_of(of_times, 'round')}{more}.{ended}"


def _samples(stage: SearchStage) -> str:
    return ALL if stage.samples is None else whole(stage.samples)


def _columns(trial: SearchStage) -> tuple[str, ...]:
    return (
        listed(trial.time_scales) or "–",
        f"{listed(trial.C_scaled)} / variance" if trial.C_scaled else listed(trial.C),
        named(trial.best),
        score(trial.best.mean),
        trial.why,
    )


def _left(results: Results) -> Html:
    """What each round has left for the next one, and on what evidence; empty without rounds."""
    if not results.rounds:
        return Html()
    head = (
        "best of a kind", "samples", f"mean {metric(results)}", "below the best", "went on",
    )  # fmt: skip
    rows = [row for one in results.rounds for row in _families(results, one)]
    words = (
        "What went on, on what evidence (± one standard error, corrected, of differences paired "
        "over the folds); all cells are in results.csv, with the number of samples."
    )
    return joined([tag("p", words), table(head, rows, class_="stacked")])


def _families(results: Results, one: SearchRound) -> Iterator[tuple[str, ...]]:
    """Rows of a round: the best cell of each family, and with what kernels and C it went on."""
    summary, rows = summarise(one.rows), rows_by_point(one.rows)
    apart = {found.cell: found for found in comparisons(summary, rows, results.fold_sizes)}
    for own in grouped(rivals_in(summary), lambda cell: cell.kernel).values():
        top: Cell = highest(own)
        kept = [p for p in one.kept if p.kernel == top.kernel]
        went = "; ".join(
            f"{label}, C = {listed(p.penalty for p in points)}"
            for label, points in grouped(kept, lambda p: p.label).items()
        )
        behind = apart[top].words if apart[top].difference else "–"
        yield named(top), whole(one.samples), score(top.mean), behind, went
