"""Options of how samples are read: tables, and what is counted in texts."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import click

from dhsk.commands.parameters import LENGTHS, LONGEST, TEXTS
from dhsk.commands.table import DATA, gathered, option, rows_of
from dhsk.samples import AnyVectorizer, Spectrum, Vectorizer
from dhsk.samples.spectrum import LetterKind
from dhsk.systems import quoted


@dataclass(frozen=True)
class Reading:
    """How CSV and TSV files are read, and how words or substrings of texts are counted."""

    drop_columns: tuple[str, ...]
    """Columns that are not features."""
    header: bool | None
    """Whether the first row names the columns; None to find out."""
    id_column: str | None
    """Column of the samples' ids."""
    min_df: int
    ngrams: int
    stop_words: Literal["english"] | None
    spectrum: tuple[int, int] | None
    """Least and largest length of the substrings that are counted in place of words."""
    letters: LetterKind | None
    canonical: bool
    n_features: int | None
    """Columns that substrings are hashed to; None to count them exactly."""

    @property
    def vectorizer(self) -> AnyVectorizer:
        """How words, or with --spectrum substrings, of texts are counted."""
        own = {
            "--letters": self.letters is not None,
            "--canonical": self.canonical,
            "--hash": self.n_features is not None,
        }
        if self.spectrum is None:
            lone = next((name for name, given in own.items() if given), None)
            if lone is not None:
                raise click.UsageError(f"{lone} is for --spectrum: give --spectrum too")
            return Vectorizer(self.min_df, self.ngrams, self.stop_words)
        if self.ngrams != 1 or self.stop_words is not None:
            raise click.UsageError(
                "--ngrams and --stop-words are for words, but --spectrum counts substrings: leave "
                "out one of them; --letters tokens counts runs of words"
            )
        letters, hashed = self.letters or "any", self.n_features
        return Spectrum(self.spectrum, letters, self.canonical, self.min_df, n_features=hashed)

    def without(self, columns: Iterable[str]) -> "Reading":
        """The same with more columns that are not features."""
        return replace(self, drop_columns=tuple(dict.fromkeys((*self.drop_columns, *columns))))

    @property
    def of_texts(self) -> str:
        """The options that are for texts, in messages."""
        if self.spectrum is not None:
            return "--spectrum and its options"
        return "--min-df, --ngrams and --stop-words"

    @property
    def of_new_samples(self) -> "Reading":
        """The same without how words are counted, which a model knows."""
        words = replace(self, min_df=1, ngrams=1, stop_words=None)
        return replace(words, spectrum=None, letters=None, canonical=False, n_features=None)

    def counting(self, vectorizer: AnyVectorizer) -> "Reading":
        """The same with the options of a vectorizer."""
        rarest = replace(self, min_df=vectorizer.min_df)
        if isinstance(vectorizer, Vectorizer):
            return replace(rarest, ngrams=vectorizer.ngrams, stop_words=vectorizer.stop_words)
        given, usual = vectorizer.length, "dna" if vectorizer.canonical else "any"
        return replace(
            rarest,
            spectrum=given if isinstance(given, tuple) else (given, given),
            letters=None if vectorizer.letters == usual else vectorizer.letters,
            canonical=vectorizer.canonical,
            n_features=vectorizer.n_features,
        )

    @property
    def words(self) -> str:
        """These options on a command line, with a blank before each."""
        named = [("--drop-column", name) for name in self.drop_columns]
        if self.id_column is not None:
            named.append(("--id-column", self.id_column))
        for name in ("min_df", "ngrams", "stop_words"):
            value = getattr(self, name)
            if value != getattr(Vectorizer(), name):
                named.append((f"--{name.replace('_', '-')}", str(value)))
        if self.spectrum is not None:
            named.append(("--spectrum", "-".join(map(str, dict.fromkeys(self.spectrum)))))
        if self.letters is not None:
            named.append(("--letters", self.letters))
        if self.n_features is not None:
            named.append(("--hash", str(self.n_features)))
        how = {None: "", True: " --header", False: " --no-header"}[self.header]
        how += " --canonical" if self.canonical else ""
        return "".join(f" {option} {quoted(name)}" for option, name in named) + how


reading_options = gathered(
    "table",
    Reading,
    *rows_of(
        DATA,
        option(
            "--drop-column",
            "drop_columns",
            multiple=True,
            metavar="NAME",
            help="CSV column that is not a feature; may be repeated.",
        ),
        option(
            "--id-column",
            "--id",
            "id_column",
            metavar="NAME",
            help="CSV column, or field of .jsonl, that names the samples, not a feature.",
        ),
        option(
            "--header/--no-header",
            default=None,
            help="Whether the first row of CSV files names the columns. [default: found out]",
        ),
        option(
            "--min-df",
            type=TEXTS,
            default=1,
            help="Of texts: leave out words that are in fewer texts.",
        ),
        option(
            "--ngrams",
            type=LONGEST,
            default=1,
            help="Of texts: count terms of up to this many neighbouring words.",
        ),
        option(
            "--stop-words",
            type=click.Choice(["english"]),
            help="Of texts: leave out frequent words such as 'the'.",
        ),
        option(
            "--spectrum",
            type=LENGTHS,
            help="Of strings (.fasta, .fastq, lines of .txt) and texts: count substrings of this "
            "many letters, such as 6, or 1-6 for all lengths from 1 to 6.",
        ),
        option(
            "--letters",
            type=click.Choice(get_args(LetterKind)),
            help="With --spectrum: any character is a letter, or A, C, G and T (or U) alone, or "
            "tokens between blanks. [default: any]",
        ),
        option(
            "--canonical",
            is_flag=True,
            help="With --spectrum: count a DNA substring and its reverse complement as one.",
        ),
        option(
            "--hash",
            "n_features",
            type=int,
            metavar="N",
            help="With --spectrum: hash substrings to this many columns, where there are too many "
            "to have one each. [default: count exactly]",
        ),
    ),
)
