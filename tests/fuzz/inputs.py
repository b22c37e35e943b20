"""Sound files of every format, and what may be wrong with files, samples, labels and options."""

import gzip
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import h5py
import numpy as np
import zarr
from scipy.sparse import csr_array, save_npz

import dhsk

ROWS: Final = 24
DIM: Final = 6

SAMPLES: Final = (
    "x.npy", "x.npz", "csr.npz", "x.csv", "x.tsv", "x.csv.gz", "x.svm", "x.h5ad", "x.zarr",
    "csr.zarr",
)  # fmt: skip
LABELS: Final = ("y.txt", "y.npy", "y.npz", "y.csv:kind", "x.h5ad:obs/kind")
MODELS: Final = ("exact.dhsk", "rank.dhsk")
STORES: Final = ("store", "cosines")


def sound(folder: Path) -> None:
    """Write every kind of input that the commands read: 24 counts of 6 features, two classes."""
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (ROWS, DIM)) + 0.0
    X[np.arange(ROWS), np.arange(ROWS) % DIM] += 1
    X[ROWS // 2 :, :2] += 2
    y = np.repeat(["up", "down"], ROWS // 2)
    np.save(folder / "x.npy", X)
    np.savez(folder / "x.npz", X=X)
    save_npz(folder / "csr.npz", csr_array(X))
    table = "\n".join(",".join(f"{value:g}" for value in row) for row in X)
    text = ",".join(f"f{j}" for j in range(DIM)) + "\n" + table + "\n"
    (folder / "x.csv").write_text(text)
    (folder / "x.tsv").write_text(text.replace(",", "\t"))
    (folder / "x.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    lines = (
        " ".join([str(i % 2), *(f"{j + 1}:{value:g}" for j, value in enumerate(row) if value)])
        for i, row in enumerate(X)
    )
    (folder / "x.svm").write_text("\n".join(lines) + "\n")
    with h5py.File(folder / "x.h5ad", "w") as file:
        file["X"] = X
        file["obs/kind"] = y.astype("S")
        file["obs"].attrs["_index"] = "id"
        file["obs/id"] = np.array([f"s{i}" for i in range(ROWS)], "S")
    zarr.save(str(folder / "x.zarr"), X)
    group = zarr.create_group(str(folder / "csr.zarr"), attributes={
        "encoding-type": "csr_matrix", "shape": [ROWS, DIM]})  # fmt: skip
    for name in ("data", "indices", "indptr"):
        group.create_array(name, data=getattr(csr_array(X), name))
    (folder / "y.txt").write_text("\n".join(y) + "\n")
    np.save(folder / "y.npy", y)
    np.savez(folder / "y.npz", y=y)
    (folder / "y.csv").write_text("kind,n\n" + "\n".join(f"{label},1" for label in y) + "\n")
    exact = dhsk.HeatSVC()
    exact._with_sigmoids = True
    exact.fit(X, y).save(folder / "exact.dhsk")
    dhsk.NystromSVC(4, random_state=0).fit(X, y).save(folder / "rank.dhsk")
    dhsk.compute_gram(X, "heat", store=folder / "store", tile=10)
    dhsk.compute_gram(X, "cosine", store=folder / "cosines", tile=10)


def damage(path: Path, random: Random) -> str:
    """Damage a file, or one of those in a folder; how, in words."""
    if path.is_dir():
        path = random.choice(sorted(p for p in path.rglob("*") if p.is_file()))
    content = bytearray(path.read_bytes())
    # Headers and ends matter most, so that positions are drawn on a logarithmic scale of both.
    place = min(len(content) - 1, int(len(content) ** random.random()) - 1) if content else 0
    place = len(content) - 1 - place if random.random() < 0.3 else place
    kind = random.choice(("flip", "flip", "flip", "flips", "cut", "drop", "double", "noise",
                          "empty", "longer", "gone", "nested"))  # fmt: skip
    match kind:
        case "flip" if content:
            content[place] ^= 1 << random.randrange(8)
        case "flips":
            for _ in range(8 if content else 0):
                content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        case "cut":
            del content[place:]
        case "drop":
            del content[place : place + random.randrange(1, 9)]
        case "double":
            content[place:place] = content[place : place + 20]
        case "noise":
            content[place : place + 16] = random.randbytes(16)
        case "empty":
            content.clear()
        case "longer":
            content += random.randbytes(random.randrange(1, 40))
        case "nested":
            content = bytearray(b"[" * 50_000 + b"]" * 50_000)
    if kind == "gone":
        path.unlink()
    else:
        path.write_bytes(content)
    return f"{kind} {path.name} at {place}"


def _some(random: Random, X: Any, value: float) -> Any:
    X = X.copy()
    for _ in range(random.choice((1, 1, 5, 200))):
        X[random.randrange(ROWS), random.randrange(DIM)] = value
    return X


def _zero_rows(random: Random, X: Any) -> Any:
    X = X.copy()
    X[random.sample(range(ROWS), random.choice((1, 5, ROWS)))] = 0
    return X


ODD_VALUES: Final = (
    np.nan, np.inf, -np.inf, -1.0, -1e-12, 1e308, 1.7e308, 1e200, 1e155, 1e-200, 1e-308, 5e-324,
)  # fmt: skip
ODD_SAMPLES: Final[tuple[Callable[[Random, Any], Any], ...]] = (
    *(lambda r, X, v=v: _some(r, X, v) for v in ODD_VALUES),
    _zero_rows,
    lambda r, X: X * r.choice((1e300, 1e-300, 1e150, -1.0, 0.0)),
    lambda r, X: X.astype(r.choice(("f2", "f4", "i1", "u8", "?", "c16", "U3", "M8[s]"))),
    lambda r, X: X.astype(object),
    lambda r, X: X.reshape(r.choice(((ROWS, 2, 3), (ROWS * DIM,), (1, ROWS * DIM), (2, 3, -1)))),
    lambda r, X: X[: r.choice((0, 1, 2, 3))],
    lambda r, X: X[:, : r.choice((0, 1, 2))],
    lambda r, X: np.ones_like(X),
    lambda r, X: np.repeat(X[:1], ROWS, axis=0),
    lambda r, X: np.eye(ROWS, DIM) + 0.5 * np.eye(ROWS, DIM, -DIM),
    lambda r, X: np.asfortranarray(X),
    lambda r, X: X.T.copy(),
    lambda r, X: csr_array(X),
    lambda r, X: np.float64(3.0),
)
ODD_LABELS: Final[tuple[Callable[[Random, Any], Any], ...]] = (
    lambda r, y: y[: r.choice((0, 1, ROWS - 1))],
    lambda r, y: np.repeat(y, 2),
    lambda r, y: np.full(ROWS, "one"),
    lambda r, y: np.arange(ROWS),
    lambda r, y: np.arange(ROWS) / 7,
    lambda r, y: np.where(np.arange(ROWS) == 3, r.choice((np.nan, np.inf, 1e300, -1.0)), 1.0),
    lambda r, y: np.array([b"\xff\xfe", b"b"] * (ROWS // 2)),
    lambda r, y: np.array(["", "b"] * (ROWS // 2)),
    lambda r, y: np.array(["é\u2028x", "\U0001f600"] * (ROWS // 2)),
    lambda r, y: y.reshape(2, -1),
    lambda r, y: np.array([True, False] * (ROWS // 2)),
    lambda r, y: np.array([1 + 2j, 3] * (ROWS // 2)),
    lambda r, y: np.array([None, "a"] * (ROWS // 2), dtype=object),
    lambda r, y: np.array([2**63, 1] * (ROWS // 2), dtype=np.uint64),
    lambda r, y: np.r_[np.zeros(ROWS - 1), 1.0],
    lambda r, y: np.array(["2026-01-01", "2026-01-02"] * (ROWS // 2), dtype="M8[D]"),
)
NUMBERS: Final = (
    "0", "-1", "nan", "inf", "-inf", "1e308", "1e-308", "1e300", "1e-9", "1e-3", "1e9", "", "abc",
    "99999999999999999999", "1,", "1,,2", "½", "1e400", "0x10", "1_0", " 2 ", "2.5", "3", "1", "50",
    "auto", "1;2", "\u0661", "-0", "5e-324", "0.1,10",
)  # fmt: skip
PLACES: Final = (
    "o", "new/deep/o", "x.npy", "x.npy/o", "", ".", "..", "a b", "ünïcødé", "o:key", "/dev/null",
    "/proc/none", "/proc/1/o", "x" * 300, "/".join(["d" * 100] * 60), "loop", "dangling", "o\0o",
    "o\n", "-o", "y.txt", "store", "cosines", "~", "$HOME", "o.json", "\udcff",
)  # fmt: skip


def odd_samples(random: Random, X: Any) -> Any:
    """Samples of which something may be wrong."""
    with np.errstate(all="ignore"):
        return random.choice(ODD_SAMPLES)(random, X)


def odd_labels(random: Random, y: Any) -> Any:
    """Labels of which something may be wrong."""
    return random.choice(ODD_LABELS)(random, y)
