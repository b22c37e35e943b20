"""Files that appear whole or not at all."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from dhsk.errors import InputError
from dhsk.files import FileBeside, refusal_of, remove_abandoned, remove_parts, written_beside


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
        assert str(caught.value).endswith(f"{str(folder / 'a')!r}")  # no second name, "-> None"


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_place_without_a_name_is_a_folder(name: str) -> None:
    """Not an error of pathlib."""
    with pytest.raises(IsADirectoryError, match="directory"), written_beside(Path(name)):
        raise AssertionError


def test_only_errors_of_a_file_advise_to_look_at_its_path() -> None:
    """Others have none: a connection that was lost."""
    of_file = FileNotFoundError(2, "No such file or directory", "x.npy")
    advised = "cannot go on: x.npy: No such file or directory; check the path"
    assert str(refusal_of(of_file)) == advised
    assert str(refusal_of(OSError("closed\n by peer"))) == "cannot go on: closed by peer"


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
    killed = FileBeside(tmp_path / "b" / "data")
    assert len(list(tmp_path.rglob("*"))) == 4
    remove_parts(tmp_path)
    assert sorted(tmp_path.rglob("*")) == kept
    killed.file.close()


LEFT_BY_A_KILL = """
import os, signal, sys
from pathlib import Path
from dhsk.files import written_beside
with written_beside(Path(sys.argv[1]), "w") as file:
    file.write("half")
    print("writing", flush=True)
    if sys.argv[2] == "wait":
        sys.stdin.readline()
    else:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def writer(path: Path, end: str) -> "subprocess.Popen[str]":
    """A process that writes a file, and is killed meanwhile or waits for a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", LEFT_BY_A_KILL, str(path), end],
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def kill_a_writer(path: Path) -> None:
    """Have a process killed that writes a file."""
    process = writer(path, "kill")
    process.communicate()
    assert process.returncode < 0


def test_parts_of_killed_writers_go_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a living one stay until it ends; people's own and other machines' always."""
    monkeypatch.setattr("dhsk.files._tidied", set())
    path, name = tmp_path / "a", f".a.{'0' * 14}.part"
    own = [tmp_path / name, tmp_path / ".a.mine.part", tmp_path / "b.part"]
    for file in own:
        file.touch()
    living = writer(path, "wait")
    (part,) = set(tmp_path.iterdir()) - {*own}
    kill_a_writer(path)
    assert len(set(tmp_path.iterdir()) - {*own}) == 2
    with written_beside(path, "w") as file:
        file.write("whole")
        assert len(set(tmp_path.iterdir()) - {*own}) == 2  # the living one's and this one
        assert part.exists()
    assert set(tmp_path.iterdir()) == {*own, part, path}
    living.communicate("\n")
    assert living.returncode == 0
    assert path.read_text() == "half"
    assert set(tmp_path.iterdir()) == {*own, path}


def test_parts_of_other_users_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if no process has them."""
    monkeypatch.setattr("dhsk.files._tidied", set())
    path = tmp_path / "a"
    kill_a_writer(path)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    remove_abandoned(tmp_path)
    (part,) = tmp_path.iterdir()
    monkeypatch.undo()
    monkeypatch.setattr("dhsk.files._tidied", set())
    remove_abandoned(tmp_path)
    assert not part.exists()


def test_a_writer_whose_part_was_taken_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not yet locked in the moment after it is made."""
    taken: list[int] = []

    def dup(descriptor: int) -> int:
        if not taken:
            (part,) = tmp_path.iterdir()
            part.unlink()
        taken.append(descriptor)
        return plain(descriptor)

    plain = os.dup
    monkeypatch.setattr(os, "dup", dup)
    with written_beside(tmp_path / "a", "w") as file:
        file.write("whole")
    assert len(taken) == 2
    assert (tmp_path / "a").read_text() == "whole"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    """However a file ends."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(20):
        with suppress(ValueError), written_beside(tmp_path / "a", "w") as file:
            file.write("x")
            if number % 2:
                raise ValueError
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


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
