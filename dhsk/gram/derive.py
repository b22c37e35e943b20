"""Which kernels' values follow from what a store holds."""

from dhsk.errors import InputError
from dhsk.gram.storage.header import Header
from dhsk.kernels import CosineKernel, Kernel, LinearKernel, RowKernel


def check_derivable(header: Header, stored: Kernel, kernel: Kernel, *, computed: bool) -> None:
    """Make sure that the matrix of a kernel follows from stored values, or from staged samples.

    Parameters
    ----------
    header
        What the store holds.
    stored
        Its first kernel.
    kernel
        The other kernel.
    computed
        Whether its values would be computed from the samples.

    Raises
    ------
    InputError
        It does not.
    """
    if isinstance(kernel, RowKernel):
        raise InputError(
            f"a {kernel.name} kernel cannot be derived from stored values, it needs the "
            "samples: compute its matrix with compute_gram"
        )
    dim, needed = getattr(kernel, "dim", None), product_kernel(kernel).name
    if dim is not None and dim != header.dim:
        raise InputError(f"the kernel is for dim {dim}, the samples have dim {header.dim}")
    if computed:
        if isinstance(stored, RowKernel) or kernel.spherical != stored.spherical:
            raise InputError(
                f"a {kernel.name} kernel takes other rows than these, which were mapped for a "
                f"{stored.name} kernel: compute its matrix with compute_gram"
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


def product_kernel(kernel: Kernel) -> Kernel:
    """Kernel whose stored values determine a given one: cosines, inner products, or itself."""
    if isinstance(kernel, RowKernel):
        return kernel
    return CosineKernel() if kernel.spherical else LinearKernel()
