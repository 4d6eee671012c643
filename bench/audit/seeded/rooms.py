"""An office's calendar: rooms, bookings and notices, with a clock of its own.

A notice is delivered a minute after it was sent. The verdict asks for the bookings and notices that the task names, for
one booking in any room that fits where the room is free to choose, and for no other change.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from .common import ToolError, World, fresh, integer, name_of, optional, rng, text, texts, tool

Data = Any
Row = dict[str, Data]
ROOMS = {"Aare": 4, "Doubs": 6, "Inn": 8, "Limmat": 10, "Reuss": 12, "Töss": 20}
DAYS = tuple(f"2031-03-{day:02d}" for day in (3, 4, 5, 6, 7, 10, 11, 12, 13, 14))
OPEN_MIN, CLOSE_MIN = 8 * 60, 19 * 60
TITLES = ("1:1", "Standup", "stand-up", "Review Q1", "Bewerbung", "Lunch & learn", "(blocked)", "Réunion", "retro 🎉")
DELIVERY_S = 60
DAY = text("A date, such as 2031-03-04.", 10)
START = text("A time of the day in steps of 15 minutes, such as 09:45.", 5)
MINUTES = integer("How long, in minutes.", 15, 480)
ROOM = text("A room's name.", 30)
BOOKING = text("Its id, such as M123456.", 20)


def minute(start: str) -> int:
    """Returns the minutes since midnight.

    Raises:
        ToolError: The text is not a time, or not in steps of 15 minutes.
    """
    hours, colon, minutes = start.partition(":")
    if not (colon and len(start) == 5 and start.isascii() and hours.isdigit() and minutes.isdigit()):
        raise ToolError("a time looks like 09:45")
    found = int(hours) * 60 + int(minutes)
    if found % 15 or int(minutes) > 59:
        raise ToolError("a time is given in steps of 15 minutes")
    return found


def clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


TOOLS = (
    tool("now", "Tell the date and the time."),
    tool("list_rooms", "Show the rooms with at least so many seats.", seats=optional(integer("Seats.", 0, 100), 0)),
    tool("list_bookings", "Show the bookings of a day, earliest first.", day=DAY),
    tool("get_booking", "Show a booking.", booking_id=BOOKING),
    tool(
        "find_free",
        "Show the rooms that are free at a time.",
        day=DAY,
        start=START,
        minutes=MINUTES,
        seats=optional(integer("At least so many seats.", 0, 100), 0),
    ),
    tool(
        "book",
        "Book a room.",
        room=ROOM,
        day=DAY,
        start=START,
        minutes=MINUTES,
        title=text("What for.", 80),
        attendees=optional(texts("Who comes."), []),
    ),
    tool("move", "Move a booking to another time in its room.", booking_id=BOOKING, day=DAY, start=START),
    tool("cancel", "Cancel a booking.", booking_id=BOOKING),
    tool(
        "notify", "Send somebody a notice; it arrives within a minute.", person=text("Who.", 80), message=text("What.")
    ),
    tool("list_notices", "Show the notices that have arrived at somebody.", person=text("Who.", 80)),
)


class Rooms(World):
    """One office; a session of its own per instance."""

    TOOLS = TOOLS

    def __init__(self) -> None:
        super().__init__()
        self.bookings: dict[str, Row] = {}
        self.notices: list[Row] = []
        self.now = 0
        self.number = 0
        self.initial: Row = {}

    # --- tasks ---

    def tasks(self) -> list[Row]:
        kinds = ("book", "move", "cancel")
        return [{"id": f"{kind}-{number}", "kind": kind, "number": number} for number in range(5) for kind in kinds]

    def plan(self, task: Row) -> Row:
        """Returns the plan of a task, the same under every seed."""
        if task not in self.tasks():
            raise LookupError(f"no such task: {task!r}")
        dice = rng("rooms", task["id"])
        room = dice.choice(list(ROOMS))
        person, start = name_of(dice).strip(), OPEN_MIN + 60 + 15 * dice.randrange(16)
        booking = {
            "id": f"M{dice.randrange(10**5, 10**6)}",
            "room": room,
            "day": dice.choice(DAYS[1:]),
            "start": clock(start),
            "minutes": dice.choice((30, 45, 60)),
            "title": f"Workshop {dice.randrange(10, 99)}",
            "organiser": person,
            "attendees": [name_of(dice).strip() for _ in range(dice.randrange(1, 4))],
            "status": "booked",
        }
        later = clock(start + 180 + 15 * dice.randrange(4))
        return {
            "booking": booking,
            "later": later,
            "message": f"Ref {dice.randrange(100, 999)}: your meeting has changed.",
        }

    def prompt(self, task: Row) -> str:
        plan = self.plan(task)
        one = plan["booking"]
        if task["kind"] == "book":
            return (
                f"Book any room with at least {ROOMS[one['room']]} seats on {one['day']} at {one['start']} for "
                f"{one['minutes']} minutes, titled {one['title']}, with the attendees {'; '.join(one['attendees'])}."
            )
        notice = f"Then notify {one['organiser']}, saying exactly: {plan['message']}"
        if task["kind"] == "move":
            return f"Move booking {one['id']} to {one['day']} at {plan['later']}. {notice}"
        return f"Cancel booking {one['id']}. {notice}"

    def oracle(self, task: Row) -> list[list[Data]] | None:
        plan = self.plan(task)
        one = plan["booking"]
        if task["kind"] == "book":
            if task["number"] == 4:
                return None
            when = {"day": one["day"], "start": one["start"], "minutes": one["minutes"]}
            asked = {"room": one["room"], **when, "title": one["title"], "attendees": one["attendees"]}
            return [["find_free", {**when, "seats": ROOMS[one["room"]]}], ["book", asked]]
        tell = ["notify", {"person": one["organiser"], "message": plan["message"]}]
        look = ["get_booking", {"booking_id": one["id"]}]
        if task["kind"] == "move":
            return [look, ["move", {"booking_id": one["id"], "day": one["day"], "start": plan["later"]}], tell]
        return [look, ["cancel", {"booking_id": one["id"]}], tell]

    # --- the episode ---

    def filler(self, dice: random.Random, free: list[Row], taken: set[str]) -> list[Row]:
        """Other people's bookings, none where the task needs the room."""
        rows: list[Row] = []
        for _ in range(90):
            row = {
                "id": fresh(dice, "M", taken),
                "room": dice.choice(list(ROOMS)),
                "day": dice.choice(DAYS),
                "start": clock(OPEN_MIN + 15 * dice.randrange(40)),
                "minutes": dice.choice((15, 30, 30, 60, 60, 90)),
                "title": dice.choice(TITLES),
                "organiser": name_of(dice),
                "attendees": [name_of(dice) for _ in range(dice.randrange(5))],
                "status": "booked" if dice.random() < 0.9 else "cancelled",
            }
            if not any(self.clash(row, other) for other in rows + free):
                rows.append(row)
        return rows

    @staticmethod
    def clash(one: Row, other: Row) -> bool:
        if other["status"] != "booked" or (one["room"], one["day"]) != (other["room"], other["day"]):
            return False
        first, second = minute(one["start"]), minute(other["start"])
        return first < second + other["minutes"] and second < first + one["minutes"]

    def reset(self, task: Row, seed: int) -> str:
        plan = self.plan(task)
        one = plan["booking"]
        needed = [one, {**one, "start": plan["later"]}]
        rows = self.filler(rng("rooms", task["id"], seed), needed, {one["id"]})
        if task["kind"] != "book":
            rows.append(copy.deepcopy(one))
        self.bookings = {row["id"]: row for row in sorted(rows, key=lambda row: row["id"])}
        self.notices, self.now, self.number = [], OPEN_MIN * 60, 0
        self.task, self.kind = task["id"], task
        self.initial = self.state()
        return self.prompt(task)

    def advance(self, seconds: float) -> None:
        self.now += int(seconds)

    def state(self) -> Row:
        return copy.deepcopy({"bookings": list(self.bookings.values()), "notices": self.notices, "now": self.now})

    def snapshot(self) -> Data:
        return copy.deepcopy(vars(self))

    def restore(self, saved: Data) -> None:
        vars(self).update(copy.deepcopy(saved))

    # --- the tools ---

    def booking(self, key: str) -> Row:
        if key not in self.bookings:
            raise ToolError(f"no such booking: {key}")
        if self.bookings[key]["status"] != "booked":
            raise ToolError(f"booking {key} is {self.bookings[key]['status']}")
        return self.bookings[key]

    def day(self, day: str) -> str:
        if day not in DAYS:
            raise ToolError(f"the calendar is open on {', '.join(DAYS)}")
        return day

    def ahead(self, day: str, start: str, minutes: int) -> None:
        """A time that lies in office hours and not in the past.

        Raises:
            ToolError: It does not.
        """
        if not OPEN_MIN <= minute(start) <= CLOSE_MIN - minutes:
            raise ToolError(f"rooms are open from {clock(OPEN_MIN)} to {clock(CLOSE_MIN)}")
        if f"{self.day(day)} {start}" < self.moment():
            raise ToolError(f"it is {self.moment()} already")

    def moment(self) -> str:
        return f"{DAYS[min(self.now // 86400, len(DAYS) - 1)]} {clock(self.now % 86400 // 60)}"

    def placed(self, row: Row) -> Row:
        """Returns a booking that has been found to fit.

        Raises:
            ToolError: The room or time does not exist, is past, or is taken.
        """
        if row["room"] not in ROOMS:
            raise ToolError(f"no such room; the rooms are {', '.join(ROOMS)}")
        self.ahead(row["day"], row["start"], row["minutes"])
        if any(self.clash(row, other) for key, other in self.bookings.items() if key != row["id"]):
            raise ToolError(f"{row['room']} is taken then")
        return row

    def _now(self) -> Data:
        return {"now": self.moment()}

    def _list_rooms(self, seats: int) -> Data:
        return {"rooms": [{"name": name, "seats": size} for name, size in ROOMS.items() if size >= seats]}

    def _list_bookings(self, day: str) -> Data:
        found = [row for row in self.bookings.values() if row["day"] == self.day(day) and row["status"] == "booked"]
        return {"bookings": copy.deepcopy(sorted(found, key=lambda row: (row["start"], row["room"])))}

    def _get_booking(self, booking_id: str) -> Data:
        if booking_id not in self.bookings:
            raise ToolError(f"no such booking: {booking_id}")
        return copy.deepcopy(self.bookings[booking_id])

    def _find_free(self, day: str, start: str, minutes: int, seats: int) -> Data:
        free: list[Row] = []
        self.ahead(day, start, minutes)
        for name, size in ROOMS.items():
            row = {"id": "", "room": name, "day": day, "start": start, "minutes": minutes}
            if size >= seats and not any(self.clash(row, other) for other in self.bookings.values()):
                free.append({"name": name, "seats": size})
        return {"rooms": free}

    def _book(self, room: str, day: str, start: str, *, minutes: int, title: str, attendees: list[str]) -> Data:
        asked: Row = {"room": room, "day": day, "start": start, "minutes": minutes, "title": title}
        row = {"id": f"M{10**6 + self.number + 1}", **asked, "organiser": "assistant", "attendees": list(attendees)}
        self.placed({**row, "status": "booked"})
        self.number += 1
        self.bookings[row["id"]] = {**row, "status": "booked"}
        return {"booking_id": row["id"]}

    def _move(self, booking_id: str, day: str, start: str) -> Data:
        row = self.booking(booking_id)
        row |= self.placed({**row, "day": day, "start": start})
        return {"ok": True}

    def _cancel(self, booking_id: str) -> Data:
        self.booking(booking_id)["status"] = "cancelled"
        return {"ok": True}

    def _notify(self, person: str, message: str) -> Data:
        if not person.strip() or not message.strip():
            raise ToolError("a notice has a reader and a message")
        self.notices.append({"person": person, "message": message, "sent": self.now})
        return {"ok": True}

    def _list_notices(self, person: str) -> Data:
        there = [one for one in self.notices if one["person"] == person and one["sent"] + DELIVERY_S <= self.now]
        return {"notices": [one["message"] for one in there]}

    # --- the verdict ---

    def score(self) -> float | None:
        return None if self.task is None else float(self.right(self.kind))

    def right(self, task: Row) -> bool:
        plan = self.plan(task)
        one = plan["booking"]
        before = {row["id"]: row for row in self.initial["bookings"]}
        changed = [row for key, row in self.bookings.items() if row != before.get(key)]
        notices = [(notice["person"], notice["message"]) for notice in self.notices]
        if len(changed) != 1:
            return False
        row = changed[0]
        if task["kind"] == "book":
            asked = all(row[key] == one[key] for key in ("day", "start", "minutes", "title"))
            same = sorted(row["attendees"]) == sorted(one["attendees"]) and row["status"] == "booked"
            return asked and same and not notices and ROOMS[row["room"]] >= ROOMS[one["room"]]
        wanted = {"start": plan["later"]} if task["kind"] == "move" else {"status": "cancelled"}
        return row == {**one, **wanted} and notices == [(one["organiser"], plan["message"])]
