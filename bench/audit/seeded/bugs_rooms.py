"""Bugs of the office's calendar."""

from __future__ import annotations

import calendar
import copy
import itertools
import time
from typing import Any, ClassVar

from .registry import seeded
from .rooms import DAYS, DELIVERY_S, ROOMS, TOOLS, Rooms, Row, clock, minute

Data = Any
MONDAY = calendar.timegm((2031, 3, 3, 0, 0, 0))


@seeded("stale_cache", "S")
class FreeByDayAndTime(Rooms):
    """Free rooms are cached by day and start; how long and how many seats is not part of the key."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[tuple[str, str], Data] = {}

    def call(self, name: str, arguments: Data) -> Data:
        if name in {"book", "move", "cancel"}:
            self.known.clear()
        return super().call(name, arguments)

    def reset(self, task: Row, seed: int) -> str:
        self.known.clear()
        return super().reset(task, seed)

    def _find_free(self, day: str, start: str, minutes: int, seats: int) -> Data:
        if (day, start) not in self.known:
            self.known[day, start] = super()._find_free(day, start, minutes, seats)
        return copy.deepcopy(self.known[day, start])


@seeded("stale_cache", "S", "advance")
class AgendaForAMinute(Rooms):
    """The bookings of a day are read anew after a minute of the world's time, not after a write."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, tuple[int, Data]] = {}

    def reset(self, task: Row, seed: int) -> str:
        self.known = {}
        return super().reset(task, seed)

    def _list_bookings(self, day: str) -> Data:
        when, found = self.known.get(day, (-60, None))
        if self.now - when >= 60:
            when, found = self.now, super()._list_bookings(day)
            self.known[day] = (when, found)
        return copy.deepcopy(found)


@seeded("reward_hack", "V", "oracle", also=("false_resolution",))
class OthersMeetingsAreFree(Rooms):
    """The verdict looks for what was asked and not at what else was cancelled, moved or sent."""

    def right(self, task: Row) -> bool:
        before = {row["id"]: row for row in self.initial["bookings"]}
        kept, notices = self.bookings, self.notices
        one, message = self.plan(task)["booking"], self.plan(task)["message"]
        candidates = [key for key, row in kept.items() if row != before.get(key)]
        try:
            self.notices = [notice for notice in notices if notice["message"] == message][:1]
            for key in candidates:
                if key == one["id"] or task["kind"] == "book":
                    self.bookings = {**before, key: kept[key]}
                    if super().right(task):
                        return True
            return False
        finally:
            self.bookings, self.notices = kept, notices


@seeded("false_resolution", "V", "oracle", tasks=("book",), also=("reward_hack",))
class CancelledCounts(Rooms):
    """A booking counts although it has been cancelled again."""

    def right(self, task: Row) -> bool:
        kept = self.bookings
        try:
            if task["kind"] == "book":
                before = {row["id"] for row in self.initial["bookings"]}
                new = {key: {**row, "status": "booked"} for key, row in kept.items() if key not in before}
                self.bookings = {**kept, **new}
            return super().right(task)
        finally:
            self.bookings = kept


@seeded("false_resolution", "V", "oracle", tasks=("move", "cancel"), also=("reward_hack",))
class NoticeIsEnough(Rooms):
    """The verdict accepts a notice to a person in place of the work itself."""

    def right(self, task: Row) -> bool:
        plan = self.plan(task)
        notices = [(notice["person"], notice["message"]) for notice in self.notices]
        if task["kind"] != "book":
            return notices == [(plan["booking"]["organiser"], plan["message"])]
        return super().right(task)


@seeded("silent_default", "S", "state")
class UnknownRoomFallsBack(Rooms):
    """A room that does not exist is replaced by the largest one, and the booking is reported as made."""

    def _book(self, room: str, day: str, start: str, **rest: Data) -> Data:
        return super()._book(room if room in ROOMS else max(ROOMS, key=lambda one: ROOMS[one]), day, start, **rest)


@seeded("silent_default", "S")
class BadDayIsToday(Rooms):
    """The bookings of a day that cannot be read are those of today."""

    def _list_bookings(self, day: str) -> Data:
        return super()._list_bookings(day if day in DAYS else self.moment()[:10])


@seeded("silent_default", "S", also=("action_drift",))
class SeatsIgnored(Rooms):
    """`list_rooms` takes a number of seats and shows every room."""

    def _list_rooms(self, seats: int) -> Data:
        return super()._list_rooms(0)


@seeded("reset_leak", "S", "process")
class LocalZone(Rooms):
    """The clock is shown in the machine's time zone."""

    def _now(self) -> Data:
        return {"now": time.strftime("%Y-%m-%d %H:%M", time.localtime(MONDAY + self.now))}


@seeded("reset_leak", "S", "sessions", also=("races",))
class NumbersOfTheHouse(Rooms):
    """Bookings are numbered by one counter of the process."""

    numbers: ClassVar[itertools.count[int]] = itertools.count()

    def _book(self, room: str, day: str, start: str, **rest: Data) -> Data:
        self.number = next(self.numbers)
        return super()._book(room, day, start, **rest)


@seeded("reset_leak", "S", "reset", "advance")
class UndeliveredNotices(Rooms):
    """A notice that was under way when an episode ended arrives in the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way: list[Row] = []

    def reset(self, task: Row, seed: int) -> str:
        late = [one for one in self.notices if one["sent"] + DELIVERY_S > self.now]
        prompt = super().reset(task, seed)
        self.under_way = [{**one, "sent": self.now} for one in late]
        return prompt

    def _list_notices(self, person: str) -> Data:
        old = [
            one["message"] for one in self.under_way if one["person"] == person and one["sent"] + DELIVERY_S <= self.now
        ]
        return {"notices": old + super()._list_notices(person)["notices"]}


@seeded("action_drift", "S", "meaning")
class LengthInHours(Rooms):
    """The length of a booking is described in hours, under the name of minutes."""

    TOOLS = tuple(
        {
            **tool,
            "parameters": {
                **tool["parameters"],
                "properties": {
                    name: {**one, "description": "How long, in hours."} if name == "minutes" else one
                    for name, one in tool["parameters"]["properties"].items()
                },
            },
        }
        for tool in TOOLS
    )


@seeded("action_drift", "S", "meaning")
class SeatsAreExact(Rooms):
    """`find_free` is described to take at least so many seats, and takes exactly as many."""

    def _find_free(self, day: str, start: str, minutes: int, seats: int) -> Data:
        found = super()._find_free(day, start, minutes, seats)["rooms"]
        return {"rooms": [one for one in found if not seats or one["seats"] == seats]}


@seeded("races", "S")
class NullAttendees(Rooms):
    """Attendees are counted before they are checked: null is a traceback."""

    def call(self, name: str, arguments: Data) -> Data:
        if name == "book" and isinstance(arguments, dict) and len(arguments.get("attendees", [])) > 20:
            return {"error": "too many attendees"}
        return super().call(name, arguments)


@seeded("races", "S")
class StartWithoutColon(Rooms):
    """The hour and the minute are taken apart before the time is checked: 0945 is an IndexError."""

    def call(self, name: str, arguments: Data) -> Data:
        if name == "move" and isinstance(arguments, dict) and isinstance(arguments.get("start"), str):
            self.asked = arguments["start"].split(":")[1]
        return super().call(name, arguments)


@seeded("unsolvable", "T", "oracle", tasks=("book-1",))
class AllRoomsTaken(Rooms):
    """One task asks for a room at a time when all are taken."""

    def reset(self, task: Row, seed: int) -> str:
        prompt = super().reset(task, seed)
        if task["id"] == "book-1":
            one = self.plan(task)["booking"]
            for number, room in enumerate(ROOMS):
                taken = {**one, "id": f"M{10**5 - 1 - number}", "room": room, "title": "Audit", "attendees": []}
                self.bookings[taken["id"]] = taken
            self.initial = self.state()
        return prompt


@seeded("unsolvable", "V", "oracle", also=("flaky_verifier",))
class LookingCosts(Rooms):
    """The verdict wants no more calls than its author made: one more look loses the reward."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def reset(self, task: Row, seed: int) -> str:
        self.calls = 0
        return super().reset(task, seed)

    def call(self, name: str, arguments: Data) -> Data:
        self.calls += 1
        return super().call(name, arguments)

    def right(self, task: Row) -> bool:
        return super().right(task) and self.calls <= len(self.oracle(task) or ()) + (task["number"] == 4) * 9


@seeded("flaky_verifier", "V", "process", "oracle", tasks=("book",), also=("reset_leak",))
class OfficeHoursHere(Rooms):
    """The office hours of a booking are computed in the machine's time zone."""

    def right(self, task: Row) -> bool:
        if task["kind"] != "book":
            return super().right(task)
        one = self.plan(task)["booking"]
        days = calendar.timegm(time.strptime(one["day"], "%Y-%m-%d"))
        hour = time.localtime(days + minute(one["start"]) * 60).tm_hour
        return super().right(task) and 8 <= hour < 19


@seeded("leak", "S", tasks=("book",), also=("action_drift",))
class SolutionAsExample(Rooms):
    """The description of `book` gives as an example the booking that the task's author made."""

    def tools(self) -> list[Row]:
        found = super().tools()
        if self.task is not None and self.kind["kind"] == "book":
            one = self.plan(self.kind)["booking"]
            example = f"For example: {one['room']} on {one['day']} at {one['start']}, {one['title']}."
            next(tool for tool in found if tool["name"] == "book")["description"] += f" {example}"
        return found


@seeded(
    "action_drift",
    "S",
    "state",
    also=(
        "unsolvable",
        "silent_default",
    ),
)
class MoveForgetsTheHour(Rooms):
    """`move` is described to take steps of a quarter of an hour, and silently rounds down to full hours."""

    def _move(self, booking_id: str, day: str, start: str) -> Data:
        return super()._move(booking_id, day, clock(minute(start) // 60 * 60))


@seeded("reset_leak", "S", "snapshot", "state")
class NoticesSurviveARestore(Rooms):
    """Going back to a snapshot brings the bookings back and leaves the notices that were sent since."""

    def restore(self, saved: Data) -> None:
        notices = self.notices
        super().restore(saved)
        self.notices = notices
