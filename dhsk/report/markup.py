"""HTML in which escaping is the default: whatever is not `Html` is text, and is escaped."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
Columns: TypeAlias = Mapping[str, Callable[[T], object]]
"""What makes a cell of an item, under each head of a table."""


class Html(str):
    """Text that is HTML already and goes into a page as it is."""

    __slots__ = ()


class Keyed(NamedTuple):
    """Content of a cell of a table, and the number that it is sorted by."""

    shown: object
    key: float


def tag(name: str, *children: object, **attributes: str) -> Html:
    """Return one element; `class_` stands for class, `aria_label` for aria-label."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


def joined(parts: Iterable[object]) -> Html:
    """Return the parts one after the other; those that are not `Html` are escaped."""
    return Html("".join(p if isinstance(p, Html) else escape(str(p)) for p in parts))


def table(head: Iterable[object], rows: Iterable[Iterable[object]], **attributes: str) -> Html:
    """Return a table; the first cell of each row is its header, and `head` may be empty.

    Of class "stacked", each row becomes a small list on a narrow window, with the heads as labels.
    """
    names = [str(h) for h in head]
    columns = joined(tag("th", name, scope="col") for name in names)
    top = tag("thead", tag("tr", columns)) if columns else ""
    labels = names[1:] if "stacked" in attributes.get("class_", "").split() else []
    body = tag("tbody", joined(tag("tr", _row(row, labels)) for row in rows))
    return tag("div", tag("table", top, body, **attributes), class_="scroll")


def listing(items: Iterable[T], columns: Columns[T], **attributes: str) -> Html:
    """Return a table with a row for each item."""
    rows = ([cell(item) for cell in columns.values()] for item in items)
    return table(columns, rows, **attributes)


def _row(cells: Iterable[object], labels: Sequence[str]) -> Html:
    first, *rest = cells
    own = [{"data_label": label} for label in labels] or [{} for _ in rest]
    cells = (_cell("td", cell, **name) for cell, name in zip(rest, own, strict=True))
    return joined([_cell("th", first, scope="row"), *cells])


def _cell(name: str, content: object, **attributes: str) -> Html:
    if isinstance(content, Keyed):
        return tag(name, content.shown, data_key=f"{content.key:.10g}", **attributes)
    return tag(name, content, **attributes)


def section(title: str, words: object, *content: object, anchor: str) -> Html:
    """Return a section of the page; `words` may be empty, and `anchor` is what links name."""
    return tag("section", tag("h2", title), note(words), *content, id=anchor)


def note(words: object) -> Html:
    """Return a paragraph beside figures and tables; empty without words."""
    return tag("p", words, class_="note") if words else Html()


def figure_row(svgs: Iterable[Html]) -> Html:
    """Return figures side by side, as far as there is room."""
    return tag("div", *(tag("figure", svg, **_least(svg)) for svg in svgs), class_="figures")


def _least(svg: Html) -> dict[str, str]:
    """The least width of a picture as a variable of its figure, which says that it scrolls."""
    width = re.search(r"min-width: (\d+pt)", svg.partition(">")[0])
    return {"style": f"--least: {width[1]}"} if width else {}


def colour_scale(colours: list[str], low: str, high: str) -> Html:
    """Return a bar of colours between the words for its ends."""
    bar = tag("i", style=f"background: linear-gradient(to right, {', '.join(colours)})")
    return tag("p", low, bar, high, class_="scale note")


def code(text: str) -> Html:
    """Return lines of code as they are."""
    return tag("pre", tag("code", text), tabindex="0")
