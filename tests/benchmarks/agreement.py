"""Exact SVMs beside scikit-learn's ``SVC(kernel="precomputed")``, sample by sample.

Run as ``python tests/benchmarks/agreement.py [PROBLEM ...] --data DIR`` (see `svm.py` for DIR); by
default all problems. Every problem is solved on its whole matrix, in a tenth of its bytes, and on
working sets that begin with 64 samples, in float64 and float32, with C from 0.0001 to 10,000,
balanced or not, at tolerance 1e-5: all C in one solve, and each alone. Printed: how many
predictions differ between both, and from LIBSVM's; the largest decision of a pair whose sign
differs; and by how much the dual objective falls short of LIBSVM's, both in the exact matrix.

Where all coefficients of a pair are at their bounds, the intercept is the middle of an interval of
which LIBSVM may take an end, by its rounding. Predictions that differ on account of such pairs are
counted apart, and decided in rational arithmetic: the weights of classes as fractions, the entries
of the matrix as they are. A decision of exactly 0 is a tie, for the second class.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import parsed, parser_of, record
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight
from svm import webkb

import dhsk
from dhsk.execution.threads import Threads
from dhsk.solvers import working_set
from dhsk.solvers.decomposition import Decomposition
from dhsk.solvers.dual import Fit
from dhsk.solvers.pairs import solve_pairs
from dhsk.solvers.problems import Pair, make_pairs
from dhsk.solvers.sources import ArraySource
from dhsk.solvers.votes import vote
from dhsk.solvers.whole import PairTask

TOL = 1e-5

VALUES_OF_C = [1e-4, 0.01, 1.0, 100.0, 1e4]

SCALE = 2**200
"""Entries of a matrix times this are whole numbers, but for those below 1e-44."""

Draws = list[tuple[NDArray[Any] | csr_array, NDArray[Any]]]
"""Samples and labels."""

Problem = tuple[Callable[[], Draws], float]
"""Maker of draws, or of one, and a time scale."""


# The problems


def noisy(rng: np.random.Generator, noise: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Counts of three topics, with labels that are partly drawn at random."""
    y = rng.integers(0, 3, 1500)
    topics = rng.dirichlet(np.ones(60), 3)
    X = np.stack([rng.multinomial(60, 0.4 * topics[c] + 0.6 / 60) for c in y]).astype(float)
    return X, np.where(rng.random(1500) < noise, rng.integers(0, 3, 1500), y)


def few(*, equal: bool) -> Draws:
    """Counts of 64 samples in two classes, equal in training too, or of 15 to 30 and the rest."""
    rng, draws = np.random.default_rng(0), Draws()
    for _ in range(20):
        y = (np.arange(64) < rng.integers(15, 31)).astype(int)
        if equal:
            y = np.arange(64) // 4 % 2  # every fourth sample is held out
        draws.append((rng.poisson(2 + 1.5 * np.outer(y, rng.random(20) < 0.3)) + 1.0, y))
    return draws


def problems(data: Path) -> dict[str, Problem]:
    """Problems by name."""

    def digits() -> Draws:
        return [load_digits(return_X_y=True)]

    def topics() -> Draws:
        rng = np.random.default_rng(0)
        return [noisy(rng, noise) for noise in (0.1, 0.3)]

    return {
        "few": (partial(few, equal=False), 1.0),
        "few, flat": (partial(few, equal=False), 3.0),
        "few, equal": (partial(few, equal=True), 1.0),
        "few, equal, flat": (partial(few, equal=True), 3.0),
        "digits": (digits, 0.3),
        "digits, flat": (digits, 3.0),
        "10 and 30 % noise": (topics, 1.0),
        "WebKB": (lambda: [webkb(data)], 0.8),
    }


# The solvers


def fits_of(source: Any, pairs: list[Pair], room: int | None) -> Any:
    """Fits of each pair by its number, in some bytes, or on working sets."""
    if room is None:
        solver = Decomposition(TOL, source.n)
        return solver.solve(source, dict(enumerate(pairs)), Threads(2))[0]
    tasks = (PairTask(k, source, pair) for k, pair in enumerate(pairs))
    return {k: fits for k, fits, _ in solve_pairs(tasks, TOL, room, Threads(2))}


@dataclass(frozen=True, eq=False)
class Training:
    """Three quarters of the samples of a problem, with factors of C.

    Attributes
    ----------
    K
        Matrix of all samples, float64 or float32.
    codes
        Classes of all samples, as integers from 0.
    balanced
        Whether classes have the same weight.
    """

    K: NDArray[Any]
    codes: NDArray[Any]
    balanced: bool

    @property
    def train(self) -> NDArray[Any]:
        """Whether each sample is trained on."""
        return np.asarray(np.arange(len(self.codes)) % 4 > 0)

    @property
    def inner(self) -> NDArray[Any]:
        """Matrix of the training samples, in float64."""
        return np.asarray(self.K[np.ix_(self.train, self.train)], np.float64)

    @property
    def outer(self) -> NDArray[Any]:
        """Rows of all samples, columns of the training samples, in float64."""
        return np.asarray(self.K[:, self.train], np.float64)

    def weight(self, code: int) -> Fraction:
        """Factor of C of a class."""
        own = self.codes[self.train]
        share = Fraction(len(own), len(np.unique(own)) * int((own == code).sum()))
        return share if self.balanced else Fraction(1)

    def peers(self) -> list[Any]:
        """LIBSVM at each C."""
        options: dict[str, Any] = {
            "kernel": "precomputed", "tol": TOL, "cache_size": 1000,
            "decision_function_shape": "ovo", "class_weight": "balanced" if self.balanced else None,
        }  # fmt: skip
        inner, own = self.inner, self.codes[self.train]
        return [SVC(C=C, **options).fit(inner, own) for C in VALUES_OF_C]

    def pairs(self, values: Sequence[float]) -> list[Pair]:
        """Dual problems, each with a chain of C."""
        own = self.codes[self.train]
        weights = compute_sample_weight("balanced" if self.balanced else None, own)
        return make_pairs(own, weights[None], values)

    def solve(self, values: Sequence[float], room: int | None) -> list[list[Fit]]:
        """Fits of all pairs, for each C."""
        source = ArraySource(self.K[np.ix_(self.train, self.train)])
        found = fits_of(source, self.pairs(values), room)
        by_pair = [found[number] for number in range(len(found))]
        violations = [fit.violation for fits in by_pair for fit in fits if not fit.converged]
        if violations:
            raise RuntimeError(f"violation {max(violations)}")
        return [list(fits) for fits in zip(*by_pair, strict=True)]

    def decisions(self, fits: Sequence[Fit], pairs: Sequence[Pair]) -> NDArray[Any]:
        """Decisions of all pairs at all samples."""
        outer = self.outer
        return np.stack(
            [
                outer[:, pair.members[fit.support]] @ fit.coef + fit.intercept
                for fit, pair in zip(fits, pairs, strict=True)
            ],
            axis=1,
        )


def objectives(model: Any, K: NDArray[Any], pairs: list[Pair]) -> list[float]:
    """Dual objective of LIBSVM's solution of each pair, in the exact matrix."""
    found = []
    ends = np.cumsum(model.n_support_)
    positive = -1 if len(ends) == 2 else 1  # for two classes scikit-learn turns the sign around
    for pair in pairs:
        b = np.zeros(len(K))
        for own, other in ((pair.first, pair.second - 1), (pair.second, pair.first)):
            part = slice(ends[own] - model.n_support_[own], ends[own])
            b[model.support_[part]] = model.dual_coef_[other, part] * positive
        b = b[pair.members]
        found.append(pair.dual.sign @ b - b @ K[np.ix_(pair.members, pair.members)] @ b / 2)
    return found


# The judge


def has_free(fit: Fit, pair: Pair, column: int) -> bool:
    """Whether a coefficient is between its bounds."""
    return bool((np.abs(fit.coef) < pair.dual.boxes[column, fit.support]).any())


def sums_of(K: NDArray[Any]) -> Any:
    """Sums of the rows of a matrix, as integers over `SCALE`, without rounding."""
    whole: Any = np.frompyfunc(int, 1, 1)(K * float(SCALE))
    return whole.sum(axis=1) if K.shape[1] else np.zeros(len(K), object)


def exact_decisions(
    training: Training, fit: Fit, pair: Pair, C: float, rows: NDArray[Any]
) -> Any | None:
    """Rational decisions of samples by a fit without free coefficients; None if not optimal."""
    outer, bound = training.outer, np.zeros(len(pair.members), bool)
    bound[fit.support] = True
    first = pair.dual.sign > 0
    wanted = np.concatenate([np.flatnonzero(training.train)[pair.members], rows])
    values = [training.weight(code) * Fraction(C) for code in (pair.first, pair.second)]
    if values[0] * int((bound & first).sum()) != values[1] * int((bound & ~first).sum()):
        return None
    sums = [sums_of(outer[np.ix_(wanted, pair.members[bound & s])]) for s in (first, ~first)]
    decided = [
        (values[0] * p - values[1] * q) / SCALE for p, q in zip(sums[0], sums[1], strict=True)
    ]
    f = [int(s) - d for s, d in zip(pair.dual.sign, decided, strict=False)]
    grows = first != bound  # b may grow: at 0 in the first class, at its bound in the second
    low = max(v for v, g in zip(f, grows, strict=True) if g)
    high = min(v for v, g in zip(f, grows, strict=True) if not g)
    if low > high:
        return None
    return [value + (low + high) / 2 for value in decided[len(f) :]]


# The comparison


@dataclass
class Counts:
    """Predictions that differ, and what is largest."""

    predictions: int = 0
    apart: int = 0
    """From each C alone, all C together."""
    differ: int = 0
    """From LIBSVM, by pairs with free coefficients only."""
    bound: int = 0
    """From LIBSVM, by pairs without free coefficients."""
    ours: int = 0
    """Of those, decided as here by rational arithmetic."""
    theirs: int = 0
    """Of those, decided as by LIBSVM."""
    ties: int = 0
    """Of those, with an exact decision of 0."""
    unknown: int = 0
    """Of those, by a fit that is no exact optimum."""
    sign: float = 0.0
    """Largest decision of a pair with free coefficients whose sign differs."""
    short: float = 0.0
    """Largest relative deficit of an objective."""

    def add(self, other: "Counts") -> None:
        """Take those of another comparison too."""
        for field in fields(self):
            one, two = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, max(one, two) if isinstance(one, float) else one + two)

    def __str__(self) -> str:
        """Sentences."""
        return (
            f"{self.predictions:,} predictions: {self.apart} differ between all C at once and each "
            f"alone; {self.differ} from LIBSVM's, signs only below {self.sign:.1e}; "
            f"{self.bound} more where a pair has no free coefficient, of which rational arithmetic "
            f"decides {self.ours} as here, {self.theirs} as LIBSVM, {self.unknown} not, with "
            f"{self.ties} ties; objective short by at most {self.short:.1e}"
        )


def compare(training: Training, peers: list[Any], room: int | None) -> Counts:
    """All C at once, with each alone and with LIBSVM."""
    together, counts = training.solve(VALUES_OF_C, room), Counts()
    pairs, n_classes = training.pairs(VALUES_OF_C), int(training.codes.max()) + 1
    inner, outer = training.inner, training.outer
    for number, (C, fits, peer) in enumerate(zip(VALUES_OF_C, together, peers, strict=True)):
        decisions = training.decisions(fits, pairs)
        (alone,) = training.solve([C], room)
        guess = vote(decisions, n_classes)
        apart = guess != vote(training.decisions(alone, pairs), n_classes)
        free = np.array([has_free(f, p, number) for f, p in zip(fits, pairs, strict=True)])
        theirs = peer.decision_function(outer).reshape(len(outer), -1)
        signs = (decisions > 0) != ((theirs > 0) if n_classes > 2 else (theirs < 0))
        differ = guess != peer.predict(outer)
        at_bounds = differ & signs[:, ~free].any(axis=1)
        short = 1 - np.array([f.objective for f in fits]) / objectives(peer, inner, pairs)
        counts.add(
            Counts(
                predictions=len(guess),
                apart=int(apart.sum()),
                differ=int((differ & ~at_bounds).sum()),
                bound=int(at_bounds.sum()),
                sign=float(np.abs(decisions[:, free][signs[:, free]]).max(initial=0.0)),
                short=float(short.max()),
            )
        )
        rows = np.flatnonzero(at_bounds)
        if not len(rows):
            continue
        judged, known, tie = decisions[rows], np.ones(len(rows), bool), np.zeros(len(rows), bool)
        for k in np.flatnonzero(signs[rows].any(axis=0) & ~free):
            exact = exact_decisions(training, fits[k], pairs[k], C, rows)
            if exact is None:
                known &= ~signs[rows, k]
                continue
            judged[:, k] = [(v > 0) - (v < 0) for v in exact]
            tie |= judged[:, k] == 0
        right = vote(judged, n_classes)
        ours, other = right == guess[rows], right == peer.predict(outer)[rows]
        counts.add(
            Counts(
                ours=int((ours & known).sum()),
                theirs=int((other & known).sum()),
                ties=int(tie.sum()),
                unknown=int((~known).sum()),
            )
        )
    return counts


def trainings(problem: Problem, dtype: str) -> Iterator[Training]:
    """All draws of a problem, balanced or not."""
    draws, scale = problem
    for X, y in draws():
        exact = dhsk.HeatKernel.at_scale(X.shape[1], scale)(dhsk.hyperspherical_map(X))
        K, codes = np.ascontiguousarray(exact, dtype=dtype), np.unique(y, return_inverse=True)[1]
        yield from (Training(K, codes, balanced) for balanced in (False, True))


def main() -> None:
    """Print a line for each problem, type and room, and the sum of all."""
    parser = parser_of(__doc__, data=True)
    parser.add_argument("problems", nargs="*", help="by default all")
    options = parsed(parser)
    if options.data is None:
        parser.error("give --data DIR or set DHSK_DATA")
    for name, count in (("FIRST", 64), ("LEAST", 64), ("SPARE", 16), ("JOINING", 32)):
        setattr(working_set, name, count)  # the problems are small
    total, known = Counts(), problems(options.data)
    for name in options.problems or known:
        for dtype in ("float64", "float32"):
            found: dict[str, Counts] = {}
            for training in trainings(known[name], dtype):
                peers, tenth = training.peers(), training.K.nbytes // 10
                rooms = {"whole": 1 << 33, "in a tenth": tenth, "on working sets": None}
                for how, room in rooms.items():
                    found.setdefault(how, Counts()).add(compare(training, peers, room))
            for how, counts in found.items():
                total.add(counts)
                print(f"{name}, {dtype}, {how}: {counts}", flush=True)
    print(f"all: {total}")
    what = "labels that differ from LIBSVM's, where a coefficient is free"
    record("agreement", what, total.differ, f"of {total.predictions:,}")
    what = "others that differ, which rational arithmetic decides as here"
    record("agreement", what, total.ours, f"of {total.bound:,}")


if __name__ == "__main__":
    main()
