"""Draw files of every format by a grammar, sound, broken and damaged, and read them.

    nice python tests/fuzz/readers.py --cases 20000            # of each format
    nice python tests/fuzz/readers.py --cases 20000 --only tables

The property: the right values, or an `InputError` that names the file; never another exception,
never wrong values. What a grammar calls sound must be read, what it calls broken must be refused.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import grammar_binary as binary
import grammar_texts as texts
import numpy as np
from grammar import ANY, REFUSED, Case
from hypothesis import HealthCheck, Phase, given, seed, settings

from dhsk.errors import InputError, StoreError

FORMATS: Final[dict[str, Callable[[], Any]]] = {
    "tables": texts.tables, "matrix market": texts.markets, "svmlight": texts.svmlights,
    "sequences": texts.sequences, "jsonl": texts.json_lines, "labels": texts.labels,
    "edges": texts.edges, "npy": binary.npy_files, "npz": binary.archives,
    "arrow": binary.arrow_files, "h5ad": binary.h5ad_files, "zarr": binary.zarr_folders,
}  # fmt: skip


def same(found: Any, right: Any) -> bool:
    """Whether values are equal, NaN to NaN."""
    if isinstance(right, np.ndarray) or (isinstance(right, list) and isinstance(found, np.ndarray)):
        right, found = np.asarray(right), np.asarray(found)
        return found.shape == right.shape and bool(np.array_equal(found, right, equal_nan=True))
    return bool(found == right)


def check(case: Case, folder: Path) -> str:
    """Read a case; what became of it. AssertionError if that is wrong."""
    for name, content in case.files.items():
        path = folder / name
        if callable(content):
            content(path)
        else:
            path.write_bytes(content)
    source = str(folder / case.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = case.read(source)
        except (InputError, StoreError) as error:
            said = str(error)
            assert any(str(folder / name) in said for name in case.files), f"names no file: {said}"
            assert "\n" not in said, f"of several lines: {said}"
            sound = case.answer is not REFUSED and case.answer is not ANY
            assert not sound, f"refused, but it is sound: {said}"
            return "refused"
    if case.answer is ANY:
        return "damaged, read"
    assert case.answer is not REFUSED, f"read, but broken: {found}"
    assert same(found, case.answer), f"wrong: {found} for {case.answer}"
    return "read"


def draw_cases(name: str, cases: int, number: int | None = None) -> Counter[str]:
    """Check cases of a format; how many were read, and refused."""
    outcomes: Counter[str] = Counter()

    @settings(
        max_examples=cases, deadline=None, database=None, derandomize=number is None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
        print_blob=False,
    )  # fmt: skip
    @given(FORMATS[name]())
    def run(case: Case) -> None:
        with tempfile.TemporaryDirectory(dir=_fast()) as folder:
            outcomes[check(case, Path(folder).resolve())] += 1

    (run if number is None else seed(number)(run))()
    return outcomes


def _fast() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--only", choices=FORMATS)
    asked = parser.parse_args()
    faults = 0
    for chosen in [asked.only] if asked.only else FORMATS:
        began = time.perf_counter()
        try:
            counts = draw_cases(chosen, asked.cases, asked.seed)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            faults += 1
            print(f"{chosen}: {type(error).__name__}: {error}", flush=True)
            print("\n".join(getattr(error, "__notes__", [])), flush=True)
            import traceback

            traceback.print_exception(error, limit=-6)
            continue
        seconds = time.perf_counter() - began
        print(
            f"{chosen}: {sum(counts.values()):,} cases in {seconds:.0f} s, {dict(counts)}",
            flush=True,
        )
    sys.exit(faults > 0)
