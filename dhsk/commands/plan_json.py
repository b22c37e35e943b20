"""What `dhsk plan --json` prints: the numbers of a plan, in bytes and seconds."""

from typing import Any

from dhsk.commands.plan_training import Timed, TrainingPlans
from dhsk.execution.memory import Share
from dhsk.planning.pilot import Pilot
from dhsk.planning.prediction import Prediction


def gram_facts(prediction: Prediction, passes: int) -> dict[str, Any]:
    """Tiles, bytes, operations and seconds of a Gram matrix."""
    plan = prediction.plan
    t, r = plan.tiling, plan.resources
    return {
        "n_rows": t.n_rows,
        "n_cols": t.n_cols,
        "dim": plan.sides.dim,
        "entries_per_sample": plan.sides.row_entries,
        "dtype": plan.dtype,
        "product_dtype": plan.product_dtype,
        "layout": plan.layout,
        "tile": t.tile,
        "tiles": t.n_tiles,
        "tasks": plan.n_groups,
        "flops": plan.flops,
        "sparse_products": plan.sparse_path,
        "disk_bytes": plan.disk_bytes,
        "tile_files": plan.stored_tiles,
        "peak_bytes": plan.peak_bytes,
        "worker_bytes": plan.worker_bytes,
        "allowed_bytes": r.memory,
        "fits": plan.fits,
        "free_disk_bytes": prediction.free,
        "fits_disk": prediction.fits_disk,
        "workers": r.workers or 1,
        "threads": r.threads,
        "seconds": prediction.seconds,
        "start_seconds": prediction.start,
        "compute_seconds": prediction.compute,
        "write_seconds": prediction.disk,
        "read_seconds": prediction.read,
        "passes": passes,
        "stored_seconds": prediction.stored(passes),
        "recomputed_seconds": prediction.recomputed(passes),
    }


def training_facts(plans: TrainingPlans, timed: Timed) -> dict[str, Any]:
    """Memory of classifiers, and their seconds where pilot fits were timed."""
    grid, ways = plans.grid, []
    for rank, way in plans.ways.items():
        ways.append(
            {
                "rank": rank,
                "model": _fit_facts(way.model),
                "grid": _fit_facts(way.grid),
                **_pilot_facts(timed.get(rank), sum(grid.sizes), grid.fits),
            }
        )
    return {
        "class_sizes": list(grid.sizes),
        "folds": grid.folds,
        "values_of_C": grid.chain,
        "kernels": grid.kernels,
        "classifiers": ways,
    }


def _pilot_facts(pilot: Pilot | str | None, n: int, fits: int) -> dict[str, Any]:
    """Lowest, likely and highest seconds of one fit to n samples, and of a number of fits."""
    if pilot is None or isinstance(pilot, str):
        return {} if pilot is None else {"refused": pilot}
    seconds = pilot.seconds_at(n)
    return {"model_seconds": seconds, "grid_seconds": [fits * value for value in seconds]}


def _fit_facts(fit: Share | None) -> dict[str, Any] | None:
    """Memory of a fit; None if it does not fit."""
    return None if fit is None else {"bytes": fit.need.total, "how": fit.way}
