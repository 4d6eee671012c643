"""The company against the figures that were measured on public data, and its two ways to make a ticket."""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from quintain.environments.helpdesk import company, make, words
from quintain.environments.helpdesk.state import account, numbers
from quintain.errors import UsageError
from quintain.products.zendesk import sla
from quintain.products.zendesk import tables as tb
from quintain.products.zendesk.account import seconds
from quintain.resources.database import Database
from quintain.resources.web.rows import find, select

BASES = pytest.mark.parametrize("level", ["medium", pytest.param("hard", marks=pytest.mark.slow)])


def _column(db: Database, sql: str) -> list[float]:
    return sorted(one for (one,) in db.execute(sql))


def _at(values: Sequence[float], share: float) -> float:
    return values[int(share * (len(values) - 1))]


def _shares(db: Database, sql: str) -> dict[str, float]:
    rows = db.execute(sql)
    total = sum(number for _, number in rows)
    return {str(name): number / total for name, number in rows}


@BASES
def test_the_quantiles_of_times_and_lengths_are_those_measured(level: str) -> None:
    db = company.base(level)
    solved = "SELECT (julianday(solved_at) - julianday(created_at)) * 24 FROM zd_metrics WHERE solved_at IS NOT NULL"
    measured: dict[str, dict[float, float]] = {
        solved: {0.1: 1.9, 0.5: 55, 0.9: 762},
        "SELECT count(*) FROM zd_audits GROUP BY ticket_id": {0.5: 6, 0.9: 12, 0.99: 21},
        "SELECT length(description) FROM zd_tickets": {0.1: 80, 0.5: 210, 0.9: 950, 0.99: 3400},
    }
    for sql, points in measured.items():
        values = _column(db, sql)
        for share, wanted in points.items():
            # A base of half a year has not seen the end of its longest tickets.
            assert abs(math.log(_at(values, share) / wanted)) < (0.25 if level == "hard" else 0.45), (sql, share)


@BASES
def test_the_shares_are_those_measured(level: str) -> None:
    db = company.base(level)
    priority = _shares(db, "SELECT priority, count(*) FROM zd_tickets GROUP BY 1")
    assert priority == pytest.approx({"normal": 0.85, "high": 0.10, "low": 0.033, "urgent": 0.017}, abs=0.02)
    stations = _shares(db, "SELECT min(assignee_stations, 4), count(*) FROM zd_metrics GROUP BY 1")
    assert [stations[str(n)] for n in (1, 2, 3, 4)] == pytest.approx([0.56, 0.23, 0.10, 0.11], abs=0.03)
    flags = {
        "SELECT avg(type IS NULL) FROM zd_tickets": (0.30, 0.03),
        "SELECT avg(problem_id IS NULL) FROM zd_tickets": (0.97, 0.02),
        "SELECT avg(reopens > 0) FROM zd_metrics": (0.011, 0.004),
        "SELECT avg(substr(created_at, 12, 2) BETWEEN '08' AND '16') FROM zd_tickets": (0.90, 0.03),
        "SELECT avg(initially_assigned_at > created_at) FROM zd_metrics": (0.36, 0.03),
    }  # fmt: skip
    for sql, (wanted, room) in flags.items():
        assert db.execute(sql)[0][0] == pytest.approx(wanted, abs=room), sql
    misfiled = db.execute("SELECT count(*) FROM corruptions WHERE kind = 'misfiled'")[0][0]
    assert misfiled / company.SIZES[level] == pytest.approx(0.01, abs=0.005)
    breaches = "SELECT count(DISTINCT ticket_id) FROM zd_metric_events WHERE type = 'breach' AND metric = 'reply_time'"
    replied = "SELECT count(*) FROM zd_metrics WHERE json_extract(reply_time_in_minutes, '$.calendar') IS NOT NULL"
    met = 1 - db.execute(breaches)[0][0] / db.execute(replied)[0][0]
    assert met == pytest.approx(0.56, abs=0.04)


@BASES
def test_the_concentration_is_that_measured(level: str) -> None:
    db = company.base(level)
    callers = _column(db, "SELECT count(*) FROM zd_tickets GROUP BY requester_id")
    assert sum(callers[-len(callers) // 10 :]) / sum(callers) == pytest.approx(0.25, abs=0.03)
    groups = _column(db, "SELECT count(*) FROM zd_tickets GROUP BY group_id")
    assert len(groups) == 52
    assert groups[-1] / sum(groups) == pytest.approx(0.20, abs=0.03)
    assert sum(groups[-5:]) / sum(groups) == pytest.approx(0.42, abs=0.03)
    field = "(SELECT id FROM zd_ticket_fields WHERE title = 'Category')"
    kinds = _column(db, f"SELECT count(*) FROM zd_tickets, json_each(custom) c WHERE c.key = {field} GROUP BY c.value")
    assert len(kinds) == 28
    assert sum(kinds[-5:]) / sum(kinds) == pytest.approx(0.60, abs=0.03)
    at = [seconds(one) for (one,) in db.execute("SELECT created_at FROM zd_tickets ORDER BY created_at")]
    gaps = [later - earlier for earlier, later in itertools.pairwise(at)]
    assert statistics.pstdev(gaps) / statistics.mean(gaps) == pytest.approx(2.8, abs=0.4)
    subjects = Counter(one for (one,) in db.execute("SELECT subject FROM zd_tickets"))
    assert sum(n for n in subjects.values() if n > 1) / sum(subjects.values()) == pytest.approx(0.27, abs=0.03)


def _measured_shares(db: Database) -> dict[str, float]:
    text = (Path(words.__file__).parent / "company.toml").read_text()
    known = {*re.findall(r"[^\W\d_]+", text), *words.GREETINGS.values(), "Original", "message"}
    lines = db.execute("SELECT description FROM zd_tickets")
    long = [one for (line,) in lines for one in re.findall(r"(?<!\S)[^\W\d_]{5,}(?!\S)", line)]
    order, category = (f"custom ->> '{numbers()['field'][name]}'" for name in ("Order", "Category"))
    wrote = db.execute(f"SELECT requester_id, {order} FROM zd_tickets")
    threads = """SELECT avg(n >= 12) FROM (SELECT count(*) n FROM zd_audits a JOIN zd_tickets t ON t.id = a.ticket_id
        JOIN zd_metrics m ON m.id = t.id WHERE t.status = 'closed' AND m.replies > 1 GROUP BY t.id)"""
    translated = [one.value for one in words.KINDS.values() if len(one.texts) > 1]
    texts = db.execute(f"SELECT description, {category} FROM zd_tickets")
    greeted = [text.partition(",")[0] for text, kind in texts if kind in translated]
    letters = Counter(one for one in greeted if one in words.GREETINGS.values())
    return {
        "typos": sum(one not in known for one in long) / len(long),
        "missing": db.execute("SELECT avg(type IS NULL) FROM zd_tickets")[0][0],
        "duplicates": 1 - len(set(wrote)) / len(wrote),
        "threads": db.execute(threads)[0][0],
        "languages": 1 - letters["Hello"] / letters.total(),
    }


@pytest.mark.parametrize(
    "given",
    [{}, dict.fromkeys(words.Shares.__struct_fields__, 0.0),
     pytest.param(
         {"typos": 0.2, "missing": 0.6, "duplicates": 0.3, "threads": 0.4, "languages": 0.5}, marks=pytest.mark.slow
     )],
    ids
=["measured", "none", "many"],
)  # fmt: skip
def test_the_company_is_as_untidy_as_asked_for(given: dict[str, Any]) -> None:
    wanted = words.DATA["shares"] | given
    task = make(**given).tasks("train")[0]
    # Outages, reopened tickets and breaches add updates and types of their own.
    assert _measured_shares(task.world().db) == pytest.approx(wanted, abs=0.06)


def test_a_share_is_a_known_one_and_below_one() -> None:
    assert make(typos=0.5) is make(typos="0.5")  # type: ignore[arg-type]  # as the command line gives it
    for wrong in ({"typo": 0.1}, {"typos": 1.0}, {"twin": "stale_cache", "typos": 0.1}):
        with pytest.raises(UsageError):
            make(**wrong)


def test_a_painted_ticket_has_the_rows_of_a_played_one() -> None:
    founder = company.Founder(account("easy").db)
    founder.world.db = founder.db.fork()
    founder.hours = sla.calendar(founder.world)
    customer, agent = (select(founder.db, tb.User, f"role = '{role}' ORDER BY id")[0] for role in ("end-user", "agent"))
    fields = {"subject": "Late", "priority": "normal", "group_id": agent.default_group_id, "type": "task",
              "custom": {"Category": "refund", "Order": "NO-1"}}  # fmt: skip
    begin = company.DAWN - 40 * company.DAY
    script = company.Script(customer.id, "email", [
        company.ScriptStep(begin, customer.id, fields, "Where is it?"),
        company.ScriptStep(begin + 4000, agent.id, {"assignee_id": agent.id}),
        company.ScriptStep(begin + 9000, agent.id, {"status": "pending"}, "On its way."),
        company.ScriptStep(begin + 90_000, customer.id, {}, "It is not."),
        company.ScriptStep(begin + 200_000, agent.id, {}, "Late again.", public=False),
        company.ScriptStep(begin + 300_000, agent.id, {"status": "solved"}, "Sent."),
        company.ScriptStep(begin + 700_000, select(founder.db, tb.User, "role = 'admin'")[0].id, {"status": "closed"}),
    ])  # fmt: skip
    found = []
    for way in (founder.play, founder.paint):
        founder.db = founder.world.db = account("easy").db
        way(9001, script)
        founder._flush()
        ticket, metric = find(founder.db, tb.Ticket, 9001), find(founder.db, tb.Metric, 9001)
        assert ticket is not None
        assert metric is not None
        metric.clocks, metric.next_breach = [], None
        comments = [
            (c.body, c.public, c.by_agent, c.created_at) for c in select(founder.db, tb.Comment, "ticket_id = 9001")
        ]
        changes = [
            [(e.get("field_name"), e.get("value"), e.get("previous_value")) for e in audit.events
             if e["type"] == "Change" and "sla" not in str(e.get("via")) and e.get("field_name") != "custom_status_id"]
            for audit in select(founder.db, tb.Audit, "ticket_id = 9001 ORDER BY created_at")
        ]  # fmt: skip
        found.append((ticket, metric, comments, [sorted(map(str, one)) for one in changes]))
    for played, painted in zip(*found, strict=True):
        assert painted == played


def test_a_world_of_any_size_is_a_fork() -> None:
    world = account("medium")
    twin = world.copy()
    twin.db.execute("UPDATE zd_tickets SET priority = 'urgent' WHERE id = 1")
    assert [one.table for one in world.db.diff(twin.db)] == ["zd_tickets"]
    assert world.tickets == company.SIZES["medium"] == world.db.execute("SELECT count(*) FROM zd_tickets")[0][0]
