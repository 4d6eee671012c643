"""A product as a world: requests to Zendesk's clone, pages, forks, and ten thousand live worlds with a write each.

The account has 20,000 tickets with 60,000 comments and 30 triggers. All is CPU time in this process, without a socket;
Chromium's is wall time, over TCP.
"""

from __future__ import annotations

import base64
import itertools
import math
import os
import shutil
import sqlite3
import time
import unittest.mock
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _table import Row, cpu, main, row

from quintain.products import zendesk
from quintain.resources.database.connection import Connection
from quintain.resources.web import HttpRequest, request
from quintain.resources.web.rows import insert, select

HEADERS = {"authorization": "Basic " + base64.b64encode(f"{zendesk.ADMIN}/token:{zendesk.TOKEN}".encode()).decode()}


def asked(method: str, path: str, body: dict[str, object] | None = None) -> HttpRequest:
    return request(method, f"http://acme.zendesk.localhost/api/v2/{path}", body, headers=HEADERS)


def account(tickets: int, comments: int, triggers: int) -> zendesk.Zendesk:
    """Returns an account of this size; its rows are copies of a few tickets that were made by the rules."""
    from quintain.products.zendesk.tables import Audit, Comment, Metric, Ticket, Trigger

    world = zendesk.account()
    zendesk.populate(world, agents=10, customers=50, tickets=20)
    with world.db.transaction():
        models = [select(world.db, kind, "1 ORDER BY id LIMIT 20") for kind in (Ticket, Metric, Comment, Audit)]
        for number in range(21, tickets + 1):
            ticket, metric, comment, audit = (rows[number % 20] for rows in models)
            ticket.id = metric.id = metric.ticket_id = comment.ticket_id = audit.ticket_id = number
            audit.id = comment.audit_id = world.new_number()
            for one in (ticket, metric, audit):
                insert(world.db, one)
            for _ in range(comments // tickets):
                comment.id = world.new_number()
                insert(world.db, comment)
        world.tickets = max(tickets, 20)
        conditions = {
            "all": [{"field": "status", "operator": "less_than", "value": "solved"},
                    {"field": "current_tags", "operator": "includes", "value": "never"}],
            "any": [{"field": "priority", "operator": "is", "value": "urgent"}],
        }  # fmt: skip
        there = world.db.execute("SELECT count(*) FROM zd_triggers WHERE active = 1")[0][0]
        for number in range(triggers - there):
            actions = [{"field": "current_tags", "value": f"tag{number}"}]
            insert(world.db, Trigger(id=world.new_number(), title=f"T{number}", conditions=conditions, actions=actions))
    world.arm()
    zendesk.index(world)
    world.throttle.windows.clear()
    world.step_s = 0.7  # So that no limit of 100 updates per minute is met.
    # A base on disk, as tasks share it: its pages are no world's own.
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"worlds-bench-{os.getpid()}.db"  # noqa: S108
    world.db.export(path)
    world.db = type(world.db)(seed=path)
    path.unlink()
    return world


def microseconds(work: Callable[[], object], times: int) -> float:
    """CPU of one call."""

    def all_of_them() -> None:
        for _ in range(times):
            work()

    work()
    return cpu(all_of_them, repeats=3) / times * 1e6


def statements(world: zendesk.Zendesk, work: Callable[[], object], times: int) -> float:
    """CPU that the SQL of one call takes in SQLite's own connection, in microseconds: nothing can be faster."""
    file = Path(os.environ.get("TMPDIR", "/tmp")) / f"worlds-floor-{os.getpid()}.db"  # noqa: S108
    world.db.export(file)
    plain = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
    with sqlite3.connect(file) as source:
        source.backup(plain)
    source.close()
    file.unlink()
    said: list[list[tuple[str, Any]]] = []
    rows = Connection.rows

    def noted(self: Connection, sql: str, values: Any) -> Any:
        said[-1].append((sql, values or ()))
        return rows(self, sql, values)

    with unittest.mock.patch.object(Connection, "rows", noted):
        for _ in range(times):
            said.append([])
            work()
    best = math.inf
    for start in range(0, len(said), 20):
        some = said[start : start + 20]
        started = time.process_time()
        for one in some:
            plain.execute("BEGIN")
            for sql, values in one:
                plain.execute(sql, values).fetchall()
            plain.execute("COMMIT")
        best = min(best, (time.process_time() - started) / len(some))
    return best * 1e6


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def pages(world: zendesk.Zendesk, times: int) -> Iterator[Row]:
    """Measures a page, and its form filled and sent by the plain browser beside Chromium."""
    from quintain.resources.web import door

    show = request("GET", "http://acme.zendesk.localhost/agent/tickets/77", headers=HEADERS)
    yield row("page of a ticket", microseconds(lambda: world.respond(show), times), "us", goal=500)
    desk = zendesk.ZendeskPages(db=world.db.fork(), tickets=world.tickets, step_s=1.0)
    desk.clock.advance(world.clock.now)

    def sign_in(home: str) -> None:
        desk.goto(f"{home}/access/login")
        desk.fill('textbox "Email"', zendesk.ADMIN)
        desk.fill('textbox "Password"', zendesk.TOKEN)
        desk.click('button "Sign in"')

    sign_in("http://acme.zendesk.localhost")
    tickets = itertools.count(21)

    def act() -> None:
        desk.goto(f"/agent/tickets/{next(tickets)}")
        desk.fill('textbox "Comment"', "We look at it.")
        desk.click('button "Submit as Pending"')

    plain = microseconds(act, max(2, times // 10)) / 1e3
    other: float | None = None
    if (chromium := shutil.which("chromium")) is not None:
        from playwright.sync_api import sync_playwright

        served = door.Door()
        served.add("acme", desk)
        with door.serving(served) as address, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            tab = browser.new_context(extra_http_headers=HEADERS).new_page()
            spent: list[float] = []
            for _ in range(4):
                started = time.perf_counter()
                tab.goto(f"{address}/agent/tickets/{next(tickets)}")
                tab.get_by_label("Comment", exact=True).fill("We look at it.")
                tab.get_by_role("button", name="Submit as Pending").click()
                tab.locator("body").aria_snapshot()
                spent.append(time.perf_counter() - started)
            browser.close()
            other = min(spent) * 1e3
    name = "ticket opened, comment filled and sent, two snapshots"
    yield row(name, plain, "ms", goal=6, peer="Chromium, wall time, one snapshot", peer_value=other)


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    world = account(*((200, 600, 30) if quick else (20_000, 60_000, 30)))
    times = 20 if quick else 500

    def get() -> None:
        assert world.respond(asked_get).status == 200

    body: dict[str, object] = {"ticket": {"priority": "high", "comment": {"body": "We look at it."}}}
    # Each ticket at most once in ten minutes, or the limit of updates per ticket is met.
    puts = itertools.cycle([asked("PUT", f"tickets/{number}", body) for number in range(21, 200 if quick else 2000)])

    def put() -> None:
        assert target.respond(next(puts)).status == 200

    asked_get, listed = asked("GET", "tickets/77"), asked("GET", "tickets?page[size]=100")
    target = world.copy()
    yield row("GET a ticket", microseconds(get, times), "us", goal=30)
    yield row("PUT a ticket with a comment, 30 triggers, audit", microseconds(put, times), "us", goal=250)
    yield row("its statements alone, in bare SQLite", statements(target, put, times), "us")
    yield row("list of 100 tickets", microseconds(lambda: world.respond(listed), times // 5), "us")
    search = asked("GET", "search?query=type:ticket%20printer%20status:new")
    yield row("search for a word and a status", microseconds(lambda: world.respond(search), max(2, times // 100)), "us")
    yield row("fork", microseconds(world.copy, times), "us", goal=15)
    yield from pages(world, times)

    count = 100 if quick else 10_000
    worlds: list[zendesk.Zendesk] = []
    before = resident()

    def many() -> None:
        nonlocal target
        worlds.clear()
        for _ in range(count):
            target = world.copy()
            put()
            worlds.append(target)

    seconds = cpu(many, repeats=1)
    yield row(f"{count:,} live worlds with a PUT each", seconds, "s")
    yield row(f"memory of {count:,} live worlds with a PUT each", (resident() - before) / 2**20, "MiB", goal=1024)


if __name__ == "__main__":
    main(__doc__.splitlines()[0], measure)
