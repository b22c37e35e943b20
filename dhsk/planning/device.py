"""Memory of a device, as a plan says it."""

import numpy as np

from dhsk.devices import LANES, current_device
from dhsk.gram.device_passes import pass_bytes
from dhsk.gram.plan import GramPlan
from dhsk.kernels import Kernel
from dhsk.models.on_device import most_whole
from dhsk.units import format_bytes


def device_lines(plan: GramPlan, kernel: Kernel) -> list[tuple[str, str]]:
    """What the device of the code in progress computes of a plan, in which memory; as rows."""
    device, itemsize = current_device(), np.dtype(plan.product_dtype).itemsize
    if device is None:
        return []
    room = device.room()
    lines = [("device", f"{device.name}, {format_bytes(room)} of its memory free")]
    sparse = plan.sides.nnz is not None
    if sparse or kernel.device_pass(np.dtype(plan.product_dtype)) is None:
        what = "sparse samples stay" if sparse else "this kernel stays"
        return [*lines, ("on it", f"nothing: {what} on the processor")]
    n, most = plan.tiling.n_rows, most_whole(device, itemsize)
    task = pass_bytes(device, plan.sides.dim * itemsize, plan.tiling)
    fits = "stays there" if n <= most else "does not fit and is fetched in blocks"
    return [
        *lines,
        ("G @ v on it", f"{format_bytes(LANES * task)}, {LANES} tasks at a time"),
        (
            "exact SVM on it",
            f"its matrix, {format_bytes(itemsize * n * n)}, {fits}; at most {most:,} samples fit",
        ),
    ]
