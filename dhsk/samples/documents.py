"""Raw texts in their order, from whatever source."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NoReturn

from dhsk.errors import InputError


class Documents(ABC):
    """Texts in their order, which can be read several times; one is in memory."""

    source: str
    """Where they come from, for messages."""

    @abstractmethod
    def texts(self) -> Iterator[str]:
        """Yield the texts."""

    @abstractmethod
    def ids(self) -> Iterator[str] | None:
        """Names of the texts; None if they have none."""

    def place(self, row: int) -> str:
        """Words for a text, in messages."""
        return f"{self.source}: row {row} (counted from 0)"

    def sound_texts(self) -> Iterator[str]:
        """Yield the texts; InputError for one of a binary file."""
        for row, text in enumerate(self.texts()):
            if "\0" in text:
                self.refuse_nul(row)
            yield text

    def refuse_nul(self, row: int) -> NoReturn:
        """Refuse a text with NUL characters."""
        raise InputError(
            f"{self.place(row)} holds NUL characters, as binary files do: leave it out, or save it "
            "as text"
        )
