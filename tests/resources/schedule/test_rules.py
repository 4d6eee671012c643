"""The occurrences of a rule are those that a look at every minute finds, and those on a real calendar."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from quintain.errors import UsageError
from quintain.resources.schedule import Calendar, Cron, Daily, Day, Every, Monthly, Rule, Weekly, cron
from quintain.resources.schedule.hours import WEEKDAYS, date_of
from quintain.resources.schedule.rules import following

DAY = 86_400
BERLIN = Calendar(
    zone="Europe/Berlin",
    hours={"mon-fri": ("09:00-17:00",)},
    dates={"2026-05-01": Day("Labour Day"), "2026-12-24": Day("Eve", ("09:00-12:00",)), "2026-12-25": Day("Christmas")},
)


def occurrences(rule: Rule, start: float, calendar: Calendar = BERLIN) -> Iterator[float]:
    after: float | None = start
    while (after := following(rule, calendar, after=after or start, start=start)) is not None:
        yield after


def dates(rule: Rule, start: str, count: int, calendar: Calendar = BERLIN) -> list[str]:
    found = itertools.islice(occurrences(rule, calendar.moment(f"{start} 00:00"), calendar), count)
    return [f"{calendar.local(moment):%m-%d %H:%M}" for moment in found]


@pytest.mark.parametrize(
    ("rule", "start", "expected"),
    [
        (Daily("09:00"), "2026-12-24", ["12-24 09:00", "12-25 09:00", "12-26 09:00"]),
        (Daily("09:00", "skip"), "2026-12-24", ["12-24 09:00", "12-28 09:00", "12-29 09:00"]),
        (Daily("09:00", "next"), "2026-12-24", ["12-24 09:00", "12-28 09:00", "12-29 09:00"]),
        (Weekly("fri", "08:00"), "2026-04-24", ["04-24 08:00", "05-01 08:00", "05-08 08:00"]),
        (Weekly("fri", "08:00", "next"), "2026-04-25", ["05-04 08:00", "05-08 08:00"]),
        (Weekly("fri", "08:00", "previous"), "2026-04-25", ["04-30 08:00", "05-08 08:00"]),
        (Weekly("mon,sun"), "2026-12-01", ["12-06 00:00", "12-07 00:00", "12-13 00:00"]),
        (Monthly(1, "06:00"), "2026-04-02", ["05-01 06:00", "06-01 06:00"]),
        (Monthly(1, "06:00", closed="next"), "2026-04-02", ["05-04 06:00", "06-01 06:00"]),
        (Monthly(-1, "06:00"), "2026-01-05", ["01-31 06:00", "02-28 06:00", "03-31 06:00"]),
        (Monthly(-1, "17:00", closed="previous"), "2026-01-05", ["01-30 17:00", "02-27 17:00", "03-31 17:00"]),
        (Monthly(31), "2026-01-05", ["01-31 00:00", "03-31 00:00", "05-31 00:00"]),
        (Monthly(29), "2026-02-05", ["03-29 00:00"]),
        (Monthly(2, weekday="tue"), "2026-01-01", ["01-13 00:00", "02-10 00:00", "03-10 00:00"]),
        (Monthly(-1, weekday="fri"), "2026-01-01", ["01-30 00:00", "02-27 00:00", "03-27 00:00"]),
        (Monthly(5, weekday="mon"), "2026-01-01", ["03-30 00:00", "06-29 00:00"]),
        (Cron("*/20 9-10 * * mon"), "2026-12-28", ["12-28 09:00", "12-28 09:20", "12-28 09:40", "12-28 10:00"]),
        (Cron("0 0 13 * fri"), "2026-01-08", ["01-09 00:00", "01-13 00:00", "01-16 00:00"]),
        (Cron("0 0 29 2 *"), "2026-01-08", ["02-29 00:00"]),
        (Cron("5 4 * jan-mar/2 0"), "2026-01-30", ["03-01 04:05", "03-08 04:05"]),
        (Cron("0 9 * * *", "skip"), "2026-12-24", ["12-24 09:00", "12-28 09:00"]),
    ],
)
def test_dates_are_those_of_a_real_calendar(rule: Rule, start: str, expected: list[str]) -> None:
    assert dates(rule, start, len(expected)) == expected


def test_a_wall_time_comes_once_a_day_when_the_clock_jumps() -> None:
    assert dates(Daily("02:30"), "2026-03-28", 3) == ["03-28 02:30", "03-29 03:30", "03-30 02:30"]
    assert dates(Daily("02:30"), "2026-10-24", 3) == ["10-24 02:30", "10-25 02:30", "10-26 02:30"]
    assert (
        BERLIN.local(following(Daily("02:30"), BERLIN, after=BERLIN.moment("2026-10-25 00:00"), start=0) or 0).fold == 0
    )
    assert dates(Cron("*/30 1-3 * * *"), "2026-03-29", 4) == [
        "03-29 01:00",
        "03-29 01:30",
        "03-29 03:00",
        "03-29 03:30",
    ]
    gap_at_midnight = Calendar(zone="Asia/Beirut")
    assert dates(Daily("00:30"), "2026-03-28", 3, gap_at_midnight) == ["03-28 00:30", "03-29 01:30", "03-30 00:30"]
    left_out = Calendar(zone="Pacific/Apia")
    assert dates(Daily("12:00"), "2011-12-29", 3, left_out) == ["12-29 12:00", "12-31 12:00", "01-01 12:00"]


def test_a_time_of_yesterday_in_a_gap_over_midnight_still_comes() -> None:
    """Samoa left Friday the 30th out, so Friday's job is on Saturday, from wherever one looks."""
    samoa, friday = Calendar(zone="Pacific/Apia"), Weekly("fri", "12:00")
    for text in ("2011-12-29 10:00", "2011-12-31 06:00"):
        due = following(friday, samoa, after=samoa.moment(text), start=0)
        assert due == samoa.moment("2011-12-31 12:00")


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.booleans())
def test_every_so_often(seconds: int, start: int, after: int, aligned: bool) -> None:
    rule = Every(seconds, aligned)
    due = following(rule, BERLIN, after=start + after, start=start)
    base = 0 if aligned else start
    assert due == next(
        moment
        for moment in itertools.count(base + (start + after - base) // seconds * seconds, seconds)
        if moment > start + after
    )


def test_fractions_of_a_second_do_not_drift() -> None:
    tenth = list(itertools.islice(occurrences(Every(0.1), 0.0), 1000))
    assert tenth == [pytest.approx(count * 0.1, abs=1e-9) for count in range(1, 1001)]


class Plain:
    """Cron by the letter: what a field lists, and a look at every minute."""

    BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))

    def __init__(self, expression: str) -> None:
        self.fields = [
            {value for part in text.split(",") for value in self.values(part, *bounds)}
            for text, bounds in zip(expression.split(), self.BOUNDS, strict=True)
        ]
        self.either = not any(expression.split()[place].startswith("*") for place in (2, 4))

    def values(self, part: str, low: int, high: int) -> range:
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        start = low if first == "*" else int(first)
        end = int(last) if dash else high if first == "*" or step else start
        return range(start, end + 1, int(step or 1))

    def fits(self, moment: dt.datetime) -> bool:
        minutes, hours, days, months, weekdays = self.fields
        day, weekday = moment.day in days, bool({moment.isoweekday(), moment.isoweekday() % 7} & weekdays)
        fits = day or weekday if self.either else day and weekday
        return fits and moment.minute in minutes and moment.hour in hours and moment.month in months


def _part(low: int, high: int) -> st.SearchStrategy[str]:
    values = st.integers(low, high)
    step = st.one_of(st.just(""), st.integers(1, high).map("/{}".format))
    pairs = st.tuples(values, values).map(sorted).map(lambda pair: f"{pair[0]}-{pair[1]}")
    return st.tuples(st.one_of(st.just("*"), pairs), step).map("".join) | values.map(str)


FIELDS = [st.lists(_part(*bounds), min_size=1, max_size=2).map(",".join) for bounds in Plain.BOUNDS]


@settings(max_examples=60, deadline=None)
@given(st.tuples(*FIELDS).map(" ".join), st.integers(0, 400 * DAY // 60))
def test_cron_finds_what_a_look_at_every_minute_finds(expression: str, minute: int) -> None:
    utc, plain = Calendar(), Plain(expression)
    start = minute * 60
    moments = (dt.datetime.fromtimestamp(start + more * 60, dt.UTC) for more in range(1, 8 * 1440))
    expected = [moment.timestamp() for moment in moments if plain.fits(moment)][:20]
    assume(expected)
    assert list(itertools.islice(occurrences(Cron(expression), start, utc), len(expected))) == expected


RULES = st.one_of(
    st.builds(Daily, st.just("09:00"), st.sampled_from(["run", "skip", "next", "previous"])),
    st.builds(
        Weekly, st.sampled_from(["mon", "sat,sun", "thu-tue"]), closed=st.sampled_from(["skip", "next", "previous"])
    ),
    st.builds(Monthly, st.sampled_from([1, 15, -1, -3]), closed=st.sampled_from(["run", "skip", "next", "previous"])),
    st.builds(Monthly, st.sampled_from([1, 4, -1]), weekday=st.sampled_from(WEEKDAYS)),
)


@settings(max_examples=60, deadline=None)
@given(RULES, st.integers(20_500, 20_900), st.sets(st.integers(20_495, 20_990), max_size=60))
def test_closed_days_move_an_occurrence_as_they_say(
    rule: Daily | Weekly | Monthly, first: int, closed: set[int]
) -> None:
    """Each nominal day moves on its own, to the nearest open day on its side; what meets there is one."""
    calendar = Calendar(hours={"mon-sat": ("09:00-17:00",)}, dates={date_of(day).isoformat(): Day() for day in closed})
    anyway = Calendar(hours={"mon-sun": ("00:00-24:00",)})
    span = range(first - 120, first + 120)
    nominal = [
        int(at // DAY)
        for at in itertools.takewhile(lambda at: at < span[-1] * DAY, occurrences(rule, span[0] * DAY, anyway))
    ]
    moved: set[int] = set()
    for wanted in nominal:
        day = wanted
        if rule.closed in {"next", "previous"}:
            step = 1 if rule.closed == "next" else -1
            while not calendar.opens_on(day):
                day += step
        if rule.closed != "skip" or calendar.opens_on(day):
            moved.add(day)
    expected = [day for day in sorted(moved) if first <= day < first + 60]
    found = itertools.takewhile(lambda at: at < (first + 60) * DAY, occurrences(rule, first * DAY - 1, calendar))
    assert [int(at // DAY) for at in found] == expected


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("* * * *", "has 4 fields; it takes 5: minute, hour"),
        ("60 * * * *", "'60' is not a minute; it takes 0-59"),
        ("* * 0 * *", "'0' is not a day of the month; it takes 1-31"),
        ("* * * foo *", "'foo' is not a month; it takes 1-12 or jan-dec"),
        ("* * * * 8", "'8' is not a day of the week; it takes 0-7 or sun-sat"),
        ("*/0 * * * *", r"'\*/0' is an empty minute"),
        ("30-10 * * * *", "'30-10' is an empty minute"),
        ("1,,2 * * * *", "'' is not a minute"),
        ("a-b-c * * * *", "'a-b-c' is not a minute"),
        ("@daily", "has 1 fields"),
    ],
)
def test_cron_nonsense_is_refused(expression: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Cron(expression)


def test_names_stand_for_numbers() -> None:
    assert cron.parse("0 0 * JAN-mar Sun,fri") == cron.parse("0 0 * 1-3 7,5") == cron.parse("0 0 * 1-3 0,5")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Every(0), "more than 0, got 0"),
        (lambda: Every(float("inf")), "more than 0, got inf"),
        (lambda: Daily("9:00"), "'9:00' is not a time from '00:00' to '23:59'"),
        (lambda: Weekly("someday"), "'someday' is not a weekday"),
        (lambda: Monthly(0), "the day of a month is 1 to 31, or -1 to -31 from its end, got 0"),
        (lambda: Monthly(6, weekday="mon"), "is 1 to 5, or -1 to -5 from its end, got 6"),
        (lambda: Monthly(1, weekday="mon-fri"), "'mon-fri' is more than one weekday"),
    ],
)
def test_rule_nonsense_is_refused(wrong: Callable[[], Rule], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        wrong()


def test_rules_without_occurrence_are_detected() -> None:
    assert following(Cron("0 0 30 feb *"), BERLIN, after=0, start=0) is None
    assert following(Daily(closed="skip"), Calendar(), after=0, start=0) is None
    one_day = Calendar(dates={"1975-01-01": Day(hours=("00:00-01:00",))})
    assert following(Monthly(1, closed="next"), one_day, after=one_day.moment("1975-01-02 00:00"), start=0) is None
    assert following(Cron("0 0 1 2 *", "next"), one_day, after=0, start=0) == one_day.moment("1975-01-01 00:00")
    assert following(Weekly("mon", closed="next"), one_day, after=0, start=0) == one_day.moment("1975-01-01 00:00")
    never = Cron("0 0 30 feb *", "next")
    assert following(never, one_day, after=0, start=0) is None, "a year of closed days has none of it"
    assert following(
        Daily(closed="next"), Calendar(dates={"1975-01-01": Day(hours=("00:00-01:00",))}), after=0, start=0
    )
