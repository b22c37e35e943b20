import numpy as np
import pytest

from dhsk.errors import InputError
from dhsk.samples import open_samples, scan

BAD_CSV = {
    "text column": (
        "a,b b\n1,2\n3,x\n",
        r"'b b' is not numeric, row 1 \(counted from 0\) holds 'x': .*--labels '.*x\.csv:b b'.*"
        r"--id-column 'b b'.*--drop-column 'b b' \(drop_columns=\['b b'\]\)",
    ),
    "empty cell": ("a,b\n1,2\n3,\n", "row 1 .* has no value in column 'b'.*--drop-column b"),
    "NA": ("NA,1\n3,4\n", "row 0 .* has no value in column '0'"),
    "long row": ("a,b\n1,2\n1,2,3\n", "row 1 .* has 3 fields, but the header has 2"),
    "R header": ("a,b\n1,2,3\n1,2,3\n", "row 0 .* has 3 fields, but the header has 2"),
    "short row": ("1,2\n1\n", "row 1 .* has 1 fields, but the first row has 2"),
    "pandas header, index": (
        ",0,1,2\n0,5,6,7\n",
        "column 0 .* has no name.*--drop-column 'Unnamed: 0'",
    ),
    "decimal comma": ("a;b\n1,5;2\n2;3\n", r"row 0 .* holds '1,5' in column 'a', a decimal comma"),
    "decimal commas and text": ("x;1,5\ny;2,5\n", "column '0' is not numeric, row 0 .* 'x'"),
    "decimal commas alone": ("1,5;2,5\n2,5;3,5\n", r"holds '1,5' in column '0', a decimal comma"),
    "pandas index": (",a,b\n0,5,6\n1,7,8\n", "column 0 .* has no name.*--drop-column 'Unnamed: 0'"),
    "only a header": ("a,b\n", "0 samples of 2 features"),
    "empty": ("\n", "it has no rows"),
    "other encoding": ("Säure,b\n1,2\n".encode("latin-1"), r"not UTF-8 text \(byte 0xe4\).*iconv"),
    "not text": (b"\xff\xfe\x00", "cannot be read"),
}


@pytest.mark.parametrize(("content", "message"), BAD_CSV.values(), ids=BAD_CSV)
def test_unusable_tables_are_refused(content, message, tmp_path):
    """Each defect of a table is named by row and column, with the way out."""
    path = tmp_path / "x.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        open_samples(path)


def test_unknown_columns_are_listed(tmp_path):
    """A column to drop that does not exist is answered with those that do."""
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no column 'c': its columns are a, b"):
        open_samples(tmp_path / "x.csv", drop_columns=["c"])
    with pytest.raises(InputError, match="1 samples of 0 features"):
        open_samples(tmp_path / "x.csv", drop_columns=["a", "b"])


def test_a_nameless_index_can_be_dropped(tmp_path):
    """The way out that the message about the pandas index names works."""
    (tmp_path / "x.csv").write_text(",a,b\n0,5,6\n1,7,8\n")
    (block,) = open_samples(tmp_path / "x.csv", drop_columns=["Unnamed: 0"]).blocks(9)
    np.testing.assert_array_equal(block, [[5, 6], [7, 8]])


BAD_SVM = {
    "no colon": ("1 1:2\n1 3\n", "row 1 .* is not 'label index:value ...'"),
    "unsorted": ("1 1:2\n# note\n\n0 1:1\n1 3:1 2:1\n", "row 2 .* with increasing indices"),
    "text": ("1 1:2\n1 1:x\n", "row 1 .*could not convert"),
    "no features": ("1\n0\n", "2 samples of 0 features"),
    "empty": ("", "0 samples of 0 features"),
}


@pytest.mark.parametrize(("content", "message"), BAD_SVM.values(), ids=BAD_SVM)
def test_unusable_svmlight_files_are_refused(content, message, tmp_path):
    """Each defect of an svmlight file is named by row, comments not counted."""
    (tmp_path / "x.svm").write_text(content)
    with pytest.raises(InputError, match=message):
        open_samples(tmp_path / "x.svm")


def test_nan_in_text_is_left_to_the_scan(tmp_path):
    """A written NaN is read as such, and the scan names its place."""
    (tmp_path / "x.csv").write_text("1,2\n3,nan\n")
    with pytest.raises(InputError, match=r"x\.csv: row 1, column 1 .* holds nan"):
        scan(open_samples(tmp_path / "x.csv"), "projective")
