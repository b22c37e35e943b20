"""Section with the code that makes the taken cell again: in Python and on the command line."""

import re
from dataclasses import fields, replace
from typing import Any

from dhsk.kernels.base import Indefinite
from dhsk.report.markup import Html, code, section, tag
from dhsk.report.words import metric, score
from dhsk.results.asked import Fitting, StratifiedFolds
from dhsk.results.columns import MAP_OF, Cell, bare, is_rest, prefix_of
from dhsk.results.low_rank import LowRank
from dhsk.results.parts import Results
from dhsk.systems import quoted

SPHERICAL = ("heat", "parametrix", "cosine")
"""Families whose own map to the sphere is the hyperspherical one."""


NODES = "graph"
"""Family of kernels of graph nodes, which have no samples that a model could keep."""


def reproduce(results: Results) -> Html:
    """Return code that trains the cell that was taken, and that scores it again."""
    file = "" if _reading(results) else ", LABELS their file"
    lines = counting(results)
    samples = "texts and y are your texts" if lines else "X and y are your samples"
    note = (
        f"{samples} and labels{file}; the random seed is that of this run. C is "
        "written to all its digits."
    )
    parts = [tag("h3", "In Python"), code(_python(results))]
    command = _commands(results)
    if command:
        parts += [tag("h3", "On the command line"), code(command)]
    return section("Code for the taken candidate", note, *parts, anchor="reproduce")


def counting(results: Results) -> list[str]:
    """Return lines of Python that make X of texts, by scikit-learn; empty of other samples."""
    given = _reading(results).get("texts")
    if not given or "ngrams" not in given:
        return []
    own = {"min_df": given["min_df"], "ngram_range": (1, given["ngrams"])}
    said = _said({**own, "stop_words": given["stop_words"]}, {"ngram_range": (1, 1)})
    return [
        "from sklearn.feature_extraction.text import CountVectorizer",
        "",
        f"counter = CountVectorizer({said})",
        "X = counter.fit_transform(texts)",
        "X_new = counter.transform(new_texts)",
    ]


def _said(given: dict[str, Any], usual: dict[str, Any]) -> str:
    """Return the arguments of a vectorizer that are not usual."""
    usual = {"min_df": 1, "stop_words": None} | usual
    return ", ".join(f"{name}={value!r}" for name, value in given.items() if value != usual[name])


def _opened(results: Results) -> str:
    """Return lines of Python that make X of texts, words as in each fold; empty of others."""
    if not counting(results):
        return ""
    said = _said(_reading(results)["texts"], {"ngrams": 1})
    return (
        f"X = dhsk.open_samples(texts, vectorizer=dhsk.Vectorizer({said}))\n"
        "X_new = X.vectorizer.to_sklearn().transform(new_texts)\n"
    )


def _python(results: Results) -> str:
    best = _plain(results.best)
    own = _estimator_arguments(results)
    kernel = _kernel(best)
    scored = [f"C={_exact(best.C)}", *_folds(results)]
    if best.kernel == "heat" and best.time_scale is not None:
        scored.insert(0, f"time_scale={_exact(best.time_scale)}")
    elif best.kernel != NODES:
        scored.insert(0, f"kernels=[{kernel}]")
    if results.scoring != "accuracy":
        scored.append(f"scoring={results.scoring!r}")
    scored += [*_multi_class(results), *_shared(results)]
    fit = Fitting(tol=results.tol, indefinite=_indefinite(best))
    if fit != Fitting():
        scored.append(f"fit={call(fit)}")
    if results.low_rank is not None and best.rank is not None:
        scored.append(f"low_rank={call(replace(results.low_rank, rank=best.rank))}")
    if best.kernel == NODES:
        return (
            "import dhsk\n\n"
            f"G = dhsk.open_gram({results.samples.source!r})  # of {best.label}\n"
            f"result = dhsk.cross_validate(G, y, {', '.join(scored)})\n"
            f"result.best_score_  # mean {metric(results)} here: {score(best.mean)}"
        )
    name = "HeatSVC" if best.rank is None else "NystromSVC"
    ordered = "from sklearn.model_selection import TimeSeriesSplit\n" if _in_order(results) else ""
    opened, method = _opened(results), "fit_samples" if counting(results) else "fit"
    return (
        f"import dhsk\n{ordered}\n{opened}"
        f"model = dhsk.{name}({', '.join(own)}).{method}(X, y)\n"
        'model.save("model.dhsk")\n'
        "model.predict(X_new)\n\n"
        f"result = dhsk.cross_validate(X, y, {', '.join(scored)})\n"
        f"result.best_score_  # mean {metric(results)} here: {score(best.mean)}"
    )


def _folds(results: Results) -> list[str]:
    """Return the arguments that divide the samples as they were."""
    splitter, repeats = results.folds.splitter, results.repeats
    if folds := _in_order(results):
        return [f"cv=TimeSeriesSplit({folds})"]
    seed = re.fullmatch(r"Stratified(Group)?KFold\(.*random_state=(\d+), shuffle=True\)", splitter)
    if seed is None:
        return ["cv=cv"]  # the user's own
    fewest = max((few.samples for few in results.dropped_classes), default=0) + 1
    own = StratifiedFolds(results.folds.n // repeats, repeats, fewest, int(seed[2]))
    counted = own == StratifiedFolds(own.n_splits)
    groups = "Group" in splitter or _setting(results, "groups", None) is not None
    cv = own.n_splits if counted else call(own)
    return [f"cv={cv}", *(["groups=groups"] if groups else [])]


def _in_order(results: Results) -> str:
    """Return the number of folds in the order of rows, as of --in-order; empty of others."""
    plain = r"TimeSeriesSplit\(gap=0, max_train_size=None, n_splits=(\d+), test_size=None\)"
    found = re.fullmatch(plain, results.folds.splitter)
    return "" if found is None else found[1]


def call(made: Any) -> str:
    """Return the expression that makes a small class of dhsk, without what is its default."""
    given = [
        f"{field.name}={getattr(made, field.name)!r}"
        for field in fields(made)
        if getattr(made, field.name) != field.default
    ]
    return f"dhsk.{type(made).__name__}({', '.join(given)})"


def _estimator_arguments(results: Results) -> list[str]:
    best = _plain(results.best)
    own = [] if best.rank is None else [f"{best.rank}"]
    own.append(f"C={_exact(best.C)}")
    own += _multi_class(results)
    if best.kernel == "heat" and best.time_scale is not None:
        own.append(f"time_scale={_exact(best.time_scale)}")
    else:
        own.append(f"kernel={_kernel(best)}")
    if results.low_rank is not None:
        own += [f"{name}={value!r}" for name, value in _landmarks(results.low_rank).items()]
    if results.tol != Fitting().tol or results.low_rank is not None:
        own.append(f"tol={results.tol:g}")
    allowed = ['indefinite="allow"'] if _indefinite(best) == "allow" else []
    return own + _shared(results) + allowed


def _shared(results: Results) -> list[str]:
    """Return arguments that estimators and `cross_validate` have in common."""
    own = []
    sphere_map = _own_map(results, results.best)
    if sphere_map:
        own.append(f"sphere_map={sphere_map!r}")
    weight = class_weight_in_code(results)
    if weight:
        own.append(f"class_weight={weight}")
    return own


def class_weight_in_code(results: Results) -> str:
    """Return the option --class-weight as Python has it; empty if it was not given."""
    given = _setting(results, "class_weight", None)
    if not isinstance(given, str):
        return ""
    if given == "balanced":
        return repr(given)
    known = {str(label): label for label in results.classes}
    parts = (part.rpartition("=") for part in given.split(","))
    return repr({known[name.strip()]: float(factor) for name, _, factor in parts})


def _way(results: Results, cell: Cell) -> str:
    """Return the fits of a cell of three classes and more; empty of two, and of low rank."""
    if results.low_rank is not None or len(results.classes) == 2:
        return ""
    return "ovr" if is_rest(cell.kernel) else "ovo"


def _multi_class(results: Results) -> list[str]:
    """Return the argument of the fits of three classes and more."""
    way = _way(results, results.best)
    return [f"multi_class={way!r}"] if way else []


def _indefinite(cell: Cell) -> Indefinite:
    """Return the rule by which the kernel of a cell is taken."""
    power = re.search(r"graph power=(\d+)", cell.label)
    odd = power is not None and int(power[1]) % 2 == 1
    return "allow" if odd or "order=" in cell.label else "error"


def _landmarks(low_rank: LowRank) -> dict[str, Any]:
    """Return the parameters of landmarks that differ from the defaults, without the rank."""
    own = fields(low_rank)[1:]
    given = {field.name: (getattr(low_rank, field.name), field.default) for field in own}
    return {name: value for name, (value, usual) in given.items() if value != usual}


def _kernel(cell: Cell) -> str:
    """Return an expression that makes the kernel of a cell."""
    words = dict(part.partition("=")[::2] for part in cell.label.split()[1:])
    match cell.kernel:
        case "heat":
            return f"dhsk.HeatKernel(dim=X.shape[1], time={_exact(cell.time or 0.0)})"
        case "parametrix" if cell.time is not None:
            order = f", order={words['order']}, dim=X.shape[1]" if "order" in words else ""
            return f"dhsk.ParametrixKernel(time={_exact(cell.time)}{order})"
        case "cosine" | "linear":
            return f'"{cell.kernel}"'
        case "gaussian" if cell.sigma is not None:
            return f"dhsk.GaussianKernel({_exact(cell.sigma)})"
        case "polynomial" if {"degree", "offset"} <= words.keys():
            return f"dhsk.PolynomialKernel({words['degree']}, {words['offset']})"
    return f"kernel  # the one called {cell.label!r}"


def _commands(results: Results) -> str:
    """Return the commands; empty if the kernel cannot be named there, or samples were no file."""
    train = train_command(results, results.best, "model.dhsk")
    if not train:
        return ""
    given = train.removeprefix("dhsk train ").removesuffix(" --out model.dhsk")
    folds = f"--folds {results.folds.n // results.repeats}"
    folds += " --in-order" if _in_order(results) else ""
    folds += "" if "--seed" in given else f" --seed {_setting(results, 'seed', 0)}"
    folds += f" --repeats {results.repeats}" if results.repeats > 1 else ""
    groups = _reading(results).get("groups")
    folds += "" if groups is None else f" --groups {quoted(groups)}"
    new = _reading(results).get("predict", "")
    scoring = "" if results.scoring == "accuracy" else f" --scoring {results.scoring}"
    return (
        f"{train}\ndhsk predict model.dhsk NEW_SAMPLES{new} --out predicted.csv\n"
        f"dhsk cv {given} {folds}{scoring} --out again"
    )


def train_command(results: Results, cell: Cell, out: str) -> str:
    """Return the command that trains a cell on all samples; empty as in `_commands`."""
    plain = _plain(cell)
    options = _options(plain)
    if results.settings is None or options is None:
        return ""
    shared = [*options, f"--C {_exact(cell.C)}"]
    way = _way(results, cell)
    shared += [f"--multi-class {way}"] if way else []
    if cell.rank is not None:
        assert results.low_rank is not None
        own = {"rank": cell.rank} | _landmarks(results.low_rank)
        names = {"random_state": "seed"}
        shared += [f"--{names.get(name, name)} {value}" for name, value in own.items()]
    if _own_map(results, cell):
        shared.append(f"--map {_own_map(results, cell)}")
    weight = _setting(results, "class_weight", None)
    shared += [f"--class-weight {quoted(weight)}"] if isinstance(weight, str) else []
    if results.tol != 1e-3 or results.low_rank is not None:
        shared.append(f"--tol {results.tol:g}")
    source = quoted(results.samples.source) + _source_words(results)
    return f"dhsk train {source} {' '.join(shared)} --out {quoted(out)}"


def _reading(results: Results) -> dict[str, Any]:
    """Return how the command named its labels, and its options on reading; empty if unknown."""
    found: dict[str, Any] = _setting(results, "reading", {})
    return found


def _source_words(results: Results) -> str:
    """Return the options on labels and on how samples are read, with a blank before each."""
    reading = _reading(results)
    if not reading:
        return " --labels LABELS"
    labels = "" if reading["labels"] is None else f" --labels {quoted(reading['labels'])}"
    return f"{labels}{reading['options']}"


def _options(cell: Cell) -> list[str] | None:
    """Return the options that name a kernel in `dhsk cv` and `dhsk train`, or None."""
    match cell.kernel:
        case "heat" if cell.time_scale is not None:
            return [f"--kernel heat --time-scale {_exact(cell.time_scale)}"]
        case "parametrix" if cell.time_scale is not None and "order=" not in cell.label:
            return [f"--kernel parametrix --time-scale {_exact(cell.time_scale)}"]
        case "cosine" | "linear":
            return [f"--kernel {cell.kernel}"]
        case "gaussian" if cell.sigma is not None:
            return [f"--kernel gaussian --sigma {_exact(cell.sigma)}"]
    return None


def _own_map(results: Results, cell: Cell) -> str:
    """Return the map if it is not the kernel's own; empty if it is."""
    named = MAP_OF.get(prefix_of(cell.kernel))
    if named is not None or _plain(cell).kernel not in SPHERICAL:
        return named or ""
    used = results.samples.sphere_map
    return "" if used in ("hyperspherical", "-") else used


def _plain(cell: Cell) -> Cell:
    """Return the cell with the kernel's own names, also if it is under another map."""
    return replace(cell, kernel=bare(cell.kernel), label=bare(cell.label))


def _setting(results: Results, name: str, default: Any) -> Any:
    return default if results.settings is None else results.settings.get(name, default)


def _exact(value: float) -> str:
    """Return a number in all its digits, whole ones without a point: 10, 38479.81, 1e12."""
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else repr(value)
