"""Matrix Market files as samples, against scipy's own reader."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import mmread, mmwrite
from scipy.sparse import coo_array, csr_array, vstack

import dhsk
from dhsk.errors import InputError
from dhsk.samples import market, spill

N, DIM = 53, 17


@pytest.fixture
def counts(rng: np.random.Generator) -> Any:
    """Sparse counts with an empty row and an empty column."""
    X = rng.poisson(0.4, (N, DIM)).astype(float)
    X[5], X[:, 3] = 0, 0
    return csr_array(X)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: Any) -> None:
    """Many parts of few lines."""
    monkeypatch.setattr(market, "_TEXT_BYTES", 100)
    monkeypatch.setattr(spill, "PART", 11)


def read(source: Any) -> Any:
    """All samples, in blocks of seven."""
    samples = dhsk.open_samples(source)
    X = vstack(list(samples.blocks(7)))
    np.testing.assert_array_equal(samples.shape, X.shape)
    assert samples.is_sparse
    assert samples.nnz == samples.indptr[-1] == X.nnz
    return X.toarray()


def write_10x(folder: Path, X: Any, prefix: str = "", old: bool = False) -> Path:
    """Genes by cells and the names, as Cell Ranger writes them: compressed from version 3 on."""
    folder.mkdir(exist_ok=True)
    end, genes = ("", "genes.tsv") if old else (".gz", "features.tsv.gz")
    pack = bytes if old else gzip.compress
    mmwrite(folder / "plain.mtx", X.T.tocsc().astype(int))
    matrix = folder / f"{prefix}matrix.mtx{end}"
    matrix.write_bytes(pack((folder / "plain.mtx").read_bytes()))
    (folder / "plain.mtx").unlink()
    cells = "".join(f"CELL{n}-1\n" for n in range(X.shape[0]))
    (folder / f"{prefix}barcodes.tsv{end}").write_bytes(pack(cells.encode()))
    lines = "".join(f"ENSG{n}\tGENE{n}\tGene Expression\n" for n in range(X.shape[1]))
    (folder / f"{prefix}{genes}").write_bytes(pack(lines.encode()))
    return matrix


ORDERS = {
    "by samples": lambda X: X.tocoo(),
    "by features": lambda X: X.tocsc().tocoo(),
    "any": lambda X: coo_array(
        (lambda c, order: (c.data[order], (c.row[order], c.col[order])))(
            X.tocoo(), np.random.default_rng(1).permutation(X.nnz)
        ),
        shape=X.shape,
    ),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("end", [".mtx", ".mtx.gz"])
def test_a_matrix_is_read_as_by_scipy(order: str, end: str, counts: Any, tmp_path: Path) -> None:
    """Whatever the order of its entries, compressed or not; rows are the samples."""
    mmwrite(tmp_path / "x.mtx", ORDERS[order](counts), comment="two\nlines")
    expected = mmread(tmp_path / "x.mtx", spmatrix=False).toarray()
    if end == ".mtx.gz":
        (tmp_path / f"x{end}").write_bytes(gzip.compress((tmp_path / "x.mtx").read_bytes()))
    np.testing.assert_array_equal(read(tmp_path / f"x{end}"), expected)
    np.testing.assert_array_equal(expected, counts.toarray())


@pytest.mark.parametrize("kind", ["real", "integer", "pattern"])
def test_all_types_of_values_are_read(kind: str, counts: Any, tmp_path: Path) -> None:
    """Fractions to the last bit; a pattern has ones."""
    X = counts * (1 / 3 if kind == "real" else 1)
    mmwrite(tmp_path / "x.mtx", X, field=kind, precision=17)
    expected = (X > 0).astype(float) if kind == "pattern" else X
    np.testing.assert_array_equal(read(tmp_path / "x.mtx"), expected.toarray())


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("prefix", ["", "GSM1_"])
@pytest.mark.parametrize("given", ["file", "folder"])
def test_cells_of_10x_are_samples(
    old: bool, prefix: str, given: str, counts: Any, tmp_path: Path
) -> None:
    """Genes by cells are turned; barcodes are the ids, the genes' ids the names of the features."""
    matrix = write_10x(tmp_path / "filtered", counts, prefix, old)
    source = matrix.parent if given == "folder" else matrix
    if given == "folder" and prefix:
        with pytest.raises(InputError, match="is a folder"):
            dhsk.open_samples(source)
        return
    samples = dhsk.open_samples(source)
    np.testing.assert_array_equal(read(source), counts.toarray())
    assert samples.feature_names == tuple(f"ENSG{n}" for n in range(DIM))
    ids = samples.ids(20)
    assert ids is not None
    assert [name for part in ids for name in part] == [f"CELL{n}-1" for n in range(N)]


def test_a_matrix_of_samples_by_features_is_not_turned(counts: Any, tmp_path: Path) -> None:
    """The numbers of names decide; names of one side do too."""
    write_10x(tmp_path, counts)
    mmwrite(tmp_path / "matrix.mtx", counts)
    (tmp_path / "matrix.mtx.gz").unlink()
    np.testing.assert_array_equal(read(tmp_path / "matrix.mtx"), counts.toarray())
    (tmp_path / "features.tsv.gz").unlink()
    assert dhsk.open_samples(tmp_path / "matrix.mtx").feature_names is None
    np.testing.assert_array_equal(read(tmp_path), counts.toarray())


def test_repeated_entries_are_added(tmp_path: Path) -> None:
    """As scipy does when it makes an array."""
    text = "%%MatrixMarket matrix coordinate integer general\n2 3 4\n1 2 5\n2 1 1\n1 2 2\n2 3 0\n"
    (tmp_path / "x.mtx").write_text(text)
    (block,) = dhsk.open_samples(tmp_path / "x.mtx").blocks(5)
    np.testing.assert_array_equal(
        block.toarray(), mmread(tmp_path / "x.mtx", spmatrix=False).toarray()
    )
    assert block.nnz == 2


HEAD = "%%MatrixMarket matrix coordinate integer general\n"
SENTENCES = {
    "no matrix": ("1 2 3\n", "does not begin with '%%MatrixMarket matrix': write it with"),
    "dense": ("%%MatrixMarket matrix array real general\n1 1\n5\n", r"dense matrix .*np\.save"),
    "symmetric": (HEAD.replace("general", "symmetric"), "is a symmetric matrix .*symmetry='gen"),
    "complex": (HEAD.replace("integer", "complex"), "matrix of complex numbers"),
    "no shape": (HEAD + "% a comment\n1 x\n", "line 3 is not 'rows columns entries'"),
    "short": (HEAD + "2 2 3\n1 1 5\n", "has 1 entries and its header announces 3: is it complete"),
    "long": (HEAD + "2 2 1\n1 1 5\n2 2 5\n", "has 2 entries and its header announces 1"),
    "outside": (HEAD + "2 2 2\n1 1 5\n3 1 5\n", r"is it complete\? \(line 4: Row index out of"),
    "no number": (HEAD + "2 2 1\n1 1 x\n", r"line 3 is '1 1 x', but an entry is 'row column"),
    "four numbers": (HEAD + "2 2 2\n1 1 5\n2 2 5 7\n", r"line 4 is '2 2 5 7', but an entry is"),
    "a fraction": (HEAD + "2 2 1\n1 1 2.5\n", r"line 3 is '1 1 2.5', but .* of a whole number"),
    "not a number": (HEAD.replace("integer", "real") + "2 2 1\n1 1 1_0\n", r"line 3 is '1 1 1_0'"),
    "unknown": (HEAD.replace("integer", "quaternion"), "matrix of quaternion numbers"),
    "vast": (HEAD + "99999999999 2 1\n1 1 5\n", "none may be above 2,147,483,647"),
    "empty": (HEAD + "0 2 0\n", "is empty: it has 0 samples"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_what_is_wrong_with_a_matrix_is_said(case: str, tmp_path: Path) -> None:
    """One sentence with the way out."""
    text, sentence = SENTENCES[case]
    (tmp_path / "x.mtx").write_text(text)
    with pytest.raises(InputError, match=sentence):
        dhsk.open_samples(tmp_path / "x.mtx")


def test_names_of_another_matrix_are_refused(counts: Any, tmp_path: Path) -> None:
    """Both numbers are said."""
    matrix = write_10x(tmp_path, counts, old=True)
    (tmp_path / "barcodes.tsv").write_text("A\nB\n")
    with pytest.raises(InputError, match=r"is 17 x 53, but .* name 2 samples .* and 17 features"):
        dhsk.open_samples(matrix)


@pytest.mark.slow
def test_10x_to_a_model(counts: Any, tmp_path: Path) -> None:
    """Named features meet those of a table in another order."""
    folder = tmp_path / "cells"
    counts = csr_array(counts.toarray() + 1)
    write_10x(folder, counts)
    labels = np.repeat(["a", "b"], [26, 27])
    svc = dhsk.HeatSVC().fit_samples(folder, labels)
    names = [f"ENSG{n}" for n in reversed(range(DIM))]
    table = [",".join(names), *(",".join(map(str, row[::-1])) for row in counts.toarray())]
    (tmp_path / "t.csv").write_text("\n".join(table))
    svc.save(tmp_path / "m")
    from dhsk.__main__ import main

    for source in (folder, tmp_path / "t.csv"):
        with pytest.raises(SystemExit) as ended:
            main(["predict", str(tmp_path / "m"), str(source), "--out", str(tmp_path / "p.csv")])
        assert ended.value.code == 0
        rows = (tmp_path / "p.csv").read_text().splitlines()[1:]
        if source == folder:
            first = [row.split(",") for row in rows]
            assert [row[0] for row in first[:2]] == ["CELL0-1", "CELL1-1"]
        else:
            assert rows == [row[1] for row in first]
