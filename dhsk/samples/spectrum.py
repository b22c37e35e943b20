"""What counts as a feature of a string: its substrings of some lengths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

from dhsk.errors import InputError
from dhsk.kernels.base import chosen_parameter
from dhsk.samples.vectorizer import Vectorizer, is_whole

LetterKind = Literal["any", "dna", "tokens"]

LONGEST: Final = 64
"""Most letters of a substring that is a feature."""

MOST_COLUMNS: Final = 2**24
"""Most columns that substrings are hashed to: their names take 1.2 GB."""

_KIND: Final = "spectrum"


@dataclass(frozen=True)
class Spectrum:
    r"""How strings become counts of their substrings, one feature a substring.

    Of a string of m letters there are m - l + 1 substrings of length l, overlapping ones too; one
    that is shorter than l has none, a row of zeros. Features are in the order of their letters.

    Parameters
    ----------
    length
        Number of letters of a substring, the l-spectrum. Or the least and the largest number:
        (0, L) is the full spectrum up to L, in which the empty substring of length 0 is in m + 1
        places; (1, L) leaves that out.
    letters
        What a letter is. "any" is each character as it is. "dna" is A, C, G and T in upper or lower
        case, with the U of RNA as T, and no substring with another letter, such as N, is counted.
        "tokens" is a run of characters without blanks, such as a word.
    canonical
        Whether a substring and its reverse complement are one feature, the first of both in the
        alphabet. Letters are then "dna".
    min_df
        Least number of strings with a substring: rarer ones are left out.
    vocabulary
        Substrings that are counted, one a feature; others are ignored. None to learn them from the
        strings. Of tokens, with a blank between two.
    n_features
        Number of columns "#0", "#1" and so on that substrings are hashed to, at most 2**24, as in
        hash kernels [1]_; None counts each substring exactly. Nothing is learnt: a substring has
        the same column in every file and process, and the memory is that of the columns. Substrings
        that share a column are one feature, and a column does not tell which they are. Their
        products make inner products too large, never too small: of strings with p and q substrings
        and the exact spectrum kernel k, by (p q - k) / n_features on average over hashes. Random
        signs would make them right on average [2]_, but the maps to the sphere need counts that are
        not negative.

    Examples
    --------
    >>> import dhsk
    >>> from pathlib import Path
    >>> _ = Path("reads.fasta").write_text(">r1\nACAGCAGTA\n>r2\nAGCAAGCGAG\n")
    >>> samples = dhsk.open_samples("reads.fasta", vectorizer=dhsk.Spectrum(3))
    >>> samples.shape
    (2, 11)
    >>> samples.feature_names[:4]
    ('AAG', 'ACA', 'AGC', 'AGT')

    References
    ----------
    Zaki and Meira, "Data Mining and Analysis", section 5.4.

    .. [1] Shi, Petterson, Dror, Langford, Smola and Vishwanathan, "Hash Kernels for Structured
       Data", JMLR 10, 2009.
    .. [2] Weinberger, Dasgupta, Langford, Smola and Attenberg, "Feature Hashing for Large Scale
       Multitask Learning", ICML 2009.
    """

    length: int | tuple[int, int]
    letters: LetterKind = "any"
    canonical: bool = False
    min_df: int = 1
    vocabulary: tuple[str, ...] | None = field(default=None, repr=False)
    n_features: int | None = None

    def __post_init__(self) -> None:
        given: Any = self.length
        pair = tuple(given) if isinstance(given, tuple | list) else (given, given)
        if len(pair) != 2 or not all(map(is_whole, pair)) or pair[0] > pair[1]:
            raise InputError(
                "length must be a whole number, or a pair of the least and the largest, got "
                f"{given!r}"
            )
        length = pair[0] if pair[0] == pair[1] else pair
        if pair[0] < 0 or not 1 <= pair[1] <= LONGEST:
            raise InputError(f"substrings must have 1 to {LONGEST} letters, got length {length!r}")
        object.__setattr__(self, "length", length)
        chosen_parameter("letters", self.letters, get_args(LetterKind))
        if not isinstance(self.canonical, bool):
            raise InputError(f"canonical must be True or False, got {self.canonical!r}")
        if self.canonical and self.letters == "tokens":
            raise InputError("tokens have no reverse complement: leave out canonical")
        if self.canonical:
            object.__setattr__(self, "letters", "dna")
        if not is_whole(self.min_df) or self.min_df < 1:
            raise InputError(f"min_df must be a whole number of at least 1, got {self.min_df!r}")
        if self.n_features is not None:
            self._check_hashed(self.n_features)

    def _check_hashed(self, n_features: int) -> None:
        """Refuse a wrong number of columns, and what needs the substrings themselves."""
        if not is_whole(n_features) or not 1 <= n_features <= MOST_COLUMNS:
            raise InputError(
                f"the number of hashed columns, --hash (n_features), must be 1 to "
                f"{MOST_COLUMNS:,}, got {n_features!r}"
            )
        if self.vocabulary is not None:
            raise InputError(
                "hashed columns have no vocabulary: leave out n_features to count known substrings"
            )
        if self.min_df != 1:
            raise InputError(
                "hashed columns do not tell which substrings are rare: leave out --min-df "
                "(min_df), or --hash (n_features)"
            )

    @property
    def range(self) -> tuple[int, int]:
        """Least and largest length."""
        return self.length if isinstance(self.length, tuple) else (self.length, self.length)

    @property
    def settings(self) -> dict[str, Any]:
        """JSON values of all but the vocabulary."""
        return {
            "kind": _KIND, "length": list(self.range), "letters": self.letters,
            "canonical": self.canonical, "min_df": self.min_df,
        } | ({} if self.n_features is None else {"n_features": self.n_features})  # fmt: skip

    @property
    def label(self) -> str:
        """What is counted, in words."""
        low, high = self.range
        what = {"any": "letters", "dna": "bases A, C, G, T", "tokens": "tokens"}[self.letters]
        turned = ", with their reverse complements" if self.canonical else ""
        rare = "" if self.min_df == 1 else f", in {self.min_df} or more strings"
        length = f"{high}" if low == high else f"{low} to {high}"
        hashed = "" if self.n_features is None else f", hashed to {self.n_features:,} columns"
        return f"substrings of {length} {what}{turned}{rare}{hashed}"


AnyVectorizer: TypeAlias = Vectorizer | Spectrum
"""How raw texts become counts: of words, or of substrings."""


def known_features(vectorizer: AnyVectorizer | None) -> tuple[str, ...] | None:
    """Names of the features of a vectorizer; None if they are not known before counting."""
    if isinstance(vectorizer, Spectrum) and vectorizer.n_features is not None:
        return tuple(f"#{column}" for column in range(vectorizer.n_features))
    return None if vectorizer is None else vectorizer.vocabulary


def vectorizer_of(
    settings: Mapping[str, Any] | None, vocabulary: Sequence[str] | None
) -> AnyVectorizer | None:
    """Vectorizer of the result of `settings` and its terms; None without settings or terms."""
    if settings is None or vocabulary is None:
        return None
    if settings.get("kind") != _KIND:
        return Vectorizer(**settings, vocabulary=tuple(vocabulary))
    own = {name: value for name, value in settings.items() if name != "kind"}
    if "n_features" not in own:
        own["vocabulary"] = tuple(vocabulary)
    return Spectrum(tuple(own.pop("length")), **own)
