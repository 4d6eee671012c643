"""An office's week: meetings of people in several time zones, which an assistant books, moves, widens and calls off.

Each meeting that a task is about earns its share; a change of anything else, and nothing is paid.
"""

from __future__ import annotations

import copy
import re
import threading
from typing import Any

from .common import ToolError, World, choice, fresh, integer, optional, rng, text, texts, tool

Data = Any
DAYS = ("2031-03-03", "2031-03-04", "2031-03-05", "2031-03-06", "2031-03-07")
PEOPLE = {  # where they are, minutes before UTC, and from when to when they work there
    "Anna Krüger": ("Berlin", 60, "09:00", "17:00"),
    "Seán Doyle": ("Dublin", 0, "08:30", "16:30"),
    "Priya Iyer": ("Pune", 330, "10:00", "18:30"),
    "Giorgos Pappas": ("Athens", 120, "09:00", "17:30"),
    "Maya Brooks": ("New York", -300, "08:00", "16:00"),
    "Tunde Bello": ("Lagos", 60, "08:00", "16:00"),
}
ROOMS = {"Attic": 3, "Library": 6, "Garden": 8, "Hall": 14}
TITLES = (
    "Stand-up", "1:1", "Sprint planning", "retro", "Hiring sync", "Payroll Q's", "Vendor call (Müller GmbH)", "lunch?",
    "Roadmap", "Incident follow-up", "FYI: new VPN", "Stand-up", "Demo dry run", "Interview - backend",
)  # fmt: skip
TASKS: tuple[dict[str, Data], ...] = (
    {"id": "common-1", "day": DAYS[1], "minutes": 45, "title": "Kickoff Lisbon",
     "people": ["Anna Krüger", "Priya Iyer", "Giorgos Pappas"]},
    {"id": "common-2", "day": DAYS[2], "minutes": 30, "title": "Pricing", "people": ["Seán Doyle", "Maya Brooks"]},
    {"id": "common-3", "day": DAYS[3], "minutes": 60, "title": "Audit prep",
     "people": ["Tunde Bello", "Seán Doyle", "Giorgos Pappas", "Anna Krüger"]},
    {"id": "move-1", "day": DAYS[0], "title": "Budget review", "to": DAYS[3], "start": "13:00"},
    {"id": "move-2", "day": DAYS[2], "title": "Board rehearsal", "to": DAYS[4], "start": "09:15"},
    {"id": "cancel-1", "day": DAYS[1], "person": "Priya Iyer", "reason": "Priya is ill"},
    {"id": "cancel-2", "day": DAYS[4], "person": "Tunde Bello", "reason": "Public holiday in Lagos"},
    {"id": "invite-1", "day": DAYS[2], "title": "Design review", "person": "Maya Brooks"},
)  # fmt: skip
ID = text("The meeting's id, such as m123456.", 20)
DAY, ROOM = choice("A day of this week.", *DAYS), choice("The room's name.", *ROOMS)
START = text("When it begins, in UTC and on a quarter of an hour: 14:15.", 5)
ANYBODY = optional(choice("Only meetings of this person.", "anyone", *PEOPLE), "anyone")
ANY_DAY = optional(choice("Only meetings of this day.", "any", *DAYS), "any")


def minute(clock: str) -> int:
    return int(clock[:2]) * 60 + int(clock[3:])


class Calendar(World):
    """A session; several agents may share it."""

    shared = True
    graded = True
    TOOLS = (
        tool("list_people", "Show who works here, where, and at which hours of the local time."),
        tool("list_rooms", "Show the rooms and how many people each seats."),
        tool("list_meetings", "Show meetings, those called off too. Times are UTC.", person=ANYBODY, day=ANY_DAY),
        tool("get_meeting", "Show one meeting.", meeting=ID),
        tool("book", "Book a meeting in a free room that seats everybody. People's other meetings do not hinder.",
             title=text("What it is about.", 80), day=DAY, start=START, minutes=integer("How long it takes.", 15, 240),
             people=texts("Everybody's full name."), room=ROOM),
        tool("move", "Give a meeting another day, time or room; the room has to be free and large enough.",
             meeting=ID, day=DAY, start=START, room=ROOM),
        tool("invite", "Add a person to a meeting, if its room has a seat left.", meeting=ID,
             person=choice("Who.", *PEOPLE)),
        tool("cancel", "Call a meeting off; everybody who was invited gets the reason.", meeting=ID,
             reason=text("What they read.", 200)),
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.RLock()

    def tasks(self) -> list[Data]:
        return copy.deepcopy(list(TASKS))

    # --- an episode ---

    def reset(self, task: Data, seed: int) -> str:
        with self.lock:
            self.goal, self.task = copy.deepcopy(task), task["id"]
            self.meetings = self.built(task, seed)
            self.initial = copy.deepcopy(self.meetings)
            self.wanted = self.wishes()
            return f"{self.asked()} Leave everything else as it is: if anything else changes, nothing is paid."

    def built(self, task: Data, seed: int) -> dict[str, Data]:
        """The week: the days that the task is about follow from it, the others from the seed."""
        self.meetings: dict[str, Data] = {}
        taken: set[str] = set()
        about = [task["day"], *([task["to"]] if "to" in task else [])]
        for day in (*about, *(day for day in DAYS if day not in about)):
            dice = rng("calendar", task["id"], day, None if day in about else seed)
            rows = [(dice.choice(TITLES), dice.sample(sorted(PEOPLE), dice.randint(2, 4))) for _ in range(6)]
            if day == task["day"] and "person" in task and "title" not in task:
                rows += [(dice.choice(TITLES), [task["person"], name]) for name in ("Anna Krüger", "Maya Brooks")]
            for title, people in rows:
                self.filed(fresh(dice, "m", taken), title, day, people, dice)
        if task["id"].startswith(("move", "invite")):
            dice = rng("calendar", task["id"])
            people = ["Giorgos Pappas", "Seán Doyle", "Anna Krüger"]
            self.filed(fresh(dice, "m", taken), task["title"], task["day"], people, dice)
        return dict(sorted(self.meetings.items()))

    def filed(self, name: str, title: str, day: str, people: list[str], dice: Data) -> None:
        """A meeting that was there before."""
        begin, minutes = dice.randrange(28, 66) * 15, dice.choice((15, 30, 30, 45, 60, 60, 90))
        start, gone = f"{begin // 60:02}:{begin % 60:02}", title in TITLES and dice.random() < 0.1
        rooms = [room for room, seats in ROOMS.items() if seats >= len(people)]
        room = next((room for room in rooms if self.is_free(room, day, start, minutes)), None)
        self.meetings[name] = {
            "id": name, "title": title, "day": day, "start": start, "minutes": minutes, "people": people, "room": room,
            "status": "cancelled" if gone else "booked", "reason": "moved to chat" if gone else None,
        }  # fmt: skip

    def asked(self) -> str:
        goal = self.goal
        if self.task.startswith("common"):
            return (
                f"Book a meeting called {goal['title']!r} on {goal['day']} for {', '.join(goal['people'])}, "
                f"{goal['minutes']} minutes long. It begins as early as it can, on a quarter of an hour, so that it "
                "lies within everybody's working hours, none of them has another meeting then (one that is called off "
                "does not count), and a room that seats them all is free; any such room will do."
            )
        if self.task.startswith("move"):
            return (
                f"Move {goal['title']!r} of {goal['day']} to {goal['to']}, {goal['start']} UTC, into any room "
                "that is free then and seats everybody."
            )
        if self.task.startswith("cancel"):
            return (
                f"Call off every meeting that {goal['person']} is invited to on {goal['day']}, unless it is called off "
                f"already, with exactly this reason: {goal['reason']}. Each of them counts alike."
            )
        return (
            f"Invite {goal['person']} to {goal['title']!r} on {goal['day']}, too. If its room is too small then, give "
            "it another room; its day and time stay."
        )

    # --- what the tools do ---

    def call(self, name: str, arguments: Data) -> Data:
        with self.lock:
            return copy.deepcopy(super().call(name, arguments))

    def is_free(self, room: str, day: str, start: str, minutes: int, but: str = "") -> bool:
        same = (one for one in self.meetings.values() if one["room"] == room and one["id"] != but)
        return not any(self.overlaps(one, day, start, minutes) for one in same)

    def overlaps(self, one: Data, day: str, start: str, minutes: int) -> bool:
        begin, other = minute(start), minute(one["start"])
        return (
            one["status"] == "booked"
            and one["day"] == day
            and other < begin + minutes
            and begin < other + one["minutes"]
        )

    def found(self, meeting: str) -> Data:
        if meeting not in self.meetings:
            raise ToolError(f"no such meeting: {ascii(meeting)[:40]}")
        return self.meetings[meeting]

    def planned(self, meeting: str) -> Data:
        row = self.found(meeting)
        if row["status"] != "booked":
            raise ToolError(f"{meeting} was called off")
        return row

    def clock(self, start: str, minutes: int) -> str:
        if not re.fullmatch(r"([01][0-9]|2[0-3]):(00|15|30|45)", start) or minute(start) + minutes > 1440:
            raise ToolError("a meeting begins on a quarter of an hour, such as 14:15, and ends on its day")
        return start

    def seated(self, people: list[str], room: str) -> None:
        if len(people) > ROOMS[room]:
            raise ToolError(f"{room} seats {ROOMS[room]}")

    def _list_people(self) -> Data:
        rows = []
        for name, (city, offset, begin, end) in PEOPLE.items():
            sign, (hours, minutes) = "-" if offset < 0 else "+", divmod(abs(offset), 60)
            shown = f"UTC{sign}{hours:02}:{minutes:02}"
            rows.append({"name": name, "city": city, "zone": shown, "works_from": begin, "works_until": end})
        return {"people": rows}

    def _list_rooms(self) -> Data:
        return {"rooms": [{"name": name, "seats": seats} for name, seats in ROOMS.items()]}

    def _list_meetings(self, person: str, day: str) -> Data:
        rows = sorted(self.meetings.values(), key=lambda row: (row["day"], row["start"], row["id"]))
        shown = (row for row in rows if person in {"anyone", *row["people"]} and day in {"any", row["day"]})
        return {"meetings": list(shown)}

    def _get_meeting(self, meeting: str) -> Data:
        return self.found(meeting)

    def _book(self, title: str, day: str, start: str, **more: Data) -> Data:
        people, minutes, room = more["people"], more["minutes"], more["room"]
        if not title.strip() or not people or len(set(people)) < len(people) or not set(people) <= set(PEOPLE):
            raise ToolError("a meeting has a title and people, each of them known and named once")
        start = self.clock(start, minutes)
        self.seated(people, room)
        if not self.is_free(room, day, start, minutes):
            raise ToolError(f"{room} is taken then")
        name = f"m{max(int(one[1:]) for one in self.meetings) + 1}"
        return self.saved({
            "id": name, "title": title, "day": day, "start": start, "minutes": minutes, "people": list(people),
            "room": room, "status": "booked", "reason": None,
        })  # fmt: skip

    def saved(self, row: Data) -> Data:
        self.meetings[row["id"]] = row
        return row

    def _move(self, meeting: str, day: str, start: str, room: str) -> Data:
        row = self.planned(meeting)
        start = self.clock(start, row["minutes"])
        self.seated(row["people"], room)
        if not self.is_free(room, day, start, row["minutes"], but=meeting):
            raise ToolError(f"{room} is taken then")
        row.update(day=day, start=start, room=room)
        return row

    def _invite(self, meeting: str, person: str) -> Data:
        row = self.planned(meeting)
        if person in row["people"]:
            raise ToolError(f"{person} is invited already")
        if row["room"] is not None:
            self.seated([*row["people"], person], row["room"])
        row["people"].append(person)
        return row

    def _cancel(self, meeting: str, reason: str) -> Data:
        row = self.planned(meeting)
        if not reason.strip():
            raise ToolError("people want a reason")
        row.update(status="cancelled", reason=reason.strip())
        return row

    # --- the verdict ---

    def slot(self) -> tuple[str, str]:
        """The earliest start that suits all, and a room."""
        goal = self.goal
        begin, end = 0, 1440
        for name in goal["people"]:
            _, offset, first, last = PEOPLE[name]
            begin, end = max(begin, minute(first) - offset), min(end, minute(last) - offset)
        for at in range(begin, end - goal["minutes"] + 1, 15):
            span = (goal["day"], f"{at // 60:02}:{at % 60:02}", goal["minutes"])
            busy = (one for one in self.initial.values() if self.overlaps(one, *span))
            rooms = [name for name, seats in ROOMS.items() if seats >= len(goal["people"])]
            free = [room for room in rooms if self.is_free(room, *span)]
            if free and not any(set(one["people"]) & set(goal["people"]) for one in busy):
                return span[1], free[0]
        raise AssertionError("tasks are made so that there is one")

    def wishes(self) -> dict[str, Data]:
        """The fields that meetings should have in the end; a new one is called `new`."""
        goal, rows = self.goal, self.initial.values()
        if self.task.startswith("common"):
            wish = {key: goal[key] for key in ("title", "day", "minutes", "people")}
            return {"new": {**wish, "start": self.slot()[0], "status": "booked"}}
        if self.task.startswith("cancel"):
            mine = [row for row in rows if row["day"] == goal["day"] and goal["person"] in row["people"]]
            return {row["id"]: {"status": "cancelled", "reason": goal["reason"]} for row in mine if not row["reason"]}
        row = next(row for row in rows if row["title"] == goal["title"])
        if self.task.startswith("move"):
            return {row["id"]: {"day": goal["to"], "start": goal["start"]}}
        return {row["id"]: {"people": [*row["people"], goal["person"]]}}

    def holds(self, row: Data, wish: Data) -> bool:
        return all(
            sorted(row[key]) == sorted(value) if key == "people" else row[key] == value for key, value in wish.items()
        )

    def made(self) -> list[Data]:
        """The meetings that were booked and not called off again."""
        return [row for name, row in self.meetings.items() if name not in self.initial and row["status"] == "booked"]

    def met(self) -> list[str]:
        rows = {**self.meetings, "new": next(iter(self.made()), None)}
        return [name for name, wish in self.wanted.items() if rows[name] and self.holds(rows[name], wish)]

    def damage(self) -> int:
        """Returns the number of meetings that changed otherwise than requested."""
        free = {"room"} if self.task.startswith(("move", "invite")) else set()
        count = len(self.made()) - (1 if "new" in self.wanted and self.made() else 0)
        for name, before in self.initial.items():
            may = {*self.wanted[name], *free} if name in self.wanted else set()
            count += any(before[key] != value for key, value in self.meetings[name].items() if key not in may)
        return count

    def score(self) -> Data:
        with self.lock:
            if self.task is None:
                return None
            met, damage = len(self.met()), self.damage()
            return {"score": met / len(self.wanted) * (damage == 0), "met": met, "damage": damage}

    # --- for who looks from outside ---

    def oracle(self, task: Data) -> list[list[Data]]:
        world = type(self)()
        world.reset(task, 0)
        if task["id"].startswith("common"):
            start, room = world.slot()
            given = {key: task[key] for key in ("title", "day", "minutes", "people")}
            return [["book", {**given, "start": start, "room": room}]]
        if task["id"].startswith("cancel"):
            return [["cancel", {"meeting": name, "reason": task["reason"]}] for name in world.wanted]
        ((name, _),) = world.wanted.items()
        row = world.meetings[name]
        many = len(row["people"]) + ("person" in task)
        span = (task.get("to", row["day"]), task.get("start", row["start"]))
        rooms = [room for room, seats in ROOMS.items() if seats >= many]
        room = next(room for room in rooms if world.is_free(room, *span, row["minutes"], but=name))
        moved = ["move", {"meeting": name, "day": span[0], "start": span[1], "room": room}]
        return [moved, *([["invite", {"meeting": name, "person": task["person"]}]] if "person" in task else [])]

    def state(self) -> Data:
        with self.lock:
            return {"meetings": copy.deepcopy(self.meetings) if self.task else {}}

    def snapshot(self) -> Data:
        with self.lock:
            return {name: copy.deepcopy(value) for name, value in vars(self).items() if name != "lock"}

    def restore(self, saved: Data) -> None:
        with self.lock:
            vars(self).update(copy.deepcopy(saved))
