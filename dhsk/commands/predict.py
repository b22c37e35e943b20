"""The command `dhsk predict`: labels of samples by a saved model."""

import csv
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Rows
from dhsk.bars import show_progress
from dhsk.commands.connecting import connected_if_asked
from dhsk.commands.console import say, say_cost_of
from dhsk.commands.earlier_run import MODEL, TABLES, refuse_unfinished
from dhsk.commands.inputs import (
    check_out,
    names_in_table,
    open_samples_of,
    own_label_column,
)
from dhsk.commands.known_labels import KnownLabels
from dhsk.commands.labelled import read_labels_of
from dhsk.commands.options import KERNELS, Cluster, labels_option, out_option, shared_options
from dhsk.commands.parameters import PlaceParameter
from dhsk.commands.reading import Reading, reading_options
from dhsk.commands.run_costs import prediction_cost
from dhsk.commands.table import DATA, gathered, option
from dhsk.costs import Cost
from dhsk.errors import InputError, warn
from dhsk.execution.array_job import OthersPendingError
from dhsk.execution.run import Run
from dhsk.models.sources import RowsShape
from dhsk.objects.places import Place, written
from dhsk.objects.places import opened as opened_file
from dhsk.samples import Samples, Vectorizer
from dhsk.samples.arrow import ARROW
from dhsk.samples.gaps import GappedSamples
from dhsk.samples.h5ad import NewColumn
from dhsk.samples.names import in_order, refuse_others
from dhsk.samples.refusals import NoNumbersError
from dhsk.samples.tables import usual_id

if TYPE_CHECKING:
    from dhsk.models.exact import SvcModel
    from dhsk.models.low_rank import LowRankModel


PROBA: Final = option(
    "--proba",
    is_flag=True,
    common=True,
    help="Write a probability of each class too; the likeliest may be another than the label.",
)
DECISION: Final = option(
    "--decision", is_flag=True, help="Write the values of the decision function too."
)

INTO: Final = option(
    "--into",
    metavar="obs/NAME",
    group=DATA,
    help="New column for the labels in SAMPLES, an .h5ad file: a copy with it takes its place.",
)
REPLACE: Final = option(
    "--replace", is_flag=True, group=DATA, help="With --into: replace a column of that name."
)


_OTHERS: Final = (*ARROW, ".npy", ".npz", ".h5ad", ".jsonl", ".xlsx", ".gz", ".zst")
"""Formats that the table of predictions is not in."""


def _delimiter(table: Place) -> str:
    """What divides the fields of a table of predictions, by its name."""
    return "\t" if table.name.lower().endswith(".tsv") else ","


def _model_in(place: Place) -> Place:
    """The model of a file, or of the folder of a run of `dhsk cv --model`."""
    refuse_unfinished(place)
    if not (place / TABLES[0]).exists():
        return place
    if not (place / MODEL).exists():
        raise InputError(f"{place} has no model: run dhsk cv with --model, or dhsk train")
    return place / MODEL


def _has_labels(table: Place) -> bool:
    """Whether a file begins as a table of predictions does; an empty one may be replaced."""
    with opened_file(table) as file:
        first = file.readline(1 << 20).decode(errors="replace").strip()
    names = next(csv.reader([first], delimiter=_delimiter(table)), [""])
    own = ("decision_", "probability_")
    return names == [""] or (
        "label" in names and all(n in ("id", "label") or n.startswith(own) for n in names)
    )


@dataclass(frozen=True)
class _Target:
    """Where predictions go: into a table, a column of the samples' file, or both."""

    out: Place | None
    into: str | None
    replace: bool

    def check(self, columns: dict[str, Any], *inputs: str | Place | None) -> None:
        """Refuse a target that is missing or one of the inputs, and columns that have none."""
        if self.out is None and self.into is None:
            raise click.UsageError("give --out FILE, or --into obs/NAME for a column of SAMPLES")
        if self.replace and self.into is None:
            raise click.UsageError("--replace is for a column of --into: give that too")
        if self.out is not None:
            check_out(self.out, *inputs, what="a table of predictions", is_one=_has_labels)
            if self.out.name.lower().endswith(_OTHERS):
                raise InputError(f"--out {self.out} would be a table of text: call it .csv or .tsv")
        given = next((f"--{name}" for name, wanted in columns.items() if wanted), None)
        if self.out is None and given is not None:
            raise click.UsageError(f"{given} is for the table of --out: --into writes labels alone")

    def column(self, samples: str, n_samples: int) -> NewColumn | None:
        """The new column, if one is asked for and can be written."""
        if self.into is None:
            return None
        return NewColumn.of(samples, self.into, n_samples, replace=self.replace)

    def say(self, samples: str) -> None:
        """Print where the predictions are."""
        column = None if self.into is None else f"{self.into} of {samples}"
        say(f"output: {', '.join(str(place) for place in (self.out, column) if place is not None)}")


@click.command("predict")
@click.argument("model", type=PlaceParameter())
@click.argument("samples")
@gathered(
    "target",
    _Target,
    out_option.of(required=False, help="Table of labels, .csv or .tsv."),
    INTO,
    REPLACE,
)
@labels_option.of(help="FILE or FILE:COLUMN, to print the accuracy.")
@gathered("columns", dict, PROBA, DECISION)
@reading_options
@shared_options
def predict(
    model: Place,
    samples: str,
    target: _Target,
    labels: str | None,
    columns: dict[str, Any],
    table: Reading,
    cluster: Cluster,
) -> None:
    """Predict the labels of SAMPLES by a MODEL.

    MODEL is of `dhsk train`, or the folder of `dhsk cv --model`. The labels are written block by
    block to a table, or into AnnData with --into. It runs on the cores of this process unless
    --cluster or --workers is given. Features with names may be in any order. Ids of the samples
    come first where the file has them: AnnData's obs_names, an array of names in an .npz archive, a
    column of a table (--id-column, else one called id that is no feature).
    """
    from dhsk.models.exact import SvcModel
    from dhsk.models.files import load_model

    model = _model_in(model)
    target.check(columns, model, samples, labels)
    if cluster.part is not None and target.into is not None:
        raise click.UsageError("--part is for the table of --out: leave --into out")
    loaded = load_model(model)
    if columns["proba"] and not loaded.has_probabilities:
        line = _training_of(loaded, table, exact=isinstance(loaded, SvcModel))
        raise InputError(f"{model} has no probabilities: train one that has by {line}")
    opened = _samples_for(loaded, model, samples, labels, table)
    known = None
    if labels is not None:
        known = KnownLabels(_comparable(labels, opened, loaded, table), loaded.classes)
    column = target.column(samples, opened.shape[0])
    memory = cluster.limit
    shown = _Table(loaded, columns)
    fitted, width = RowsShape.of(loaded.rows), loaded.width
    copied = 0 if column is None else column.n_bytes

    def cost() -> Cost:
        found = prediction_cost(opened, fitted, width, len(shown.header), Run(memory))
        return replace(found, disk=found.disk + copied)

    say_cost_of(cost)
    places = target.out, column
    try:
        with (
            connected_if_asked(cluster, 0, target.out, one_pass=True) as client,
            show_progress() as progress,
        ):
            options = Run(memory, client, report=progress)
            _write_predictions(shown, opened, places, known, options)
    except OthersPendingError:
        say(f"this part is done: the one that ends last writes {target.out}")
        return
    if known is not None:
        known.say()
    target.say(samples)


def _training_of(model: "SvcModel | LowRankModel", table: Reading, *, exact: bool) -> str:
    """Command that trains a classifier like a model, with probabilities."""
    texts = replace(table.of_new_samples, drop_columns=(), id_column=None, header=None)
    texts = texts if model.vectorizer is None else texts.counting(model.vectorizer)
    spec = {name: value for name, value in model.kernel.to_spec().items() if name != "dim"}
    own = [f"--{name} {value}" for name, value in spec.items() if name != "name"]
    words = [f"--kernel {spec['name']}", *own] if spec["name"] in KERNELS else []
    words += [f"--map {model.map_name}"] if model.map_name != model.kernel.default_map else []
    words += [f"--C {model.certificates.C:g}"]
    if exact and len(model.classes) > 2:
        words.append(f"--multi-class {getattr(model, 'multi_class', 'ovo')}")
    words += ["--probability"] if exact else [f"--rank {model.rows.shape[0]} --loss logistic"]
    return f"dhsk train SAMPLES --labels LABELS{texts.words} {' '.join(words)} --out MODEL"


def _samples_for(
    loaded: "SvcModel | LowRankModel",
    model: Place,
    samples: str,
    labels: str | None,
    table: Reading,
) -> Samples:
    """Samples with the features of a model, in its order; InputError for others."""
    columns, own = names_in_table(samples, table) or (), own_label_column(samples, labels)
    if table.id_column is None and loaded.feature_names is not None:
        known = {*table.drop_columns, *own, *loaded.feature_names}
        table = replace(table, id_column=usual_id([name for name in columns if name not in known]))
    if loaded.vectorizer is not None and table.vectorizer != Vectorizer():
        raise click.UsageError(
            f"{table.of_texts} were chosen in training, and {model} has kept them: leave them out"
        )
    like = () if loaded.vectorizer is not None else loaded.feature_names or ()
    if set(own) & set(like):
        raise InputError(
            f"--labels {labels} is a feature of {model}: name the column of the labels"
        )
    named = columns != tuple(map(str, range(len(columns))))
    if named and set(like) - set(columns):  # text in others would be refused
        none = {*table.drop_columns, *own, table.id_column}
        refuse_others(samples, [name for name in columns if name not in none], like, str(model))
    try:
        opened = open_samples_of(samples, table, labels, loaded.dim, loaded.vectorizer, like=like)
    except NoNumbersError as error:
        if not like:
            raise
        raise InputError(
            f"{error.place}: {model} needs its numbers, so write them as in training, or leave "
            "empty what is missing, which a model of scaled columns takes"
        ) from None
    if opened.vectorizer is not None and loaded.vectorizer is None:
        raise InputError(
            f"{samples} holds texts, but {model} was trained on counts: give counts of the same "
            "words, or train a model on texts"
        )
    return in_order(opened, loaded.feature_names, str(model), loaded.dim)


def _comparable(
    labels: str, samples: Samples, model: "SvcModel | LowRankModel", table: Reading
) -> NDArray[Any]:
    """True labels, which must be numbers or text like those of the model."""
    truth: NDArray[Any] = read_labels_of(samples, labels, table, min_classes=1)
    if model.classes.dtype.kind == "U" and np.isin(truth.astype(str), model.classes).all():
        return truth.astype(str)  # of codes such as 100, where others are 007
    numbers = [array.dtype.kind in "biuf" for array in (truth, model.classes)]
    if numbers[0] != numbers[1]:
        kind = {True: "numbers", False: "text"}
        raise InputError(
            f"{labels} holds {kind[numbers[0]]}, but the classes of the model are "
            f"{kind[numbers[1]]}: give the labels as they were in training"
        )
    unknown = truth[~np.isin(truth, model.classes)]
    if len(unknown):
        names = ", ".join(map(str, np.unique(unknown)[:5].tolist()))
        warn(
            f"{len(unknown):,} of {len(truth):,} labels of {labels} are no class of the model "
            f"({names}): their predictions count as wrong"
        )
    return truth


@dataclass(frozen=True)
class _Table:
    """Columns that are written for each sample beside its id."""

    model: "SvcModel | LowRankModel"
    columns: dict[str, Any]

    @property
    def marked(self) -> Any:
        """What tells it from others, for array jobs."""
        return self.model

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        classes = self.model.classes.tolist()
        decided = classes[1:] if len(classes) == 2 else classes  # of two, one: above 0 the second
        return [
            "label",
            *(f"decision_{c}" for c in decided if self.columns["decision"]),
            *(f"probability_{c}" for c in classes if self.columns["proba"]),
        ]

    def of_rows(self, rows: Rows) -> tuple[NDArray[Any], list[NDArray[Any]]]:
        """Labels of mapped samples, (rows,), and the columns beside them."""
        decisions = self.model.decisions(rows)
        beside: list[NDArray[Any]] = []
        if self.columns["decision"]:
            beside += list(self.model.scores_of(decisions).reshape(len(decisions), -1).T)
        if self.columns["proba"]:
            beside += list(self.model.probabilities_of(decisions).T)
        return self.model.labels_of(decisions), beside


def _predicted(
    table: _Table, samples: Samples, run: Run
) -> Iterator[tuple[NDArray[Any], list[NDArray[Any]]]]:
    """Results of `_Table.of_rows` block by block, and warnings of zeros and gaps at the end."""
    from dhsk.models.predict import Predictor

    model, row_map = table.model, table.model.row_map
    counted = GappedSamples(samples)
    samples = row_map.to_predict(counted)
    yield from Predictor(row_map, model.rows, table.of_rows, model.width).blocks(samples, run)
    row_map.warn(samples)
    counted.warn()


def _write_predictions(
    table: _Table,
    samples: Samples,
    places: tuple[Place | None, NewColumn | None],
    known: KnownLabels | None,
    run: Run,
) -> None:
    """Write a table, a column or both; count what is right."""
    out, column = places
    codes: list[NDArray[np.int32]] = []
    with closing(_written_rows(table, samples, out, run)) as found:
        for predicted in found:
            if column is not None:
                codes.append(table.model.classes.searchsorted(predicted).astype(np.int32))
            if known is not None:
                known.add(predicted)
    if column is not None:
        column.write(np.concatenate(codes), table.model.classes)


def _written_rows(
    table: _Table, samples: Samples, out: Place | None, run: Run
) -> Generator[NDArray[Any], None, None]:
    """Labels block by block, each written to a table, if any, with its columns beside."""
    found = _predicted(table, samples, run)
    if out is None:
        yield from (labels for labels, _ in found)
        return
    names = samples.each_id()
    # Names may hold half of a pair of UTF-16, which JSON allows.
    with written(out, "w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file, delimiter=_delimiter(out))
        writer.writerow(table.header if names is None else ["id", *table.header])
        for labels, beside in found:
            ids_of_block = [] if names is None else [islice(names, len(labels))]
            writer.writerows(zip(*ids_of_block, labels, *beside, strict=True))
            yield labels
