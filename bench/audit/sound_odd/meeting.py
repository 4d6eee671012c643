"""Meetings in any free slot: the verdict accepts several answers, and ignores the colour and capitals of the title."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

Day = Literal["monday", "tuesday", "wednesday"]
Person = Literal["Ida", "Jon", "Kim"]
Hour = Annotated[int, msgspec.Meta(ge=9, le=16)]
Length = Annotated[int, msgspec.Meta(ge=1, le=4)]
Title = Annotated[str, msgspec.Meta(min_length=1, max_length=30)]
CLOSE = 17
# Hours that begin while a person is busy.
BUSY: dict[str, dict[str, list[int]]] = {
    "monday": {"Ida": [9, 10, 14], "Jon": [11], "Kim": [9, 16]},
    "tuesday": {"Ida": [], "Jon": [9, 10, 11, 12, 13], "Kim": [15, 16]},
    "wednesday": {"Ida": [12, 13, 14, 15, 16], "Jon": [10], "Kim": []},
}


class Meeting(msgspec.Struct):
    id: str
    title: str
    people: list[Person]
    day: Day
    start: int
    hours: int
    colour: str


class Calendar(qn.State):
    meetings: list[Meeting] = []

    def _taken(self, person: str, day: str) -> list[int]:
        booked = [one for one in self.meetings if one.day == day and person in one.people]
        return sorted(BUSY[day][person] + [hour for one in booked for hour in range(one.start, one.start + one.hours)])

    @qn.tool
    def busy(self, day: Day) -> dict[str, list[int]]:
        """Read the hours of a day in which each person is busy, meetings included; 9 stands for 9:00 to 10:00.

        Args:
            day: The day; people work from 9:00 to 17:00.
        """
        return {person: self._taken(person, day) for person in BUSY[day]}

    @qn.tool
    def booked(self) -> list[Meeting]:
        """List the meetings, the first booked first."""
        return self.meetings

    @qn.tool
    def book(  # noqa: PLR0917 -- a model passes arguments by name
        self,
        title: Title,
        people: Annotated[list[Person], msgspec.Meta(min_length=1, max_length=3)],
        day: Day,
        start: Hour,
        hours: Length,
        colour: Literal["red", "green", "blue"] = "blue",
    ) -> Meeting:
        """Book a meeting. It is refused if one of the people is busy, or if it would end after 17:00.

        Args:
            title: Its title, 1 to 30 characters.
            people: Who takes part, in any order, each once.
            day: The day.
            start: The hour at which it begins, 9 to 16.
            hours: How long it takes, 1 to 4 hours.
            colour: Its colour in the calendar.
        """
        if len(set(people)) < len(people):
            raise qn.ToolError("a person is named twice")
        if start + hours > CLOSE:
            raise qn.ToolError(f"it would end at {start + hours}:00, after {CLOSE}:00")
        for person in people:
            if both := set(self._taken(person, day)) & set(range(start, start + hours)):
                raise qn.ToolError(f"{person} is busy at {min(both)}:00")
        self.meetings.append(Meeting(self.new_id("M"), title, people, day, start, hours, colour))
        return self.meetings[-1]

    @qn.tool
    def cancel(self, meeting: str) -> str:
        """Cancel a meeting; it is not listed any more.

        Args:
            meeting: Its id, such as M1.
        """
        left = [one for one in self.meetings if one.id != meeting]
        if len(left) == len(self.meetings):
            raise qn.ToolError(f"unknown meeting {meeting!r}")
        self.meetings = left
        return f"{meeting} is cancelled"


# Each: title, people, days that suit, hours, colour that somebody likes; and one of the right slots.
JOBS: list[tuple[str, list[str], list[str], int, str, tuple[str, int]]] = [
    ("Budget", ["Ida", "Jon"], ["monday"], 1, "red", ("monday", 12)),
    ("Hiring", ["Ida", "Jon", "Kim"], ["tuesday"], 1, "green", ("tuesday", 14)),
    ("Launch", ["Jon", "Kim"], ["wednesday"], 3, "", ("wednesday", 12)),
    ("Review", ["Kim"], ["monday", "tuesday"], 4, "", ("tuesday", 10)),
    ("Trip", ["Ida", "Kim"], ["wednesday", "tuesday"], 2, "blue", ("wednesday", 9)),
    ("Retro", ["Ida", "Jon", "Kim"], ["monday", "tuesday", "wednesday"], 2, "red", ("monday", 12)),
]


def tasks(split: str) -> list[qn.Task[Calendar]]:
    made: list[qn.Task[Calendar]] = []
    for n, (title, people, days, hours, colour, (day, start)) in enumerate(JOBS, 1):
        likes = f"Somebody likes {colour}, but the colour does not matter." if colour else "Choose any colour."
        prompt = (
            f"Book one meeting {title!r} of {hours} h with exactly {', '.join(people)}, on {' or '.join(days)}, at "
            f"any time at which all are free. {likes} Capitals of the title do not matter. No other meeting is booked."
        )
        call = {"title": title, "people": people, "day": day, "start": start, "hours": hours}
        truth = {"title": title, "people": sorted(people), "days": days, "hours": hours}
        made.append(
            qn.Task(id=f"{split}-{n}", prompt=prompt, start=Calendar(), truth=truth, solution=(("book", call),))
        )
    return made


@qn.reward
def suits(view: qn.EpisodeView[Calendar]) -> qn.Score:
    """1 if the one meeting is right; the tool has refused hours in which somebody is busy."""
    truth = view.task.truth
    right = [
        one.title.lower() == truth["title"].lower()
        and sorted(one.people) == truth["people"]
        and one.day in truth["days"]
        and one.hours == truth["hours"]
        for one in view.state.meetings
    ]
    return qn.Score(float(right == [True]), f"{len(right)} meetings, {sum(right)} right")


env = qn.Environment(
    "meeting", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(suits), state=Calendar, splits=("test",)
)
