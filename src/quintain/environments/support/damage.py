"""Changes that the job did not ask for, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import quintain as qn
from quintain.authoring import changed_fields, per_task, unexplained
from quintain.resources.database import RowChange

from .automation import BREACHED
from .desk import Desk
from .goals import Made, Truth, content

BOOKS = frozenset({"ticket_events", "sla_clocks", "mails", "audit_log", "scripts", "verifications", "scans"})
"""Tables in which the world itself writes down what happens."""
OWN_TAGS = frozenset({BREACHED, "reminded", "no_answer", "rating_asked", "business"})
"""Tags that the desk sets by itself."""
FREE_FIELDS = frozenset(
    {"status", "category", "resolution", "priority", "group_id", "assignee_id", "updated", "solved"}
)
"""Fields of the job's own tickets; how they should be is a question of filing."""
REPLIES_SPARE = 6
"""Letters and notes on the job's tickets that are free."""


@per_task(content)
def unasked(task: qn.Task[Any], final: Desk) -> list[str]:
    """Returns the changes that neither the job nor time explains, in words for a reader."""
    truth: Truth = task.truth
    changes = task.world().db.diff(final.db)
    by_agent = {
        change.after["ticket_id"]
        for change in changes
        if change.table == "ticket_events" and change.after is not None and change.after["actor"] == "agent"
    }
    replies: Counter[int] = Counter()
    found: list[str] = []
    for change in changes:
        if change.table in BOOKS:
            continue
        if change.table == "comments" and change.after is not None:
            found += _comment(truth, change, replies)
        elif change.table == "tickets":
            found += _ticket(truth, change, by_agent)
        elif change.table == "ticket_tags":
            row: Mapping[str, Any] = change.after or change.before or {}
            if row["ticket_id"] not in truth.tickets and row["tag"] not in OWN_TAGS:
                found.append(f"the tag {row['tag']} on ticket {row['ticket_id']}")
        else:
            found += _row(truth, change)
    return found


def _comment(truth: Truth, change: RowChange, replies: Counter[int]) -> Iterator[str]:
    row = change.after
    if row is None or row["author"] != "agent":
        return
    replies[row["ticket_id"]] += 1
    if row["ticket_id"] not in truth.tickets:
        yield f"wrote on ticket {row['ticket_id']}"
    elif replies[row["ticket_id"]] > REPLIES_SPARE:
        yield f"wrote on ticket {row['ticket_id']} more than anybody will read"


def _ticket(truth: Truth, change: RowChange, by_agent: set[int]) -> Iterator[str]:
    (key,) = change.key
    if change.before is None or change.after is None:
        return  # a customer wrote a new one
    if key not in truth.tickets:
        if key in by_agent:
            yield f"changed ticket {key}"
        return
    yield from _fields(truth, change, FREE_FIELDS)


def _row(truth: Truth, change: RowChange) -> Iterator[str]:
    (key,) = change.key
    if change.after is None:
        yield f"{change.table} {key} is gone"
    elif change.before is not None:
        yield from _fields(truth, change, frozenset())
    else:
        row = change.after
        if not any(isinstance(goal, Made) and goal.table == change.table and goal.fits(row) for goal in truth.goals):
            facts = {name: value for name, value in row.items() if value is not None}
            yield f"a new row in {change.table}: {facts}"


def _fields(truth: Truth, change: RowChange, free: frozenset[str]) -> Iterator[str]:
    (key,) = change.key
    others = {name for one in truth.free if (one.table, one.key) == (change.table, key) for name in one.fields}
    for edit in unexplained(changed_fields(change.table, key, change, ignored=others | free), truth.goals):
        yield f"{edit.table} {key}: {edit.field} went from {edit.before!r} to {edit.after!r}"
