"""Files of samples larger than the memory they are read in."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr
from numpy.lib.format import open_memmap

N_SAMPLES, DIM = 26_000, 500  # 104 MB
ROWS = 2000
"""Samples written, or in a chunk, at a time: 8 MB."""

ALLOWANCE = 44 * 2**20
"""Bytes: four blocks of 4 MiB that a scan takes, and of a sparse one the weights of a hash (8 bytes
an entry of 12); chunks and pieces of 8 MB at most as stored and decoded, and what HDF5 and zarr
keep of their own (5 MB when a file is opened)."""

PARQUET_ALLOWANCE = 120 * 2**20
"""Bytes: measured 84 MiB, as pyarrow takes about ten times the row group of 8 MB that it decodes,
and keeps some of it; 200 MB where it reads ahead."""

# VmHWM, not ru_maxrss, which begins with the size of the process that started this one.
GROWTH = """
import os, re, sys
from pathlib import Path
import h5py, numpy, scipy.sparse, zarr
from dhsk.samples import open_samples, scan

sys.modules["dhsk.samples.scan"].BLOCK_BYTES = 4 * 2**20

def resident(field):
    return 1024 * int(re.search(field + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def measure(large, *others):
    arrays = numpy.ones((3, 3)), scipy.sparse.csr_array(numpy.ones((3, 3)))
    for small in (*arrays, *others):
        scan(open_samples(small), "identity")  # what is loaded at first use is not of the samples
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    print(scan(open_samples(large), "identity").n_samples, resident("VmHWM") - before, flush=True)

for line in sys.stdin:
    process = os.fork()  # each has a heap of its own, and none loads the package again
    if process == 0:
        measure(*line.rstrip("\\n").split("\\t"))
        os._exit(0)
    if os.waitpid(process, 0)[1]:
        print(flush=True)
"""


@pytest.fixture(scope="module")
def growth() -> Iterator[Callable[..., tuple[int, int]]]:
    """Samples of a file and bytes that their scan takes, after those of small files."""
    with subprocess.Popen(
        [sys.executable, "-c", GROWTH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, told = process.stdin, process.stdout

        def measure(*paths: Path | str) -> tuple[int, int]:
            print(*paths, sep="\t", file=asked, flush=True)
            n_samples, bytes_taken = map(int, told.readline().split())
            return n_samples, bytes_taken

        yield measure
        asked.close()


def write(array) -> None:
    """Fill an array on disk by blocks."""
    block = np.random.default_rng(3).random((ROWS, DIM))
    for first in range(0, N_SAMPLES, ROWS):
        array[first : first + ROWS] = block


def write_npy(path: Path, dtype: str = "<f8", fortran: bool = False) -> None:
    """Write a .npy file."""
    array = open_memmap(path, "w+", dtype, (N_SAMPLES, DIM), fortran)
    write(array)
    array.flush()


def write_zarr(path: Path, zarr_format: int) -> None:
    """Write a zarr folder."""
    write(
        zarr.create_array(
            path,
            shape=(N_SAMPLES, DIM),
            chunks=(ROWS // 4, DIM),
            dtype="float64",
            zarr_format=zarr_format,
        )
    )


def write_h5ad(path: Path) -> None:
    """Write an h5ad file with a dense X."""
    with h5py.File(path, "w") as file:
        write(file.create_dataset("X", (N_SAMPLES, DIM), "float64"))


def fill_csr(group, create) -> None:
    """Write 105 MB of a CSR matrix: 9 million entries in rows of 250."""
    count, width = 35_000, 250
    group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", [count, DIM]
    create("indptr", (count + 1,), "int64")[:] = np.arange(count + 1) * width
    data, indices = (create(n, (count * width,), t) for n, t in (("data", "f8"), ("indices", "i4")))
    part = 1000 * width
    for first in range(0, count * width, part):
        data[first : first + part] = np.full(part, 0.5)
        indices[first : first + part] = np.tile(np.arange(0, DIM, 2), 1000)


def write_h5ad_csr(path: Path) -> None:
    """Write an h5ad file with a CSR X."""
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        fill_csr(group, lambda *a: group.create_dataset(*a, chunks=(25_000,)))


def write_zarr_csr(path: Path) -> None:
    """Write a zarr folder with a CSR X."""
    group = zarr.create_group(path).create_group("X")
    fill_csr(
        group,
        lambda name, shape, dtype: group.create_array(
            name, shape=shape, dtype=dtype, chunks=(min(shape[0], 50_000),)
        ),
    )


def write_parquet(path: Path) -> None:
    """Write a Parquet file in row groups of 2,000 samples."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"f{k}" for k in range(DIM)]
    block = np.random.default_rng(3).random((ROWS, DIM))
    part = pa.table(dict(zip(names, block.T, strict=True)))
    with pq.ParquetWriter(path, part.schema) as writer:
        for _ in range(0, N_SAMPLES, ROWS):
            writer.write_table(part)


FORMATS = {
    "parquet": write_parquet,
    "npy": write_npy,
    "npy big-endian": lambda path: write_npy(path, ">f8"),
    "npy by columns": lambda path: write_npy(path, fortran=True),
    "zarr 2": lambda path: write_zarr(path, 2),
    "zarr 3": lambda path: write_zarr(path, 3),
    "zarr csr": write_zarr_csr,
    "h5ad": write_h5ad,
    "h5ad csr": write_h5ad_csr,
}


def small_of(name: str, folder: Path) -> list[str]:
    """A small file, where its library takes much memory, or much of its code, at its first use."""
    if name == "h5ad csr":
        with h5py.File(folder / "small.h5ad", "w") as file:
            file["X"] = np.ones((3, 3))
        return [str(folder / "small.h5ad")]
    if name != "parquet":
        return []
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1.0, 2.0]}), folder / "small.parquet")
    return [str(folder / "small.parquet")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the resident size from /proc")
@pytest.mark.parametrize("name", FORMATS)
def test_a_scan_never_holds_the_file(name, tmp_path, growth):
    """104 MB of samples are scanned in 44 MiB, pages of mapped files included."""
    if name == "parquet":
        pytest.importorskip("pyarrow")
    ends = {"npy": ".npy", "parquet": ".parquet"}
    path = tmp_path / f"x{ends.get(name.split()[0], '.h5ad')}"
    FORMATS[name](path)
    n_samples, taken = growth(path, *small_of(name, tmp_path))
    assert n_samples in (N_SAMPLES, 35_000)
    assert taken < (PARQUET_ALLOWANCE if name == "parquet" else ALLOWANCE)


N_TEXTS, TEXT_ALLOWANCE = 40_000, 20 * 2**20
"""Texts of eight words of 200 letters: 64 MB; and the bytes that reading them may take: blocks of
counts, of text, and the entries that are gathered before they are written."""


def write_jsonl(path: Path, count: int) -> str:
    """Lines of JSON."""
    with path.open("w") as file:
        file.writelines('{"text": "' + text_of(n) + '"}\n' for n in range(count))
    return str(path)


def write_tsv(path: Path, count: int) -> str:
    """A table with a column of texts."""
    with path.open("w") as file:
        file.write("id\ttext\n")
        file.writelines(f"{n}\t{text_of(n)}\n" for n in range(count))
    return f"{path}:text"


def text_of(number: int) -> str:
    """Eight long words."""
    return " ".join(f"{(number + k) % 100:0200}" for k in range(8))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the resident size from /proc")
@pytest.mark.parametrize("write", [write_jsonl, write_tsv])
def test_texts_are_never_held(write, tmp_path, growth):
    """64 MB of text are counted in 20 MiB."""
    end = write.__name__.removeprefix("write_")
    large = write(tmp_path / f"large.{end}", N_TEXTS)
    small = write(tmp_path / f"small.{end}", 5)
    n_samples, taken = growth(large, small)
    assert n_samples == N_TEXTS
    assert taken < TEXT_ALLOWANCE


N_CELLS, GENES_PER_CELL, CELLS_ALLOWANCE = 30_000, 200, 40 * 2**20
"""Cells of 6 million entries, 75 MB of text and 72 MB as CSR; and the bytes that reading them may
take: 4 MiB of lines as text, parsed and as entries, and four blocks of 4 MiB of a scan."""


def write_mtx(path: Path, cells: int) -> str:
    """Genes by cells, in the order of the cells."""
    genes = np.arange(1, 1 + 100 * GENES_PER_CELL, 100)
    with path.open("w") as file:
        file.write("%%MatrixMarket matrix coordinate integer general\n")
        file.write(f"{100 * GENES_PER_CELL} {cells} {cells * GENES_PER_CELL}\n")
        for cell in range(1, cells + 1):
            file.write("".join(f"{gene} {cell} 3\n" for gene in genes))
    (path.parent / "barcodes.tsv").write_text("".join(f"C{n}\n" for n in range(cells)))
    return str(path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the resident size from /proc")
def test_a_matrix_of_cells_is_never_held(tmp_path, growth):
    """75 MB of Matrix Market text are read in 40 MiB."""
    for name in ("large", "small"):
        (tmp_path / name).mkdir()
    large = write_mtx(tmp_path / "large" / "x.mtx", N_CELLS)
    small = write_mtx(tmp_path / "small" / "x.mtx", 30)
    n_samples, taken = growth(large, small)
    assert n_samples == N_CELLS
    assert taken < CELLS_ALLOWANCE, taken
