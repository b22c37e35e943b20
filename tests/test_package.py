"""The front door: names, lazy loading, version."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires, version
from pathlib import Path

import pytest

import dhsk
from tests.parsed import parsed

ROOT = Path(__file__).parents[1]

OWN = {"dhsk", "_typeshed"}
"""Not libraries: this one, and what only type checkers know."""

HEAVY = {"numpy", "scipy", "sklearn", "dask", "distributed", "zarr", "pandas", "matplotlib"}


@pytest.mark.slow
def test_every_public_name_loads() -> None:
    """What `dir` shows can be had, and is what its home calls it."""
    for name in dir(dhsk):
        assert getattr(dhsk, name).__name__ == name


def test_unknown_name_is_an_attribute_error() -> None:
    """A wrong name fails as in any module."""
    with pytest.raises(AttributeError, match="no attribute 'HeatKernle'"):
        dhsk.HeatKernle  # noqa: B018


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("GridSearchCV", "cross_validate"),
        ("HeatSVM", "HeatSVC"),
        ("compute_grams", "compute_gram"),
        ("HeatSVR", r"SVR\(kernel='heat'\)"),
        ("NystromSVR", "NystromRidge"),
        ("GaussianProcessClassifier", r"scikit-learn's CalibratedClassifierCV\(dhsk.SVC\(\)\)"),
        ("RandomizedSearchCV", "scikit-learn's, which takes estimators of dhsk"),
        ("cross_val_predict", r"cross_validate\(...\).out_of_fold\(\), or scikit-learn's"),
    ],
)
def test_a_name_of_scikit_learn_or_nearly_ours_says_which_is_meant(name: str, meant: str) -> None:
    """Others get no guess."""
    with pytest.raises(AttributeError, match=f"{name}': did you mean {meant}\\?$"):
        getattr(dhsk, name)
    with pytest.raises(AttributeError, match=r"'Forest'$"):
        dhsk.Forest  # noqa: B018


def test_version_is_that_of_the_distribution() -> None:
    """One place holds the version."""
    assert dhsk.__version__ == version("dhsk")


def test_changes_have_the_version_that_comes() -> None:
    """The newest heading is that version; before the first release nothing has changed."""
    changes = (ROOT / "CHANGELOG.md").read_text()
    comes = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert re.findall(r"^## (\S+) - (?:unreleased|\d{4}-\d\d-\d\d)$", changes, re.M)[0] == comes
    assert comes != "0.1.0" or len(changes.splitlines()) <= 60


def test_importing_loads_nothing_heavy() -> None:
    """`import dhsk` alone costs no library: they load with the first name that needs them."""
    code = "import sys, dhsk; print(*{m.partition('.')[0] for m in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(run.stdout.split())


def test_free_threaded_builds_are_refused() -> None:
    """Before anything else fails, with the way out."""
    build = "3.14.2 free-threading build (main, Nov 2 2026, 10:00:00) [GCC 14.2.0]"
    code = f"import sys; sys.version = {build!r}; import dhsk"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == (
        "ImportError: dhsk does not work with this Python, a free-threaded build (3.14.2t): "
        "install the usual build of Python 3.11 or newer, and dhsk there"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("imports", "unneeded"),
    [
        ("import dhsk; dhsk.HeatSVC", {"zarr", "dask.array"}),
        ("import dhsk.models.train_exact, dhsk.models.train_low_rank", {"sklearn"}),
    ],
)
def test_fits_load_no_library_that_few_of_them_need(imports: str, unneeded: set[str]) -> None:
    """Which take half a second each: estimators of stores, commands and workers of estimators."""
    code = f"import sys; {imports}; print({unneeded!r} & set(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "set()"


def test_every_library_that_is_imported_is_required() -> None:
    """By its own name: that another library needs it today is no promise."""
    nodes = [node for file in Path(dhsk.__file__).parent.rglob("*.py") for node in parsed(file)]
    imported = {
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    others = {name.partition(".")[0] for name in imported} - sys.stdlib_module_names - OWN
    names = {re.split(r"[^\w.-]", line)[0].lower() for line in requires("dhsk") or ()}
    homes = {**packages_distributions(), "cupy": ["cupy-cuda13x"]}  # tests do not install it
    missing = {name for name in others if not names & {home.lower() for home in homes[name]}}
    assert not missing
