"""Files of low-rank models, and of models of every kind."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from dhsk.models import exact_file as exact
from dhsk.models.exact import SvcModel
from dhsk.models.low_rank import LowRankCertificates, LowRankModel

FORMAT: Final = "dhsk low-rank model"


def save_model(model: SvcModel | LowRankModel, path: str | Path) -> None:
    """Write a model, in the archive format of numpy; replaced in one step if it exists.

    Parameters
    ----------
    model
        The model.
    path
        File to write, with any ending; its folder must exist.

    Raises
    ------
    InputError
        The labels are of a type that no file can hold without pickling them.
    OSError
        The file cannot be written.
    """
    if isinstance(model, SvcModel):
        exact.save_model(model, path)
        return
    found = model.certificates
    header = {f.name: getattr(found, f.name) for f in fields(found)}
    arrays = exact.arrays_of(found)
    plain = {name: value for name, value in header.items() if name not in arrays}
    own: dict[str, NDArray[Any]] = {"coef": model.coef, "intercepts": model.intercepts}
    if model.indices is not None:
        own["indices"] = model.indices
    exact.write_model(Path(path), FORMAT, model, plain, {**arrays, **own})


def load_model(path: str | Path) -> SvcModel | LowRankModel:
    """Read what `save_model` wrote, of either kind.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    SvcModel or LowRankModel
        The same model: its decisions are the same to the last bit.

    Raises
    ------
    InputError
        There is no such file, or it is no model, damaged, of another kind or version.
    """
    kinds: dict[str, Callable[..., SvcModel | LowRankModel]] = {
        exact.FORMAT: exact.model_of,
        FORMAT: model_of,
    }
    return exact.read_model(path, kinds)


def load_low_rank(path: str | Path) -> LowRankModel:
    """Read a low-rank model, see `load_model`."""
    return exact.read_model(path, {FORMAT: model_of})


def model_of(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> LowRankModel:
    """Low-rank model of a file's header and arrays."""
    names = [f.name for f in fields(LowRankCertificates)]
    proof: dict[str, Any] = {n: arrays[n] if n in arrays else header[n] for n in names}
    model = LowRankModel(
        **exact.common_of(header, arrays),
        indices=arrays.get("indices"),
        coef=arrays["coef"],
        intercepts=arrays["intercepts"],
        certificates=LowRankCertificates(**proof),
    )
    _check_shapes(model)
    return model


def _check_shapes(model: LowRankModel) -> None:
    k, m = len(model.classes), model.rows.shape[0]
    columns, found = 1 if k == 2 else k, model.certificates
    exact.require_shapes(
        indices=(model.indices, (m,)),
        coef=(model.coef, (m, columns)),
        intercepts=(model.intercepts, (columns,)),
        objective=(found.objective, (columns,)),
        gradient_norm=(found.gradient_norm, (columns,)),
        relative=(found.relative, (columns,)),
        gap=(found.gap, (columns,)),
        converged=(found.converged, (columns,)),
    )
