"""The tools: whatever a model sends, the world answers; and what it answers is what a CRM would."""

from __future__ import annotations

import asyncio
import contextlib
import json
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quintain as qn
from quintain import resource
from quintain.environments.sales import env, times
from quintain.environments.sales.calendar import Calendar, Meeting, Office
from quintain.environments.sales.mail import Habit, Incoming, Mail, Outgoing
from quintain.environments.sales.state import Sales
from quintain.models.baselines import draw
from quintain.state import Rng
from quintain.tools import observe

from .sales_desk import first

START = env.tasks("test")[14].world()
WORDS = [
    *START.crm.contacts, *START.crm.accounts, *START.crm.leads, *START.crm.opportunities, *START.crm.team,
    *START.mail.outbox, *START.mail.inbox, *START.calendar.meetings, "2025-03-30", "2025-03-30T02:30+01:00",
    "2026-12-31T23:59Z", "somebody@elsewhere.example", "Europe/Berlin", "", " ", "\x00", "İ", "ẞ",
]  # fmt: skip


def test_tools_are_many_and_each_is_documented() -> None:
    assert len(env.tools) >= 14
    assert {name.partition("_")[0] for name in env.tools} == {"crm", "mail", "calendar", "now", "wait"}
    for tool in env.tools.values():
        assert all("description" in field for field in tool.parameters["properties"].values())


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(sorted(env.tools)), st.integers(0, 2**32)), min_size=1, max_size=25))
def test_valid_calls_are_answered_or_refused_but_never_break_the_world(plan: list[tuple[str, int]]) -> None:
    world = START.copy()
    for name, seed in plan:
        tool = env.tools[name]
        arguments = draw(tool, Rng(key=seed.to_bytes(8, "little")), WORDS)
        assert arguments is not None
        with contextlib.suppress(qn.ToolError):
            observe(tool.bind(world)(**tool.decode(arguments)))
    assert _digest(world.copy()) == _digest(world)


@settings(max_examples=60)
@given(st.sampled_from(sorted(env.tools)), st.text(max_size=40))
def test_any_text_for_an_id_or_a_time_is_taken_or_refused(name: str, text: str) -> None:
    tool, world = env.tools[name], START.copy()
    strings = {key: text for key, field in tool.parameters["properties"].items() if field.get("type") == "string"}
    fixed: dict[str, Any] = {"minutes": 45, "hours": 1.0, "kind": "note" if name == "crm_log" else "contacts"}
    fixed |= {"status": "working", "stage": "demo"}
    given_ = {k: v for k, v in (fixed | strings).items() if k in tool.parameters["properties"]}
    with contextlib.suppress(qn.ToolError, msgspec.ValidationError):
        tool.bind(world)(**tool.decode(json.dumps(given_)))


def test_search_goes_by_words_not_by_meaning() -> None:
    crm = START.crm
    key, contact = next((k, row) for k, row in crm.contacts.items() if row.email and " " in row.name.strip())
    for query in (contact.name, contact.name.upper(), contact.name.split()[-1][1:], contact.email or ""):
        assert key in _ids(crm.search(kind="contacts", query=query))
    assert crm.search(kind="contacts", query="zzzzqqq")["found"] == 0
    assert crm.search(kind="contacts", query="   ")["found"] == 0


def test_search_comes_in_pages_without_overlap() -> None:
    crm = START.crm
    pages = [crm.search(kind="contacts", query="a", page=n) for n in range(1, 30)]
    found = [key for page in pages for key in _ids(page)]
    assert len(found) == len(set(found)) == pages[0]["found"]
    assert max(len(page["records"]) for page in pages) == 10


def test_search_ranks_the_exact_name_first() -> None:
    crm = START.crm.copy()
    key = next(iter(crm.accounts))
    row = crm.accounts[key]
    row.name = "Ember"
    crm.accounts[key] = row
    hits = crm.search(kind="accounts", query="ember")
    assert hits["records"][0]["id"] == key


def test_a_merged_contact_is_gone_and_its_history_moved() -> None:
    world = first("duplicates", "medium").world().copy()
    one, two = list(world.crm.contacts)[:2]
    world.crm.log(record_id=two, kind="note", text="before the merge")
    world.crm.merge_contacts(survivor_id=one, duplicate_id=two)
    assert "before the merge" in str(world.crm.history(record_id=one)["entries"])
    assert two not in _ids(world.crm.search(kind="contacts", query=world.crm.contacts[two].name))
    with pytest.raises(qn.ToolError, match=f"merged into {one}"):
        world.crm.get(record_id=two)
    with pytest.raises(qn.ToolError, match="itself"):
        world.crm.merge_contacts(survivor_id=one, duplicate_id=one)


def _mail() -> Mail:
    habit = Habit(message_id="I-1", delay_s=3600, subject="Re", body="Yes")
    return Mail(outbox=qn.Table(Outgoing), inbox=qn.Table(Incoming), habits=qn.Table(Habit, {"a@b.example": habit}))


def test_answers_arrive_when_their_time_has_come_and_only_once() -> None:
    mail = _mail()
    mail.schedule(to="A@b.example", subject="Hi", body="Hello", at="2010-01-01T10:00Z")
    mail.clock.advance(times.parse("2010-01-01T10:59Z"))
    assert mail.unread == 0
    mail.clock.advance(60)
    assert mail.unread == 1
    assert mail.read(message_id="I-1").body == "Yes"
    assert mail.unread == 0
    mail.send(to="a@b.example", subject="Hi", body="Hello again")
    mail.clock.advance(7200)
    assert mail.unread == 0


def test_a_cancelled_letter_does_not_leave() -> None:
    mail = _mail()
    mail.schedule(to="a@b.example", subject="Hi", body="Hello", at="2010-01-01T10:00Z")
    mail.cancel(mail_id="M-1" if "M-1" in mail.outbox else next(iter(mail.outbox)))
    mail.clock.advance(times.parse("2011-01-01T10:00Z"))
    assert [row.status for row in mail.outbox.values()] == ["cancelled"]
    with pytest.raises(qn.ToolError, match="cancelled"):
        mail.cancel(mail_id=next(iter(mail.outbox)))


@pytest.mark.parametrize("address", ["", "nobody", "a@b", "a@b.example, c@d.example", "a b@c.example"])
def test_a_letter_goes_to_one_address(address: str) -> None:
    with pytest.raises(qn.ToolError, match="not one e-mail address"):
        _mail().send(to=address, subject="Hi", body="Hello")


def test_a_calendar_stands_alone_and_refuses_to_double_book() -> None:
    calendar = Calendar(offices=qn.Table(Office, {"R-1": Office(zone="Europe/Berlin")}), meetings=qn.Table(Meeting))
    calendar.clock.now = times.parse("2025-03-28T12:00Z")
    free = calendar.free_slots(rep_id="R-1", day="2025-03-31", minutes=60)["free"]
    assert free[0] == "2025-03-31T07:00Z (09:00)"  # summer time began on the 30th
    booking = {"rep_id": "R-1", "attendee": "a@b.example", "minutes": 45, "title": "Demo"}
    calendar.book(start="2025-03-31T07:30Z", **booking)  # type: ignore[arg-type]
    assert calendar.free_slots(rep_id="R-1", day="2025-03-31", minutes=60)["free"][0] == "2025-03-31T08:30Z (10:30)"
    with pytest.raises(qn.ToolError, match="another meeting"):
        calendar.book(start="2025-03-31T10:00+02:00", **booking)  # type: ignore[arg-type]
    key = calendar.appointments(attendee="A@B.example")[0]["id"]
    calendar.move(meeting_id=key, start="2025-03-31T07:45Z")
    assert [entry["start"] for entry in calendar.agenda(rep_id="R-1", day="2025-03-31")] == ["2025-03-31T07:45Z"]
    calendar.cancel(meeting_id=key)
    with pytest.raises(qn.ToolError, match="no booked meeting"):
        calendar.move(meeting_id=key, start="2025-03-31T08:00Z")
    assert calendar.free_slots(rep_id="R-1", day="2025-03-30", minutes=60)["free"] == []


@pytest.mark.parametrize(
    "text", ["2025-03-11", "2025-03-11T14:30", "2025-03-11T24:00Z", "2025-02-30T10:00Z", "soon", "٢٠٢٥-03-11T10:00Z"]
)
def test_a_time_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(qn.ToolError, match=r"write it like 2025-03-11T14:30Z"):
        times.parse(text)


@pytest.mark.parametrize("zone", times.ZONES)
def test_the_zone_rules_are_those_of_the_world(zone: str) -> None:
    try:
        reference = ZoneInfo(zone)
    except ZoneInfoNotFoundError:
        pytest.skip("this machine has no time-zone database")
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    for hours in range(0, 4 * 366 * 24, 5):
        at = begin + timedelta(hours=hours)
        expected = at.astimezone(reference).utcoffset()
        assert expected is not None
        assert times.offset(zone, at.timestamp()) == expected.total_seconds(), at


@pytest.mark.parametrize("zone", times.ZONES)
def test_a_wall_clock_and_back(zone: str) -> None:
    for n in range(800):
        day, hour = date(2025, 1, 1) + timedelta(days=n), 8 + n % 12
        clock = times.local(times.moment(day, hour, zone), zone)
        assert (clock.date(), clock.hour) == (day, hour)


def _ids(result: dict[str, Any]) -> list[str]:
    return [record["id"] for record in result["records"]]


def _digest(world: Sales) -> str:
    return asyncio.run(resource.digest(world))
