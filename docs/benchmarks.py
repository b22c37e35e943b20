"""Makes docs/benchmarks.md and its pictures: `python -m docs.benchmarks`, from the root of a clone.

What it shows is in tests/benchmarks/records, where benchmarks put it that are run with `--record`.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Final

from dhsk.report.drawing import POINT, drawing, frame, logarithmic
from tests.benchmarks.records import COSTS, Record, Topic, number_of, ratio_of, read, words_of

DOCS: Final = Path(__file__).parent

PAGE: Final = DOCS / "benchmarks.md"

SCRIPTS: Final = "python tests/benchmarks/"

HEAD: Final = f"""# How fast it is

Find what is like yours, and read across. The **ratio** is the peer's figure over that of dhsk:
above 1, dhsk is faster, smaller or nearer. In brackets is the score of the result, an accuracy
unless said. *Once*: a single run. *Busy*: others computed on the machine meanwhile, so that seconds
are too many, on both sides.

Commands are run in a clone, after `{SCRIPTS}` where they begin with a file; `DIR` is a folder of
the data sets, which the project does not ship. The page is made from
[what they wrote](../tests/benchmarks/records), with dates, commits and versions: with `--record` a
command keeps what it finds, and `python -m docs.benchmarks` makes the page anew.
"""

SECTIONS: Final[dict[Topic, tuple[str, str]]] = {
    "svc": (
        "SVC and SVR",
        "On samples like those of the names; more is in [SVC, faster](svc.md).",
    ),
    "svm": ("Exact SVMs", "Gaussian kernels; on MNIST ours is the heat kernel."),
    "search": ("Grids and searches", "Several kernels, times and C on the same folds."),
    "texts": ("Texts", "Counts of words, as sparse samples."),
    "low_rank": (
        "Low rank",
        "Features from landmarks, for many samples, and their trace error (the part of the kernel "
        "that the features miss).",
    ),
    "methods": (
        "Ridge and other methods",
        "Regression, spectra, neighbours, graphs and densities. Scores of ridge are errors.",
    ),
    "gram": ("Gram matrices", "Several of the peers are the least that the same result takes."),
    "kernels": ("Kernel values", "On one core."),
    "memory": ("Memory", "Of all processes together, at the peak."),
    "interruption": ("Interruption", "Runs that are killed, and begun again by the same command."),
    "agreement": ("Agreement with other packages", "Errors are against ball arithmetic."),
}  # fmt: skip

PEER: Final = "#8f8f8f"

STYLE: Final = (
    "<style>svg{--ink:#222;--line:#e4e4e4;--card:#fff;--own:#31688e;--peer:#a8a8a8;"
    "background:var(--card)}@media(prefers-color-scheme:dark){svg{--ink:#e6e6e6;--line:#444;"
    "--card:#1b1f24;--own:#6fb1dc;--peer:#7d7d7d}}</style>"
)
"""Colours of a picture, with its background: pages may be dark where the system is light."""

LONGEST: Final = 34
"""Letters of a line beside the bars."""

SMALL: Final = {"va": "center", "size": 7.5}
"""Texts beside bars."""

BAR: Final = 0.15
"""Height of a bar, in inches."""


def letters() -> dict[str, str]:
    """Letter of each kind of machine, in the order in which the page meets them."""
    kinds = dict.fromkeys(one.machine for topic in SECTIONS for one in read(topic))
    return {kind: chr(ord("A") + number) for number, kind in enumerate(kinds)}


def row_of(one: Record, letter: str) -> str:
    """Return a row of a table; peers stand below each other."""
    peers = [f"{peer.name}: {words_of(peer.figure, '', peer.score)}" for peer in one.peers]
    ratios = ["–" if peer.ratio is None else ratio_of(peer.ratio) for peer in one.peers]
    machine = [letter, *["once"] * (one.runs == 1), *["busy"] * bool(one.busy)]
    command = f"`{one.command.removeprefix(SCRIPTS)}`"
    own = one.own.replace(" s", "\N{NO-BREAK SPACE}s", 1)
    cells = [
        one.what, own, "<br>".join(peers), "<br>".join(ratios), ", ".join(machine), command
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def drawn(topic: Topic) -> list[Record]:
    """Return what the picture of a topic shows: all of the cost that has the most bars."""
    rows = [one for one in read(topic) if one.unit in COSTS]
    unit, _ = Counter(one.unit for one in rows for _ in bars_of(one)).most_common(1)[0]
    return [one for one in rows if one.unit == unit]


def picture(topic: Topic) -> str:
    """Draw bars of dhsk and its peers on a logarithmic axis, as an SVG file."""
    rows, kinds = drawn(topic), letters()
    bars = [bars_of(one) for one in rows]
    sizes = [max(len(own) + 0.7, 1.9) for own in bars]
    known = [figure for own in bars for _, figure in own]
    title, unit = SECTIONS[topic][0], re.sub(r"^s\b", "seconds", rows[0].unit)
    with drawing(f"benchmarks {topic}", 3.8, BAR * sum(sizes)) as made:
        ax, top, places = made.axes, 0.0, []
        logarithmic(ax, "x", min(known), max(known))
        frame(ax, f"{unit}, logarithmic", lines="x")
        for own, size in zip(bars, sizes, strict=True):
            places.append(top + size / 2)
            first = top + (size - len(own) + 1) / 2
            for number, (name, figure) in enumerate(own):
                at, colour = first + number, PEER if number else POINT
                ax.barh(at, figure, 0.86, color=colour)
                ax.text(figure, at, f"\N{NO-BREAK SPACE}{name} {number_of(figure)}", **SMALL)
            top += size
        twice = Counter(one.what for one in rows)
        texts = [
            fill(f"{one.what}, {kinds[one.machine]}" if twice[one.what] > 1 else one.what, LONGEST)
            for one in rows
        ]
        ax.set(ylim=(top, 0), xlim=(min(known) / 2, 1.4 * max(known)), yticks=places)
        ax.set_yticklabels(texts, size=SMALL["size"], linespacing=1.0)
        ax.tick_params(axis="y", length=0)
        ax.tick_params(axis="x", labelsize=SMALL["size"])
        svg = made.svg(title, f"{unit}: dhsk in blue, peers in grey")
    return alone(svg)


def bars_of(one: Record) -> list[tuple[str, float]]:
    """Name and figure of dhsk and of the peers that have one."""
    peers = [(peer.name, peer.figure) for peer in one.peers]
    return [(name, figure) for name, figure in [("dhsk", one.figure), *peers] if figure]


def alone(svg: str) -> str:
    """Make a file of an element that was for a page."""
    spaces = ' xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    head, _, rest = svg.replace(POINT, "var(--own)").replace(PEER, "var(--peer)").partition(">")
    return f"{head.replace('<svg', f'<svg{spaces}', 1)}>{STYLE}{rest}\n"


def section(topic: Topic) -> str:
    """Return heading, picture and table of a topic."""
    (title, about), kinds, rows = SECTIONS[topic], letters(), read(topic)
    table = [row_of(one, kinds[one.machine]) for one in rows]
    head = ["| what | dhsk | peer | ratio | machine | command |", "|---|---|---|---|---|---|"]
    shown = f"![{alternative(drawn(topic))}](benchmarks/{topic}.svg)"
    return "\n".join([f"## {title}\n\n{about}{versions(rows)}\n\n{shown}\n", *head, *table, ""])


def versions(rows: Sequence[Record]) -> str:
    """Say the versions of the peers that are known."""
    known = {(peer.name, peer.version) for one in rows for peer in one.peers if peer.version}
    text = ", ".join(f"{name} {version}" for name, version in sorted(known))
    return f" Versions: {text}." if text else ""


def alternative(rows: Sequence[Record]) -> str:
    """Say in words what a picture shows: the span of the ratios."""
    ratios = [peer.ratio for one in rows for peer in one.peers if peer.ratio]
    if not ratios:
        return "Bars of what dhsk takes"
    return (
        f"Bars of dhsk and its peers; ratios of {ratio_of(min(ratios))} to {ratio_of(max(ratios))}"
    )


def page() -> str:
    """Return the page."""
    machines = [f"- **{letter}**: {kind}, shared" for kind, letter in letters().items()]
    return "\n".join([HEAD, *machines, "", *map(section, SECTIONS)])


def main() -> None:
    """Write the page and its pictures."""
    PAGE.write_text(page(), encoding="utf-8")
    folder = DOCS / "benchmarks"
    folder.mkdir(exist_ok=True)
    for topic in SECTIONS:
        (folder / f"{topic}.svg").write_text(picture(topic), encoding="utf-8")


if __name__ == "__main__":
    main()
