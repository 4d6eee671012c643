"""What the agent changed, row by row and field by field, and which of it nobody asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

import quintain as qn

from . import goals
from .goals import Booked, Edit, Mailed, Note, Truth
from .state import Sales

NOTES_SPARE = 3
"""Entries on the record of the job beyond those asked for that nobody minds."""

_WATCHED = (
    "crm.accounts",
    "crm.contacts",
    "crm.leads",
    "crm.opportunities",
    "crm.activities",
    "mail.outbox",
    "calendar.meetings",
)
"""Everything an agent can write, but for the marks of what it has read."""


def unasked(truth: Truth, start: Sales, final: Sales) -> list[str]:
    """Changes that no goal explains, each named for a reader."""
    stray = [
        f"{edit.key}.{edit.field} changed from {edit.before!r} to {edit.after!r}"
        for edit in edits(start, final)
        if not _by_itself(edit) and not any(goal.allows(edit) for goal in truth.goals)
    ]
    return [*stray, *_stray_letters(truth, final), *_stray_meetings(truth, final), *_stray_entries(truth, final)]


def edits(start: Sales, final: Sales) -> Iterator[Edit]:
    """Field by field, what differs in the rows that were there at the start. No tool deletes a row."""
    for name in _WATCHED:
        before: qn.Table[Any] = goals.table(start, name)
        for change in before.diff(goals.table(final, name)):
            if change.before is None or change.after is None:
                continue
            old, new = msgspec.structs.asdict(change.before), msgspec.structs.asdict(change.after)
            for field, value in old.items():
                if field != "updated" and value != new[field]:
                    yield Edit(table=name, key=change.key, field=field, before=value, after=new[field])


def _by_itself(edit: Edit) -> bool:
    """A scheduled letter that left because time passed."""
    return edit.table == "mail.outbox" and edit.field == "status" and edit.after == "sent"


def _stray_letters(truth: Truth, final: Sales) -> list[str]:
    wanted = Counter(goal.to.casefold() for goal in truth.goals if isinstance(goal, Mailed))
    stray: list[str] = []
    for key in final.fresh("M-"):
        letter = final.mail.outbox[key]
        if letter.status == "cancelled":
            continue
        wanted[letter.to.casefold()] -= 1
        if wanted[letter.to.casefold()] < 0:
            stray.append(f"{key}, an e-mail to {letter.to}, was not called for")
    return stray


def _stray_meetings(truth: Truth, final: Sales) -> list[str]:
    booked = [goal for goal in truth.goals if isinstance(goal, Booked) and goal.meeting is None]
    wanted = Counter((goal.rep, goal.attendee.casefold()) for goal in booked)
    stray: list[str] = []
    for key in final.fresh("E-"):
        meeting = final.calendar.meetings[key]
        if meeting.status == "cancelled":
            continue
        parties = (meeting.rep, (meeting.attendee or "").casefold())
        wanted[parties] -= 1
        if wanted[parties] < 0:
            stray.append(f"{key}, a meeting of {meeting.rep} with {meeting.attendee}, was not called for")
    return stray


def _stray_entries(truth: Truth, final: Sales) -> list[str]:
    places = {place for goal in truth.goals if isinstance(goal, Note) for place in goal.about} | set(truth.focus)
    entries = [(key, final.crm.activities[key]) for key in final.fresh("N-")]
    stray = [f"{key}, an entry about {row.about}, has nothing to do with the job" for key, row in entries
             if row.about not in places]  # fmt: skip
    spare = NOTES_SPARE + sum(isinstance(goal, Note) for goal in truth.goals)
    return stray + ["more entries than anybody will read"] * (len(entries) - len(stray) > spare)
