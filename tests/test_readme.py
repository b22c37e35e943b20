"""README is true: its Python runs, its files and options exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dhsk.commands.cli import commands

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md") if p.name != "README.md"),
    *(
        str(p.relative_to(ROOT))
        for p in ROOT.glob("*/**/README.md")
        if "site-packages" not in p.parts  # of an environment in the clone, whatever its name
    ),
]


@pytest.mark.slow
def test_python_of_the_readme_runs(tmp_path: Path) -> None:
    """The example is run as it stands, and the number in its comment is right."""
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert code
    said = re.search(r"best_score_ +# ([0-9.]+)", code[1])
    assert said
    script = tmp_path / "example.py"
    script.write_text(code[1] + f"\nassert abs(result.best_score_ - {said[1]}) < 1e-12\n")
    subprocess.run([sys.executable, "-W", "error", script], cwd=tmp_path, check=True)
    assert (tmp_path / "report.html").exists()


def test_readme_is_short() -> None:
    """A newcomer reads all of it."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Relative links name files of the repository."""
    for target in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text()):
        assert target.startswith("https://") or (ROOT / page).parent.joinpath(target).exists(), (
            target
        )


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_pages_exist(page: str) -> None:
    """Every `dhsk COMMAND --option` in a page is one that the command line knows."""
    text = (ROOT / page).read_text().replace("\\\n", " ")
    for line in re.findall(r"^(?:\$ )?dhsk (.+)$", text, re.MULTILINE):
        command, *words = line.split("#")[0].split()
        help_text = CliRunner().invoke(commands, [command, "--help-all"]).output
        for word in words:
            if word.startswith("--"):
                assert word in help_text, line
