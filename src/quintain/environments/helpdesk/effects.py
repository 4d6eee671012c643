"""Effects: what a world shows that it would not show if the agent had done nothing, and goals made of them.

The effects that a task wants are those of its solution. What the world writes down by itself, times, and identifiers
are left out; texts are judged by the facts that they must hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from quintain.authoring import Recent, TaskGoal
from quintain.products.zendesk import tables as tb
from quintain.resources.web.rows import find

from .state import Helpdesk

Key = tuple[str, str, str]
"""Table, row and field. A new row is named by what distinguishes it."""
BOOKS = frozenset(
    {"zd_audits", "zd_metrics", "zd_metric_events", "zd_mails", "zd_webhook_calls", "web_due", "web_jobs", "web_items"}
)
"""Tables in which the world itself writes down what happens."""
VOLATILE = frozenset({
    "id", "created_at", "updated_at", "generated_timestamp", "deleted_at", "deleted_by", "custom_status_id", "via",
    "followup_ids", "url", "raw_title", "raw_subject", "subject", "description",
})  # fmt: skip
"""Fields that times, other fields or the way of calling decide, and texts."""
IDENTITIES: Mapping[str, tuple[str, ...]] = {
    "zd_comments": ("ticket_id", "public", "author_id"), "zd_tickets": ("type", "requester_id"),
    "zd_ticket_views": ("title",), "zd_macros": ("title",), "zd_triggers": ("title",),
    "zd_automations": ("title",), "zd_sla_policies": ("title",),
}  # fmt: skip
"""Fields that distinguish new rows of a table; of other tables, all that are not volatile."""
SETTLED_S = 60.0
"""Time in which jobs finish, before a world is judged."""
_KNOWN: Recent[dict[Key, str]] = Recent(256)
_IDLE: dict[str, Helpdesk] = {}
"""By the digest of a start the world in which the agent does nothing, as late as it was needed last."""


def effects(start: Helpdesk, world: Helpdesk) -> dict[Key, str]:
    """Returns the effects of an episode. The result is shared: do not change it."""
    return _KNOWN.get((start.db.digest(), world.db.digest()), lambda: _effects(start, world))


def _idle(start: Helpdesk, now: float) -> Helpdesk:
    """Returns the start at a later moment. What was due up to the moment asked for before is not done again."""
    key = start.db.digest()
    found = _IDLE.pop(key, start)
    found = (found if found.clock.now <= now else start).copy()
    found.clock.advance(now - found.clock.now)
    for old in list(_IDLE)[:-16]:
        del _IDLE[old]
    return _IDLE.setdefault(key, found)


def _effects(start: Helpdesk, world: Helpdesk) -> dict[Key, str]:
    found: dict[Key, str] = {}
    if start.db.digest() == world.db.digest():
        return found
    settled = world.copy()
    settled.clock.advance(SETTLED_S)
    for change in _idle(start, settled.clock.now).db.diff(settled.db):
        if change.table not in BOOKS:
            for field, row, value in _of_row(change, start.tickets):
                found[change.table, row, field] = value
    return found


def _of_row(change: Any, tickets: int) -> Iterator[tuple[str, str, str]]:
    row, before = change.after, change.before
    if row is None:
        yield "", f"{change.key[0]}", "gone"
    elif before is None:
        names = IDENTITIES.get(change.table) or tuple(name for name in row if name not in VOLATILE)
        name = "new " + ", ".join(f"{one}={_named(one, row[one], tickets)}" for one in names)
        yield "", name, "there"
        if change.table == "zd_tickets":
            for field in ("status", "priority", "group_id", "assignee_id", "is_public", "problem_id"):
                yield field, name, str(row[field])
    else:
        for field, value in row.items():
            if field not in VOLATILE and value != before[field]:
                yield from _of_field(change, field, tickets)


def _of_field(change: Any, field: str, tickets: int) -> Iterator[tuple[str, str, str]]:
    row, old, new = str(change.key[0]), change.before[field], change.after[field]
    if change.table == "zd_tickets" and field in {"tags", "custom", "email_cc_ids"}:
        then, now = _parts(old), _parts(new)
        for name in sorted(then.keys() | now.keys()):
            if then.get(name) != now.get(name):
                yield f"{field} {name}", row, str(now.get(name))
    else:
        yield field, row, _named(field, new, tickets)


def _parts(text: str) -> dict[str, Any]:
    value: dict[str, Any] | list[Any] = msgspec.json.decode(text, type=dict[str, Any] | list[Any])
    return value if isinstance(value, dict) else {str(one): True for one in value}


def _named(field: str, value: Any, tickets: int) -> str:
    """Returns a value as text; the number of a ticket that the start does not have is `new`."""
    is_new = field in {"ticket_id", "problem_id"} and value is not None and value > tickets
    return "new" if is_new else str(value)


class Effect(TaskGoal, frozen=True, kw_only=True):
    """One effect of the solution."""

    table: str
    row: str
    field: str
    value: str

    @property
    def key(self) -> Key:
        """The table, row and field."""
        return self.table, self.row, self.field

    def missing(self, world: Helpdesk, start: Helpdesk, /) -> str:
        """Returns how the world differs from the effect."""
        found = effects(start, world).get(self.key)
        words = f"{self.table} {self.row} {self.field}".rstrip()
        return "" if found == self.value else f"{words} should be {self.value}, is {found or 'as before'}"


class Fact(TaskGoal, frozen=True, kw_only=True):
    """Words that an agent's comments on a ticket hold; ticket 0 stands for tickets that the start does not have."""

    ticket: int
    public: bool
    pattern: str

    def missing(self, world: Helpdesk, start: Helpdesk, /) -> str:
        """Returns the fact if the comments do not hold it."""
        text = said(start, world, self.ticket, public=self.public)
        kind = "reply" if self.public else "note"
        return (
            "" if re.search(self.pattern, text, re.IGNORECASE) else f"no {kind} on {self.ticket} holds {self.pattern}"
        )


def said(start: Helpdesk, world: Helpdesk, ticket: int, *, public: bool) -> str:
    """Returns what agents wrote on a ticket since the start."""
    where = "ticket_id = ?" if ticket else "ticket_id > ?"
    last = start.db.execute("SELECT coalesce(max(id), 0) FROM zd_comments")[0][0]
    sql = f"SELECT body FROM zd_comments WHERE {where} AND public = ? AND by_agent = 1 AND id > ? ORDER BY id"
    return "\n".join(body for (body,) in world.db.execute(sql, ticket or start.tickets, public, last))


def breached(world: Helpdesk, tickets: Sequence[int]) -> tuple[str, ...]:
    """Returns the breached clocks of tickets."""
    rows = [find(world.db, tb.Metric, one) for one in tickets]
    clocks = [(row.id, clock) for row in rows if row is not None for clock in row.clocks]
    return tuple(f"{number} {one.metric} {one.instance}" for number, one in clocks if one.breached)


def fact(words: str) -> str:
    """Returns the pattern of a fact: an amount in usual spellings, or words that no longer word continues."""
    if re.fullmatch(r"\d+\.\d\d", words):
        whole, cents = words.split(".")
        grouped = rf"{whole[:-3]}[.,' ]?{whole[-3:]}" if len(whole) > 3 else whole
        return (
            rf"(?<![\d.,]){grouped}" + (rf"(?:[.,]{cents})?" if cents == "00" else rf"[.,]{cents}") + r"(?!\d|[.,]\d)"
        )
    return rf"(?<!\w){re.escape(words)}(?!\w)"
