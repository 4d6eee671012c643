"""The studio as a process, and a browser that shows it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from quintain.studio.page import STATIC
from tests.audit.page.browser import Browser, program
from tests.cli.program import command, enable_ctrl_c

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
_TAGS = json.dumps(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"])
AXE_RUN = (
    f"axe.run({{runOnly: {_TAGS}, resultTypes: ['violations']}})"
    ".then(r => r.violations.map(v => v.id + ': ' + v.nodes[0].html))"
)
"""Expression of JavaScript whose value is what axe-core finds on a page."""
SECONDS = 30
CODES = {
    "Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "Delete": 46,
}  # fmt: skip
"""Numbers of keys that have a name."""


def missing() -> str:
    """Returns the reason for which no browser can show the studio; empty if one can."""
    if program() is None:
        return "Chromium is not installed: apt-get install chromium"
    return "" if (STATIC / "studio.js").exists() else "the studio's page is not built: make web"


@contextlib.contextmanager
def started(folder: Path, home: Path) -> Generator[str]:
    """Runs `quintain studio` and yields its address."""
    with running(folder, home) as (process, address):
        yield address
        process.send_signal(signal.SIGINT)
        process.wait(SECONDS)


@contextlib.contextmanager
def running(folder: Path, home: Path) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Runs `quintain studio` and yields process and address."""
    variables = {"XDG_CACHE_HOME": str(home), "XDG_STATE_HOME": str(home)}
    process = subprocess.Popen(
        command("studio", folder, "--port", "0"),
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | variables,
        preexec_fn=enable_ctrl_c,  # noqa: PLW1509  # it calls one function that takes no lock
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().removeprefix("studio: ").strip()
    finally:
        process.kill()
        process.communicate()


class Reading(Browser):
    """Browser that waits for what it shows."""

    def show(self, address: str) -> None:
        """Loads an address, or goes to another part of the loaded page."""
        self.send("Page.navigate", url=address)

    def until(self, script: str) -> Any:
        """Waits until an expression is true, and returns its value."""
        limit = time.monotonic() + SECONDS
        while not (found := self.run(f"(found => found instanceof Node || found)({script})")):
            assert time.monotonic() < limit, (
                f"{script} never came; the page shows {self.run('document.body.innerText')[:300]}"
            )
            time.sleep(0.02)
        return found

    def press(self, *keys: str) -> None:
        """Presses keys, one after the other; `Shift+` before a name holds Shift."""
        for name in keys:
            key = name.removeprefix("Shift+")
            code = CODES.get(key, ord(key[0].upper()))
            facts = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 if key != name else 0}
            facts |= {"text": "\r"} if key == "Enter" else {}  # With it, a form is submitted.
            for kind in ("keyDown", "keyUp"):
                self.send("Input.dispatchKeyEvent", type=kind, **facts)

    def drag(self, selector: str, *shares: float) -> None:
        """Presses the mouse in an element, moves it, and lets go; places are shares of the element's width."""
        box = self.run(f"document.querySelector({json.dumps(selector)}).getBoundingClientRect().toJSON()")
        kinds = ["mousePressed", *["mouseMoved"] * (len(shares) - 1), "mouseReleased"]
        for kind, share in zip(kinds, (*shares, shares[-1]), strict=True):
            place = {"x": box["x"] + share * box["width"], "y": box["y"] + box["height"] / 2}
            self.send("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **place)

    def violations(self) -> list[str]:
        """Returns what axe-core finds on the screen, by the rules of WCAG 2.2 A and AA."""
        if not self.run("'axe' in window"):
            self.run(AXE.read_text("utf-8") + ";0")
        found: list[str] = self.run(AXE_RUN)
        return found
