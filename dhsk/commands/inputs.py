"""Input and output files of commands, checked before any work."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

import click

from dhsk.bars import passes_shown
from dhsk.commands.console import hint
from dhsk.commands.reading import Reading
from dhsk.errors import InputError, warn
from dhsk.files import refuse_device
from dhsk.gram import GramMatrix, open_gram
from dhsk.objects.places import Place, check_writable
from dhsk.samples import AnyVectorizer, Samples, Spectrum, Vectorizer, is_gram_store, open_samples
from dhsk.samples.arrow import ARROW, read_schema
from dhsk.samples.csv_tables import TableSamples
from dhsk.samples.delimited import TABLES, read_columns
from dhsk.samples.json_lines import JSONL
from dhsk.samples.names import listed
from dhsk.samples.paths import Origin
from dhsk.samples.svmlight import SVMLIGHT
from dhsk.samples.tables import Table
from dhsk.samples.text_folder import TEXT_FILES
from dhsk.systems import quoted
from dhsk.units import counted
from dhsk.verbosity import Verbosity, verbosity

_MOST_IDS: Final = 10_000
"""Rows whose ids are looked at for repeats."""

OF_COLUMNS: Final = (*TABLES, *ARROW)
"""How files of named columns end."""


def open_source(source: str, labels: str | None, table: Reading) -> GramMatrix | Samples:
    """Open the Gram matrix or the samples of a command."""
    refuse_bare_column(source, labels)
    if is_gram_store(Origin.of(source).path):
        return open_gram(source)
    return open_samples_of(source, table, labels)


def open_samples_of(
    source: str,
    table: Reading,
    labels: str | None = None,
    n_features: int | None = None,
    vectorizer: AnyVectorizer | None = None,
    *,
    like: Sequence[str] | None = None,
) -> Samples:
    """Open the samples of a command; say on standard error if a table has no header.

    `labels` is FILE or FILE:COLUMN; a column of the samples' own file is not a feature.
    `n_features` is for svmlight files, `vectorizer` for texts with a known vocabulary. `like` are
    the features of others that these are compared with, empty if nameless: a table may have more
    columns, and lack those that are no features.
    """
    refuse_bare_column(source, labels)
    if labels is not None:
        Origin.of(labels)  # before the samples are read
    own = own_label_column(source, labels)
    table = table if like is None else _those_in(source, table, like, own)
    drop = (*table.drop_columns, *own)
    chosen = vectorizer or table.vectorizer
    with passes_shown(isinstance(chosen, Spectrum)):
        samples = open_samples(
            source,
            drop_columns=drop,
            header=table.header,
            id_column=table.id_column,
            n_features=n_features,
            vectorizer=chosen,
        )
    if samples.vectorizer is None and table.vectorizer != Vectorizer():
        raise click.UsageError(
            f"{table.of_texts} are for texts, but {source} holds numbers: leave them out, or name "
            f"the texts as {source}:COLUMN"
        )
    if isinstance(samples, TableSamples) and table.header is None and not samples.has_header:
        click.echo(f"dhsk: {samples.how_begun()}", err=True)
    if table.id_column is not None and samples.shape[1] == 1:
        _warn_of_long(samples, table.id_column)
    return samples


def _warn_of_long(samples: Samples, ids: str) -> None:
    """Warn of one number a row, whose ids repeat: the table is long, and is to be made wide."""
    found = list(islice(samples.each_id() or (), _MOST_IDS))
    if 2 * len(set(found)) <= len(found):
        warn(
            f"column {ids} of {samples.source} has {len(set(found)):,} values in {len(found):,} "
            "rows, and there is one feature: if this is a long table make one row a sample, as "
            "pandas.read_csv(FILE).pivot(index=SAMPLE, columns=FEATURE, values=VALUE).to_csv does"
        )


def names_in_table(source: str, table: Reading) -> Sequence[str] | None:
    """Columns of samples that are a table; None of others."""
    origin = Origin.of(source)
    found = None if origin.key is not None else table_at(origin, table)
    return None if found is None else tuple(n for n in found.names if n != found.index)


def table_at(origin: Origin, table: Reading) -> Table | None:
    """The named columns of a file; None if it has none."""
    if origin.is_folder or origin.suffix not in OF_COLUMNS:
        return None
    is_csv = origin.suffix in TABLES
    return read_columns(origin, table.header) if is_csv else read_schema(origin)


def _those_in(source: str, table: Reading, like: Sequence[str], own: tuple[str, ...]) -> Reading:
    """Options by which new samples have the features of others, if all are there.

    Columns to drop that they lack, such as labels, are left out, and others are dropped, but for
    `own` labels; the latter is said.
    """
    names = names_in_table(source, table)
    if names is None:
        return table
    table = replace(table, drop_columns=tuple(n for n in table.drop_columns if n in names))
    if not like or not set(like) <= set(names):
        return table
    none = {*like, *own, *table.drop_columns, table.id_column}
    more = [name for name in names if name not in none]
    if more:
        said = f"{source} has {counted(len(more), 'column')} beside the {len(like):,} features"
        click.echo(f"dhsk: {said}, left out: {listed(more)}", err=True)
    return table.without(more)


def label_source(labels: str | None, source: str) -> str:
    """Where the labels of samples are: where --labels says, else in the samples' own file.

    UsageError if the samples are a part of a file, such as a column of texts.
    """
    if labels is None and ":" in source and not Path(source).exists():
        origin = Origin.of(source)
        if origin.key is not None and origin.suffix in (*TABLES, *JSONL, *ARROW):
            raise click.UsageError(
                f"{source} holds the samples: name the labels with --labels, as --labels "
                f"{quoted(f'{origin.path}:NAME')}"
            )
    if labels is None and is_gram_store(Origin.of(source).path):
        raise click.UsageError(f"{source} is a Gram matrix without labels: give --labels FILE")
    if labels is None and source.lower().endswith(TEXT_FILES):
        raise click.UsageError(f"{source} holds the samples: name the labels with --labels FILE")
    return labels or source


def labels_of_test(test: str, source: str, labels: str | None) -> str | None:
    """Labels of test samples that name none: the column that holds those of the others.

    Warns of a test by the samples themselves.
    """
    if test == source or is_same_file(Path(test), source):
        warn(
            f"--test {test} has the samples that the model is trained on: its score says nothing "
            "of new ones, as that of the folds does"
        )
    column = own_label_column(source, labels)
    return f"{test}:{column[0]}" if column and test.lower().endswith(OF_COLUMNS) else None


def check_out(
    out: Place, *inputs: str | Place | None, what: str, is_one: Callable[[Place], bool]
) -> None:
    """Check that the file for the result can be written, and that nothing else is lost by that.

    Each of `inputs` is FILE, FILE:KEY or None. InputError if `out` is an input, a folder, a device,
    in a missing folder, or a file that is not `what`, as `is_one` tells, such as an earlier result;
    StoreError if its folder cannot be written.
    """
    if out.is_dir():
        raise InputError(f"{out} is a folder, but --out names a file")
    if isinstance(out, Path):
        refuse_device(out)
    folder = (Path(os.path.realpath(out)) if isinstance(out, Path) else out.absolute()).parent
    if isinstance(folder, Path) and not folder.is_dir():
        raise InputError(f"the folder {folder} for --out does not exist: create it")
    check_writable(folder)
    for whole in map(str, filter(None, inputs)):
        if any(is_same_file(out, path) for path in (whole, *(file for file, _ in _splits(whole)))):
            raise InputError(f"--out {out} is the input {whole} and would replace it: name another")
    if not out.exists():
        return
    if not is_one(out):
        raise InputError(
            f"--out {out} exists, is not {what}, and would be lost: name another, or remove it"
        )
    parted = click.get_current_context().params.get("part")  # whose results may be all there
    if verbosity() >= Verbosity.USUAL and parted is None:
        click.echo(f"dhsk: --out {out} is {what}, which will be replaced", err=True)


def is_same_file(out: Place, path: str) -> bool:
    """Whether both paths exist and are the same file."""
    try:
        return out.samefile(path)
    except (OSError, ValueError):  # not there, or no path at all
        return False


def refuse_bare_column(source: str, labels: str | None) -> None:
    """Raise InputError for a column name given as a file, or labels that are the samples."""
    if labels == source and Origin.of(source).key is not None:
        raise InputError(f"--labels {labels} are the samples themselves: name another column")
    own = {".h5ad": "obs/"} | dict.fromkeys((*TABLES, *ARROW, *JSONL), "")
    place = next((own[end] for end in own if source.lower().endswith(end)), None)
    if labels is None or place is None or ":" in labels or Path(labels).exists():
        return
    if not Path(labels).suffix:
        raise InputError(
            f"there is no file {labels}: labels in a column of {source} are named as "
            f"--labels {quoted(f'{source}:{place}{labels.removeprefix(place)}')}"
        )


def say_predict(
    head: str, model: Place, source: str, labels: str | None, table: Reading, more: str = ""
) -> None:
    """Print the command that predicts by a model: of its own samples, which stand for new ones.

    `more` are options of it, with a blank before each.
    """
    shown = "SAMPLES" if is_gram_store(Origin.of(source).path) else quoted(source)
    drop = (*table.drop_columns, *own_label_column(source, labels))
    options = replace(table.of_new_samples, drop_columns=drop).words
    hint(f"{head}dhsk predict {quoted(str(model))} {shown}{options}{more} --out predicted.csv")
    if shown != "SAMPLES":
        hint(f"{' ' * len(head)}(with new samples in place of {shown})")


def label_words(source: str) -> str:
    """The option that names the labels of samples on a command line, empty if it is not needed."""
    has_some = Origin.of(source).is_text_folder or source.lower().endswith(SVMLIGHT)
    return "" if has_some else " --labels LABELS"


def own_label_column(source: str, labels: str | None) -> tuple[str, ...]:
    """Column of the samples' own table that holds labels or groups, hence no feature; or empty."""
    for file, column in _splits(labels or ""):
        own = file == source or is_same_file(Path(file), source)
        if column and own and file.lower().endswith(OF_COLUMNS):
            return (column,)
    return ()


def _splits(text: str) -> Iterator[tuple[str, str]]:
    """FILE and KEY at each colon: names of both may have some."""
    return ((text[:at], text[at + 1 :]) for at, letter in enumerate(text) if letter == ":")
