"""Event descriptions that become JSON of a stated form, compared as structures."""

import msgspec

import quintain as qn
from quintain.judges import same_json
from quintain.state import Rng

TITLES = ("Budget review", "Fire drill", "Sprint demo", "Board lunch", "Safety training", "Press call")
PEOPLE = ("Ines", "Marek", "Odile", "Priya", "Tomas", "Yuki", "Zora")
MONTHS = ("January", "March", "April", "June", "September", "November")
FORM = (
    "Reply with one JSON object and nothing else, or with the object in a fenced block. Its keys: title (text, as it "
    "stands in the quotation marks), date (text, YYYY-MM-DD), start (text, HH:MM in 24 hours), minutes (number), "
    "people (list of the names in alphabetical order), remote (true if it takes place by video, else false). No other "
    "keys. The order of keys and white space do not matter."
)


class Event(msgspec.Struct):
    title: str
    date: str
    start: str
    minutes: int
    people: list[str]
    remote: bool


class Page(qn.State):
    """World of an extraction: the description stands in the prompt."""


def clock(hour: int, minute: int) -> str:
    """Returns a time of day on the 12-hour clock; 12 pm is noon."""
    return f"{(hour - 1) % 12 + 1}:{minute:02} {'am' if hour < 12 else 'pm'}"


def make(split: str, number: int) -> qn.Task[Page]:
    rng = Rng(key=f"event_json/{split}/{number}".encode())
    month, day, hour, minute = rng.below(len(MONTHS)), 1 + rng.below(28), 8 + rng.below(10), 15 * rng.below(4)
    event = Event(
        title=TITLES[number % len(TITLES)],
        date=f"2026-{(1, 3, 4, 6, 9, 11)[month]:02}-{day:02}",
        start=f"{hour:02}:{minute:02}",
        minutes=30 + 15 * rng.below(7),
        people=rng.sample(PEOPLE, 2 + rng.below(3)),
        remote=bool(rng.below(2)),
    )
    *others, last = event.people
    where = "by video, without a room" if event.remote else "in room 4, without video"
    text = (
        f'We meet for "{event.title}" on {MONTHS[month]} {day}, 2026, at {clock(hour, minute)}, for {event.minutes} '
        f"minutes. {', '.join(others)} and {last} take part. It takes place {where}."
    )
    event.people.sort()
    return qn.Task(
        id=f"{split}-{number}",
        prompt=f"{text}\n\n{FORM}",
        start=Page(),
        truth=msgspec.to_builtins(event),
        solution=(),
        answer=msgspec.json.encode(event).decode(),
        tags={"remote": str(event.remote).lower()},
    )


env = qn.Environment(
    "event_json",
    tasks=lambda split: qn.Tasks(18, lambda number: make(split, number)),
    harness=qn.ToolLoop(system="You turn text into JSON."),
    verifier=qn.Verifier(same_json()),
    state=Page,
)
