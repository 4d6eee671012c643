"""list[Answer] to several values of a parameter show for what a tool takes it."""

from __future__ import annotations

import pytest

from quintain.audit.facts.cuts import Answer, misread, money, numbers

TIMES = ("7:05", "8:30", "9:55", "10:20", "13:10", "16:00")
YEARS = (1841, 1846, 1851, 1851, 1867)


def departures(*, padded: int) -> list[Answer]:
    """Returns the rows after three times, compared as text of this width."""
    rows = [{"departs": time} for time in TIMES]
    cuts = ("8:00", "10:00", "13:00")
    return [(at, "", [row for row in rows if row["departs"].zfill(padded) >= at.zfill(padded)], {}) for at in cuts]


def sheets(shift: int, years: tuple[int, ...] = YEARS) -> list[Answer]:
    """Returns the rows up to each year and the next one; the end is left out with a shift of 1."""
    ends = sorted({year + more for year in years for more in (0, 1)})
    return [
        (end, "", [f"E{n}, {year}-05-18" for n, year in enumerate(years) if year <= end - shift], {}) for end in ends
    ]


def waits(*ends: int) -> list[Answer]:
    """Returns the days of a month on which waits of 3 and 10 days end."""
    return [(days, f"It is 2026-09-{end:02}.", [], {}) for days, end in zip((3, 10), ends, strict=True)]


def moves(old: str, *values: str) -> list[Answer]:
    """Returns a call that replaces a text in values by 10.9."""
    return [(old, "moved", [], {f"rows/{value}": [value, value.replace(old, "10.9")] for value in values})]


@pytest.mark.parametrize(
    ("wrong", "right", "description", "said"),
    [
        (departures(padded=0), departures(padded=5), "", "text, by which"),
        (sheets(1), sheets(0), "Last year, included.", "an end that is left out"),
        (waits(10, 17), waits(10, 21), "How many working days.", "days of the calendar"),
        (moves("10.1", "10.1", "10.12"), moves("10.1", "10.1"), "Their address, complete.", "a part of"),
    ],
)
def test_misread_finds_the_misreading_and_not_its_sound_twin(
    wrong: list[Answer], right: list[Answer], description: str, said: str
) -> None:
    assert misread(wrong, description).startswith(said)
    assert not misread(right, description)


@pytest.mark.parametrize(
    ("answers", "description"),
    [
        (sheets(1), "Year before which it was collected."),
        (sheets(1, tuple(range(2000, 2009))), "Last row, included; rows count from 0 and ends from 1."),
        (waits(10, 17), "How many days. Letters come on working days."),
        ([(3, "It is 2026-02-30.", [], {}), (10, "It is 2026-02-37.", [], {})], "How many working days."),
        (departures(padded=0)[:2], ""),
        (moves("10.1", "10.1", "10.12"), "The text to replace."),
        (moves("cat", "cat", "a cat sat"), "The whole word."),
        (moves("10.1", "10.12"), "The whole text to replace, wherever it stands."),
    ],
)
def test_misread_lets_sound_tools_alone(answers: list[Answer], description: str) -> None:
    assert not misread(answers, description)


def test_an_amount_of_money_has_a_number_and_a_unit() -> None:
    assert money("$1,200.50 per hive") == (1200.5, "$ per hive")
    assert money(9) == (9.0, "")
    assert [money(value) for value in ("9 each", "$9k", "$9 to $12", "€9,50", "€1.200", "$", None)] == [None] * 7


def test_whole_numbers_are_read_in_texts_too() -> None:
    assert numbers({"total": 34, "sheets": ["E00412015 Rubus, 1953-01-18", 2.5]}) == [1, 18, 34, 1953]
