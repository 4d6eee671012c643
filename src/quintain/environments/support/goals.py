"""Goals of the help desk: effects in the world, each of which can say why it is missing.

A goal looks at rows and at the replies to the customer, never at a flag alone. It accepts any wording, order and way of
finding out that the policy allows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

import msgspec

from quintain.authoring import Checklist, FieldGoal, Recent, TaskGoal

from .desk import Desk

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")  # fmt: skip


NUMBERS_MAX = 24
"""Different numbers in the replies on one ticket; more count as guessing."""


class Field(FieldGoal, frozen=True, kw_only=True):
    """A field of a row has a value; capital letters and spaces do not count, and closed is what becomes of solved."""

    value: str | int | None
    is_filing: bool = False
    """True for a field of how the ticket is filed, False for a repair."""

    def missing(self, world: Desk, start: Desk) -> str:
        del start
        found = _value(world, self.table, key=self.key, field=self.field)
        value = found[0][0] if found else "no row"
        if (self.table, self.field, value) == ("tickets", "status", "closed"):
            value = "solved"
        name = f"{self.table} {self.key}: {self.field}"
        return "" if _plain(value) == _plain(self.value) else f"{name} should be {self.value!r}, is {value!r}"


class Filled(FieldGoal, frozen=True, kw_only=True):
    """A field of a row that was empty is not any more."""

    def missing(self, world: Desk, start: Desk) -> str:
        del start
        ((value,),) = _value(world, self.table, key=self.key, field=self.field)
        return "" if value is not None else f"{self.table} {self.key}: {self.field} is still empty"


class Made(TaskGoal, frozen=True, kw_only=True):
    """So many new rows of a table have these values; without a count it only explains them."""

    table: str
    fields: dict[str, str | int | None]
    count: int | None = 1
    or_more: bool = False

    def missing(self, world: Desk, start: Desk) -> str:
        if self.count is None:
            return ""
        where = " AND ".join(["id > ?", *(f'"{name}" IS ?' for name in self.fields)])
        ((found,),) = world.db.execute(
            f"SELECT count(*) FROM {self.table} WHERE {where}",  # noqa: S608 (names of ours)
            floor(start, self.table),
            *self.fields.values(),
        )
        enough = found >= self.count if self.or_more else found == self.count
        return "" if enough else f"{found} new rows in {self.table} with {self.fields}, not {self.count}"

    def fits(self, row: Mapping[str, Any]) -> bool:
        """True if a row has these values."""
        return all(row[name] == value for name, value in self.fields.items())


class Answer(TaskGoal, frozen=True, kw_only=True, tag="Told"):
    """Replies to the customer hold some facts, in any words and in one reply or several."""

    ticket: int
    facts: tuple[str, ...]
    """Patterns; see `amount`, `day` and `word`."""

    def missing(self, world: Desk, start: Desk) -> str:
        said = replies(world, start, self.ticket)
        if not said:
            return f"ticket {self.ticket} was not answered"
        if len(_numbers(said)) > NUMBERS_MAX:
            return f"ticket {self.ticket} was told so many numbers that it is no answer"
        lacking = [fact for fact in self.facts if not holds(said, fact)]
        return f"the replies on ticket {self.ticket} do not tell {' nor '.join(lacking)}" if lacking else ""

    def share(self, world: Desk, start: Desk) -> float:
        """Returns the share of the facts that the replies hold."""
        said = replies(world, start, self.ticket)
        if len(_numbers(said)) > NUMBERS_MAX:
            return 0.0
        return sum(holds(said, fact) for fact in self.facts) / len(self.facts) if said else 0.0


Goal = Field | Filled | Made | Answer


class Free(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a row that may change without being asked for: effects of what others do."""

    table: str
    key: int
    fields: tuple[str, ...]


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """All that a verdict needs.

    Attributes:
        goals: What has to be.
        asks_only: Whether nothing was to be repaired, so that the right answer is the work.
        free: What may change besides.
        tickets: The tickets of the job.
        foreign: Words about other customers, which no public reply may hold.
        internal: Words of internal texts, the same.
    """

    goals: tuple[Goal, ...]
    asks_only: bool
    free: tuple[Free, ...] = ()
    tickets: tuple[int, ...]
    foreign: tuple[str, ...] = ()
    internal: tuple[str, ...] = ()


def content(world: Desk) -> str:
    """Returns a key of everything that goals look at."""
    return world.db.digest()


CHECKLIST: Checklist[Any] = Checklist(content=content)
"""Evaluates the goals of the tasks, for all criteria."""

_FLOORS: Recent[int] = Recent(10_000)


def floor(start: Desk, table: str) -> int:
    """Returns the greatest id of a table when the job began: rows made during it have greater ones."""

    def newest() -> int:
        ((found,),) = start.db.execute(f"SELECT coalesce(max(id), 0) FROM {table}")  # noqa: S608 (names of ours)
        return int(found)

    return _FLOORS.get((start.db.digest(), table), newest)


def replies(world: Desk, start: Desk, ticket: int) -> str:
    """Returns the text of the agent's replies on a ticket."""
    said = world.db.execute(
        "SELECT body FROM comments WHERE id > ? AND ticket_id = ? AND author = 'agent' AND is_public = 1 ORDER BY id",
        floor(start, "comments"),
        ticket,
    )
    return "\n".join(body for (body,) in said)


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:[.,:/-]\d+)*", text))


def holds(text: str, fact: str) -> bool:
    """True if a text matches a pattern; case does not count."""
    return re.search(fact.casefold(), text.casefold()) is not None


def amount(cents: int) -> str:
    """A pattern for an amount: 1,234.50 or 1234,50; whole euros also without cents."""
    euros = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", lambda _: r"[.,\s]?", str(cents // 100))
    tail = rf"[.,]{cents % 100:02}" if cents % 100 else r"(?:[.,]00)?"
    return rf"(?<![\d.,]){euros}{tail}(?![.,]?\d)"


def day(text: str) -> str:
    """A pattern for a date: 2025-03-31, 31.03.2025, 31/3, 31 March, March 31st."""
    when = date.fromisoformat(text[:10])
    month, short = _MONTHS[when.month - 1], _MONTHS[when.month - 1][:3]
    ordinal = rf"0?{when.day}(?:st|nd|rd|th|\.)?"
    return (
        rf"{when.isoformat()}|(?<!\d)0?{when.day}[./]0?{when.month}(?!\d)"
        rf"|(?<!\d){ordinal} (?:of )?(?:{month}|{short})|(?:{month}|{short})\.? {ordinal}(?!\d)"
    )


def number(value: int) -> str:
    """A pattern for a number that stands alone: INC-12, incident 12, #12."""
    return rf"(?<![\d.,]){value}(?![.,]?\d)"


NOT_YOURS = r"\b(?:own|yours|belongs?|eigenen?|gehört|vôtres?|suyas?)\b"
"""A pattern for saying that something is not the writer's."""
UNSURE = r"v[eé]rif|ident|confirm|prove|bestätig"
"""A pattern for saying that a customer could not be verified."""


def word(text: str) -> str:
    """A pattern for words as they stand, but for spaces and capital letters."""
    return r"(?<!\w)" + r"\s+".join(map(re.escape, text.split())) + r"(?!\w|-\w)"


def _value(world: Desk, table: str, *, key: int, field: str) -> list[tuple[Any, ...]]:
    return world.db.execute(f'SELECT "{field}" FROM {table} WHERE id = ?', key)  # noqa: S608 (names of ours)


def _plain(value: Any) -> Any:
    return " ".join(value.casefold().split()) if isinstance(value, str) else value
