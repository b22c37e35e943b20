"""Delimiters and headers of tables: found by rule, or given."""

import numpy as np
import pandas as pd
import pytest

from dhsk.errors import InputError, InputWarning
from dhsk.samples import open_samples, read_labels
from dhsk.samples.delimited import read_columns
from dhsk.samples.dialect import is_header
from dhsk.samples.numbering import FEWEST_ROWS, MOST_ROWS
from dhsk.samples.paths import Origin

VALUES = [[1.5, 2.0], [3.0, 4.25]]

SAME_TABLES = {
    "comma": ("x.csv", "a,b\n1.5,2\n3,4.25\n"),
    "semicolon": ("x.csv", "a;b\n1.5;2\n3;4.25\n"),
    "tab": ("x.csv", "a\tb\n1.5\t2\n3\t4.25\n"),
    "bars": ("x.csv", "a|b\n1.5|2\n3|4.25\n"),
    "commas in a tsv": ("x.tsv", "a,b\n1.5,2\n3,4.25\n"),
    "semicolons in a tsv": ("x.tsv", "a;b\n1.5;2\n3;4.25\n"),
    "semicolons without header": ("x.csv", "1.5;2\n3;4.25\n"),
    "as a spreadsheet": ("x.csv", '\ufeff"a";"b"\r\n"1.5";"2"\r\n3;4.25\r\n'),
    "commas in quoted names": ("x.csv", '"a,1";"b,2"\n1.5;2\n3;4.25\n'),
    "quotes after blanks": ("x.csv", '"a", "b"\n"1.5", "2"\n3, 4.25\n'),
    "trailing blank lines": ("x.csv", "a;b\n1.5;2\n\n3;4.25\n\n"),
    "a comment": ("x.tsv", "# Constructed from biom file\n#a\tb\n1.5\t2\n3\t4.25\n"),
    "comments": ("x.csv", "#!x\n# by hand\na,b\n1.5,2\n3,4.25\n"),
    "a comment as wide as the header": ("x.csv", "# by Anna, 2020\na,b\n1.5,2\n3,4.25\n"),
    "a blank line below comments": ("x.csv", "# one, two\n\n# three, 4\n\na,b\n1.5,2\n3,4.25\n"),
    "many comments": ("x.csv", "# line, 0\n" * 70 + "a,b\n1.5,2\n3,4.25\n"),
    "many blank lines": ("x.csv", "\n" * 70 + "a;b\n1.5;2\n3;4.25\n"),
    "comments above a marked header": ("x.tsv", "# by Anna\t2020\n#a\tb\n1.5\t2\n3\t4.25\n"),
    "a comment with a comma": ("x.csv", "# one, two\n" + "a,b,c,d\n1.5,2,1,1\n3,4.25,1,1\n"),
    "Excel's own delimiter": ("x.csv", "sep=;\r\na;b\r\n1.5;2\r\n3;4.25\r\n"),
    "Excel's, saved again": ("x.csv", '"sep=;";\n"a";"b"\n1,5;2\n3;4,25\n'),
    "R's names of rows": ("x.tsv", '"a"\t"b"\n"r1"\t1.5\t2\n"r2"\t3\t4.25\n'),
    "R's numbers of rows": ("x.csv", '"a","b"\n"1",1.5,2\n"2",3,4.25\n'),
    "R's names, semicolons": ("x.csv", '"a";"b"\n"r1";1.5;2\n"r2";3;4.25\n'),
}


@pytest.mark.parametrize(("name", "text"), SAME_TABLES.values(), ids=SAME_TABLES)
def test_delimiters_are_found(name, text, tmp_path):
    """Commas, semicolons, tabs and bars divide a table, whatever its extension says."""
    (tmp_path / name).write_bytes(text.encode())
    samples = open_samples(tmp_path / name)
    (block,) = samples.blocks(9)
    np.testing.assert_array_equal(block[:, :2], VALUES)
    first = (samples.feature_names or ("a",))[0]
    assert first in ("a", "#a", "a,1")


def test_rows_are_named_by_what_the_header_does_not_name(tmp_path):
    """As write.table of R writes it: a column of ids in samples, and none of labels."""
    (tmp_path / "x.tsv").write_text('"a"\t"b"\n"r1"\t1.5\t2\n"r2"\t3\t4.25\n')
    samples = open_samples(tmp_path / "x.tsv")
    assert (samples.feature_names, list(samples.ids(9))) == (("a", "b"), [["r1", "r2"]])
    assert open_samples(tmp_path / "x.tsv", id_column="a").feature_names == ("b",)
    (tmp_path / "y.tsv").write_text('"dx"\n"r1"\t"yes"\n"r2"\t"no"\n')
    assert read_labels(tmp_path / "y.tsv", 2).tolist() == ["yes", "no"]
    assert read_labels(f"{tmp_path / 'y.tsv'}:dx", 2).tolist() == ["yes", "no"]


@pytest.mark.parametrize(
    "text", ["1,2\n5,3,4\n6,4,5\n", "a,b\n1,2,\n3,4,\n", "a,b\n1,2,3\n1,2,4\n"]
)
def test_other_short_headers_are_refused(text, tmp_path):
    """A first row of numbers was cut, others end with a delimiter, and names of rows differ."""
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError, match=r"row [01] .* has 3 fields, but .* has 2: give each"):
        open_samples(tmp_path / "x.csv")


@pytest.mark.parametrize("header", ["sample-id", "#SampleID", "# by Anna\n#SampleID"])
def test_types_of_qiime_2_are_no_sample_and_no_header(header, tmp_path):
    """Its line of types is below the header, and pandas is told to skip it too."""
    rows = "".join(f"S{k}\t{'ab'[k % 2]}\t{20 + k}\n" for k in range(6))
    types = "#q2:Types\tcategorical\tnumeric\n"
    path = tmp_path / "q2.tsv"
    path.write_text(f"{header}\tgroup\tage\n{types}{rows}")
    assert read_labels(f"{path}:group", 6).tolist() == list("ababab")
    name = header.split("\n")[-1]
    samples = open_samples(path, id_column=name, drop_columns=["group"])
    assert (samples.feature_names, samples.shape) == (("age",), (6, 1))
    table = eval(read_columns(Origin.of(path)).in_pandas(), {"pandas": pd})
    assert list(table.columns) == [name, "group", "age"]
    assert table["age"].tolist() == list(range(20, 26))


ENDS = ["a;b;dx;\n", "a;b;dx;;\n", '"a";"b";"dx"; \n', ""]


@pytest.mark.parametrize("header", ENDS)
def test_separators_at_the_ends_of_rows_are_no_column(header, tmp_path):
    """As Excel writes them; a value that turns up there later is refused, and where it is."""
    end, path = ";;" if ";;" in header else ";", tmp_path / "x.csv"
    rows = [f"{k}.5;{k % 7};{'uv'[k % 2]}{end}" for k in range(40)]
    path.write_text(header + "\n".join(rows))
    name = "dx" if header else "2"
    samples = open_samples(path, drop_columns=[name])
    assert (samples.shape, samples.has_gaps) == ((40, 2), False)
    assert read_labels(f"{path}:{name}", 40).tolist() == list("uv" * 20)
    table = eval(read_columns(Origin.of(path)).in_pandas(), {"pandas": pd})
    assert table.shape == (40, 3)
    rows[30] = f"30.5;2;u;7{end[1:]}"
    path.write_text(header + "\n".join(rows))
    with pytest.raises(InputError, match=r"row 30 .* holds '7' in column 3, which has no name"):
        open_samples(path, drop_columns=[name])
    path.write_text("dx;\n" + "".join(f"{'uv'[k % 2]};\n" for k in range(40)))
    assert read_labels(path, 40).tolist() == list("uv" * 20)


def test_hashes_that_are_no_comments_stay(tmp_path):
    """Names of one column, and of the first of several."""
    (tmp_path / "y.csv").write_text("#a\n#b\n#a\n")
    assert read_labels(tmp_path / "y.csv", 3).tolist() == ["#a", "#b", "#a"]
    (tmp_path / "x.tsv").write_text("#OTU ID\tb\n#1\t2\n#2\t3\n")
    assert open_samples(tmp_path / "x.tsv", id_column="#OTU ID").shape == (2, 1)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_byte_order_marks_tell_the_encoding(encoding, tmp_path):
    """What spreadsheets write as CSV and as Unicode text is read, samples and labels."""
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / "x.csv").write_bytes(f"{mark}Säure\tb\n1.5\t2\n3\t4.25\n".encode(encoding))
    samples = open_samples(tmp_path / "x.csv")
    assert samples.feature_names == ("Säure", "b")
    (block,) = samples.blocks(9)
    np.testing.assert_array_equal(block, VALUES)
    (tmp_path / "y.txt").write_bytes(f"{mark}Äpfel\r\nBirnen\r\n".encode(encoding))
    assert read_labels(tmp_path / "y.txt", 2).tolist() == ["Äpfel", "Birnen"]


def test_semicolons_in_texts_divide_nothing(tmp_path):
    """A table that its own delimiter divides evenly keeps it, and one column of names stays one."""
    (tmp_path / "x.csv").write_text("tags;more,a\nx;y,1\nz;w,2\n")
    assert open_samples(tmp_path / "x.csv", drop_columns=["tags;more"]).shape == (2, 1)
    (tmp_path / "y.tsv").write_text("Lee, Ann\nPoe, Bo\nLee, Ann\n")
    assert read_labels(tmp_path / "y.tsv", 3).tolist() == ["Lee, Ann", "Poe, Bo", "Lee, Ann"]


def test_labels_are_read_from_tables_of_semicolons(tmp_path):
    """A column of labels is found by name where semicolons divide, all of it text or not."""
    (tmp_path / "x.csv").write_text("id;class\ns1;a\ns2;b\n")
    assert read_labels(f"{tmp_path / 'x.csv'}:class", 2).tolist() == ["a", "b"]


HEADERS = {
    "text above numbers": ("a,b\n1,2\n3,4\n", True),
    "text above text and numbers": ("who,a\nLee,2\nPoe,4\n", True),
    "all text": ("who,what\nLee,x\nPoe,y\n", True),
    "a text that recurs": ("Lee,x\nPoe,x\n", False),
    "numbers": ("5,2\n3,4\n", False),
    "a class at the end": ("5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versicolor\n", False),
    "a class that does not recur": ("5.1,3.5,setosa\n7.0,3.2,versicolor\n", False),
    "an id before": ("s1,5,2\ns2,3,4\n", False),
    "an absent value": ("5,,2\n3,4,1\n", False),
    "decimal commas": ("1,5;2,5\n3,5;4,5\n", False),
    "counted as pandas does": ("0,1,2\n5,6,9\n", True),
    "counted from 1": ("1,2,3,4\n0,0,7,1\n", True),
    "years": ("gene,2019,2020,2021,2022\ng1,4,0,0,7\ng2,1,1,2,3\n", True),
    "wavelengths": ("400,410,420,430\n0.1,0.5,0.2,0.1\n", True),
    "three counts in order": ("1,2,3\n5,6,9\n", False),
    "all rows in order": ("1,2,3,4\n2,4,6,8\n", False),
    "no equal steps": ("1,2,4,9\n5,0,0,9\n", False),
}


@pytest.mark.parametrize(("text", "expected"), HEADERS.values(), ids=HEADERS)
def test_headers_are_told_from_samples(text, expected):
    """The first row is a header by the rules that `is_header` lists."""
    delimiter = ";" if ";" in text else ","
    assert is_header([line.split(delimiter) for line in text.splitlines()]) is expected


AS_OTHERS_WRITE = {
    "decimal commas": "a;b\n1,5;2\n-2;3,25e1\n",
    "decimal commas after 0": "a;b\n1,5;2\n-2,000;32,5\n",
    "decimal commas in tabs": "a\tb\n1,5\t2\n-2\t32,5\n",
    "blanks": "a b\n1.5 2\n-2 32.5\n",
    "aligned by blanks": "   a     b\n 1.5   2.0\n-2.0  32.5\n",
    "R's write.table": '"a" "b"\n"1" 1.5 2\n"2" -2 32.5\n',
    "R's write.csv2": '"a";"b"\n1,5;2\n-2;32,5\n',
}


@pytest.mark.parametrize("text", AS_OTHERS_WRITE.values(), ids=AS_OTHERS_WRITE)
def test_numbers_are_read_as_other_programs_write_them(text, tmp_path):
    """Commas for points, and blanks between fields."""
    path = tmp_path / "x.csv"
    path.write_text(text)
    samples = open_samples(path)
    assert samples.feature_names == ("a", "b")
    (block,) = samples.blocks(9)
    np.testing.assert_array_equal(block, [[1.5, 2], [-2, 32.5]])


@pytest.mark.parametrize("breaks", [1, 2, 7])
def test_line_breaks_in_quotes_hide_no_delimiter(breaks, tmp_path):
    """The first lines end within a text, wherever that begins."""
    lines = [f"word{k} other" for k in range(breaks + 1)]
    path = tmp_path / "x.csv"
    table = pd.DataFrame({"nr": range(40), "text": ["\n".join(lines)] * 40, "y": ["u", "v"] * 20})
    table.to_csv(path, sep=";", index=False)
    samples = open_samples(f"{path}:text")
    assert samples.shape == (40, breaks + 2)
    assert read_labels(f"{path}:y", 40).tolist() == ["u", "v"] * 20


@pytest.mark.parametrize("suffix", [".data", ".dat.gz"])
def test_tables_have_other_suffixes(suffix, tmp_path):
    """As in the repository of UCI, and as numpy.savetxt writes them."""
    X = np.random.default_rng(0).random((5, 3))
    np.savetxt(tmp_path / f"x{suffix}", X)
    (block,) = open_samples(tmp_path / f"x{suffix}").blocks(9)
    np.testing.assert_array_equal(block, X)


def test_no_sample_is_lost_above_a_column_of_classes(tmp_path):
    """A table that begins with a sample keeps it, and columns are named by their numbers."""
    path = tmp_path / "x.csv"
    path.write_text("5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versicolor\n")
    (block,) = open_samples(path, drop_columns=["2"]).blocks(9)
    np.testing.assert_array_equal(block, [[5.1, 3.5], [4.9, 3.0], [7.0, 3.2]])
    assert read_labels(f"{path}:2", 3).tolist() == ["setosa", "setosa", "versicolor"]
    with pytest.raises(InputError, match=r"no header and no column 'class': .* are 0, 1, 2"):
        read_labels(f"{path}:class", 3)


def test_a_first_row_can_be_declared(tmp_path):
    """header=True and header=False overrule what is found, for samples and for labels."""
    path = tmp_path / "x.csv"
    path.write_text("1,2,3\n5,6,9\n")
    assert open_samples(path).shape == (2, 3)
    assert open_samples(path, header=True).shape == (1, 3)
    assert read_labels(f"{path}:3", 1, min_classes=1, header=True).tolist() == [9]
    path.write_text("0,1,2\n5,6,9\n")
    with pytest.warns(InputWarning, match=r"taken for a header.*--no-header, header=False"):
        assert open_samples(path).shape == (1, 3)
    assert open_samples(path, header=False).shape == (2, 3)
    assert open_samples(path, header=True).shape == (1, 3)  # asked for: no warning
    path.write_text("b\na\nb\n")
    assert read_labels(path, 2, header=True).tolist() == ["a", "b"]
    assert read_labels(path, 3, header=False).tolist() == ["b", "a", "b"]


def test_messages_about_wide_tables_are_short(tmp_path):
    """A wrong name is answered with the first names, each cut; a text cell with part of itself."""
    path = tmp_path / "x.csv"
    path.write_text(",".join(f"{'long' * 30}{k}" for k in range(500)) + "\n" + "1," * 499 + "1\n")
    with pytest.raises(
        InputError, match=r"no column 'b': its columns are longlong.*\.\.\."
    ) as told:
        open_samples(path, drop_columns=["b"])
    assert len(str(told.value)) < 700
    path.write_text("a,b\n1,2\n1," + "x" * 5000 + "\n")
    with pytest.raises(InputError, match=r"'b' is not numeric.*x\.\.\.'") as told:
        open_samples(path)
    assert len(str(told.value)) < 500


def numbered(rows, first=1, step=1):
    """Return a table whose column k numbers the rows, beside counts."""
    return "k,a,b\n" + "".join(f"{step * i + first},{i % 7},{i % 3}\n" for i in range(rows))


def test_a_column_of_numbers_of_samples_is_named(tmp_path):
    """A column with a different whole number in every row is warned of, with the way out."""
    path = tmp_path / "x.csv"
    path.write_text(numbered(FEWEST_ROWS, step=-9))  # others are left out
    with pytest.warns(InputWarning, match="column 'k' holds"):
        open_samples(path)
    path.write_text(numbered(FEWEST_ROWS))
    with pytest.warns(
        InputWarning, match=r"column 'k' holds a different whole number.*--id-column k"
    ):
        samples = open_samples(path)
    assert samples.shape == (FEWEST_ROWS, 3)
    without = open_samples(path, id_column="k")  # no warning
    assert without.shape == (FEWEST_ROWS, 2)
    assert [list(ids) for ids in without.ids(15)] == [
        [str(i) for i in range(1, 16)],
        [str(i) for i in range(16, FEWEST_ROWS + 1)],
    ]
    assert samples.ids(15) is None


NO_NUMBERING = {
    "few rows": numbered(FEWEST_ROWS - 1),
    "one value twice": numbered(FEWEST_ROWS) + f"{FEWEST_ROWS},1,1\n",
    "fractions": "a,b\n" + "".join(f"{i}.5,1\n" for i in range(30)),
    "measurements": "a,b,c,d\n" + "".join(f"{i},{2 * i},{3 * i},{5 * i}\n" for i in range(30)),
    "beyond whole numbers": "a,b\n" + "".join(f"{i}e200,{i % 3}\n" for i in range(30)),
    "large counts": "a,b\n" + "".join(f"{150_000 + 997 * i},{i % 3}\n" for i in range(30)),
    "a single column": "a\n" + "".join(f"{i}\n" for i in range(30)),
}


@pytest.mark.parametrize("text", NO_NUMBERING.values(), ids=NO_NUMBERING)
def test_features_are_not_taken_for_numbers_of_samples(text, tmp_path):
    """Few rows, a value that recurs, fractions, tables of such columns alone: no warning."""
    (tmp_path / "x.csv").write_text(text)
    open_samples(tmp_path / "x.csv")


def test_numbering_is_looked_for_in_the_first_rows_only(tmp_path):
    """Memory is bounded: what recurs after many rows is not noticed."""
    (tmp_path / "x.csv").write_text(numbered(MOST_ROWS) + "1,1,1\n")
    with pytest.warns(InputWarning, match="column 'k'"):
        open_samples(tmp_path / "x.csv")


def test_ids_need_a_table(tmp_path):
    """Other formats have no column of ids, and a table must have the one that is named."""
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(InputError, match=r"x\.npy has no named columns \(k\): only \.csv"):
        open_samples(tmp_path / "x.npy", id_column="k")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no column 'k': its columns are a, b"):
        open_samples(tmp_path / "x.csv", id_column="k")
    with pytest.raises(InputError, match=r"no column 'A' \(is it 'a'\?\): its columns are a, b"):
        open_samples(tmp_path / "x.csv", id_column="A")
    with pytest.raises(InputError, match=r"no column 'a, b' \(these are several: give each by its"):
        open_samples(tmp_path / "x.csv", drop_columns=["a, b"])


def _choices(choice, last):
    """A table of true decimals, each with three digits but in the last of a hundred rows."""
    rows = [f"p{k};{1 + k % 7}.{101 + k};1.500;{choice if k == 1 else k % 4}" for k in range(99)]
    return "\n".join(["id;a;b;choice", *rows, f"p99;{last};2.25;1"]) + "\n"


def test_a_text_with_a_comma_moves_no_points(tmp_path):
    """Points of columns without commas are decimal points, and a warning names the columns."""
    path = tmp_path / "x.csv"
    path.write_text(_choices("1,2", "1.1"))
    with pytest.warns(InputWarning, match=r"decimal points in 'a' \(1\.101\), 'b' \(1\.500\): if"):
        samples = open_samples(path, id_column="id")
    (block,) = samples.blocks(200)
    assert block[[1, 99]].tolist() == [[2.102, 1.5, 1.2], [1.1, 2.25, 1]]
    path.write_text(_choices("x", "1.1"))  # no number: nothing is ambiguous
    assert open_samples(path, id_column="id", drop_columns=["choice"]).shape == (100, 2)


def test_decimal_commas_may_begin_below_the_first_rows(tmp_path):
    """Where others have them; a decimal point beside them is refused with its row."""
    path = tmp_path / "x.csv"
    rows = ["0,5;0;1.200;3"] * 30 + ["0,25;0,125;900;3", "1,5;0,5;12;3.1"]
    path.write_text("\n".join(["a;b;c;d", *rows[:31]]))
    with pytest.warns(InputWarning, match=r"decimal points in 'c' \(1\.200, 900\): if they"):
        (block,) = open_samples(path).blocks(200)
    assert block[[0, 30]].tolist() == [[0.5, 0, 1.2, 3], [0.25, 0.125, 900, 3]]
    path.write_text("\n".join(["a;b;c;d", *rows]))
    with pytest.raises(
        InputError, match=r"row 31 \(counted from 0\) holds '3\.1' in column 'd', a decimal point"
    ):
        open_samples(path)


def test_ids_and_labels_are_as_written_beside_decimal_commas(tmp_path):
    """Names of columns, too; numbers of features alone are read."""
    path = tmp_path / "x.csv"
    path.write_text("id;0,5;b;label\n1.001;0,5;0,25;1.100\n1.002;1,5;1.234,5;2,0\n")
    samples = open_samples(path, id_column="id", drop_columns=["label"])
    assert samples.feature_names == ("0,5", "b")
    assert list(samples.ids(9)) == [["1.001", "1.002"]]
    (block,) = samples.blocks(9)
    assert block.tolist() == [[0.5, 0.25], [1.5, 1234.5]]
    assert read_labels(f"{path}:label", 2).tolist() == ["1.100", "2,0"]
