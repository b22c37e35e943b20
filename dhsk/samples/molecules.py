"""What strings seem to be, DNA, proteins or others, and the options that count their substrings."""

from collections import Counter
from typing import Final

_BASES: Final = frozenset("ACGTU")
_UNKNOWN: Final = frozenset("N-.")
"""Bases that are not known, and gaps."""

_ACIDS: Final = frozenset("ACDEFGHIKLMNPQRSTVWYX*")

_MOST: Final = 0.95
"""Share of letters from which strings are of such."""

_FEWEST: Final = 12
"""Least number of different amino acids."""


def letters_in(text: str) -> tuple[str, str]:
    """Words for the letters of strings, joined, and options that count their substrings."""
    counts = Counter(text)
    total, lower = max(len(text), 1), sum(n for one, n in counts.items() if one.islower())
    cased = lower + sum(n for one, n in counts.items() if one.isupper())
    case = f", {lower / cased:.0%} in lower case" if 0 < lower < cased else ""
    letters = Counter(text.upper())
    bases, unknown, acids = (
        sum(letters[one] for one in some) / total for some in (_BASES, _UNKNOWN, _ACIDS)
    )
    if bases > 1 - _MOST and bases + unknown >= _MOST:
        kind = "RNA" if letters["U"] > letters["T"] else "DNA"
        others = f", {1 - bases:.2%} other letters" if bases < 1 else ""
        said = "; --letters dna takes both cases and passes over others" if case or others else ""
        return f"{kind}{case}{others}{said}", " --spectrum 6 --letters dna"
    if acids >= _MOST and len(letters) >= _FEWEST and not case:
        return "amino acids", " --spectrum 1-3"
    return f"{len(counts):,} different{case}", " --spectrum 6"
