"""Tests of dates and times in prompts: wrong weekdays are proven, unless the task is about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks._data_calendar import errors
from quintain.audit.checks.data_realism import calendar
from tests.audit.checks._found import found

NOTES = """
class Right:
    DAYS = {"a": "Wednesday, 5 March 2025", "b": "Thursday, 6 March 2025", "c": "Friday, March 7, 2025"}
    ANSWER = "done"

    def tasks(self):
        return list(self.DAYS)

    def reset(self, task, seed):
        self.said = ""
        return f"We met on {self.DAYS[task]} at noon. Say done."

    def answer(self, text):
        self.said = text

    def score(self):
        return float(self.said == self.ANSWER)

    def oracle(self, task):
        return [{"answer": self.ANSWER}]


class Wrong(Right):
    DAYS = {"a": "Monday, 5 March 2025", "b": "Friday, 6 March 2025", "c": "Sunday, March 7, 2025"}


class Corrected(Wrong):
    ANSWER = "It was a Wednesday."


class Late(Right):
    DAYS = dict.fromkeys("abc", "5 March 2025, 23:45, 24:00 and 24:15")


class Drawn(Right):
    DAYS = dict.fromkeys("abc", "1869-02-29, 1861-09-31, 1861-09-30")


class Slips(Right):
    MANY = ", ".join(f"18{year}-{month}-05" for year in range(10, 99) for month in ("03", "05", "07"))
    DAYS = dict.fromkeys("abc", f"{MANY}, 1869-02-29, 1861-09-31")
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Right", []),
        ("Wrong", [("proven", "a date is given with another weekday than it has")]),
        ("Corrected", [("likely", "a date is given with another weekday than it has")]),
        ("Late", [("likely", "a time of day goes on after 23:59")]),
        ("Drawn", [("proven", "a date is in no calendar")]),
        ("Slips", [("likely", "a date is in no calendar")]),
    ],
)
def test_date_that_the_calendar_contradicts_is_reported(
    tmp_path: Path, name: str, expected: list[tuple[str, str]]
) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    findings = found(tmp_path / "notes.py", name, [calendar])
    assert [(one.confidence, one.title) for one in findings] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on Tuesday, 4th March 2025, and 2025-03-05", []),
        ("on Monday, 4 March 2025", [("weekday", "Monday, 4 March 2025")]),
        ("Yesterday 4 March 2025", []),
        ("due 2025-02-30 or 31 April 2025", [("date", "2025-02-30"), ("date", "31 April 2025")]),
        ("laps of 23:10, 24:00", []),
        ("23:45 24:00 24:15", [("hour", "24:15")]),
        ("a song of 25:10", []),
    ],
)
def test_errors_are_read_from_a_text(text: str, expected: list[tuple[str, str]]) -> None:
    assert list(errors(text)) == expected
