"""Questions about dates: three stated ways to write a date, and ambiguous ones such as 03/04/2026 refused."""

import random
import re
from datetime import date, timedelta

import quintain as qn
from quintain.tasks import from_rows

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip
FORMAT = (
    "Answer with one date and nothing else, written as 2026-03-09, 9 March 2026 or March 9, 2026; a full stop at the "
    "end is ignored, and so is the case of letters. Other ways to write it, such as 09/03/2026, are not accepted."
)
_WAYS = (
    re.compile(r"(?P<y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"),
    re.compile(r"(?P<d>[0-9]{1,2}) (?P<m>[a-z]+) (?P<y>[0-9]{4})"),
    re.compile(r"(?P<m>[a-z]+) (?P<d>[0-9]{1,2}), (?P<y>[0-9]{4})"),
)


def read(text: str) -> date | None:
    """Returns the date that a text is, or None."""
    plain = " ".join(text.split()).removesuffix(".").lower()
    months = {month.lower(): n for n, month in enumerate(MONTHS, 1)}
    for way in _WAYS:
        if found := way.fullmatch(plain):
            month = int(found["m"]) if found["m"].isdecimal() else months.get(found["m"], 0)
            try:
                return date(int(found["y"]), month, int(found["d"]))
            except ValueError:  # The month has fewer days.
                return None
    return None


def months_later(day: date, count: int) -> date:
    """Returns the same day `count` months later, or the last day of that month if it has no such day."""
    month = day.month - 1 + count
    first = date(day.year + month // 12, month % 12 + 1, 1)
    last = (date(first.year + first.month // 12, first.month % 12 + 1, 1) - timedelta(days=1)).day
    return first.replace(day=min(day.day, last))


def question(rng: random.Random, kind: int) -> tuple[str, date]:
    day = date(2015, 1, 1) + timedelta(days=rng.randrange(7000))
    shown = f"{day.day} {MONTHS[day.month - 1]} {day.year}"
    count = rng.randrange(2, 400)
    if kind == 0:
        return f"Which date is {count} days after {shown}?", day + timedelta(days=count)
    if kind == 1:
        return f"Which date is {count} days before {shown}?", day - timedelta(days=count)
    if kind == 2:
        later = count % 30 + 1
        text = f"Which date is {later} months after {shown}? If that month has no such day, take its last day."
        return text, months_later(day, later)
    weekday = rng.randrange(7)
    name = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")[weekday]
    ahead = (weekday - day.weekday() - 1) % 7 + 1
    return f"Which date is the first {name} after {shown}, that day itself excluded?", day + timedelta(days=ahead)


def rows(split: str) -> list[dict[str, str]]:
    rng = random.Random(f"dates of {split}")  # noqa: S311 -- questions, not secrets
    made = [question(rng, n % 4) for n in range(24)]
    return [{"question": f"{text} {FORMAT}", "answer": day.isoformat()} for text, day in made]


def same_day(answer: str, truth: str) -> qn.Score:
    said = read(answer)
    return qn.Score(float(said is not None and said == read(truth)), f"read {said}, right is {truth}")


env = from_rows("dates", {split: rows(split) for split in ("train", "test")}, scorer=same_day)
