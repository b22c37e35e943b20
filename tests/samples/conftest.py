"""Files of samples on a disk, and the same on a server."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from dhsk.objects.path import ObjectPath

Placed: TypeAlias = Callable[[Any], Any]


@pytest.fixture(params=["disk", "server"])
def placed(request: pytest.FixtureRequest, tmp_path: Path) -> Placed:
    """Where a test's files are: gives a source in `tmp_path` as it is, or its URL."""
    return (lambda source: source) if request.param == "disk" else uploader(request, tmp_path)


@pytest.fixture
def uploaded(request: pytest.FixtureRequest, tmp_path: Path) -> Placed:
    """Copy `tmp_path` to a server; gives the URL of a source in it."""
    return uploader(request, tmp_path)


def uploader(request: pytest.FixtureRequest, folder: Path) -> Placed:
    """Function that gives the URL of a source in a folder, copied to a prefix of this test."""
    bucket = request.getfixturevalue("bucket")
    top = ObjectPath(bucket, folder.name)

    def url_of(source: Any) -> Any:
        if not isinstance(source, str | os.PathLike):
            return source  # an array
        for file in folder.rglob("*"):
            if file.is_file():
                top.joinpath(*file.relative_to(folder).parts).write_bytes(file.read_bytes())
        return os.fspath(source).replace(str(folder), str(top))

    request.addfinalizer(top.remove_below)
    return url_of
