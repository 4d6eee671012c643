"""Hourly automations of the desk: remind, solve and close idle tickets, and escalate broken promises."""

from __future__ import annotations

from typing import NamedTuple

from quintain.authoring import Recent

from .desk import HOUR, moment
from .schema.desk import Automation, Mail, SlaClock, Ticket
from .tools.ticketing import Ticketing

BREACHED = "sla_breached"
_UNTAGGED = "NOT EXISTS (SELECT 1 FROM ticket_tags t WHERE t.ticket_id = tickets.id AND t.tag = ?)"
_NEVER = "~"
"""Sorts after every time."""
_LEAD = """
    SELECT email FROM agents WHERE role = 'lead' AND is_active = 1
    AND coalesce(group_id = (SELECT group_id FROM tickets WHERE id = ?), 1) ORDER BY id LIMIT 1
"""
_RUNNING = "met IS NULL AND left_minutes IS NULL AND is_breached = 0"


class _Pending(NamedTuple):
    """Earliest times at which the sweep has work; most sweeps find none."""

    running: list[SlaClock]
    """The promises that are not kept yet."""
    idle: list[tuple[int, str]]
    """For each automation its hours, and since when the first of its tickets was left alone."""


_PENDING: Recent[_Pending] = Recent(200)


class Automations(Ticketing):
    """The hourly sweep."""

    def sweep(self) -> None:
        """Run every automation on the tickets that it is about."""
        pending = _PENDING.get(self.db.digest(), self._pending)
        is_idle = any(since <= self._idle(hours) for hours, since in pending.idle)
        late = [clock for clock in pending.running if clock.due < self.now]
        if not is_idle and not late:
            return
        with self.db.transaction():
            touched: list[int] = []
            for one in self.rows(Automation, "is_active = 1") if is_idle else ():
                idle, tag = self._idle(one.idle_hours), one.actions.get("tag", "")
                for ticket in self.rows(Ticket, f"status = ? AND updated <= ? AND {_UNTAGGED}", one.status, idle, tag):
                    self.act(ticket, one.actions, actor="automation")
                    touched.append(ticket.id)
            if touched:  # An automation may have kept, stopped or moved a promise.
                theirs = f"ticket_id IN ({', '.join('?' * len(touched))}) AND due < ? AND {_RUNNING}"
                others = [clock for clock in late if clock.ticket_id not in touched]
                late = sorted([*others, *self.rows(SlaClock, theirs, *touched, self.now)], key=lambda clock: clock.id)
            for clock in late:
                self._escalate(clock)

    def _pending(self) -> _Pending:
        idle: list[tuple[int, str]] = []
        for one in self.rows(Automation, "is_active = 1"):
            sql = f"SELECT min(updated) FROM tickets WHERE status = ? AND {_UNTAGGED}"  # noqa: S608 (names of ours)
            ((since,),) = self.db.execute(sql, one.status, one.actions.get("tag", ""))
            idle.append((one.idle_hours, since or _NEVER))
        return _Pending(self.rows(SlaClock, _RUNNING), idle)

    def _idle(self, hours: int) -> str:
        return moment(self.clock.now - hours * HOUR)

    def _escalate(self, clock: SlaClock) -> None:
        """Marks a broken promise, and sends a mail to the lead of the responsible group."""
        self.change(SlaClock, clock.id, is_breached=True)
        self.tag(clock.ticket_id, BREACHED)
        for (email,) in self.db.execute(_LEAD, clock.ticket_id):
            self.add(Mail, at=self.now, to=email, subject=f"Ticket {clock.ticket_id}: {clock.metric} is overdue")
