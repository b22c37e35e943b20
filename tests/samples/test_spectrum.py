"""Counts of substrings against a direct count, and the kernels of the counts."""

import gzip
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dhsk
from dhsk.errors import InputError
from dhsk.progress import Progress
from dhsk.samples import counted, substring_counts
from dhsk.samples.tally import write_in_order

FEW = st.text("abAÄ日😀 ", max_size=24)
ANY = st.text(st.characters(exclude_characters="\0"), max_size=12)
BASES = st.text("ACGTUacgtuN", max_size=24)
RANGES = st.tuples(st.integers(0, 4), st.integers(1, 9)).map(lambda pair: (min(pair), max(pair)))


def direct(letters: Sequence[Any], lengths: tuple[int, int]) -> Counter[Any]:
    """Count every substring of a string by cutting it out."""
    low, high = lengths
    return Counter(
        letters[i : i + length]
        for length in range(low, high + 1)
        for i in range(len(letters) - length + 1)
    )


def assert_counted(found: Any, expected: Sequence[Counter[Any]]) -> None:
    """Features are all substrings in order, and each string has its counts."""
    counts, substrings = found
    assert substrings.tolist() == sorted(set().union(*expected))
    assert counts.dtype == np.int64
    assert type(counts)((counts.data, counts.indices, counts.indptr)).has_canonical_format
    for row, own in enumerate(expected):
        part = slice(*counts.indptr[row : row + 2])
        assert (
            dict(zip(substrings[counts.indices[part]].tolist(), counts.data[part], strict=True))
            == own
        )


@given(strings=st.lists(st.one_of(FEW, ANY), min_size=1), lengths=RANGES, batch=st.integers(1, 40))
@example(strings=["\ud800b", "b"], lengths=(1, 2), batch=3)  # half of a pair of UTF-16
@example(strings=["ab" * 50], lengths=(30, 64), batch=9)  # codes of several words
@settings(max_examples=60)
def test_counts_are_those_of_a_direct_count(
    strings: list[str], lengths: tuple[int, int], batch: int
) -> None:
    """Of any alphabet, all lengths and strings that are cut anywhere between two batches."""
    expected = [direct(text, lengths) for text in strings]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted, "_BATCH", batch)
        if not any(expected):
            with pytest.raises(InputError, match=r"no substrings of .* letters: give a smaller"):
                dhsk.spectrum_counts(strings, lengths)
            return
        assert_counted(dhsk.spectrum_counts(strings, lengths), expected)


@given(strings=st.lists(BASES, min_size=1), lengths=RANGES, canonical=st.booleans())
@example(strings=["ACGTT" * 20], lengths=(31, 31), canonical=True)  # two words
@settings(max_examples=60)
def test_dna_is_counted_without_other_letters(
    strings: list[str], lengths: tuple[int, int], canonical: bool
) -> None:
    """Case does not matter, U is T, N is in no feature; canonical ones join both strands."""
    pairs = str.maketrans("ACGT", "TGCA")
    expected = []
    for text in strings:
        own = direct(text.upper().replace("U", "T"), lengths)
        kept: Counter[str] = Counter()
        for substring, count in own.items():
            turned = substring.translate(pairs)[::-1]
            if "N" not in substring:
                kept[min(substring, turned) if canonical else substring] += count
        expected.append(kept)
    if any(expected):
        found = dhsk.spectrum_counts(strings, lengths, letters="dna", canonical=canonical)
        assert_counted(found, expected)


WORDS = st.lists(st.sampled_from(["a", "ab", "b", "été"]), max_size=8)


@given(rows=st.lists(WORDS, min_size=1), lengths=RANGES, batch=st.integers(1, 40))
def test_tokens_are_letters(rows: list[list[str]], lengths: tuple[int, int], batch: int) -> None:
    """Runs of characters between blanks of any kind."""
    expected = [direct(tuple(row), lengths) for row in rows]
    if not any(expected):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counted, "_BATCH", batch)
        counts, terms = dhsk.spectrum_counts(
            ["\t " + " \n".join(row) for row in rows], lengths, letters="tokens"
        )
    split = np.empty(len(terms), object)
    split[:] = [tuple(term.split()) for term in terms]
    assert_counted((counts, split), expected)


def test_the_example_of_zaki_and_meira() -> None:
    """Section 5.4: the 3-spectra of two strings of DNA, and their kernel."""
    counts, substrings = dhsk.spectrum_counts(["ACAGCAGTA", "AGCAAGCGAG"], 3)
    first, second = (dict(zip(substrings, row, strict=True)) for row in counts.toarray())
    assert {k: n for k, n in first.items() if n} == {
        "ACA": 1, "AGC": 1, "AGT": 1, "CAG": 2, "GCA": 1, "GTA": 1,
    }  # fmt: skip
    assert {k: n for k, n in second.items() if n} == {
        "AAG": 1, "AGC": 2, "CAA": 1, "CGA": 1, "GAG": 1, "GCA": 1, "GCG": 1,
    }  # fmt: skip
    assert dhsk.compute_gram(counts, dhsk.LinearKernel())[0, 1] == 3


@given(strings=st.lists(FEW, min_size=2, max_size=5), lengths=RANGES)
@settings(max_examples=20)
def test_the_linear_kernel_is_the_spectrum_kernel(
    strings: list[str], lengths: tuple[int, int]
) -> None:
    """The dot product over common substrings, summed by hand."""
    own = [direct(text, lengths) for text in strings]
    expected = [[sum(a[k] * b[k] for k in a) for b in own] for a in own]
    if any(own):
        counts, _ = dhsk.spectrum_counts(strings, lengths)
        np.testing.assert_array_equal((counts @ counts.T).toarray(), expected)
        found = dhsk.compute_gram(counts, dhsk.LinearKernel())[:, :]
        np.testing.assert_array_equal(found, expected)


def test_the_heat_kernel_of_the_counts(rng: np.random.Generator) -> None:
    """That of the square roots of their proportions, on the sphere."""
    strings = ["".join(rng.choice(list("ACGT"), 50)) for _ in range(6)]
    counts, substrings = dhsk.spectrum_counts(strings, 3)
    kernel = dhsk.HeatKernel.at_scale(len(substrings), 1.0)
    dense = counts.toarray().astype(float)
    unit = np.sqrt(dense / dense.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(
        dhsk.compute_gram(counts, kernel)[:, :], kernel(unit), rtol=1e-12, atol=0
    )


def test_known_substrings_are_counted_and_others_ignored() -> None:
    """A vocabulary makes the features, in its order; a string of others is a row of zeros."""
    _, substrings = dhsk.spectrum_counts(["banana", "bandana"], (1, 3), min_df=2)
    order = substrings[::-1]
    counts, same = dhsk.spectrum_counts(["anagram", "xyz"], (1, 3), vocabulary=order)
    assert same.tolist() == order.tolist()
    expected = direct("anagram", (1, 3))
    assert counts.toarray().tolist() == [[expected[k] for k in order], [0] * len(order)]


def test_rare_substrings_are_left_out() -> None:
    """Those in fewer strings than `min_df`, however often they are in one."""
    counts, substrings = dhsk.spectrum_counts(["aaab", "ab", "bb"], 2, min_df=2)
    assert (substrings.tolist(), counts.toarray().tolist()) == (["ab"], [[1], [1], [0]])


def test_characters_get_numbers_as_they_come(monkeypatch: Any) -> None:
    """ASCII letters after hundreds of others."""
    monkeypatch.setattr(counted, "_BATCH", 50)
    strings = ["".join(map(chr, range(1000, 1300))), "abc" * 40, "acb" * 40]
    assert_counted(dhsk.spectrum_counts(strings, (1, 3)), [direct(s, (1, 3)) for s in strings])


def test_counts_are_in_order_in_parts_of_any_size(monkeypatch: Any) -> None:
    """Of some entries, or of one string with more."""
    strings = ["cabac" * n for n in range(5)]
    for entries in (1, 7):
        monkeypatch.setattr(substring_counts, "_ENTRIES", entries)
        found = dhsk.spectrum_counts(strings, (1, 2))
        assert_counted(found, [direct(text, (1, 2)) for text in strings])


@pytest.mark.parametrize("dim", [1, 2, 256, 257, 100_000])
def test_rows_are_written_in_the_order_of_columns(rng: np.random.Generator, dim: int) -> None:
    """Whatever digits the columns have, with rows that are empty and terms that are left out."""
    sizes = np.minimum(dim, [0, 3, 0, 300, 1, 0])
    starts = 70 + np.concatenate([[0], np.cumsum(sizes)])
    terms = np.concatenate([rng.permutation(dim)[:size] for size in sizes]).astype(np.int32)
    columns = rng.permutation(dim).astype(np.int32)
    columns[columns >= dim - dim // 4] = -1
    counts = rng.integers(1, 2**31, len(terms)).astype(np.int32)
    indices, data = np.full((2, len(terms)), -7)
    n = write_in_order(terms, counts, starts, columns, indices, data)
    rows = np.repeat(np.arange(6), sizes)
    order = np.lexsort((columns[terms], rows))
    order = order[columns[terms[order]] >= 0]
    assert n == len(order)
    np.testing.assert_array_equal(indices[:n], columns[terms[order]])
    np.testing.assert_array_equal(data[:n], counts[order])


def test_the_table_grows(rng: np.random.Generator) -> None:
    """More substrings, and more letters, than there is room for in the beginning."""
    strings = ["".join(map(chr, rng.integers(65, 65 + n, 4000))) for n in (3, 40, 4000)]
    assert_counted(dhsk.spectrum_counts(strings, 4), [direct(text, (4, 4)) for text in strings])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"length": 0}, "substrings must have 1 to 64 letters, got length 0"),
        ({"length": 65}, "substrings must have 1 to 64 letters, got length 65"),
        ({"length": (70, 70)}, "got length 70"),
        ({"length": (3, 2)}, "a pair of the least and the largest"),
        ({"length": 2.5}, "length must be a whole number"),
        ({"length": True}, "length must be a whole number"),
        ({"length": 2, "letters": "rna"}, "letters must be 'any', 'dna' or 'tokens'"),
        ({"length": 2, "letters": "tokens", "canonical": True}, "no reverse complement"),
        ({"length": 2, "canonical": 1}, "canonical must be True or False"),
        ({"length": 2, "min_df": 0}, "min_df must be a whole number of at least 1"),
        ({"length": 2, "vocabulary": ["ab", "abc"]}, "'abc' in the vocabulary is none of the"),
        ({"length": 2, "vocabulary": ["ab", "ab"]}, "in the vocabulary more than once"),
        ({"length": 2, "vocabulary": []}, "the vocabulary has no substrings"),
        ({"length": 2, "vocabulary": ["AC", "AN"], "letters": "dna"}, "'AN' in the vocabulary"),
        ({"length": 2, "vocabulary": ["AC", "GT"], "canonical": True}, "'GT' in the vocabulary"),
        ({"length": 2, "min_df": 9}, "in 9 or more strings: give a smaller --min-df"),
        ({"length": 9}, "no substrings of 9 letters: give a smaller --spectrum"),
    ],
)
def test_wrong_parameters_are_refused(given: dict[str, Any], message: str) -> None:
    """With the value, and a way out."""
    with pytest.raises(InputError, match=message):
        dhsk.spectrum_counts(["abab", "ACGT"], **given)


@pytest.mark.parametrize(
    ("strings", "message"),
    [
        ([], "the strings is empty: it has no strings"),
        (["ab", "a\0b"], r"the strings: row 1 \(counted from 0\) holds NUL characters"),
        (["ab", 3], r"row 1 \(counted from 0\) is no string but of type int"),
    ],
)
@pytest.mark.parametrize("letters", ["any", "tokens"])
def test_wrong_strings_are_refused(strings: Any, message: str, letters: Any) -> None:
    """With the first wrong one."""
    with pytest.raises(InputError, match=message):
        dhsk.spectrum_counts(strings, 1, letters=letters)


def test_strings_in_memory_are_samples() -> None:
    """A spectrum opens a sequence of strings, and a generator is counted too."""
    strings = ["banana", "bandana"]
    samples = dhsk.open_samples(strings, vectorizer=dhsk.Spectrum(2))
    (block,) = samples.blocks(10)
    counts, substrings = dhsk.spectrum_counts(iter(strings), 2)
    assert samples.feature_names == tuple(substrings)
    assert samples.ids(10) is None
    assert (block != counts).nnz == 0


@pytest.mark.parametrize("source", ["list", "generator", "file", "gz", "tokens"])
def test_counting_reports_letters(
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Of about how many, if that is known, and how many substrings there are; silent by default."""
    monkeypatch.setattr(counted, "_BATCH", 64)
    strings, options = ["ACGT" * 20, "GATTACA" * 10, "CC" * 30], dict[str, Any]()
    given: Any = strings
    if source == "generator":
        given = iter(strings)
    elif source == "tokens":
        given, options = [" ".join(text) for text in strings], {"letters": "tokens"}
    elif source in ("file", "gz"):
        given = tmp_path / ("s.txt.gz" if source == "gz" else "s.txt")
        with gzip.open(given, "wt") if source == "gz" else given.open("w") as file:
            file.write("\n".join(strings) + "\n")
    seen: list[Progress] = []
    counts, _ = dhsk.spectrum_counts(given, 3, progress=seen.append, **options)
    assert counts.shape[0] == 3
    letters = sum(map(len, strings))
    assert seen[-1] == Progress("letters", letters, letters)
    assert len(seen) > 2
    assert all(event.done < event.total for event in seen[:-1])
    if source in ("list", "file"):
        assert letters <= seen[0].total <= letters + 3
    assert "different substrings" in seen[0].detail
    assert capfd.readouterr() == ("", "")
