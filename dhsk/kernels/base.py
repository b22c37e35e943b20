"""Base class of the kernels: values of inner products and of rows, and a JSON description."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Rows, blocks
from dhsk.errors import InputError
from dhsk.kernels.certified.evaluate import Reals
from dhsk.kernels.cuda import DevicePass
from dhsk.kernels.duplicates import Marks, row_hashes
from dhsk.kernels.on_device import DeviceRows, block_from_device, device_for, memory_for
from dhsk.kernels.rows import RowsLike, as_rows, inner_product, squared_norms

STRIP: Final = 16384
"""Number of entries processed at a time: five such float64 arrays (640 kB) fit the L2 cache."""

Indefinite: TypeAlias = Literal["error", "allow"]
"""What an SVM does with a kernel that is known not to be positive semi-definite."""

Name = TypeVar("Name", bound=str)

_MIRROR_BLOCK: Final = 256  # rows copied at a time: two 512 kB blocks, one of them strided


def largest_of(dtype: str) -> float:
    """Upper bound on kernel values such that the sum of eight of them is in the range of a type."""
    return float(np.finfo(dtype).max) / 8.0


def strips(size: int, width: int = 1) -> Iterator[slice]:
    """Slices of rows, (size, width), of at most `STRIP` entries or one row each."""
    return blocks(size, max(1, STRIP // max(1, width)))


def chosen_parameter(name: str, value: object, known: Sequence[Name]) -> Name:
    """Check that a parameter is one of some names, or raise `InputError`."""
    found = next((one for one in known if isinstance(value, str) and value == one), None)
    if found is None:
        *others, last = map(repr, known)
        raise InputError(f"{name} must be {', '.join(others)} or {last}, but it is {value!r:.80}")
    return found


def flag_parameter(name: str, value: object) -> None:
    """Check that a parameter is True or False, or raise `InputError`: "no" would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, but it is {value!r:.80}")


def real_parameter(name: str, value: object, least: float = -math.inf) -> float:
    """Check that a parameter is a finite number, at least `least`, or raise `InputError`."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InputError(f"{name} must be a finite number, but it is {value!r}")
    if value < least:
        raise InputError(f"{name} must be at least {least:g}, but it is {value!r}")
    return float(value)


def positive_parameter(name: str, value: object) -> float:
    """Check that a parameter is finite and above 0, or raise `InputError`; returns a float."""
    number = real_parameter(name, value)
    if number <= 0:
        raise InputError(f"{name} must be above 0, but it is {value!r}")
    return number


def whole_parameter(name: str, value: object, minimum: int) -> int:
    """Check that a parameter is an integer of at least `minimum`, or raise `InputError`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise InputError(f"{name} must be a whole number, at least {minimum}, but it is {value!r}")
    return int(value)


@dataclass(frozen=True)
class Kernel(ABC):
    """A symmetric function of two samples, positive semi-definite unless it says otherwise.

    Kernels are frozen dataclasses: comparable, hashable and picklable. Most are functions of the
    inner product of two rows and of their squared norms.

    Examples
    --------
    >>> import dhsk
    >>> kernel = dhsk.GaussianKernel(sigma=5.0)
    >>> kernel([[0.0, 0.0], [3.0, 4.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    >>> kernel.to_spec()
    {'name': 'gaussian', 'sigma': 5.0}
    """

    name: ClassVar[str]
    """Name of the family, as in the command line and in `to_spec`."""
    spherical: ClassVar[bool] = False
    """Whether rows must be unit vectors."""
    unit_diagonal: ClassVar[bool] = False
    """Whether K(x, x) = 1 for every x, so that the diagonal is set to 1."""
    bilinear: ClassVar[bool] = False
    """Whether K(x, y) = <x, y>, so that sums over rows are products with one vector."""
    of_samples: ClassVar[bool] = True
    """Whether values are those of pairs of samples; False for the nodes of a graph."""
    default_map: ClassVar[str] = "identity"
    """Default map of raw samples to rows of this kernel."""
    defaults: ClassVar[Mapping[str, float]] = {}
    """Parameters of the kernel that its name alone stands for, but for `dim` and `time`."""
    width_parameter: ClassVar[str | None] = None
    """Parameter that the variance of the samples decides where the kernel is given by its name."""

    @property
    def row_length(self) -> int | None:
        """Required number of columns of rows: the kernel's `dim`, if it has one; None for any."""
        found: int | None = getattr(self, "dim", None)
        return found

    @property
    def positive_semidefinite(self) -> bool | None:
        """Whether every Gram matrix of this kernel has no negative eigenvalue.

        True is proven. False is known not to be, and SVMs refuse the kernel unless they are told
        otherwise. None depends on the samples: it is not in general, but may be on those in use.
        """
        return True

    @property
    @abstractmethod
    def label(self) -> str:
        """Short name with the parameters, for tables and plots."""

    @abstractmethod
    def of_product(self, product: Floats, row_norms2: Floats, col_norms2: Floats) -> Floats:
        """Kernel values from inner products; may overwrite `product` and return it.

        Parameters
        ----------
        product
            Inner products <x_i, y_j>, (a, b).
        row_norms2
            Squared norms of the x_i, (a,).
        col_norms2
            Squared norms of the y_j, (b,).

        Returns
        -------
        Floats
            K(x_i, y_j), (a, b), in place if `product` is C-ordered float64.
        """

    def __call__(self, X: RowsLike, Y: RowsLike | None = None) -> Floats:
        """Kernel values of all pairs of rows.

        Parameters
        ----------
        X
            Samples by row, (a, dim), dense or sparse; unit rows for a spherical kernel.
        Y
            Samples by row, (b, dim), dense or sparse; None means X.

        Returns
        -------
        Floats
            K(x_i, y_j), (a, b). Without Y it is symmetric bit for bit, and its diagonal is
            exactly 1 where the kernel has a unit diagonal.

        Raises
        ------
        InputError
            If the samples are not 2-D, finite and of the right number of columns, or if a
            spherical kernel is given a row that is not of unit norm.
        """
        rows = self._accept(X, "X")
        if Y is None:
            return self.of_rows(rows)
        columns = self._accept(Y, "Y")
        if rows.shape[1] != columns.shape[1]:
            raise InputError(
                f"X has {rows.shape[1]} columns and Y has {columns.shape[1]}:"
                " both need the same features in the same order"
            )
        return self.of_rows(rows, columns)

    def of_rows(self, rows: Rows, columns: Rows | None = None, out: Reals | None = None) -> Floats:
        """Kernel values of all pairs of rows, as `__call__` gives but without checks.

        Parameters
        ----------
        rows
            Samples by row, (a, dim), that were checked. Spherical, linear and Gaussian kernels
            compute in float32 if the rows are float32.
        columns
            Samples by row, (b, dim); None means `rows`.
        out
            C-ordered array for the result, (a, b), of the rows' dtype; None for a new one.

        Returns
        -------
        Floats
            K(x_i, y_j), (a, b), of the rows' dtype; symmetric bit for bit if `columns` is None.
        """
        across = rows if columns is None else columns
        values = self._from_device(rows, across, out, self.device_pass)
        if values is None:
            values = self._between(rows, across, out)
        if columns is None:
            self.make_symmetric(values)
        return values

    def of_distinct_rows(self, rows: Rows, columns: Rows, out: Reals | None = None) -> Floats:
        """Kernel values as `of_rows` gives them, of checked rows none of which equals a column.

        So equal rows need not be looked for; the values of any are off by rounding.
        """
        values = self._from_device(rows, columns, out, self.device_pass, distinct=True)
        if values is not None:
            return values
        product = inner_product(rows, columns, out)
        return np.asarray(self.of_product(product, self.norms2(rows), self.norms2(columns)))

    def device_pass(self, dtype: Any) -> DevicePass | None:
        """How a device makes values of inner products in a type; None if it cannot."""
        del dtype
        return None

    def _from_device(
        self,
        rows: Rows,
        columns: Rows,
        out: Reals | None,
        values_of: Callable[[Any], DevicePass | None],
        *,
        distinct: bool = False,
    ) -> Floats | None:
        """Values of all pairs of rows, if a device is there, is able to, and is worth the copies.

        `values_of` gives how they are made in a type; equal rows are looked for unless `distinct`.
        """
        device = device_for(rows, columns)
        one = None if device is None else values_of(rows.dtype)
        if device is None or one is None or not isinstance(rows, np.ndarray):
            return None
        values: Any = memory_for((len(rows), len(columns)), rows.dtype) if out is None else out
        sides = [self.prepared(rows, distinct=distinct)]
        if columns is not rows:
            sides.append(self.prepared(columns, distinct=distinct))
        with device.turn():
            on_device = [DeviceRows.put(device, *side) for side in sides]
            block_from_device(device, one, on_device[0], on_device[-1], values)
        return np.asarray(values)

    def prepared(
        self, rows: Any, *, distinct: bool = False
    ) -> tuple[NDArray[Any], Floats, Marks | None]:
        """Dense rows, their squared norms, and hashes unless all are distinct, for a device."""
        rows = np.ascontiguousarray(rows)
        return rows, self.norms2(rows), None if distinct else row_hashes(rows)

    def make_symmetric(self, values: Floats) -> None:
        """Mirror the upper triangle of a square block of values, and set a unit diagonal to 1."""
        mirror_upper(values)
        if self.unit_diagonal:
            np.fill_diagonal(values, 1.0)

    def _between(self, rows: Rows, columns: Rows, out: Reals | None) -> Floats:
        product = self.product(rows, columns, out)
        return self.of_product(product, self.norms2(rows), self.norms2(columns))

    def product(self, rows: Rows, columns: Rows, out: Reals | None = None) -> Floats:
        """Inner products of checked rows for `of_product`, (a, b); in `out` if given."""
        return inner_product(rows, columns, out)

    def norms2(self, rows: Rows) -> Floats:
        """Squared norms of rows for `of_product`, (a,)."""
        return squared_norms(rows)

    def prepare(self, dtype: str = "float64") -> None:  # noqa: B027  # most have nothing to do
        """Compute and cache the constants of the kernel, before any values are needed.

        Parameters
        ----------
        dtype
            Type of the inner products, "float64" or "float32".

        Raises
        ------
        AccuracyError
            The kernel cannot be evaluated to its promised accuracy.
        """

    def largest_norm2(self, dtype: str = "float64") -> float:
        """Largest squared norm of rows for which all values are in the range of a type."""
        del dtype
        return math.inf

    def check_rows(
        self, rows: Rows, first_row: int = 0, what: str = "X", dtype: str = "float64"
    ) -> None:
        """Refuse rows on which this kernel is not defined, or whose values overflow.

        Parameters
        ----------
        rows
            Samples by row, (a, dim), finite.
        first_row
            Index of the first of these rows among all samples, for the message.
        what
            Name of the samples in the message.
        dtype
            Type of the kernel values.

        Raises
        ------
        InputError
            There is such a row; the message names the first.
        """
        largest = self.largest_norm2(dtype)
        if largest < math.inf:
            with np.errstate(over="ignore"):
                norms2 = squared_norms(rows)
            self.check_norms2(norms2, largest, what, first_row, dtype)

    def check_products(  # noqa: B027  # most kernels take the products of any rows
        self, rows: Rows, first_row: int = 0, what: str = "X", dtype: str = "float64"
    ) -> None:
        """Refuse rows whose inner products in a type do not determine values to enough digits.

        Parameters
        ----------
        rows, first_row, what
            As for `check_rows`.
        dtype
            Type of the inner products.

        Raises
        ------
        InputError
            There is such a row; the message names the first.
        """

    def check_norms2(
        self, norms2: Floats, largest: float, what: str, first_row: int, dtype: str = "float64"
    ) -> None:
        """Refuse rows whose squared norms, (a,), are above the largest; see `check_rows`."""
        wrong = np.flatnonzero(~(norms2 <= largest))
        if wrong.size:
            raise InputError(
                f"row {first_row + wrong[0]} of {what} (counted from 0) has a norm above"
                f" {math.sqrt(max(largest, 0.0)):.3g}, beyond which values of the {self.label}"
                f" kernel overflow {dtype}: scale the samples, for instance X / abs(X).max()"
            )

    def to_spec(self) -> dict[str, Any]:
        """Name and parameters for JSON, as `kernel_from_spec` reads them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        inner = {key: value.to_spec() for key, value in values.items() if isinstance(value, Kernel)}
        return {"name": self.name} | values | inner

    def _accept(self, X: RowsLike, what: str) -> Rows:
        rows = as_rows(X, what)
        if self.row_length is not None and rows.shape[1] != self.row_length:
            raise InputError(
                f"{what} has {rows.shape[1]} columns, but this {self.name} kernel has"
                f" dim={self.row_length}: make the kernel with dim={rows.shape[1]}"
            )
        self.check_rows(rows, what=what)
        return rows


def parse_indefinite(rule: object) -> Indefinite:
    """Check what is done with an indefinite kernel; InputError for an unknown rule."""
    known: tuple[Indefinite, ...] = get_args(Indefinite)
    return chosen_parameter("indefinite", rule, known)


def check_semidefinite(kernel: Kernel, indefinite: object) -> None:
    """Refuse a kernel that is known not to be positive semi-definite, unless they are allowed.

    Raises InputError, also for an unknown rule.
    """
    if parse_indefinite(indefinite) == "error" and kernel.positive_semidefinite is False:
        raise InputError(
            f"the {kernel.label} kernel is not positive semi-definite, so the dual of an SVM is"
            " not concave, and a fit may end at a point that is no maximum: choose another kernel,"
            " or give indefinite='allow' (--indefinite allow)"
        )


def mirror_upper(values: Floats) -> None:
    """Copy the upper triangle of a square matrix to the lower one, in place, block by block."""
    size = values.shape[0]
    for part in blocks(size, _MIRROR_BLOCK):
        values[part.stop :, part] = values[part, part.stop :].T
        corner = values[part, part]
        np.copyto(corner, corner.T.copy(), where=np.tri(len(corner), k=-1, dtype=np.bool_))
