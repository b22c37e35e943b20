"""The command `dhsk predict`: labels of samples by a saved model."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import click
from numpy.typing import NDArray

from dhsk.arrays import ROWS, Rows
from dhsk.bars import show_progress
from dhsk.commands.connecting import connected_if_asked
from dhsk.commands.console import say, say_cost_of
from dhsk.commands.inputs import check_out, open_samples_of, own_label_column
from dhsk.commands.options import Cluster, cluster_options, labels_option, out_option
from dhsk.commands.parameters import PlaceParameter
from dhsk.commands.reading import Reading, reading_options
from dhsk.commands.run_costs import prediction_cost
from dhsk.commands.table import gathered, option
from dhsk.errors import InputError
from dhsk.execution.run import Run
from dhsk.models.sources import RowsShape
from dhsk.objects.places import Place, written
from dhsk.samples import Samples, Vectorizer, read_labels
from dhsk.samples.csv_tables import usual_id_column
from dhsk.samples.names import in_order

if TYPE_CHECKING:
    from dhsk.models.exact import SvcModel
    from dhsk.models.low_rank import LowRankModel


PROBA: Final = option("--proba", is_flag=True, help="Write a probability of each class too.")
DECISION: Final = option(
    "--decision", is_flag=True, help="Write the values of the decision function too."
)


@click.command("predict")
@click.argument("model", type=PlaceParameter())
@click.argument("samples")
@out_option.of(help="CSV of the labels.")
@labels_option.of(help="FILE or FILE:COLUMN, to print the accuracy.")
@gathered("columns", dict, PROBA, DECISION)
@reading_options
@cluster_options
def predict(
    model: Place,
    samples: str,
    out: Place,
    labels: str | None,
    columns: dict[str, Any],
    table: Reading,
    cluster: Cluster,
) -> None:
    """Predict the labels of SAMPLES by a MODEL.

    MODEL is of `dhsk train` or `dhsk cv --model`. The labels are written block by block. It runs on
    the cores of this process unless --cluster or --workers is given. Features with names may be in
    any order. Ids of the samples come first where the file has them: AnnData's obs_names, an array
    of names in an .npz archive, a column of a table (--id-column, else one called id that is no
    feature).
    """
    from dhsk.models.exact import SvcModel
    from dhsk.models.files import load_model

    check_out(out, model, samples, labels)
    loaded = load_model(model)
    if columns["proba"] and not loaded.has_probabilities:
        option = "--probability" if isinstance(loaded, SvcModel) else "--loss logistic"
        raise InputError(f"{model} has no probabilities: train it with {option}")
    if table.id_column is None and loaded.feature_names is not None:
        known = (*table.drop_columns, *own_label_column(samples, labels), *loaded.feature_names)
        table = replace(table, id_column=usual_id_column(samples, known, table.header))
    if loaded.vectorizer is not None and table.vectorizer != Vectorizer():
        raise click.UsageError(
            f"{table.of_texts} were chosen in training, and {model} has kept them: leave them out"
        )
    opened = open_samples_of(
        samples, table, labels, n_features=loaded.dim, vectorizer=loaded.vectorizer
    )
    if opened.vectorizer is not None and loaded.vectorizer is None:
        raise InputError(
            f"{samples} holds texts, but {model} was trained on counts: give counts of the same "
            "words, or train a model on texts"
        )
    opened = in_order(opened, loaded.feature_names, str(model))
    if opened.shape[1] != loaded.dim:
        raise InputError(
            f"{opened.source} has {opened.shape[1]} features, but {model} was trained on "
            f"{loaded.dim}: give the same features in the same order"
        )
    truth = None if labels is None else _comparable(labels, opened.shape[0], loaded, table)
    memory = cluster.limit
    shown = _Table(loaded, columns)
    fitted, width = RowsShape.of(loaded.rows), loaded.width
    say_cost_of(lambda: prediction_cost(opened, fitted, width, len(shown.header), Run(memory)))
    with connected_if_asked(cluster, needed=False) as client, show_progress() as progress:
        options = Run(memory, client, report=progress)
        right = _write_predictions(shown, opened, out, truth, options)
    if truth is not None:
        say(f"accuracy {right / len(truth):.4f}: {right:,} of {len(truth):,} labels are right")
    say(f"output: {out}")


def _comparable(
    labels: str, n_samples: int, model: "SvcModel | LowRankModel", table: Reading
) -> NDArray[Any]:
    """True labels, which must be numbers or text like those of the model."""
    truth = read_labels(labels, n_samples, min_classes=1, header=table.header)
    numbers = [array.dtype.kind in "biuf" for array in (truth, model.classes)]
    if numbers[0] != numbers[1]:
        kind = {True: "numbers", False: "text"}
        raise InputError(
            f"{labels} holds {kind[numbers[0]]}, but the classes of the model are "
            f"{kind[numbers[1]]}: give the labels as they were in training"
        )
    return truth


@dataclass(frozen=True)
class _Table:
    """Columns that are written for each sample beside its id."""

    model: "SvcModel | LowRankModel"
    columns: dict[str, Any]

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
    """Results of `_Table.of_rows` block by block, and a warning of all-zero samples at the end."""
    from dhsk.models.predict import Predictor

    model, row_map = table.model, table.model.row_map
    samples = row_map.to_predict(samples)
    yield from Predictor(row_map, model.rows, table.of_rows, model.width).blocks(samples, run)
    row_map.warn(samples)


def _write_predictions(
    table: _Table, samples: Samples, out: Place, truth: NDArray[Any] | None, run: Run
) -> int:
    """Write the table; return the number of right labels, 0 without true labels."""
    ids = samples.ids(ROWS)
    names = None if ids is None else chain.from_iterable(ids)
    right = first = 0
    with written(out, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.header if names is None else ["id", *table.header])
        for predicted, beside in _predicted(table, samples, run):
            columns: list[Iterable[Any]] = [predicted, *beside]
            if names is not None:
                columns.insert(0, islice(names, len(predicted)))
            writer.writerows(zip(*columns, strict=True))
            if truth is not None:
                right += int((predicted == truth[first : first + len(predicted)]).sum())
            first += len(predicted)
    return right
