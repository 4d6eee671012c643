"""Questions about dates; three spellings of a date are accepted, and the prompt names them."""

import datetime as dt
import re

import quintain as qn
from quintain.judges import final_answer
from quintain.state import Rng

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ISO = re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})", re.ASCII)
DAY_FIRST = re.compile(r"(?P<day>\d{1,2}) (?P<name>[a-z]+) (?P<year>\d{4})", re.ASCII)
MONTH_FIRST = re.compile(r"(?P<name>[a-z]+) (?P<day>\d{1,2}), (?P<year>\d{4})", re.ASCII)
FORM = (
    "Reply with 'Answer: ' and the date, as 2024-03-05, 5 March 2024 or March 5, 2024. Nothing may stand behind it "
    "but a full stop."
)


class Nothing(qn.State):
    """World of a question."""


def parsed(text: str) -> dt.date | None:
    """Returns the date that a text spells in one of the three ways; None if it does not."""
    text = " ".join(text.lower().split()).removesuffix(".")
    for form in (ISO, DAY_FIRST, MONTH_FIRST):
        if found := form.fullmatch(text):
            parts = found.groupdict()
            name = parts.get("name")
            if name is not None and name not in MONTHS:
                return None
            month = int(parts["month"]) if name is None else MONTHS.index(name) + 1
            try:
                return dt.date(int(parts["year"]), month, int(parts["day"]))
            except ValueError:  # The text has the form of a date, but no calendar has it.
                return None
    return None


def asked(number: int, rng: Rng) -> tuple[str, dt.date]:
    """Returns a question and its answer; three kinds of questions alternate."""
    first = dt.date(1990, 1, 1) + dt.timedelta(days=rng.below(20_000))
    days = 20 + rng.below(700)
    if number % 3 == 0:
        return f"Which date is {days} days after {first}?", first + dt.timedelta(days=days)
    if number % 3 == 1:
        return f"Which date is {days} days before {first}?", first - dt.timedelta(days=days)
    weekday = rng.below(7)
    ahead = (weekday - first.weekday() - 1) % 7 + 1
    return f"Which date is the first {WEEKDAYS[weekday]} after {first}, that day excluded?", first + dt.timedelta(ahead)


def make(split: str, number: int) -> qn.Task[Nothing]:
    question, date = asked(number, Rng(key=f"date_arithmetic/{split}/{number}".encode()))
    month = MONTHS[date.month - 1].capitalize()
    spelled = (f"{date}", f"{date.day} {month} {date.year}", f"{month} {date.day}, {date.year}")[number // 3 % 3]
    return qn.Task(
        id=f"{split}-{number}",
        prompt=f"{question} The calendar is the Gregorian one. {FORM}",
        start=Nothing(),
        truth=date.isoformat(),
        solution=(),
        answer=f"Answer: {spelled}",
    )


@qn.reward
def right_date(view: qn.EpisodeView[Nothing]) -> qn.Score:
    said = parsed(final_answer(view.answer))
    return qn.Score(float(str(said) == view.task.truth), f"read {said}, expected {view.task.truth}")


env = qn.Environment(
    "date_arithmetic",
    tasks=lambda split: qn.Tasks(18, lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(right_date),
    state=Nothing,
)
