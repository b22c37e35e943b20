"""Array jobs in Python: processes that run the same program and share its passes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from importlib.metadata import version
from os import PathLike

from dhsk.errors import StoreError
from dhsk.execution.array_job import AllEndedError, ArrayJob
from dhsk.execution.workers import computing
from dhsk.gram.storage.parts import parse_part
from dhsk.objects.places import parse_place


@contextmanager
def array_job(part: tuple[int, int], folder: "str | PathLike[str]") -> Iterator[ArrayJob]:
    """Share the passes of the calls in a ``with`` block among processes, without a scheduler.

    All processes run the same program, each with its own part, as the jobs of an array do. The
    tasks of every pass over a matrix that is not stored, such as products, moments, discrepancies
    and eigenvectors, are divided among them, and their results go through a folder or a prefix on
    a server that all of them see. So each process has the same results, with the bits of one
    process. One that was killed finds there what it had computed, when it is run again. Processes
    wait for each other, so all must run at a time.

    Estimators take what the block yields as ``client=``, like a client of Dask. `cross_validate`
    and stores are refused; `compute_gram` has its own `part` for these.

    Parameters
    ----------
    part
        Number of this process, from 1, and of all, such as (3, 64).
    folder
        Folder or ``s3://`` prefix for the results, of this job alone. The last process leaves a
        note in it that all have ended.

    Yields
    ------
    ArrayJob
        This process's part.

    Raises
    ------
    InputError
        The part is none, or other processes have begun with other samples, kernels or versions.
    StoreError
        All processes have ended before, or results are damaged.

    Examples
    --------
    >>> import tempfile
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> folder = tempfile.mkdtemp()  # for several processes a folder that all of them see
    >>> with dhsk.array_job((1, 1), folder):
    ...     G = dhsk.compute_gram(X, "heat")
    ...     round(G.alignment(y), 2)
    0.53
    """
    number, count = astuple(parse_part(part))
    job = ArrayJob(number, count, parse_place("folder", folder), _tell)
    try:
        asked = [count, version("dhsk")]
        with job.running(asked, is_made=lambda: True), computing(job):
            yield job
    except AllEndedError:
        raise StoreError(
            f"all parts in {folder} have ended before: remove it to run them again"
        ) from None


def _tell(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
