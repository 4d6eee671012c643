"""The platform that the operations desk of `deploy.py` looks after: services, releases, a change log, and what ails it.

A service is ill for a reason that can be read from its rows: the settings that run, its replicas, its release and what
it stands on. Nothing here has a state of its own.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from typing import Any

from .common import ToolError, fresh, name_of, weighted

Data = Any
Row = dict[str, Data]
CAST: tuple[tuple[str, str, int, tuple[str, ...]], ...] = (
    # Name, team, tier, and what it stands on.
    ("ledger-db", "core", 1, ()),
    ("sessions", "core", 2, ()),
    ("identity", "core", 1, ("ledger-db", "sessions")),
    ("catalogue", "shop", 2, ("ledger-db",)),
    ("prices", "shop", 2, ("catalogue", "sessions")),
    ("search", "shop", 2, ("catalogue",)),
    ("basket", "shop", 2, ("sessions", "prices")),
    ("payments", "money", 1, ("identity", "ledger-db")),
    ("invoices", "money", 2, ("payments",)),
    ("payouts", "money", 1, ("payments", "ledger-db")),
    ("checkout", "shop", 1, ("basket", "payments")),
    ("web", "shop", 1, ("checkout", "search", "identity")),
    ("fax-gateway", "money", 3, ()),
)
NOTES = {
    "fax-gateway": "replacement planned for Q3, overload is known -- do not touch",
    "payouts": "Bank cut-off 16:30 CET!!",
    "prices": "owner: see wiki (moved)",
    "search": "índice nocturno 02:00",
}
STANDS_ON = {name: below for name, _, _, below in CAST}
SETTINGS = {"pool_size": (1, 5000), "timeout_ms": (1, 60000), "heap_mb": (64, 16384), "cache_ttl_s": (0, 86400)}
LEVELS = ("debug", "info", "warn", "error")
BEGIN = dt.datetime(2031, 3, 6, 6, 0, tzinfo=dt.UTC)
LOG_HOURS = 72
CONNECTIONS = 400
HEADROOM_MB = 64
RELEASE_NOTES = ("fixes", "Bump deps", "see #4412", "feat: neuer Export", "perf", "", "revert 'perf'", "i18n (fr, pl)")
TITLES = (
    "slow since this morning", "Alert storm", "pls raise log level", "WG: Zertifikat", "500s on /export",
    "dashboard empty", "who owns this?", "Latency p99 > 2 s", "cost review", "disk 81 %",
)  # fmt: skip
REPORTS = (
    "done",
    "fixed, see chat",
    "erledigt",
    "dup",
    "Could not reproduce.",
    "Rolled back on Friday - K.",
    "wontfix",
)


def stamp(minutes: int) -> str:
    """A moment, in minutes from the beginning of the episode, as it is written."""
    return (BEGIN + dt.timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%MZ")


def minutes_of(moment: str) -> int:
    """Returns the minutes since the beginning of the episode.

    Raises:
        ToolError: The text is not a time.
    """
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", moment, re.ASCII):
        raise ToolError("a moment looks like 2031-03-06T22:00Z")
    numbers = [int(part) for part in re.split(r"[-T:Z]", moment)[:5]]
    try:
        found = dt.datetime(*numbers, tzinfo=dt.UTC)  # type: ignore[misc,arg-type]
    except ValueError as error:
        raise ToolError(f"no such moment: {error}") from error
    return int((found - BEGIN).total_seconds()) // 60


def below(name: str) -> list[str]:
    """All that a service stands on, in the order of the cast."""
    found = {name}
    for one, _, _, _ in reversed(CAST):
        if one in found:
            found.update(STANDS_ON[one])
    return [one for one, _, _, _ in CAST if one in found - {name}]


# --- rows ---


def release(dice: random.Random, version: str, day: int, schema: int) -> Row:
    """A release that was made so many days ago and has no fault."""
    return {
        "version": version,
        "released_at": stamp(-1440 * day - dice.randrange(600)),
        "schema": schema,
        "withdrawn": False,
        "errors_percent": round(dice.uniform(0.0, 0.4), 2),
        "notes": dice.choice(RELEASE_NOTES),
    }


def platform(dice: random.Random) -> tuple[dict[str, Row], dict[str, list[Row]]]:
    """Returns healthy services, except the one without an owner, and their releases, oldest first."""
    services: dict[str, Row] = {}
    releases: dict[str, list[Row]] = {}
    for name, team, tier, needs in CAST:
        major, minor, schema = dice.randrange(1, 6), dice.randrange(5, 8), dice.randrange(3, 9)
        versions = [f"{major}.{minor + step}.{dice.randrange(5)}" for step in range(5)]  # passes from 9 to 10
        releases[name] = [release(dice, one, 60 - 9 * step, schema) for step, one in enumerate(versions)]
        memory, capacity, replicas = (
            dice.choice((512, 768, 1024, 2048)),
            dice.choice((40, 60, 90)),
            dice.randrange(3, 9),
        )
        config = {
            "pool_size": dice.choice((5, 8, 10, 15)),
            "timeout_ms": dice.choice((500, 800, 900, 1500, 2000)),
            "heap_mb": memory - dice.choice((96, 128, 192)),
            "cache_ttl_s": dice.choice((0, 30, 60, 300, 900)),
            "log_level": dice.choice(LEVELS),
        }
        load = int(capacity * replicas * (1.3 if name == "fax-gateway" else dice.uniform(0.4, 0.8)))
        services[name] = {
            "name": name,
            "team": team,
            "tier": tier,
            "depends_on": list(needs),
            "replicas": replicas,
            "memory_mb": memory,
            "capacity_rps": capacity,
            "load_rps": load,
            "latency_ms": dice.randrange(20, 300),
            "version": versions[-1],
            "schema": schema,
            "config": config,
            "running": dict(config),
            "note": NOTES.get(name),
        }
    return services, releases


def change(key: str, at: int, service: str, *, what: str, by: str, ticket: str | None = None) -> Row:
    """An entry of the change log; `at` in minutes."""
    return {"id": key, "at": stamp(at), "service": service, "what": what, "by": by, "ticket": ticket}


def before(dice: random.Random, setting: str) -> Data:
    """Returns an earlier value of a setting, other than the current one."""
    if setting == "replicas":
        return dice.randrange(2, 30)
    return dice.choice(LEVELS) if setting == "log_level" else 15 * dice.randrange(200)


def log(dice: random.Random, services: dict[str, Row], taken: set[str]) -> list[Row]:
    """Returns harmless changes; each chain ends at the current value, and no value in it recurs."""
    at, rows = 0, list[Row]()
    seen: dict[tuple[str, str], list[Data]] = {}
    while (at := at - dice.randrange(10, 95)) > -60 * LOG_HOURS:
        service = dice.choice(list(services))
        setting = dice.choice(("replicas", "cache_ttl_s", "cache_ttl_s", "log_level"))
        row = services[service]
        values = seen.setdefault(
            (service, setting), [row["replicas"] if setting == "replicas" else row["config"][setting]]
        )
        earlier = before(dice, setting)
        if earlier not in values:
            values.append(earlier)
            what = f"{setting}: {earlier} -> {values[-2]}"
            ticket = f"T{dice.randrange(10**5, 10**6)}" if dice.random() < 0.6 else None
            rows.append(change(fresh(dice, "C", taken), at, service, what=what, by=name_of(dice), ticket=ticket))
    return rows[::-1]


def tickets(dice: random.Random, taken: set[str]) -> list[Row]:
    """Other people's tickets; an incident that is open is the fax gateway's alone."""
    rows: list[Row] = []
    for _ in range(40):
        is_open = dice.random() < 0.3
        kind = weighted(dice, (("incident", 3), ("request", 4)))
        service = dice.choice([name for name, _, _, _ in CAST])
        if is_open and kind == "incident":
            service = "fax-gateway"
        row = {
            "id": fresh(dice, "T", taken),
            "kind": kind,
            "service": service,
            "title": dice.choice(TITLES),
            "by": name_of(dice),
            "opened": stamp(-dice.randrange(60, 60 * 24 * 40)),
            "status": "open" if is_open else "closed",
            "report": None if is_open else dice.choice(REPORTS),
        }
        rows.append(row)
    return rows


def collides(service: str, start: str, end: str, others: list[Row]) -> Row | None:
    """A window of the same service, or of one right above or below it, that overlaps."""
    near = {service, *STANDS_ON[service], *(name for name, needs in STANDS_ON.items() if service in needs)}
    return next((one for one in others if one["service"] in near and start < one["end"] and one["start"] < end), None)


def windows(dice: random.Random, wanted: list[Row], taken: set[str]) -> list[Row]:
    """Other services' maintenance windows of today and tomorrow, none where the task needs to be alone."""
    rows: list[Row] = []
    for _ in range(14):
        service, start = dice.choice([name for name, _, _, _ in CAST]), 15 * dice.randrange(1, 160)
        row = {"service": service, "start": stamp(start), "end": stamp(start + dice.choice((30, 60, 90, 120)))}
        if service not in {one["service"] for one in wanted} and not collides(**row, others=rows + wanted):
            rows.append({"id": fresh(dice, "W", taken), **row})
    return rows


# --- health ---


def own_symptoms(row: Row, services: dict[str, Row], release: Row) -> list[str]:
    """Returns the symptoms of a service itself."""
    running, found = row["running"], list[str]()
    if running["heap_mb"] + HEADROOM_MB > row["memory_mb"]:
        found.append("replicas are killed: out of memory")
    if release["schema"] != row["schema"]:
        found.append(f"does not start: the release needs schema {release['schema']}, there is schema {row['schema']}")
    if running["pool_size"] * row["replicas"] > CONNECTIONS:
        found.append(f"connections are refused: at most {CONNECTIONS} are allowed to all replicas together")
    slow = [name for name in row["depends_on"] if services[name]["latency_ms"] > running["timeout_ms"]]
    found += [f"calls to {name} time out" for name in slow]
    if row["load_rps"] > row["replicas"] * row["capacity_rps"]:
        found.append(f"overloaded: {row['load_rps']} requests/s")
    if release["errors_percent"] > 1:
        found.append(f"{release['errors_percent']} % of the requests fail")
    return found


def health(name: str, services: dict[str, Row], releases: dict[str, list[Row]]) -> tuple[str, list[str]]:
    """Returns the status of a service (healthy, degraded or down) and its symptoms."""
    row = services[name]
    release = next(one for one in releases[name] if one["version"] == row["version"])
    found = own_symptoms(row, services, release)
    status = "degraded" if found else "healthy"
    if any(one.startswith(("replicas are killed", "does not start")) for one in found):
        status = "down"
    for other in row["depends_on"]:
        theirs, _ = health(other, services, releases)
        if theirs != "healthy":
            found.append(f"{other} is {theirs}")
            status = "degraded" if status == "healthy" else status
    return status, found


def used_mb(team: str, services: dict[str, Row]) -> int:
    """The memory that a team's replicas take."""
    return sum(row["replicas"] * row["memory_mb"] for row in services.values() if row["team"] == team)
