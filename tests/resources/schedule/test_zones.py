"""The stretches of a zone are those of Python's own `zoneinfo`, whatever the year."""

from __future__ import annotations

import datetime as dt
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.resources.schedule import zones

NAMES = st.sampled_from(
    ["Europe/Berlin", "Africa/Casablanca", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu", "Etc/GMT-14"]
)


@given(NAMES, st.integers(-4_000_000_000, 8_000_000_000), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_a_stretch_has_one_offset(name: str, at: int, places: list[float]) -> None:
    info = zones.zone(name)
    pieces = list(itertools.islice(zones.stretches(name, at), 6))
    assert pieces[0].start == at
    assert all(one.end == two.start for one, two in itertools.pairwise(pieces))
    for piece in pieces:
        assert piece.start < piece.end <= piece.start + 366 * zones.DAY
        for moment in (piece.start, piece.end - 1, *(piece.start + x * (piece.end - 1 - piece.start) for x in places)):
            offset = dt.datetime.fromtimestamp(int(moment), info).utcoffset()
            assert offset is not None
            assert offset.total_seconds() == piece.offset


def test_the_changes_of_a_year_are_known() -> None:
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp()
    found = [piece.end for piece in itertools.islice(zones.stretches("Europe/Berlin", start), 3)]
    dates = [dt.datetime.fromtimestamp(moment, dt.UTC).isoformat() for moment in found]
    assert dates == ["2026-03-29T01:00:00+00:00", "2026-10-25T01:00:00+00:00", "2027-01-01T00:00:00+00:00"]


def test_a_change_at_new_year_is_seen() -> None:
    """Lisbon took over Greenwich time when 1912 began there, which is where two years' changes meet."""
    change = dt.datetime(1912, 1, 1, tzinfo=dt.UTC).timestamp()
    before, after = itertools.islice(zones.stretches("Europe/Lisbon", change - 5), 2)
    assert (before.end, before.offset, after.offset) == (change, -2205, 0)
    (again,) = itertools.islice(zones.stretches("Europe/Lisbon", change), 1)
    assert (again.start, again.offset) == (change, 0)


@pytest.mark.parametrize("name", ["Europe/Berlin", "Australia/Lord_Howe"])
def test_offset_changes_within_a_day(name: str) -> None:
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp()
    info, changes = zones.zone(name), [piece.end for piece in itertools.islice(zones.stretches(name, start), 2)]
    for moment in (change + seconds for change in changes for seconds in (-86_400, -0.5, 0, 0.5, 86_400)):
        offset = dt.datetime.fromtimestamp(moment, info).utcoffset()
        assert offset is not None
        assert offset.total_seconds() == zones.offset(name, moment)


def test_time_begins() -> None:
    assert zones.offset("UTC", zones.EARLIEST) == 0
    assert next(zones.stretches("UTC", zones.EARLIEST)).start == zones.EARLIEST


def test_time_ends() -> None:
    last = list(zones.stretches("UTC", zones.LATEST - 5))
    assert last == [(zones.LATEST - 5, zones.LATEST, 0)]


@pytest.mark.slow
def test_every_zone_of_every_year() -> None:
    for name in sorted(zones.names()):
        info = zones.zone(name)
        start = dt.datetime(1900, 1, 1, tzinfo=dt.UTC).timestamp()
        for piece in zones.stretches(name, start):
            if piece.start > dt.datetime(2040, 1, 1, tzinfo=dt.UTC).timestamp():
                break
            for moment in range(int(piece.start), int(piece.end), 37 * 3600):
                offset = dt.datetime.fromtimestamp(moment, info).utcoffset()
                assert offset is not None
                assert offset.total_seconds() == piece.offset, (name, moment)
