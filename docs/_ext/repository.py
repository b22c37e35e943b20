"""Files of the repository as pages, and links between them.

A line ``<!-- from: deploy/slurm/README.md -->`` in a page stands for the text of that file, or for
the cells of a notebook with their outputs. Links to a file that is a page so become links to the
page; those to other files become their paths.
"""

import json
import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from sphinx.application import Sphinx

FROM = re.compile(r"^<!-- from: (\S+) -->$", re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def pages_of(docs: Path) -> dict[str, str]:
    """Pages (without ".md", from `docs`) by the file that they show (from the repository)."""
    found = {}
    for page in docs.rglob("*.md"):
        name = page.relative_to(docs).with_suffix("").as_posix()
        found[f"docs/{name}.md"] = name
        found |= dict.fromkeys(FROM.findall(page.read_text(encoding="utf-8")), name)
    return found


def text_of(file: Path) -> str:
    """Text of a Markdown file, or of a notebook as Markdown."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".ipynb":
        return text
    return "\n\n".join(cell_text(cell) for cell in json.loads(text)["cells"])


def cell_text(cell: dict[str, Any]) -> str:
    """A cell of a notebook as Markdown, its outputs below its code."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    shown = [f"```python\n{source}\n```"]
    for output in cell["outputs"]:
        data = output.get("data", {"text/plain": output.get("text", "")})
        if "image/png" in data:
            picture = "".join(data["image/png"].split())
            shown.append(f"![Output of the cell above](data:image/png;base64,{picture})")
        elif "text/html" in data:
            html = "".join(data["text/html"])
            shown.append(f"````{{raw}} html\n{html}\n````")
        else:
            shown.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    return "\n\n".join(shown)


def insert_files(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put files in the place of their names, and turn links round."""
    docs = Path(app.srcdir)
    if not (docs / f"{docname}.md").is_file():
        return
    pages = pages_of(docs)
    here = PurePosixPath(docname).parent

    def turned(text: str, home: PurePosixPath) -> str:
        def link(match: re.Match[str]) -> str:
            image, words, target, anchor = match.groups()
            file = normpath(home / target)
            folder = f"{file}/README.md"
            page = pages.get(file) or pages.get(folder)
            if image:
                return f"![{words}]({relpath(f'../{file}', here)})"
            if page:
                return f"[{words}]({relpath(page, here)}.md{anchor or ''})"
            return match[0] if file.startswith("docs/") else f"{words} (`{file}`)"

        return LINK.sub(link, text)

    def inserted(match: re.Match[str]) -> str:
        file = match[1]
        app.env.note_dependency(str(docs.parent / file))
        return turned(text_of(docs.parent / file), PurePosixPath(file).parent)

    own = turned(source[0], PurePosixPath("docs") / here)
    source[0] = FROM.sub(inserted, own)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hook."""
    app.connect("source-read", insert_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
