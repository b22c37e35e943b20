"""The command `dhsk cv`: a cross-validation to a folder of results."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from dhsk.bars import show_progress
from dhsk.commands.config import FILE, config_option, write_config
from dhsk.commands.connecting import connected_if_asked, wrong_out
from dhsk.commands.console import hint, say_cost
from dhsk.commands.cv_options import FINAL, KERNELS_OF_GRID, PASSED_ON, SETTINGS, splitter_of
from dhsk.commands.cv_table import print_result
from dhsk.commands.earlier_run import (
    MODEL,
    PAGE,
    READING,
    TABLES,
    answer_in,
    check_earlier,
    noted,
    opening,
    run_over,
    settings_of,
    telling_of,
)
from dhsk.commands.inputs import (
    label_source,
    labels_of_test,
    open_samples_of,
    open_source,
    own_label_column,
    say_predict,
)
from dhsk.commands.labelled import read_labels_of, weights_of_labels
from dhsk.commands.options import (
    Cluster,
    cluster_options,
    labels_option,
    landmarks_in,
    make_kernels,
    out_option,
    refuse_idle,
)
from dhsk.commands.reading import Reading, reading_options
from dhsk.commands.table import gathered, made
from dhsk.costs import Cost, costs_told
from dhsk.execution.owner import sole_writer_of
from dhsk.gram import GramMatrix
from dhsk.objects.places import (
    Place,
    check_writable,
    made_folder,
    remove_scratch,
)
from dhsk.report import write_report
from dhsk.report.running import REFRESH_SECONDS, page_of_run
from dhsk.results.asked import Fitting, Output, Refit
from dhsk.results.low_rank import LowRank
from dhsk.samples import AnyVectorizer, Samples, scan
from dhsk.systems import quoted
from dhsk.verbosity import Verbosity, verbosity

if TYPE_CHECKING:
    from dhsk.validation.result import CvResult


def _kernels(given: dict[str, Any], opened: GramMatrix | Samples) -> dict[str, Any]:
    """Kernels and times; None for both leaves the choice to `cross_validate`."""
    dim = opened.dim if isinstance(opened, GramMatrix) else opened.shape[1]
    names, scales = given["names"] or ["heat"], given["time_scale"]
    refuse_idle(names, given)
    if not (given["names"] or scales):
        return {"time_scale": None, "kernels": None}
    auto = scales == "auto"
    if auto:
        names = [name for name in given["names"] or [] if name != "heat"]
    kernels = make_kernels(names, dim, given | {"time_scale": None if auto else scales})
    return {"time_scale": "auto" if auto else None, "kernels": kernels or None}


def _low_rank(grid: dict[str, Any]) -> LowRank | None:
    """Ranks and landmarks; None for exact classifiers."""
    chosen = landmarks_in(grid)
    if grid["rank"] is None and chosen:
        raise click.UsageError(f"--{next(iter(chosen))} needs --rank")
    return None if grid["rank"] is None else made(LowRank, grid)


def _held_out(
    final: dict[str, Any],
    table: Reading,
    vectorizer: AnyVectorizer | None,
    source: str,
    labels: str | None,
) -> tuple[Samples, Any] | None:
    """Test samples and their labels; the vectorizer, source and labels are those of training."""
    test, test_labels = final["test"], final["test_labels"]
    if test is None:
        if test_labels is not None:
            raise click.UsageError("--test-labels needs --test")
        return None
    own = labels_of_test(test, source, labels)
    test_labels = test_labels or own
    samples = open_samples_of(test, table, test_labels, vectorizer=vectorizer, like=())
    y = read_labels_of(samples, label_source(test_labels, test), table, min_classes=1)
    return samples, y


@click.command("cv")
@click.argument("samples", metavar="STORE|SAMPLES")
@labels_option
@out_option.of(help="Results folder.")
@gathered("grid", dict, *KERNELS_OF_GRID, *SETTINGS)
@gathered("final", dict, *FINAL)
@reading_options
@cluster_options
@config_option
def cv(
    samples: str,
    labels: str | None,
    out: Place,
    grid: dict[str, Any],
    final: dict[str, Any],
    table: Reading,
    cluster: Cluster,
) -> None:
    """Find the best kernel and parameters by cross-validation.

    SVMs are fitted over kernels, times and C, on a Gram store or on samples. They are exact, or
    with --rank linear on Nyström features, for more samples than a Gram matrix allows. These, and
    grids on fewer than 5,000 samples, run in this process unless --cluster or --workers is given.

    Without kernels and times it looks for the best heat kernel, cosine (also on tf-idf or
    log-ratios) and linear, or Gaussian on columns of other units (--map scaled): see `decide`.

    While it runs, results.csv and report.html show what is finished. Inner products are removed at
    the end, unless --store asks for them. The same command goes on after an interrupt, and prints
    the results again after the end; another one replaces them only with --overwrite.
    """
    low_rank, overwrite = _low_rank(grid), final["overwrite"]
    table = table.without(own_label_column(samples, grid["groups"]))
    opened = open_source(samples, labels, table)
    y = read_labels_of(opened, label_source(labels, samples), table)
    kernels, weights = _kernels(grid, opened), weights_of_labels(grid["class_weight"], y)
    held_out = _held_out(final, table, opened.vectorizer, samples, labels)
    groups = None
    if grid["groups"] is not None:
        groups = read_labels_of(opened, grid["groups"], table, min_classes=1)
    said = {row.key.replace("-", "_"): grid[row.name] for row in SETTINGS}
    said |= kernels | {"labels": y, "groups": groups}
    said |= {} if held_out is None else {"test_labels": held_out[1]}
    settings = settings_of(**said)
    same = check_earlier(
        out, settings, lambda: _fingerprint(opened), table.words, overwrite=overwrite
    )
    if same and final["test"] is None and final["store"] is None:
        answer = answer_in(out, final["model"], final["eigenvalues"], final["baselines"])
        if answer is not None:
            hint(f"{out} has the results of this run: nothing is computed again (or: --overwrite)")
            print_result(answer)
            _print_files(out, answer, samples, labels, table)
            return
    from dhsk.validation.cross_validate import cross_validate

    run = partial(
        cross_validate, opened, y, **kernels, **{name: grid[name] for name in PASSED_ON},
        class_weight=weights,
        low_rank=low_rank, groups=groups, cv=splitter_of(grid), fit=made(Fitting, grid),
        refit=made(Refit, grid | final | {"test": held_out}), memory=cluster.memory,
        out=made(Output, final | {"folder": out}),
    )  # fmt: skip
    with made_folder(out):
        check_writable(out)
        with (
            sole_writer_of(out),
            noted(out, settings),
            connected_if_asked(cluster, 0 if low_rank else opened.shape[0]) as client,
            telling_of(out / TABLES[1]),
            show_progress() as progress,
            page_of_run(out / PAGE, f"Cross-validation of {samples}", progress) as page,
            costs_told(partial(_say_cost, out / PAGE)),
            wrong_out(),
        ):
            run = partial(run, client=client, progress=page)
            result = run_over(run, samples, out, overwrite=overwrite)
            # For commands that come after.
            of_new = table.of_new_samples.without(own_label_column(samples, labels)).words
            reading = {
                "labels": labels, "groups": grid["groups"], "options": table.words,
                "predict": of_new, "texts": getattr(opened.vectorizer, "settings", None),
            }  # fmt: skip
            result = replace(result, settings=settings | {READING: reading})
            _write(result, opened, out, overwrite=overwrite)
            write_config(out)
            remove_scratch(out / "fits")
    print_result(result)
    _print_files(out, result, samples, labels, table)


def _say_cost(page: Place, cost: Cost) -> None:
    say_cost(cost)
    long = (cost.seconds or REFRESH_SECONDS) >= REFRESH_SECONDS / 2  # a guess to a factor of two
    if long and verbosity() >= Verbosity.USUAL:
        click.echo(f"page: {page}, rewritten as candidates are finished", err=True)


def _fingerprint(opened: GramMatrix | Samples) -> str:
    """Fingerprint of the samples; files are read once."""
    if isinstance(opened, GramMatrix):
        return opened.header.fingerprints[0]
    return scan(opened, None).fingerprint


def _write(
    result: "CvResult", opened: GramMatrix | Samples, out: Place, *, overwrite: bool
) -> None:
    """Write the files of a result, last the one that says it; remove an overwritten model."""
    from dhsk.validation.predictions import write_predictions

    if result.held_out_ is not None:
        samples = opened if isinstance(opened, Samples) else None
        write_predictions(result.held_out_, result.best.point, samples, out / "predictions.csv")
    write_report(result, out / PAGE, TABLES)
    if result.model_ is not None:
        result.best_estimator_.save(out / MODEL)
    elif overwrite:
        (out / MODEL).unlink(missing_ok=True)
    result.to_json(out / "results.json")


def _print_files(
    out: Place, result: "CvResult", source: str, labels: str | None, table: Reading
) -> None:
    """Print the files of the results, and the next commands."""
    model = result.model_ is not None
    files = [*TABLES, PAGE, *([MODEL] if model else [])]
    hint(f"output: {out / files[0]}, {', '.join(files[1:])}")
    beside = result.beside
    if model and beside is not None and beside.ahead and not result.unlearnt:
        name = beside.baseline.method
        hint(f"model:  of {result.best.brief}; the code of {name}, the one to take, is on the page")
    elif model and result.best != result.decision.best:
        hint(f"model:  of {result.best.brief}, as decided (--choose best: of the highest mean)")
    if (out / FILE).exists():
        hint(f"repeat: dhsk cv --config {quoted(str(out / FILE))}")
    hint(f"next:   {opening(out / PAGE)}")
    if model:
        say_predict("or:     ", out / MODEL, source, labels, table)
