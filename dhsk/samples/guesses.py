"""What columns of a table seem to hold, by their names and first rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from shlex import quote
from typing import Any, Final

import numpy as np

from dhsk.samples.dialect import has_decimal_comma, is_missing, is_number, value_of
from dhsk.samples.format import LABELS, SHOWN, SamplesFile, value_notes
from dhsk.samples.looks import are_compositions, seems
from dhsk.samples.names import listed
from dhsk.samples.tables import TEXT_FIELD, Table, usual_id

LONG: Final = 40
"""Mean number of characters from which a column is one of texts."""

_FEWEST_MEASURED: Final = 10
"""Least number of rows that tell measurements from classes, and names of samples from others."""

_INDEX: Final = "Unnamed: 0"
"""What pandas calls the index that it has written."""

_SPLITS: Final = frozenset({"train", "test", "val", "valid", "validation", "dev", "holdout"})
"""Words of a column that divides the samples, which has no labels."""

_LEAST_SHARE: Final = 0.05
"""Least share of a second class: a column that has one value but for a few holds no labels."""

_OF_FEATURES: Final = frozenset(
    {
        "otu", "otu id", "otuid", "asv", "asv id", "feature", "features", "feature id", "featureid",
        "taxon", "taxa", "taxonomy", "clade name", "gene", "genes", "gene id", "geneid",
        "gene name", "gene symbol", "probe id", "protein id",
    }
)  # fmt: skip
"""Names of the first column where rows are features, in lower case, without # and _."""


def ids_in(table: Table, names: Sequence[str]) -> str | None:
    """Which of some columns that hold no numbers seems to name the samples; None if none does."""
    return _ids_of({k: v for k, v in table.head().items() if k in names}, names)


def describe_table(words: str, table: Table, number: int, own_text: str = "") -> SamplesFile:
    """Tell columns of texts, labels, ids and numbers apart, by their names and first rows.

    `number` is that of all rows. The column `own_text` is the one that is read without a key.
    """
    path, columns = str(table.origin.path), table.head()
    lists = (name for name, v in columns.items() if v and isinstance(v[0], list) and not own_text)
    vector = next(lists, None)
    own = [name for name, v in columns.items() if name != vector and not all(map(_is_numeric, v))]
    ids = _ids_of(columns, own)
    texts = [name for name in own if name != ids and _mean_length(columns[name]) >= LONG]
    text = TEXT_FIELD if TEXT_FIELD in own else next(iter(texts), None)
    commas = [k for k in own if (v := _present(columns[k])) and all(map(_has_comma, v))]
    rest = [name for name in columns if name not in (text, ids, *texts, *commas)]
    label = _label_of({name: columns[name] for name in rest})
    rows = [
        ("rows", f"{number:,}"),
        ("columns", f"{len(columns):,}: {listed(list(columns), SHOWN)}"),
    ]
    rows += [("texts", text)] if text else [("vectors", vector)] if vector else []
    measured = text is None and vector is None and label is not None
    measured = measured and _is_measured(columns[label or ""])
    guess = f"perhaps {label}{', numbers: a regression, in Python' if measured else ''}"
    rows += [("labels", guess)] if label else []
    rows += [("ids", ids)] if ids else []
    seen = f"features by the name {table.names[0]}: samples must be rows, so transpose the table"
    rows += [("each row", seen)] if label is None and text is None and names_features(table) else []
    text = text or vector
    options, seem, counts, alone, dropped = "", None, False, False, list[str]()
    if text is None:
        numbers = {name: v for name, v in columns.items() if name not in (*own, label, ids)}
        dropped = [name for name in own if name not in (label, ids)]
        gaps = [name for name in dropped if all(map(_is_numeric, _present(columns[name])))]
        rows += [("gaps", f"{listed(gaps, SHOWN)}: fill them in to keep them")] if gaps else []
        of_commas = f"{listed(commas, SHOWN)} with decimal commas: write points to keep them"
        rows += [("numbers", of_commas)] if commas else []
        if numbers:
            values = np.array([list(map(_number, v)) for v in numbers.values()], np.float64).T
            rows += value_notes(values, list(numbers))
            seem, counts = seems(values), are_compositions(values)
        elif label is not None and not commas:
            alone = True
            rows += [("features", "none: labels or predictions, of other samples")]
        options = "" if ids is None or alone else f" --id-column {quote(ids)}"
        options += "".join(f" --drop-column {quote(name)}" for name in dropped)
    named = quote(path if text in (None, own_text) else f"{path}:{text}")
    samples = "SAMPLES" if alone else named
    labels = "LABELS" if label is None else quote(f"{path}:{label}")
    facts = {"rows": number, "columns": list(columns), "text": text, "label": label, "id": ids}
    found = SamplesFile(words, rows, samples, labels, options, seem, facts=facts)
    if text is None and (line := _as_it_is_read(table, label, commas)):
        return replace(found, python=[line, *found.following[: not commas]])
    if not measured:
        return found
    left = [*dropped, *([] if ids is None else [ids])]
    return replace(found, python=_regression(table, str(label), left, counts=counts))


def _as_it_is_read(table: Table, label: str | None, commas: Sequence[str]) -> str | None:
    """Line of Python that writes a table with decimal points, or with samples in rows."""
    stem = table.origin.path.name.partition(".")[0]
    if commas:
        points = table.in_pandas("decimal=','")
        index = "" if table.index else ", index=False"
        return f"{points}.to_csv('{stem}_points.csv'{index}) in Python"
    if label is None and names_features(table):
        return f"{table.in_pandas('index_col=0')}.T.to_csv('{stem}_samples.csv') in Python"
    return None


def names_features(table: Table) -> bool:
    """Whether the first column seems to name features, so that samples are columns."""
    return table.names[0].lower().replace("_", " ").strip("# ") in _OF_FEATURES


def _ids_of(columns: Mapping[str, list[Any]], own: Sequence[str]) -> str | None:
    """Column that seems to name the samples: so called, an index, or words that all differ."""
    usual, first = usual_id(list(columns)), next(iter(columns), "")
    if usual is not None:
        return usual
    if first == _INDEX and _all_differ(columns[first]):
        return first
    words = (name for name in own if name != TEXT_FIELD and _mean_length(columns[name]) < LONG)
    differing = (name for name in words if _all_differ(columns[name]))
    return next((name for name in differing if not any(map(_is_measure, columns[name]))), None)


def _all_differ(values: list[Any]) -> bool:
    """Whether no value occurs twice or is absent, in enough rows to tell."""
    return len(values) >= _FEWEST_MEASURED and len(set(map(str, _present(values)))) == len(values)


def _is_measure(value: Any) -> bool:
    """Whether a value is a number with a decimal comma, or a date."""
    try:
        datetime.fromisoformat(str(value).strip())
    except ValueError:
        return _has_comma(value)
    return True


def _has_comma(value: Any) -> bool:
    return isinstance(value, str) and has_decimal_comma(value)


def _label_of(columns: Mapping[str, list[Any]]) -> str | None:
    """Column that seems to hold the labels: of a usual name, else of words, else of numbers.

    Of several columns of words the last, and one of numbers only if no other has few: counts may.
    """
    usual = next((name for name in LABELS if name in columns), None)
    if usual is not None:
        return usual
    sizes = {name: _n_classes(values) for name, values in columns.items()}
    words = [k for k, v in columns.items() if sizes[k] and not _are_numbers(v)]
    several = [name for name in words if sizes[name] > 1]
    likely = [name for name in several if _second_share(columns[name]) >= _LEAST_SHARE]
    numbers = [k for k, v in columns.items() if sizes[k] > 1 and _are_numbers(v)]
    last = (likely or several or words)[-1:] or (numbers if len(numbers) == 1 else [])
    return last[0] if last else None


def _n_classes(values: list[Any]) -> int:
    """Number of classes; 0 for fractions, for what is mostly different, and for divisions."""
    present = _present(values)
    if _divides(values) or (_are_numbers(values) and any(_number(v) % 1 for v in present)):
        return 0
    found = len(set(map(str, present)))
    return found if found <= max(2, len(present) // 2) else 0


def _second_share(values: list[Any]) -> float:
    """Share of the second largest class."""
    sizes = Counter(map(str, _present(values))).most_common(2)
    return sizes[-1][1] / len(values)


def _is_measured(values: list[Any]) -> bool:
    """Whether values are numbers that are no classes."""
    return _are_numbers(values) and len(values) >= _FEWEST_MEASURED and not _n_classes(values)


def _regression(table: Table, target: str, left: list[str], *, counts: bool) -> list[str]:
    """Lines of Python that fit the numbers of a column.

    Measured on scikit-learn's diabetes: R² 0.49 both, 0.38 of ridge without its scaler and map.
    """
    read = f"table = {table.in_pandas()}"
    fit = f".fit(table.drop(columns={[target, *left]!r}), table[{target!r}])"
    given = "" if counts else "sphere_map='projective'"
    models = f"dhsk.HeatKernelRidge({given})", f"dhsk.HeatGaussianProcessRegressor({given})"
    if not counts:
        scaled = "sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), "
        models = f"{scaled}{models[0]})", f"{scaled}{models[1]})"
    return [f"{read}; {model}{fit} in Python" for model in models]


def _present(values: list[Any]) -> list[Any]:
    return [v for v in values if v is not None and not (isinstance(v, str) and is_missing(v))]


def _are_numbers(values: list[Any]) -> bool:
    """Whether all that are there are numbers, and not True and False."""
    return all(
        is_number(v) if isinstance(v, str) else type(v) in (int, float) for v in _present(values)
    )


def _number(value: Any) -> float:
    return float((value_of(value) or 0.0) if isinstance(value, str) else value)


def _divides(values: list[Any]) -> bool:
    """Whether values say to which part of the data a row belongs, such as train and test."""
    return all(str(value).strip().lower() in _SPLITS for value in values)


def _is_numeric(value: Any) -> bool:
    return isinstance(value_of(value) if isinstance(value, str) else value, int | float)


def _mean_length(values: list[Any]) -> float:
    return sum(len(str(value)) for value in values) / max(len(values), 1)
