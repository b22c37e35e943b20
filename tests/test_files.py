"""Files that appear whole or not at all."""

import os
from pathlib import Path

import pytest

from dhsk.errors import InputError
from dhsk.files import FileBeside, remove_parts, written_beside


@pytest.mark.parametrize("flush", [False, True])
def test_a_file_appears_when_it_is_complete(
    tmp_path: Path, flush: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then there is the old one, and one file beside it; flushed only if asked for."""
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    path = tmp_path / "a"
    path.write_text("old")
    with written_beside(path, "w", flush=flush) as file:
        file.write("new")
        assert path.read_text() == "old"
        assert len(list(tmp_path.iterdir())) == 2
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
    assert len(flushed) == flush


def test_what_fails_leaves_the_old_file(tmp_path: Path) -> None:
    """And nothing beside it."""
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(ValueError, match="made up"), written_beside(path, "w"):
        raise ValueError("made up")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_name_the_file(tmp_path: Path) -> None:
    """Not the one beside it, nor none."""
    for folder, act in ((tmp_path / "nowhere", None), (tmp_path, OSError(28, "made up"))):
        with (
            pytest.raises(OSError, match=r"made up|No such file") as caught,
            written_beside(folder / "a"),
        ):
            raise act or AssertionError
        assert caught.value.filename == str(folder / "a")


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    """Each writes its own, and the last wins whole."""
    path = tmp_path / "a"
    with written_beside(path, "w") as first, written_beside(path, "w") as second:
        first.write("first")
        second.write("2")
    assert path.read_text() == "first"


def test_only_what_writes_left_is_removed(tmp_path: Path) -> None:
    """In all folders; names of people's own that look alike stay."""
    (tmp_path / "b").mkdir()
    kept = [tmp_path / "b", tmp_path / "b" / "c.part", tmp_path / "b" / "data"]
    for file in kept[1:]:
        file.touch()
    (tmp_path / "b" / "0.4f3a.partial").touch()
    killed = FileBeside(tmp_path / "b" / "data")
    assert len(list(tmp_path.rglob("*"))) == 5
    remove_parts(tmp_path)
    assert sorted(tmp_path.rglob("*")) == kept
    killed.file.close()


def test_a_link_stays_one(tmp_path: Path) -> None:
    """And the file that it names is replaced, in its own folder, also if it is not there yet."""
    real, link = tmp_path / "results" / "a", tmp_path / "link"
    real.parent.mkdir()
    link.symlink_to("results/a")
    for content in ("first", "second"):
        with written_beside(link, "w") as file:
            file.write(content)
        assert link.is_symlink()
        assert real.read_text() == content
    assert sorted(tmp_path.rglob("*")) == [link, real.parent, real]


def test_a_link_that_names_itself_is_replaced(tmp_path: Path) -> None:
    """There is no file that it names."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with written_beside(loop, "w") as file:
        file.write("new")
    assert loop.read_text() == "new"


def test_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    """A file in their place would end them: /dev/null is that of all programs."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link, Path("/dev/stdout"), Path("/proc/self/fd/1")):
        with pytest.raises(InputError, match="give the name of a file"), written_beside(path):
            raise AssertionError
    assert sorted(tmp_path.iterdir()) == [link, pipe]
