"""An account with some tickets, and a caller."""

from __future__ import annotations

import base64
from collections.abc import Callable, Generator
from typing import Any

import pytest

from quintain.products import zendesk
from quintain.resources.web import HttpResponse, request
from tests.audit.page.browser import program

Call = Callable[..., Any]


def basic(email: str = zendesk.ADMIN, token: str = zendesk.TOKEN) -> dict[str, str]:
    """Returns the header of a caller."""
    return {"authorization": "Basic " + base64.b64encode(f"{email}/token:{token}".encode()).decode()}


class Client:
    """A client of a world in this process.

    Attributes:
        world: The world.
        last: The last answer.
    """

    def __init__(self, world: zendesk.Zendesk, email: str = zendesk.ADMIN) -> None:
        self.world, self.headers = world, basic(email)
        self.last = HttpResponse()

    def __call__(self, method: str, path: str, body: Any = None, *, status: int = 0) -> Any:
        url = f"http://acme.zendesk.localhost/api/v2/{path}"
        self.last = self.world.respond(request(method, url, body, headers=self.headers))
        assert self.last.status == status or (not status and self.last.status < 300), (self.last.status, self.last.body)
        return self.last.json() if self.last.body else None

    def ticket(self, **fields: Any) -> dict[str, Any]:
        """Creates a ticket."""
        given = {"subject": "A subject", "comment": {"body": "A question"}, **fields}
        found: dict[str, Any] = self("POST", "tickets", {"ticket": given})["ticket"]
        return found

    def put(self, id: int, *, refused: int = 0, **fields: Any) -> dict[str, Any]:
        """Changes a ticket; the whole answer."""
        found: dict[str, Any] = self("PUT", f"tickets/{id}", {"ticket": fields}, status=refused)
        return found


_BASE: list[zendesk.Zendesk] = []


def fresh() -> zendesk.Zendesk:
    """Returns an account of its own, with ten tickets."""
    if not _BASE:
        world = zendesk.account()
        zendesk.populate(world)
        _BASE.append(world)
    return _BASE[0].copy()


@pytest.fixture
def api() -> Client:
    return Client(fresh())


@pytest.fixture(scope="module")
def chromium() -> Generator[Any]:
    """Yields Playwright's browser."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    if program() is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        yield browser
        browser.close()
