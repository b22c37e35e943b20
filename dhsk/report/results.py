"""Content of results.json, checked once; the rest of the room trusts it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError
from dhsk.report.fields import Fields, wrong

SCHEMA = 2
"""Version of the layout of results.json that this room reads."""


@dataclass(frozen=True)
class Certificate:
    """What proves and bounds a fit; of the pairs of classes, and of several fits, the worst.

    Attributes
    ----------
    n_support
        Support vectors, or features of low rank; of several fits the mean.
    kkt
        Largest KKT violation; of low rank, the gradient's length as a part of that at zero.
    gap
        Largest duality gap, as a part of the primal objective; of low rank, a bound of it.
    converged
        Whether every violation, or gradient, is within the tolerance.
    margin
        Smallest margin in feature space; None where no pair has a hyperplane.
    vc
        Largest upper bound of the VC dimension; None where it is not known.
    effective
        Smallest effective sample size; None where it is not known.
    seconds
        Time of the solver; of several fits the sum.
    """

    n_support: float
    kkt: float
    gap: float
    converged: bool
    margin: float | None
    vc: float | None
    effective: float | None
    seconds: float


@dataclass(frozen=True)
class Cell:
    """One kernel at one C, summed up over the folds.

    Attributes
    ----------
    kernel, label
        Family ("heat"), and the name that tells its members apart ("heat s=1").
    time_scale, time, sigma
        Parameters of the kernel; None where it has none.
    rank, trace_error
        Number of landmarks, and the part of the kernel's trace that their features miss; None for
        exact machines.
    C, C_scaled
        Penalty of the SVM; and in units of the spread of the samples, if it was chosen so.
    mean, std
        Score over the folds.
    proof
        Of the fits on all folds.
    folds
        Score of each fold, in the order of the folds.
    unfinished
        Number of folds whose fit did not converge.
    """

    kernel: str
    label: str
    time_scale: float | None
    time: float | None
    sigma: float | None
    rank: int | None
    trace_error: float | None
    C: float
    C_scaled: float | None
    mean: float
    std: float
    proof: Certificate
    folds: tuple[float, ...]
    unfinished: int

    @property
    def penalty(self) -> float:
        """C in the units that it was chosen in; those of the spread suit all kernels alike."""
        return self.C if self.C_scaled is None else self.C_scaled

    @property
    def kernel_label(self) -> str:
        """The label without a rank: "heat s=1"."""
        return self.label if self.rank is None else self.label.removesuffix(f", rank {self.rank}")


@dataclass(frozen=True)
class Samples:
    """Where the samples came from and how large they are; `nnz` is None for dense ones.

    `zero_rows` were all zero, and took the centre of the positive orthant.
    """

    source: str
    n_samples: int
    dim: int
    nnz: int | None
    sphere_map: str
    fingerprint: str
    zero_rows: int = 0


@dataclass(frozen=True)
class Named:
    """A cell by its name, with its mean score."""

    label: str
    C: float
    C_scaled: float | None
    mean: float


@dataclass(frozen=True)
class Trial:
    """One grid of the search for a time scale: what was tried, the best of it, what followed."""

    time_scales: tuple[float, ...]
    C: tuple[float, ...]
    C_scaled: tuple[float, ...]
    best: Named
    why: str


@dataclass(frozen=True)
class Choice:
    """How the best cell was chosen: the fewest support vectors within an error of the highest."""

    highest: Named
    standard_error: float


@dataclass(frozen=True)
class LowRank:
    """How landmarks were chosen, how many a feature, and the loss of the machines on these."""

    selection: str
    loss: str
    oversampling: float


@dataclass(frozen=True)
class HeldOut:
    """How the winner did on samples that were held out from everything."""

    score: float
    n: int
    confusion: NDArray[np.int64]
    seconds: float


@dataclass(frozen=True)
class FewSamples:
    """A class of few samples; `folds` is the number of folds that were trained without it."""

    name: str
    samples: int
    folds: int


@dataclass(frozen=True)
class Results:
    """One cross-validation: `cells` best first, `confusion` (true, predicted) of `best`.

    `tol` is the KKT violation, or LIBLINEAR's tolerance, that was asked for; `search` is empty,
    and `test` and `refit` are None, where there was none; `low_rank` is None for exact machines,
    and `choice` where the highest mean won. Classes are `dropped` for having too few samples, and
    `untrained` on folds that hold out all.
    """

    version: str
    created: str
    samples: Samples
    classes: tuple[str, ...]
    class_counts: tuple[int, ...]
    n_folds: int
    splitter: str
    scoring: str
    tol: float
    cells: tuple[Cell, ...]
    best: Cell
    confusion: NDArray[np.int64]
    eigenvalues: NDArray[np.float64]
    eigenvalues_exact: bool
    trace: float
    plan: tuple[tuple[str, str], ...]
    seconds: dict[str, float]
    search: tuple[Trial, ...]
    search_ended: str
    choice: Choice | None
    test: HeldOut | None
    refit: Certificate | None
    low_rank: LowRank | None
    dropped: tuple[FewSamples, ...]
    untrained: tuple[FewSamples, ...]

    @property
    def n_fits(self) -> int:
        """Number of fits on the folds."""
        return sum(len(cell.folds) for cell in self.cells)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that were tried, ascending; none for exact machines."""
        return tuple(sorted({cell.rank for cell in self.cells if cell.rank is not None}))


def parse(data: Mapping[str, Any]) -> Results:
    """Return the content of a results.json as `Results`.

    Raises
    ------
    InputError
        A key is missing, a value is of the wrong kind, or the parts contradict each other.
    """
    root = Fields(data, "")
    _check_schema(root)
    low_rank = root.part_if_any("low_rank")
    cells = _cells(root, ranked=low_rank is not None)
    best = _best(root.part("best"), cells)
    classes = tuple(str(name) for name in root.items("classes"))
    refit = root.part_if_any("refit")
    return Results(
        version=root.text("version"),
        created=root.text("created"),
        samples=_samples(root.part("samples")),
        classes=classes,
        class_counts=tuple(int(n) for n in root.vector("class_counts", len(classes))),
        n_folds=root.part("folds").whole("n"),
        splitter=root.part("folds").text("splitter"),
        scoring=root.text("scoring"),
        tol=root.number("tol"),
        cells=(best, *(c for c in cells if c is not best)),
        best=best,
        confusion=root.counts("confusion", len(classes)),
        eigenvalues=root.vector("eigenvalues"),
        eigenvalues_exact=root.flag("eigenvalues_exact"),
        trace=root.number("trace"),
        plan=_plan(root),
        seconds={key: root.part("seconds").number(key) for key in ("gram", "fits", "total")},
        search=tuple(_trial(f) for f in root.parts("search")) if data.get("search") else (),
        search_ended=root.text_if_any("search_ended"),
        choice=_choice(root.part_if_any("choice")),
        test=_held_out(root.part_if_any("test"), len(classes)),
        refit=None if refit is None else _certificate(refit),
        low_rank=None if low_rank is None else _low_rank(low_rank),
        dropped=_few_samples(root, data, "dropped_classes"),
        untrained=_few_samples(root, data, "untrained_classes"),
    )


def _few_samples(root: Fields, data: Mapping[str, Any], key: str) -> tuple[FewSamples, ...]:
    return tuple(
        FewSamples(
            name=str(fields.get("class")),
            samples=fields.whole("samples"),
            folds=fields.whole("folds") if key == "untrained_classes" else 0,
        )
        for fields in (root.parts(key) if data.get(key) else ())
    )


def _check_schema(root: Fields) -> None:
    schema = root.get("schema")
    if schema != SCHEMA:
        raise InputError(
            f"the results have schema {schema!r}, but this version of dhsk reads schema {SCHEMA}; "
            f"make the report with the dhsk that wrote them (version {root.text('version')})"
        )


def _samples(fields: Fields) -> Samples:
    nnz = fields.optional("nnz")
    return Samples(
        source=fields.text("source"),
        n_samples=fields.whole("n_samples"),
        dim=fields.whole("dim"),
        nnz=None if nnz is None else int(nnz),
        sphere_map=fields.text("sphere_map"),
        fingerprint=fields.text("fingerprint"),
        zero_rows=fields.whole("zero_rows") if "zero_rows" in fields.values else 0,  # earlier: none
    )


def _key(fields: Fields) -> tuple[str, float]:
    return fields.text("label"), fields.number("C")


def _cells(root: Fields, *, ranked: bool) -> tuple[Cell, ...]:
    rows: dict[tuple[str, float], dict[int, Fields]] = {}
    for row in root.parts("rows"):
        rows.setdefault(_key(row), {})[row.whole("fold")] = row
    cells = [
        _cell(fields, rows.get(_key(fields), {}), ranked=ranked) for fields in root.parts("summary")
    ]
    if not cells:
        raise wrong("summary", "a list of at least one cell", [])
    # Ties go to the smaller C, as the simpler model.
    return tuple(sorted(cells, key=lambda c: (-c.mean, c.C, c.label)))


def _cell(fields: Fields, rows: dict[int, Fields], *, ranked: bool) -> Cell:
    label, C = _key(fields)
    if not rows:
        raise InputError(
            f"'rows' of the results has no fold of {fields.place} (label {label!r}, C = {C:g}); "
            "give the whole content of a results.json that `dhsk cv` wrote"
        )
    return Cell(
        kernel=fields.text("kernel"),
        label=label,
        time_scale=fields.optional("time_scale"),
        time=fields.optional("time"),
        sigma=fields.optional("sigma"),
        rank=fields.whole("rank") if ranked else None,
        trace_error=fields.number("trace_error") if ranked else None,
        C=C,
        C_scaled=fields.number_if_any("C_scaled"),
        mean=fields.number("mean"),
        std=fields.number("std"),
        proof=_certificate(fields),
        folds=tuple(rows[fold].number("score") for fold in sorted(rows)),
        unfinished=sum(not row.flag("converged") for row in rows.values()),
    )


def _certificate(fields: Fields) -> Certificate:
    return Certificate(
        n_support=fields.number("n_support"),
        kkt=fields.number("kkt"),
        gap=fields.number("gap"),
        converged=fields.flag("converged"),
        margin=fields.optional("margin"),
        vc=fields.optional("vc"),
        effective=fields.optional("effective"),
        seconds=fields.number("seconds"),
    )


def _best(fields: Fields, cells: tuple[Cell, ...]) -> Cell:
    label, C = _key(fields)
    for cell in cells:
        if (cell.label, cell.C) == (label, C):
            return cell
    raise InputError(
        f"'best' of the results (label {label!r}, C = {C:g}) is none of the {len(cells)} cells "
        "of 'summary'; give the whole content of a results.json that `dhsk cv` wrote"
    )


def _trial(fields: Fields) -> Trial:
    best = _named(fields.part("best"))
    return Trial(
        time_scales=tuple(fields.vector("time_scales").tolist()),
        C=tuple(fields.vector("C").tolist()),
        C_scaled=tuple(fields.vector("C_scaled").tolist()) if fields.values.get("C_scaled") else (),
        best=best,
        why=fields.text("why"),
    )


def _choice(fields: Fields | None) -> Choice | None:
    """Return the choice if it was not of the highest mean."""
    if fields is None or fields.text("rule") != "one standard error":
        return None
    return Choice(_named(fields.part("highest")), fields.number("standard_error"))


def _named(fields: Fields) -> Named:
    label, C = _key(fields)
    return Named(label, C, fields.number_if_any("C_scaled"), fields.number("mean"))


def _low_rank(fields: Fields) -> LowRank:
    return LowRank(
        selection=fields.text("selection"),
        loss=fields.text("loss"),
        oversampling=fields.number("oversampling"),
    )


def _held_out(fields: Fields | None, n_classes: int) -> HeldOut | None:
    if fields is None:
        return None
    return HeldOut(
        score=fields.number("score"),
        n=fields.whole("n"),
        confusion=fields.counts("confusion", n_classes),
        seconds=fields.number("seconds"),
    )


def _plan(root: Fields) -> tuple[tuple[str, str], ...]:
    pairs = root.items("plan")
    for i, pair in enumerate(pairs):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise wrong(f"plan[{i}]", "a pair [name, text]", pair)
    return tuple((str(name), str(text)) for name, text in pairs)
