"""Paths of objects, on a server that keeps them in memory."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk.errors import InputError, StoreError
from dhsk.execution.lock import is_occupied
from dhsk.objects import client, path
from dhsk.objects.path import ObjectPath
from dhsk.objects.places import (
    check_writable,
    entries_of,
    is_within,
    parse_place,
    sizes_below,
    write_whole,
    written,
)


@pytest.fixture
def place(bucket: str, request: Any) -> ObjectPath:
    """A prefix of this test's own."""
    return ObjectPath.parse(f"s3://{bucket}/{request.node.name}")


def test_content_is_read_as_it_was_written(place: ObjectPath) -> None:
    """Sizes, the whole, parts of it, and what is below a prefix."""
    data = np.random.default_rng(0).bytes(100_000)
    (place / "a" / "1").write_bytes(data)
    (place / "b").write_bytes(b"")
    assert (place / "a" / "1").read_bytes() == data
    assert place.sizes() == {"a/1": 100_000, "b": 0}
    assert (place / "a").exists()
    assert not (place / "a").is_file()
    assert (place / "a" / "1").size() == 100_000
    (place / "a" / "1").unlink()
    assert place.sizes() == {"b": 0}
    place.remove_below()
    assert not place.exists()


def test_entries_are_those_of_a_folder(place: ObjectPath, tmp_path: Path) -> None:
    """Names directly below, sizes of all files, and paths made of others."""
    for folder in (place, tmp_path):
        assert entries_of(folder / "none") == set()
        for name in ("a", "ab", "c"):
            write_whole(folder / name / "1", b"x" * len(name))
        write_whole(folder / "d", b"")
        assert entries_of(folder) == {"a", "ab", "c", "d"}
        assert sizes_below(folder) == {"a/1": 1, "ab/1": 2, "c/1": 1, "d": 0}
        assert sizes_below(folder / "a") == {"1": 1}
        assert is_within(folder / "a" / "1", folder / "a")
        assert not is_within(folder / "ab", folder / "a")
        check_writable(folder)
        assert (folder / "d").with_name("e") == folder / "e"
        assert sizes_below(folder).keys() == {"a/1", "ab/1", "c/1", "d"}


def test_what_is_written_to_see_whether_one_may_is_no_content(
    place: ObjectPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that looks meanwhile finds a folder that is free."""
    seen, unlink = [], ObjectPath.unlink
    named = tempfile.NamedTemporaryFile

    def looked(folder: ObjectPath | Path) -> None:
        assert entries_of(folder)
        seen.append(is_occupied(folder))

    def unlinked(probe: ObjectPath, **options: Any) -> None:
        looked(probe.parent)
        unlink(probe, **options)

    @contextmanager
    def without_name(**options: Any) -> Iterator[None]:
        """As of systems where a file has a name until it is opened."""
        with named(**options):
            yield looked(tmp_path)

    monkeypatch.setattr(ObjectPath, "unlink", unlinked)
    monkeypatch.setattr(tempfile, "TemporaryFile", without_name)
    for folder in (place, tmp_path):
        check_writable(folder)
    assert seen == [False, False]


def test_a_folder_is_the_same_under_names_of_another_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on disks of macOS, where both names open one folder."""
    for name in ("Out", "out"):
        (tmp_path / name / "fits").mkdir(parents=True)
    assert not is_within(tmp_path / "out" / "fits", tmp_path / "Out")

    def samefile(one: Path, other: Path) -> bool:
        return str(one).lower() == str(other).lower()

    monkeypatch.setattr(Path, "samefile", samefile)
    assert is_within(tmp_path / "out" / "fits", tmp_path / "Out")
    assert is_within(tmp_path / "out" / "fits" / "later", tmp_path / "Out")
    assert not is_within(tmp_path / "Out", tmp_path / "out" / "fits")
    assert not is_within(tmp_path / "out" / "fits", tmp_path / "other")


def test_text_is_written_whole_or_not(place: ObjectPath, tmp_path: Path) -> None:
    """A failure amid it leaves the earlier content."""
    for file in (place / "t", tmp_path / "t"):
        with written(file, "w", encoding="utf-8", newline="\n") as opened:
            opened.write("ä\n")
        with pytest.raises(ZeroDivisionError), written(file, "w") as opened:
            opened.write(str(1 / 0))
        assert file.read_bytes() == "ä\n".encode()


def test_large_objects_are_read_in_parts(
    place: ObjectPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buffers are filled one after the other, whatever the size of a part."""
    monkeypatch.setattr(path, "PART_BYTES", 1000)
    data = np.random.default_rng(1).bytes(10_500)
    place.write_bytes(data)
    first, second = bytearray(7_300), bytearray(3_000)
    place.read_parts(200, memoryview(first), memoryview(second))
    assert bytes(first + second) == data[200:]


def test_an_object_is_created_once(place: ObjectPath) -> None:
    """The second is refused, and nothing is overwritten; the same again counts as written."""
    assert place.create(b"one")
    assert not place.create(b"two")
    assert place.read_bytes() == b"one"
    assert place.create(b"one")


def test_a_missing_object_is_a_missing_file(place: ObjectPath) -> None:
    """Errors are those of paths."""
    with pytest.raises(FileNotFoundError):
        place.read_bytes()
    with pytest.raises(FileNotFoundError):
        place.unlink()
    place.unlink(missing_ok=True)
    assert place.size() is None


@pytest.mark.parametrize(
    "url", ["s3://", "s3://b", "s3://b/", "s3://b/a/../c", "gs://b/c", "s3:///c"]
)
def test_other_urls_are_refused(url: str) -> None:
    """A URL names a bucket and a prefix."""
    with pytest.raises(InputError, match="give"):
        parse_place("store", url)


def test_credentials_in_a_url_are_not_repeated() -> None:
    """They belong into the environment."""
    with pytest.raises(InputError, match="AWS_SECRET_ACCESS_KEY") as error:
        parse_place("store", "s3://user:hidden@b/c")
    assert "hidden" not in str(error.value)


def test_a_missing_bucket_is_said(place: ObjectPath) -> None:
    """Whether it is listed or written."""
    missing = ObjectPath("nobucket", "a")
    with pytest.raises(StoreError, match="s3://nobucket does not exist"):
        missing.check()
    with pytest.raises(StoreError, match="s3://nobucket does not exist"):
        missing.write_bytes(b"1")


def test_without_credentials_the_variables_are_named(
    place: ObjectPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request is sent."""
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreError, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        place.check()


@pytest.mark.parametrize(
    ("kind", "said", "expected"),
    [
        ("PermissionDeniedError", "403 <Code>SignatureDoesNotMatch</Code> hidden", "credentials"),
        ("PermissionDeniedError", "403 <Code>AccessDenied</Code> hidden", "does not permit"),
        ("PermissionDeniedError", "403 <Code>QuotaExceeded</Code> hidden", "quota"),
        ("GenericError", "status code: 400 <Code>InvalidBucketName</Code> hidden", "answers"),
        ("GenericError", "status code: 503 <Code>SlowDown</Code> hidden", "later"),
        ("GenericError", "error sending request hidden", "does not answer"),
    ],
)
def test_errors_say_the_way_out_and_no_secret(kind: str, said: str, expected: str) -> None:
    """The text of the client is not shown, and not chained."""
    pytest.importorskip("obstore")
    import obstore.exceptions

    from dhsk.objects.faults import told

    with pytest.raises(StoreError, match=expected) as error, told("s3://b/c", "written"):
        raise getattr(obstore.exceptions, kind)(said)
    assert "hidden" not in str(error.value)
    assert error.value.__suppress_context__


def test_requests_outlast_a_server_that_is_away(
    place: ObjectPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are repeated while there is patience, and no longer."""
    from dhsk.objects.faults import UnansweredError

    tries: list[int] = []
    monkeypatch.setattr(client.time, "sleep", [].append)

    def work() -> str:
        tries.append(1)
        if len(tries) < 5:
            raise UnansweredError("away")
        return "done"

    assert client.patiently(work) == "done"
    tries.clear()
    with pytest.raises(UnansweredError):
        client.patiently(work, seconds=0)


def test_paths_are_pickled_without_credentials(
    place: ObjectPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker takes those of its own environment."""
    import pickle

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    text = pickle.dumps(place)
    assert b"hidden" not in text
    assert pickle.loads(text) == place
