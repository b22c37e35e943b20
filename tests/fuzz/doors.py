"""Cases: a command and its words, or a function and its arguments."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any, Final

import answers
import inputs
import numpy as np

import dhsk
from dhsk.samples import open_samples, read_labels

COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "gram": ("gram SAMPLES --out OUT",),
    "cv": (
        "cv SAMPLES --labels LABELS --folds 2 --C 1 --time-scale 1 --out OUT",
        "cv cosines --labels LABELS --folds 2 --C 1 --time-scale 1 --out OUT",
        "cv SAMPLES --labels LABELS --folds 2 --C 1 --time-scale 1 --rank 4 --out OUT",
        "cv SAMPLES --labels LABELS --folds 2 --C 1 --kernel linear --model --out OUT",
    ),
    "train": (
        "train SAMPLES --labels LABELS --out OUT",
        "train SAMPLES --labels LABELS --rank 4 --out OUT",
        "train SAMPLES --labels LABELS --probability --out OUT",
    ),
    "predict": ("predict MODEL SAMPLES --out OUT", "predict MODEL SAMPLES --proba --out OUT"),
    "compare": ("compare x.npy SAMPLES --permutations 19 --out OUT",),
    "features": ("features SAMPLES --rank 4 --out OUT", "features SAMPLES --by MODEL --out OUT"),
    "info": ("info STORE",),
    "verify": ("verify STORE", "verify STORE --repair SAMPLES"),
    "plan": ("plan SAMPLES", "plan --n 1000 --dim 20"),
    "kernel": ("kernel --dim 6", "kernel --dim 6 --plot k.png"),
}
OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "gram": ("--kernel", "--time-scale", "--time", "--sigma", "--degree", "--offset", "--map",
             "--dtype", "--product-dtype", "--tile", "--layout", "--drop-column", "--memory",
             "--workers", "--out"),
    "cv": ("--kernel", "--time-scale", "--parametrix-scale", "--sigma", "--C", "--folds",
           "--groups", "--scoring", "--class-weight", "--tol", "--rank", "--selection",
           "--oversampling", "--loss", "--seed", "--test", "--test-labels", "--map",
           "--drop-column", "--memory", "--out", "--labels"),
    "train": ("--rank", "--selection", "--oversampling", "--loss", "--C", "--class-weight",
              "--tol", "--seed", "--dtype", "--kernel", "--time-scale", "--time", "--sigma",
              "--degree", "--offset", "--map", "--drop-column", "--memory", "--out", "--labels"),
    "predict": ("--labels", "--drop-column", "--out", "--id-column"),
    "compare": ("--kernel", "--time-scale", "--sigma", "--map", "--permutations", "--seed",
                "--drop-column", "--memory", "--out"),
    "features": ("--rank", "--selection", "--oversampling", "--seed", "--dtype", "--kernel",
                 "--time-scale", "--sigma", "--map", "--drop-column", "--memory", "--out"),
    "info": ("--help",),
    "verify": ("--drop-column", "--memory"),
    "plan": ("--n", "--dim", "--density", "--workers", "--memory", "--passes", "--rank",
             "--classes", "--grid", "--kernel", "--time-scale", "--sigma", "--tile", "--dtype"),
    "kernel": ("--dim", "--time-scale", "--time", "--plot"),
}  # fmt: skip
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "--kernel": ("heat", "parametrix", "cosine", "linear", "gaussian", "polynomial", "heat,linear"),
    "--map": ("hyperspherical", "projective", "identity", "flat"),
    "--dtype": ("float32", "float64", "int8"),
    "--product-dtype": ("float32", "float16"),
    "--layout": ("full", "triangle", "square"),
    "--memory": ("1GB", "300MB", "1", "0", "-1GB", "1 XB", "1e30GB", "nan"),
    "--selection": ("uniform", "kmeans", "rpcholesky", "best"),
    "--loss": ("logistic", "hinge", "squared_hinge", "square"),
    "--class-weight": ("balanced", "none"),
    "--scoring": ("roc_auc", "neg_log_loss", "f1_macro", "r2", "f1", "nonsense", "neg_brier_score"),
    "--drop-column": ("f0", "f9", "0", "ünï"),
    "--id-column": ("f0", "f9", "kind"),
    "--grid": ("5,3,3", "1,1,1", "2,1", "2,0,1", "9999999,99999,99999"),
}


def draw_command(random: Random, address: str) -> tuple[list[str], str]:
    """Words of a command, and what may be wrong; it changes files in the current folder."""
    name = random.choice(tuple(COMMANDS))
    words = random.choice(COMMANDS[name]).split()
    files = {
        "SAMPLES": random.choice(inputs.SAMPLES),
        "LABELS": random.choice(inputs.LABELS),
        "MODEL": random.choice(inputs.MODELS),
        "STORE": random.choice(inputs.STORES),
        "OUT": "o",
    }
    kind = random.choice(("damage", "damage", "samples", "labels", "option", "option", "place"))
    described = kind
    match kind:
        case "damage":
            used = [files[word] for word in words if word in files and word != "OUT"] or ["x.npy"]
            used += ["cosines"] if "cosines" in words else []
            described = inputs.damage(Path(random.choice(used).split(":")[0]), random)
        case "samples":
            files["SAMPLES"], described = _write_samples(random)
        case "labels":
            files["LABELS"] = _write_labels(random)
        case "place":
            files["OUT"] = random.choice(inputs.PLACES)
            if random.random() < 0.3:
                files["SAMPLES"] = random.choice(inputs.PLACES)
    words = [files.get(word, word) for word in words]
    if kind == "option":
        for _ in range(random.choice((1, 1, 2))):
            words += _option(random, name)
    if name in ("gram", "verify"):
        words += ["--cluster", address]
    elif name == "cv":
        words += ["--cluster", address] if "--rank" not in words else []
    return words, described


def _option(random: Random, name: str) -> list[str]:
    option = random.choice(OPTIONS[name])
    if option in ("--out", "--plot", "--groups", "--test", "--test-labels", "--labels"):
        value = random.choice((*inputs.PLACES, *inputs.LABELS, *inputs.SAMPLES))
    elif random.random() < 0.8:
        value = random.choice(WORDS.get(option, inputs.NUMBERS))
    else:
        value = random.choice(inputs.NUMBERS)
    return [option, value]


def _write_samples(random: Random) -> tuple[str, str]:
    """File of samples of which something may be wrong."""
    X = inputs.odd_samples(random, np.load("x.npy"))
    if hasattr(X, "tocsr"):
        X = X.toarray()
    ending = random.choice(("npy", "npz", "csv"))
    described = f"{X.dtype}{X.shape} {np.ravel(X)[:3]}"
    if ending == "csv" and X.ndim == 2:
        rows = (",".join(map(str, row)) for row in X.tolist())
        Path("odd.csv").write_text("\n".join(rows) + "\n")
    elif ending == "npz":
        np.savez("odd.npz", X=X)
    else:
        ending = "npy"
        np.save("odd.npy", X)
    return f"odd.{ending}", described


def _write_labels(random: Random) -> str:
    y = inputs.odd_labels(random, np.load("y.npy"))
    if random.random() < 0.5:
        np.save("odd-y.npy", y)
        return "odd-y.npy"
    text = "\n".join(map(str, y.ravel().tolist())) + "\n"
    Path("odd-y.txt").write_bytes(text.encode("utf-8", "surrogatepass"))
    return "odd-y.txt"


ODD: Final = (
    None, 0, -1, 1, 2.5, 1e308, -1e308, float("nan"), float("inf"), "", "heat", "abc", "auto",
    (), [], {}, [1, 2], [None], True, 10**30, 1j, b"x", object(), ["a", 1], np.zeros(3), "1GB",
)  # fmt: skip
FITTED: Final[tuple[Callable[..., Any], ...]] = (
    dhsk.HeatSVC, dhsk.NystromSVC, dhsk.NystromFeatures, dhsk.HeatKernelRidge,
    dhsk.HeatOneClassSVM, dhsk.HypersphericalMap, dhsk.ProjectiveMap, dhsk.TfidfMap,
    dhsk.HeatKernelPCA, dhsk.HeatKernelDensity, dhsk.HeatKernelNeighbors,
)  # fmt: skip
KERNELS: Final[tuple[Any, ...]] = (
    dhsk.HeatKernel, dhsk.ParametrixKernel, dhsk.GaussianKernel, dhsk.PolynomialKernel,
    dhsk.CosineKernel, dhsk.LinearKernel,
)  # fmt: skip
NESTED: Final[dict[str, tuple[str, Callable[..., Any]]]] = {
    **dict.fromkeys(("rank", "selection", "oversampling", "loss"), ("low_rank", dhsk.LowRank)),
    **dict.fromkeys(
        ("n_splits", "n_repeats", "min_class", "random_state"), ("cv", dhsk.StratifiedFolds)
    ),
    **dict.fromkeys(("tol", "zero_rows", "indefinite"), ("fit", dhsk.Fitting)),
    **dict.fromkeys(("choose", "test"), ("refit", dhsk.Refit)),
    **dict.fromkeys(("disk", "eigenvalues", "baselines"), ("out", dhsk.Output)),
}
"""Parameters of the small classes that `cross_validate` takes: its own, and the class."""

PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "gram": ("kernel", "Y", "sphere_map", "dtype", "product_dtype", "tile", "memory", "layout",
             "store"),
    "cv": ("time_scale", "kernels", "C", "cv", "groups", "class_weight", "sample_weight",
           "scoring", "low_rank", "sphere_map",
           "memory", "refit", "out", "fit", *NESTED),
}  # fmt: skip


def _odd_grid(name: str, odd: Any) -> dict[str, Any]:
    """Arguments of `cross_validate` of which one is odd, or part of one."""
    usual = {"cv": 2, "C": [1.0]}
    if name not in NESTED:
        return usual | {name: odd}
    parameter, kind = NESTED[name]
    return usual | {parameter: kind(**({"rank": 4} if kind is dhsk.LowRank else {}) | {name: odd})}


def draw(random: Random) -> tuple[str, Callable[[], Any]]:
    """A call of a function: in words, and to be made."""
    X, y = np.load("x.npy"), np.load("y.npy")
    what = random.choice(("samples", "labels", "parameter", "parameter"))
    if what == "samples":
        X = inputs.odd_samples(random, X)
    if what == "labels":
        y = inputs.odd_labels(random, y)
    door = random.choice(("gram", "cv", "fit", "fit", "kernel", "open", "labels", "read"))
    odd = random.choice(ODD)
    given = what == "parameter"
    match door:
        case "gram":
            own = {random.choice(PARAMETERS["gram"]): odd} if given else {}
            kernel = own.pop("kernel", random.choice(dhsk.kernels.NAMED))
            return f"compute_gram(X, {kernel!r}, **{own})", lambda: _gram(X, kernel, own)
        case "cv":
            name, kernels = random.choice(PARAMETERS["cv"]), [random.choice(dhsk.kernels.NAMED)]
            said = (
                f"cross_validate(X, y, kernels={kernels}, {name}={odd!r})"
                if given
                else "cross_validate"
            )
            return said, lambda: dhsk.cross_validate(
                X,
                y,
                **{"kernels": kernels} | (_odd_grid(name, odd) if given else {"cv": 2, "C": [1.0]}),
            )
        case "fit":
            return _fit(random, X, y, odd if given else None, given)
        case "kernel":
            kind = random.choice(KERNELS)
            arguments = [random.choice((*ODD, 6, 0.5)) for _ in fields(kind)]
            return f"{kind.__name__}{arguments}(X)", lambda: kind(*arguments)(X)
        case "open":
            return f"open_gram({odd!r})", lambda: dhsk.open_gram(odd)
        case "labels":
            source = odd if given else y
            return f"read_labels({source!r:.60})", lambda: read_labels(source, inputs.ROWS)
        case _:
            source = odd if given else X
            return f"open_samples({source!r:.60})", lambda: list(open_samples(source).blocks(7))


def _gram(X: Any, kernel: Any, own: dict[str, Any]) -> None:
    found = np.asarray(dhsk.compute_gram(X, kernel, **own))
    if isinstance(kernel, str) and "Y" not in own:
        answers.check_gram(X, kernel, found)


def _fit(random: Random, X: Any, y: Any, odd: Any, given: bool) -> tuple[str, Callable[[], Any]]:
    kind = random.choice(FITTED)
    estimator = kind(4) if kind in (dhsk.NystromSVC, dhsk.NystromFeatures) else kind()
    parameters = sorted(set(estimator.get_params()) - {"client"})
    own = {random.choice(parameters): odd} if given and parameters else {}
    if "kernel" in parameters and random.random() < 0.5:
        own = {"kernel": random.choice(dhsk.kernels.NAMED)} | own
    estimator.set_params(**own)
    target = np.arange(len(y)) * 1.0 if kind is dhsk.HeatKernelRidge else y

    def call() -> None:
        estimator.fit(X, target)
        found = next(m for m in ("predict", "transform", "score_samples") if hasattr(estimator, m))
        getattr(estimator, found)(X)

    return f"{kind.__name__}(**{own}).fit(X, y)", call
