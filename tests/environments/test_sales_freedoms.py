"""Side effects cost, and every freedom that the policy leaves may be taken."""

from __future__ import annotations

from datetime import timedelta

import pytest

from quintain.environments.sales import policy, times
from quintain.environments.sales.damage import NOTES_SPARE
from quintain.environments.sales.goals import Mailed, Note, Truth

from .sales_desk import (
    EVERY_KIND,
    Call,
    Calls,
    Task,
    bent,
    calls_of,
    demo_of,
    first,
    goals_of,
    is_delayed,
    play,
    reasons,
    score,
    solution,
    start_of,
    uses,
)  # fmt: skip

# -- collateral damage


def _strays(task: Task) -> Calls:
    """Writes that no task asks for."""
    world, truth = task.world(), task.truth
    assert isinstance(truth, Truth)
    touched = set(truth.focus) | {str(value) for _, given in solution(task) for value in given.values()}
    contact = next(key for key, row in world.crm.contacts.items() if key not in touched and row.email)
    account = next(key for key in world.crm.accounts if key not in touched)
    rep = next(key for key in world.crm.team if key != world.crm.accounts[account].owner)
    later = times.stamp(world.clock.now + 30 * times.DAY)
    waiting = [key for key, row in world.mail.outbox.items() if row.status == "scheduled" and key not in touched]
    return [
        ("crm_update_contact", {"contact_id": contact, "title": "King"}),
        ("crm_update_account", {"account_id": account, "employees": 7}),
        ("crm_assign_owner", {"record_id": account, "rep_id": rep}),
        ("crm_log", {"record_id": contact, "kind": "call", "text": "Called, nobody there."}),
        ("mail_schedule", {"to": "a@elsewhere.example", "subject": "Hi", "body": "Dear A, hi!", "at": later}),
        ("calendar_book", {"rep_id": rep, "attendee": "a@b.example", "start": later, "minutes": 15, "title": "x"}),
        *[("mail_cancel", {"mail_id": key}) for key in waiting[:1]],
    ]


@pytest.mark.parametrize(("family", "level"), EVERY_KIND)
def test_touching_anything_else_costs(family: str, level: str) -> None:
    task = first(family, level)
    for stray in _strays(task):
        assert score(task, [*solution(task), stray]) <= 0.5, (task.id, stray)
    assert score(task, [*solution(task), *_strays(task)]) == 0.0


def test_notes_without_end_cost() -> None:
    task = first("qualify", "easy")
    log = calls_of(task, "crm_log")[0]
    spare: Calls = [("crm_log", log)] * NOTES_SPARE
    assert score(task, [*solution(task), *spare]) == 1.0
    assert score(task, [*solution(task), *spare, ("crm_log", log)]) == 0.5


# -- freedoms


@pytest.mark.parametrize(("family", "level"), EVERY_KIND)
def test_reading_more_and_writing_otherwise_is_free(family: str, level: str) -> None:
    task = first(family, level)

    def otherwise(call: Call) -> Call:
        name, given = call
        match name:
            case "crm_log":
                return name, given | {"kind": "call", "text": f"Done as asked. {given['text'].upper()}"}
            case "mail_send" | "mail_schedule":
                changed = {"to": given["to"].upper(), "subject": "A word from us", "body": f"{given['body']}\nPS: Bye!"}
                return name, given | changed
            case _:
                return call

    extra: Calls = [
        ("now", {"zone": "Asia/Tokyo"}),
        ("crm_search", {"kind": "accounts", "query": "a", "page": 2}),
        ("mail_inbox_list", {}),
        ("crm_colleagues", {"region": "APAC"}),
    ]
    assert score(task, [*extra, *map(otherwise, solution(task)), *extra]) == 1.0


def _contact_mail(task: Task) -> Mailed:
    goals: list[Mailed] = goals_of(task, Mailed)
    return next(goal for goal in goals if not goal.to.endswith(policy.HOUSE))


def test_scheduling_within_the_hours_is_as_good_as_sending() -> None:
    task = first("revive", "easy", lambda task: not is_delayed(task))
    goal = _contact_mail(task)
    at = times.stamp(policy.first_chance(start_of(task) + times.HOUR, "UTC"))
    assert times.parse(at) <= goal.latest
    calls = [("mail_schedule", given | {"at": at}) if name == "mail_send" else (name, given)
             for name, given in solution(task)]  # fmt: skip
    trace = play(task, calls)
    assert trace.score == 1.0 or "outside the hours" in reasons(trace)


def test_merging_by_way_of_another_record_is_fine() -> None:
    task = first("duplicates", "medium")
    one, two = calls_of(task, "crm_merge_contacts")
    chained = iter([
        ("crm_merge_contacts", {"survivor_id": two["duplicate_id"], "duplicate_id": one["duplicate_id"]}),
        ("crm_merge_contacts", two),
    ])  # fmt: skip
    calls = [next(chained) if name == "crm_merge_contacts" else (name, given) for name, given in solution(task)]
    assert score(task, calls) == 1.0


def test_an_undone_mistake_is_no_damage() -> None:
    task = first("demo", "easy")
    goal = demo_of(task)
    start = times.stamp(start_of(task) + 20 * times.DAY)
    slip = {"rep_id": goal.rep, "attendee": goal.attendee, "start": start, "minutes": 45, "title": "Demo"}
    undone: Calls = [("calendar_book", slip), ("calendar_cancel", {"meeting_id": "E-90001"})]
    assert score(task, [*undone, *solution(task)]) == 1.0


def test_a_letter_that_was_cancelled_counts_for_no_limit() -> None:
    task = first("revive", "easy", is_delayed)
    (letter,) = calls_of(task, "mail_schedule")
    slip: Calls = [("mail_schedule", letter)]
    assert score(task, [*slip, ("mail_cancel", {"mail_id": "M-90001"}), *solution(task)]) == 1.0
    assert score(task, [*slip, *solution(task)]) <= 0.5


def test_times_may_be_told_in_any_usual_way() -> None:
    task = first("demo", "easy")
    goal = demo_of(task)
    tool = next(name for name, given in solution(task) if given.get("to") == goal.attendee)
    clock = times.local(times.parse(calls_of(task, "calendar_book")[0]["start"]), goal.zone)
    hour, half = clock.hour % 12 or 12, "am" if clock.hour < 12 else "pm"
    for form in (f"{hour}:{clock.minute:02} {half}", f"{hour}:{clock.minute:02}{half.upper()}"):
        body = f"Dear {goal.attendee.partition('.')[0]}, see you at {form}."
        names = next(g.mentions[0] for g in goals_of(task, Mailed))
        assert score(task, bent(task, tool, body=f"{names}: {body}")) == 1.0


def test_times_may_carry_an_offset() -> None:
    task = first("demo", "medium")

    def shifted(start: str) -> str:
        local = times.local(times.parse(start), "UTC") + timedelta(hours=5, minutes=30)
        return f"{local:%Y-%m-%dT%H:%M}+05:30"

    tool = "calendar_book" if uses("calendar_book")(task) else "calendar_move"
    assert score(task, bent(task, tool, start=shifted)) == 1.0


def test_a_note_may_stand_on_either_record_of_one_person() -> None:
    task = first("optout", "hard")
    (note,) = goals_of(task, Note)
    for place in note.about:
        assert score(task, bent(task, "crm_log", record_id=place)) == 1.0
