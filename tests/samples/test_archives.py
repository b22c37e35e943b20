"""Archives of numpy: keys, layouts and damage."""

import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from dhsk.errors import InputError
from dhsk.samples import open_samples, read_labels

X = np.random.default_rng(7).poisson(0.7, (23, 7)).astype(np.float64)


def test_pickled_arrays_are_refused(tmp_path):
    """Files of Python objects are never unpickled, and the message says what to do."""
    objects = np.array([[1, "a"], [2, "b"]], dtype=object)
    np.save(tmp_path / "x.npy", objects)
    np.savez(tmp_path / "x.npz", objects)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(InputError, match=r"never unpickles.*save X\.astype\(float\) instead"):
            open_samples(tmp_path / name)
    np.save(tmp_path / "x.npy", np.array(sp.csr_array(X), dtype=object))
    with pytest.raises(InputError, match=r"one Python object, .*scipy\.sparse\.save_npz"):
        open_samples(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", X.astype(str))
    with pytest.raises(InputError, match=r"dtype <U\d+, .*X\.astype\(float\)"):
        open_samples(tmp_path / "x.npy")


@pytest.mark.parametrize("layout", ["coo", "csc", "bsr", "dia"])
def test_other_sparse_formats_are_named_with_their_conversion(layout, tmp_path):
    """What `scipy.sparse.save_npz` wrote of another format becomes CSR by the line given."""
    path = tmp_path / "x.npz"
    sp.save_npz(path, getattr(sp, f"{layout}_array")(X))
    with pytest.raises(InputError, match=rf"in {layout.upper()} format, .* convert it") as told:
        open_samples(path)
    line = str(told.value).partition("convert it with ")[2]
    assert line == "scipy.sparse.save_npz(FILE, scipy.sparse.load_npz(FILE).tocsr())"
    sp.save_npz(path, sp.load_npz(path).tocsr())
    assert open_samples(path).shape == X.shape


def test_parts_of_a_csr_matrix_without_shape_are_named(tmp_path):
    """Three arrays of a CSR matrix do not say how many columns there are."""
    A = sp.csr_array(X)
    np.savez(tmp_path / "x.npz", data=A.data, indices=A.indices, indptr=A.indptr)
    with pytest.raises(InputError, match="but for 'shape'"):
        open_samples(tmp_path / "x.npz")


def test_keys_of_an_archive_are_listed(tmp_path):
    """An archive of several arrays asks for one of them by name."""
    np.savez(tmp_path / "x.npz", b=X, a=X)
    with pytest.raises(InputError, match=r"which holds samples: .*\(a, b\)"):
        open_samples(tmp_path / "x.npz")
    with pytest.raises(InputError, match=r"has no array 'c': .*\(a, b\)"):
        open_samples(f"{tmp_path / 'x.npz'}:c")


def test_fortran_order_in_an_archive_is_refused(tmp_path):
    """An array stored by columns cannot be streamed by rows, and the message says what to do."""
    np.savez(tmp_path / "x.npz", np.asfortranarray(X))
    with pytest.raises(InputError, match=r"Fortran order.*ascontiguousarray"):
        open_samples(tmp_path / "x.npz")


@pytest.mark.parametrize("rows", [1, 100])
def test_short_arrays_in_an_archive_are_refused(rows, tmp_path):
    """An intact archive whose array holds less than its header announces is an error."""
    np.save(tmp_path / "x.npy", X)
    content = (tmp_path / "x.npy").read_bytes()
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("X.npy", content[:-10])
    with pytest.raises(InputError, match="10 bytes early"):
        list(open_samples(tmp_path / "x.npz").blocks(rows))


def test_truncated_arrays_are_refused_when_opened(tmp_path):
    """Samples and labels that are shorter than their header announces name both sizes."""
    for name, array, read in (
        ("x.npy", X, open_samples),
        ("y.npy", np.arange(23), lambda path: read_labels(path, 23)),
    ):
        path = tmp_path / name
        np.save(path, array)
        content = path.read_bytes()
        path.write_bytes(content[:-10])
        sizes = f"has {len(content) - 10} bytes and its header announces {len(content)}"
        with pytest.raises(InputError, match=sizes):
            read(path)
    with zipfile.ZipFile(tmp_path / "y.npz", "w") as archive:
        archive.writestr("y.npy", content[:-10])
    with pytest.raises(InputError, match=f"y is truncated: it {sizes}"):
        read_labels(tmp_path / "y.npz", 23)
