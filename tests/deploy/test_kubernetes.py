"""Checks Kubernetes manifests without an API server: unknown kinds and fields are errors.

Core kinds by the schemas in kubernetes-validate, Dask's kinds by the definitions that ship inside
dask-kubernetes. An API server drops unknown fields of the latter in silence; here they are errors.
"""

import copy
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dhsk.execution.cluster_options import Pods
from dhsk.execution.pods import pods_spec

for _needed in ("kubernetes_validate", "dask_kubernetes", "jsonschema", "yaml"):
    pytest.importorskip(_needed, reason=f"the schemas of Kubernetes need {_needed}")

CRDS = "operator/deployment/helm/dask-kubernetes-operator/crds/*.yaml"


def documents(path: Path) -> list[dict[str, Any]]:
    """The manifests in a file."""
    yaml = import_module("yaml")
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def errors(document: dict[str, Any]) -> list[str]:
    """What is wrong with a manifest; empty for a valid one."""
    kind = document.get("apiVersion"), document.get("kind")
    if kind in dask_kinds():
        found = dask_kinds()[kind].iter_errors(document)
        return [f"{'.'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in found]
    core = import_module("kubernetes_validate")
    try:
        core.validate(document, core.latest_version(), strict=True)
    except core.ValidationError as error:
        return [f"{'.'.join(map(str, error.path))}: {error.message[:200]}"]
    except core.SchemaNotFoundError as error:
        return [str(error)]
    return []


@lru_cache
def dask_kinds() -> dict[tuple[str, str], Any]:
    """Validators of Dask's kinds, by version and name."""
    yaml, jsonschema = import_module("yaml"), import_module("jsonschema")
    origin = find_spec("dask_kubernetes")
    assert origin is not None
    assert origin.origin is not None
    found = {}
    for file in Path(origin.origin).parent.glob(CRDS):
        spec = yaml.safe_load(file.read_text())["spec"]
        for version in spec["versions"]:
            schema = copy.deepcopy(version["schema"]["openAPIV3Schema"])
            schema["properties"] |= {"apiVersion": {}, "kind": {}, "metadata": {"type": "object"}}
            validator = jsonschema.Draft202012Validator(strict(schema))
            found[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = validator
    return found


def strict(node: Any) -> Any:
    """Schema in which fields that are not described are errors."""
    if isinstance(node, list):
        return [strict(one) for one in node]
    if not isinstance(node, dict):
        return node
    node = {key: strict(value) for key, value in node.items()}
    closed = isinstance(node.get("properties"), dict) and "additionalProperties" not in node
    if closed and not node.get("x-kubernetes-preserve-unknown-fields"):
        node["additionalProperties"] = False
    if node.get("x-kubernetes-int-or-string"):
        node.pop("type", None)
        node.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    return node


@pytest.mark.slow
@pytest.mark.parametrize("volume", [None, "samples"])
def test_pods_that_python_asks_for_are_valid(volume: str | None) -> None:
    """What `dhsk.connect("kubernetes")` submits has no unknown field."""
    options = Pods.of({"image": "dhsk:1", "volume": volume, "environment": ["A=b"]})
    assert errors(pods_spec(options)) == []


@pytest.mark.slow
def test_unknown_fields_are_errors() -> None:
    """The check finds a misspelt field, in Dask's kinds and in core ones."""
    spec = pods_spec(Pods.of({"image": "dhsk:1"}))
    spec["spec"]["worker"]["replica"] = 3
    (message,) = errors(spec)
    assert "'replica' was unexpected" in message
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "sepc": {}}
    assert errors(job)
    assert errors({"apiVersion": "batch/v9", "kind": "Job", "metadata": {"name": "x"}})


FILES = sorted((Path(__file__).parents[2] / "deploy" / "kubernetes").rglob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_manifests_are_valid(path: Path) -> None:
    """Every manifest in deploy/ is of known kinds and has known fields only."""
    found = documents(path)
    assert found
    assert [error for one in found for error in errors(one)] == []
