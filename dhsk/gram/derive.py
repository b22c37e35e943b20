"""Kernels whose values follow from those in a store."""

from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.gram.storage.header import Header
from dhsk.kernels import CosineKernel, GaussianKernel, Kernel, LinearKernel, RowKernel


def check_derivable(header: Header, stored: Kernel, kernel: Kernel, *, computed: bool) -> None:
    """Check that values of the `stored` kernel determine the matrix of another kernel.

    If values are `computed` from staged samples, check that these do. Raises InputError.
    """
    if not (stored.of_samples and kernel.of_samples):
        raise InputError(
            f"the {kernel.label} kernel cannot be derived from stored values of {stored.label}: "
            "kernels of graph nodes are computed one by one, with dhsk.graph_gram"
        )
    if isinstance(kernel, RowKernel):
        raise InputError(
            f"a {kernel.name} kernel cannot be derived from stored values, it needs the "
            "samples: compute its matrix with compute_gram"
        )
    dim, needed = kernel.row_length, product_kernel(kernel).name
    if dim is not None and dim != header.dim:
        raise InputError(f"the kernel is for dim {dim}, the samples have dim {header.dim}")
    single = computed and header.product_dtype == "float32"
    if single and isinstance(kernel, GaussianKernel) and not _is_at_most(stored, kernel):
        raise InputError(
            f"the samples of this matrix are in float32 and were not checked for the {kernel.label}"
            " kernel: compute its matrix with compute_gram"
        )
    if computed:
        if isinstance(stored, RowKernel) or kernel.spherical != stored.spherical:
            raise InputError(
                f"a {kernel.name} kernel takes rows that are mapped differently from these, which "
                f"are for a {stored.name} kernel: compute its matrix with compute_gram"
            )
    elif stored.name != needed:
        raise InputError(
            f"a {kernel.name} matrix cannot be derived from stored {stored.name} "
            f"values: compute the store with the {needed} kernel"
        )
    elif needed == "linear" and not header.symmetric:
        raise InputError(
            "only the stored inner products of samples with themselves determine distances: "
            f"compute the {kernel.name} kernel directly"
        )


def check_digits(header: Header, kernel: Kernel, norms2: Floats) -> Floats:
    """Return squared norms of samples, (n,), if stored products determine a kernel's distances.

    Those in float32 do not determine the distances of samples that are far from the origin; then it
    raises InputError.
    """
    if isinstance(kernel, GaussianKernel) and "float32" in (header.dtype, header.product_dtype):
        summed = header.dim if header.product_dtype == "float32" else 0
        kernel.check_single(summed, norms2, "the samples")
    return norms2


def _is_at_most(stored: Kernel, kernel: GaussianKernel) -> bool:
    """Whether rows that were checked for a Gaussian kernel will do for another in float32.

    The check of a stretched kernel is made again, by `dhsk.models.rescaling`.
    """
    return isinstance(stored, GaussianKernel) and stored.sigma <= kernel.sigma


def product_kernel(kernel: Kernel) -> Kernel:
    """Kernel whose values determine the given one: cosine, linear, or the kernel itself."""
    if isinstance(kernel, RowKernel):
        return kernel
    return CosineKernel() if kernel.spherical else LinearKernel()
