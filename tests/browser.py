"""A headless Chromium that opens pages from files and says what they did.

Use ``with Browser() as browser: browser.open(path).complaints``, which is [] of a sound page, and
``browser.screenshot(path, png, width=390)`` for a look at it.
"""

import asyncio
import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Self, TypeVar

from tornado.websocket import WebSocketClientConnection, websocket_connect

T = TypeVar("T")

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

CHROMIUM = next((found for name in _NAMES if (found := shutil.which(name))), None)
"""The browser, or None where there is none."""

WHY_NOT = "no Chromium is installed (apt-get install chromium)"
"""Reason for skipping a test where there is none."""

_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # tests run as root in containers
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
    "about:blank",
)

_SECONDS = 60.0
"""Patience with one step, on a busy machine."""


@dataclass(frozen=True)
class Opened:
    """What a page did until it was loaded, and what it says."""

    complaints: list[str]
    """Errors in its console, exceptions of its scripts, and addresses that it asked for."""
    text: str
    """What a reader sees."""
    width: int
    """Width of its content in CSS pixels: more than the window's, and it scrolls sideways."""


class Browser:
    """One process of Chromium with one page, spoken to over its debugging protocol."""

    def __enter__(self) -> Self:
        """Start it, with a profile of its own."""
        assert CHROMIUM is not None, WHY_NOT
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        profile = Path(self._profile.name)
        self._process = subprocess.Popen(
            [CHROMIUM, f"--user-data-dir={profile}", *_FLAGS],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._loop = asyncio.new_event_loop()
        self._number = 0
        self._events: list[dict[str, Any]] = []
        told, until = profile / "DevToolsActivePort", monotonic() + _SECONDS
        while not (told.is_file() and len(told.read_text().split()) == 2):
            assert self._process.poll() is None, "Chromium ended at once"
            assert monotonic() < until, "Chromium does not start"
            sleep(0.05)
        port, path = told.read_text().split()
        url = f"ws://127.0.0.1:{port}{path}"
        self._socket: WebSocketClientConnection = self._wait(
            lambda: websocket_connect(url, max_message_size=2**28)
        )
        self._session = ""
        (target,) = [
            one["targetId"]
            for one in self._call("Target.getTargets")["targetInfos"]
            if one["type"] == "page"
        ]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._loop.close()
        self._profile.cleanup()

    def open(
        self, page: Path, width: int = 1280, *, dark: bool = False, paper: bool = False
    ) -> Opened:
        """Load a file into a window of a width, on a light or dark screen or on paper."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call(
            "Emulation.setEmulatedMedia", media="print" if paper else "screen", features=[scheme]
        )
        self._events.clear()
        self._call("Page.navigate", url=page.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._listen()
        text = self.value("document.body.innerText")  # what the page did comes before the answer
        size = self.value("document.documentElement.scrollWidth")
        return Opened([said for event in self._events if (said := _complaint(event))], text, size)

    def screenshot(
        self,
        page: Path,
        png: Path,
        width: int = 1280,
        *,
        height: int | None = None,
        dark: bool = False,
    ) -> None:
        """Draw a page into a file: whole, or as much of its top as `height` says."""
        self.open(page, width, dark=dark)
        part = {}
        if height is not None:
            part["clip"] = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self._call(
            "Page.captureScreenshot", captureBeyondViewport=True, format="png", **part
        )
        png.write_bytes(base64.b64decode(shot["data"]))

    def value(self, expression: str) -> Any:
        """Value of an expression in the page, once that is not loading."""
        for _ in range(100):
            answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
            if "exceptionDetails" not in answer:
                break
            sleep(0.05)
        return answer["result"]["value"]

    def wait_for_load(self) -> None:
        """Wait until a page is loaded: one that was asked for, or that loads itself again."""
        self._events.clear()
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._listen()

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; events that come before its answer are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._wait(lambda: self._socket.write_message(json.dumps(message)))
        while True:
            answer = self._listen()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    def _listen(self) -> dict[str, Any]:
        """Next message; events are kept."""
        message = self._wait(self._socket.read_message)
        assert message is not None, "Chromium ended"
        found: dict[str, Any] = json.loads(message)
        if "method" in found:
            self._events.append(found)
        return found

    def _wait(self, start: Callable[[], Awaitable[T]]) -> T:
        """What is awaited after `start`, which is called in the loop."""

        async def started() -> T:
            async with asyncio.timeout(_SECONDS):
                return await start()

        return self._loop.run_until_complete(started())


def _complaint(event: dict[str, Any]) -> str | None:
    """What an event says against its page, if it does."""
    about = event["params"]
    match event["method"]:
        case "Runtime.exceptionThrown":
            return f"exception: {about['exceptionDetails']}"
        case "Runtime.consoleAPICalled" if about["type"] in ("error", "assert"):
            return f"console: {about['args']}"
        case "Log.entryAdded" if about["entry"]["level"] == "error":
            return f"console: {about['entry']['text']} {about['entry'].get('url', '')}"
        case "Network.requestWillBeSent":
            url = about["request"]["url"]
            if not url.startswith(("file:", "data:", "blob:", "about:")):
                return f"request: {url}"
        case "Network.webSocketCreated":
            return f"request: {about['url']}"
    return None
