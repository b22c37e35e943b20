"""Arrows between modules point one way, that of the rooms in DESIGN.md, and all is small."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

import dhsk
from tests.parsed import parsed

PACKAGE = Path(dhsk.__file__).parent

PURE = ("kernels", "solvers", "linear")
"""Rooms of mathematics on arrays."""

MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60
"""Of a file."""

MOST_PARAMETERS = 7

MANY_PARAMETERS = 9
"""Functions that may have more parameters, besides constructors of estimators: scikit-learn reads
theirs from the signature."""


def order() -> list[str]:
    """Modules as DESIGN lists them, such as ``kernels.base``, each before those that may use it."""
    text = (PACKAGE / "DESIGN.md").read_text()
    (block,) = re.findall(r"^## Rooms\n.*?\n\n((?: {4}[^\n]*\n)+)", text, re.M | re.S)
    found, folder = [], ""
    for line in block.splitlines():
        first, *names = line.split()
        if (PACKAGE / first).is_dir() and line[4] != " ":
            folder = first.replace("/", ".") + "."
        elif line[4] != " ":  # files at the top
            folder, names = "", [first, *names]
        else:
            names = [first, *names]
        found += [folder + name for name in names]
    return found


ORDER = order()


def name_of(file: Path) -> str:
    """Dotted name of a module inside the package."""
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts)


def modules() -> list[Path]:
    """Every module; packages' own files only say what a folder is, or gather its names."""
    return [file for file in PACKAGE.rglob("*.py") if file.name != "__init__.py"]


nodes_of = cache(parsed)


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """Several tests read the trees of all files, whose 350,000 nodes go with the last one."""
    yield
    nodes_of.cache_clear()


@cache
def imports_of(file: Path) -> set[str]:
    """Full names of what a file imports, at the top or inside functions."""
    names: set[str] = set()
    for node in nodes_of(file):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            assert node.module is not None
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def last_of(package: str) -> int:
    """Place in the order of the last module that a package gathers names from."""
    return max(ORDER.index(name_of(f)) for f in (PACKAGE / package).rglob("*.py") if f in MODULES)


MODULES = modules()


def used(file: Path) -> dict[str, int]:
    """What a file imports from the package, and how far down the list that is."""
    found = {}
    for full in imports_of(file):
        parts = full.split(".")[1:] if full.startswith("dhsk.") else []
        names = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
        module = next((name for name in names if name in ORDER), None)
        if module is not None:
            found[full] = ORDER.index(module)
        elif parts and (PACKAGE / parts[0]).is_dir():
            found[full] = last_of(parts[0])
    return found


def test_every_module_has_its_place() -> None:
    """No module is built without one, and none is listed that is not there."""
    assert sorted(map(name_of, MODULES)) == sorted(ORDER)


def test_modules_import_only_what_stands_before_them() -> None:
    """No import goes down the list."""
    wrong = {
        (name_of(file), full)
        for file in MODULES
        for full, place in used(file).items()
        if place >= ORDER.index(name_of(file))
    }
    assert not wrong


def test_mathematics_knows_no_infrastructure() -> None:
    """Importing every module of these rooms loads neither Dask nor zarr; which one does is said."""
    names = [f"dhsk.{name}" for name in ORDER if name.partition(".")[0] in PURE]
    code = (
        "import importlib, sys\nfound = []\n"
        f"for name in {names}:\n"
        "    importlib.import_module(name)\n"
        "    if {'dask', 'distributed', 'zarr'} & set(sys.modules):\n"
        "        found.append(name)\n"
        "print(found[:1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_few_modules_know_zarr() -> None:
    """Those of the user's zarr folders: what stores say to zarr is written without it."""
    users = {
        str(file.relative_to(PACKAGE))
        for file in MODULES
        if "zarr" in {name.split(".")[0] for name in imports_of(file)}
    }
    assert users == {
        "samples/zarr_folder.py",
        "samples/zarr_objects.py",
    }


# Names in strings

LAZY = {"__init__", "commands.manner"}
"""The front door and the commands load what they name when it is used."""

ROOMS = {one.rpartition(".")[0] for one in ORDER} - {""}

WRITES_CODE = {"report.reproduce", "estimators.documentation"}
"""Their strings are programs, and docstrings, for people."""


def classes_of_words() -> set[str]:
    """Names of classes that are no plain words, such as GramStore."""
    names = {one.name for one in definitions() if one.is_class}
    return {name for name in names if re.search("[a-z].*[A-Z]", name)}


def called(node: ast.AST) -> str:
    """Name of the function that is called, without its module; empty of what is no call."""
    function = node.func if isinstance(node, ast.Call) else None
    return str(getattr(function, "id", getattr(function, "attr", "")))


def strings_of(file: Path) -> Iterator[str]:
    """Strings, and first parts of those with values in them, but types and lists of names."""
    nodes, passed = nodes_of(file), set()
    for node in nodes:
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            parts.append(node.value)
        if called(node) in ("cast", "TypeVar"):
            parts.append(node)
        passed |= {id(one) for part in parts if part is not None for one in ast.walk(part)}
    for node in nodes:
        value = node.value if isinstance(node, ast.Constant) and id(node) not in passed else None
        if isinstance(value, str):
            yield value


def names_ours(text: str, classes: set[str]) -> bool:
    """Whether a string is a module of ours, `module:Class`, or a class."""
    name = text.partition(":")[0]
    module = name.removeprefix("dhsk.")
    return ("." in name and (module in ORDER or module in ROOMS)) or text in classes


def test_no_module_names_another_in_a_string() -> None:
    """What is named so is not found by who reads, moves or types it."""
    classes = classes_of_words()
    found = {
        (name_of(file), text)
        for file in MODULES
        if name_of(file) not in LAZY | WRITES_CODE
        for text in strings_of(file)
        if names_ours(text, classes)
    }
    assert not found
    assert "SvcModel" in classes
    for named in ("dhsk.gram.matrix", "gram.storage", "dhsk.models.exact:SvcModel", "SvcModel"):
        assert names_ours(named, classes)


def test_modules_are_imported_by_statements() -> None:
    """By `import_module` only what may be lacking, and what is loaded late by a table."""
    found = set()
    for file in MODULES:
        for node in nodes_of(file):
            if isinstance(node, ast.Call) and called(node) == "import_module":
                asked = ast.unparse(node.args[0]).strip("f'\"")
                found |= {name_of(file)} if asked.startswith("dhsk") else set()
    assert found == LAZY - {"__init__"}


# Sizes

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Definition(NamedTuple):
    """A class, or a function or method with its size."""

    module: str
    name: str
    is_class: bool
    parameters: int = 0
    lines: int = 0


@cache
def definitions() -> list[Definition]:
    """Every class and function of the package, methods too."""
    found = []
    for file in PACKAGE.rglob("*.py"):
        module = name_of(file)
        for node in nodes_of(file):
            if isinstance(node, ast.ClassDef):
                found.append(Definition(module, node.name, is_class=True))
            elif isinstance(node, Function):
                sizes = parameters_of(node), lines_of(node)
                found.append(Definition(module, node.name, False, *sizes))
    return found


def parameters_of(node: Function) -> int:
    """Number of parameters, self and cls not counted."""
    given = node.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    names += [one.arg for one in (given.vararg, given.kwarg) if one]
    return len([name for name in names if name not in ("self", "cls")])


def lines_of(node: Function) -> int:
    """Lines of the body of a function, without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_one_name_is_one_class() -> None:
    """No name of a class stands for two things."""
    names = Counter(one.name for one in definitions() if one.is_class)
    assert not {name for name, count in names.items() if count > 1}


def test_files_are_short() -> None:
    """A reader of a file can hold it."""
    lengths = {
        str(file.relative_to(PACKAGE)): len(file.read_text().splitlines())
        for file in PACKAGE.rglob("*.py")
    }
    assert not {file: length for file, length in lengths.items() if length > MOST_LINES}


def test_few_functions_have_many_parameters() -> None:
    """Estimators, commands and their like list what a user may choose; others group it."""
    many = [
        f"{one.module}.{one.name}"
        for one in definitions()
        if one.parameters > MOST_PARAMETERS
        and (one.module.partition(".")[0], one.name) != ("estimators", "__init__")
    ]
    assert len(many) <= MANY_PARAMETERS, many


def test_functions_are_short() -> None:
    """A function is read at a glance: signature and docstring are not counted."""
    long = [f"{d.module}.{d.name}" for d in definitions() if d.lines > MOST_LINES_OF_A_FUNCTION]
    assert not long


# Tests

TESTS = Path(__file__).parent

MAY_BE_PRIVATE = re.compile(r"(set|del)attr\(|\bimport\b[^\n]*[ (]_[a-z]|^    _[a-z]\w*,$", re.M)
"""What a file has that patches something, or imports a private name."""


def room_of(test: Path) -> str:
    """Room that a file tests, or the module at the top, such as ``compiled``."""
    parts = test.relative_to(TESTS).parts
    return parts[0] if len(parts) > 1 else test.stem.removeprefix("test_")


def origins(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Full name of each name that a file imports: ``chunked`` is ``dhsk.samples.chunked``."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return found


def patched(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Full names of what a file's `setattr` and `delattr` replace; instances have none."""
    known = origins(nodes)
    for node in nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr not in ("setattr", "delattr"):
            continue
        match node.args:
            case [ast.Constant() | ast.JoinedStr() as target, *_]:
                yield ast.unparse(target).lstrip("f").strip("'\"")
            case [target, ast.Constant(value=name), *_]:
                first, dot, rest = ast.unparse(target).partition(".")
                yield f"{known.get(first, first)}{dot}{rest}.{name}"


def is_private_elsewhere(name: str, room: str) -> bool:
    """Whether a name is private, but not to this room: ``dhsk.samples.names._parsed``."""
    private = any(part.startswith("_") and not part.endswith("__") for part in name.split("."))
    return private and not home_of(name).startswith(f"dhsk.{room}.")


def home_of(name: str) -> str:
    """The name, or where its class is defined: ``dhsk.GramMatrix._tile`` is of dhsk.gram."""
    package, kind, *rest = name.split(".")
    if package == "dhsk" and kind[0].isupper():
        return ".".join([getattr(import_module(package), kind).__module__, kind, *rest])
    return name


def test_tests_leave_what_is_private_to_its_room() -> None:
    """Of another room than the one they test, they patch and import public names only."""
    found = {}
    for file in TESTS.rglob("*.py"):
        if not MAY_BE_PRIVATE.search(file.read_text()):
            continue
        nodes = nodes_of(file)
        ours = [n for n in (*patched(nodes), *origins(nodes).values()) if n.startswith("dhsk.")]
        wrong = {name for name in ours if is_private_elsewhere(name, room_of(file))}
        found |= {str(file.relative_to(TESTS)): wrong} if wrong else {}
    assert not found
