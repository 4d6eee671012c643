"""Meeting rooms on one day: half-open intervals, pages of three, cancelled bookings that stay in the history."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

Time = Annotated[str, msgspec.Meta(pattern="^((0[89]|1[0-7]):(00|30)|18:00)$", max_length=5)]
Title = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
Name = Literal["Ash", "Birch", "Cedar", "Elm"]
SEATS: dict[str, int] = {"Ash": 4, "Birch": 6, "Cedar": 6, "Elm": 12}
PAGE = 3


class Booking(msgspec.Struct):
    room: Name
    start: str
    end: str
    title: str
    status: Literal["active", "cancelled"] = "active"


SEED = {
    "K1": Booking("Ash", "09:00", "10:00", "Standup"),
    "K2": Booking("Birch", "09:00", "11:30", "Interview"),
    "K3": Booking("Ash", "11:00", "12:00", "Review", "cancelled"),
    "K4": Booking("Elm", "13:00", "15:00", "Workshop"),
    "K5": Booking("Cedar", "14:00", "14:30", "Call"),
    "K6": Booking("Elm", "15:00", "16:00", "Wrap-up"),
    "K7": Booking("Ash", "16:30", "18:00", "Choir"),
}


class Rooms(qn.State):
    bookings: qn.Table[Booking]
    made: int = len(SEED)

    def _busy(self, room: str, start: str, end: str) -> str:
        """Returns the id of an active booking that overlaps [start, end), or an empty text."""
        for key, row in self.bookings.items():
            if row.status == "active" and row.room == room and row.start < end and start < row.end:
                return key
        return ""

    @qn.tool
    def list_rooms(self) -> dict[str, int]:
        """Read the number of seats of each room."""
        return dict(SEATS)

    @qn.tool
    def list_bookings(
        self,
        after: str = "",
        include_cancelled: bool = False,  # noqa: FBT001, FBT002 -- a model passes arguments by name
    ) -> dict[str, dict[str, Booking] | str | None]:
        """List bookings in the order of their making, three on a page; next is the value of `after` for the next page.

        Args:
            after: Id of the last booking of the page before; empty for the first page.
            include_cancelled: Also list cancelled bookings, which are left out otherwise.
        """
        if after and after not in self.bookings:
            raise qn.ToolError(f"unknown booking {after!r}")
        rows = [
            (key, row)
            for key, row in self.bookings.items()
            if (include_cancelled or row.status == "active") and (not after or int(key[1:]) > int(after[1:]))
        ]
        page = rows[:PAGE]
        return {"bookings": dict(page), "next": page[-1][0] if len(rows) > PAGE else None}

    @qn.tool
    def free_rooms(self, start: Time, end: Time, seats: Annotated[int, msgspec.Meta(ge=1, le=12)] = 1) -> list[str]:
        """List rooms that are free from start to end, those with the fewest seats first, equal ones by name.

        Args:
            start: From 08:00 to 17:30, on the half hour.
            end: Later than start, up to 18:00, on the half hour.
            seats: The room has at least as many.
        """
        self._check(start, end)
        fit = sorted((count, room) for room, count in SEATS.items() if count >= seats)
        return [room for _, room in fit if not self._busy(room, start, end)]

    def _check(self, start: str, end: str) -> None:
        if start >= end:
            raise qn.ToolError(f"end must be later than start, got {start} to {end}")

    @qn.tool
    def book(self, room: Name, start: Time, end: Time, title: Title) -> str:
        """Book a room; returns the id of the booking. A booking may begin when another one ends.

        Args:
            room: Name of the room.
            start: From 08:00 to 17:30, on the half hour.
            end: Later than start, up to 18:00, on the half hour.
            title: 1 to 40 characters.
        """
        self._check(start, end)
        if other := self._busy(room, start, end):
            found = self.bookings[other]
            raise qn.ToolError(f"{room} is taken from {found.start} to {found.end} by {other}")
        self.made += 1
        self.bookings[f"K{self.made}"] = Booking(room, start, end, title)
        return f"K{self.made}"

    @qn.tool
    def cancel(self, booking: str) -> str:
        """Cancel a booking. It stays in the history and cannot be made active again.

        Args:
            booking: Its id.
        """
        if booking not in self.bookings:
            raise qn.ToolError(f"unknown booking {booking!r}")
        row = self.bookings[booking]
        if row.status == "cancelled":
            raise qn.ToolError(f"{booking} is cancelled already")
        row.status = "cancelled"
        self.bookings[booking] = row
        return f"{booking} is cancelled"


Slot = tuple[str, str, str, str]
JOBS: list[tuple[str, list[Slot], list[str]]] = [
    ("Book Birch from 11:30 to 12:30 for 'Lunch talk'.", [("Birch", "11:30", "12:30", "Lunch talk")], []),
    ("Cancel the booking of the choir.", [], ["K7"]),
    ("Book the smallest free room with 5 seats or more from 10:00 to 11:00 for 'Budget'.",
     [("Cedar", "10:00", "11:00", "Budget")], []),
    ("Move the workshop one hour earlier, in the same room and for two hours, under the same title.",
     [("Elm", "12:00", "14:00", "Workshop")], ["K4"]),
    ("The review takes place after all: book it again as it was.", [("Ash", "11:00", "12:00", "Review")], []),
    ("Cancel every booking in Elm.", [], ["K4", "K6"]),
    ("Move the call to Ash, at the same time and under the same title.", [("Ash", "14:00", "14:30", "Call")], ["K5"]),
]  # fmt: skip


def tasks(split: str) -> list[qn.Task[Rooms]]:
    world = Rooms(bookings=qn.Table(Booking, SEED))
    made: list[qn.Task[Rooms]] = []
    for n, (asked, new, gone) in enumerate(JOBS, 1):
        kept = [slot(row) for key, row in SEED.items() if row.status == "active" and key not in gone]
        calls: list[tuple[str, dict[str, object]]] = [("cancel", {"booking": key}) for key in gone]
        calls += [("book", dict(zip(("room", "start", "end", "title"), one, strict=True))) for one in new]
        prompt = f"{asked} All other active bookings stay. Ids do not matter, nor does what was cancelled on the way."
        truth = sorted([*kept, *map(list, new)])
        made.append(qn.Task(id=f"{split}-{n}", prompt=prompt, start=world, truth=truth, solution=tuple(calls)))
    return made


def slot(row: Booking) -> list[str]:
    return [row.room, row.start, row.end, row.title]


@qn.reward
def as_asked(view: qn.EpisodeView[Rooms]) -> qn.Score:
    found = sorted(slot(row) for row in view.state.bookings.values() if row.status == "active")
    return qn.Score(float(found == view.task.truth), f"active: {found}")


env = qn.Environment(
    "rooms", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Rooms, splits=("test",)
)
