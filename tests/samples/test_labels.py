import gzip
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dhsk.errors import InputError, InputWarning
from dhsk.samples import check_labels, read_labels
from dhsk.samples.kinds import number_of

WORDS = ["course", "faculty", "course", "staff"]
NUMBERS = [3, -1, 3, 0]
TABLE = "page,class,n\np1,course,3\np2,faculty,-1\np3,course,3\np4,staff,0\n"

WORD_FILES = {
    "y.txt": "course\nfaculty\n course \nstaff\n",
    "y.txt.gz": "course\r\nfaculty\r\ncourse\r\nstaff",
    "q.txt": '"course"\n"faculty"\n"course"\n"staff"\n',
    "y.csv": "course\nfaculty\ncourse\nstaff\n",
    "y.tsv": "class\ncourse\nfaculty\ncourse\nstaff\n",
    "z.csv:class": TABLE,
    "z.data:class": TABLE,
    "z.csv.gz:class": TABLE,
}
NUMBER_FILES = {
    "y.txt": "3\n-1\n3.0\n0\n",
    "y.csv": "3\n-1\n3\n0\n",
    "y.tsv": "class\n3\n-1\n3\n0\n",
    "y.svm": "3 1:1\n-1 2:1\n# note\n3 1:1\n0 1:1\n",
    "z.csv:n": TABLE,
}
CASES = [(name, text, WORDS) for name, text in WORD_FILES.items()] + [
    (name, text, NUMBERS) for name, text in NUMBER_FILES.items()
]


@pytest.mark.parametrize(("name", "text", "expected"), CASES)
def test_text_files_of_labels(name, text, expected, tmp_path, placed):
    """Labels come from lines, from columns with and without header, and from svmlight files."""
    file, _, column = name.partition(":")
    content = text.encode()
    (tmp_path / file).write_bytes(gzip.compress(content) if file.endswith(".gz") else content)
    labels = read_labels(placed(f"{tmp_path / file}{':' * bool(column)}{column}"), 4)
    assert labels.tolist() == expected
    assert labels.dtype == np.int64 if expected is NUMBERS else labels.dtype.kind == "U"


@pytest.mark.parametrize("values", [WORDS, NUMBERS])
def test_numpy_files_of_labels(values, tmp_path, placed):
    """Labels come from arrays, chosen by key or by their usual name."""
    np.save(tmp_path / "y.npy", values)
    np.savez(tmp_path / "a.npz", values)
    np.savez(tmp_path / "b.npz", X=np.eye(4), y=values)
    np.savez(tmp_path / "c.npz", y=np.arange(4), cohort=values)
    for name in ("y.npy", "a.npz", "b.npz", "b.npz:y", "c.npz:cohort"):
        assert read_labels(placed(tmp_path / name), 4).tolist() == values


ARRAYS = {
    "list": (WORDS, WORDS),
    "floats": (np.array(NUMBERS, float), NUMBERS),
    "bools": ([True, False], [1, 0]),
    "unsigned": (np.array([200, 0], np.uint8), [200, 0]),
    "bytes": (np.array(WORDS, "S"), WORDS),
    "objects": (np.array(WORDS, object), WORDS),
    "number objects": (np.array([1, 2.0, np.int8(3)], object), [1, 2, 3]),
    "series": (pd.Series(WORDS), WORDS),
    "one column": (np.array(NUMBERS)[:, None], NUMBERS),
    "frame": (pd.DataFrame({"label": WORDS}), WORDS),
    "categories": (pd.Categorical(WORDS), WORDS),
    "nullable": (pd.array(NUMBERS, dtype="Int64"), NUMBERS),
    "number-like text": (np.array(["01", "1"]), ["01", "1"]),
}


@pytest.mark.parametrize(("given", "expected"), ARRAYS.values(), ids=ARRAYS)
def test_arrays_of_labels(given, expected):
    """Arrays become int64 or str; text stays text, even where it looks like numbers."""
    labels = read_labels(given, len(expected))
    assert labels.tolist() == expected
    assert labels.dtype == np.int64 or labels.dtype.kind == "U"


MISSING = {
    "nan": np.array([1, 0, np.nan]),
    "nan in list": ["a", "b", float("nan")],
    "none": np.array(["a", "b", None], object),
    "pandas": np.array(["a", "b", pd.NA], object),
    "blank": ["a", "b", " "],
}


@pytest.mark.parametrize("y", MISSING.values(), ids=MISSING)
def test_missing_labels_are_named(y):
    """A missing label, however it is spelt, is named by row and never becomes a class."""
    with pytest.raises(InputError, match=r"row 2 \(counted from 0\) has no label"):
        check_labels(y, 3)


BAD = {
    "fraction": ([0.0, 1.0, 0.5], r"row 2 \(counted from 0\) holds 0\.5, .*divide them"),
    "infinity": (np.array([0, np.inf, 1]), "row 1 .* holds inf"),
    "too large": (np.array([0, 1, 2**63], np.uint64), "row 2 .* holds 9223372036854775808"),
    "too large float": ([0.0, 2.0**63, 1], "row 1 .* 64 bits"),
    "mixed": (["a", 1, 2], "int, str are mixed"),
    "complex": (np.array([1j, 0, 1]), "dtype complex128"),
    "matrix": (np.eye(3), r"shape \(3, 3\)"),
    "file": ("a.h5ad:obs/lab", r"'a\.h5ad:obs/lab' is a text, dhsk\.read_labels reads"),
    "wrong length": ([0, 1], "2 labels for 3 samples"),
    "one class": (["a", "a", "a"], "all 3 labels are a, but at least two"),
    "lists": ([["a", "b"]] * 3, "not one label per sample|each is a list, but classes are"),
    "huge": ([1, 10**20, 2], "100000000000000000000 has more than 64 bits: give labels as text"),
}


@pytest.mark.parametrize(("y", "message"), BAD.values(), ids=BAD)
def test_unusable_labels_are_refused(y, message):
    """Labels that make no classification are refused with the numbers."""
    with pytest.raises(InputError, match=message):
        check_labels(y, 3)


BAD_FILES = {
    "blank line": ("y.txt", "a\n\nb\n", r"y\.txt: row 1 .* has no label"),
    "blank line in a column": ("y.csv", "b\nu\n\nu\n", r"y\.csv: row 1 .* has no label"),
    "blank line in one named": ("y.csv:b", "b\nu\n\nu\n", r"y\.csv:b: row 1 .* has no label"),
    "empty cell": ("y.csv:b", "a,b\n1,2\n2,\n3,2\n", "row 1 .* has no label"),
    "NA": ("y.csv:b", "a,b\n1,u\n2,NA\n3,v\n", r"no label \(if NA is a class, call it otherwise"),
    "line to leave it out": ("y.csv:b", "a,b\n1,u\n2,NA\n3,v\n", r"\.dropna\(subset=\['b'\]\)"),
    "NA in numbers": ("y.csv:b", "a,b\n1,1\n2,NA\n3,2\n", "row 1 .* has no label: fill it in"),
    "NA in measurements": ("y.csv:b", "a,b\n1,NA\n2,2\n3,1.5\n", "row 2 .* holds 1.5, but clas"),
    "no column": ("y.csv:c", "a,b\n1,2\n", "no column 'c': its columns are a, b"),
    "which column": ("y.csv", "a,b\n1,2\n", r"has 2 columns: .*y\.csv:NAME \(a, b\)"),
    "short row": ("y.csv:b", "a,b\n1,2\n1\n", "row 1 .* has only 1 fields"),
    "length": ("y.txt", "1\n2\n", "2 labels for 3 samples"),
    "header and too few": ("y.csv", "class\n1\n2\n", "2 labels for 3 samples"),
    "empty file": ("y.csv", "", "0 labels for 3 samples"),
    "unknown": ("y.xyz", "1\n", r"unknown format \(\.xyz\).*\.txt"),
    "useless key": ("y.txt:k", "1\n", "has no parts"),
}


@pytest.mark.parametrize(("name", "text", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_unusable_files_of_labels_are_refused(name, text, message, tmp_path):
    """Each defect of a file of labels is named with file and row."""
    (tmp_path / name.partition(":")[0]).write_text(text)
    with pytest.raises(InputError, match=message):
        read_labels(tmp_path / name, 3)


def test_booleans_are_the_same_labels_in_each_format_of_tables(tmp_path):
    """True and False, as pandas writes them in CSV; predictions have them too."""
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"text": ["a b", "b c", "c d"], "sold": [True, False, True]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_json(tmp_path / "x.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "x.parquet")
    for end in ("csv", "jsonl", "parquet"):
        labels = read_labels(f"{tmp_path / 'x'}.{end}:sold", 3)
        assert labels.tolist() == ["True", "False", "True"]


def test_missing_and_pickled_label_files_are_refused(tmp_path):
    """A missing file and a file of Python objects get their sentences."""
    with pytest.raises(InputError, match=r"there is no file .*y\.txt"):
        read_labels(tmp_path / "y.txt", 3)
    np.savez(tmp_path / "y.npz", np.array(["a", 1, None], object))
    np.save(tmp_path / "y.npy", np.array(["a", 1, None], object))
    for name in ("y.npz", "y.npy"):
        with pytest.raises(InputError, match=r"never unpickles.*y\.astype\(str\)"):
            read_labels(tmp_path / name, 3)


def test_neighbours_beyond_float64_stay_apart(tmp_path):
    """9007199254740992 and ...993 are two classes, although float64 has one number for both."""
    (tmp_path / "y.txt").write_text("9007199254740993\n9007199254740992\n")
    assert len(set(read_labels(tmp_path / "y.txt", 2).tolist())) == 2


def test_counts_given_as_labels_are_told(rng):
    """Thirty different whole numbers are classes, with a warning if some of them are rare."""
    with pytest.warns(
        InputWarning, match=r"the labels: \d+ different whole numbers .* like counts"
    ):
        check_labels(rng.poisson(40, 300), 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_labels(np.arange(260) % 26, 260)
        check_labels(rng.poisson(1, 300), 300)
        check_labels([f"g{k}" for k in rng.poisson(40, 300)], 300)
        check_labels(rng.poisson(40, 300), 300, min_classes=1)


def test_signs_of_unicode_divide_no_lines(tmp_path):
    """A label is a line, as the system knows lines."""
    (tmp_path / "y.txt").write_bytes("a\u2028b\r\nc\r\n".encode())
    assert read_labels(tmp_path / "y.txt", 2).tolist() == ["a\u2028b", "c"]


def test_underscored_labels_stay_apart(tmp_path):
    """1_0 and 10 are two classes, although Python reads both as ten."""
    (tmp_path / "y.txt").write_text("1_0\n10\n")
    assert read_labels(tmp_path / "y.txt", 2).tolist() == ["1_0", "10"]


def test_codes_keep_their_zeros(tmp_path):
    """007 and 7 are two classes, 1E1 and 10 too; 0 and -0.5e1 are numbers as ever."""
    (tmp_path / "y.txt").write_text("007\n10\n7\n")
    assert read_labels(tmp_path / "y.txt", 3).tolist() == ["007", "10", "7"]
    (tmp_path / "w.txt").write_text("1E1\n10\n1e2\n")
    assert read_labels(tmp_path / "w.txt", 3).tolist() == ["1E1", "10", "1e2"]
    (tmp_path / "n.txt").write_text("0\n-0.5e1\n0.0\n10\n")
    assert read_labels(tmp_path / "n.txt", 4).tolist() == [0, -5, 0, 10]


@pytest.mark.parametrize("name", ["NA", "nan", "None", "?"])
def test_names_of_absent_values_are_told(name):
    """They are a class, as before, and the warning counts it; predictions are not warned of."""
    y = ["a", name, "b", name]
    with pytest.warns(
        InputWarning, match="the labels: 2 labels .*, taken for a class of that name"
    ):
        assert check_labels(y, 4).tolist() == y
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_labels(y, 4, min_classes=1)
        check_labels(["none", "banana", "nano"], 3)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["yes", "Yes", "no"], "'Yes' and 'yes' are classes of their own"),
        (["T cell", "T-cell", "t_cell", "B cell"], "'T cell' and 'T-cell' and 't_cell' are"),
        (["A", "a", "yes", "no"], None),
        (["C#", "C++"], None),
        (["v1.5", "v15"], None),
        (["naïve", "naive"], None),
    ],
)
def test_two_spellings_of_a_class_are_told(names: list[str], said: str | None) -> None:
    """Which a filter of warnings can silence, as they may be two; letters and signs are names."""
    with nullcontext() if said is None else pytest.warns(InputWarning, match=said):
        found = check_labels(names * 3, 3 * len(names))
    assert found.tolist() == names * 3


@pytest.mark.parametrize("file", ["y.csv", "y.txt"])
@pytest.mark.parametrize("name", ["label", "Class", "y"])
def test_a_header_is_no_class(tmp_path: Path, name: str, file: str) -> None:
    """A column that lacks a label has as many lines as there are samples, with its header."""
    path = tmp_path / file
    path.write_text("\n".join([name, *"uvuvuvuvu"]))
    if file == "y.csv":
        assert read_labels(path, 9).tolist() == list("uvuvuvuvu")
    with pytest.raises(InputError, match=f"'{name}', seems to be a header, .* 9 labels, not 10"):
        read_labels(path, 10)
    if file == "y.csv":
        assert read_labels(path, 10, header=False).tolist() == [name, *"uvuvuvuvu"]


@pytest.mark.parametrize("file", ["y.csv", "y.txt"])
def test_a_first_line_that_occurs_once_may_be_a_header(tmp_path: Path, file: str) -> None:
    """Where all other classes occur more often, a warning says that a label may be missing."""
    path = tmp_path / file
    path.write_text("species\nu\nv\nv\nu\n\n" if file == "y.csv" else "species\nu\nv\nv\nu\n")
    with pytest.warns(InputWarning, match=r"'species', is taken for a label, .*: if it is a head"):
        assert read_labels(path, 5).tolist() == ["species", *"uvvu"]
    assert len(read_labels(path, 5, header=False)) == 5
    path.write_text("species\nu\nv\nv\n")  # u is rare, too
    assert len(read_labels(path, 4)) == 4


def test_all_absent_labels_are_counted() -> None:
    """With the line of pandas that leaves them out."""
    with pytest.raises(InputError, match=r"row 1 .* no label, nor have 2 others: .*y\.notna"):
        read_labels(np.array(["u", None, "v", None, None], object), 5)


def test_whole_numbers_of_any_length_are_numbers() -> None:
    """JSON has them; beyond float64 they are infinite, which is refused by name."""
    assert number_of(10**400) == np.inf
    assert number_of("1e400") == np.inf


def test_measured_labels_with_decimal_commas_are_refused(tmp_path):
    """Many numbers are no classes, whatever their points are; pairs such as 1,2 are text."""
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a;y", *(f"1;1.{k:03},5" for k in range(40)), "1;7"]))
    with pytest.raises(InputError, match=r"row 0 .* holds 1000\.5, but classes .*dhsk\.SVR"):
        read_labels(f"{path}:y", 41)
    path.write_text("\n".join(["a;y", *["1;1,2", "1;3"] * 20]))
    assert read_labels(f"{path}:y", 40).tolist() == ["1,2", "3"] * 20
