"""Headless Chromium of the machine, driven by Playwright, which downloads no browser of its own."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from playwright.sync_api import Page, sync_playwright

T = TypeVar("T")
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 60
"""Most seconds for one answer."""
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
_HEARD = ("Network.requestWillBeSent", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")


def program() -> str | None:
    """Returns the path of Chromium, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def _press(key: str, page: Page) -> None:
    page.keyboard.press(key)


class Browser:
    """Browser with one tab.

    Playwright has a thread of its own here, because its event loop stays the running one of the thread that starts it.

    Attributes:
        events: Events in order, as (method, parameters) of Chromium's protocol.
    """

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="chromium-")
        self._thread = ThreadPoolExecutor(1)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._thread.submit(self._start).result(SECONDS)

    def _start(self) -> None:
        self._driver = sync_playwright().start()
        size: Any = {"width": 1280, "height": 900}
        self._context = self._driver.chromium.launch_persistent_context(
            self._folder, executable_path=program(), args=FLAGS, viewport=size, accept_downloads=False
        )
        self._page = self._context.pages[0]
        self._page.set_default_timeout(SECONDS * 1000)
        self._session = self._context.new_cdp_session(self._page)
        for method in _HEARD:
            self._session.on(method, lambda said, method=method: self.events.append((method, said)))
            self._session.send(f"{method.partition('.')[0]}.enable")

    def on(self, act: Callable[[Page], T]) -> T:
        """Returns what a function of Playwright's page returns, called in its thread."""
        return self._thread.submit(act, self._page).result(2 * SECONDS)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a command of Chromium's protocol and returns its answer."""
        found: dict[str, Any] = self.on(lambda page: self._session.send(method, params))
        return found

    def open(self, path: Path) -> None:
        """Loads a file and waits until it is drawn."""
        self.events.clear()
        self.on(lambda page: page.goto(path.absolute().as_uri()))

    def run(self, script: str) -> Any:
        """Returns the value of an expression in the page, also where its policy forbids to evaluate texts."""
        done = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def resize(self, width: int, height: int = 900) -> None:
        self.on(lambda page: page.set_viewport_size({"width": width, "height": height}))

    def like(
        self,
        *,
        scheme: Any = "light",
        media: Literal["screen", "print"] = "screen",
        reduced_motion: Literal["reduce", "no-preference"] = "no-preference",
        forced_colors: Literal["active", "none"] = "none",
    ) -> None:
        """Sets the colour scheme, light or dark, the medium, and what the reader prefers."""
        self.on(
            lambda page: page.emulate_media(
                color_scheme=scheme, media=media, reduced_motion=reduced_motion, forced_colors=forced_colors
            )
        )

    def picture(self, *, whole: bool = False) -> bytes:
        """Returns a screenshot as PNG."""
        return self.on(lambda page: page.screenshot(full_page=whole))

    def press(self, *keys: str) -> None:
        """Presses keys, one after the other; `Shift+` before a name holds Shift."""
        for key in keys:
            self.on(functools.partial(_press, key))

    def requests(self) -> list[str]:
        """Returns the URLs that the page loaded."""
        return [said["request"]["url"] for method, said in self._heard() if method == _HEARD[0]]

    def complaints(self) -> list[dict[str, Any]]:
        """Returns the messages of the console."""
        return [said for method, said in self._heard() if method != _HEARD[0]]

    def _heard(self) -> list[tuple[str, dict[str, Any]]]:
        self.run("0")  # What came before its answer has been heard then.
        return self.events

    def close(self) -> None:
        def stop() -> None:
            self._context.close()
            self._driver.stop()

        self._thread.submit(stop).result(SECONDS)
        self._thread.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
