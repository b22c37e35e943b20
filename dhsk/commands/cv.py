"""The command `dhsk cv`: a cross-validation to a folder of results."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import click

from dhsk.bars import show_progress
from dhsk.commands.connecting import connected_if_asked, wrong_out
from dhsk.commands.console import hint, say_cost
from dhsk.commands.cv_table import print_result
from dhsk.commands.earlier_run import (
    PAGE,
    READING,
    TABLES,
    answer_in,
    check_earlier,
    noted,
    settings_of,
)
from dhsk.commands.inputs import label_source, open_samples_of, refuse_bare_column, say_predict
from dhsk.commands.options import (
    KERNELS,
    ClusterOptions,
    cluster_options,
    gathered,
    make_kernels,
    map_option,
    ranks_options,
    zero_rows_option,
)
from dhsk.commands.parameters import Names, Numbers, NumbersOrAuto, PlaceParameter, Seed
from dhsk.commands.table_options import TableOptions, table_options
from dhsk.costs import costs_told
from dhsk.errors import StoreMismatchError
from dhsk.gram import GramMatrix, open_gram
from dhsk.kernels.base import Indefinite
from dhsk.objects.places import (
    Place,
    check_writable,
    is_within,
    made_folder,
    parse_place,
    remove_below,
    remove_scratch,
)
from dhsk.report import write_report
from dhsk.results.asked import CHOICES, Choose, Fitting, LowRank, Output, Refit
from dhsk.results.asked import StratifiedFolds as Folds
from dhsk.samples import AnyVectorizer, Samples, ZeroRule, is_gram_store, read_labels, scan
from dhsk.samples.paths import Origin
from dhsk.samples.weighted import MapName

if TYPE_CHECKING:
    from dhsk.validation.result import CvResult

SAME = ("C", "scoring", "class_weight", "sphere_map")
JUDGED = ("min_class", "tol", "zero_rows", "indefinite", "repeats", "choose")
CHOOSE = "Take the simplest kernel within one standard error of the best, or the best."


@dataclass(frozen=True)
class CvGridOptions:
    """Kernels, C, folds and ranks of `cross_validate`."""

    names: list[str] | None
    time_scale: list[float] | Literal["auto"] | None
    parametrix_scale: list[float] | None
    sigma: list[float]
    C: list[float] | Literal["auto"] | None
    folds: int
    repeats: int
    choose: Choose
    min_class: int
    groups: str | None
    scoring: str
    class_weight: str | None
    tol: float
    rank: list[int] | None
    selection: str | None
    oversampling: float | None
    loss: str | None
    seed: int
    sphere_map: MapName | Literal["auto"] | None
    zero_rows: ZeroRule
    indefinite: Indefinite

    def kernels(self, opened: GramMatrix | Samples) -> dict[str, Any]:
        """Kernels and times; None for both leaves the choice to `cross_validate`."""
        dim, auto = opened.dim if isinstance(opened, GramMatrix) else opened.shape[1], False
        names, scales = self.names or ["heat"], self.time_scale
        if not (self.names or scales):
            return {"time_scale": None, "kernels": None}
        if scales == "auto":
            auto, scales = True, None
            names = [name for name in self.names or [] if name != "heat"]
        kernels = make_kernels(names, dim, scales, self.parametrix_scale, self.sigma)
        return {"time_scale": "auto" if auto else None, "kernels": kernels}

    @property
    def low_rank(self) -> dict[str, Any]:
        """Parameters of `LowRank`; empty for exact classifiers."""
        given = {name: getattr(self, name) for name in ("selection", "oversampling", "loss")}
        chosen = {name: value for name, value in given.items() if value is not None}
        if self.rank is None and chosen:
            raise click.UsageError(f"--{next(iter(chosen))} needs --rank")
        return {} if self.rank is None else {"rank": self.rank} | chosen

    @property
    def rest(self) -> dict[str, Any]:
        """Parameters with the same name and meaning in `cross_validate`."""
        return {name: getattr(self, name) for name in SAME}


grid_options = gathered(
    "grid",
    CvGridOptions,
    click.option(
        "--kernel",
        "names",
        type=Names(),
        help="One or more of " + ", ".join(KERNELS) + ". [default: a search for the time of heat, "
        "beside simple ones, see above; of a store that holds no cosines its own]",
    ),
    click.option(
        "--time-scale",
        type=NumbersOrAuto(),
        help="Times of heat and parametrix kernels, in units of log(dim)/dim, or auto for a "
        "search. [default: auto if no kernel is named, else 0.7,1,1.4]",
    ),
    click.option(
        "--parametrix-scale",
        type=Numbers(),
        help="Times of parametrix kernels alone: in high dimension they need 10 to 30 times more.",
    ),
    click.option("--sigma", type=Numbers(), default="1", help="Gaussian widths."),
    click.option(
        "--C",
        "C",
        type=NumbersOrAuto(),
        help="Prices of samples on the wrong side, as C of scikit-learn's SVC; or auto: scaled to "
        "each kernel, and extended until the best is inside. [default: 0.1,1,10, or auto in a "
        "search]",
    ),
    click.option("--folds", type=click.IntRange(2), default=5),
    click.option("--repeats", type=click.IntRange(1), default=1, help="Divisions into folds."),
    click.option("--choose", type=click.Choice(CHOICES), default="simplest", help=CHOOSE),
    click.option(
        "--min-class",
        type=click.IntRange(1),
        default=1,
        help="Fewest samples of a class: smaller classes are left out.",
    ),
    click.option("--groups", help="FILE or FILE:COLUMN: samples of a group stay in one fold."),
    click.option("--scoring", default="accuracy", help="A scikit-learn scorer."),
    click.option("--class-weight", type=click.Choice(["balanced"]), help="Weigh classes alike."),
    click.option(
        "--tol",
        type=float,
        default=1e-3,
        help="Largest violation of the optimality conditions, as in scikit-learn's SVC; with "
        "--rank, norm of the gradient relative to that at 0.",
    ),
    ranks_options,
    click.option("--seed", type=Seed(), default=0, help="Seed of the folds and landmarks."),
    map_option,
    zero_rows_option,
    click.option(
        "--indefinite",
        type=click.Choice(["error", "allow"]),
        default="error",
        help="Kernels that are known not to be positive semi-definite: refuse them, or fit.",
    ),
)


@dataclass(frozen=True)
class FinalOptions:
    """What to do with the best cell, with earlier results, and with the products."""

    model: bool
    test: str | None
    test_labels: str | None
    overwrite: bool
    eigenvalues: bool | None
    baselines: bool | None
    store: Place | None
    disk: str | None

    def held_out(
        self, table: TableOptions, vectorizer: AnyVectorizer | None
    ) -> tuple[Samples, Any] | None:
        """Test samples and their labels; `vectorizer` is that of the other samples."""
        if self.test is None:
            if self.test_labels is not None:
                raise click.UsageError("--test-labels needs --test")
            return None
        samples = open_samples_of(self.test, table, self.test_labels, vectorizer=vectorizer)
        labels = label_source(self.test_labels, self.test)
        y = read_labels(labels, samples.shape[0], min_classes=1, header=table.header)
        return samples, y


final_options = gathered(
    "final",
    FinalOptions,
    click.option(
        "--model", is_flag=True, help="Fit the candidate to take on all samples: model.dhsk."
    ),
    click.option("--test", metavar="SAMPLES", help="Held-out samples, to score that model."),
    click.option("--test-labels", help="Their labels, FILE or FILE:COLUMN."),
    click.option(
        "--overwrite", is_flag=True, help="Replace the results of another run that are in --out."
    ),
    click.option(
        "--eigenvalues/--no-eigenvalues",
        default=None,
        help="Eigenvalues of the best kernel in the report. [default: up to 1,000 samples]",
    ),
    click.option(
        "--baselines/--no-baselines",
        default=None,
        help="Score common methods of scikit-learn on the same folds: LinearSVC on tf-idf, of a "
        "table SVC and trees. [default: in a search, where they add less than a fifth]",
    ),
    click.option(
        "--store",
        type=PlaceParameter(),
        help="Folder to keep the inner products in, for other runs. [default: in --out while it "
        "runs]",
    ),
    click.option(
        "--disk",
        help="Most disk for the inner products, such as 10GB; if they take more, they are computed "
        "whenever they are needed. [default: half of what is free]",
    ),
)


@click.command("cv")
@click.argument("source", metavar="STORE|SAMPLES")
@click.option("--labels", help="FILE or FILE:COLUMN, one label a sample. [default: svmlight's own]")
@click.option("--out", type=PlaceParameter(), required=True, help="Results folder.")
@grid_options
@final_options
@table_options
@cluster_options
def cv(
    source: str,
    labels: str | None,
    out: Place,
    grid: CvGridOptions,
    final: FinalOptions,
    table: TableOptions,
    cluster: ClusterOptions,
) -> None:
    """Find the best kernel and parameters by cross-validation.

    SVMs are fitted over kernels, times and C, on a Gram store or on samples. They are exact. With
    --rank they are linear ones on Nyström features, for more samples than a Gram matrix allows;
    they run in this process unless --cluster or --workers is given.

    Without kernels and times it looks for the best heat kernel, tries cosine (of texts also on
    tf-idf) and linear (not on counts whose totals differ), and takes what `decide` says.

    Rows of finished kernels are in results.csv while the grid runs. Inner products are removed at
    the end, unless --store asks for them. After an interrupt, the same command continues; after the
    end it prints the results again. Another one replaces them only with --overwrite.
    """
    low_rank = grid.low_rank
    opened = _open_source(source, labels, table)
    y = read_labels(label_source(labels, source), opened.shape[0], header=table.header)
    kernels, held_out = grid.kernels(opened), final.held_out(table, opened.vectorizer)
    groups = None
    if grid.groups is not None:
        groups = read_labels(grid.groups, opened.shape[0], min_classes=1, header=table.header)
    settings = settings_of(
        **kernels, **low_rank, **grid.rest, labels=y, groups=groups, folds=grid.folds,
        seed=grid.seed, **{name: getattr(grid, name) for name in JUDGED},
        **({} if held_out is None else {"test_labels": held_out[1]}),
    )  # fmt: skip
    same = check_earlier(
        out, settings, lambda: _fingerprint(opened), table.words, overwrite=final.overwrite
    )
    if same and final.test is None and final.store is None:
        answer = answer_in(out, final.model, final.eigenvalues, final.baselines)
        if answer is not None:
            hint(f"{out} has the results of this run: nothing is computed again (or: --overwrite)")
            print_result(answer)
            _print_files(out, answer, source, labels, table)
            return
    run = partial(
        _cross_validate, opened, y, **kernels, **grid.rest, groups=groups, memory=cluster.memory,
        cv=Folds(grid.folds, grid.repeats, grid.min_class, grid.seed),
        fit=Fitting(grid.tol, grid.zero_rows, grid.indefinite),
        refit=Refit(grid.choose, held_out, final.model),
        low_rank=LowRank(**low_rank, random_state=grid.seed) if low_rank else None,
        out=Output(out, final.store, final.disk, final.eigenvalues, final.baselines),
    )  # fmt: skip
    with made_folder(out):
        check_writable(out)
        with (
            noted(out, settings),
            connected_if_asked(cluster, needed=not low_rank) as client,
            _telling_of(out / TABLES[1]),
            show_progress() as progress,
            costs_told(say_cost),
            wrong_out(),
        ):
            run = partial(run, client=client, progress=progress)
            result = _run(run, source, out, overwrite=final.overwrite)
            result = replace(result, settings=settings | {READING: _reading(labels, table)})
            _write(result, opened, out, overwrite=final.overwrite)
            remove_scratch(out / "fits")
    print_result(result)
    _print_files(out, result, source, labels, table)


def _cross_validate(*given: Any, **options: Any) -> "CvResult":
    from dhsk.validation.cross_validate import cross_validate

    return cross_validate(*given, **options)


def _fingerprint(opened: GramMatrix | Samples) -> str:
    """Fingerprint of the samples; files are read once."""
    if isinstance(opened, GramMatrix):
        return opened.header.fingerprints[0]
    return scan(opened, "identity").fingerprint


def _run(run: Callable[[], "CvResult"], source: str, out: Place, *, overwrite: bool) -> "CvResult":
    """Run; with `overwrite`, remove stores of other samples, kernels or maps and run again."""
    stores = out / "fits" / "gram"
    try:
        return run()
    except StoreMismatchError:
        if not overwrite or is_within(parse_place("source", source), stores) or not stores.exists():
            raise
        remove_below(stores)
    return run()


@contextmanager
def _telling_of(table: Place) -> Iterator[None]:
    """On an interrupt, say where the rows of the finished kernels are."""
    try:
        yield
    except KeyboardInterrupt:
        if table.exists():
            click.echo(f"finished kernels: {table}", err=True)
        raise


def _open_source(source: str, labels: str | None, table: TableOptions) -> GramMatrix | Samples:
    """Gram matrix or samples."""
    refuse_bare_column(source, labels)
    if is_gram_store(Origin.of(source).path):
        return open_gram(source)
    return open_samples_of(source, table, labels)


def _write(
    result: "CvResult", opened: GramMatrix | Samples, out: Place, *, overwrite: bool
) -> None:
    """Write the files of a result; remove the model of an overwritten one."""
    from dhsk.models.files import save_model
    from dhsk.validation.predictions import write_predictions

    result.to_json(out / "results.json")
    if result.held_out_ is not None:
        samples = opened if isinstance(opened, Samples) else None
        write_predictions(result.held_out_, result.best.point, samples, out / "predictions.csv")
    write_report(result, out / PAGE, TABLES)
    if result.model_ is not None:
        save_model(result.model_, out / "model.dhsk")
    elif overwrite:
        (out / "model.dhsk").unlink(missing_ok=True)


def _reading(labels: str | None, table: TableOptions) -> dict[str, Any]:
    """How the samples and labels of a command were named, for commands that come after it."""
    return {"labels": labels, "options": table.words}


def _print_files(
    out: Place, result: "CvResult", source: str, labels: str | None, table: TableOptions
) -> None:
    """Print the files of the results, and the next commands."""
    model = result.model_ is not None
    files = [*TABLES, PAGE, *(["model.dhsk"] if model else [])]
    hint(f"output: {out / files[0]}, {', '.join(files[1:])}")
    if model and result.best != result.decision.best:
        hint(f"model:  of {result.best.brief}, as decided (--choose best: of the highest mean)")
    hint(f"next:   open {out / PAGE} in a browser")
    if model:
        say_predict("or:     ", out / "model.dhsk", source, labels, table)
