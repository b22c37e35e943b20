"""Strings in files: records, lines, labels and ids, and files that are refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.errors import InputError
from dhsk.samples import sequences

STRINGS = ["ACGTACGTTGCA" * 9, "acgtNN", "AC", "MKV*-"]
IDS = ["r0", "r1", "sp|P1|X", "r3"]
RECORDS = [{"id": name, "text": text} for name, text in zip(IDS, STRINGS, strict=True)]


def fasta(width: int = 50, end: str = "\n") -> str:
    """Wrapped records with comments and blank lines."""
    rows = ["; a comment", ""]
    for name, text in zip(IDS, STRINGS, strict=True):
        rows += [
            f">{name} class={name[0]} a>b;@+",
            *(text[k : k + width] for k in range(0, len(text), width)),
        ]
        rows.append("")
    return end.join(rows)


def fastq(width: int = 500) -> str:
    """Records whose qualities look like headers."""
    rows = []
    for name, text in zip(IDS, STRINGS, strict=True):
        quality = ("@>+" * len(text))[: len(text)]
        cut = [slice(k, k + width) for k in range(0, len(text), width)]
        rows += [f"@{name} class={name[0]}", *(text[c] for c in cut), f"+{name}"]
        rows += [quality[c] for c in cut]
    return "\n".join(rows)


FORMS: dict[str, tuple[str, str]] = {
    "fasta": ("x.fasta", fasta()),
    "one line": ("x.fa", fasta(500) + "\n"),
    "crlf": ("x.fna", fasta(end="\r\n")),
    "cr": ("x.faa", fasta(end="\r")),
    "blanks": ("x.fas", fasta().replace("CGTT", "CG TT ")),
    "fastq": ("x.fastq", fastq()),
    "wrapped": ("x.fq", fastq(7)),
    "lines": ("x.txt", "\r\n".join(STRINGS)),
    "bom": ("x.TXT", "\ufeff" + "\n".join(STRINGS) + "\n"),
    "jsonl": ("x.jsonl", "\n".join(map(json.dumps, RECORDS))),
}  # fmt: skip


@pytest.mark.parametrize("piece", [1, 2, 7, 2**20])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_all_forms_give_the_same(
    form: str, packed: bool, piece: int, tmp_path: Path, monkeypatch: Any
) -> None:
    """Wherever the pieces that are read together end."""
    monkeypatch.setattr(sequences, "_PIECE", piece)
    name, content = FORMS[form]
    file = tmp_path / (f"{name}.gz" if packed else name)
    file.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    expected, substrings = dhsk.spectrum_counts(STRINGS, 3)
    counts, same = dhsk.spectrum_counts(file, 3)
    assert same.tolist() == substrings.tolist()
    np.testing.assert_array_equal(counts.toarray(), expected.toarray())
    ids = dhsk.open_samples(file, vectorizer=dhsk.Spectrum(3)).ids(3)
    if name.lower() == "x.txt":
        assert ids is None
    else:
        assert ids is not None
        assert [list(part) for part in ids] == [IDS[:3], IDS[3:]]


def test_a_short_record_is_a_row_of_zeros(tmp_path: Path) -> None:
    """As it has no substring of that length."""
    file = tmp_path / "x.fasta"
    file.write_text(fasta())
    counts, _ = dhsk.spectrum_counts(file, 6, letters="dna")
    assert counts.sum(axis=1).tolist() == [len(STRINGS[0]) - 5, 0, 0, 0]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (":class", ["a", "b c"]),
        (":len", [7, 8]),
        (":organism", ["E. coli", "B. subtilis"]),
        ("", ["class=a; len=7 [organism=E. coli]", "[class=b c] [organism=B. subtilis] len=8;"]),
    ],
)
def test_labels_are_in_the_descriptions(source: str, expected: list[Any], tmp_path: Path) -> None:
    """The whole of it, or a value in it."""
    file = tmp_path / "x.fasta"
    file.write_text(
        ">r1 class=a; len=7 [organism=E. coli]\nAC\n>r2\t[class=b c] [organism=B. subtilis] len=8;"
        "\nGT\n"
    )
    assert dhsk.read_labels(f"{file}{source}", 2).tolist() == expected


def test_a_missing_label_is_named(tmp_path: Path) -> None:
    """With its record."""
    file = tmp_path / "x.fasta"
    file.write_text(">r1 class=a\nAC\n>r2\nGT\n")
    with pytest.raises(InputError, match=r"record 1 .*, 'r2', has no description, which would be"):
        dhsk.read_labels(file, 2)
    with pytest.raises(InputError, match=r"record 0 .*, 'r1 class=a', has no kind=\.\.\. in its"):
        dhsk.read_labels(f"{file}:kind", 2)


REFUSED: dict[str, tuple[str, bytes, str]] = {
    "no fasta": ("x.fasta", b"ACGT\n", "record 0 .* is no FASTA: it has the line 'ACGT'; a record"),
    "fastq as fasta": (
        "x.fa",
        b"@r\nAC\n+\nII\n",
        "it is like FASTQ, whose files are named .fastq",
    ),
    "mixed": ("x.fa", b">a\nAC\n@r\nAC\n+\nII\n", "it is like FASTQ, .* a file has one format"),
    "fasta as fastq": ("x.fq", b">a\nAC\n", "it is like FASTA, whose files are named .fasta"),
    "mixed fastq": ("x.fq", b"@r\nAC\n+\nII\n>a\nAC\n", "record 1 .* is no FASTQ"),
    "indented": ("x.fa", b">a\nAC\n >b\nGT\n", "record 0 .* has a > in its line '>b'"),
    "cut gz between": (
        "x.fa.gz",
        gzip.compress(b">a\nAC\n") + gzip.compress(b">b\nGT\n")[:-9],
        "is it complete?",
    ),
    "empty": ("x.fasta", b"", "x.fasta is empty: it has no records"),
    "comments": ("x.fasta", b";c\n\n", "x.fasta is empty: it has no records"),
    "empty record": ("x.fasta", b">a\nAC\n>b\n\n>c\nAC", "record 1 .* is empty, a header without"),
    "last empty": ("x.fasta", b">a\nAC\n>b", "record 1 .* is empty, a header without"),
    "empty read": ("x.fastq", b"@a\n\n+\n\n", "record 0 .* is empty, a header without"),
    "cut fastq": ("x.fastq", b"@a\nACGT\n+\nII", "record 0 .* ends before all its qualities"),
    "cut before": ("x.fastq", b"@a\nACGT\n", "record 0 .* ends before all its qualities"),
    "qualities": ("x.fastq", b"@a\nAC\n+\nIII\n", "record 0 .* has 1 more qualities than letters"),
    "cut gz": ("x.fa.gz", gzip.compress(b">a\nACGTTGCA\n")[:-9], "is it complete?"),
    "no gz": ("x.fa.gz", b">a\nACGT\n", "is it complete?"),
    "latin": ("x.txt", "Été\n".encode("latin-1"), "is not UTF-8 text"),
    "binary": ("x.fasta", b">\0a\nAC\n", "is a binary file and not text"),
    "empty line": ("x.txt", b"AC\n\nAC\n", r"row 1 \(counted from 0\) is an empty line"),
    "no lines": ("x.txt", b"", "x.txt is empty: it has no strings"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_damaged_files_are_refused(case: str, tmp_path: Path) -> None:
    """In words, with the place."""
    name, content, message = REFUSED[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        dhsk.spectrum_counts(tmp_path / name, 1)


@pytest.mark.parametrize("piece", [4, 2**20])
def test_a_header_within_a_line_is_refused(piece: int, tmp_path: Path, monkeypatch: Any) -> None:
    """As files are that were joined without a line feed between them."""
    monkeypatch.setattr(sequences, "_PIECE", piece)
    (tmp_path / "x.fasta").write_text(">a\nAC\n>b\nGT>c x\nAC\n")
    with pytest.raises(InputError, match=r"record 1 .* has a > in its line 'GT>.* line feed is"):
        dhsk.spectrum_counts(tmp_path / "x.fasta", 1)


def test_what_is_not_for_strings_is_refused(tmp_path: Path) -> None:
    """Strings without a spectrum, columns and parts of their files, and numbers."""
    file = tmp_path / "x.fasta"
    file.write_text(fasta())
    with pytest.raises(InputError, match=r"holds strings: say .* --spectrum 6"):
        dhsk.open_samples(file)
    with pytest.raises(InputError, match=r"no named columns \(name\): only .*\.csv"):
        dhsk.open_samples(file, vectorizer=dhsk.Spectrum(2), id_column="name")
    with pytest.raises(InputError, match="has no parts"):
        dhsk.open_samples(f"{file}:x", vectorizer=dhsk.Spectrum(2))
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(InputError, match="holds numbers and no strings"):
        dhsk.spectrum_counts(tmp_path / "x.npy", 2)
