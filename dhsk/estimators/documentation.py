"""What docstrings of estimators share: a name without a description gets that of the table here.

A method whose parameters are all in the table needs no section for them; nor does one that returns
its estimator, or raises errors for its samples alone, and for its memory if it shows its progress.

Signatures of the classes differ, so that no base could describe their parameters; and numpydoc,
`help` and notebooks read docstrings as they are after the import.
"""

import inspect
import re
from textwrap import fill, indent
from types import FunctionType
from typing import Any, Final, Self

from dhsk.errors import BudgetError, InputError

SHARED: Final = {
    "time_scale": (
        'Diffusion time in units of log(dim)/dim; "auto" for the one at which the mean of 1 - K '
        'over pairs of samples is 0.6. Used by the kernel None and the names "heat" and '
        '"parametrix" alone.'
    ),
    "sphere_map": (
        'Map of the samples to the unit sphere: "hyperspherical" (square roots of proportions, for '
        'counts), "projective" (division by the length), "clr" (centred log-ratios, for counts of '
        'microbes; "clr:0.5" adds 0.5 first) or "identity". None for the kernel\'s default: '
        '"hyperspherical" for heat, parametrix and cosine, "identity" for the others.'
    ),
    "zero_rows": (
        "What to do with samples that are all zero, which have no image on the sphere. "
        '"center" maps them to the centre of the positive orthant, the limit of smoothed counts, '
        'and warns of their number. "error" raises an error that names the first.'
    ),
    "kernel": (
        "A kernel of dhsk; None for the heat kernel at `time_scale`; or a name: "
        '"heat" and "parametrix" at `time_scale`, "gaussian" with a width by the variance of the '
        'samples, "polynomial" with degree=2 and offset=1, "cosine", "linear".'
    ),
    "gamma": (
        'Coefficient of the kernels "rbf", "poly" and "sigmoid"; "scale" for 1 over the number of '
        'features times the variance of all entries of the samples, "auto" for 1 over the number '
        "of features."
    ),
    "degree": 'Exponent of the kernel "poly".',
    "coef0": 'Number that the kernels "poly" and "sigmoid" add to the inner product.',
    "nu": (
        "Upper bound on the share of outliers among the training samples, and lower bound on the "
        "share of support vectors; above 0 and at most 1."
    ),
    "tol": "Tolerance of the KKT violation; small problems are solved beyond it.",
    "class_weight": 'Factors of C by label, or "balanced"; None for 1.',
    "alpha": "Regularization strength, above 0.",
    "oversampling": (
        "Number of landmarks per feature, at least 1. With more landmarks than features, the "
        "features are the leading components."
    ),
    "random_state": (
        "Seed, or a `RandomState`, that draws the landmarks: the same seed gives the same model."
    ),
    "shrinking": "Without effect: the solver works on sets of samples in any case.",
    "cache_size": "Without effect: see `memory`.",
    "verbose": "Whether fits show their progress.",
    "decision_function_shape": (
        '"ovr" for a value of each class, made of votes, or "ovo" for one of each pair of classes.'
    ),
    "break_ties": (
        "Whether predictions are the classes of the highest values of `decision_function`, in "
        'place of the votes; not with "ovo".'
    ),
    "support_": "Indices of the support vectors, ascending, (n_sv,), int32.",
    "n_support_": "Number of support vectors, of each class if there are any, int32.",
    "shape_fit_": "Shape of the samples of the fit.",
    "fit_status_": "0 if the fit has converged, else 1.",
    "class_weight_": "Factors of C of each class, (k,).",
    "coef_": (
        "Weights of the features for a linear kernel, (1, n_features), of classifiers (pairs of "
        "classes, n_features)."
    ),
    "n_iter_": "Number of steps of the solver.",
    "kkt_violation_": (
        "KKT violation over all samples, computed from a new gradient; of several fits the largest."
    ),
    "duality_gap_": (
        "Relative duality gap, primal less dual objective over the primal; of several fits the "
        "largest."
    ),
    "objective_": "Dual objective b'Kb/2.",
    "unit_": (
        "Unit of `tol`: a power of two near the mean of 1 - K if the kernel is nearly constant, "
        "else 1."
    ),
    "converged_": "Whether the KKT violation is at most `tol`.",
    "model_": "The fitted model as `SvcModel`, with LIBSVM's signs.",
    "max_iter": (
        "Largest number of iterations, each one pass over the matrix. The fit warns if they are "
        "not enough."
    ),
    "landmark_tol": (
        'Tolerance of the relative trace error, below 1: "rpcholesky" stops adding landmarks when '
        "it is reached. 0 for `n_components` features."
    ),
    "dtype": (
        'Type of mapped rows, inner products and matrix, "float64" or "float32"; sums are in '
        "float64."
    ),
    "memory": (
        "Upper bound on the memory of this process, or of all Dask workers if there are some: a "
        'number of bytes, or a string like "2GB". None for half of the free memory, or for that of '
        "the workers."
    ),
    "client": (
        "Dask client whose workers fit the model, and predict or transform many samples as long as "
        "it is open. Clones share it, and it is not pickled."
    ),
    "store": (
        "Folder for the matrix, which is computed if it is not yet there, and read in each pass."
    ),
    "journal": (
        "Folder for a checkpoint of each pass: the same fit resumes there after an interruption."
    ),
    "indefinite": (
        "What to do with a kernel that is known not to be positive semi-definite: "
        '"error", or "allow", where the fit may end at a point that is no maximum.'
    ),
    "classes_": "Labels, (k,).",
    "C_": "The C of the fit.",
    "X_fit_": "Samples of the fit, mapped to the sphere, (N, dim).",
    "support_vectors_": "Support vectors, mapped to the sphere, (n_sv, dim).",
    "landmarks_": "Landmarks, mapped to the sphere, (m, dim).",
    "landmark_indices_": (
        "Their indices among the samples, (m,); None if they are centres of clusters."
    ),
    "n_components_": "Number of features.",
    "kernel_": "The kernel.",
    "time_scale_": "Its time in units of log(dim)/dim; None for kernels without a time.",
    "n_features_in_": "Number of features of the fit.",
    "feature_names_in_": "Their names, (dim,), if the fit had some, as in scikit-learn.",
    "X": "Samples by row, (N, dim), dense or sparse.",
    "samples": "Argument or result of `dhsk.open_samples`, (N, dim).",
    "y": "Ignored.",
    "progress": "Function that is called with `Progress` events; True for bars.",
    "Self": "The fitted estimator.",
    InputError.__name__: "A parameter or a row is invalid; the message names the row.",
    BudgetError.__name__: "The computation needs more memory, or more disk space, than there is.",
}
"""Descriptions of parameters, attributes, results and errors."""

_SECTION: Final = re.compile(
    r"^ *(?:Parameters|Attributes|Returns|Raises)\n *-+\n(?:.+(?:\n|\Z))+", re.MULTILINE
)
_BARE: Final = re.compile(r"^( *)(\w+(?:, \w+)*)$(?!\n\1 +\S|\n *-+$)", re.MULTILINE)
"""A line of names that no deeper one follows, nor the line below a heading."""

_SPLIT: Final = re.compile(r"\n\n(?=[A-Z]\w+\n-+\n)")
"""Before a heading."""

_WIDTH: Final = 100


def described(docstring: str) -> str:
    """A docstring in which each name without a description has the shared one."""
    return _SECTION.sub(lambda section: _BARE.sub(_entries, section[0]), docstring)


def describe(cls: type[Any]) -> None:
    """Describe a class, and the public methods of its own."""
    if cls.__doc__ is not None:  # python -OO has none
        cls.__doc__ = described(cls.__doc__)
    for name, thing in vars(cls).items():
        method = inspect.unwrap(thing)
        if inspect.isfunction(method) and not name.startswith("_") and method.__doc__ is not None:
            method.__doc__ = described(_with_sections(method))


def _with_sections(method: FunctionType) -> str:
    """A docstring with the sections that the signature says, where all of it is shared."""
    head, *sections = _SPLIT.split(inspect.cleandoc(method.__doc__ or ""))
    signature = inspect.signature(method)
    names = [name for name in signature.parameters if name not in ("self", "cls")]
    said = {
        "Parameters": names if set(names) <= set(SHARED) else [],
        "Returns": [Self.__name__] if signature.return_annotation is Self else [],
        "Raises": _errors_of(names),
    }
    whole = {
        title: f"{title}\n{len(title) * '-'}\n{', '.join(words)}" if words else ""
        for title, words in said.items()
    }
    whole |= {section.partition("\n")[0]: section for section in sections}
    return "\n\n".join([head, *filter(None, whole.values())])


def _errors_of(names: list[str]) -> list[str]:
    """Names of the errors of a method with parameters of some names."""
    if "progress" in names:
        return [InputError.__name__, BudgetError.__name__]
    return [InputError.__name__] if "X" in names else []


def _entries(names: re.Match[str]) -> str:
    """Each of the names with its description below it."""
    margin, deeper = names[1], names[1] + 4 * " "
    texts = {name: fill(SHARED[name], _WIDTH - len(deeper)) for name in names[2].split(", ")}
    return "\n".join(f"{margin}{name}\n{indent(text, deeper)}" for name, text in texts.items())
