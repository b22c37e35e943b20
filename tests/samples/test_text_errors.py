import os
import pathlib
import re

import numpy as np
import pandas as pd
import pytest

from dhsk.errors import InputError, InputWarning
from dhsk.samples import open_samples, read_labels, scan
from dhsk.samples.paths import Origin
from dhsk.samples.readers import describe

BAD_CSV = {
    "text column": (
        "a,b b\n1,2\n3,x\n",
        r"'b b' is not numeric, row 1 \(counted from 0\) holds 'x': .*--labels '.*x\.csv:b b'.*"
        r"--id-column 'b b'.*--drop-column 'b b' \(drop_columns=\['b b'\]\)",
    ),
    "long row": ("a,b\n1,2\n1,2,3\n", "row 1 .* has 3 fields, but the header has 2"),
    "R header": ("a,b\n1,2,3\n1,2,3\n", "row 0 .* has 3 fields, but the header has 2"),
    "short row": ("1,2\n1\n", "row 1 .* has 1 fields, but the first row has 2"),
    "commas and points": (
        "a;b\n1,5;2.5\n2;3\n",
        r"row 0 .* holds '1,5' in column 'a', a decimal comma: .*sep=';', decimal=','\)",
    ),
    "commas of thousands, perhaps": ("a;b\n1,523;2\n2,500;3\n", "'1,523' in column 'a'"),
    "decimal commas and text": ("x;1,5\ny;2,5\n", "column '0' is not numeric, row 0 .* 'x'"),
    "two words a line": ("species\nIris setosa\nIris alba\n", "'species' is not numeric"),
    "a name twice, one of them text": ("a,b,b\n1,2,x\n", "column 'b' is not numeric"),
    "digits beyond Python's limit": (f"{'9' * 5000},1,2,3,4\nx,1,2,3,4\n", "is not numeric"),
    "thousands": ('a,b\n"1,923",2\n', r"'1,923' in column 'a', with separators.*thousands=','\)"),
    "millions": (
        'a;b\n"1,234,567.5";2\n',
        r"'1,234,567\.5' in column 'a', with separators.*sep=';', thousands=','\)",
    ),
    "a quoted decimal comma": ('a,b\n"1,5",2\n', r"'1,5' in column 'a', a decimal comma"),
    "several columns": (
        "n,day,sex,mass\n1,2020-01-01,F,\n2,2020-01-02,M,5\n3,x,F,7\n",
        r"has 2 columns that are not numeric .*: 'day' \(row 0 holds '2020-01-01'\), 'sex' .*"
        r": .*get_dummies.*dates as numbers; .*--drop-column day --drop-column sex",
    ),
    "a word for what is missing": (
        "a,b\n1,2\n3,unknown\n4,5\n6,7\n",
        r"row 1 .* 'unknown': if it stands for what is missing, leave it empty, as "
        r"pandas\.read_csv\(.*na_values=\['unknown'\]\)\.to_csv does; ",
    ),
    "a unit": (
        "a,b\n1,2\n3,4 mm\n4,5\n6,7\n",
        r"row 1 .* holds '4 mm': write its numbers alone, without units and signs; if it holds",
    ),
    "percents": ("a,b\n1,2%\n3,4.5%\n", "row 0 .* holds '2%': write its numbers alone, without"),
    "words and a unit": (
        "a,b,c\n1,n.d.,x\n<0.5,2,y\n4,5,x\n6,7,y\n",
        "write numbers alone in 'a', 'b', without units and signs, and leave cells empty that have",
    ),
    "a unit above a short row": ("a,b\n1,2 mm\n3\n", "row 0 .* holds '2 mm': write"),
    "underscores": ("a,b\n1,2\n3,1_0\n", "column 'b' is not numeric, row 1 .* holds '1_0'"),
    "only a header": ("a,b\n", "0 samples of 2 features"),
    "empty": ("\n", "it has no rows"),
    "other encoding": ("Säure,b\n1,2\n".encode("latin-1"), r"not UTF-8 text \(byte 0xe4\).*cp1252"),
    "not text": (b"\xff\xfe\x00", "cannot be read"),
}


TEN = [f"s{k},{'uv'[k % 2]},{k % 3}" for k in range(10)]

BAD_CSV |= {
    "names": (
        "\n".join(["who,b", *[f"s{k},{k % 3}" for k in range(10)]]),
        r"holds 's0': it seems to name the samples, so give --id-column who; if it holds the .*",
    ),
    "names and labels": (
        "\n".join(["who,kind,b", *TEN]),
        r": name the samples by --id-column who, name that of the labels with "
        r"--labels .*x\.csv:NAME; .*leave them out with --drop-column kind \(drop_columns",
    ),
}


@pytest.mark.parametrize(("content", "message"), BAD_CSV.values(), ids=BAD_CSV)
def test_unusable_tables_are_refused(content, message, tmp_path):
    """Each defect of a table is named by row and column, with the way out."""
    path = tmp_path / "x.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        open_samples(path)


def test_the_line_for_another_encoding_runs_from_any_folder(tmp_path, monkeypatch):
    """It names the file as it was given."""
    path = tmp_path / "below" / "x.csv"
    path.parent.mkdir()
    path.write_bytes("Säure,b\n1,2\n".encode("cp1252"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="in Excel as the type CSV UTF-8, or as ") as refused:
        open_samples("below/x.csv")
    line = str(refused.value).partition("or as ")[2].partition(" does in Python")[0]
    eval(line.replace("ENCODING", "'cp1252'"), {"pathlib": pathlib})
    assert open_samples("x_utf8.csv").feature_names == ("Säure", "b")


def test_many_columns_of_text_are_one_short_sentence(tmp_path):
    """The first five are described, and options printed as long as they can be read."""
    path = tmp_path / "x.csv"
    for count, said in [(20, "--drop-column t19 (drop_columns=['t0', "), (21, "NAME for each")]:
        head, row = ",".join(f"t{k}" for k in range(count)), ",".join("x" * count)
        path.write_text(f"{head}\n{row}\n{row}\n")
        with pytest.raises(
            InputError, match=rf"'t4' \(row 0 holds 'x'\) and {count - 5} more"
        ) as told:
            open_samples(path)
        assert said in str(told.value)
        assert "'t5' (" not in str(told.value)


def test_true_and_false_are_one_and_zero(tmp_path):
    """As in other files, in any case; labels stay text."""
    path = tmp_path / "x.csv"
    path.write_text("a,b,y_y\n1,True,False\n2, FALSE,False\n3,true ,True\n")
    (block,) = open_samples(path, drop_columns=["y_y"]).blocks(9)
    np.testing.assert_array_equal(block, [[1, 1], [2, 0], [3, 1]])
    assert read_labels(f"{path}:y_y", 3).tolist() == ["False", "False", "True"]


def test_unknown_columns_are_listed(tmp_path):
    """A column to drop that does not exist is answered with those that do."""
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no column 'c': its columns are a, b"):
        open_samples(tmp_path / "x.csv", drop_columns=["c"])
    with pytest.raises(InputError, match="1 samples of 0 features"):
        open_samples(tmp_path / "x.csv", drop_columns=["a", "b"])


NAMED_ROWS = {
    "pandas index": ",a,b\n0,5,6\n1,7,8\n",
    "R's row.names": '"","a","b"\n"Mazda RX4",5,6\n"Datsun 710",7,8\n',
    "R's write.csv2": '"";"a";"b"\n"1";5;6\n"5";7;8\n',
}


@pytest.mark.parametrize("text", NAMED_ROWS.values(), ids=NAMED_ROWS)
@pytest.mark.parametrize("named", [True, False])
def test_a_nameless_index_names_the_samples(text, named, tmp_path):
    """Unasked, and by the name that it has in pandas; labels beside it need no name."""
    (tmp_path / "x.csv").write_text(text)
    options = {"id_column": "Unnamed: 0"} if named else {}
    samples = open_samples(tmp_path / "x.csv", **options)
    (block,) = samples.blocks(9)
    np.testing.assert_array_equal(block, [[5, 6], [7, 8]])
    expected = [line.replace(";", ",").split(",")[0].strip('"') for line in text.splitlines()[1:]]
    assert list(samples.ids(9)) == [expected]
    (tmp_path / "y.csv").write_text(",kind\n0,up\n1,down\n")
    assert read_labels(tmp_path / "y.csv", 2).tolist() == ["up", "down"]


@pytest.mark.parametrize(
    "text", ["a,,b\n5,0,6\n7,1,8\n", ",a,b\n5,0,6\n5,1,8\n", ",a,b\n0.5,0,6\n1.5,1,8\n"]
)
def test_a_column_without_a_name_is_a_feature(text, tmp_path):
    """A taxon that no lineage names is counted like all others, wherever it stands."""
    (tmp_path / "x.csv").write_text(text)
    samples = open_samples(tmp_path / "x.csv")
    assert samples.shape == (2, 3)
    assert sum(name.startswith("Unnamed: ") for name in samples.feature_names) == 1


def test_digits_beyond_the_limit_of_python_are_a_number(tmp_path):
    """A whole number of 5,000 digits is neither a header nor an error of Python."""
    (tmp_path / "x.csv").write_text(f"{'9' * 5000},1,2,3\n1,2,3,4\n")
    (block,) = open_samples(tmp_path / "x.csv", header=None).blocks(9)
    assert block.shape == (2, 4)
    assert np.isinf(block[0, 0])  # which the scan refuses by name


def test_a_name_of_two_columns_does_not_tell_which(tmp_path):
    """Labels, ids and columns to drop are not taken from the first of several columns."""
    (tmp_path / "x.csv").write_text("a,b,b\n1,2,0\n1,2,1\n")
    with pytest.raises(InputError, match="2 columns called 'b': rename all but one"):
        open_samples(tmp_path / "x.csv", drop_columns=["b"])
    with pytest.raises(InputError, match="2 columns called 'b'"):
        read_labels(f"{tmp_path / 'x.csv'}:b", 2)


def test_features_of_one_name_are_warned_of(tmp_path):
    """With their places; copies that are left out, or renamed, are told no more."""
    (tmp_path / "x.csv").write_text("a,b,a,b,c\n1,2,0,4,5\n1,2,1,4,6\n")
    with pytest.warns(
        InputWarning, match=r"'a' \(columns 0 and 2\), 'b' \(columns 1 and 3\): rename"
    ):
        assert open_samples(tmp_path / "x.csv").shape == (2, 5)
    pd.read_csv(tmp_path / "x.csv").to_csv(tmp_path / "x.csv", index=False)  # as the message says
    assert open_samples(tmp_path / "x.csv").shape == (2, 5)


def test_what_is_no_file_is_no_text(tmp_path):
    """A pipe and a dangling link in a folder of texts are named, and not left out untold."""
    (tmp_path / "a.txt").write_text("a red rose")
    os.mkfifo(tmp_path / "b.txt")
    with pytest.raises(InputError, match=r"b\.txt is a pipe, but each text is a file"):
        open_samples(tmp_path)
    with pytest.raises(InputError, match=r"b\.txt is a pipe, but samples are read several"):
        open_samples(tmp_path / "b.txt")
    (tmp_path / "b.txt").unlink()
    (tmp_path / "b.txt").symlink_to("nowhere")
    with pytest.raises(InputError, match="is a link to a file that does not exist"):
        open_samples(tmp_path)


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


def _of_three(ends):
    rows = (f"{k},{k % 5},{k % 7},{end}" for k, end in enumerate(ends))
    return "\n".join(["a,b,c,label", *rows]) + "\n"


UNCLOSED = {
    "one near the end": [*["cat", "dog", "emu"] * 5, '"cat', *["dog", "emu"] * 4],
    "two in the middle": [*["cat"] * 30, '"dog', "dog", '"emu', *["emu"] * 30],
    "an inch": ["cat"] * 8 + ['5" pipe', '"5"" pipe"', '"a\nb"', '"cat', "emu"],
}


@pytest.mark.parametrize(
    ("ends", "line"), [*zip(UNCLOSED.values(), (17, 32, 14), strict=True)], ids=UNCLOSED
)
def test_a_quotation_mark_that_is_not_closed_swallows_no_rows(ends, line, tmp_path):
    """Marks within a field, doubled ones and line ends in quotes are none of these."""
    path = tmp_path / "x.csv"
    path.write_text(_of_three(ends))
    told = rf"x\.csv has a quotation mark in line {line} that is not closed"
    with pytest.raises(InputError, match=told):
        open_samples(path, drop_columns=["label"])
    with pytest.raises(InputError, match=told):
        read_labels(f"{path}:label", len(ends))


def test_quotation_marks_within_fields_are_read(tmp_path):
    """As Python's csv and pandas write and read them."""
    path = tmp_path / "x.csv"
    path.write_text(_of_three(['5" pipe', '"5"" pipe"', '"a\nb"', "emu"]))
    assert open_samples(path, drop_columns=["label"]).shape == (4, 3)
    assert read_labels(f"{path}:label", 4).tolist() == ['5" pipe', '5" pipe', "a\nb", "emu"]


@pytest.mark.parametrize("title", ["Found in 2023;;;", "Found in 2023;;;\n;;;", "Found in 2023"])
def test_a_title_above_the_header_is_refused(tmp_path: pathlib.Path, title: str) -> None:
    """As of Excel: its cells would be the names, and the header a row of words."""
    (tmp_path / "x.csv").write_text(f"{title}\nplot;a;b;c\nx;1,5;2;3\ny;1;2;3\n")
    told = r"x\.csv has a title, 'Found in 2023', above the header, which seems to be plot, a, b, c"
    with pytest.raises(InputError, match=told):
        open_samples(tmp_path / "x.csv")


@pytest.mark.parametrize(
    "text",
    [
        ";value;other\nx;1;2\ny;2;3\n",  # ids without a name
        "name;;\nx;yes;no\ny;no;yes\n",  # words alone
        "id;;\n1;2;3\n2;3;4\n",  # names that are missing
        'text\n"Hello, you, there"\n"a ""b"", c, d"\n',  # a column of texts
        "a,b,c\nx,y,z\n1,2,3\n",
    ],
)
def test_other_first_rows_are_no_titles(tmp_path: pathlib.Path, text: str) -> None:
    """They are read as before, or refused for another reason."""
    (tmp_path / "x.csv").write_text(text)
    said = ""
    try:
        open_samples(tmp_path / "x.csv")
    except InputError as error:
        said = str(error)
    assert "title" not in said


@pytest.fixture
def classes(tmp_path):
    """Texts of two classes, of which b has files without an extension, too."""
    for name, numbers, end in (
        ("a", range(20), ".txt"),
        ("b", range(5), ".txt"),
        ("b", range(5, 20), ""),
    ):
        (tmp_path / name).mkdir(exist_ok=True)
        for k in numbers:
            (tmp_path / name / f"{k}{end}").write_text(f"a red rose {k}")
    return tmp_path


def rename_as_told(message):
    """Run the line of Python that a message has."""
    line = re.search(r"in Python (import pathlib; \[.*\])", message)[1]
    exec(line, {})


def test_files_that_are_no_texts_are_told(classes):
    """With their number, an example and a line that renames them, once for samples and labels."""
    (classes / "b/.hidden").write_text("")
    with pytest.warns(
        InputWarning, match="15 files left out, not ending in .txt, such as b/10: if"
    ):
        assert open_samples(classes).shape[0] == 25
    assert len(read_labels(classes, 25)) == 25
    told = dict(describe(Origin.of(classes)).rows)["others"]
    assert told.startswith("15 files left out")
    (classes / "b/0").write_text("another rose")  # b/0.txt is there
    rename_as_told(told)
    with pytest.warns(InputWarning, match="1 file left out"):
        assert open_samples(classes).shape[0] == 40
    assert (classes / "b/0").read_text() != (classes / "b/0.txt").read_text()


def test_classes_without_a_text_are_refused(classes):
    """A subfolder that would be left out as a whole is named, but not beside texts of no class."""
    (classes / "c").mkdir()
    for k in range(20):
        (classes / "c" / f"{k}.html").write_text("a white lily")
    with pytest.raises(InputError, match=r"1 subfolder \(c\) would be .* none of 20 files there"):
        read_labels(classes, 25)
    with pytest.raises(InputError, match=r"such as c/0\.html: if these are texts rename") as caught:
        open_samples(classes)
    (classes / "of_no_class.txt").write_text("a tulip")
    with pytest.warns(InputWarning, match="35 files left out"):
        assert open_samples(classes).shape[0] == 26
    (classes / "of_no_class.txt").unlink()
    rename_as_told(str(caught.value))
    assert set(read_labels(classes, 60)) == {"a", "b", "c"}


@pytest.mark.parametrize("end", ["", ".html"])
def test_a_folder_whose_texts_have_another_extension(end, tmp_path):
    """As in 20news-bydate and WebKB."""
    for name in ("a/1", "b/2", "b/3"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}{end}").write_text("a red rose")
    with pytest.raises(InputError, match="has none among 3 files such as a/1") as caught:
        open_samples(tmp_path)
    rename_as_told(str(caught.value))
    assert read_labels(tmp_path, 3).tolist() == ["a", "b", "b"]
