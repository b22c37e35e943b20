"""Source as a tree, for tests that read the package."""

import ast
import gc
from pathlib import Path


def parsed(file: Path) -> list[ast.AST]:
    """Everything in a file.

    Under Python 3.11 a parse within a parse fails, "AST constructor recursion depth mismatch", and
    a finalizer of asyncio parses for the traceback that it logs: nothing is collected meanwhile,
    which halves the time too.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return list(ast.walk(ast.parse(file.read_text())))
    finally:
        if collects:
            gc.enable()
