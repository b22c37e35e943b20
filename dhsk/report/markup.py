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
