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

from playwright.sync_api import Page

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
def running(folder: Path, home: Path, *options: object) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Runs `quintain studio` and yields process and address."""
    variables = {"XDG_CACHE_HOME": str(home), "XDG_STATE_HOME": str(home)}
    process = subprocess.Popen(
        command("studio", folder, "--port", "0", *options),
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
        self.on(lambda page: page.goto(address, wait_until="commit"))

    def until(self, script: str, seconds: float = SECONDS) -> Any:
        """Waits until an expression is true, and returns its value."""
        limit = time.monotonic() + seconds
        while not (found := self.run(f"(found => found instanceof Node || found)({script})")):
            assert time.monotonic() < limit, (
                f"{script} never came; the page shows {self.run('document.body.innerText')[:300]}"
            )
            time.sleep(0.02)
        return found

    def drag(self, selector: str, *shares: float) -> None:
        """Presses the mouse in an element, moves it, and lets go; places are shares of the element's width."""

        def act(page: Page) -> None:
            box = page.locator(selector).bounding_box()
            assert box is not None, f"{selector} is not shown"
            places = [box["x"] + share * box["width"] for share in shares]
            for number, place in enumerate(places):
                page.mouse.move(place, box["y"] + box["height"] / 2)
                if number == 0:
                    page.mouse.down()
            page.mouse.up()

        self.on(act)

    def violations(self) -> list[str]:
        """Returns what axe-core finds on the screen, by the rules of WCAG 2.2 A and AA."""
        if not self.run("'axe' in window"):
            self.run(AXE.read_text("utf-8") + ";0")
        found: list[str] = self.run(AXE_RUN)
        return found
