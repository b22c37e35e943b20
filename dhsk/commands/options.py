"""Options that several commands share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from dhsk.commands.parameters import (
    CLASS_WEIGHT,
    PART,
    WHOLE_NUMBERS,
    KernelParameter,
    MapParameter,
    PlaceParameter,
)
from dhsk.commands.table import DATA, FIT, RUN, TableRow, gathered, option, rows_of
from dhsk.devices import VARIABLE, device
from dhsk.kernels import NAMED, TIME_SCALES, HeatKernel, Kernel, named_kernel, parameters_of
from dhsk.results.low_rank import SELECTIONS
from dhsk.samples import Samples
from dhsk.samples.looks import map_by_looks
from dhsk.samples.maps import MAPS
from dhsk.samples.weighted import SCALED
from dhsk.solvers.problems import MULTI_CLASS
from dhsk.units import parse_bytes

KERNELS = NAMED
LOSSES = ("squared_hinge", "logistic")
DTYPES: Final = click.Choice(["float32", "float64"])

labels_option = option(
    "--labels",
    group=DATA,
    common=True,
    help="FILE or FILE:COLUMN, one label a sample. [default: svmlight's own]",
)

json_option = option(
    "--json", "as_json", is_flag=True, help="Print one object of JSON, for programs."
)

out_option = option("--out", group=DATA, common=True, type=PlaceParameter(), required=True)


@dataclass(frozen=True)
class Cluster:
    """Cluster and memory of a command."""

    cluster: str
    workers: int | None
    memory: str | None
    device: str | None = None
    part: tuple[int, int] | None = None

    @property
    def writes(self) -> bool:
        """Whether this process writes the results: the first of several."""
        return self.part is None or self.part[0] == 1

    @property
    def limit(self) -> int | None:
        """Bytes of that memory."""
        return None if self.memory is None else parse_bytes(self.memory)


memory_option = option(
    "--memory", group=RUN, common=True, help="Most memory for all processes together, such as 4GB."
)


def _use(context: click.Context, _: click.Parameter, name: str | None) -> str | None:
    """Compute on a device until the command ends."""
    if name is not None and not context.resilient_parsing:
        context.with_resource(device(name))
    return name


device_option = option(
    "--device",
    group=RUN,
    callback=_use,
    help=f"cuda for a GPU, or cpu. [default: {VARIABLE}, or cpu]",
)

_CLUSTER: Final = (
    option(
        "--cluster",
        group=RUN,
        common=True,
        default="local",
        help="local, slurm, pbs, sge, lsf, kubernetes, tcp://HOST:PORT, a cluster file (.toml), or "
        "a scheduler file.",
    ),
    option(
        "--workers",
        group=RUN,
        type=click.IntRange(1),
        help="Processes to start, or workers to wait for. [default: cores, or 1]",
    ),
    memory_option,
    device_option,
)

cluster_options = gathered("cluster", Cluster, *_CLUSTER)

shared_options = gathered(
    "cluster",
    Cluster,
    *_CLUSTER,
    option(
        "--part",
        group=RUN,
        type=PART,
        help="Be one of several processes that share the work by a folder beside --out, such as "
        "3/16. Start them all, as by an array job.",
    ),
)

tile_options = gathered(
    "tiles",
    dict,
    *rows_of(
        FIT,
        option("--dtype", type=DTYPES, default="float64", help="Type of the stored entries."),
        option(
            "--product-dtype",
            type=DTYPES,
            default="float64",
            help="Type of the products; float32 takes half the time, at cosines off by some 1e-7.",
        ),
        option("--tile", type=click.IntRange(1), help="Edge of a tile. [default: by memory]"),
        option(
            "--layout",
            type=click.Choice(["triangle", "full"]),
            default="triangle",
            help="Store the upper half, or both.",
        ),
    ),
)

rank_row = option(
    "--rank", common=True, type=click.IntRange(1), help="Train on Nyström features, this many."
)
ranks_row = rank_row.of(
    type=WHOLE_NUMBERS,
    help="Fit on Nyström features, this many, such as 500,1000,2000. For samples alone.",
)


class_weight_row = option(
    "--class-weight",
    type=CLASS_WEIGHT,
    help="Weigh classes alike (balanced), or multiply C by a factor for some, such as ill=5.",
)


def multi_class_row(usual: str, *more: str) -> TableRow:
    """The option of fits of several classes, with other names too, the first its default."""
    return option(
        "--multi-class",
        type=click.Choice([*more, *MULTI_CLASS]),
        default=more[0] if more else None,
        help="Exact fits of three classes and more: each pair of classes (ovo), or each against "
        f"the rest (ovr){usual}",
    )


LANDMARKS: Final = (
    option(
        "--selection",
        type=click.Choice(SELECTIONS),
        help="With --rank: how landmarks are chosen. [default: rpcholesky]",
    ),
    option(
        "--oversampling",
        type=click.FloatRange(1),
        help="With --rank: landmarks for each feature; of more than one the leading components are "
        "kept. [default: 1]",
    ),
    option(
        "--loss",
        type=click.Choice(LOSSES),
        help="With --rank: loss of a margin; logistic is for `dhsk predict --proba`. "
        "[default: squared_hinge]",
    ),
)


def landmarks_in(given: dict[str, Any]) -> dict[str, Any]:
    """Options of landmarks that were given, without the rank."""
    return {row.name: given[row.name] for row in LANDMARKS if given[row.name] is not None}


kernel_row = option("--kernel", group=FIT, type=KernelParameter(), default="heat", common=True)

KERNEL: Final = rows_of(
    FIT,
    kernel_row,
    option(
        "--time-scale",
        type=float,
        common=True,
        help="How far heat spreads: time in log(dim)/dim. [default: 1; for `dhsk train` and "
        "`features` the one at which samples are 0.4 alike on average]",
    ),
    option("--time", type=float, help="The same as a time t, in place of --time-scale."),
    option(
        "--sigma",
        type=float,
        help="Gaussian width. [default: by the variance of the samples, scikit-learn's "
        'gamma="scale"]',
    ),
    option("--degree", type=int, help="Polynomial degree. [default: 2]"),
    option("--offset", type=float, help="Polynomial offset. [default: 1]"),
)


def map_rows(*learnt: str) -> tuple[TableRow, ...]:
    """Rows of the map of samples, of which some are `learnt`, and of samples of zeros."""
    more = "".join(f"; {words}" for name, words in _OF_LEARNT.items() if name in learnt)
    return (
        option(
            "--map",
            "sphere_map",
            group=FIT,
            type=MapParameter((*MAPS, *learnt)),
            help="How samples become unit vectors; clr:0.5 adds 0.5 before logarithms"
            f"{more}. [default: the kernel's]",
        ),
        option(
            "--zero-rows",
            group=FIT,
            type=click.Choice(["center", "error"]),
            default="center",
            help="Samples of zeros have no image on the sphere: map them to the centre of the "
            "positive orthant, or raise an error.",
        ),
    )


KERNEL_OF_MAP: Final = (
    kernel_row.of(
        default=None,
        help="[default: gaussian for scaled columns, as of different units; else heat]",
    ),
    *KERNEL[1:],
)
"""The same, where the map may name the kernel."""

_OF_LEARNT: Final = {
    "tfidf": "tfidf is projective after weights that are learnt and kept",
    SCALED: "scaled, for gaussian and linear kernels, gives columns the mean 0 and variance 1, and "
    "gaps their mean",
    "auto": "both are learnt in every fold anew; auto tries tfidf and clr beside the kernel's own",
}
"""Words for maps that are learnt, and for a search among maps."""

kernel_options = gathered("kernel", dict, *KERNEL_OF_MAP)


def name_kernel(kernel: dict[str, Any], sphere_map: str | None) -> None:
    """Name the kernel of options by `KERNEL_OF_MAP` if it was not.

    Raises UsageError for scaled columns, which are no unit vectors, and a kernel of these, and for
    parameters that the kernel does not have.
    """
    if kernel["kernel"] is None:
        kernel["kernel"] = "gaussian" if sphere_map == SCALED else "heat"
    if sphere_map == SCALED and kernel["kernel"] not in OF_COLUMNS:
        raise click.UsageError(
            f"--map {SCALED} is for kernels of columns: add --kernel {' or '.join(OF_COLUMNS)}"
        )
    refuse_idle([kernel["kernel"]], kernel)


OF_COLUMNS: Final = ("gaussian", "linear", "polynomial")
"""Kernels of samples that are no unit vectors."""


def name_by_looks(kernel: dict[str, Any], mapping: dict[str, Any], samples: Samples) -> None:
    """Name the kernel if it was not, and the map that suits the samples, as a search does."""
    looked_at = kernel["kernel"] is None and has_no_time(kernel | {"kernel": HeatKernel.name})
    if looked_at and mapping["sphere_map"] is None:
        mapping["sphere_map"] = map_by_looks(samples)
    name_kernel(kernel, mapping["sphere_map"])


def has_no_time(kernel: dict[str, Any]) -> bool:
    """Whether the kernel of options has a time, and none was given, or "auto"."""
    timed = "time" in parameters_of(kernel["kernel"])
    return timed and kernel.get("time") is None and kernel["time_scale"] in (None, "auto")


def refuse_idle(names: Sequence[str], given: Mapping[str, Any]) -> None:
    """Raise UsageError for a parameter that none of the kernels has."""
    for name in ("time_scale", "time", "parametrix_scale", "sigma", "degree", "offset"):
        own = [one for one in KERNELS if name.removesuffix("_scale") in parameters_of(one)]
        own = ["parametrix"] if name == "parametrix_scale" else own
        idle = given.get(name) not in (None, "auto") and not set(own) & set(names)
        if idle:  # "auto" is a search of heat kernels beside
            raise click.UsageError(
                f"--{name.replace('_', '-')} has no effect on {', '.join(names)}: leave it out, or "
                f"give --kernel {own[0]}"
            )


def make_kernels(names: list[str], dim: int, given: dict[str, Any]) -> list[Kernel | str]:
    """Make the kernels of a grid, in the order of their names; Gaussians without sigma stay names.

    Heat kernels are made at each of `time_scale` (None: `TIME_SCALES`), parametrix kernels at each
    of `parametrix_scale` (None: as heat kernels), Gaussian kernels at each of `sigma`.
    """
    kernels: list[Kernel | str] = []
    for name in names:
        needed = parameters_of(name)
        if "time" in needed:
            scales = given["time_scale"] or list(TIME_SCALES)
            if name == "parametrix":
                scales = given["parametrix_scale"] or scales
            kernels += [make_kernel(dim, name, time_scale=scale) for scale in scales]
        elif "sigma" in needed and given["sigma"] is None:
            kernels.append(name)
        elif "sigma" in needed:
            kernels += [make_kernel(dim, name, sigma=width) for width in given["sigma"]]
        else:
            kernels.append(make_kernel(dim, name))
    return kernels


def make_kernel(
    dim: int,
    kernel: str,
    time_scale: float | None = None,
    time: float | None = None,
    sigma: float | None = None,
    degree: int | None = None,
    offset: float | None = None,
    width: Callable[[], float] | None = None,
) -> Kernel:
    """Make one kernel for samples of `dim` features; without a time, its time scale is 1.

    Without sigma it is what `width` finds in the samples.
    """
    if time is not None and time_scale is not None:
        raise click.UsageError("give --time or --time-scale, not both")
    scale = 1.0 if time_scale is None else time_scale
    given = {"time": time, "sigma": sigma, "degree": degree, "offset": offset}
    return named_kernel(kernel, dim, scale, width, **given)
