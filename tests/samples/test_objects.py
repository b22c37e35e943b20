"""Samples and labels on a server with the interface of S3: what differs from a disk."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dhsk
from dhsk.errors import InputError, SamplesChangedError, StoreError
from dhsk.objects import client, path
from dhsk.objects.path import ObjectPath
from dhsk.samples import open_samples, read_labels

X = np.random.default_rng(5).lognormal(size=(30, 8))


@pytest.fixture
def place(bucket: str, request: Any) -> ObjectPath:
    """A prefix of this test's own."""
    return ObjectPath.parse(f"s3://{bucket}/samples-{request.node.name.replace('[', '-')[:-1]}")


def npy(values: Any) -> bytes:
    """Content of a .npy file."""
    content = io.BytesIO()
    np.save(content, values)
    return content.getvalue()


def change_array(place: ObjectPath, folder: Path, values: Any) -> str:
    """Write a .npy file."""
    (place / "x.npy").write_bytes(npy(values))
    return f"{place}/x.npy"


def change_chunk(place: ObjectPath, folder: Path, values: Any) -> str:
    """Write a zarr array; its description stays."""
    array = zarr.create_array(folder / "x.zarr", data=values, chunks=(7, 8), overwrite=True)
    for file in (folder / "x.zarr").rglob("*"):
        name = str(file.relative_to(folder))
        if file.is_file() and not (file.name == "zarr.json" and (place / name).is_file()):
            (place / name).write_bytes(file.read_bytes())
    assert array.shape == values.shape
    return f"{place}/x.zarr"


@pytest.mark.parametrize("write", [change_array, change_chunk])
def test_samples_that_changed_are_refused(
    place: ObjectPath, tmp_path: Path, write: Callable[..., str]
) -> None:
    """By size, ETag and time of the object, or by their rows at the second reading."""
    samples = open_samples(write(place, tmp_path, X))
    assert sum(len(block) for block in samples.blocks(10)) == len(X)
    write(place, tmp_path, X + 1)
    with pytest.raises(SamplesChangedError, match=r"changed .*; run the same|since it was opened"):
        list(samples.blocks(10))


def test_an_object_that_became_shorter_or_is_gone_has_changed(place: ObjectPath) -> None:
    """After rows of it were used."""
    samples = open_samples(change_array(place, Path(), X))
    list(samples.blocks(10))
    (place / "x.npy").write_bytes(b"short")
    with pytest.raises(SamplesChangedError, match="has changed since it was opened"):
        next(samples.blocks(10))
    (place / "x.npy").unlink()
    with pytest.raises(SamplesChangedError, match="changed while it was read"):
        next(samples.blocks(10))


def test_a_change_within_a_reading_is_found(
    place: ObjectPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses the range, as the object has ended."""
    samples = open_samples(change_array(place, Path(), X))
    library = pytest.importorskip("obstore")
    get_range = library.get_range

    def shortened(store: Any, key: str, **options: Any) -> Any:
        library.put(store, key, b"short")
        return get_range(store, key, **options)

    monkeypatch.setattr(library, "get_range", shortened)
    with pytest.raises(SamplesChangedError, match="has changed since it was opened"):
        next(samples.blocks(10))


def test_a_change_between_two_ranges_is_found(place: ObjectPath) -> None:
    """Also at the first reading of rows, which nothing is compared with."""
    content = io.BytesIO()
    np.savez(content, X)
    (place / "x.npz").write_bytes(content.getvalue())
    blocks = open_samples(f"{place}/x.npz").blocks(10)
    next(blocks)
    (place / "x.npz").write_bytes(content.getvalue().replace(X[-1].tobytes(), X[0].tobytes()))
    with pytest.raises(SamplesChangedError, match="has changed since it was opened"):
        list(blocks)


def test_truncated_objects_are_refused_as_files_are(place: ObjectPath) -> None:
    """A header that announces more than there is, and an archive that was cut."""
    (place / "x.npy").write_bytes(npy(X)[:-8])
    with pytest.raises(InputError, match=f"{place}/x.npy is truncated"):
        open_samples(f"{place}/x.npy")
    (place / "x.npz").write_bytes(b"PK\3\4 cut")
    with pytest.raises(InputError, match=f"{place}/x.npz cannot be read, is it complete"):
        open_samples(f"{place}/x.npz")


MISSING = {
    "object": ("/no.npy", InputError, "there is no file {}/no.npy"),
    "key": ("/x.npy:a", InputError, "{}/x.npy:a: a .npy file has no parts"),
    "folder": ("", InputError, "{} is a folder, but a file or a zarr folder is needed"),
    "format": ("/x.bin", InputError, r"{}/x.bin is in an unknown format \(.bin\)"),
}


@pytest.mark.parametrize(("name", "kind", "said"), MISSING.values(), ids=MISSING)
def test_what_is_no_file_is_said(place: ObjectPath, name: str, kind: Any, said: str) -> None:
    """As on a disk, for samples and for labels."""
    change_array(place, Path(), X)
    (place / "x.bin").write_bytes(b"1")
    with pytest.raises(kind, match=said.format(place)):
        open_samples(f"{place}{name}")
    with pytest.raises(kind, match=said.format(place)):
        read_labels(f"{place}{name}", 30)


def test_a_missing_bucket_and_other_urls_are_said(place: ObjectPath) -> None:
    """The way out is in the message."""
    with pytest.raises(StoreError, match="s3://nobucket does not exist: make the bucket"):
        open_samples("s3://nobucket/x.npy")
    with pytest.raises(InputError, match=r"https://b/x.npy: give a local path, or s3://BUCKET/KEY"):
        open_samples("https://b/x.npy")
    with pytest.raises(InputError, match="AWS_SECRET_ACCESS_KEY"):
        open_samples("s3://user:hidden@b/x.npy")


def test_without_credentials_the_variables_are_named(
    place: ObjectPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request is sent."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(StoreError, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        open_samples(f"{place}/x.npy")


def test_a_wrong_address_is_found_soon(place: ObjectPath, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience is for servers that have answered."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(client, "RETRY_SECONDS", 0)
    monkeypatch.setattr(path, "FIRST_SECONDS", 0.0)
    with pytest.raises(StoreError, match=r"does not answer; .* AWS_ENDPOINT_URL"):
        open_samples(f"{place}/x.npy")


def test_samples_in_a_gram_store_are_refused(place: ObjectPath) -> None:
    """Its values are kernel values; the samples in it are mapped."""
    dhsk.compute_gram(X, "heat", store=f"{place}/x.gram")
    for name in ("x.gram", "x.gram:gram", "x.gram/rows/dense"):
        with pytest.raises(InputError, match="is a Gram store or in one"):
            open_samples(f"{place}/{name}")


def test_a_server_that_is_away_is_waited_for(
    place: ObjectPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests of all formats are repeated, those of zarr too."""
    pytest.importorskip("obstore")
    import obstore
    from obstore.exceptions import GenericError

    urls = [change_array(place, tmp_path, X), change_chunk(place, tmp_path, X)]
    monkeypatch.setattr(client.time, "sleep", lambda _: None)
    failed: set[tuple[str, str]] = set()

    def flaky(name: str) -> None:
        original = getattr(obstore, name)

        def call(store: Any, key: str, *rest: Any, **options: Any) -> Any:
            if (name, key) not in failed:
                failed.add((name, key))
                raise GenericError("error sending request")
            return original(store, key, *rest, **options)

        monkeypatch.setattr(obstore, name, call)

    for name in ("get", "get_range", "head"):
        flaky(name)
    for url in urls:
        np.testing.assert_array_equal(np.concatenate(list(open_samples(url).blocks(10))), X)
    assert {name for name, _ in failed} == {"get", "get_range", "head"}
