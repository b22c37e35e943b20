"""What a release is made of says the same everywhere: versions, dependencies, actions, links."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.project import ABOUT, PROJECT, ROOT, bounds

yaml = pytest.importorskip("yaml", reason="workflows and citation are YAML")

WORKFLOWS = ("ci", "release")


def workflow(name: str) -> dict[str, Any]:
    """A workflow; YAML 1.1 reads its key `on` as True."""
    found: dict[str, Any] = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text())
    return found


def steps(name: str) -> Iterator[dict[str, Any]]:
    """All steps of a workflow."""
    for job in workflow(name)["jobs"].values():
        yield from job["steps"]


def release(text: str) -> tuple[int, ...]:
    """Numbers of a version, without zeros at the end: 2.0 is 2.0.0."""
    return tuple(map(int, re.sub(r"(\.0)+$", "", text).split(".")))


def test_the_oldest_dependencies_are_the_lower_bounds() -> None:
    """CI installs exactly what pyproject.toml allows at the least."""
    lines = (ROOT / "tests" / "oldest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    needed = bounds(ABOUT["dependencies"])
    assert {name: release(text) for name, text in pinned.items()} == {
        name: release(text) for name, text in needed.items()
    }


def test_the_citation_is_of_this_version() -> None:
    """With the names and the licence of the package."""
    given = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (given["version"], given["license"]) == (ABOUT["version"], ABOUT["license"])
    assert given["repository-code"] == ABOUT["urls"]["Homepage"]
    assert [one["name"] for one in given["authors"]] == [one["name"] for one in ABOUT["authors"]]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_pinned(name: str) -> None:
    """By the hash of a commit, since tags move; one action has one hash everywhere."""
    used = {step["uses"] for one in WORKFLOWS for step in steps(one) if "uses" in step}
    assert len({one.partition("@")[0] for one in used}) == len(used)
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) for one in used)
    assert workflow(name)["permissions"] == {"contents": "read"}


@pytest.mark.parametrize(("name", "job"), [("ci", "test"), ("release", "try")])
def test_the_oldest_and_the_newest_python_are_tried(name: str, job: str) -> None:
    """Those that the classifiers name."""
    minors = re.findall(r":: 3\.(\d+)$", "\n".join(ABOUT["classifiers"]), re.M)
    named = sorted(map(int, minors))
    tried = workflow(name)["jobs"][job]["strategy"]["matrix"]["python"]
    assert tried == [f"3.{named[0]}", f"3.{named[-1]}"]
    assert ABOUT["requires-python"] == f">={tried[0]}"


def test_the_page_of_an_index_has_whole_links() -> None:
    """The substitutions leave no relative link or picture of README; those within it stay."""
    text = (ROOT / "README.md").read_text() + "\n[within](#start), ![a](docs/b.png)\n"
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for one in hook["substitutions"]:
        text = re.sub(one["pattern"], one["replacement"], text)
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert all(re.match(r"https://|#", target) for target in targets)
    assert targets[-2:] == [
        "#start",
        "https://raw.githubusercontent.com/dhsk/dhsk/v$HFPR_VERSION/docs/b.png",
    ]
