"""Labels in zarr folders and h5ad files, as AnnData encodes columns."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr

from dhsk.errors import InputError
from dhsk.samples import read_labels

COLUMNS = {
    "numbers": {"": np.array([3, 1, 3, 1])},
    "categorical": {"codes": np.array([1, 0, 1, 0], "i1"), "categories": ["B", "Tü"]},
    "numbered": {"codes": np.array([1, 0, 1, 0], "i1"), "categories": np.array([7, 9])},
    "nullable": {"values": np.array([3, 1, 3, 1]), "mask": np.zeros(4, bool)},
    "missing": {"codes": np.array([1, 0, -1, 0], "i1"), "categories": ["B", "Tü"]},
    "masked": {"values": np.array([3, 1, 3, 1]), "mask": np.arange(4) == 2},
    "beyond": {"codes": np.array([1, 0, 2, 0], "i1"), "categories": ["B", "Tü"]},
    "table": {"": np.ones((4, 2))},
    "group": {"other": np.ones(4)},
}


def put(group: Any, name: str, values: Any) -> None:
    """Write an array or texts into a group."""
    if isinstance(group, h5py.Group):
        group.create_dataset(name, data=values)
    elif isinstance(values, list):
        array = group.create_array(name, shape=(len(values),), chunks=(2,), dtype="str")
        array[:] = np.array(values, dtype=np.dtypes.StringDType())
    else:
        group.create_array(name, data=values)


@pytest.fixture(params=["h5ad", "zarr 2", "zarr 3"])
def source(request: Any, tmp_path: Path) -> Path:
    """All columns in a file or folder of AnnData."""
    if request.param == "h5ad":
        root: Any = h5py.File(tmp_path / "x.h5ad", "w")
    else:
        root = zarr.create_group(tmp_path / "x.zarr", zarr_format=int(request.param[-1]))
    obs = root.create_group("obs")
    obs.attrs["_index"] = "name"
    put(obs, "name", np.arange(4))
    for name, parts in COLUMNS.items():
        if "" in parts:
            put(obs, name, parts[""])
            continue
        column = obs.create_group(name)
        for part, values in parts.items():
            put(column, part, values)
    if request.param != "h5ad":
        return tmp_path / "x.zarr"
    root.close()
    return tmp_path / "x.h5ad"


@pytest.mark.slow(beyond=8)
@pytest.mark.parametrize(
    ("column", "labels"),
    [
        ("numbers", [3, 1, 3, 1]),
        ("categorical", ["Tü", "B", "Tü", "B"]),
        ("numbered", [9, 7, 9, 7]),
        ("nullable", [3, 1, 3, 1]),
    ],
)
def test_columns_are_read(source: Path, column: str, labels: list[Any]) -> None:
    """Each encoding of a column gives its labels."""
    assert read_labels(f"{source}:obs/{column}", 4).tolist() == labels


@pytest.mark.slow(beyond=8)
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("missing", "row 2 .* has no label"),
        ("masked", "row 2 .* has no label"),
        ("beyond", "cannot be read.* has no category, of 2"),
        ("table", r"shape \(4, 2\) is not one label per sample"),
        ("group", r"is a group \(of other\)"),
        ("nope", r"has no array 'obs/nope': .*obs/numbers, .* as .*:NAME"),
    ],
)
def test_unusable_columns_are_refused(source: Path, column: str, message: str) -> None:
    """A missing label is named by row, a wrong column by its name."""
    with pytest.raises(InputError, match=message) as caught:
        read_labels(f"{source}:obs/{column}", 4)
    assert "obs/name," not in str(caught.value)  # the index is no column


def test_a_table_of_records_is_of_an_old_anndata(tmp_path: Path) -> None:
    """The types of all its fields are not listed; the way out is."""
    records = np.array([(1, 2.0), (2, 2.0)], dtype=[("kind", "i4"), ("size", "f8")])
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"], file["obs"] = np.ones((2, 3)), records
    for source in ("x.h5ad", "x.h5ad:obs", "x.h5ad:obs/kind"):
        with pytest.raises(InputError, match=r"old version of AnnData, whose obs is one array: w"):
            read_labels(tmp_path / source, 2)


def test_an_array_that_zarr_does_not_know_is_said_in_words(tmp_path: Path) -> None:
    """Its type, which may be of hundreds of fields, is not."""
    group = zarr.create_group(tmp_path / "x.zarr")
    group.create_array("y", data=np.array([0, 1]))
    path = tmp_path / "x.zarr" / "y" / "zarr.json"
    path.write_text(path.read_text().replace('"int64"', '"quaternion"'))
    with pytest.raises(InputError, match=r"an array of a type that zarr .* does not know") as found:
        read_labels(f"{tmp_path / 'x.zarr'}:y", 2)
    assert "quaternion" not in str(found.value)


def test_a_zarr_vector_holds_labels(tmp_path: Path) -> None:
    """Without AnnData: the array in a folder, or the usual name in a group."""
    group = zarr.create_group(tmp_path / "g.zarr")
    put(group, "y", np.array([2, 5, 2]))
    put(group, "X", np.ones((3, 2)))
    for source in (tmp_path / "g.zarr", tmp_path / "g.zarr" / "y"):
        assert read_labels(source, 3).tolist() == [2, 5, 2]
