"""Time: deadlines in business hours, automations, and results that depend on the moment and not on the steps."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain import resource
from quintain.environments.support.desk import moment, seconds
from quintain.environments.support.schema.desk import SlaClock, Ticket
from quintain.environments.support.state import Support
from tests.environments.sampled import sampled

from .desk import KINDS, first, value, world_at

STANDARD = "organisation_id IS NULL"
BUSINESS = "organisation_id IN (SELECT id FROM organisations WHERE tier = 'business')"


def _ticket(world: Support, whose: str = STANDARD, channel: str = "email") -> int:
    requester = value(world, f"SELECT min(id) FROM customers WHERE {whose}")
    return world.open_ticket(requester_id=requester, subject="Help", body="It does not work.", channel=channel)


def _due(world: Support, ticket: int, metric: str) -> str:
    found: str = value(world, "SELECT due FROM sla_clocks WHERE ticket_id = ? AND metric = ?", ticket, metric)
    return found


def _until(world: Support, at: str) -> None:
    world.clock.advance(seconds(at) - world.clock.now)


# -- deadlines; normal priority: 8 and 40 hours for everybody, 4 and 16 for businesses


@pytest.mark.parametrize(
    ("now", "whose", "first_reply", "resolution"),
    [
        # Office hours are 8 to 18 in Berlin, Monday to Friday. Wednesday 10:00 there:
        ("2025-03-26T09:00:00Z", STANDARD, "2025-03-26T17:00:00Z", "2025-04-01T08:00:00Z"),
        # Friday 17:00, and the clocks change on Sunday: one hour is left, seven on Monday.
        ("2025-03-28T16:00:00Z", STANDARD, "2025-03-31T13:00:00Z", "2025-04-03T15:00:00Z"),
        # In the night: it counts from the next morning.
        ("2025-03-25T02:00:00Z", STANDARD, "2025-03-25T15:00:00Z", "2025-03-28T17:00:00Z"),
        # The Thursday before Easter, 16:00 in Berlin: Friday and Monday are holidays.
        ("2025-04-17T14:00:00Z", STANDARD, "2025-04-22T12:00:00Z", "2025-04-25T14:00:00Z"),
        # A business on Saturday 20:00: open until 22, not on Sunday, from 6 on Monday.
        ("2025-03-29T19:00:00Z", BUSINESS, "2025-03-31T06:00:00Z", "2025-03-31T18:00:00Z"),
    ],
)
def test_deadlines_count_business_hours(now: str, whose: str, first_reply: str, resolution: str) -> None:
    world = world_at(now)
    ticket = _ticket(world, whose)
    assert (_due(world, ticket, "first_reply"), _due(world, ticket, "resolution")) == (first_reply, resolution)


def test_a_higher_priority_sets_the_deadlines_anew() -> None:
    world = world_at("2025-03-26T09:00:00Z")
    ticket = _ticket(world)
    world.alter(world.need(Ticket, ticket), "agent", priority="urgent")
    assert _due(world, ticket, "first_reply") == "2025-03-26T10:00:00Z"
    assert _due(world, ticket, "resolution") == "2025-03-26T17:00:00Z"


def test_the_resolution_is_not_due_while_the_customer_is_waited_for() -> None:
    world = world_at("2025-03-26T09:00:00Z")
    ticket = _ticket(world)
    _until(world, "2025-03-26T11:00:00Z")  # two of forty hours are used
    world.alter(world.need(Ticket, ticket), "agent", status="pending")
    assert world.rows(SlaClock, "ticket_id = ? AND metric = 'resolution'", ticket)[0].left_minutes == 38 * 60
    _until(world, "2025-03-27T09:00:00Z")
    world.hear(ticket, "Here I am again.")
    assert world.need(Ticket, ticket).status == "open"
    assert _due(world, ticket, "resolution") == "2025-04-01T16:00:00Z"  # 8 + 10 + 10 + 10 hours, and summer time


def test_a_reply_in_time_keeps_the_promise_and_a_late_one_breaks_it() -> None:
    world = world_at("2025-03-26T09:00:00Z")
    soon, late, never = (_ticket(world) for _ in range(3))
    world.reply(soon, "Hello!")
    _until(world, "2025-03-26T17:00:01Z")
    world.reply(late, "Hello!")
    _until(world, "2025-03-26T19:00:00Z")
    found = world.rows(SlaClock, "metric = 'first_reply' AND ticket_id >= ? ORDER BY ticket_id", soon)
    assert [(clock.met is not None, clock.is_breached) for clock in found] == [
        (True, False),
        (True, True),
        (False, True),
    ]
    tag = "SELECT count(*) FROM ticket_tags WHERE ticket_id = ? AND tag = 'sla_breached'"
    assert [value(world, tag, ticket) for ticket in (soon, never)] == [0, 1]
    sql = 'SELECT a.role FROM mails m JOIN agents a ON a.email = m."to" WHERE m.subject = ?'
    assert world.db.execute(sql, f"Ticket {never}: first_reply is overdue") == [("lead",)]


# -- automations


def test_a_ticket_that_waits_is_reminded_solved_and_closed_at_the_full_hour() -> None:
    world = world_at("2025-03-26T09:00:00Z")
    ticket = _ticket(world)
    world.reply(ticket, "Which model is it?")
    world.update_ticket(ticket, status="pending", category="other")
    idle = seconds(world.need(Ticket, ticket).updated)
    mails = "SELECT count(*) FROM mails WHERE subject = 'We are waiting for your answer' AND at > '2025-03-26'"
    others = value(world, mails)
    for hours, status, reminders in ((71, "pending", 0), (73, "pending", 1), (167, "pending", 1), (169, "solved", 1)):
        world.clock.advance(idle + hours * 3600 - world.clock.now)
        assert world.need(Ticket, ticket).status == status
        tagged = value(world, "SELECT count(*) FROM ticket_tags WHERE ticket_id = ? AND tag = 'reminded'", ticket)
        assert tagged == reminders
    assert value(world, mails) > others
    assert world.need(Ticket, ticket).solved == moment((idle // 3600 + 169) * 3600)
    world.clock.advance(98 * 3600)
    assert world.need(Ticket, ticket).status == "closed"


def test_triggers_act_on_new_tickets_and_on_solved_ones() -> None:
    world = world_at("2025-03-26T09:00:00Z")
    mail, web = _ticket(world, BUSINESS), _ticket(world, BUSINESS, channel="web")
    tags = "SELECT group_concat(tag) FROM ticket_tags WHERE ticket_id = ?"
    assert [value(world, tags, ticket) for ticket in (mail, web)] == ["business", "business"]
    receipts = "SELECT count(*) FROM mails WHERE subject = 'We have your mail' AND at >= '2025-03-26'"
    assert value(world, receipts) == 1
    world.update_ticket(mail, status="solved", resolution="informed")
    assert value(world, tags, mail) == "business,rating_asked"


# -- the law of time


def _digest(world: Support) -> str:
    return asyncio.run(resource.digest(world))


@pytest.mark.parametrize("kind", sampled([kind for kind in KINDS if kind[1] == "hard"][::4], every=4))
def test_three_weeks_at_once_are_three_weeks_hour_by_hour(kind: tuple[str, str, str]) -> None:
    whole, pieces = first(*kind).world().copy(), first(*kind).world().copy()
    whole.wait(504)
    for _ in range(504):
        pieces.wait(1)
    assert _digest(whole) == _digest(pieces)
    assert whole.db.diff(pieces.db) == []


@settings(max_examples=5)
@given(st.lists(st.floats(0.25, 40), min_size=1, max_size=6))
def test_however_time_is_cut_the_world_is_the_same(steps: list[float]) -> None:
    task = first("outage", "hard", "whole_firm")
    whole, pieces = task.world().copy(), task.world().copy()
    goal = whole.clock.now + 6 * 40 * 3600.0
    for hours in steps:
        pieces.wait(hours)
    for world in (whole, pieces):
        world.clock.advance(goal - world.clock.now)
        world.clock.now = goal  # sums of floats may differ in the last bit
    assert whole.db.diff(pieces.db) == []
    assert whole.db.digest() == pieces.db.digest()


def test_acts_of_others_happen_when_due_and_not_before() -> None:
    task = first("outage", "hard", "whole_firm")
    world = task.world().copy()
    (hours,) = [given["hours"] for name, given in task.solution or () if name == "wait"]
    incident = value(world, "SELECT id FROM incidents WHERE status = 'investigating'")
    status = "SELECT status FROM incidents WHERE id = ?"
    world.clock.advance((hours - 1) * 3600 - 1)
    assert value(world, status, incident) == "investigating"
    world.clock.advance(1)
    assert value(world, status, incident) == "resolved"
    assert value(world, "SELECT resolved FROM incidents WHERE id = ?", incident) == world.now
