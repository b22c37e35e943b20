"""The directive ``commands``: each command of `dhsk` with the text of its `--help-all`."""

from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dhsk.commands.cli import COMMANDS, commands
from dhsk.commands.manner import help_of

WIDTH = 88


class Commands(SphinxDirective):
    """One section a command."""

    def run(self) -> list[nodes.Node]:
        """Ask each command for its help."""
        context = click.Context(commands, info_name="dhsk", terminal_width=WIDTH)
        found = [self.section("dhsk", commands.get_help(context))]
        for name, command in sorted(COMMANDS.items()):
            own = click.Context(
                command.loaded, info_name=name, parent=context, terminal_width=WIDTH
            )
            found.append(self.section(f"dhsk {name}", help_of(own)))
        return found

    def section(self, title: str, text: str) -> nodes.Node:
        """Section with a literal block."""
        section = nodes.section(ids=[nodes.make_id(title)], names=[title])
        section += nodes.title(title, "", nodes.literal(title, title))
        section += nodes.literal_block(text, text, language="text")
        return section


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
