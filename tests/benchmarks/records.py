"""What benchmarks measured, as JSON files of which docs/benchmarks.md is made.

A script says each figure by `record`, which prints it. Run with ``--record`` it also keeps it in
``tests/benchmarks/records/TOPIC.json``, in place of an older one of the same thing on the same kind
of machine; then ``python -m docs.benchmarks`` makes the page. Files are in the order of the page: a
new figure comes last, and may be moved by hand.
"""

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal, get_args

from dhsk.execution.limits import core_count

FOLDER: Final = Path(__file__).parent / "records"

Topic = Literal[
    "kernels", "gram", "svm", "svc", "search", "texts", "low_rank", "methods", "memory",
    "interruption", "agreement",
]  # fmt: skip

TOPICS: Final[tuple[Topic, ...]] = get_args(Topic)

LOAD: Final = os.getloadavg()[0]
"""Before this process computes."""

IDLE: Final = 0.5
"""Processes that run or wait, up to which a machine counts as idle."""

COSTS: Final = ("s", "s of processor", "ns an entry", "GB", "relative error")
"""Units of which less is better: only their figures have ratios."""

SCIKIT_LEARN: Final = {"LIBSVM", "SVC", "LinearSVC", "GridSearchCV", "KNeighborsTransformer"}
"""Peers that are parts of scikit-learn."""

_commit = ""
"""Of the package, where figures are kept: read at the start, as a run may take hours."""


def parser_of(
    doc: str | None, sections: Iterable[str] = (), *, data: bool = False
) -> argparse.ArgumentParser:
    """Return a parser with what scripts share: sections that can be named, and `--data`."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--record", action="store_true", help="keep the figures for the page")
    if sections:
        known: list[object] = [*sections, []]  # none named is a choice too
        words = {"metavar": "SECTION", "help": f"by default all of {', '.join(sections)}"}
        parser.add_argument("sections", nargs="*", choices=known, default=[], **words)  # type: ignore[arg-type]
    if data:
        folder = os.environ.get("DHSK_DATA") or None
        parser.add_argument("--data", type=Path, default=folder, help="folder of the data sets")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Read the command line, and note whether figures are kept."""
    global _commit  # noqa: PLW0603 - one command line a process
    options = parser.parse_args()
    _commit = commit() if options.record else ""
    return options


@dataclass(frozen=True)
class Peer:
    """Figure of another package, or of the same one on another way."""

    name: str
    version: str | None
    figure: float | None
    """None where it failed."""
    ratio: float | None
    """Its figure over ours, where less is better."""
    score: float | None = None


@dataclass(frozen=True)
class Record:
    """A figure, how it was measured, and what others had in the same run."""

    what: str
    figure: float
    unit: str
    peers: list[Peer]
    command: str
    date: str
    commit: str
    processor: str
    cores: int
    avx512: bool
    python: str
    load: float | None
    """Of the machine at the start; None where only `busy` was noted."""
    busy: bool | None
    """Whether others computed; None where that was not noted."""
    runs: int
    score: float | None = None
    """Accuracy, or what else the result is worth."""
    transcribed: bool = False
    said: str = ""
    """Words of the page from which a figure was transcribed."""

    @property
    def machine(self) -> str:
        """Name of the machine's kind."""
        return f"{self.processor}, {self.cores} cores, with{'' if self.avx512 else 'out'} AVX-512"

    @property
    def own(self) -> str:
        """Our figure in words."""
        return words_of(self.figure, self.unit, self.score)

    def others(self) -> list[str]:
        """Figures of the peers in words."""
        return [
            f"{peer.name} {words_of(peer.figure, self.unit, peer.score)}" for peer in self.peers
        ]

    def __str__(self) -> str:
        """One line."""
        ratios = [f" (ratio {ratio_of(p.ratio)})" if p.ratio else "" for p in self.peers]
        others = [f"; {text}{ratio}" for text, ratio in zip(self.others(), ratios, strict=True)]
        return f"{self.what}: {self.own}{''.join(others)}"


def words_of(figure: float | None, unit: str, score: float | None = None) -> str:
    """Write a figure with three digits, its unit, and a score."""
    if figure is None:
        return "fails"
    scored = "" if score is None else f" ({score:.4g})"
    return f"{number_of(figure)} {unit}".rstrip() + scored


def number_of(figure: float, digits: int = 3) -> str:
    """Write a number of usual size without a power of ten."""
    if 0 < figure < 1e-3 or figure >= 1e6:
        return re.sub(r"e([+-])0?", lambda sign: "e" + sign[1].strip("+"), f"{figure:.{digits}g}")
    return f"{figure:.{digits}g}" if figure < 10 ** (digits - 1) else f"{figure:,.0f}"


def ratio_of(ratio: float) -> str:
    """Write a ratio with two digits."""
    return number_of(ratio, 2)


def record(
    topic: Topic,
    what: str,
    figure: float,
    unit: str,
    peers: Mapping[str, float | None] | None = None,
    *,
    runs: int = 1,
    scores: Sequence[float] = (),
) -> None:
    """Print a figure beside those of the peers, and keep it if that was asked for.

    Parameters
    ----------
    topic
        File that keeps it, and section of the page.
    what
        What was measured, in a few plain words: with the machine the key of the record.
    figure
        Ours, in `unit`; one of `COSTS` where less is better.
    unit
        Its unit.
    peers
        Figures of others by name, which may end with ``==`` and a version. None: it failed.
    runs
        How often it was measured; of several runs the best counts.
    scores
        What results are worth, ours and then those of the peers.
    """
    given = dict(peers or {})
    valued = [*map(rounded, scores), *[None] * (1 + len(given) - len(scores))]
    others = [
        peer_of(name, theirs, figure if unit in COSTS else 0.0, score)
        for (name, theirs), score in zip(given.items(), valued[1:], strict=True)
    ]
    found = Record(
        what, rounded(figure), unit, others, command(), f"{datetime.now(UTC):%Y-%m-%d}", _commit,
        *processor(), platform.python_version(), round(LOAD, 1), LOAD > IDLE, runs, valued[0],
    )  # fmt: skip
    print(found, flush=True)
    if _commit:
        keep(topic, found)


def peer_of(name: str, figure: float | None, ours: float, score: float | None) -> Peer:
    """Return a peer, whose ratio is to our figure, unless that is 0."""
    plain, _, given = name.partition("==")
    ratio = None if not ours or figure is None else rounded(figure / ours)
    theirs = None if figure is None else rounded(figure)
    return Peer(plain, given or version_of(plain), theirs, ratio, score)


def rounded(figure: float) -> float:
    """Return four digits: more are not reproduced."""
    return float(f"{figure:.4g}")


def version_of(name: str) -> str | None:
    """Version of an installed package that a peer's name begins with; None of ways of our own."""
    first = name.split()[0]
    try:
        return version("scikit-learn" if first in SCIKIT_LEARN else first)
    except PackageNotFoundError:
        return None


def command() -> str:
    """Return the command line of this process, but for what is this machine's own."""
    words = shlex.join([f"tests/benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    words = re.sub(r" --record| --intelex[ =]\S+", "", words)
    return "python " + re.sub(r"--data[ =]\S+", "--data DIR", words)


def commit() -> str:
    """Return the last commit of the package, with "-dirty" if files of it were changed since."""
    git = ["git", "-C", str(Path(__file__).parent)]
    asked = [*git, "log", "-1", "--format=%h", "--", ":/dhsk"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", ":/dhsk"], check=False)
    return found + "-dirty" * (changed.returncode != 0)


def processor() -> tuple[str, int, bool]:
    """Name of the processor, cores that this process may use, and whether it has AVX-512."""
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    named = re.search(r"^model name\s*: (.+)$", text, re.M)
    return named[1] if named else platform.processor(), core_count(), "avx512f" in text


def read(topic: Topic) -> list[Record]:
    """Return what is kept of a topic."""
    file = FOLDER / f"{topic}.json"
    rows = json.loads(file.read_text()) if file.exists() else []
    return [Record(**{**row, "peers": [Peer(**peer) for peer in row["peers"]]}) for row in rows]


def keep(topic: Topic, new: Record) -> None:
    """Write a record, in place of the one of the same thing on the same machine."""
    rows = read(topic)
    same = [(row.what, row.machine) == (new.what, new.machine) for row in rows]
    rows = [new if is_same else row for row, is_same in zip(rows, same, strict=True)]
    rows += [] if any(same) else [new]
    text = json.dumps([asdict(row) for row in rows], indent=1, sort_keys=True, ensure_ascii=False)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{topic}.json").write_text(f"{text}\n")
