"""Make an `.h5ad` file, as AnnData writes it today, of the 700 blood cells that scanpy ships.

Run `python cells.py scanpy-1.11.5-py3-none-any.whl cells.h5ad`. The file in the wheel has the
layout of 2019. Its `raw.X` is log(1 + counts per 10,000) of 765 genes.
"""

import io
import sys
import zipfile
from typing import Any

import h5py
import numpy as np

INSIDE = "scanpy/datasets/10x_pbmc68k_reduced.h5ad"


def write_frame(file: Any, side: str, columns: dict[str, list[str]]) -> None:
    """Write names and columns of cells ("obs") or genes ("var")."""
    frame = file.create_group(side)
    frame.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0"})
    frame.attrs["_index"] = "_index"
    for name, values in columns.items():
        frame.create_dataset(name, data=values)


def main(wheel: str, out: str) -> None:
    """Read the old layout out of the wheel and write the new one."""
    with zipfile.ZipFile(wheel) as archive, h5py.File(io.BytesIO(archive.read(INSIDE))) as old:
        data, indices, indptr = (old[f"raw.X/{name}"][:] for name in ("data", "indices", "indptr"))
        genes = [row["index"].decode() for row in old["raw.var"][:]]
        cells = [row["index"].decode() for row in old["obs"][:]]
        names = [name.decode() for name in old["uns/bulk_labels_categories"][:]]
        types = [names[code] for code in old["obs"]["bulk_labels"]]
    with h5py.File(out, "w") as file:
        x = file.create_group("X")
        x.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
        x.attrs["shape"] = (len(cells), len(genes))
        # Proportions are taken of them: counts per 10,000 are as good as counts, logarithms not.
        x.create_dataset("data", data=np.expm1(data))
        x.create_dataset("indices", data=indices)
        x.create_dataset("indptr", data=indptr)
        write_frame(file, "obs", {"_index": cells, "cell_type": types})
        write_frame(file, "var", {"_index": genes})
    print(f"{out}: {len(cells)} cells, {len(genes)} genes, {len(set(types))} types")


if __name__ == "__main__":
    main(*sys.argv[1:])
