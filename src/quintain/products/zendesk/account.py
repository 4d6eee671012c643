"""The account: the world's fields, and reading that all rules share."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, cast

from quintain.resources.database import Database
from quintain.resources.database.standing import known
from quintain.resources.web import HttpRequest, HttpResponse, HttpTool
from quintain.resources.web.look import Look
from quintain.resources.web.rows import kept, select

from .tables import GroupMembership, User

AGENTS = ("agent", "admin")
LAG_S = 60.0
"""Seconds between the moments of which stale counts are, where no index lags."""


@functools.lru_cache(maxsize=4096)
def seconds(text: str) -> float:
    """Returns a time in seconds since epoch.

    Raises:
        ValueError: The text is not a time, or one in the first or the last year of the calendar.
    """
    found = datetime.fromisoformat(text)
    if not 1 < found.year < 9999:
        raise ValueError(f"{text} is out of range")
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def record(value: Any) -> dict[str, Any]:
    """Returns an object of a request's JSON; an empty one if the value is not an object."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """Returns a list of a request's JSON; nothing as an empty list, another value as a list of one."""
    if isinstance(value, list):
        return [*cast(Iterable[Any], value)]
    return [] if value is None else [value]


def channel(name: str, rel: str | None = None, **origin: Any) -> dict[str, Any]:
    """Returns how something came about, as answers show it."""
    return {"channel": name, "source": {"from": origin, "to": {}, "rel": rel}}


def whole_number(value: Any) -> int | None:
    """Returns a number of a request's JSON, which may be text; None if it is not a whole number of 63 bits."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 19 else None


def row_number(digits: str) -> int:
    """Returns digits as a number; of more than 63 bits, it is one that no row has."""
    return int(digits) if len(digits) < 19 else 2**63 - 1


class Invalid(Exception):
    """Error of a rule for fields: for each one texts and error names, and perhaps what else an entry says."""

    def __init__(self, field: str, text: str, error: str | None = "InvalidValue", **more: Any) -> None:
        super().__init__(text)
        self.details: dict[str, list[dict[str, Any]]] = {field: [{"description": text, "error": error, **more}]}


class Conflict(Exception):
    """Error of a safe update whose stamp is not the ticket's."""


class Desk(HttpTool):
    """State of an account.

    Attributes:
        subdomain: Name of the account.
        account_id: Number of the account.
        limit: Requests per minute: 200 Team, 400 Professional, 700 Enterprise, 2,500 High Volume.
        tickets: Number of the last ticket.
        unsupported: Requests to endpoints that the clone does not have, by path.
        indexed_at: Time of the base, whose text `zd_words` holds; empty without an index.
        viewed: Views whose count was asked before; the first answer does not know it.
        look: Variant of the pages.
        indexed: Content of the last index, while one lags behind; at most one.
    """

    subdomain: str = "acme"
    account_id: int = 18_735_614
    limit: int = 700
    tickets: int = 0
    unsupported: dict[str, int] = {}
    indexed_at: str = ""
    viewed: list[int] = []
    look: Look = Look()
    indexed: list[Database] = []

    def pass_time(self, asked: HttpRequest) -> None:
        """Advances the clock; where an index lags, the first request after each multiple of the lag renews it."""
        lag = self.noise.lag_s or LAG_S * bool(self.noise.stale)
        content = [self.db.fork()] if lag else []
        super().pass_time(asked)
        if lag and self.met.counts.get("index") != int(self.clock.now // lag):
            self.indexed, self.met.counts["index"] = content, int(self.clock.now // lag)

    def searched(self) -> Database:
        """Returns what a search sees."""
        return self._behind() if self.noise.lag_s else self.db

    def counted(self) -> Database:
        """Returns what a count sees."""
        return self._behind() if self.met.next(self.noise, "stale") else self.db

    def _behind(self) -> Database:
        found = self.indexed[0] if self.indexed else self.db
        if found.image is not self.db.image:
            self.met.unshown = "stale"
        return found

    def user(self, id: int | None) -> User | None:
        """Returns a user who was not deleted for good."""
        found = kept(self.db, User, "id = ?", id) if id is not None else []
        return found[0] if found else None

    def receive(self, sent: HttpRequest) -> HttpResponse:
        """Answers what a webhook sends to an address outside; a company with the receiver in it overrides this."""
        return HttpResponse()

    def default_status(self, status: str) -> int | None:
        """Returns the status that agents see for a category, if none is chosen."""
        sql = 'SELECT id FROM zd_custom_statuses WHERE status_category = ? AND "default" = 1'
        return next((number for (number,) in known(self.db, sql, status)), None)

    def groups_of(self, user_id: int | None) -> list[int]:
        """Returns the groups of an agent, the default one first."""
        found = select(self.db, GroupMembership, 'user_id = ? ORDER BY "default" DESC, id', user_id)
        return [one.group_id for one in found]
