"""Calendars agree with a wall clock that is read minute by minute, and with known real days."""

from __future__ import annotations

import datetime as dt
import importlib.util
import os
import subprocess
import sys
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain import codec
from quintain.errors import UsageError
from quintain.resources.schedule import Calendar, Day, zones
from quintain.resources.schedule.hours import WEEKDAYS

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Asia/Tokyo", "Asia/Beirut")
MINUTE, HOUR, DAY = 60, 3600, 86_400
OFFICE = Calendar(
    zone="Europe/Berlin",
    hours={"mon-fri": ("09:00-17:00",)},
    dates={
        "2026-12-24": Day("Christmas Eve", ("09:00-12:00",)),
        "2026-12-25": Day("Christmas"),
        "2026-12-26": Day("Boxing Day"),
        "2026-12-19": Day("stocktaking", ("10:00-14:00",)),
    },
)


def seconds(text: str) -> int:
    return int(text[:2]) * HOUR + int(text[3:]) * MINUTE


class Slow:
    """The same answers, by looking at the clock on the wall once a minute."""

    def __init__(self, calendar: Calendar) -> None:
        self.calendar, self.zone = calendar, ZoneInfo(calendar.zone)

    def begins(self, date: dt.date) -> tuple[str, ...]:
        special = self.calendar.dates.get(date.isoformat())
        return special.hours if special else self.calendar.hours.get(WEEKDAYS[date.weekday()], ())

    def is_open(self, at: float) -> bool:
        wall = dt.datetime.fromtimestamp(at, self.zone)
        now = wall.hour * HOUR + wall.minute * MINUTE + wall.second
        for date, shown in ((wall.date(), now), (wall.date() - dt.timedelta(days=1), now + DAY)):
            for text in self.begins(date):
                start, end = seconds(text[:5]), seconds(text[6:])
                if start <= shown < (end if end > start else end + DAY):
                    return True
        return False

    def between(self, start: int, end: int) -> int:
        return sum(MINUTE for minute in range(start, end, MINUTE) if self.is_open(minute))

    def add(self, at: int, amount: int) -> float | None:
        for minute in range(at, at + 20 * DAY, MINUTE):
            if amount <= 0:
                return minute
            amount -= MINUTE * self.is_open(minute)
        return None

    def first(self, at: int, wanted: bool) -> int | None:
        return next((minute for minute in range(at, at + 10 * DAY, MINUTE) if self.is_open(minute) is wanted), None)


TIMES = st.integers(0, 24 * 4 - 1).map(lambda quarter: f"{quarter // 4:02}:{quarter % 4 * 15:02}")


@st.composite
def intervals(draw: st.DrawFn) -> tuple[str, ...]:
    """Up to three intervals that do not overlap; the last one may cross midnight."""
    times = sorted(draw(st.lists(TIMES, max_size=6, unique=True)))
    pairs = [f"{start}-{end}" for start, end in zip(times[::2], times[1::2], strict=False)]
    if len(times) % 2:
        pairs.append(f"{times[-1]}-{draw(TIMES.filter(lambda end: end < times[-1] or times[-1] == '00:00'))}")
    return tuple(pair for pair in pairs if pair[:5] != pair[6:])


# A week around a change of each zone, and one without.
WEEKS = {
    "Europe/Berlin": ("2026-03-26", "2026-10-22"),
    "America/New_York": ("2026-03-05", "2026-10-29"),
    "Australia/Lord_Howe": ("2026-04-02", "2026-10-01"),
    "Asia/Beirut": ("2026-03-26", "2026-10-22"),
}


@st.composite
def calendars(draw: st.DrawFn) -> tuple[Calendar, int]:
    """A calendar, and midnight UTC of a day near which things happen."""
    zone = draw(st.sampled_from(ZONES))
    first = draw(st.sampled_from(WEEKS.get(zone, ("2026-07-01", "1969-12-28"))))
    dates = [(dt.date.fromisoformat(first) + dt.timedelta(days=n)).isoformat() for n in range(-1, 8)]
    hours = draw(st.dictionaries(st.sampled_from(list[str](WEEKDAYS)), intervals()))
    special = draw(st.dictionaries(st.sampled_from(dates), intervals().map(lambda hours: Day("special", hours))))
    start = dt.datetime.fromisoformat(first).replace(tzinfo=dt.UTC).timestamp()
    return Calendar(zone=zone, hours=hours, dates=special), int(start)


MOMENTS = st.integers(0, 6 * DAY // MINUTE).map(lambda minutes: minutes * MINUTE)


@settings(max_examples=80, deadline=None)
@given(calendars(), MOMENTS, MOMENTS)
def test_as_a_clock_on_the_wall_shows_it(made: tuple[Calendar, int], one: int, two: int) -> None:
    calendar, base = made
    slow, start, end = Slow(calendar), base + min(one, two), base + max(one, two)
    assert calendar.is_open(start) is slow.is_open(start)
    open_time = slow.between(start, end)
    assert calendar.between(start, end) == open_time
    assert calendar.between(end, start) == -open_time
    for wanted, ask in ((True, calendar.next_open), (False, calendar.next_close)):
        expected = slow.first(start, wanted)
        if expected is not None:
            assert ask(start) == expected
    if open_time:
        assert calendar.add(start, open_time) == slow.add(start, open_time)


@settings(deadline=None)
@given(
    calendars(),
    st.lists(st.floats(0, 400 * DAY, allow_nan=False), min_size=3, max_size=3),
)
def test_adding_and_measuring_are_inverse(made: tuple[Calendar, int], moments: list[float]) -> None:
    calendar, base = made
    one, two, three = sorted(base + moment for moment in moments)
    first, second = calendar.between(one, two), calendar.between(two, three)
    assert 0 <= first <= two - one + 1e-6
    assert calendar.between(one, three) == pytest.approx(first + second, abs=1e-5)
    due = calendar.add(one, first)
    assert due <= two + 1e-6
    assert calendar.between(one, due) == pytest.approx(first, abs=1e-5)


@settings(deadline=None)
@given(calendars(), st.integers(0, 300 * DAY), st.integers(0, 50 * HOUR), st.integers(0, 50 * HOUR))
def test_adding_twice_is_adding_once(made: tuple[Calendar, int], after: int, one: int, two: int) -> None:
    calendar, base = made
    if not any(calendar.hours.values()):
        return
    start = base + after
    assert calendar.add(calendar.add(start, one), two) == calendar.add(start, one + two)


def at(text: str, calendar: Calendar = OFFICE) -> float:
    return calendar.moment(text)


@pytest.mark.parametrize(
    ("start", "hours", "end"),
    [
        ("2026-12-18 16:00", 1, "2026-12-18 17:00"),  # what ends with the day ends at its close
        ("2026-12-18 16:00", 2, "2026-12-19 11:00"),  # an extra Saturday
        ("2026-12-18 16:00", 6, "2026-12-21 10:00"),
        ("2026-12-23 16:30", 4, "2026-12-28 09:30"),  # half a day, then three closed ones
        ("2026-12-25 03:00", 0, "2026-12-25 03:00"),
        ("2026-12-25 03:00", 8, "2026-12-28 17:00"),
        ("2026-01-01 00:00", 8 * 250, "2026-12-16 17:00"),  # 1 January 2026 is a Thursday
    ],
)
def test_business_hours_pass(start: str, hours: int, end: str) -> None:
    assert OFFICE.local(OFFICE.add(at(start), hours * HOUR)).strftime("%Y-%m-%d %H:%M") == end
    assert OFFICE.between(at(start), at(end)) == hours * HOUR


@pytest.mark.parametrize(
    ("zone", "date", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("America/New_York", "2026-03-08", 23),
        ("America/New_York", "2026-11-01", 25),
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("Australia/Lord_Howe", "2026-10-04", 23.5),
        ("Asia/Kolkata", "2026-03-29", 24),
        ("Asia/Tokyo", "2026-10-25", 24),
        ("Pacific/Apia", "2011-12-30", 0),  # Samoa left this day out
    ],
)
def test_days_are_as_long_as_they_were(zone: str, date: str, hours: float) -> None:
    whole = Calendar(zone=zone, dates={date: Day(hours=("00:00-24:00",))})
    noon = dt.datetime.fromisoformat(date).replace(tzinfo=dt.UTC).timestamp()
    assert whole.between(noon - 3 * DAY, noon + 3 * DAY) == hours * HOUR


def test_a_night_shift_is_shorter_in_spring_and_longer_in_autumn() -> None:
    night = Calendar(zone="Europe/Berlin", hours={"sat": ("22:00-06:00",)})
    for month, hours in (("2026-03-28", 7), ("2026-10-24", 9), ("2026-05-02", 8)):
        start = at(f"{month} 22:00", night)
        assert night.between(start - HOUR, start + DAY) == hours * HOUR
        assert night.next_close(start) == start + hours * HOUR


def test_an_opening_that_the_clock_skips_or_shows_twice() -> None:
    early = Calendar(zone="Europe/Berlin", hours={"sun": ("02:30-04:00",)})
    gap = at("2026-03-29 00:00", early)
    assert early.local(early.next_open(gap)).isoformat() == "2026-03-29T03:00:00+02:00"
    assert early.between(gap, gap + DAY) == HOUR
    fold = at("2026-10-25 00:00", early)
    assert early.local(early.next_open(fold)).isoformat() == "2026-10-25T02:30:00+02:00"
    assert early.local(early.next_close(early.next_open(fold))).isoformat() == "2026-10-25T02:00:00+01:00"
    assert early.between(fold, fold + DAY) == 2 * HOUR


def test_moments_in_a_gap_and_in_a_fold() -> None:
    assert OFFICE.local(at("2026-03-29 02:30")).isoformat() == "2026-03-29T03:30:00+02:00"
    assert OFFICE.local(at("2026-10-25 02:30")).isoformat() == "2026-10-25T02:30:00+02:00"


def test_fractions_of_seconds_do_not_cross_a_night() -> None:
    start = at("2026-12-21 15:00") + 0.3
    assert OFFICE.add(start, 2 * HOUR - 0.3) == at("2026-12-21 17:00")
    assert OFFICE.add(start, 2 * HOUR) == at("2026-12-22 09:00") + 0.3


def test_days_are_business_days_or_special() -> None:
    assert OFFICE.is_business_day(at("2026-12-19 23:00"))
    assert not OFFICE.is_business_day(at("2026-12-25 10:00"))
    assert OFFICE.special(at("2026-12-25 10:00")) == Day("Christmas")
    assert OFFICE.special(at("2026-12-23 10:00")) is None


def test_always_open_and_never() -> None:
    always = Calendar(zone="Europe/Berlin", hours={"mon-sun": ("00:00-24:00",)})
    assert always.add(0, 10 * 365 * DAY) == always.between(0, 10 * 365 * DAY) == 10 * 365 * DAY
    assert always.next_open(5.5) == 5.5
    with pytest.raises(UsageError, match=r"this calendar never closes after 5"):
        always.next_close(5)
    for never in (Calendar(), Calendar(hours={"mon": ()}), Calendar(dates={"2020-02-02": Day(hours=("01:00-02:00",))})):
        after, looked_up = at("2020-02-03 00:00", never), zones._changes.cache_info().misses
        assert never.between(after, after + 100 * DAY) == 0
        assert never.next_close(after) == after
        assert never.add(after, 0) == after
        with pytest.raises(UsageError, match="this calendar never opens after"):
            never.next_open(after)
        with pytest.raises(UsageError, match=r"60 open seconds never come after .*: this calendar does not open again"):
            never.add(after, 60)
        assert zones._changes.cache_info().misses < looked_up + 5, "it need not look until the end of dates"
    once = Calendar(hours={"mon-sun": ("00:00-24:00",)}, dates={"2030-01-01": Day("New Year")})
    assert once.next_close(0) == at("2030-01-01 00:00", once)
    assert once.next_open(once.next_close(0)) == at("2030-01-02 00:00", once)


def test_weekdays_may_be_lists_and_go_round() -> None:
    bar = Calendar(hours={"fri-mon": ("20:00-02:00",), "tue,thu": ("20:00-22:00",)})
    assert [bar.is_open((day - 4) * DAY + 21 * HOUR) for day in range(1, 8)] == [True, True, False, *[True] * 4]
    assert bar.is_open(at("2026-12-22 01:30", bar)), "Monday's bar is open on Tuesday at half past one"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Calendar(zone="Europe/Berlim"), "time zone 'Europe/Berlim' does not exist; there is Europe/Berlin"),
        (lambda: Calendar(zone="../../etc/passwd"), "time zone '../../etc/passwd' does not exist"),
        (lambda: Calendar(hours={"mon": ("25:00-26:00",)}), "hours of 'mon': '25:00-26:00' is not an interval"),
        (lambda: Calendar(hours={"mon": ("09:60-10:00",)}), "'09:60-10:00' is not an interval"),
        (lambda: Calendar(hours={"mon": ("24:00-02:00",)}), "is not an interval"),
        (lambda: Calendar(hours={"mon": ("9-17",)}), "'9-17' is not an interval"),
        (lambda: Calendar(hours={"mon": ("09:00-09:00",)}), "'09:00-09:00' is empty; the whole day is '00:00-24:00'"),
        (lambda: Calendar(hours={"mon": ("09:00-12:00", "11:00-13:00")}), "the intervals .* overlap"),
        (lambda: Calendar(hours={"mon-fri": (), "tue": ()}), "'tue' is in two entries"),
        (lambda: Calendar(hours={"monday": ()}), "'monday' is not a weekday; those are mon, tue"),
        (lambda: Calendar(dates={"2026-02-30": Day()}), "'2026-02-30' is not a date"),
        (lambda: OFFICE.add(0, -1), "a calendar adds 0 or more seconds, got -1"),
        (lambda: OFFICE.add(0, float("nan")), "a calendar adds 0 or more seconds, got nan"),
        (lambda: OFFICE.add(0, 1e12), "1000000000000.0 is not a moment between the years 1 and 9998"),
        (lambda: OFFICE.is_open(1e13), "is not a moment between the years 1 and 9998"),
        (lambda: OFFICE.local(float("nan")), "nan is not a moment"),
        (lambda: OFFICE.moment("2026-12-25"), "'' is not a time from '00:00' to '23:59'"),
        (lambda: OFFICE.moment("2026-12-25 24:00"), "'24:00' is not a time"),
    ],
)
def test_nonsense_is_refused(wrong: object, says: str) -> None:
    assert callable(wrong)
    with pytest.raises(UsageError, match=says):
        wrong()


def test_a_calendar_is_plain_data() -> None:
    again = codec.loads(codec.dumps(OFFICE), Calendar)
    assert again == OFFICE
    assert again.add(at("2026-12-18 16:00"), 6 * HOUR) == at("2026-12-21 10:00")
    with pytest.raises(msgspec.ValidationError, match="time zone 'Mars' does not exist"):
        codec.loads(codec.dumps({"zone": "Mars"}), Calendar)


def test_the_machine_s_own_zones_are_not_asked(tmp_path: object) -> None:
    """The same answer where the machine has no zones at all, and another one of its own."""
    code = (
        "from quintain.resources.schedule import Calendar; c = Calendar(zone='Europe/Berlin');"
        "print(c.moment('2026-07-01 12:00'), c.local(0).isoformat())"
    )
    variables = os.environ | {"PYTHONTZPATH": str(tmp_path), "TZ": "Asia/Tokyo"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=variables)
    assert done.stdout.split() == ["1782900000.0", "1970-01-01T01:00:00+01:00"]


def test_without_tzdata_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tzdata" else find(name))
    with pytest.raises(ImportError, match=r"pip install 'quintain\[schedule\]'"):
        Calendar(zone="Africa/Windhoek")


def test_calendar_is_open_from_the_first_second_of_an_interval_until_its_end() -> None:
    calendar = Calendar(zone="UTC", hours={"thu": ("09:00-17:00",)})
    hour = 3600.0  # The first of January 1970 is a Thursday.
    times = (9 * hour - 1, 9 * hour, 17 * hour - 1, 17 * hour)
    assert [calendar.is_open(at) for at in times] == [False, True, True, False]
    assert not calendar.is_open(33 * hour)
