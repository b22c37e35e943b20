"""Counts of words in texts, as scikit-learn's `CountVectorizer` makes them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from dhsk.errors import InputError

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer


@dataclass(frozen=True)
class Vectorizer:
    r"""How raw texts become counts of words, one feature a word.

    What it does not name is as in scikit-learn's `CountVectorizer()`: letters are made lower case,
    a word is a run of two or more letters, digits or underscores, and features are in the order of
    their words.

    Parameters
    ----------
    min_df
        Least number of documents with a word: rarer words are left out.
    ngrams
        Largest number of neighbouring words that are counted as one term: 1 counts single words, 2
        pairs of neighbours too.
    stop_words
        "english" leaves out the words of scikit-learn's list, such as "the"; None leaves out none.
    vocabulary
        Terms that are counted, one a feature; others are ignored. None to learn them from the
        texts.

    Examples
    --------
    >>> import dhsk
    >>> from pathlib import Path
    >>> _ = Path("posts.jsonl").write_text('{"text": "A red rose"}\n{"text": "Red wine"}\n')
    >>> samples = dhsk.open_samples("posts.jsonl", vectorizer=dhsk.Vectorizer(min_df=1))
    >>> samples.feature_names
    ('red', 'rose', 'wine')
    """

    min_df: int = 1
    ngrams: int = 1
    stop_words: Literal["english"] | None = None
    vocabulary: tuple[str, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("min_df", "ngrams"):
            value = getattr(self, name)
            if not is_whole(value) or value < 1:
                raise InputError(f"{name} must be a whole number of at least 1, got {value!r}")
        if self.stop_words not in (None, "english"):
            raise InputError(f"stop_words must be 'english' or None, got {self.stop_words!r}")

    @property
    def settings(self) -> dict[str, Any]:
        """JSON values of all but the vocabulary."""
        return {"min_df": self.min_df, "ngrams": self.ngrams, "stop_words": self.stop_words}

    def analyzer(self) -> Callable[[str], list[str]]:
        """Function that gives the terms of a text, with repetitions."""
        found: Callable[[str], list[str]] = self._counter().build_analyzer()
        return found

    def to_sklearn(self) -> "CountVectorizer":
        """The same as a vectorizer of scikit-learn, for texts in memory.

        With a vocabulary its `transform` gives the features of a model that was trained on text:
        ``svc.predict(svc.model_.vectorizer.to_sklearn().transform(texts))``.
        """
        return self._counter(
            min_df=1 if self.vocabulary else self.min_df, vocabulary=self.vocabulary
        )

    def _counter(self, **given: Any) -> "CountVectorizer":
        from sklearn.feature_extraction.text import CountVectorizer

        return CountVectorizer(ngram_range=(1, self.ngrams), stop_words=self.stop_words, **given)


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)
