"""Kernels of the nodes of a graph: functions of a symmetric similarity between them."""

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias, get_args

from dhsk.arrays import Floats, Rows
from dhsk.errors import InputError
from dhsk.kernels.base import chosen_parameter, real_parameter, whole_parameter
from dhsk.kernels.rowwise import RowKernel

NodeKind: TypeAlias = Literal["power", "exponential", "von_neumann"]

KINDS: Final[tuple[str, ...]] = get_args(NodeKind)


@dataclass(frozen=True)
class NodeKernel(RowKernel):
    """Kernel of the nodes of a graph: a function of a symmetric similarity S between them.

    Its matrix belongs to one graph and is computed as a whole, by `graph_gram`. There are no
    samples: values between other nodes are not defined.

    Parameters
    ----------
    kind
        "power", S^power; "exponential", exp(beta S), which is diffusion if S is the negative
        Laplacian; "von_neumann", (I - beta S)^-1, the sum of all (beta S)^l.
    beta
        Factor of S; None for "power".
    power
        Exponent, a whole number of at least 1; None for the others.
    similarity_semidefinite
        Whether S is known to be positive semi-definite, and so its odd powers.

    Raises
    ------
    InputError
        If the kind is unknown, or a parameter is missing or not such a number.

    References
    ----------
    .. [1] R. I. Kondor and J. Lafferty, "Diffusion kernels on graphs and other discrete structures"
       (2002).
    .. [2] M. J. Zaki and W. Meira, "Data Mining and Analysis", section 5.4.2.
    """

    name: ClassVar[str] = "graph"
    of_samples: ClassVar[bool] = False

    kind: str
    beta: float | None = None
    power: int | None = None
    similarity_semidefinite: bool = False

    def __post_init__(self) -> None:
        chosen_parameter("kind", self.kind, KINDS)
        needed, other = ("power", "beta") if self.kind == "power" else ("beta", "power")
        if getattr(self, needed) is None:
            raise InputError(f"kind {self.kind!r} needs {needed}: give {needed}")
        if getattr(self, other) is not None:
            raise InputError(f"kind {self.kind!r} has no {other}: leave it out")
        if self.kind == "power":
            object.__setattr__(self, "power", whole_parameter("power", self.power, 1))
        else:
            object.__setattr__(self, "beta", real_parameter("beta", self.beta))

    @property
    def label(self) -> str:
        """Short name with the parameter."""
        if self.power is not None:
            return f"graph power={self.power}"
        return f"graph {self.kind} beta={self.beta:.4g}"

    @property
    def positive_semidefinite(self) -> bool | None:
        """False for odd powers, unless S is known to be positive semi-definite itself."""
        odd = self.power is not None and self.power % 2 == 1
        return self.similarity_semidefinite or not odd

    def between(self, rows: Rows, columns: Rows) -> Floats:
        """Refuse: there are no samples."""
        del rows, columns
        raise InputError(
            "a kernel of graph nodes takes no samples: dhsk.graph_gram computes its matrix"
        )
