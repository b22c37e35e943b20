"""The command `dhsk info`: what a Gram store, a feature store or a model is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click
import numpy as np

from dhsk.commands.console import hint_next, kernel_words, map_words, print_pairs, say_json
from dhsk.commands.cv_table import facts_of_result, rows_of_result
from dhsk.commands.earlier_run import MODEL, PAGE, TABLES, WITNESS, opening, refuse_unfinished
from dhsk.commands.options import json_option
from dhsk.commands.parameters import PlaceParameter
from dhsk.errors import InputError, StoreError
from dhsk.gram.storage.header import Header, short
from dhsk.gram.storage.store import GramStore
from dhsk.kernels import Kernel, kernel_from_spec
from dhsk.models.exact import SvcModel
from dhsk.models.files import FittedState, load_any
from dhsk.models.low_rank import LowRankModel
from dhsk.nystrom.feature_store import FeatureStore, is_of_features
from dhsk.objects.places import Place, bytes_below, size_of
from dhsk.samples import AnyVectorizer, Spectrum, is_gram_store, vectorizer_of
from dhsk.samples.paths import Origin
from dhsk.samples.readers import FORMATS, describe, is_name_of_file, refuse_unknown
from dhsk.samples.text_folder import NoTextsError
from dhsk.solvers.problems import WORDS
from dhsk.systems import quoted
from dhsk.units import format_bytes


@dataclass(frozen=True)
class Description:
    """What a file or folder is: for people, and for programs."""

    title: str
    rows: Sequence[tuple[str, str]]
    """What and value, in words."""
    following: Sequence[str]
    """Commands that come next."""
    facts: Mapping[str, Any]
    """Values for programs."""


@click.command()
@click.argument("store", type=PlaceParameter(), metavar="STORE|MODEL|SAMPLES|DIR")
@json_option
def info(store: Place, as_json: bool) -> None:
    """Describe a model, a store, samples or the results of dhsk cv.

    A store is of a Gram matrix or of features, and may be incomplete. Of samples the first
    rows are looked at, and columns of groups, such as patients.
    """
    described = _described(store)
    if as_json:
        say_json({**described.facts, "next": list(described.following)})
    else:
        print_pairs(described.title, described.rows)
        hint_next(described.following)


def _described(path: Place) -> Description:
    if path.name == TABLES[0] and path.exists():
        path = path.parent
    if is_of_features(path):
        return _features(path)
    if (path / WITNESS).exists():
        raise InputError(
            f"{path} holds the results of dhsk compare: {opening(path / PAGE)}, and "
            f"{path / WITNESS} has all samples"
        )
    if (path / TABLES[0]).exists():
        return _results(path)
    refuse_unfinished(path)
    if is_name_of_file(path) and not path.exists():
        Origin.of(str(path))  # which says so
    try:
        return _file(path) if path.is_file() else _gram(path)
    except (InputError, StoreError) as error:
        found = _samples(path)
        if found is None and path.is_file() and path.suffixes[-1:] not in ([], [".dhsk"]):
            raise _no_samples(path, error) from error
        if found is None and path.is_dir() and not (path / "zarr.json").exists():
            raise InputError(
                f"{path} is a folder of nothing that is read as one (stores, zarr, texts, those of "
                "10x Genomics): name a file in it"
            ) from error
        if found is None:
            raise
    return found


def _no_samples(path: Place, error: Exception) -> InputError:
    """Error for a file that is no model by `error`, and in no format of samples."""
    try:
        refuse_unknown(Origin.of(str(path)), "samples", FORMATS)
    except InputError as unknown:
        return unknown if is_name_of_file(path) else InputError(f"{error}. As samples, {unknown}")


def _samples(path: Place) -> Description | None:
    """Describe samples; None for stores, models and what is not there."""
    try:
        origin = Origin.of(str(path))
    except InputError:
        return None
    if origin.is_folder and is_gram_store(origin.path):
        return None
    try:
        found = describe(origin)
    except NoTextsError:
        return None
    if found is None:
        return None
    size = size_of(origin.path) if origin.path.is_file() else None
    rows = [*found.rows, *([] if size is None else [("on disk", format_bytes(size))])]
    facts = {"kind": "samples", "path": path, "bytes": size, **found.facts}
    return Description(f"samples {path}: {found.words}", rows, found.following, facts)


def _gram(path: Place) -> Description:
    store = GramStore.open(path)
    header, missing = store.header, len(store.missing_tiles())
    total, size = header.tiling.n_tiles, bytes_below(path)
    rows = [
        ("matrix", f"{header.n_rows:,} x {header.n_cols:,} {header.dtype}, {header.layout}"),
        ("kernel", ", ".join(map(kernel_words, store.kernels))),
        *_definiteness(store.kernels),
        _source_of(header),
        *([] if header.feature_names is None else [_names_of(store)]),
        *([] if header.vectorizer is None else [_of_texts(vectorizer_of(header.vectorizer, ()))]),
        *([] if header.zero_rows is None else [("of zeros", _zeros_of(header.zero_rows))]),
        ("tiles", f"{total - missing:,} of {total:,} done, {header.tile:,} x {header.tile:,} each"),
        ("on disk", format_bytes(size)),
    ]
    following = ["run the command that made it again: it computes the missing tiles only"]
    if not missing:
        place = quoted(str(path))
        following = [f"dhsk verify {place}, or dhsk cv {place} --labels LABELS --out DIR"]
    facts = {
        "kind": "Gram store", "path": path, "n_rows": header.n_rows, "n_cols": header.n_cols,
        "symmetric": header.symmetric, "dtype": header.dtype, "layout": header.layout,
        "dim": header.dim, "map": header.sphere_map, "kernels": list(header.kernels),
        "positive_semidefinite": [kernel.positive_semidefinite for kernel in store.kernels],
        "fingerprints": list(header.fingerprints), "zero_rows": header.zero_rows,
        "named": header.feature_names is not None, "vectorizer": header.vectorizer,
        "tile": header.tile, "tiles": total, "tiles_done": total - missing, "bytes": size,
        "schema": header.schema, "graph": header.graph,
    }  # fmt: skip
    return Description(f"Gram store {path}, schema {header.schema}", rows, following, facts)


def _source_of(header: Header) -> tuple[str, str]:
    """What the matrix is of: samples, or the nodes of a graph."""
    prints = f"hash {'+'.join(header.fingerprints)}"
    if header.graph is not None:
        return (
            "graph",
            f"{header.n_rows:,} nodes, {header.similarity or 'similarity'} of {header.nnz[0]:,} "
            f"entries, {prints}",
        )
    return "samples", f"{header.dim:,} features, {map_words(header.sphere_map)}, {prints}"


def _definiteness(kernels: Sequence[Kernel]) -> list[tuple[str, str]]:
    """Kernels that are not proven to be positive semi-definite."""
    words = {
        None: "not positive semi-definite for all samples",
        False: "not positive semi-definite: SVMs take it with indefinite='allow' only",
    }
    found = [(kernel, kernel.positive_semidefinite) for kernel in kernels]
    return [("definite", f"{kernel.label}: {words[how]}") for kernel, how in found if not how]


def _zeros_of(counts: tuple[int, ...]) -> str:
    """Number of samples that are all zero, on each side of the matrix."""
    return f"{' and '.join(f'{count:,}' for count in counts)} samples, at the centre"


def _names_of(store: GramStore) -> tuple[str, str]:
    """First names of the features or nodes of a store."""
    what = "features" if store.header.graph is None else "nodes"
    if not store.has_sound_names():
        return what, "named, but the names are damaged: see dhsk verify"
    return what, _listed(store.feature_names or ())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f", ... ({len(names):,})" if len(names) > 5 else "")


def _of_texts(vectorizer: AnyVectorizer | None) -> tuple[str, str]:
    """What was counted in texts, and how."""
    assert vectorizer is not None
    if isinstance(vectorizer, Spectrum):
        return "counts", vectorizer.label
    stop = "without English stop words" if vectorizer.stop_words else "all words"
    terms = "" if vectorizer.ngrams == 1 else f", and terms of up to {vectorizer.ngrams} words"
    return "words", f"of texts: {stop} in {vectorizer.min_df} or more texts{terms}"


def _features(path: Place) -> Description:
    store = FeatureStore.open(path)
    described, missing = store.described, len(store.missing())
    n, width = store.shape
    total, size = store.n_blocks, bytes_below(path)
    rows = [
        ("features", f"{n:,} x {width:,} {store.dtype}"),
        ("kernel", kernel_words(kernel_from_spec(described["kernel"]))),
        ("samples", f"{map_words(described['map'])}, hash {described['samples']}"),
        ("landmarks", f"hash {short(described['landmarks'])}"),
        ("blocks", f"{total - missing:,} of {total:,} done, {store.rows:,} rows each"),
        ("on disk", format_bytes(size)),
    ]
    following = ["write the features again: only what is missing is computed"]
    if not missing:
        place = quoted(str(path))
        following = [f"dhsk verify {place}, or zarr.open_array({str(path)!r})"]
        if (path / MODEL).exists():
            following.append(f"dhsk features NEW_SAMPLES --by {place} --out FOLDER")
    facts = {
        "kind": "feature store", "path": path, "n_samples": n, "n_components": width,
        "dtype": store.dtype, "kernel": described["kernel"], "map": described["map"],
        "fingerprint": described["samples"], "landmarks": described["landmarks"],
        "blocks": total, "blocks_done": total - missing, "bytes": size,
        "schema": described["schema"],
    }  # fmt: skip
    return Description(
        f"feature store {path}, schema {described['schema']}", rows, following, facts
    )


def _results(path: Place) -> Description:
    from dhsk.validation.result import CvResult  # scikit-learn, which no store or samples need

    found = CvResult.from_json(path / TABLES[0])
    following = [f"{opening(path / PAGE)} (dhsk report {quoted(str(path))} makes it anew)"]
    facts = {"kind": "results", "path": path, **facts_of_result(found)}
    return Description(f"results {path} of dhsk cv", rows_of_result(found), following, facts)


# Models


def _file(path: Place) -> Description:
    found = load_any(path)
    from dhsk.estimators.saving import in_python  # scikit-learn, which no store or samples need

    made = in_python(found, path)
    if isinstance(found, FittedState):
        return _fitted(path, found, made)
    return _model(path, found, made)


def _fitted(path: Place, state: FittedState, made: str) -> Description:
    size, names, row_map = size_of(path) or 0, state.feature_names, state.row_map
    numbers = {k: v for k, v in state.learnt.items() if isinstance(v, bool | int | float | str)}
    arrays = {name: value.shape for name, value in state.arrays.items()}
    given = [f"{k}={v!r}" for k, v in state.parameters.items() if not isinstance(v, Kernel | None)]
    rows = [
        *([] if row_map is None else [("kernel", kernel_words(row_map.kernel))]),
        (
            "samples",
            f"{state.n_features:,} features"
            + (f", {map_words(row_map.sphere_map)}" if row_map else ""),
        ),
        *([] if names is None else [("features", _listed(names))]),
        *([("found", ", ".join(f"{k}={_word(v)}" for k, v in numbers.items()))] if numbers else []),
        *([("arrays", ", ".join(f"{k} {v}" for k, v in arrays.items()))] if arrays else []),
        ("parameters", ", ".join(given)),
        ("written by", f"dhsk {state.notes['dhsk']}"),
        ("on disk", format_bytes(size)),
    ]
    facts = {
        "kind": "fitted estimator", "path": path, "estimator": state.estimator,
        "kernel": None if row_map is None else row_map.kernel.to_spec(),
        "map": None if row_map is None else row_map.sphere_map, "dim": state.n_features,
        "feature_names": None if names is None else list(names),
        "parameters": dict(state.spec_of_parameters()), "learnt": numbers,
        "arrays": arrays,
        "notes": dict(state.notes), "bytes": size,
    }  # fmt: skip
    following = [f"{made} in Python"]
    return Description(f"fitted {state.estimator} {path}", rows, following, facts)


def _word(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _model(path: Place, model: SvcModel | LowRankModel, made: str) -> Description:
    size = size_of(path) or 0
    own_rows, own_facts = _exact(model) if isinstance(model, SvcModel) else _low_rank(model)
    names = model.feature_names
    rows = [
        ("kernel", kernel_words(model.kernel)),
        ("samples", f"{model.dim:,} features, {map_words(model.map_name)}"),
        *([] if names is None else [("features", _listed(names))]),
        *([] if model.vectorizer is None else [_of_texts(model.vectorizer)]),
        *own_rows,
        ("C", f"{model.certificates.C:g}"),
        ("converged", _convergence(model)),
        ("probabilities", "yes, dhsk predict --proba" if model.has_probabilities else "no"),
        *_training(model),
        ("on disk", format_bytes(size)),
    ]
    following = [
        f"dhsk predict {quoted(str(path))} {'TEXTS' if model.vectorizer else 'SAMPLES'} --out FILE",
        f"{made}.predict(X) in Python",
    ]
    facts = {
        "kind": f"{'exact' if isinstance(model, SvcModel) else 'low-rank'} model", "path": path,
        "kernel": model.kernel.to_spec(), "map": model.map_name, "dim": model.dim,
        "feature_names": None if names is None else list(names),
        "vectorizer": None if model.vectorizer is None else model.vectorizer.settings,
        "classes": model.classes, "C": model.certificates.C, "tol": model.certificates.tol,
        "converged": bool(model.certificates.converged.all()),
        "probabilities": model.has_probabilities, "zero_rows": model.zero_rows,
        "n_zero_rows": model.n_zero_rows, "notes": dict(model.notes), **own_facts, "bytes": size,
    }  # fmt: skip
    return Description(f"{facts['kind']} {path}", rows, following, facts)


_CLASSES: Final = 20
"""Classes whose features are named."""

Parts = tuple[list[tuple[str, str]], dict[str, Any]]
"""Rows and facts."""


def _exact(model: SvcModel) -> Parts:
    counts, found = model.expansion.n_support, model.certificates
    total, n = int(counts.sum()), model.notes.get("n_samples")
    share = "" if not n else f" of {n:,} training samples ({total / n:.0%})"
    rows = [
        ("fits", WORDS[model.multi_class]),
        ("classes", _counted(model.classes, counts, "support vectors")),
        ("support vectors", f"{total:,}{share}"),
    ]
    rows += [(f"for {one.label}", one.words) for one in model.class_weights()[:_CLASSES]]
    return rows, {
        "n_support": counts, "worst_kkt": found.violation.max(), "duality_gap": found.gap.max(),
        "steps": int(found.steps.sum()), "multi_class": model.multi_class,
    }  # fmt: skip


def _low_rank(model: LowRankModel) -> Parts:
    found, landmarks = model.certificates, model.rows.shape[0]
    rows = [
        ("classes", _listed([str(label) for label in model.classes])),
        (
            "landmarks",
            f"{landmarks:,}, and {found.width:,} features that miss {found.trace_error:.2e} of the "
            "kernel matrix's trace",
        ),
        ("loss", found.loss),
    ]
    return rows, {
        "landmarks": landmarks, "rank": found.width, "trace_error": found.trace_error,
        "loss": found.loss, "worst_gradient": found.relative.max(), "steps": found.steps,
        "passes": found.passes,
    }  # fmt: skip


def _counted(classes: Iterable[Any], counts: Iterable[int], what: str) -> str:
    """Names of the first classes, each with a count."""
    pairs = [f"{name} ({count:,})" for name, count in zip(classes, counts, strict=True)]
    return f"{_listed(pairs)}, in brackets {what}"


def _convergence(model: SvcModel | LowRankModel) -> str:
    """Certificate of the solution in words."""
    found = model.certificates
    if isinstance(model, LowRankModel) and model.stopped:
        return f"no: stopped at its budget, {model.stopped}"
    if found.unconverged:
        return f"no: {found.unconverged}"
    if isinstance(model, SvcModel):
        return f"yes, to {np.max(model.certificates.violation):.1e} (tol {found.tol:g})"
    norm = model.certificates.relative.max()
    return f"yes, to a gradient of {norm:.1e} times that at 0 (tol {found.tol:g})"


def _training(model: SvcModel | LowRankModel) -> list[tuple[str, str]]:
    """What the notes say of the training."""
    notes = model.notes
    rows, source = [], f" of {notes['source']}" if notes.get("source") else ""
    if notes.get("n_samples"):
        by = f", by dhsk {notes['dhsk']}" if notes.get("dhsk") else ""
        rows.append(("trained on", f"{notes['n_samples']:,} samples{source}{by}"))
    # Shown by themselves; the time scale is that of the kernel, unless one was given as a whole.
    own = {"C", "kernel", "time_scale", "tol", "loss", "sphere_map", "zero_rows"}
    given = {k: v for k, v in dict(notes.get("parameters", {})).items() if k not in own}
    usual = (None, "error")  # the latter of `indefinite`
    words = [f"{name}={value!r}" for name, value in given.items() if value not in usual]
    return [*rows, *([("parameters", ", ".join(words))] if words else [])]
