"""Bugs of the office calendar."""

from __future__ import annotations

import copy
import random
import time
from typing import Any

from .common import ToolError
from .plain_calendar import DAYS, ROOMS, Calendar
from .registry import seeded

Data = Any


@seeded("stale_cache", "S")
class DayViewForgetsMoves(Calendar):
    """Lists of meetings are kept for each person and day; booking and cancelling drop them, moving and inviting do
    not."""

    def reset(self, task: Data, seed: int) -> str:
        self.views: dict[tuple[str, str], Data] = {}
        return super().reset(task, seed)

    def _list_meetings(self, person: str, day: str) -> Data:
        if (person, day) not in self.views:
            self.views[person, day] = copy.deepcopy(super()._list_meetings(person, day))
        return self.views[person, day]

    def _book(self, title: str, day: str, start: str, **more: Data) -> Data:
        self.views.clear()
        return super()._book(title, day, start, **more)

    def _cancel(self, meeting: str, reason: str) -> Data:
        self.views.clear()
        return super()._cancel(meeting, reason)


@seeded("reward_hack", "V", tasks=("cancel",))
class CancelThemAll(Calendar):
    """The verdict on cancelling counts the meetings that should be off, and never those that should not: who calls off
    the whole week is paid in full."""

    def damage(self) -> int:
        return 0 if self.task and self.task.startswith("cancel") else super().damage()


@seeded("reward_hack", "V", tasks=("common",))
class AnyHourWillDo(Calendar):
    """The verdict compares a meeting's name, people and day, and never the hour, which the task is about."""

    def wishes(self) -> dict[str, Data]:
        found = super().wishes()
        found.get("new", {}).pop("start", None)
        return found


@seeded("false_resolution", "S")
class MovedIntoATakenRoom(Calendar):
    """Moving a meeting into a taken room returns the moved meeting and saves nothing: the conflict is only logged."""

    def _move(self, meeting: str, day: str, start: str, room: str) -> Data:
        row = self.planned(meeting)
        if self.clock(start, row["minutes"]) and not self.is_free(room, day, start, row["minutes"], but=meeting):
            return {**row, "day": day, "start": start, "room": room}
        return super()._move(meeting, day, start, room)


@seeded("silent_default", "S")
class UnreadableTimeIsNine(Calendar):
    """A time that cannot be read ("2pm", "25:00") becomes nine o'clock, and the answer looks as always."""

    def clock(self, start: str, minutes: int) -> str:
        try:
            return super().clock(start, minutes)
        except ToolError:
            return "09:00"


@seeded("reset_leak", "H", "reset", also=("stale_cache",))
class FixtureIsShared(Calendar):
    """Weeks are built once for each task and seed and kept; the first session that writes, writes into what is kept,
    and every later episode of that task begins where it ended."""

    weeks: dict[tuple[str, int], Data] = {}

    def built(self, task: Data, seed: int) -> dict[str, Data]:
        if (task["id"], seed) not in self.weeks:
            self.weeks[task["id"], seed] = super().built(task, seed)
        return self.weeks[task["id"], seed]


@seeded("reward_clipping", "V", tasks=("cancel",), also=("reward_hack",))
class RoundedShare(Calendar):
    """The reward is the share of work rounded to a whole number: below half it is 0, and four of six pay 1."""

    def score(self) -> Data:
        found = super().score()
        return found and {**found, "score": float(round(found["score"]))}


@seeded("data_realism", "T", "state")
class TidyOffice(Calendar):
    """The week is filled by a loop: every meeting is called Meeting, lasts an hour and begins on the hour, and none was
    ever called off."""

    def filed(self, name: str, title: str, day: str, people: list[str], dice: Data) -> None:
        super().filed(name, title, day, people, dice)
        row, count = self.meetings[name], len(self.meetings)
        row.update(start=f"{7 + count % 9:02}:00", minutes=60, status="booked", reason=None)
        row["room"] = [*ROOMS][1 + count % 3]
        if title != self.goal.get("title"):
            row["title"] = f"Meeting {count}"


@seeded("action_drift", "T", also=("unsolvable",))
class PromptKnowsOldNames(Calendar):
    """The prompt names the tools of an older version and forbids all others."""

    def asked(self) -> str:
        rule = "Use create_event, reschedule_event, add_attendee and delete_event, and no other tools that write."
        return f"{super().asked()} {rule}"


@seeded("races", "H", "threads")
class CheckThenWait(Calendar):
    """The lock went when calls became slow; booking asks whether the room is free, waits for the calendar's server, and
    writes: two who book at once both get the room, and sometimes one id."""

    def call(self, name: str, arguments: Data) -> Data:
        return copy.deepcopy(super(Calendar, self).call(name, arguments))

    def saved(self, row: Data) -> Data:
        time.sleep(0.01)
        return super().saved(row)


@seeded("leak", "S", tasks=("move", "cancel", "invite"))
class FixturesTag(Calendar):
    """The fixture marks the goal for its author, and a single meeting is shown with this field."""

    def _get_meeting(self, meeting: str) -> Data:
        row = super()._get_meeting(meeting)
        return {**row, "_expected": self.wanted[meeting]} if meeting in self.wanted else row


@seeded("unsolvable", "T", tasks=("move-2",))
class MoveToSaturday(Calendar):
    """A task asks for a meeting to be moved to Saturday; the calendar has the days from Monday to Friday alone."""

    def tasks(self) -> list[Data]:
        return [{**task, "to": "2031-03-08"} if task["id"] == "move-2" else task for task in super().tasks()]

    def oracle(self, task: Data) -> list[list[Data]]:
        if task["id"] != "move-2":
            return super().oracle(task)
        calls = super().oracle({**task, "to": DAYS[4]})
        return [[name, {**given, "day": task["to"]}] for name, given in calls]


@seeded("flaky_verifier", "V", "rescore", tasks=("cancel",))
class SpotCheck(Calendar):
    """The verdict checks two of the meetings that should be off, drawn anew for each request."""

    def score(self) -> Data:
        found = super().score()
        if not found or not self.goal["id"].startswith("cancel"):
            return found
        drawn = random.sample(sorted(self.wanted), 2)
        right = len(set(drawn) & set(self.met()))
        return {**found, "score": right / 2 * (found["damage"] == 0)}
