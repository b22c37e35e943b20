"""One HTML document that loads nothing: head, style, script and the file it is written to."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from dhsk.errors import InputError
from dhsk.objects.places import Place, parse_place, written
from dhsk.report.markup import Html, joined, tag


def write_page(
    path: str | Place, title: str, head: Html, sections: Sequence[Html], refresh: int = 0
) -> None:
    """Write a page of a head, links to its sections, and these; empty ones are left out.

    It replaces an older one only once it is whole; a browser loads it again after `refresh`
    seconds, if that is not 0. InputError if its folder does not exist.
    """
    target = parse_place("path", path)
    if isinstance(target, Path) and not target.parent.is_dir():
        raise InputError(f"the folder '{target.parent}' for the report does not exist; create it")
    page = _document(title, refresh, head, _contents(sections), *sections)
    with written(target, "w", encoding="utf-8", newline="\n") as file:
        file.write(page)


def _document(title: str, refresh: int, *body: object) -> str:
    """Return a whole page of a title and the content of its body.

    The browser itself refuses to load anything, or to run any script but the one that is named by
    its hash.
    """
    script = _resource("sort.js")
    allowed = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    head = (
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Html(f'<meta http-equiv="refresh" content="{refresh}">' if refresh else ""),
        tag("title", title),
        tag("style", Html(_resource("style.css"))),
    )
    content = tag("body", tag("main", *body), tag("script", Html(script)))
    return f"<!DOCTYPE html>\n{tag('html', tag('head', *head), content, lang='en')}\n"


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _contents(sections: Sequence[Html]) -> Html:
    """Return links to the sections that have an anchor; their headings are the words."""
    links = []
    for text in sections:
        if text.startswith('<section id="'):
            anchor = text.split('"', 2)[1]
            heading = text.split("<h2>", 1)[1].split("</h2>", 1)[0]
            links.append(tag("a", Html(heading), href=f"#{anchor}"))
    return tag("nav", joined(links), aria_label="Contents") if len(links) > 1 else Html()
