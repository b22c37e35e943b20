"""The command `dhsk cv`: the grid on the command line, results in a folder, the best on screen."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dhsk.commands.connecting import connected_if_asked, wrong_out
from dhsk.commands.console import print_table, say, show_progress
from dhsk.commands.earlier_run import check_earlier, noted, settings_of
from dhsk.commands.inputs import open_samples_of
from dhsk.commands.options import (
    KERNELS,
    ClusterOptions,
    TableOptions,
    cluster_options,
    low_rank_of,
    make_kernels,
    map_option,
    ranks_options,
    table_options,
    zero_rows_option,
)
from dhsk.commands.parameters import Names, Numbers, NumbersOrAuto, PathParameter, Seed
from dhsk.errors import StoreMismatchError
from dhsk.files import check_writable, made_folder
from dhsk.gram import GramMatrix, open_gram
from dhsk.kernels import Kernel
from dhsk.results.parts import LowRank
from dhsk.samples import Samples, is_gram_store, read_labels, scan

if TYPE_CHECKING:
    from dhsk.results.columns import Cell
    from dhsk.validation.result import CvResult


@click.command("cv")
@click.argument("source", metavar="STORE|SAMPLES")
@click.option("--labels", help="FILE or FILE:COLUMN, one label a sample. [default: svmlight's own]")
@click.option("--out", type=PathParameter(), required=True, help="Results folder.")
@click.option(
    "--kernel",
    "names",
    type=Names(),
    help="One or more of " + ", ".join(KERNELS) + ". [default: a store's own, else heat]",
)
@click.option(
    "--time-scale",
    type=NumbersOrAuto(),
    help="Times of heat and parametrix kernels, in units of log(dim)/dim, or auto for a search. "
    "[default: 0.7,1,1.4]",
)
@click.option(
    "--parametrix-scale",
    type=Numbers(),
    help="Times of parametrix kernels alone: in high dimension they need 10 to 30 times more.",
)
@click.option("--sigma", type=Numbers(), default="1", show_default=True, help="Gaussian widths.")
@click.option(
    "--C",
    "C",
    type=NumbersOrAuto(),
    help="Bounds of the duals, with --rank factors of the losses; or auto: scaled to each kernel. "
    "[default: 0.1,1,10, or auto where the time scale is]",
)
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
@click.option(
    "--min-class",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Fewest samples of a class: smaller classes are left out.",
)
@click.option("--groups", help="FILE or FILE:COLUMN: samples of a group stay in one fold.")
@click.option("--scoring", default="accuracy", show_default=True, help="A scikit-learn scorer.")
@click.option("--class-weight", type=click.Choice(["balanced"]), help="Weigh classes alike.")
@click.option(
    "--tol",
    type=float,
    default=1e-3,
    show_default=True,
    help="Greatest KKT violation; with --rank, part of the gradient at 0 that may be left.",
)
@ranks_options
@click.option(
    "--seed", type=Seed(), default=0, show_default=True, help="Of the folds and landmarks."
)
@click.option("--model", is_flag=True, help="Fit the best cell on all samples: model.dhsk.")
@click.option("--test", metavar="SAMPLES", help="Held-out samples, to score that model.")
@click.option("--test-labels", help="Their labels, FILE or FILE:COLUMN.")
@click.option(
    "--overwrite", is_flag=True, help="Replace the results of another run that are in --out."
)
@map_option
@zero_rows_option
@table_options
@cluster_options
def cv(
    source: str,
    labels: str | None,
    out: Path,
    folds: int,
    seed: int,
    groups: str | None,
    model: bool,
    test: str | None,
    test_labels: str | None,
    overwrite: bool,
    table: TableOptions,
    cluster: ClusterOptions,
    rank: list[int] | None,
    selection: str | None,
    oversampling: float | None,
    loss: str | None,
    **options: Any,
) -> None:
    """Cross-validate SVMs over kernels, times and C, on a Gram store or on samples.

    They are exact, or with --rank linear ones on features, for samples that are too many for a Gram
    matrix: then in this process, unless --cluster or --workers is given.

    Rows of finished kernels are in results.csv while the grid runs. Interrupted, the same command
    goes on where it was; another one does not replace the results unless --overwrite says so.
    """
    from dhsk.validation.cross_validate import cross_validate

    low_rank = low_rank_of(rank, selection=selection, oversampling=oversampling, loss=loss)
    opened, dim, n = _open_source(source, labels, table)
    y = read_labels(labels or source, n, header=table.header)
    grid = _grid(opened, dim, options)
    held_out = _held_out(test, test_labels, table)
    split = None if groups is None else read_labels(groups, n, min_classes=1, header=table.header)
    settings = settings_of(
        **grid, **low_rank, **options,
        folds=folds, seed=seed, labels=y, groups=split,
        **({} if held_out is None else {"test_labels": held_out[1]}),
    )  # fmt: skip
    check_earlier(out, settings, lambda: _fingerprint(opened), overwrite=overwrite)
    rows = out / "results.csv"
    with ExitStack() as stack:
        stack.enter_context(made_folder(out))
        check_writable(out)
        stack.enter_context(noted(out, settings))
        needed = not low_rank
        client = stack.enter_context(connected_if_asked(cluster, needed=needed))
        stack.enter_context(_telling_of(rows))
        progress = stack.enter_context(show_progress())
        stack.enter_context(wrong_out())
        run = partial(
            cross_validate,
            opened,
            y,
            **grid,
            **options,
            low_rank=LowRank(**low_rank) if low_rank else None,
            cv=folds,
            groups=split,
            refit=model,
            test=held_out,
            memory=cluster.memory,
            client=client,
            out=out,
            seed=seed,
            progress=progress,
        )
        result = _run(run, source, out, overwrite=overwrite)
        result = replace(result, settings=settings)
        _write(result, out)
        if overwrite and result.model_ is None:
            (out / "model.dhsk").unlink(missing_ok=True)  # of what was overwritten
    _print_result(result)
    files = ["results.json", "results.csv", "report.html"]
    if result.model_ is not None:
        files.append("model.dhsk")
    say(f"output: {out / files[0]}, {', '.join(files[1:])}")
    say(f"next:   open {out / 'report.html'} in a browser")
    if result.model_ is not None:
        say(f"or:     dhsk predict {out / 'model.dhsk'} SAMPLES --out FILE")


def _fingerprint(opened: GramMatrix | Samples) -> str:
    """Fingerprint of the samples, for which files are read once."""
    if isinstance(opened, GramMatrix):
        return opened.header.fingerprints[0]
    return scan(opened, "identity").fingerprint


def _run(run: Callable[[], "CvResult"], source: str, out: Path, *, overwrite: bool) -> "CvResult":
    """Run; products of other samples, kernels or maps go where they are to be overwritten."""
    stores = out / "gram"
    inside = Path(source).resolve().is_relative_to(stores.resolve())
    try:
        return run()
    except StoreMismatchError:
        if not overwrite or inside or not stores.exists():
            raise
        shutil.rmtree(stores)
    return run()


@contextmanager
def _telling_of(table: Path) -> Iterator[None]:
    """Say where the rows of the finished kernels are if it is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        if table.exists():
            click.echo(f"finished kernels: {table}", err=True)
        raise


def _open_source(
    source: str, labels: str | None, table: TableOptions
) -> tuple[GramMatrix | Samples, int, int]:
    """Gram matrix or samples, their dim and their number."""
    if is_gram_store(Path(source)):
        G = open_gram(source)
        return G, G.dim, G.shape[0]
    samples = open_samples_of(source, table, labels)
    return samples, samples.shape[1], samples.shape[0]


def _grid(opened: GramMatrix | Samples, dim: int, options: dict[str, Any]) -> dict[str, Any]:
    """Kernels and times, taken from the options: what is left of those is passed on as it is."""
    names, scales = options.pop("names"), options.pop("time_scale")
    parametrix, sigma = options.pop("parametrix_scale"), options.pop("sigma")
    time_scale: Literal["auto"] | None = None
    kernels: list[Kernel] | None = None
    if scales == "auto":
        time_scale, scales = "auto", None
        others = [name for name in names or [] if name != "heat"]
        kernels = make_kernels(others, dim, None, parametrix, sigma)
    elif names or scales or not isinstance(opened, GramMatrix):
        kernels = make_kernels(names or ["heat"], dim, scales, parametrix, sigma)
    return {"time_scale": time_scale, "kernels": kernels}


def _held_out(
    test: str | None, test_labels: str | None, table: TableOptions
) -> tuple[Samples, Any] | None:
    """Test samples and their labels."""
    if test is None:
        if test_labels is not None:
            raise click.UsageError("--test-labels needs --test")
        return None
    samples = open_samples_of(test, table, test_labels)
    y = read_labels(test_labels or test, samples.shape[0], min_classes=1, header=table.header)
    return samples, y


def _write(result: "CvResult", out: Path) -> None:
    from dhsk.models.files import save_model

    result.to_json(out / "results.json")
    result.report(out / "report.html")
    if result.model_ is not None:
        save_model(result.model_, out / "model.dhsk")


def _print_result(result: "CvResult") -> None:
    """Print the best cells, the search, the winner, and what is to be known of it."""
    word = result.scoring.replace("_", " ")
    _print_cells(result, word)
    for stage in result.search:
        scales = ", ".join(f"{scale:g}" for scale in stage.time_scales)
        say(f"tried:  time scales {scales} ({stage.why})")
    if result.search_ended:
        say(f"search: {result.search_ended}")
    say(
        f"best:   {_named(result.best)}: mean {word} {result.best.mean:.4f} "
        f"over {result.folds.n} folds"
    )
    _print_choice(result)
    unfinished = result.unfinished(*result.summary)
    if unfinished:
        say(f"beware: {unfinished} fits did not reach the tolerance of {result.tol:g}")
    _print_few_samples(result)
    if result.test is not None:
        say(f"test:   {word} {result.test.score:.4f} on {result.test.n:,} samples held out")


def _print_choice(result: "CvResult") -> None:
    """Print why the best cell is not that of the highest mean, if it is not."""
    choice, best = result.choice, result.best
    if choice is None or choice.highest == best:
        return
    highest, what = choice.highest, "support vectors" if best.rank is None else "features"
    say(
        f"        with {best.size:.0f} {what} the fewest within one standard "
        f"error ({choice.standard_error:.4f}) of the highest mean, {highest.mean:.4f} "
        f"({_named(highest)}, {highest.size:.0f})"
    )


def _print_few_samples(result: "CvResult") -> None:
    """Print which classes were left out, and which were missing where some folds were trained."""
    from dhsk.validation.folds import sizes

    dropped = result.dropped_classes
    if dropped:
        found = sizes([(few.name, few.samples) for few in dropped])
        total = sum(few.samples for few in dropped)
        say(f"beware: {found} too few samples: left out, {total:,} samples in all")
    for few in result.untrained_classes:
        say(
            f"beware: class {few.name} ({few.samples:,} in all) is missing where {few.folds} of "
            f"{result.folds.n} folds were trained: they count it wrong"
        )


def _named(cell: "Cell") -> str:
    """Kernel, rank and C, and what C is in units of the spread if it was chosen so."""
    name = cell.label if cell.rank is None else f"{cell.label}, rank {cell.rank}"
    if cell.C_scaled is None:
        return f"{name}, C = {cell.C:g}"
    return f"{name}, C = {cell.C:.3g} ({cell.C_scaled:g} over the spread)"


def _print_cells(result: "CvResult", word: str) -> None:
    """Print the best cell of every kernel and rank, or the best cells of the only one."""
    low_rank = result.low_rank is not None
    ranked = sorted(result.summary, key=lambda cell: -cell.mean)
    best = {(cell.kernel, cell.rank): cell for cell in reversed(ranked)}
    several = len(best) > 1
    firsts = [cell for cell in ranked if cell is best[cell.kernel, cell.rank]]
    shown = firsts if several else ranked[:10]
    scores = [f"mean {word}", "std"]
    if low_rank:
        head = ["kernel", "rank", "C", *scores, "trace error", "gradient"]
    else:
        head = ["kernel", "C", *scores, "support vectors", "worst KKT"]
    print_table(head, [_line(cell) for cell in shown])
    if len(ranked) > len(shown):
        each = f"the best cell of each kernel{' and rank' if low_rank else ''}"
        which = each if several else "the ten best cells"
        say(f"({which}; all {len(ranked)} in results.csv)")


def _line(cell: "Cell") -> tuple[str, ...]:
    """Texts of a line of the table."""
    tried = (f"{cell.C:g}", f"{cell.mean:.4f}", f"{cell.std:.4f}")
    if cell.rank is None:
        return (cell.label, *tried, f"{cell.size:.0f}", f"{cell.kkt:.1e}")
    return (cell.label, f"{cell.rank}", *tried, f"{cell.trace_error:.2g}", f"{cell.gradient:.1e}")
