"""Counts of substrings in hashed columns, against a direct count and a hash in plain Python."""

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dhsk
from dhsk.errors import InputError
from dhsk.progress import Progress
from dhsk.samples import counted

FEW = st.text("abAÄ日😀 ", max_size=24)
ANY = st.text(st.characters(exclude_characters="\0"), max_size=12)
BASES = st.text("ACGTUacgtuN", max_size=24)
WORDS = st.lists(st.sampled_from(["a", "ab", "b", "été"]), max_size=8)
RANGES = st.tuples(st.integers(0, 4), st.integers(1, 9)).map(lambda pair: (min(pair), max(pair)))
COLUMNS = st.sampled_from([1, 2, 7, 1000, 2**16])


def mixed(x: int) -> int:
    """Finaliser of SplitMix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31


def polynomial(letters: Sequence[str], *, tokens: bool = False) -> int:
    """Hash of letters before it is mixed."""
    h = 0
    for letter in letters:
        digest = blake2b(letter.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        value = int.from_bytes(digest, "little") if tokens else mixed(ord(letter))
        h = (h * 0x9E3779B97F4A7C15 + value) % 2**64
    return h


def column(h: int, n_features: int) -> int:
    """Column of a hash."""
    return (mixed(h) >> 32) * n_features >> 32


def substrings(letters: Sequence[str], lengths: tuple[int, int]) -> list[Sequence[str]]:
    """Every substring of a string."""
    return [
        letters[i : i + length]
        for length in range(lengths[0], lengths[1] + 1)
        for i in range(len(letters) - length + 1)
    ]


def assert_rows(found: Any, expected: Sequence[Counter[int]], n_features: int) -> None:
    """Each string has its counts, in ordered columns that are named by their numbers."""
    counts, names = found
    assert names.tolist() == [f"#{k}" for k in range(n_features)]
    assert (counts.dtype, counts.shape) == (np.int64, (len(expected), n_features))
    arrays = counts.data, counts.indices, counts.indptr
    assert type(counts)(arrays, shape=counts.shape).has_canonical_format
    for row, own in enumerate(expected):
        part = slice(*counts.indptr[row : row + 2])
        columns, values = counts.indices[part].tolist(), counts.data[part].tolist()
        assert dict(zip(columns, values, strict=True)) == own


@given(
    strings=st.lists(st.one_of(FEW, ANY), min_size=1),
    lengths=RANGES,
    n_features=COLUMNS,
    batch=st.integers(1, 40),
)
@example(strings=["\ud800b", "b"], lengths=(1, 2), n_features=50, batch=3)  # half of a pair
@example(strings=["ab" * 50], lengths=(30, 64), n_features=1000, batch=9)
@settings(max_examples=60)
def test_columns_are_those_of_a_direct_count(
    strings: list[str], lengths: tuple[int, int], n_features: int, batch: int
) -> None:
    """Of any alphabet, all lengths and strings that are cut anywhere between two batches."""
    expected = [
        Counter(column(polynomial(s), n_features) for s in substrings(text, lengths))
        for text in strings
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted, "_BATCH", batch)
        found = dhsk.spectrum_counts(strings, lengths, n_features=n_features)
    assert_rows(found, expected, n_features)


@given(strings=st.lists(BASES, min_size=1), lengths=RANGES, canonical=st.booleans())
@example(strings=["ACGTTG" * 20], lengths=(31, 64), canonical=True)
@settings(max_examples=60)
def test_dna_is_hashed_without_other_letters(
    strings: list[str], lengths: tuple[int, int], canonical: bool
) -> None:
    """Case does not matter, U is T, N is in no column; canonical ones join both strands."""
    pairs, expected = str.maketrans("ACGT", "TGCA"), []
    for text in strings:
        own = Counter[int]()
        for s in map(str, substrings(text.upper().replace("U", "T"), lengths)):
            strands = [s, s.translate(pairs)[::-1]] if canonical else [s]
            if "N" not in s:
                own[column(min(map(polynomial, strands)), 1000)] += 1
        expected.append(own)
    found = dhsk.spectrum_counts(
        strings, lengths, letters="dna", canonical=canonical, n_features=1000
    )
    assert_rows(found, expected, 1000)


@given(rows=st.lists(WORDS, min_size=1), lengths=RANGES, batch=st.integers(1, 40))
def test_tokens_are_hashed(rows: list[list[str]], lengths: tuple[int, int], batch: int) -> None:
    """By their characters, between blanks of any kind."""
    expected = [
        Counter(column(polynomial(s, tokens=True), 1000) for s in substrings(row, lengths))
        for row in rows
    ]
    texts = ["\t " + " \n".join(row) for row in rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted, "_BATCH", batch)
        found = dhsk.spectrum_counts(texts, lengths, letters="tokens", n_features=1000)
    assert_rows(found, expected, 1000)


def test_a_string_has_its_columns_whatever_comes_before() -> None:
    """Other strings, other letters, another number of cut batches: models depend on it."""
    strings = ["日本語", "banana", "Ärger", "bandana" * 30]
    together, _ = dhsk.spectrum_counts(strings, (1, 3), n_features=2**16)
    turned, _ = dhsk.spectrum_counts(strings[::-1], (1, 3), n_features=2**16)
    assert (together != turned[[3, 2, 1, 0]]).nnz == 0
    for row, text in enumerate(strings):
        alone, _ = dhsk.spectrum_counts([text], (1, 3), n_features=2**16)
        assert (together[[row]] != alone).nnz == 0


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("a", {}, 665501),
        ("GATTACA", {}, 677504),
        ("tgtaatc", {"canonical": True}, 677504),
        ("🌹 rosé", {}, 955520),
        ("a red rosé", {"letters": "tokens"}, 437948),
    ],
)
def test_the_hash_never_changes(text: str, options: dict[str, Any], expected: int) -> None:
    """Saved models would count other columns."""
    length = 3 if "letters" in options else len(text)
    counts, _ = dhsk.spectrum_counts([text], length, n_features=2**20, **options)
    assert counts.indices.tolist() == [expected]


def test_substrings_are_spread_evenly() -> None:
    """Sixteen of all 65,536 of eight bases in each of 4,096 columns, as by chance."""
    text = ["".join(letters) for letters in product("ACGT", repeat=8)]
    counts, _ = dhsk.spectrum_counts(text, 8, n_features=4096)
    per_column = counts.sum(axis=0)
    assert 0.9 < ((per_column - 16) ** 2 / 16).mean() < 1.1  # chi squared; 0.02 is its deviation


def test_the_kernel_is_too_large_by_what_shares_a_column(rng: np.random.Generator) -> None:
    """Never too small, and on average by (p q - k) / n_features."""
    strings = ["".join(map(chr, rng.integers(200, 1000, 400))) for _ in range(60)]
    exact, hashed = (
        (counts @ counts.T).toarray()
        for counts, _ in (dhsk.spectrum_counts(strings, 2, n_features=n) for n in (None, 500))
    )
    assert (hashed >= exact).all()
    expected = (399.0**2 - exact) / 500
    assert (hashed - exact).mean() == pytest.approx(expected.mean(), rel=0.05)


def test_short_strings_are_rows_of_zeros() -> None:
    """Columns are known, so that it is no error if all strings are short."""
    counts, names = dhsk.spectrum_counts(["ab", ""], 3, n_features=4)
    assert (counts.nnz, counts.shape, len(names)) == (0, (2, 4), 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_features": 0}, r"--hash \(n_features\), must be 1 to 16,777,216, got 0"),
        ({"n_features": 2**24 + 1}, "got 16777217"),
        ({"n_features": 2.5}, "got 2.5"),
        ({"n_features": True}, "got True"),
        ({"n_features": 8, "vocabulary": ["ab"]}, "hashed columns have no vocabulary"),
        ({"n_features": 8, "min_df": 2}, "do not tell which substrings are rare"),
    ],
)
def test_wrong_columns_are_refused(given: dict[str, Any], message: str) -> None:
    """With the value, and a way out."""
    with pytest.raises(InputError, match=message):
        dhsk.spectrum_counts(["abab"], 2, **given)


def test_counting_reports_letters_and_columns() -> None:
    """A hash knows no number of different substrings."""
    seen: list[Progress] = []
    dhsk.spectrum_counts(["ACGT" * 20], 3, n_features=1024, progress=seen.append)
    assert seen[0].detail == "1,024 columns"
    assert seen[-1] == Progress("letters", 80, 80)


def test_a_table_of_texts_is_known_by_its_column(tmp_path: Path) -> None:
    """Columns need no learning, so texts of a whole table are counted as those of its column."""
    path = tmp_path / "posts.csv"
    path.write_text("text,label\nbanana,x\nbandana,y\n")
    spectrum = dhsk.Spectrum(2, n_features=16)
    whole, column_alone = (
        dhsk.open_samples(name, vectorizer=spectrum) for name in (path, f"{path}:text")
    )
    assert whole.feature_names == column_alone.feature_names
    (one,), (other,) = whole.blocks(9), column_alone.blocks(9)
    assert (one != other).nnz == 0
