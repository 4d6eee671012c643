"""Headless Chromium, driven over its debugging pipe: JSON messages, each ended by a zero byte."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 60
"""Most seconds for one answer."""
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
)  # fmt: skip


def program() -> str | None:
    """Returns the path of Chromium, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """Browser with one tab.

    Attributes:
        events: Events in order, as (method, parameters).
    """

    def __init__(self) -> None:
        path = program()
        assert path is not None
        self._folder = tempfile.mkdtemp(prefix="chromium-")
        mine, theirs = os.pipe(), os.pipe()
        low, high = fcntl.fcntl(mine[0], fcntl.F_DUPFD, 50), fcntl.fcntl(theirs[1], fcntl.F_DUPFD, 50)
        moves = [(os.POSIX_SPAWN_DUP2, low, 3), (os.POSIX_SPAWN_DUP2, high, 4)]
        silent = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (1, 2)]
        command = [path, *FLAGS, f"--user-data-dir={self._folder}", "about:blank"]
        self.pid = os.posix_spawn(path, command, dict(os.environ), file_actions=[*moves, *silent], setsid=True)
        self._to, self._from = mine[1], theirs[0]
        for fd in (mine[0], theirs[1], low, high):
            os.close(fd)
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.events: list[tuple[str, dict[str, Any]]] = []
        tab = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a command and returns its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("id") == self._number:
                assert "error" not in found, (method, found["error"])
                result: dict[str, Any] = found["result"]
                return result
            self.events.append((found["method"], found["params"]))

    def _receive(self) -> dict[str, Any]:
        until = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready = select.select([self._from], [], [], max(0.0, until - time.monotonic()))[0]
            assert ready, "the browser does not answer"
            chunk = os.read(self._from, 1 << 20)
            assert chunk, "the browser is gone"
            self._buffer += chunk
        one, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        return message

    def open(self, path: Path) -> None:
        """Loads a file and waits until it is drawn."""
        self.events.clear()
        self.send("Page.navigate", url=path.absolute().as_uri())
        while not any(method == "Page.loadEventFired" for method, _ in self.events):
            found = self._receive()
            self.events.append((found["method"], found["params"]))

    def run(self, script: str) -> Any:
        """Returns the value of an expression in the page."""
        done = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def resize(self, width: int, height: int = 900) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def like(self, *, scheme: str = "light", media: str = "screen", **features: str) -> None:
        """Sets the colour scheme, the medium (screen or print), and other features, as `forced_colors="active"`."""
        given = {"prefers-color-scheme": scheme} | {name.replace("_", "-"): value for name, value in features.items()}
        self.send(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[{"name": name, "value": value} for name, value in given.items()],
        )

    def picture(self, *, whole: bool = False) -> bytes:
        """Returns a screenshot as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"])

    def key(self, name: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code)

    def requests(self) -> list[str]:
        """Returns the URLs that the page loaded."""
        return [said["request"]["url"] for method, said in self.events if method == "Network.requestWillBeSent"]

    def complaints(self) -> list[dict[str, Any]]:
        """Returns the messages of the console."""
        loud = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [said for method, said in self.events if method in loud]

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
