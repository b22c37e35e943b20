"""Options that several commands share."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import click

from dhsk.commands.parameters import PartOf, PlaceParameter, WholeNumbers
from dhsk.gram.storage.tiling import DtypeName
from dhsk.kernels import NAMED, TIME_SCALES, Kernel, named_kernel, parameters_of
from dhsk.objects.places import Place
from dhsk.samples import SphereMap, ZeroRule
from dhsk.samples.maps import MAPS
from dhsk.samples.weighted import TFIDF

if TYPE_CHECKING:
    from dhsk.results.low_rank import LossName

Command = TypeVar("Command", bound=Callable[..., Any])

KERNELS = NAMED
SELECTIONS = ("rpcholesky", "uniform", "kmeans")
LOSSES = ("squared_hinge", "logistic")


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Join click options into one decorator, first named first shown."""

    def decorate(function: Command) -> Command:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def gathered(
    parameter: str, kind: type, *options: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """Decorator that passes some options to a command as one dataclass, its `parameter`."""

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(**given: Any) -> Any:
            own = {field.name: given.pop(field.name) for field in fields(kind)}
            return function(**{parameter: kind(**own)}, **given)

        return _options(*options)(cast("Command", command))

    return decorate


@dataclass(frozen=True)
class ClusterOptions:
    """Cluster and memory of a command."""

    cluster: str
    workers: int | None
    memory: str | None

    @property
    def how_many(self) -> dict[str, int]:
        """Number of workers as `connect` takes it; empty if it was not given."""
        return {} if self.workers is None else {"n_workers": self.workers}


cluster_options = gathered(
    "cluster",
    ClusterOptions,
    click.option(
        "--cluster",
        default="local",
        help="local, slurm, pbs, sge, lsf, kubernetes, tcp://HOST:PORT, a cluster file (.toml), or "
        "a scheduler file.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1),
        help="Processes to start, or workers to wait for. [default: cores, or 1]",
    ),
    click.option("--memory", help="Most memory for all processes together, such as 4GB."),
)


@dataclass(frozen=True)
class StoreOptions:
    """Store of a command, and which of its parts to compute."""

    out: Place
    part: tuple[int, int] | None


store_options = gathered(
    "target",
    StoreOptions,
    click.option(
        "--out",
        type=PlaceParameter(),
        required=True,
        help="Folder of the store, or s3://BUCKET/PREFIX.",
    ),
    click.option(
        "--part",
        type=PartOf(),
        help="Compute one of several parts, such as 3/64, in this process; other processes compute "
        "the others. Afterwards run without --part.",
    ),
)


@dataclass(frozen=True)
class TileOptions:
    """Types, tiles and layout of a Gram matrix; see `compute_gram`."""

    dtype: DtypeName
    product_dtype: DtypeName
    tile: int | None
    layout: Literal["triangle", "full"]


tile_options = gathered(
    "tiles",
    TileOptions,
    click.option(
        "--dtype",
        type=click.Choice(["float32", "float64"]),
        default="float64",
        help="Type of the stored entries.",
    ),
    click.option(
        "--product-dtype",
        type=click.Choice(["float32", "float64"]),
        default="float64",
        help="Type of the products; float32 takes half the time, at cosines off by some 1e-7.",
    ),
    click.option("--tile", type=click.IntRange(1), help="Edge of a tile. [default: by memory]"),
    click.option(
        "--layout",
        type=click.Choice(["triangle", "full"]),
        default="triangle",
        help="Store the upper half, or both.",
    ),
)

_selection_option = click.option(
    "--selection",
    type=click.Choice(SELECTIONS),
    help="With --rank: how landmarks are chosen. [default: rpcholesky]",
)
_oversampling_option = click.option(
    "--oversampling",
    type=click.FloatRange(1),
    help="With --rank: landmarks for each feature; of more than one the leading components are "
    "kept. [default: 1]",
)
_loss_option = click.option(
    "--loss",
    type=click.Choice(LOSSES),
    help="With --rank: loss of a margin; logistic is for `dhsk predict --proba`. "
    "[default: squared_hinge]",
)


@dataclass(frozen=True)
class RankOptions:
    """Low rank: landmarks and loss; None if an option was not given."""

    rank: int | None
    selection: str | None
    oversampling: float | None
    loss: "LossName | None"

    @property
    def given(self) -> dict[str, Any]:
        """Options that were given, without the rank."""
        own = asdict(self)
        return {k: v for k, v in own.items() if k != "rank" and v is not None}


rank_options = gathered(
    "low_rank",
    RankOptions,
    click.option("--rank", type=click.IntRange(1), help="Train on Nyström features, this many."),
    _selection_option,
    _oversampling_option,
    _loss_option,
)
ranks_options = _options(
    click.option(
        "--rank",
        type=WholeNumbers(),
        help="Fit on Nyström features, this many, such as 500,1000,2000. For samples alone.",
    ),
    _selection_option,
    _oversampling_option,
    _loss_option,
)


@dataclass(frozen=True)
class KernelOptions:
    """One kernel, without the number of features; see `make_kernel`."""

    kernel: str
    time_scale: float | None
    time: float | None
    sigma: float
    degree: int
    offset: float

    def make(self, dim: int) -> Kernel:
        """The kernel for samples of `dim` features."""
        return make_kernel(dim=dim, **asdict(self))

    @property
    def is_auto(self) -> bool:
        """Whether the kernel has a time, and none was given."""
        timed = "time" in parameters_of(self.kernel)
        return timed and self.time is None and self.time_scale is None


kernel_options = gathered(
    "kernel",
    KernelOptions,
    click.option("--kernel", type=click.Choice(KERNELS), default="heat"),
    click.option(
        "--time-scale",
        type=float,
        help="How far heat spreads: time in log(dim)/dim. [default: 1; for `dhsk train` the one at "
        "which samples are 0.4 alike on average]",
    ),
    click.option("--time", type=float, help="The same as a time t, in place of --time-scale."),
    click.option("--sigma", type=float, default=1.0, help="Gaussian width."),
    click.option("--degree", type=int, default=2, help="Polynomial degree."),
    click.option("--offset", type=float, default=1.0, help="Polynomial offset."),
)
_MAP_HELP = "How samples become unit vectors{}. [default: the kernel's]"
_TFIDF_HELP = "; tfidf is projective after weights of the features that are learnt and kept{}"


def _map_option(maps: tuple[str, ...], more: str) -> Callable[[Command], Command]:
    kind = click.Choice(maps)
    return click.option("--map", "sphere_map", type=kind, help=_MAP_HELP.format(more))


map_option = _map_option(
    (*MAPS, TFIDF, "auto"),
    _TFIDF_HELP.format(", in every fold anew; auto tries tfidf beside the kernel's own"),
)
zero_rows_option = click.option(
    "--zero-rows",
    type=click.Choice(["center", "error"]),
    default="center",
    help="Samples of zeros have no image on the sphere: map them to the centre of the positive "
    "orthant, or raise an error.",
)


@dataclass(frozen=True)
class MapOptions:
    """How samples become unit vectors; see `compute_gram`."""

    sphere_map: SphereMap | None
    zero_rows: ZeroRule


map_options = gathered("mapping", MapOptions, _map_option((*MAPS,), ""), zero_rows_option)
learnt_map_options = gathered(
    "mapping", MapOptions, _map_option((*MAPS, TFIDF), _TFIDF_HELP.format("")), zero_rows_option
)


def make_kernels(
    names: list[str],
    dim: int,
    time_scale: list[float] | None,
    parametrix_scale: list[float] | None,
    sigma: list[float],
) -> list[Kernel]:
    """Make the kernels of a grid, in the order of their names.

    Heat kernels are made at each of `time_scale` (None: `TIME_SCALES`), parametrix kernels at each
    of `parametrix_scale` (None: as heat kernels), Gaussian kernels at each of `sigma`.
    """
    kernels: list[Kernel] = []
    for name in names:
        needed = parameters_of(name)
        if "time" in needed:
            scales = time_scale or list(TIME_SCALES)
            if name == "parametrix":
                scales = parametrix_scale or scales
            kernels += [make_kernel(name, dim, time_scale=scale) for scale in scales]
        elif "sigma" in needed:
            kernels += [make_kernel(name, dim, sigma=width) for width in sigma]
        else:
            kernels.append(make_kernel(name, dim))
    return kernels


def make_kernel(
    kernel: str,
    dim: int,
    *,
    time_scale: float | None = None,
    time: float | None = None,
    sigma: float = 1.0,
    degree: int = 2,
    offset: float = 1.0,
) -> Kernel:
    """Make one kernel for samples of `dim` features; without a time, its time scale is 1."""
    if time is not None and time_scale is not None:
        raise click.UsageError("give --time or --time-scale, not both")
    scale = 1.0 if time_scale is None else time_scale
    given = {"time": time, "sigma": sigma, "degree": degree, "offset": offset}
    return named_kernel(kernel, dim, scale, **given)
