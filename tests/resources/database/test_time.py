"""The time in SQL is the world's, in UTC; and what belongs to no world has none."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest

import quintain as qn
from quintain.resources.database import Database
from quintain.resources.database.connection import Refused
from quintain.state import Shared
from tests.resources.database.shop import shop


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT datetime('now')",
        "SELECT unixepoch()",
        "SELECT date('now', '-1 day', 'localtime')",
        "SELECT CURRENT_DATE WHERE CURRENT_TIME > ''",
        "INSERT INTO log (luck) VALUES (1)",
    ],
)
def test_time_needs_a_world(sql: str) -> None:
    db = shop()
    before = db.snapshot()
    for _ in range(2):
        with pytest.raises(Refused, match="'now' needs a world"):
            db.execute(sql)
        with pytest.raises(Refused, match="needed the time of a world"), db.transaction():
            db.execute("DELETE FROM orders")
            with contextlib.suppress(Refused):  # SQLite has gone on, with nothing in place of the time
                db.execute(sql)
    assert db.image is before.image
    with pytest.raises(Refused, match="'now' needs a world"):
        db.ask("SELECT datetime('now')")
    db.bind(Shared())
    assert db.ask("SELECT datetime('now')").rows == [["1970-01-01 00:00:00"]]
    with db.transaction():
        db.execute(sql)


class Chain(qn.State):
    shops: dict[str, Database]


def test_a_database_in_a_dict_is_the_worlds_from_its_next_copy_on() -> None:
    chain = Chain(shops={"north": shop()})
    chain.clock.advance(60)
    assert chain.shops["north"].execute("SELECT unixepoch()") == [(60,)]
    chain.shops["south"] = shop()
    for now in ("datetime('now')", "random()"):
        with pytest.raises(Refused, match="needs a world: make the database a field of a State"):
            chain.shops["south"].execute(f"SELECT {now}")
    twin = chain.copy()
    twin.clock.advance(60)
    assert [one.shops["north"].execute("SELECT unixepoch()") for one in (chain, twin)] == [[(60,)], [(120,)]]
    assert twin.shops["south"].execute("SELECT unixepoch()") == [(120,)]


SCHEMA = "CREATE TABLE t (x, z); CREATE INDEX i ON t (date(x, 'start of month'))"
TIMES = """
SELECT datetime('now', 'localtime'), datetime('now', 'LOCALTIME', '+1 day'), time('now', :local), date('now', :utc),
unixepoch('now', 'localtime', 'subsec'), strftime('%H:%M', 'now', '-1 hour', 'localtime'), julianday(0, 'utc'),
datetime(x, z), datetime(0, 'unixepoch', z) FROM t WHERE date(x, 'start of month') = '2026-03-01'
"""


def times() -> list[object]:
    db = Database(SCHEMA)
    db.bind(shared := Shared())
    shared.clock.now = 1e9 + 0.25
    db.execute("INSERT INTO t VALUES ('2026-03-29 01:30', 'localtime')")
    return list(db.execute(TIMES, local="local" + "time", utc="UTC")[0])


def test_the_worlds_zone_is_utc_wherever_it_runs() -> None:
    code = "import time; from tests.resources.database.test_time import times; print(time.tzname[0], times())"
    found: dict[str, str] = {}
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        env = {**os.environ, "TZ": zone, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        name, _, found[zone] = done.stdout.partition(" ")
        assert (name == "UTC") == (zone == "UTC")
    assert len(set(found.values())) == 1
    assert found["UTC"].strip() == str(
        [
            *("2001-09-09 01:46:40", "2001-09-10 01:46:40", "01:46:40", "2001-09-09"),
            *(1000000000.25, "00:46", 0.0, "2026-03-29 01:30:00", "1970-01-01 00:00:00"),
        ]
    )


def test_functions_of_time_say_what_sqlite_says() -> None:
    db = shop()
    assert db.execute("SELECT datetime(0, 'nonsense'), date(NULL, '+1 day'), date('2026-02-30', 'floor')") == [
        (None, None, "2026-02-28")
    ]
    with pytest.raises(Exception, match="non-deterministic"):
        db.execute("CREATE TABLE t (x); CREATE INDEX i ON t (date('now')); INSERT INTO t VALUES (1)")
