"""Grammars of binary formats: numpy's files, Parquet and Feather, HDF5 and zarr of AnnData."""

import io
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import zarr
from grammar import ANY, REFUSED, Case, damaged, rarely, seldom
from grammar_texts import counted, dense, words
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.lib import format as npy
from scipy.sparse import csr_array, save_npz

from dhsk.samples import read_labels

DTYPES = st.sampled_from(["<f8", "<f4", ">f8", "<i4", "|u1", "|i1", "<u8", "|b1", "<f2", ">i8"])
ODD_DTYPES = st.sampled_from(["<c16", "<U3", "|S2", "<M8[s]", "|V4"])


@st.composite
def arrays(draw: Any, most_axes: int = 2) -> Any:
    """An array, and what it is as samples."""
    dtype = np.dtype(draw(seldom(DTYPES, ODD_DTYPES, 25)))
    axes = draw(seldom(st.just(2), st.integers(0, 4), 8))
    shape = tuple(draw(st.integers(1, 5)) for _ in range(axes))
    if shape and rarely(draw, 40):
        shape = (0, *shape[1:])
    X = np.zeros(shape, dtype)
    if dtype.kind in "biuf":
        X = draw(hnp.arrays(dtype, shape))
    sound = dtype.kind in "biuf" and (2 <= axes <= most_axes) and X.size > 0
    if not sound:
        return X, REFUSED
    return X, X.astype(np.float64).reshape(len(X), -1)


_BAD_HEADERS = [
    ("'|O'", "(2, 2)"), ("'<f8'", "(2, -2)"), ("'<f8'", "(9**9, 9)"), ("[('a', '<f8')]", "(2, 2)"),
    ("'<f8'", "(99999999999, 9)"), ("'<f8'", "2, 2"), ("'<q9'", "(2, 2)"), ("'<f8'", "('2', 2)"),
]  # fmt: skip


@st.composite
def npy_files(draw: Any) -> Case:
    """An array, in either order, of either version of the format."""
    X, answer = draw(arrays(9))
    if draw(st.booleans()):
        X = np.asfortranarray(X)
    file = io.BytesIO()
    npy.write_array(file, X, version=draw(st.sampled_from([(1, 0), (2, 0), (3, 0)])))
    content = file.getvalue()
    how = draw(seldom(st.just(""), st.sampled_from(["cut", "damage", "longer", "header"]), 10))
    if how == "cut":
        content, answer = content[: draw(st.integers(0, len(content) - 1))], REFUSED
        if X.size == 0:
            answer = REFUSED
    elif how == "damage":
        content, answer = damaged(draw, content), ANY
    elif how == "longer":
        content += b"tail"
    elif how == "header":
        descr, shape = draw(st.sampled_from(_BAD_HEADERS))
        word = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode()
        word = draw(
            st.sampled_from([word, word, word, b"{'descr': '<f8', 'shape': (2, 2)}", b"[" * 99])
        )
        word = word.ljust(117) + b"\n"
        content = b"\x93NUMPY\x01\x00" + len(word).to_bytes(2, "little") + word + bytes(64)
        answer = REFUSED
    return Case({"x.npy": content}, "x.npy", answer, dense)


@st.composite
def sparse(draw: Any) -> Any:
    """A CSR matrix in parts, and its values; or parts that contradict each other."""
    n, dim = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    X = draw(hnp.arrays(np.float64, (n, dim), elements=st.sampled_from([0.0, 0.0, 1.0, 2.5, -1.0])))
    matrix = csr_array(X)
    parts = {
        "data": matrix.data, "indices": matrix.indices.copy(), "indptr": matrix.indptr.copy(),
        "shape": np.array([n, dim]),
    }  # fmt: skip
    if draw(st.booleans()):
        parts = {k: v.astype("i8") if k != "data" else v for k, v in parts.items()}
    spoilt = draw(st.integers(0, 60)) - 60 // 2
    if spoilt == 0 and matrix.nnz:
        parts["indices"][draw(st.integers(0, matrix.nnz - 1))] = draw(
            st.sampled_from([-1, dim, 2**30])
        )
    elif spoilt == 1:
        parts["indptr"][-1] += 1
    elif spoilt == 2:
        parts["shape"] = np.array(draw(st.sampled_from([[n], [n, -dim], [n + 1, dim], [0, dim]])))
    elif spoilt == 3:
        parts["indptr"] = parts["indptr"][:-1]
    elif spoilt == 4:
        parts["indices"] = parts["indices"].astype("f8")
    elif spoilt == 5 and n > 1:
        parts["indptr"][1] = -1
    else:
        return parts, X
    return parts, REFUSED


@st.composite
def archives(draw: Any) -> Case:
    """Archives of arrays, or of a sparse matrix."""
    file = io.BytesIO()
    key = ""
    save = draw(st.sampled_from([np.savez, np.savez_compressed]))
    if draw(st.booleans()):
        X, answer = draw(arrays(9))
        name = draw(st.sampled_from(["X", "X", "other"]))
        more = {"y": np.arange(3)} if draw(st.booleans()) else {}
        if name == "other" and more:
            key = ":other"
        if rarely(draw, 20):
            key, answer = ":nope", REFUSED
        save(file, **{name: X}, **more)
    else:
        parts, answer = draw(sparse())
        form = draw(
            seldom(st.just("csr"), st.sampled_from(["csc", "coo", "dia", "bsr", "save"]), 10)
        )
        if form == "save" and isinstance(answer, np.ndarray):
            save_npz(file, csr_array(answer))
        elif form in ("csr", "save"):
            save(file, **parts, **({"format": np.array(b"csr")} if draw(st.booleans()) else {}))
        elif isinstance(answer, np.ndarray):
            save_npz(file, csr_array(answer).asformat(form))
            answer = REFUSED
        else:
            save(file, **parts)
    content = file.getvalue()
    if rarely(draw, 12):
        content, answer = damaged(draw, content), ANY
    return Case({"x.npz": content}, f"x.npz{key}", answer, dense)


COLUMN_NAMES = st.text(st.sampled_from("abcdeé_ .:"), min_size=1, max_size=4)


_TYPES: Any = {pa.float16(): np.float16, pa.bool_(): bool}


@st.composite
def arrow_files(draw: Any) -> Case:
    """Columns of numbers, lists, texts or labels, in Parquet and Feather."""
    n, width = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    what = draw(st.sampled_from(["numbers", "numbers", "lists", "texts", "labels"]))
    key, right = "", True
    columns: list[Any] = []
    names = draw(st.lists(COLUMN_NAMES, min_size=width, max_size=width, unique=True))
    if what == "numbers":
        kinds = [
            pa.float64(),
            pa.float32(),
            pa.int8(),
            pa.int64(),
            pa.uint64(),
            pa.bool_(),
            pa.float16(),
        ]
        values = np.empty((n, width))
        for k in range(width):
            kind = draw(st.sampled_from(kinds))
            column = draw(
                st.lists(st.integers(0, 1 if kind == pa.bool_() else 100), min_size=n, max_size=n)
            )
            values[:, k] = column
            made: list[Any] = [_TYPES.get(kind, int)(v) for v in column]
            if rarely(draw, 40):
                made[row := draw(st.integers(0, n - 1))] = None
                values[row, k] = np.nan
            columns.append(pa.array(made, kind))
        spoilt = draw(st.integers(0, 40)) - 40 // 2
        if spoilt == 0 and width > 1:
            names[1], right = names[0], False
        elif spoilt == 1:
            odd = [pa.array(["a"] * n), pa.array([b"a"] * n), pa.nulls(n), pa.array([{"a": 1}] * n),
                   pa.array([0] * n, pa.timestamp("s")), pa.array([[1]] * n)]  # fmt: skip
            columns[0], right = draw(st.sampled_from(odd)), False
        elif spoilt == 2 and columns[0].null_count == 0:
            columns[0] = columns[0].dictionary_encode()
        answer, read = values, dense
    elif what == "lists":
        dim = draw(st.integers(1, 3))
        rows: list[Any] = [[float(k * dim + j) for j in range(dim)] for k in range(n)]
        values = np.array(rows)
        spoilt = draw(st.integers(0, 20)) - 20 // 2
        if 0 <= spoilt < 3 and n > 1:
            rows[-1], right = [None, rows[-1][1:], [None] * dim][spoilt], spoilt == 2
            values[-1] = np.nan
        columns = [pa.array(rows, pa.list_(draw(st.sampled_from([pa.float64(), pa.float32()]))))]
        names, key, answer, read = ["v"], ":v", values, dense
    elif what == "texts":
        texts: list[Any] = draw(
            st.lists(
                st.sampled_from(["red rose", "wine wine", "x", "é\u2028ab"]), min_size=n, max_size=n
            )
        )
        answer = words(texts)
        right = any(answer)
        if rarely(draw, 20):
            texts, right = [*texts[:-1], None], False
        kind = draw(st.sampled_from([pa.string(), pa.large_string()]))
        columns, names, key, read = [pa.array(texts, kind)], ["text"], ":text", counted
    else:
        given = (
            [["a", "b"][k % 2] for k in range(n)]
            if draw(st.booleans())
            else [k % 3 for k in range(n)]
        )
        answer, right = list(given), len(set(given)) > 1
        made = [*given]
        if rarely(draw, 20):
            made[-1], right = None, False
        column = pa.array(made)
        columns = [column.dictionary_encode() if draw(st.booleans()) else column]
        names, key = ["y"], ":y"
        read = lambda source: read_labels(source, n).tolist()  # noqa: E731
    table = pa.table(columns, names=names)
    file = io.BytesIO()
    name = draw(st.sampled_from(["t.parquet", "t.feather"]))
    if name == "t.parquet":
        parquet.write_table(table, file, row_group_size=draw(st.integers(1, 4)))
    else:
        feather.write_feather(
            table,
            file,
            chunksize=draw(st.integers(1, 4)),
            compression=draw(st.sampled_from(["uncompressed", "lz4"])),
        )
    final: Any = answer if right else REFUSED
    content = file.getvalue()
    if rarely(draw, 12):
        content, final = damaged(draw, content), ANY
    return Case({name: content}, f"{name}{key}", final, read)


_STRINGS: Any = np.dtypes.StringDType()


def _put_sparse(group: Any, parts: Any, encoding: str) -> None:
    group.attrs["encoding-type"] = encoding
    group.attrs["shape"] = parts["shape"].tolist()
    for part in ("data", "indices", "indptr"):
        if isinstance(group, h5py.Group):
            group[part] = parts[part]
        else:
            group.create_array(part, data=parts[part])


def _put(group: Any, name: str, values: Any, chunks: Any = None) -> None:
    if isinstance(group, h5py.Group):
        group.create_dataset(name, data=values, chunks=chunks)
    else:
        group.create_array(name, data=values, chunks=chunks or "auto")


@st.composite
def _annotated(draw: Any, make: Any) -> Case:
    """A file of AnnData: X, or a layer; or labels of its table of samples."""
    what = draw(st.sampled_from(["dense", "sparse", "labels"]))
    place = draw(st.sampled_from(["X", "X", "layers/counts", "raw/X"]))
    key = "" if place == "X" and draw(st.booleans()) else f":{place}"
    read: Any = dense
    X: Any = None
    parts: Any = None
    encoding = draw(seldom(st.just("csr_matrix"), st.sampled_from(["csc_matrix", "other"]), 12))
    chunks = None
    if what == "sparse":
        parts, answer = draw(sparse())
        answer = answer if encoding == "csr_matrix" else REFUSED
    else:
        X, answer = draw(arrays())
        if X.dtype.kind in "MVU" or (X.dtype.kind == "S"):
            X, answer = np.zeros((2, 2), complex), REFUSED
        if X.ndim == 0 and make is _zarr:
            X = np.zeros(3)
        if X.size and X.ndim == 2 and draw(st.booleans()):
            chunks = tuple(draw(st.integers(1, size)) for size in X.shape)
    column: Any = {}
    if what == "labels":
        n = draw(st.integers(2, 6))
        codes = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)), "i1")
        form = draw(
            st.sampled_from(
                ["categorical", "numbers", "nullable", "missing", "beyond", "masked", "wide"]
            )
        )
        match form:
            case "categorical" | "missing" | "beyond":
                column = {
                    "codes": codes.copy(),
                    "categories": np.array(["é", "b"], object),
                }
                answer = [["é", "b"][c] for c in codes]
                if form != "categorical":
                    column["codes"][0], answer = (-1 if form == "missing" else 2), REFUSED
            case "numbers":
                column, answer = {"": codes.astype("f8")}, codes.tolist()
            case "nullable" | "masked":
                mask = np.zeros(n, bool)
                mask[0] = form == "masked"
                column, answer = {"values": codes, "mask": mask}, codes.tolist()
                answer = REFUSED if form == "masked" else answer
            case _:
                column, answer = {"": np.zeros((n, 2))}, REFUSED
        if answer is not REFUSED and len(set(answer)) < 2:
            answer = REFUSED
        key, read = ":obs/kind", lambda source: read_labels(source, n).tolist()

    def fill(root: Any) -> None:
        if X is not None:
            _put(root, place, X, chunks)
        if parts is not None:
            _put_sparse(root.create_group(place), parts, encoding)
        if column:
            obs = root.create_group("obs")
            obs.attrs["_index"] = "id"
            _put(obs, "id", np.arange(len(codes)))
            for part, values in column.items():
                where = (
                    obs
                    if not part
                    else (obs["kind"] if "kind" in obs else obs.create_group("kind"))
                )
                kind = h5py.string_dtype() if isinstance(root, h5py.Group) else _STRINGS
                made = values.astype(kind) if values.dtype.hasobject else values
                _put(where, part or "kind", made)

    hurt = rarely(draw, 12)
    random = draw(st.randoms(use_true_random=False))
    name = make(fill, hurt, random)
    return Case(name[1], f"{name[0]}{key}", ANY if hurt else answer, read)


def _hurt(path: Path, random: Any) -> None:
    content = bytearray(path.read_bytes())
    at = random.randrange(max(len(content), 1))
    kind = random.choice(["cut", "flip", "zero", "drop", "insert"])
    match kind:
        case "cut":
            del content[at:]
        case "flip" if content:
            content[at] ^= 1 << random.randrange(8)
        case "zero":
            content[at : at + 8] = bytes(len(content[at : at + 8]))
        case "drop":
            del content[at : at + 4]
        case "insert":
            content[at:at] = random.randbytes(5)
    path.write_bytes(content)


def _h5ad(fill: Any, hurt: bool, random: Any) -> Any:
    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            fill(file)
        if hurt:
            _hurt(path, random)

    return "a.h5ad", {"a.h5ad": write}


def _zarr(fill: Any, hurt: bool, random: Any) -> Any:
    version = random.choice([2, 3])

    def write(path: Path) -> None:
        fill(zarr.open_group(str(path), mode="w", zarr_format=version))
        if hurt:
            _hurt(random.choice(sorted(p for p in path.rglob("*") if p.is_file())), random)

    return "a.zarr", {"a.zarr": write}


def h5ad_files() -> Any:
    """Files of AnnData in HDF5."""
    return _annotated(_h5ad)


def zarr_folders() -> Any:
    """Folders of AnnData in zarr, of formats 2 and 3."""
    return _annotated(_zarr)
