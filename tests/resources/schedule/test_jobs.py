"""Jobs run every occurrence in order, however far the world advances."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import quintain as qn
from quintain.errors import UsageError
from quintain.resources.schedule import Calendar, Cron, Daily, Day, Every, Jobs

HOUR, DAY = 3600, 86_400
BERLIN = Calendar(
    zone="Europe/Berlin", hours={"mon-fri": ("09:00-17:00",)}, dates={"1970-01-02": Day("day off"), "1970-01-01": Day()}
)


class Shop(qn.State):
    jobs: Jobs
    log: list[str] = []

    def note(self, name: str = "") -> None:
        self.log.append(f"{name}@{self.clock.now / HOUR:g}")

    def stop(self, name: str) -> None:
        self.note(f"stop {name}")
        self.jobs.cancel(name)

    def more(self) -> None:
        self.note("more")
        self.jobs.add(self.new_id("J"), Every(HOUR), self.note, arguments={"name": "child"}, count=1)

    def refuse(self) -> None:
        raise qn.ToolError("closed")


def shop(calendar: Calendar = Calendar()) -> Shop:  # noqa: B008 (frozen)
    return Shop(jobs=Jobs(calendar=calendar))


def test_each_occurrence_is_made_at_its_own_now() -> None:
    world = shop()
    world.jobs.add("two", Every(2 * HOUR), world.note, arguments={"name": "two"})
    world.jobs.add("three", Every(3 * HOUR), "note", arguments={"name": "three"})
    world.clock.advance(6 * HOUR)
    assert world.log == ["two@2", "three@3", "two@4", "two@6", "three@6"], "at one moment in the order of adding"
    assert len(world.clock.timers) == 1


def test_business_days_in_the_calendar_s_zone() -> None:
    world = shop(BERLIN)
    world.jobs.add("open up", Daily("09:00", "skip"), world.note)
    world.jobs.add("cron", Cron("30 8 5 1 *"), world.note)
    world.clock.advance(6 * DAY)
    monday = 4 * 24 + 8  # 9 o'clock there, where it is an hour later
    assert world.log == [f"@{monday - 0.5:g}", f"@{monday}", f"@{monday + 24}"]


def test_a_job_ends_by_count_and_by_date() -> None:
    world = shop()
    assert world.jobs.add("twice", Every(HOUR), world.note, arguments={"name": "twice"}, count=2).left == 2
    world.jobs.add("until", Every(HOUR), world.note, arguments={"name": "until"}, until=3 * HOUR)
    world.clock.advance(DAY)
    assert world.log == ["twice@1", "until@1", "twice@2", "until@2", "until@3"]
    assert world.jobs.all() == []
    assert world.clock.timers == ()
    world.jobs.add("twice", Every(HOUR), world.note, count=1)


def test_pause_leaves_out_and_resume_keeps_the_beat() -> None:
    world = shop()
    world.jobs.add("beat", Every(2 * HOUR), world.note)
    world.clock.advance(3 * HOUR)
    world.jobs.pause("beat")
    assert world.jobs.job("beat").paused
    world.clock.advance(4 * HOUR)
    world.jobs.resume("beat")
    world.jobs.resume("beat")
    world.clock.advance(3 * HOUR)
    assert world.log == ["@2", "@8", "@10"]
    job = world.jobs.job("beat")
    assert (job.made, job.due, job.paused) == (3, 12 * HOUR, False)


def test_a_job_that_ended_while_it_was_paused_is_gone() -> None:
    world = shop()
    world.jobs.add("short", Every(HOUR), world.note, until=2 * HOUR)
    world.jobs.pause("short")
    world.clock.advance(5 * HOUR)
    assert [job.name for job in world.jobs.all()] == ["short"]
    world.jobs.resume("short")
    assert world.jobs.all() == []


def test_jobs_add_and_cancel_jobs() -> None:
    world = shop()
    world.jobs.add("more", Every(2 * HOUR), world.more, count=2)
    world.jobs.add("stop", Every(4 * HOUR), world.stop, arguments={"name": "victim"}, count=1)
    world.jobs.add("victim", Every(4 * HOUR), world.note, arguments={"name": "victim"})
    world.jobs.add("self", Every(5 * HOUR), world.stop, arguments={"name": "self"})
    world.clock.advance(DAY)
    assert world.log == ["more@2", "child@3", "more@4", "stop victim@4", "stop self@5", "child@5"]
    assert world.jobs.all() == []


def test_a_thousand_jobs_need_one_timer_and_copies_part() -> None:
    world = shop()
    for number in range(1_000):
        world.jobs.add(f"job {number}", Every(HOUR + number), world.note)
    twin = world.copy()
    twin.jobs.cancel("job 0")
    for one, due in ((world, HOUR), (twin, HOUR + 1)):
        assert len(one.clock.timers) == 1
        assert one.clock.timers[0].due == due
    twin.clock.advance(2 * HOUR)
    assert (len(twin.log), len(world.log)) == (999, 0)


def test_all_lists_by_due_and_paused_ones_last() -> None:
    world = shop()
    for name, hours in (("c", 3), ("a", 1), ("b", 2)):
        world.jobs.add(name, Every(hours * HOUR), world.note)
    world.jobs.pause("a")
    assert [(job.name, job.due) for job in world.jobs.all()] == [("b", 2 * HOUR), ("c", 3 * HOUR), ("a", math.inf)]


@pytest.mark.slow
def test_advance_costs_time_linear_in_its_calls() -> None:
    world = shop()
    world.jobs.add("tick", Every(1), world.note, until=20_000)
    world.clock.advance(10**9)
    assert len(world.log) == 20_000


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda w: w.jobs.add("beat", Every(1), w.note), UsageError, "there is a job 'beat' already: Every"),
        (lambda w: w.jobs.add("x", Every(1), "no"), UsageError, "Shop has no method 'no'; it has more, note"),
        (lambda w: w.jobs.add("x", Every(1), w.note, count=0), UsageError, "1 or more occurrences, got 0"),
        (lambda w: w.jobs.add("x", Every(9), w.note, until=8), UsageError, "job 'x' never occurs: Every.* until 8"),
        (lambda w: w.jobs.add("x", Cron("0 0 31 4 *"), w.note), UsageError, "job 'x' never occurs: Cron"),
        (
            lambda w: w.jobs.add("x", Every(1), w.note, arguments={"no": 1}),
            TypeError,
            "unexpected keyword argument 'no'",
        ),
        (lambda w: w.jobs.add("x", Every(1), w.note, arguments={"name": {1: 2}}), TypeError, "str"),
        (lambda w: w.jobs.add("x", Every(1), shop().note), TypeError, "is not a method of this Shop"),
        (lambda w: w.jobs.pause("x"), UsageError, "job 'x' does not exist; there is beat"),
        (lambda w: w.jobs.resume("x"), UsageError, "job 'x' does not exist"),
        (lambda w: w.jobs.cancel("x"), UsageError, "job 'x' does not exist"),
    ],
)
def test_nonsense_is_refused(wrong: Callable[[Shop], object], error: type[Exception], says: str) -> None:
    world = shop()
    world.jobs.add("beat", Every(HOUR), world.note)
    before = world.copy()
    with pytest.raises(error, match=says):
        wrong(world)
    assert world == before


def test_a_job_has_no_model_to_talk_to() -> None:
    world = shop()
    world.jobs.add("bad", Every(HOUR), world.refuse)
    with pytest.raises(RuntimeError, match=r"'refuse' raised ToolError\(closed\) while time passed"):
        world.clock.advance(HOUR)
