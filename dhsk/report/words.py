"""Numbers and cells as text of the page."""

from collections.abc import Iterable

from dhsk.report.markup import Keyed
from dhsk.results.baselines import Baseline
from dhsk.results.columns import ONE_VS_REST, Cell, GridPoint, is_rest
from dhsk.results.columns import penalty_text as penalty_text
from dhsk.results.parts import Results

LABEL_WIDTH = 40
"""Longest name of a kernel in a figure, in characters; the tables have the full ones."""


def metric(results: Results) -> str:
    """Return the name of the scorer in a sentence: accuracy, ROC AUC, balanced accuracy."""
    return results.scoring.replace("_", " ").replace("roc auc", "ROC AUC")


def capitalised(text: str) -> str:
    """Return the text as the start of a heading; capitals within it stay."""
    return text[:1].upper() + text[1:]


def whole(value: float) -> str:
    """Return a count with separated thousands: 4,199."""
    return f"{value:,.0f}"


def short_count(value: float) -> str:
    """Return a count in at most five characters: 9905, 15.9k, 159k, 1.6M."""
    if value < 9999.5:
        return f"{value:.0f}"
    if value < 999_500:
        return f"{value / 1000:.3g}k"
    return f"{value / 1e6:.3g}M"


def score(value: float) -> str:
    """Return a score with three decimals and a true minus sign, but no minus zero."""
    return f"{value:z.3f}".replace("-", "\N{MINUS SIGN}")


def brief(value: float | None) -> str:
    """Return a number with three digits, a large one without decimals; a dash for None."""
    if value is None:
        return "–"
    return f"{value:.3g}" if value < 999.5 else whole(value)


def two_digits(value: float | None) -> str:
    """Return a number of which only the order of magnitude matters; a dash for None."""
    return "–" if value is None else f"{value:.2g}"


def penalty_cell(C: float) -> Keyed:
    """Return C as a cell of a table."""
    return Keyed(penalty_text(C), C)


def time_cell(seconds: float) -> Keyed:
    """Return a duration as a cell of a table."""
    return Keyed(duration(seconds), seconds)


def listed(values: Iterable[float]) -> str:
    """Return numbers with commas: 0.7, 1, 1.4."""
    return ", ".join(f"{value:g}" for value in values)


def mean_and_std(cell: Cell | Baseline) -> str:
    """Return them for a sentence, where ± is a standard error: 0.928 (std 0.006)."""
    return unbroken(f"{score(cell.mean)} (std {_deviation(cell.std)})")


def spread(cell: Cell) -> str:
    """Return mean and standard deviation over the folds: 0.928 ± 0.006, never broken."""
    return give_or_take(cell.mean, cell.std)


def give_or_take(value: float, deviation: float) -> str:
    """Return a score and its deviation: 0.999 ± 0.0004, never broken."""
    return unbroken(f"{score(value)} ± {_deviation(deviation)}")


def _deviation(value: float) -> str:
    """Return a deviation, which is 0 only if it is: 0.006, 0.0004."""
    return f"{value:.1g}" if 0 < value < 0.0005 else score(value)


def unbroken(text: str) -> str:
    """Return the text with blanks at which no line ends."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def duration(seconds: float) -> str:
    """Return a duration in its natural unit: 0.21 s, 40.3 s, 3 min 5 s, 2 h 10 min."""
    minutes, rest = divmod(round(seconds), 60)
    if seconds < 1:
        words = f"{seconds:.2g} s"
    elif seconds < 60:
        words = f"{seconds:.1f} s"
    elif minutes < 60:
        words = f"{minutes} min {rest} s"
    else:
        words = f"{minutes // 60} h {minutes % 60} min"
    return unbroken(words)


def count_of(n: int, one: str) -> str:
    """Return a number with its noun: 1 fold, 5 folds."""
    return f"{whole(n)} {one}{'' if n == 1 else 's'}"


def folds_of(results: Results) -> str:
    """Return the number of folds: 5 folds, 15 folds (3 repeats of 5)."""
    said, repeats = count_of(results.folds.n, "fold"), results.repeats
    return said if repeats == 1 else f"{said} ({repeats} repeats of {results.folds.n // repeats})"


def shortened(text: str, width: int = LABEL_WIDTH) -> str:
    """Return the text on one line of at most `width` characters, cut in its middle.

    Long names tend to differ at their ends, so both are kept.
    """
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    tail = (width - 1) // 3
    return f"{line[: width - 1 - tail].rstrip()}…{line[len(line) - tail :].lstrip()}"


def named(point: GridPoint) -> str:
    """Return kernel, rank and C in brief: heat s=1, rank 2000, C = 10."""
    return f"{point.kernel_words}, {penalty_words(point)}"


def cell_words(cell: Cell) -> str:
    """Return kernel, rank and C: heat kernel at time scale 1, rank 2,000, C = 10."""
    given, _, scaled = penalty_words(cell).partition(" (")
    penalty = unbroken(given) + (f" ({unbroken(scaled)}" if scaled else "")
    if cell.rank is None:
        return f"{kernel_words(cell)}, {penalty}"
    return f"{kernel_words(cell)}, {unbroken(f'rank {whole(cell.rank)}')}, {penalty}"


def penalty_words(point: GridPoint) -> str:
    """Return the penalty: C = 10, or C = 38480 (5 / variance)."""
    if point.C_scaled is None:
        return f"C = {point.C:g}"
    return f"C = {penalty_text(point.C)} ({point.C_scaled:g} / variance)"


def kernel_words(cell: Cell) -> str:
    """Return the kernel with its parameter: heat kernel at time scale 1."""
    rest = ONE_VS_REST if is_rest(cell.kernel) else ""
    given = {"at time scale": cell.time_scale, "at time": cell.time, "with sigma": cell.sigma}
    said = next((f" {words} {value:g}" for words, value in given.items() if value is not None), "")
    return f"{cell.kernel.removesuffix(ONE_VS_REST)} kernel{said}{rest}"
