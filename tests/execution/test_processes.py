"""Worker processes where they can be started, threads where not, and one sentence that says so."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from distributed import default_client

import dhsk
from dhsk.execution.processes import refusal, root_cause

START = """
import dhsk

with dhsk.connect("local", n_workers=2) as client:
    print("made", client.submit(pow, 2, 5).result(), client.scheduler.address.split(":")[0])
"""

GUARDED = f"""
import dhsk

if __name__ == "__main__":
    {START.replace("import dhsk", "").strip().replace(chr(10), chr(10) + "    ")}
"""

TIMEOUT = 120


def run(arguments: list[str], folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python as a user does, in a folder."""
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )


def script(folder: Path, text: str) -> list[str]:
    """Write a script; words to run it."""
    (folder / "script.py").write_text(text)
    return ["script.py"]


@pytest.mark.slow
def test_unguarded_script_is_told_so_in_one_sentence(tmp_path: Path) -> None:
    """Not two hundred lines from every process: the sentence, below the line that is wrong."""
    done = run(script(tmp_path, START), tmp_path)
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert not done.stdout
    assert lines[-1].startswith("dhsk.errors.InputError: worker processes import the script")
    assert 'if __name__ == "__main__":' in lines[-1]
    assert "threads of this process" in lines[-1]
    assert done.stderr.count("Traceback") == 1
    assert len(lines) < 15


@pytest.mark.slow
def test_unguarded_import_in_other_processes_is_told_so(tmp_path: Path) -> None:
    """A process that somebody else spawned, and that connects while it imports its script."""
    text = (
        "import multiprocessing as m\nimport dhsk\n"
        "if __name__ != '__main__':\n    dhsk.connect('local')\n"
        "else:\n    p = m.get_context('spawn').Process(target=print)\n    p.start()\n    p.join()\n"
    )
    done = run(script(tmp_path, text), tmp_path)
    assert "InputError: worker processes import the script" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_guarded_script_has_processes(tmp_path: Path) -> None:
    """The usual case, without a word."""
    done = run(script(tmp_path, GUARDED), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "made 32 tls\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["-"], []], ids=["dash", "stdin"])
def test_program_from_standard_input_has_threads(tmp_path: Path, arguments: list[str]) -> None:
    """No process can import it, so threads do the work, and one warning says why."""
    done = run(arguments, tmp_path, START)
    assert (done.returncode, done.stdout) == (0, "made 32 inproc\n")
    (warning,) = done.stderr.splitlines()
    assert "UserWarning: worker processes import the program that starts them" in warning
    assert "<stdin> is no file" in warning
    assert "computing on 2 threads of this process instead" in warning


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["-c", START], ["-i", "-q"]], ids=["-c", "interactive"])
def test_program_without_a_file_has_processes(tmp_path: Path, arguments: list[str]) -> None:
    """Spawned processes import nothing where the main module has no file."""
    stdin = START + "\n" if "-i" in arguments else ""
    done = run(arguments, tmp_path, stdin)
    assert "made 32 tls" in done.stdout
    assert "Warning" not in done.stderr


DAEMONIC = """
import multiprocessing, warnings
import dhsk

def connect(_):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        client = dhsk.connect("local", n_workers=3)
    with client:
        threads = sum(client.nthreads().values())
        return threads, client.scheduler.address.split(":")[0], [str(w.message) for w in caught]

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(connect, (0,)))
"""


@pytest.mark.slow
def test_daemonic_process_has_threads(tmp_path: Path) -> None:
    """A process of a pool may not start others: as many threads take their place."""
    done = run(script(tmp_path, DAEMONIC), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(3, 'inproc', [")
    assert "this process is daemonic" in done.stdout
    assert "computing on 3 threads" in done.stdout


@pytest.mark.slow
def test_no_semaphores_no_processes(tmp_path: Path) -> None:
    """A file of 32 bytes is a semaphore: where none may be written, threads do the work."""
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))\n" + START
    done = run(script(tmp_path, limited), tmp_path)
    assert (done.returncode, done.stdout) == (0, "made 32 inproc\n")
    assert "worker processes need semaphores in shared memory" in done.stderr


def test_refusal_of_the_system_is_found_among_causes() -> None:
    """Distributed wraps it twice; a port that is taken is no reason for threads."""

    def wrapped(code: int) -> BaseException:
        try:
            try:
                raise OSError(code, "made up")
            except OSError:
                raise AssertionError  # noqa: B904  # as a nanny does while it closes
        except AssertionError as error:
            outer = RuntimeError("Nanny failed to start.")
            outer.__cause__ = error
            return outer

    assert getattr(refusal(wrapped(errno.EAGAIN)), "errno", None) == errno.EAGAIN
    assert refusal(wrapped(errno.EADDRINUSE)) is None


def test_threads_may_be_asked_for() -> None:
    """`processes=False` is distributed's own way to say so."""
    with dhsk.connect("local", n_workers=1, processes=False) as client:
        assert client.scheduler.address.startswith("inproc://")
    with pytest.raises(ValueError, match="No client"):
        default_client()


@pytest.mark.slow
def test_other_errors_pass() -> None:
    """A worker that dies of an option has another reason than a missing guard."""
    with pytest.raises(dhsk.ClusterError, match="no_such_option") as raised:
        dhsk.connect("local", n_workers=1, no_such_option=1)
    assert isinstance(root_cause(raised.value), TypeError)
