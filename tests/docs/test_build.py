"""The documentation builds without a warning, is complete, and opens without a network."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from click import Context

import dhsk
from dhsk.commands.cli import commands
from tests.browser import CHROMIUM, WHY_NOT, Browser

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NEEDED = ("sphinx", "myst_parser", "pydata_sphinx_theme", "numpydoc", "latex2mathml")
missing = [name for name in NEEDED if find_spec(name) is None]

builds = pytest.mark.skipif(
    bool(missing), reason=f"{', '.join(missing)} not installed: pip install '.[docs]'"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, built from a copy, by the command of docs/README.md."""
    folder = tmp_path_factory.mktemp("docs")
    for name in ("docs", "deploy", "examples"):
        ignored = shutil.ignore_patterns("_build", "api", "__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    (command,) = re.findall(r"^python (-m sphinx .+)$", (DOCS / "README.md").read_text(), re.M)
    run = subprocess.run(
        [sys.executable, *command.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return folder / "docs" / "_build"


def test_every_public_name_is_in_the_reference() -> None:
    """And nothing else is, each once."""
    listed = re.findall(r"^   dhsk\.(\w+)$", (DOCS / "api.md").read_text(), re.M)
    assert sorted(listed) == sorted(dhsk.__all__)


@builds
@pytest.mark.slow(seconds=30)
def test_pages_say_what_they_are_made_from(site: Path) -> None:
    """Docstrings with their parameters, help of every command, formulas that browsers draw."""
    for name in dhsk.__all__:
        page = (site / "api" / f"dhsk.{name}.html").read_text()
        assert "Examples" in page, name
    helps = (site / "commands.html").read_text()
    for name in commands.list_commands(Context(commands)):
        assert f"dhsk {name}" in helps
    formulas = (site / "mathematics.html").read_text()
    assert formulas.count("<math") > 20
    assert "$" not in re.sub(r"<(script|pre)\b.*?</\1>", "", formulas, flags=re.S)


@builds
@pytest.mark.slow(seconds=30)
@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
def test_pages_open_without_complaints(site: Path) -> None:
    """No error in the console, no request, and on a phone nothing that scrolls sideways."""
    pages = [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]
    assert len(pages) > len(dhsk.__all__)
    complaints, wide = {}, {}
    with Browser() as browser:
        for page in pages:
            opened = browser.open(page, width=390)
            complaints[page.name] = opened.complaints
            wide[page.name] = opened.width
            assert opened.text
    assert {name: said for name, said in complaints.items() if said} == {}
    assert {name: width for name, width in wide.items() if width > 390} == {}
