"""The script that turns the raw WebKB pages into word counts."""

import importlib.util
import os
import tarfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.sparse import load_npz

SCRIPT = Path(__file__).parents[2] / "examples" / "webkb" / "prepare.py"
OUTPUTS = ("counts.npz", "labels.txt", "vocabulary.txt", "pages.txt")
HEADER = "Date: Monday, 06-Jan-97 19:30:42 GMT\r\nServer: CERN/3.0\r\n\r\n"

# Eleven pages, so that "more than 11/10 times" means twice or more.
PAGES = {
    "course/cornell/http:^^b^": "<title>Course 101</title> course &amp; exam",
    "course/cornell/http:^^a^": "course exam exam",
    "faculty/misc/http:^^a^": "professor 1997 <b>1998</b>",
    "faculty/misc/http:^^b^": "professor",
    "project/texas/http:^^a^": "project",
    "project/texas/http:^^b^": "project exam",
    "student/texas/http:^^a^": "student student",
    "student/texas/http:^^b^": "student once",
    "student/wisconsin/http:^^a^": "never",
    "student/wisconsin/http:^^b^": "student",
    "student/wisconsin/http:^^c^": "student",
    "staff/texas/http:^^a^": "staff staff staff",
    "other/texas/http:^^a^": "other other other",
}


@pytest.fixture(scope="module")
def prepare() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("webkb_prepare", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with the pages unpacked."""
    for page, text in PAGES.items():
        path = tmp_path / "unpacked" / "webkb" / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((HEADER + text).encode("latin-1"))
    return tmp_path / "unpacked"


@pytest.fixture
def packed(folder: Path) -> Path:
    """A data folder with the same pages in an archive, their ":" as a Windows copy writes it."""
    archive = folder.parent / "packed" / "webkb" / "webkb_raw_html.tar.gz"
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w:gz") as tar:
        for page in reversed(PAGES):
            name = "webkb/" + page
            tar.add(folder / name, arcname=name.replace(":", "\uf03a"))
    return folder.parent / "packed"


def run(prepare: ModuleType, data: Path, out: Path) -> list[list[str]]:
    """Run the script and return the lines of its three text files."""
    assert prepare.main(["--data", str(data), "--out", str(out)]) == 0
    return [(out / name).read_text(encoding="utf-8").splitlines() for name in OUTPUTS[1:]]


def test_words__leave_out_header_and_html(prepare: ModuleType) -> None:
    """Header, comments, tags and scripts vanish; entities, digits and capitals are translated."""
    page = HEADER + (
        '<html><!-- hidden <b>too</b> --><!WA0><SCRIPT language="x">var code = 1 < 2;</SCRIPT>\n'
        '<a href="x.html"\nname=y>CS415</a>: R&amp;D, caf&eacute;,\n3 < 4, don\'t, #5&nbsp;Fall-96'
    )
    expected = ["cs###", "r", "d", "caf", "#", "#", "don", "t", "#", "fall", "##"]
    assert prepare.words_of(page) == expected


def test_words__page_without_header(prepare: ModuleType) -> None:
    """A page that begins with a tag has no header, so nothing before its empty line is lost."""
    assert prepare.words_of("\n<title>Home</title>\n\npage") == ["home", "page"]


def test_files__rows_words_and_labels(prepare: ModuleType, folder: Path, tmp_path: Path) -> None:
    """Pages of the four classes come sorted by path, with the words that occur more than N/10."""
    labels, words, pages = run(prepare, folder, tmp_path / "out")
    assert pages == sorted(page for page in PAGES if page.split("/")[0] in prepare.CLASSES)
    assert labels == [page.split("/")[0] for page in pages]
    assert words == ["####", "course", "exam", "professor", "project", "student"]
    counts = load_npz(tmp_path / "out" / "counts.npz")
    assert counts.format == "csr"
    assert counts.toarray()[:3].tolist() == [
        [0, 1, 2, 0, 0, 0],
        [0, 2, 1, 0, 0, 0],
        [2, 0, 0, 1, 0, 0],
    ]


def test_files__need_no_pickle(prepare: ModuleType, folder: Path, tmp_path: Path) -> None:
    """The counts can be read with pickles forbidden."""
    run(prepare, folder, tmp_path / "out")
    with np.load(tmp_path / "out" / "counts.npz", allow_pickle=False) as arrays:
        assert {arrays[name].dtype.kind for name in ("data", "indices", "indptr", "shape")} == {"i"}


def test_files__archive_equals_folder(
    prepare: ModuleType, folder: Path, packed: Path, tmp_path: Path
) -> None:
    """The archive and the unpacked folder give the same files, byte for byte."""
    run(prepare, folder, tmp_path / "one")
    run(prepare, packed, tmp_path / "two")
    for name in OUTPUTS:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_count__one_entry_per_word_and_page(prepare: ModuleType) -> None:
    """A word repeated on a page is one stored entry."""
    counts, words = prepare.count_words([["b", "a", "b"], [], ["a"]])
    assert words == ["b", "a"]
    assert counts.data.tolist() == [2, 1, 1]
    assert counts.toarray().tolist() == [[2, 1], [0, 0], [0, 1]]


def test_threshold__is_strict(prepare: ModuleType) -> None:
    """A word that occurs exactly N/divisor times is left out."""
    counts, words = prepare.count_words([["twice", "thrice"]] * 2 + [["thrice"]] + [[]] * 17)
    assert prepare.keep_frequent(counts, words, divisor=10)[1] == ["thrice"]
    assert prepare.keep_frequent(counts, words, divisor=20)[1] == ["thrice", "twice"]


def test_empty_page__gets_equal_counts(
    prepare: ModuleType, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page with none of the words becomes a row of ones, which the script says."""
    _, words, pages = run(prepare, folder, tmp_path / "out")
    row = pages.index("student/wisconsin/http:^^a^")
    counts = load_npz(tmp_path / "out" / "counts.npz").toarray()
    assert counts[row].tolist() == [1] * len(words)
    assert counts.sum() == 18 + len(words)  # 18: the kept words on the other pages
    assert f"Row {row} (0-based) has none of them" in capsys.readouterr().out


def test_report__counts_and_next_command(
    prepare: ModuleType, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script prints the pages found, that they are not all, and what to run next."""
    out = tmp_path / "out"
    run(prepare, folder, out)
    printed = capsys.readouterr().out
    assert "11 pages: student 5, faculty 2, course 2, project 2" in printed
    assert "the complete data set has 4199 pages" in printed
    assert f"dhsk cv {out}/counts.npz --labels {out}/labels.txt" in printed


def test_progress__is_reported_when_slow(
    prepare: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """Work beyond the given seconds is announced on stderr; every item passes."""
    assert list(prepare.with_progress("ab", "read", seconds=-1)) == ["a", "b"]
    assert capsys.readouterr().err == "  0 pages read\n  1 pages read\n"


def error_of(prepare: ModuleType, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run the script to its failure and return the one line it says."""
    assert prepare.main(arguments) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


def test_error__no_data_given(
    prepare: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without --data and DHSK_DATA the script says which to give and where the pages are."""
    monkeypatch.delenv("DHSK_DATA", raising=False)
    message = error_of(prepare, ["--out", str(tmp_path / "out")], capsys)
    assert "give --data DIR or set DHSK_DATA" in message
    assert "World Wide Knowledge Base (4 Universities)" in message


def test_error__folder_without_pages(
    prepare: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A folder from DHSK_DATA without the pages is named, and no output folder appears."""
    monkeypatch.setenv("DHSK_DATA", str(tmp_path))
    message = error_of(prepare, ["--out", str(tmp_path / "out")], capsys)
    assert f"{tmp_path} holds neither webkb/webkb_raw_html.tar.gz nor" in message
    assert not (tmp_path / "out").exists()


def test_error__damaged_archive(
    prepare: ModuleType, packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive cut short is an error, not a smaller data set."""
    archive = packed / "webkb" / "webkb_raw_html.tar.gz"
    archive.write_bytes(archive.read_bytes()[:-50])
    arguments = ["--data", str(packed), "--out", str(tmp_path / "out")]
    assert "cannot be read" in error_of(prepare, arguments, capsys)


def test_error__class_without_pages(
    prepare: ModuleType, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A class without pages is named."""
    for page in (folder / "webkb" / "project").glob("*/*"):
        page.unlink()
    arguments = ["--data", str(folder), "--out", str(tmp_path / "out")]
    assert "has no pages of class project" in error_of(prepare, arguments, capsys)


@pytest.mark.slow
def test_real_pages__numbers_of_words(prepare: ModuleType) -> None:
    """The real pages give the known class sizes, and word numbers within 5 % of the paper's."""
    if "DHSK_DATA" not in os.environ:
        pytest.skip("the environment variable DHSK_DATA is not set")
    try:
        source = prepare.find_source(Path(os.environ["DHSK_DATA"]))
    except prepare.DataError as error:
        pytest.skip(str(error))
    names, texts = zip(*prepare.read_pages(source), strict=True)
    labels = [prepare.label_of(name) for name in names]
    assert {label: labels.count(label) for label in set(labels)} == prepare.CLASSES
    counts, words = prepare.count_words(map(prepare.words_of, texts))
    found = [len(prepare.keep_frequent(counts, words, d)[1]) for d in (10, 20, 30, 40)]
    # Zhao & Song (2017), Table 2, whose tokenizer is not described further.
    np.testing.assert_allclose(found, [393, 726, 1023, 1312], rtol=0.05)
    # This tokenizer's own numbers: a change of them is a change of the features.
    assert found == [375, 709, 1001, 1296]
