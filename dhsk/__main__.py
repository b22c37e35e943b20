"""Entry point of the command `dhsk`: runs it and turns errors into exit codes."""

import io
import logging
import os
import signal
import sys
import traceback
import warnings
from _thread import interrupt_main
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from threading import Thread, Timer
from time import monotonic, sleep
from typing import Any, TextIO

from dhsk.errors import (
    AccuracyError,
    BudgetError,
    ClusterError,
    ClusterWarning,
    DhskError,
    InputError,
    InputWarning,
    SamplesChangedError,
    StoreError,
)
from dhsk.execution.heap import use_one_arena
from dhsk.files import refusal_of
from dhsk.verbosity import Verbosity, at_work, set_at_work, set_verbosity, verbosity

DONE, FAILED, BAD_INPUT, TOO_BIG, BAD_STORE, INTERRUPTED = 0, 1, 2, 3, 4, 130

ENDING_SECONDS = 7.0
"""Most time from an interrupt to the end, whatever hangs."""

SAME_SECONDS = 0.5
"""An interrupt so soon after another one is the same: some send it to a process and its group."""

INTERRUPTED_AT = "interrupted; what is finished is kept: run the same command again to go on"

STOPPED = "interrupted; nothing is kept: run the same command again to start anew"

TOO_EARLY = "interrupted before anything was computed: run the same command again"

WITHOUT_CHECKPOINT = ("info", "kernel", "plan", "predict", "report")

WITHOUT_BEGINNING = frozenset({"-h", "--help", "--help-all", "-q", "--quiet", "--json"})
"""Options of which commands do not say that they begin."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit.

    Exit codes: 0 done, 2 bad input, 3 does not fit, 4 bad store or lost cluster, 130 interrupted.

    Ctrl-C and SIGTERM, which batch systems send before the time limit, both interrupt. `arguments`
    are None for the process's own.
    """
    use_one_arena()
    _said.clear()
    set_verbosity(Verbosity.USUAL)
    set_at_work(False)
    if arguments is None:
        _say_beginning(sys.argv[1:])
    interrupts = _Interrupts(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # a shell's background job ignores them
            signal.signal(number, interrupts.hear)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Paths that are no text are printed as standard error prints them.
        sys.stdout.reconfigure(errors="backslashreplace")
    before, sys.unraisablehook = sys.unraisablehook, interrupts.repeat_lost
    try:
        sys.exit(_run(arguments))
    except (Exception, KeyboardInterrupt) as error:
        # Compilers and modules that are being loaded make other errors of an interrupt.
        if not interrupts.heard and not isinstance(error, KeyboardInterrupt):
            raise
        _say_interrupted(arguments)
        # Python notes an interrupt within exec(), as when a lazy import makes a dataclass, and then
        # ends by SIGINT whatever the exit code. The next exec() removes the note.
        exec("")
        sys.exit(INTERRUPTED)
    finally:
        # The traceback of an interrupt has objects that are deleted when the process ends.
        if interrupts.heard is None or arguments is not None:
            sys.unraisablehook = before


def _say_beginning(words: Sequence[str]) -> None:
    """Say at once that something is done: loading the libraries may take seconds."""
    options = {word for word in words if word.startswith("-")}
    if words and not words[0].startswith("-") and not options & WITHOUT_BEGINNING:
        _say(f"{words[0]} begins, loading libraries")


def _run(arguments: Sequence[str] | None) -> int:
    # Here, because loading takes a second in which Ctrl-C must already end quietly.
    from dhsk.commands.cli import commands

    words = None if arguments is None else list(arguments)
    with warnings.catch_warnings():
        for own in (InputWarning, ClusterWarning):
            warnings.simplefilter("always", own)
        # Warnings of scikit-learn that come before a warning or an error of ours.
        for said in (
            "The least populated class in y",
            "Only one class is present in y_true",
            "A single label was found in 'y_true'",
        ):
            warnings.filterwarnings("ignore", message=said)
        warnings.showwarning = partial(_show_warning, set())
        return _run_command(commands, words)


def _run_command(commands: Any, words: list[str] | None) -> int:
    import click

    try:
        code = commands.main(args=words, prog_name="dhsk", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except (DhskError, OSError) as error:  # of the system: a full disk, no access to --out
        if verbosity() is Verbosity.VERBOSE:
            traceback.print_exception(error)
        refusal = error if isinstance(error, DhskError) else refusal_of(error)
        _say(str(refusal))
        return exit_code(refusal)
    except MemoryError as error:
        reason = " ".join(str(error).split()) or "no more is to be had"
        _say(f"out of memory ({reason}): give --memory less than there is, or use fewer samples")
        return TOO_BIG
    return code if isinstance(code, int) else DONE


def exit_code(error: DhskError) -> int:
    """Exit code of the process, which tells scripts the kind of error."""
    match error:
        case InputError() | AccuracyError():
            return BAD_INPUT
        case BudgetError():
            return TOO_BIG
        case StoreError() | SamplesChangedError() | ClusterError():
            return BAD_STORE
        case _:
            return FAILED


def _say(sentence: str) -> None:
    line = sentence.replace("\n", "\\n")  # names of files may have several
    print(f"dhsk: {line}", file=sys.stderr)  # noqa: T201


def _show_warning(
    said: set[str],
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Say our own warnings as sentences, once; others with the line of code they are about.

    Those of the same labels differ in what they are called: by their file, and as "the labels".
    """
    if issubclass(category, InputWarning | ClusterWarning):
        news = str(message).removeprefix("the labels: ")
        if not any(earlier.endswith(news) for earlier in said):
            _say(str(message))
        said.add(str(message))
    else:
        print(
            warnings.formatwarning(message, category, filename, lineno, line),
            end="",
            file=file or sys.stderr,
        )


class _Interrupts:
    """The first SIGINT or SIGTERM ends the command quietly, and a later Ctrl-C at once."""

    def __init__(self, arguments: Sequence[str] | None) -> None:
        self.heard: int | None = None
        self._arguments, self._begun, self._was_lost = arguments, 0.0, False

    def hear(self, number: int, _frame: object) -> None:
        """Raise KeyboardInterrupt, once: within the end of a command it would be shown."""
        if self.heard is None:
            self.heard, self._begun = number, monotonic()
            # What Dask's event loop logs when it is interrupted in the middle of a call is no news.
            logging.getLogger("tornado.application").setLevel(logging.CRITICAL)
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
            Thread(target=_end_at_last, args=(self._arguments,), daemon=True).start()
        elif not self._was_lost:
            if number == signal.SIGINT and monotonic() - self._begun > SAME_SECONDS:
                _end_now(self._arguments)
            return
        self._was_lost = False
        raise KeyboardInterrupt

    def repeat_lost(self, lost: Any) -> None:
        """Interrupt once more: what is raised while an object is deleted is ignored."""
        if self.heard is None:
            sys.__unraisablehook__(lost)
        elif issubclass(lost.exc_type, KeyboardInterrupt):
            self._was_lost = True
            Timer(0.01, interrupt_main, (self.heard,)).start()
        # Else an object that was interrupted while it was made, such as a ZipFile: no news.


_said: list[str] = []
"""The last sentence, once it is said."""


def _say_interrupted(arguments: Sequence[str] | None) -> None:
    """Say once what an interrupt leaves of a command."""
    if not _said:
        command = next(iter(sys.argv[1:] if arguments is None else arguments), "")
        kept = INTERRUPTED_AT if at_work() else TOO_EARLY
        _said.append(STOPPED if command in WITHOUT_CHECKPOINT else kept)
        _say(_said[0])


def _end_at_last(arguments: Sequence[str] | None) -> None:
    """End all, if it has not ended by itself."""
    sleep(ENDING_SECONDS)
    _end_now(arguments)


def _end_now(arguments: Sequence[str] | None) -> None:
    """End this process and those that it started.

    Stores and checkpoints withstand that at any moment.
    """
    import psutil

    _say_interrupted(arguments)
    sys.stderr.flush()
    for _ in range(2):  # Dask starts a worker anew that has ended
        with suppress(psutil.Error):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    process.kill()
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
