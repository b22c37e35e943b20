"""Owner record of a store on an S3-like server, where files have no locks."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, Final
from uuid import uuid4

import psutil

from dhsk import systems
from dhsk.errors import StoreError
from dhsk.execution.lock import (
    LOCK_NAME,
    Turns,
    holder_in,
    machine,
    now_in_words,
    one_of_several,
    sole_writer,
)
from dhsk.files import parse_object
from dhsk.objects.path import ObjectPath
from dhsk.objects.places import Place

RECORDS: Final = LOCK_NAME
"""Prefix of the records in a store."""

BEAT_SECONDS: Final = 5.0
"""Time between two writes of the record by a living owner."""

LEASE_SECONDS: Final = 60.0
"""Silence after which an owner counts as ended."""

LOOK_SECONDS: Final = 1.0
_RELEASE_SECONDS: Final = 5.0

_owned: Final[set[str]] = set()
"""Identifiers of the records that this process owns."""


def sole_writer_of(place: Place) -> AbstractContextManager[None]:
    """Lock a store for one writer: see `sole_writer` for folders, `sole_owner` for servers."""
    return sole_owner(place) if isinstance(place, ObjectPath) else sole_writer(place)


def one_of_several_at(place: Place) -> AbstractContextManager[Turns]:
    """Lock a store for one of several writers: see `one_of_several` for folders.

    On a server they own the store in turn. Nobody is kept out between their turns: all write the
    same tiles to the last bit.
    """
    if isinstance(place, ObjectPath):
        return nullcontext(Turns(partial(_turn, place)))
    return one_of_several(place)


def holder_of(place: Place) -> bytes | None:
    """What tells the lock of a store from that of another of the same name; None without one."""
    if isinstance(place, ObjectPath):
        return _Owner(place).holder()
    try:
        return (place / LOCK_NAME).read_bytes()
    except OSError:
        return None


@contextmanager
def _turn(place: ObjectPath) -> Iterator[bool]:
    """Own a store, if nobody else does."""
    owner = _Owner(place)
    try:
        owner.acquire()
    except OwnedError:
        yield False
        return
    with owner.owning():
        yield True


@contextmanager
def sole_owner(place: ObjectPath) -> Iterator[None]:
    """Own a store on a server as its one writer; readers and workers need no record.

    The record is an object ``.lock/N``, created on the condition that there is none of this number
    (``If-None-Match: *``), and the one with the highest number owns the store. Its owner writes it
    again every 5 s. Whoever finds a record that its process on this machine has left behind takes
    over at once, by creating number N + 1, which succeeds for one process only. If the owner is on
    another machine, the record is watched: an owner that writes it is alive, and StoreError says
    who it is; one that stays silent for 60 s, while the server answers, has ended. No clocks of
    two machines are compared. At the end the record is deleted.

    An owner that was frozen for longer than a minute and comes back has lost the store: it raises
    StoreError at its end. Nothing is damaged, as both write the same tiles to the last bit.

    Raises StoreError if another process or thread writes to the store.
    """
    owner = _Owner(place)
    owner.acquire()
    with owner.owning():
        yield


class OwnedError(StoreError):
    """Another process or thread owns the store."""


class _Owner:
    def __init__(self, place: ObjectPath) -> None:
        self._place = place
        self._records = place / RECORDS
        self._number = 0
        self._lost = False
        self._ended = Event()
        self._thread = Thread(target=self._beat, daemon=True, name="dhsk-owner")
        self._who = {**_this_process(), "since": now_in_words(), "id": uuid4().hex, "beat": 0}

    def acquire(self) -> None:
        """Create the record, or raise StoreError."""
        while True:
            number, found = self._latest()
            if found is not None and self._is_held(number, found):
                raise self._refusal(found)
            if self._mine(number + 1).create(self._text()):
                break
        self._number = number + 1
        _owned.add(self._who["id"])
        for other in self._numbers():
            if other > self._number:  # made while this process looked at an older one
                self._forget()
                raise self._refusal(self._latest()[1] or b"")
            if other < self._number:
                self._mine(other).unlink(missing_ok=True)
        self._thread.start()

    @contextmanager
    def owning(self) -> Iterator[None]:
        """Give the store up at the end; StoreError if another process has taken it over."""
        try:
            yield
            if self._lost:
                raise StoreError(
                    f"another process has taken {self._place} over, as this one was silent for "
                    f"more than {LEASE_SECONDS:.0f} s: see whether that one goes on, or run the "
                    "same again"
                )
        finally:
            # Without patience: if the record stays, its process is found to have ended.
            self._ended.set()
            self._thread.join(_RELEASE_SECONDS)
            self._forget()

    def holder(self) -> bytes | None:
        """Identifier in the last record, which does not change while its owner lives."""
        found = self._latest()[1]
        return None if found is None else str(parse_object(lambda: found).get("id")).encode()

    def _forget(self) -> None:
        _owned.discard(self._who["id"])
        with suppress(StoreError):
            self._mine(self._number).unlink(missing_ok=True, patience=_RELEASE_SECONDS)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            with suppress(StoreError):  # the writes of the work itself say more
                if max(self._numbers(), default=0) != self._number:
                    self._lost = True
                    return
                self._who["beat"] += 1
                self._mine(self._number).write_bytes(self._text())

    def _text(self) -> bytes:
        return json.dumps(self._who).encode()

    def _mine(self, number: int) -> ObjectPath:
        return self._records / f"{number}"

    def _numbers(self) -> list[int]:
        return sorted(int(name) for name in self._records.sizes() if name.isdigit())

    def _latest(self) -> tuple[int, bytes | None]:
        """Highest number and its record; (0, None) if there is none."""
        while numbers := self._numbers():
            with suppress(FileNotFoundError):  # deleted since
                return numbers[-1], self._mine(numbers[-1]).read_bytes()
        return 0, None

    def _is_held(self, number: int, found: bytes) -> bool:
        """Whether the owner of a record lives; watch it if it is not of this machine."""
        known = _lives_here(found)
        if known is not None:
            return known
        begin = look = monotonic()
        while monotonic() - begin < LEASE_SECONDS:
            sleep(LOOK_SECONDS)
            if self._latest() != (number, found):
                return self._latest()[1] is not None
            if monotonic() - look > 3 * LOOK_SECONDS:  # the server was away, for the owner too
                begin = monotonic()
            look = monotonic()
        return False

    def _refusal(self, found: bytes) -> OwnedError:
        return OwnedError(
            f"{self._place} is being written by {holder_in(lambda: found)}: wait until it has "
            "ended, stop it, or choose another prefix"
        )


def _this_process() -> dict[str, Any]:
    process = psutil.Process()
    return {
        **machine(),
        "processes": systems.process_namespace(),
        "pid": process.pid,
        "started": process.create_time(),
    }


def _lives_here(found: bytes) -> bool | None:
    """Whether a record's process lives; None if it is of another machine or container."""
    who, here = parse_object(lambda: found), _this_process()
    if any(who.get(name) != here[name] for name in ("host", "boot", "processes")):
        return None
    try:
        process = psutil.Process(int(who["pid"]))
        if process.pid == here["pid"]:
            return who["id"] in _owned
        alive = process.status() != psutil.STATUS_ZOMBIE
        return alive and abs(process.create_time() - float(who["started"])) < 1.0
    except (psutil.NoSuchProcess, KeyError, TypeError, ValueError):
        return False
