"""Arrows between rooms point one way."""

import ast
from pathlib import Path

import dhsk

ROOMS = (
    "errors",
    "arrays",
    "caching",
    "progress",
    "files",
    "kernels",
    "samples",
    "report",
    "gram",
    "svm",
    "lowrank",
    "validation",
    "estimators",
    "processes",
    "cluster",
    "console",
    "connecting",
    "options",
    "kernel_plot",
    "kernel_command",
    "plan_command",
    "outcome",
    "train_command",
    "predict_command",
    "earlier_run",
    "cv_command",
    "verify_command",
    "cli",
    "__main__",
)
"""From the top: a room imports only from rooms above it, and from itself."""

PACKAGE = Path(dhsk.__file__).parent

NO_INFRASTRUCTURE = {"dask", "distributed", "zarr", "pathlib", "io", "os"}
"""What the mathematics must not know."""


def room_of(file: Path) -> str:
    """First part of a module's path inside the package."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(file: Path) -> set[str]:
    """Full names of the modules that a file imports, at the top or inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            names.add(node.module or "")
    return names


def rooms_used(file: Path) -> set[str]:
    """Rooms of the package that a file imports from."""
    parts = (name.split(".") for name in imports_of(file))
    return {p[1] for p in parts if p[0] == "dhsk" and len(p) > 1}


def modules() -> list[Path]:
    """Every module but the package's own front door."""
    return [f for f in PACKAGE.rglob("*.py") if f != PACKAGE / "__init__.py"]


def test_every_room_is_on_the_plan() -> None:
    """No room is built without a place in the order."""
    assert {room_of(file) for file in modules()} == set(ROOMS)


def test_rooms_import_only_from_above() -> None:
    """No import goes down or sideways."""
    wrong = {
        (str(file.relative_to(PACKAGE)), used)
        for file in modules()
        for used in rooms_used(file)
        if ROOMS.index(used) > ROOMS.index(room_of(file))
    }
    assert not wrong


def test_mathematics_knows_no_infrastructure() -> None:
    """Kernels import neither Dask nor zarr nor files."""
    for file in (PACKAGE / "kernels").rglob("*.py"):
        assert not {name.split(".")[0] for name in imports_of(file)} & NO_INFRASTRUCTURE, file


def test_few_modules_know_zarr() -> None:
    """Descriptions of all stores, and the user's zarr folders."""
    users = {
        str(file.relative_to(PACKAGE))
        for file in modules()
        if "zarr" in {name.split(".")[0] for name in imports_of(file)}
    }
    assert users == {
        "gram/descriptions.py",
        "samples/zarr_folder.py",
    }
