"""Each rule of the policy: breaking it costs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from quintain.environments.sales import policy, times
from quintain.environments.sales.goals import Field, Merged, Truth
from quintain.environments.sales.records import Account, Contact

from .sales_desk import (
    Call,
    Calls,
    Task,
    bent,
    calls_of,
    demo_of,
    each,
    first,
    goals_of,
    is_delayed,
    play,
    reasons,
    score,
    solution,
    start_of,
    uses,
    without,
)

# -- opt-outs


@pytest.mark.parametrize("level", ["easy", "medium", "hard"])
def test_letter_to_an_opted_out_contact_scores_zero(level: str) -> None:
    task = first("optout", level)
    truth: Truth = task.truth
    letter = {"to": truth.never[0], "subject": "Our prices", "body": "Dear customer, here is our new price list."}
    assert score(task, [*solution(task), ("mail_send", letter)]) == 0.0
    at = times.stamp(start_of(task) + 9 * times.DAY)
    assert score(task, [*solution(task), ("mail_schedule", letter | {"at": at})]) == 0.0
    assert "has opted out" in reasons(play(task, [*solution(task), ("mail_send", letter)]))


def test_letting_a_scheduled_letter_reach_somebody_opted_out_is_as_bad() -> None:
    task = first("optout", "hard")
    late = [call for call in solution(task) if call[0] != "mail_cancel"]
    assert score(task, [*late, *[("wait", {"hours": 72})] * 5]) == 0.0


def test_a_wish_that_arrives_during_the_job_counts_from_then_on() -> None:
    task = first("reply", "medium", uses("crm_mark_opt_out"))
    letter = {
        "to": calls_of(task, "mail_sent_to")[0]["address"],
        "subject": "Sorry",
        "body": "We will not write again.",
    }
    assert score(task, [*solution(task), ("mail_send", letter)]) == 0.0


def test_the_namesake_of_somebody_opted_out_is_left_alone() -> None:
    task = first("optout", "hard")
    people = task.world().crm.contacts
    key = calls_of(task, "crm_mark_opt_out")[0]["contact_id"]
    namesake = next(k for k, row in people.items() if row.name == people[key].name and row.email != people[key].email)
    assert score(task, [*solution(task), ("crm_mark_opt_out", {"contact_id": namesake})]) == 0.5


def test_a_refusal_must_name_whom_it_is_about() -> None:
    task = first("optout", "easy")
    assert score(task, bent(task, "mail_send", body="I did not send what you asked for, for they opted out.")) < 1.0
    assert score(task, bent(task, "mail_send", body=lambda body: body.replace("opted out", "no interest"))) < 1.0


# -- e-mail


def _sentstart_of(task: Task, calls: Calls | None = None) -> Calls:
    """The solution, with what it schedules sent at once."""
    return [
        ("mail_send", {k: v for k, v in given.items() if k != "at"}) if name == "mail_schedule" else (name, given)
        for name, given in calls or solution(task)
    ]


def test_writing_outside_the_hours_costs() -> None:
    def night(task: Task) -> bool:
        truth: Truth = task.truth
        world = task.world()
        contact = world.crm.contacts[truth.focus[1]]
        zone = policy.zone_of(contact, world.crm.accounts[contact.account or ""])
        return is_delayed(task) and not policy.may_write(start_of(task), zone)

    task = first("revive", "easy", night)
    trace = play(task, _sentstart_of(task))
    assert trace.score == 0.5
    assert "outside the hours for writing" in reasons(trace)


def test_a_contact_lives_by_its_own_clock_before_that_of_its_country() -> None:
    then = "2025-03-10T09:00Z"
    account = Account(name="A", country="Deutschland", updated=then)
    abroad = Contact(name="B", zone="Asia/Tokyo", created=then, updated=then)
    at_home = Contact(name="C", created=then, updated=then)
    assert [policy.zone_of(one, account) for one in (abroad, at_home)] == ["Asia/Tokyo", "Europe/Berlin"]
    assert [policy.zone_of(one, None) for one in (abroad, at_home)] == ["Asia/Tokyo", "UTC"]


def test_writing_twice_on_a_day_costs() -> None:
    task = first("reply", "hard", lambda task: "limit" in reasons(play(task, _sentstart_of(task))))
    assert score(task, _sentstart_of(task)) <= 0.5


def test_a_third_letter_in_a_week_costs() -> None:
    zone, day = "Europe/Berlin", times.DAY
    monday = times.parse("2025-03-10T09:00Z")
    assert not policy.over_quota([monday, monday + 2 * day], zone)
    assert policy.over_quota([monday, monday + 2 * day, monday + 4 * day], zone)
    assert not policy.over_quota([monday, monday + 2 * day, monday + 7 * day], zone)
    # On the Monday after, at eight, seven days are not quite over.
    tuesday = times.parse("2025-03-18T07:00Z")
    assert policy.first_chance(monday + 3 * day, zone, [monday, monday + 2 * day]) == tuesday


def test_a_letter_calls_its_reader_by_name() -> None:
    task = first("revive", "easy")
    tool = "mail_schedule" if is_delayed(task) else "mail_send"
    assert score(task, bent(task, tool, body="Dear Sir or Madam, would you like to go on with it?")) < 1.0


def test_a_letter_nobody_asked_for_costs() -> None:
    task = first("qualify", "easy")
    letter = {"to": "somebody@elsewhere.example", "subject": "Hello", "body": "Dear Sam, hello from us."}
    assert score(task, [*solution(task), ("mail_send", letter)]) <= 0.5


def test_reminding_on_the_wrong_day_costs() -> None:
    task = first("reply", "medium", lambda task: uses("mail_schedule")(task) and uses("crm_decide_lead")(task))

    def later(at: str) -> str:
        return times.stamp(times.parse(at) + 7 * times.DAY)

    assert score(task, bent(task, "mail_schedule", at=later)) < 1.0


# -- leads


@pytest.mark.parametrize("status", ["disqualified", "nurture", "working"])
def test_a_wrong_verdict_on_a_lead_costs(status: str) -> None:
    task = first("qualify", "easy", uses("crm_decide_lead", status="qualified"))
    verdict = {"status": status} | ({"reason": "too_small"} if status == "disqualified" else {})
    assert score(task, bent(task, "crm_decide_lead", **verdict)) < 1.0


def test_a_wrong_reason_costs() -> None:
    task = first("qualify", "easy", uses("crm_decide_lead", reason="no_budget"))
    assert score(task, bent(task, "crm_decide_lead", reason="too_small")) < 1.0


def test_a_wrong_owner_costs() -> None:
    for level in ("easy", "hard"):
        task = first("qualify", level, uses("crm_assign_owner"))
        owner = calls_of(task, "crm_assign_owner")[0]["rep_id"]
        for other in task.world().crm.team:
            if other != owner:
                assert score(task, bent(task, "crm_assign_owner", rep_id=other)) < 1.0


def test_an_outdated_number_costs() -> None:
    task = first("qualify", "hard", uses("crm_update_lead"))
    facts = calls_of(task, "crm_update_lead")[0]
    name = next(name for name in ("budget_eur", "months") if name in facts)
    assert score(task, bent(task, "crm_update_lead", **{name: facts[name] + 1})) < 1.0


def test_a_lead_that_does_not_qualify_gets_no_owner() -> None:
    task = first("qualify", "easy", uses("crm_decide_lead", status="disqualified"))
    lead = calls_of(task, "crm_decide_lead")[0]["lead_id"]
    given = ("crm_assign_owner", {"record_id": lead, "rep_id": next(iter(task.world().crm.team))})
    assert score(task, [*solution(task), given]) == 0.5


# -- duplicates


def test_merging_the_wrong_way_round_costs() -> None:
    task = first("duplicates", "easy")
    merge = calls_of(task, "crm_merge_contacts")[0]
    turned = {"survivor_id": merge["duplicate_id"], "duplicate_id": merge["survivor_id"]}
    assert score(task, bent(task, "crm_merge_contacts", **turned)) < 0.5


def test_merging_a_namesake_costs() -> None:
    task = first("duplicates", "medium")
    (merge, *_), people = calls_of(task, "crm_merge_contacts"), task.world().crm.contacts
    involved = {key for goal in goals_of(task, Merged) for key in (goal.survivor, goal.duplicate)}
    name = {people[key].name for key in involved}
    namesakes = [key for key, row in people.items() if row.name in name and key not in involved]
    assert namesakes
    for key in namesakes:
        assert score(task, [*solution(task), ("crm_merge_contacts", merge | {"duplicate_id": key})]) <= 0.5


def test_an_opt_out_must_survive_a_merge() -> None:
    task = first("duplicates", "hard", uses("crm_mark_opt_out"))
    assert score(task, without(task, "crm_mark_opt_out")) < 1.0


def test_the_note_on_a_merge_gives_the_ids() -> None:
    task = first("duplicates", "easy")
    assert score(task, bent(task, "crm_log", text="Merged the two records of this person.")) < 1.0


# -- meetings


def _at(task: Task, start: float) -> Calls:
    """The solution with the meeting at another time, confirmed."""
    goal = demo_of(task)
    clock = times.local(start, goal.zone)

    def reworded(body: str) -> str:
        return body.partition(" at ")[0] + f" at {clock:%H:%M} your time."

    def moved(call: Call) -> Call:
        name, given = call
        if name in {"calendar_book", "calendar_move"}:
            return name, given | {"start": times.stamp(start)}
        if name in {"mail_send", "mail_schedule"} and given["to"] == goal.attendee:
            return name, given | {"body": reworded(given["body"])}
        return call

    return [moved(call) for call in solution(task)]


def _starts(task: Task, day: float) -> list[float]:
    """All half hours around a moment."""
    return [day - day % 1800 + 1800 * n for n in range(-48, 49)]


@pytest.mark.parametrize(
    "level", ["easy", *(pytest.param(level, marks=pytest.mark.slow) for level in ("medium", "hard"))]
)
def test_every_time_that_suits_all_is_right_and_no_other(level: str) -> None:
    for task in [task for task, _ in zip(each("demo", level), range(3), strict=False)]:
        goal, world = demo_of(task), task.world()
        office = world.calendar.offices[goal.rep]
        busy = [row.span for row in world.calendar.meetings.values() if row.rep == goal.rep and row.attendee is None]
        for start in _starts(task, goal.windows[-1][0])[::5]:
            until = start + policy.DEMO_MINUTES * 60
            here = times.local(start, office.zone)
            right = (
                any(since <= start and until <= end for since, end in goal.windows)
                and office.opens <= here.hour
                and here.hour * 60 + here.minute + policy.DEMO_MINUTES <= office.closes * 60
                and not any(start < end and since < until for since, end in busy)
            )
            assert (score(task, _at(task, start)) == 1.0) == right, (task.id, times.stamp(start))


@pytest.mark.parametrize("flaw", [{"minutes": 30}, {"minutes": 60}, {"attendee": "boss@elsewhere.example"}])
def test_a_demo_of_another_kind_costs(flaw: dict[str, Any]) -> None:
    task = first("demo", "easy")
    assert score(task, bent(task, "calendar_book", **flaw)) < 0.5


def test_a_demo_with_somebody_else_than_the_owner_costs() -> None:
    task = first("demo", "easy")
    other = next(key for key in task.world().crm.team if key != demo_of(task).rep)
    assert score(task, bent(task, "calendar_book", rep_id=other)) < 0.5


def test_too_short_notice_costs() -> None:
    task = first("demo", "easy")
    goal = demo_of(task)
    assert goal.earliest == start_of(task) + policy.NOTICE_H * times.HOUR
    world = task.world().copy()
    world.calendar.book(**calls_of(task, "calendar_book")[0])
    assert not goal.missing(world, task.world())
    assert "short notice" in msgspec.structs.replace(goal, earliest=goal.windows[-1][1]).missing(world, task.world())


def test_booking_anew_instead_of_moving_costs() -> None:
    task = first("demo", "hard", uses("calendar_move"))
    goal = demo_of(task)
    start = calls_of(task, "calendar_move")[0]["start"]
    book = {"rep_id": goal.rep, "attendee": goal.attendee, "start": start, "minutes": 45, "title": "Demo"}
    calls = [("calendar_book", book) if name == "calendar_move" else (name, given) for name, given in solution(task)]
    assert score(task, calls) < 0.5


def test_confirming_another_time_costs() -> None:
    task = first("demo", "easy")
    tool = next(name for name, given in solution(task) if given.get("to") == demo_of(task).attendee)
    assert score(task, bent(task, tool, body=lambda body: body.replace(":", "."))) < 1.0
    every = " ".join(f"{hour:02}:{minute}" for hour in range(24) for minute in ("00", "30"))
    assert score(task, bent(task, tool, body=lambda body: body + every)) < 1.0


# -- deals


def test_skipping_a_stage_costs() -> None:
    task = first("revive", "medium", uses("crm_set_stage"))
    assert score(task, bent(task, "crm_set_stage", stage="won")) < 1.0


def test_a_deal_whose_contact_has_left_gets_another_contact() -> None:
    task = first("revive", "hard")
    assert any(goal.field == "contact" for goal in goals_of(task, Field))
    calls = [call for call in solution(task) if "contact_id" not in call[1] or call[0] != "crm_update_opportunity"]
    assert score(task, calls) < 1.0
