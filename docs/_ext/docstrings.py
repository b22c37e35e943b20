"""Docstrings as they are written: signatures from the source, and links in single backticks."""

import ast
import inspect
import textwrap
from dataclasses import is_dataclass
from typing import Any

from docutils import nodes
from sklearn.base import BaseEstimator
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

import dhsk


class Backticks(SphinxRole):
    """Single backticks: a link if they hold a public name of dhsk, else code."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Look the name up."""
        shown = nodes.literal(self.text, self.text)
        name = self.text.removeprefix("dhsk.")
        if name.split(".")[0] not in dhsk.__all__:
            return [shown], []
        link = addnodes.pending_xref(
            self.rawtext, shown, refdomain="py", reftype="obj", reftarget=f"dhsk.{name}"
        )
        link["refdoc"] = self.env.docname
        return [link], []


def signature_of(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, found: str | None, back: str | None
) -> tuple[str, str] | None:
    """Signature as the source has it, where types have their short names."""
    del app, options, found, back
    if what not in {"class", "function", "method"}:
        return None
    if what == "class":
        if issubclass(thing, BaseEstimator) and is_dataclass(thing):
            return signature_of_fields(thing), ""
        thing = vars(thing).get("__init__")
    try:
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))).body
    except (OSError, TypeError):  # made by dataclasses, or without source
        return None
    assert isinstance(node, ast.FunctionDef), name
    arguments = node.args
    if what != "function" and arguments.args and arguments.args[0].arg in {"self", "cls"}:
        del arguments.args[0]
    returned = "" if what == "class" or node.returns is None else ast.unparse(node.returns)
    return f"({ast.unparse(arguments)})", returned.strip("'")


def signature_of_fields(estimator: type[Any]) -> str:
    """Signature of an estimator, whose parameters are its own fields and those of its bases."""
    fields: dict[str, str] = {}
    for one in reversed(estimator.__mro__):
        if one.__module__.startswith("dhsk.") and "__dataclass_fields__" in vars(one):
            fields |= fields_of(one)
    parameters = inspect.signature(estimator).parameters.values()
    parts = [fields[one.name] for one in parameters]
    first = [one.kind for one in parameters].index(inspect.Parameter.KEYWORD_ONLY)
    return f"({', '.join([*parts[:first], '*', *parts[first:]])})"


def fields_of(part: type[Any]) -> dict[str, str]:
    """Fields that the body of a class annotates, with their types and values, by name."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
    assert isinstance(node, ast.ClassDef)
    fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
    return {ast.unparse(one.target): ast.unparse(one) for one in fields}


def is_foreign(
    app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what classes inherit from other libraries, and dunder methods but calls."""
    del app, what, options
    if name.startswith("_") and name not in {"__call__", "__getitem__", "__matmul__"}:
        return True
    home = getattr(thing, "__module__", None) or getattr(
        getattr(thing, "fget", None), "__module__", None
    )
    return True if home and not home.startswith("dhsk") else skip or None


def escape_bars(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Take the bars of absolute values for what they are; examples stay as they are."""
    del app, what, name, thing, options
    in_example = False
    for number, line in enumerate(lines):
        in_example = bool(line.strip()) and (in_example or line.lstrip().startswith(">>>"))
        if not in_example and "``" not in line:
            lines[number] = line.replace("|", "\\|")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the role, which is the default one, and the hooks of autodoc."""
    app.add_role("backticks", Backticks())
    app.connect("autodoc-process-signature", signature_of)
    app.connect("autodoc-skip-member", is_foreign)
    app.connect("autodoc-process-docstring", escape_bars, priority=100)  # before numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
