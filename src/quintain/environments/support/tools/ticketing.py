"""Consequences of every change of a ticket: events, service levels, triggers. No tools."""

from __future__ import annotations

import functools
import json
from typing import Any, Literal

import msgspec

from quintain.environments.support.desk import Desk, seconds
from quintain.environments.support.desk import moment as moment_of
from quintain.environments.support.schema.desk import Comment, Mail, SlaClock, Ticket, TicketEvent, Trigger
from quintain.environments.support.schema.people import Customer, Organisation, SlaPolicy, SlaTarget
from quintain.resources.schedule import Calendar, Day

Actor = Literal["agent", "customer", "trigger", "automation"]
WAITING = ("pending", "hold")
"""While a ticket is in such a state, the clock of its resolution stands."""
DONE = ("solved", "closed")
_TAG = """
    INSERT INTO ticket_tags (ticket_id, tag) SELECT ?1, ?2
    WHERE NOT EXISTS (SELECT 1 FROM ticket_tags WHERE ticket_id = ?1 AND tag = ?2) RETURNING id
"""
_HOURS = """
    SELECT zone, days, opens || '-' || closes,
        (SELECT json_group_array(day) FROM (SELECT day FROM holidays WHERE hours_id = business_hours.id ORDER BY day))
    FROM business_hours WHERE id = ?
"""
_MET = "UPDATE sla_clocks SET met = ?1, is_breached = ?1 > due WHERE ticket_id = ?2 AND metric = ?3 AND met IS NULL"


@functools.lru_cache(maxsize=16)
def calendar(zone: str, days: tuple[str, ...], span: str, *, holidays: tuple[str, ...]) -> Calendar:
    """Business hours as a calendar."""
    dates = {day: Day("holiday") for day in holidays}
    return Calendar(zone=zone, hours=dict.fromkeys(days, (span,)), dates=dates)


@functools.lru_cache(maxsize=16)
def _calendar(row: tuple[str, str, str, str]) -> Calendar:
    """Returns the calendar of a row of `_HOURS`."""
    zone, days, span, holidays = row
    return calendar(zone, tuple(json.loads(days)), span, holidays=tuple(json.loads(holidays)))


class Ticketing(Desk):
    """The rules of the desk itself."""

    def alter(self, ticket: Ticket, actor: Actor, **fields: Any) -> Ticket:
        """Sets fields of a ticket, with all that follows from it; returns the ticket with them, or the same one."""
        changed = {name: value for name, value in fields.items() if getattr(ticket, name) != value}
        if not changed:
            return ticket
        for name, value in changed.items():
            before = getattr(ticket, name)
            self.add(
                TicketEvent,
                ticket_id=ticket.id,
                at=self.now,
                actor=actor,
                field=name,
                before=None if before is None else str(before),
                after=None if value is None else str(value),
            )
        more: dict[str, Any] = {"updated": self.now}
        if "status" in changed:
            more["solved"] = self.now if changed["status"] in DONE else None
            self._retime(ticket, changed["status"])
        self.change(Ticket, ticket.id, **changed | more)
        now = msgspec.structs.replace(ticket, **changed | more)
        if "priority" in changed:
            self._promise(now)
        if actor != "trigger":
            self._pull(now, "update")
        return now

    def comment(self, ticket_id: int, author: Literal["customer", "agent", "system"], **facts: Any) -> Comment:
        """Add to a ticket's thread."""
        row = self.add(Comment, ticket_id=ticket_id, author=author, at=self.now, **facts)
        self.change(Ticket, ticket_id, updated=self.now)
        return row

    def tag(self, ticket_id: int, tag: str) -> bool:
        """Put a tag on a ticket; False when it is there already."""
        return bool(self.db.execute(_TAG, ticket_id, tag))

    def open_ticket(self, *, requester_id: int, subject: str, body: str, channel: str) -> int:
        """A customer writes about something new."""
        requester = self.need(Customer, requester_id)
        ticket = self.add(
            Ticket,
            subject=subject,
            requester_id=requester_id,
            organisation_id=requester.organisation_id,
            channel=channel,
            created=self.now,
            updated=self.now,
        )
        self.comment(ticket.id, "customer", sender=requester.email, is_public=True, body=body)
        self.welcome(ticket.id)
        return ticket.id

    def welcome(self, ticket_id: int) -> None:
        """Sets the promises of a new ticket, and pulls its triggers."""
        ticket = self.need(Ticket, ticket_id)
        self._promise(ticket)
        self._pull(ticket, "create")

    def hear(self, ticket_id: int, body: str, sender: str | None = None) -> None:
        """A customer writes on a ticket: it opens again, unless it is closed."""
        ticket = self.need(Ticket, ticket_id)
        if ticket.merged_into is not None:
            self.hear(ticket.merged_into, body, sender)
            return
        who = sender or self.value(Customer, "email", ticket.requester_id)
        self.comment(ticket_id, "customer", sender=who, is_public=True, body=body)
        if ticket.status not in {"new", "open", "closed"}:
            self.alter(ticket, "customer", status="open", resolution=None)

    # -- service levels

    def hours_of(self, ticket: Ticket) -> tuple[SlaPolicy, Calendar]:
        """The service level of a ticket, and when its clocks run."""
        tier = "standard"
        if ticket.organisation_id is not None:
            tier = self.value(Organisation, "tier", ticket.organisation_id)
        (policy,) = self.rows(SlaPolicy, "tier = ?", tier)
        (hours,) = self.db.execute(_HOURS, policy.hours_id)
        return policy, _calendar(hours)

    def met(self, ticket_id: int, metric: Literal["first_reply", "resolution"]) -> None:
        """A promise was kept, or kept too late."""
        self.db.execute(_MET, self.now, ticket_id, metric)

    def _promise(self, ticket: Ticket) -> None:
        """Set the clocks of a ticket by its priority, from when it was made."""
        policy, hours = self.hours_of(ticket)
        (target,) = self.rows(SlaTarget, "policy_id = ? AND priority = ?", policy.id, ticket.priority)
        promised = {"first_reply": target.first_reply_minutes, "resolution": target.resolution_minutes}
        for metric, minutes in promised.items():
            due = moment_of(hours.add(seconds(ticket.created), 60 * minutes))
            clocks = self.rows(SlaClock, "ticket_id = ? AND metric = ?", ticket.id, metric)
            if not clocks:
                self.add(SlaClock, ticket_id=ticket.id, metric=metric, due=due)
            elif clocks[0].met is None and clocks[0].left_minutes is None:
                self.change(SlaClock, clocks[0].id, due=due)

    def _retime(self, ticket: Ticket, status: str) -> None:
        """Stop the clock of the resolution while others are waited for, and let it run on afterwards."""
        if status in DONE:
            self.met(ticket.id, "resolution")
            return
        _, hours = self.hours_of(ticket)
        for clock in self.rows(SlaClock, "ticket_id = ? AND metric = 'resolution'", ticket.id):
            if ticket.status in DONE and clock.met is not None:  # solved too early: the promise stands again
                self.change(SlaClock, clock.id, met=None, is_breached=clock.due < self.now)
            if status in WAITING and clock.left_minutes is None:
                left = int(hours.between(self.clock.now, seconds(clock.due)) // 60)
                self.change(SlaClock, clock.id, left_minutes=left)
            elif status not in WAITING and clock.left_minutes is not None:
                due = hours.add(self.clock.now, 60 * max(clock.left_minutes, 0))
                self.change(SlaClock, clock.id, left_minutes=None, due=moment_of(due))

    # -- triggers

    def _pull(self, ticket: Ticket, on: Literal["create", "update"]) -> None:
        for trigger in self.rows(Trigger, '"on" = ? AND is_active = 1', on):
            if self._fits(ticket, trigger.conditions):
                ticket = self.act(ticket, trigger.actions, actor="trigger")

    def _fits(self, ticket: Ticket, conditions: dict[str, str]) -> bool:
        facts = msgspec.structs.asdict(ticket)
        if ticket.organisation_id is not None:
            facts["tier"] = self.value(Organisation, "tier", ticket.organisation_id)
        return all(str(facts.get(name)) == value for name, value in conditions.items())

    def act(self, ticket: Ticket, actions: dict[str, str], *, actor: Actor) -> Ticket:
        """Does what a trigger, an automation or a macro says: tag, mail, or set fields; returns as `alter` does."""
        fields: dict[str, Any] = {}
        for name, value in actions.items():
            if name == "tag":
                self.tag(ticket.id, value)
            elif name == "mail":
                email = self.value(Customer, "email", ticket.requester_id)
                self.add(Mail, at=self.now, to=email, subject=value)
            else:
                fields[name] = int(value) if name.endswith("_id") else value
        return self.alter(ticket, actor, **fields)
