"""HTML in which escaping is the default: whatever is not `Html` is text, and is escaped."""

from collections.abc import Iterable
from html import escape


class Html(str):
    """Text that is HTML already and goes into a page as it is."""

    __slots__ = ()


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
    """Return a table; the first cell of each row is its header, and `head` may be empty."""
    columns = joined(tag("th", h, scope="col") for h in head)
    top = tag("thead", tag("tr", columns)) if columns else ""
    body = tag("tbody", joined(tag("tr", _row(row)) for row in rows))
    return tag("div", tag("table", top, body, **attributes), class_="scroll")


def _row(cells: Iterable[object]) -> Html:
    first, *rest = cells
    return joined([tag("th", first, scope="row"), *(tag("td", c) for c in rest)])


def section(title: str, note: object, *content: object) -> Html:
    """Return a section of the page; `note` may be empty."""
    words = [tag("p", note, class_="note")] if note else []
    return tag("section", tag("h2", title), *words, *content)


def figure_row(svgs: Iterable[Html]) -> Html:
    """Return figures side by side, as far as there is room."""
    return tag("div", *(tag("figure", svg) for svg in svgs), class_="figures")


def colour_scale(colours: list[str], low: str, high: str) -> Html:
    """Return a bar of colours between the words for its ends."""
    bar = tag("i", style=f"background: linear-gradient(to right, {', '.join(colours)})")
    return tag("p", low, bar, high, class_="scale note")
