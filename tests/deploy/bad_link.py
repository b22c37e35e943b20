"""A bad link between two network namespaces: all Ethernet frames come late, some never.

Run as ``python bad_link.py NAMESPACE/DEVICE NAMESPACE/DEVICE DELAY LOSS SEED SECONDS``, with the
delay in seconds and the share of frames lost, each way. It makes the two devices, says so, and
ends with its standard input, or after so many seconds; the devices end with it.
"""

import fcntl
import os
import random
import struct
import subprocess
import sys
from collections import deque
from contextlib import suppress
from select import select
from time import monotonic

# From linux/if_tun.h.
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
FRAME_BYTES = 65536


def make_device(number: int, place: str) -> int:
    """Make an Ethernet device in a namespace; the descriptor of its frames."""
    namespace, name = place.split("/")
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    early = f"bad{os.getpid()}.{number}"
    request = struct.pack("16sH22x", early.encode(), IFF_TAP | IFF_NO_PI)
    fcntl.ioctl(descriptor, TUNSETIFF, request)
    move = ["ip", "link", "set", early, "netns", namespace, "name", name]
    subprocess.run(move, check=True, stdin=subprocess.DEVNULL)
    return descriptor


class Link:
    """Two devices, and the frames on their way from one to the other."""

    def __init__(self, ends: tuple[int, int], delay: float, loss: float, seed: float) -> None:
        self._ways = (ends, ends[::-1])
        self._delay, self._loss = delay, loss
        self._chance = random.Random(seed)
        self._waiting: deque[tuple[float, int, bytes]] = deque()
        """Times at which frames are due, the devices that get them, and the frames."""

    def forward(self) -> float:
        """Take in what was sent and deliver what is due; the seconds until the next is due."""
        for end, other in self._ways:
            for frame in frames_of(end):
                if self._chance.random() >= self._loss:
                    self._waiting.append((monotonic() + self._delay, other, frame))
        while self._waiting and self._waiting[0][0] <= monotonic():
            _, end, frame = self._waiting.popleft()
            with suppress(OSError):  # the device is down, so the frame is lost
                os.write(end, frame)
        return max(0.0, self._waiting[0][0] - monotonic()) if self._waiting else 1.0


def frames_of(end: int) -> list[bytes]:
    """Frames that were sent through a device."""
    found: list[bytes] = []
    with suppress(OSError):  # no more of them, or the device is down
        while True:
            found.append(os.read(end, FRAME_BYTES))
    return found


def main() -> None:
    """Forward frames until the end."""
    delay, loss, seed, seconds = map(float, sys.argv[3:])
    ends = make_device(0, sys.argv[1]), make_device(1, sys.argv[2])
    print("made", flush=True)
    link, until, pause = Link(ends, delay, loss, seed), monotonic() + seconds, 0.0
    while monotonic() < until:
        ready, _, _ = select([*ends, sys.stdin], [], [], pause)
        if sys.stdin in ready:
            return
        pause = link.forward()


if __name__ == "__main__":
    main()
