"""What columns of a table seem to hold, by their names and first rows."""

import math
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.samples.distances import DISTANCES, are_distances
from dhsk.samples.format import SHOWN, SamplesFile, value_notes
from dhsk.samples.gaps import codes_in
from dhsk.samples.kinds import (
    are_features,
    is_gap,
    is_word_for_none,
    names_features,
    number_of,
    rows_of_lists,
)
from dhsk.samples.looks import are_compositions, seems
from dhsk.samples.molecules import letters_in
from dhsk.samples.names import listed, shown
from dhsk.samples.roles import Roles
from dhsk.samples.tables import Table, usual_id
from dhsk.systems import quoted

_MOST_OF_PROCESS: Final = 2000
"""Most samples for which a Gaussian process comes before ridge regression."""

_IN_PANDAS: Final = {"decimal commas": "decimal=','", "separators of thousands": "thousands=','"}
"""Options with which pandas reads them."""


def describe_table(words: str, table: Table, number: int, own_text: str = "") -> SamplesFile:
    """Tell columns of texts, labels, ids and numbers apart, by their names and first rows.

    `number` is that of all rows. The column `own_text` is the one that is read without a key.
    """
    path = str(table.origin.path)
    if not number:
        names = listed(table.names, SHOWN)
        raise InputError(f"{path} has columns ({names}) but no rows: write one for each sample")
    found = Roles.of(table, number, own_text)
    columns, label, text = found.columns, found.label, found.text or found.vector
    letters, ways = _letters_of(columns[found.text] if found.text else [])
    rows = [
        ("rows", f"{number:,}"),
        ("columns", f"{len(columns):,}: {listed(list(columns), SHOWN)}"),
        *found.rows(),
        *letters,
    ]
    options, values, alone = ways, None, False
    if text is None:
        rows += [*_orientation(table, found), *found.rows_of_features()]
        if found.numbers and not found.gaps:
            lists = [list(map(number_of, columns[name])) for name in found.numbers]
            values = np.array(lists, np.float64).T
        elif label is not None and not (found.written or found.odd or found.gaps):
            alone = True
            none = "words, to be made numbers; or" if found.categories else "none:"
            rows += [("features", f"{none} labels or predictions, of other samples")]
        out = () if alone else found.dropped
        options = "".join(f" --drop-column {quoted(name)}" for name in out)
    elif found.text is None:
        values = rows_of_lists(columns[text])
    untold = found.text is not None and usual_id([found.ids or ""]) is not None
    untold = untold or found.ids == table.index
    if not (found.ids is None or alone or untold):
        options = f" --id-column {quoted(found.ids)}{options}"
    if text is None:
        rows += _notes_of(table, found, number, values)
    elif values is not None:
        rows += value_notes(values, None)
    seem = "gaps" if found.gaps and text is None else None if values is None else seems(values)
    named = quoted(path if text in (None, own_text) else f"{path}:{text}")
    labels = "LABELS" if label is None else quoted(f"{path}:{label}")
    grouped = "" if found.group is None else f" --groups {quoted(f'{path}:{found.group}')}"
    facts = {
        "rows": number, "columns": list(columns), "text": text, "label": label, "id": found.ids,
        "group": found.group,
    }  # fmt: skip
    described = SamplesFile(
        words, rows, "SAMPLES" if alone else named, labels, options, seem, grouped,
        facts=facts, folds=" --in-order" if found.order > 0 and not grouped else "",
    )  # fmt: skip
    if found.measured:
        counts = values is not None and are_compositions(values)
        described = replace(described, python=_regression(table, found, number, counts=counts))
    if text is not None or not (line := _as_it_is_read(table, found)):
        return described
    first = found.unlabelled or found.written or found.odd or found.order < 0 or found.infinite
    if first or ".T.to_csv" in line:
        return replace(described, python=[line])
    # First with words as columns of 0 and 1, as a table without them may tell far less.
    return replace(described, python=[line, *described.following])


def _orientation(table: Table, found: Roles) -> list[tuple[str, str]]:
    by = _of_features(table, found)
    seen = f"features by the {by}: samples must be rows, so transpose the table"
    return [("each row", seen)] if by else []


def _notes_of(
    table: Table, found: Roles, number: int, values: Floats | None
) -> list[tuple[str, str]]:
    """What the columns of numbers seem to hold."""
    notes = [] if values is None else value_notes(values, found.numbers)
    if _hold_distances(table, found, number):
        notes = [("values", f"it seems, {DISTANCES}")]
    codes = codes_in(found.values, found.measures)
    said = f"{codes}: if these stand for gaps, leave them empty"
    return [*notes, *([("codes", said)] if codes else [])]


def _hold_distances(table: Table, found: Roles, number: int) -> bool:
    """Whether a square table seems to hold distances, by its first rows."""
    if len(found.measures) != number:
        return False
    head, measures = table.head(), {*found.measures}
    lists = [
        [math.nan if is_gap(v) else number_of(v) for v in head[k]]
        for k in found.columns
        if k in measures
    ]
    return are_distances(np.array(lists, np.float64).T)


def _letters_of(texts: Sequence[Any]) -> tuple[list[tuple[str, str]], str]:
    """What letters texts without blanks have, and the options that count their substrings."""
    if not texts or any(" " in str(text).strip() for text in texts):
        return [], ""
    words, options = letters_in("".join(map(str, texts)))
    return [("letters", words)], options


def _as_it_is_read(table: Table, found: Roles) -> str | None:
    """Line of Python that writes a table as it is read: with points, numbers, or transposed."""
    stem = table.origin.path.name.partition(".")[0]
    index = "" if table.index else ", index=False"
    commas = {*found.written.values()} & {*_IN_PANDAS}
    if commas and table.delimiter is not None:
        ways = ", ".join(_IN_PANDAS[words] for words in sorted(commas))
        return f"{table.in_pandas(ways)}.to_csv('{stem}_points.csv'{index}) {_in_python()}"
    if found.order < 0:
        new = f"{stem}_oldest_first.csv"
        read = f"{table.in_pandas()}[::-1].to_csv('{new}'{index}) {_in_python()}"
        return f"{read}, then dhsk info {quoted(new)}"
    if any(table.delimiter is None or len(_none_of(c)) < len(c) for c in found.odd.values()):
        return f"dhsk info {quoted(str(table.origin.path))} when these cells hold numbers alone"
    if found.infinite:
        new, both = f"{stem}_finite.csv", "[float('inf'), -float('inf')], float('nan')"
        read = f"{table.in_pandas()}.replace({both}).to_csv('{new}'{index}) {_in_python()}"
        return f"{read}, then dhsk info {quoted(new)}"
    if _of_features(table, found) and not found.odd:
        return _transposed(table, found)
    line = _as_numbers(table, found)
    if line:
        return f"{line} {_in_python()}, then dhsk info {quoted(_numbers_file(table))}"
    return None


def _of_features(table: Table, found: Roles) -> str:
    """By what rows seem to be features, in words; empty where they do not, or have labels.

    Beside them a table of taxa may have their taxonomy, which is no label.
    """
    first = table.names[0]
    if found.label not in (None, first) and not names_features(str(found.label)):
        return ""
    if names_features(first):
        return f"name {first}"
    values = found.more[first]
    return f"names of rows, as {shown(str(values[0]))}" if are_features(values) else ""


def _transposed(table: Table, found: Roles) -> str:
    """Line of Python that writes a table with its samples as rows, without columns of words."""
    others = [name for name in found.own if name not in (table.names[0], *found.gaps)]
    kept = f".drop(columns={others!r})" if others else ""
    read = table.in_pandas(*([] if table.index else ["index_col=0"]))
    stem = table.origin.path.name.partition(".")[0]
    return f"{read}{kept}.T.to_csv('{stem}_samples.csv') {_in_python()}"


def _in_python() -> str:
    """Where a line of pandas runs, which dhsk itself does not need."""
    return "in Python" if find_spec("pandas") else "in Python (after pip install pandas)"


def _numbers_file(table: Table) -> str:
    return f"{table.origin.path.name.partition('.')[0]}_numbers.csv"


def _as_numbers(table: Table, found: Roles) -> str:
    """Line of Python that makes numbers of words, of rows with labels; empty if none is needed."""
    words = found.categories
    odd = {} if table.delimiter is None else found.odd
    none = {name: some for name, cells in odd.items() if (some := _none_of(cells))}
    if not found.unlabelled and not words and not none:
        return ""
    kept = f".dropna(subset={[found.label]!r})" if found.unlabelled else ""
    given = [f"na_values={none!r}"] if none else []
    ways = [f"table = {table.in_pandas(*given)}{kept}"]
    gaps = any(is_gap(value) for name in words for value in found.more[name])
    own = f"columns={words!r}{', dummy_na=True' if gaps else ''}"
    ways += [f"table = pandas.get_dummies(table, {own})"] if words else []
    index = "" if table.index else ", index=False"
    return "; ".join([*ways, f"table.to_csv('{_numbers_file(table)}'{index})"])


def _none_of(cells: Sequence[str]) -> list[str]:
    return list(filter(is_word_for_none, cells))


def _regression(table: Table, found: Roles, number: int, *, counts: bool) -> list[str]:
    """Lines of Python that score fits to a column, after steps that counts do not need."""
    target, others = str(found.label), (found.ids, found.group)
    left = [*found.dropped, *(name for name in others if name and name != table.index)]
    steps = [] if counts else ["sklearn.preprocessing.StandardScaler()"]
    steps = ["sklearn.impute.SimpleImputer()", *steps] if found.gaps else steps
    read = f"table = {table.in_pandas()}"
    X, y = f"table.drop(columns={[target, *left]!r})", f"table[{target!r}]"
    folds = "KFold(5, shuffle=True, random_state=0)"
    if found.group is not None:
        folds = f"GroupKFold(5), groups=table[{found.group!r}]"
    elif found.order > 0:
        folds = "TimeSeriesSplit(5)"
    given = f"{X}, {y}, cv=sklearn.model_selection.{folds}"
    models = [_regressor(number)]
    if steps:
        # R² of processes on diabetes 0.47 and 0.49, on 600 samples of Friedman 2 0.93 and 0.87.
        ways = "kernel='gaussian'", "sphere_map='projective'"
        scaled = f"sklearn.pipeline.make_pipeline({', '.join(steps)}, "
        models = [f"{scaled}{_regressor(number, how)})" for how in ways]
    score = "print('R2', sklearn.model_selection.cross_val_score"
    return [f"{read}; {score}({model}, {given}).mean()) {_in_python()}" for model in models]


def _regressor(number: int, how: str = "") -> str:
    """Expression of what predicts numbers from so many samples.

    A process chooses the noise, and alpha of a ridge regression is best searched. Of Gaussian
    kernels the R² of processes was, on each of 11 sets of 150 to 600 samples, within 0.01 of that
    of the best of six alphas; with alpha = 1 that was up to 0.13 below. A fit to 2,000 took 10 s,
    to directions 24.
    """
    if number <= _MOST_OF_PROCESS:
        return f"dhsk.HeatGaussianProcessRegressor({how})"
    return f"dhsk.HeatKernelRidge(alpha=0.1{how and ', '}{how})"
