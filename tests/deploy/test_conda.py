"""deploy/conda: the recipe says what pyproject.toml says."""

import pytest

from tests.project import ABOUT, PROJECT, ROOT, bounds

yaml = pytest.importorskip("yaml", reason="the recipe is YAML")

NAMES = {"dask": "dask-core", "matplotlib": "matplotlib-base"}
"""What conda-forge calls them; its own `dask` and `matplotlib` bring browsers and windows."""


def test_the_recipe_is_one_of_rattler_build() -> None:
    """It is read by its schema, and makes one package for every system."""
    rattler = pytest.importorskip("rattler_build", reason="py-rattler-build, which CI installs")
    text = (ROOT / "deploy" / "conda" / "recipe.yaml").read_text()
    made = rattler.Stage0Recipe.from_yaml(text).render(rattler.VariantConfig())
    assert [(one.recipe.package.name, one.recipe.package.version) for one in made] == [
        ("dhsk", ABOUT["version"])
    ]


def test_the_recipe_has_the_dependencies_of_the_package() -> None:
    """And what builds it, with the same bounds and the same oldest Python."""
    given = yaml.safe_load((ROOT / "deploy" / "conda" / "recipe.yaml").read_text())
    assert given["context"]["version"] == ABOUT["version"]
    assert f">={given['context']['python_min']}" == ABOUT["requires-python"]
    needed = {NAMES.get(k, k): v for k, v in bounds(ABOUT["dependencies"]).items()}
    assert given["requirements"]["run"][0] == "python >=${{ python_min }}"
    assert bounds(given["requirements"]["run"][1:]) == needed
    assert bounds(given["requirements"]["host"][2:]) == bounds(PROJECT["build-system"]["requires"])
    scripts = [f"{name} = {home}" for name, home in ABOUT["scripts"].items()]
    assert given["build"]["python"]["entry_points"] == scripts
