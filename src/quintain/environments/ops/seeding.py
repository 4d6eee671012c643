"""The sound production as rows: services and what belongs to them, with a history that a random stream draws."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import msgspec

import quintain as qn
from quintain.authoring import key_of
from quintain.state import Rng

from .description import FOLDER, Edit, causes, tables
from .state import ROWS
from .telemetry import MINUTE, LogRow, seconds, stamp

DAY = 86400.0
HOUR = 3600.0
Rows = dict[str, dict[str, dict[str, Any]]]
"""Table to key to values."""
Names = dict[str, Any]
"""What the placeholders of a template stand for."""
SUFFIX = {"python": "py", "java": "java", "go": "go", "typescript": "ts"}


class ServiceSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service of `production.toml`.

    Attributes:
        database: Its database; empty if it has none.
        tables: "name: columns", the first column with an index.
        flags: "name: what it does".
        queue: "name: producer" of the queue that it reads.
        record: "name: value|wrong value" of its reference data.
        failover: Flag that replaces its vendor.
    """

    team: str
    language: str
    tier: int
    depends_on: tuple[str, ...]
    replicas: int
    about: str
    functions: tuple[str, str]
    flags: tuple[str, ...]
    database: str = ""
    tables: tuple[str, ...] = ()
    queue: str = ""
    cronjob: str = ""
    record: str = ""
    vendor: str = ""
    failover: str = ""


class ProductionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of `production.toml`, but for the metrics."""

    people: tuple[str, ...]
    zones: tuple[str, ...]
    nodes: tuple[str, ...]
    titles: tuple[str, ...]
    work: tuple[str, ...]
    policies: dict[str, str]
    databases: dict[str, str]
    parameters: dict[str, str]
    teams: dict[str, str]
    vendors: dict[str, dict[str, str]]
    seed: dict[str, tuple[Edit, ...]]
    services: dict[str, ServiceSpec]


@functools.cache
def spec() -> ProductionSpec:
    """Returns the description of the sound production."""
    return msgspec.toml.decode((FOLDER / "production.toml").read_bytes(), type=ProductionSpec)


class Drawn:
    """Name whose value is drawn anew at each use; the text after its colon goes to the function."""

    def __init__(self, draw: Callable[[str], Any]) -> None:
        self.draw = draw

    def __format__(self, spec: str) -> str:
        return str(self.draw(spec))


def fill(template: Any, names: Names) -> Any:
    """Returns a template with its placeholders filled; one that is a single placeholder keeps the type of its value."""
    if isinstance(template, str):
        if match := re.fullmatch(r"\{(\w+):?([^{}]*)\}", template):
            value = names[match[1]]
            return value.draw(match[2]) if isinstance(value, Drawn) else value
        return template.format(**names)
    if isinstance(template, dict):
        return {key: fill(value, names) for key, value in cast(dict[str, Any], template).items()}
    parts = cast(list[Any], template)
    return [fill(value, names) for value in parts] if isinstance(template, list | tuple) else template


class Writer:
    """Writer of rows. A row is replaced when it changes, so that productions can share those that are equal.

    Attributes:
        rng: Random stream.
        now: The time, in seconds.
        rows: Table to key to values.
        logs: Kinds of log lines.
        last: Number of the newest key.
    """

    def __init__(self, rng: Rng, now: float, *, rows: Rows, logs: list[LogRow], last: int) -> None:
        self.rng, self.now, self.rows, self.logs, self.last = rng, now, rows, logs, last

    def edit(self, table: str, key: str, /, **values: Any) -> None:
        """Sets values of a row, which is made if it does not exist."""
        self.rows[table][key] = self.rows[table].get(key, {}) | values

    def number(self) -> int:
        """Returns the next number for a key."""
        self.last += 1 + self.rng.below(3)
        return self.last

    def person(self) -> str:
        """Returns the name of an employee."""
        return self.rng.choice(spec().people)

    def commit(self) -> str:
        """Returns the name of a commit."""
        return f"{self.rng.bits():016x}"[:10]

    def write(self, group: str, names: Names) -> None:
        """Writes the rows of a group of `seed`."""
        names = names | {"number": Drawn(lambda _: self.number())}
        for edit in spec().seed[group]:
            table, _, key = fill(edit.row, names).partition("/")
            self.edit(table, key, **fill(edit.to, names))


class Seeder(Writer):
    """Writer of a sound production."""

    def seed(self) -> None:
        """Writes all of it."""
        drawn: Names = {"ago": Drawn(self._ago), "int": Drawn(self._int), "person": Drawn(lambda _: self.person())}
        whole = spec()
        self.write("once", drawn)
        for place, node in enumerate(whole.nodes):
            self.write("node", drawn | {"node": node, "zone": whole.zones[place % len(whole.zones)]})
        for database, engine in whole.databases.items():
            self.write("database", drawn | {"database": database, "engine": engine})
            for parameter, value in whole.parameters.items():
                self.write("parameter", drawn | {"database": database, "parameter": parameter, "value": value})
        for vendor, facts in whole.vendors.items():
            self.write("vendor", drawn | {"vendor": vendor} | facts)
        for team, lead in whole.teams.items():
            self.write("team", drawn | {"team": team, "lead": lead})
        for place, (name, one) in enumerate(whole.services.items()):
            self._service(one, drawn | self._names(name, one, place))
        for title in whole.titles:
            name = self.rng.choice(list(whole.services))
            cause, facts = self.rng.choice(list(causes())), {"service": name, "title": title}
            about = {"cause": cause, "cause_about": causes()[cause].about, "issue": f"ERR-{self.number()}"}
            self.write("noise", drawn | facts | about | {"helper": whole.services[name].functions[1]})
        self.rows["pages"] = pages()

    def _ago(self, days: str) -> str:
        low, high = map(float, days.split())
        return stamp(self.now - DAY * (low + (high - low) * self.rng.random()))

    def _int(self, limits: str) -> int:
        low, high = map(int, limits.split())
        return low + self.rng.below(high - low + 1)

    def _names(self, name: str, one: ServiceSpec, place: int) -> Names:
        allows = [*one.depends_on, *([one.database] if one.database else []), "metrics"]
        return msgspec.structs.asdict(one) | {
            "service": name,
            "place": place,
            "lead": spec().teams[one.team],
            "file": f"{name}/src/main.{SUFFIX[one.language]}",
            "function": one.functions[0],
            "helper": one.functions[1],
            "depends_on": ", ".join(one.depends_on),
            "allows": allows,
            "memory": 512 * (1 + self.rng.below(4)),
            "rotation": 2 + self.rng.below(6),
            "size": 20 * (1 + self.rng.below(4)),
            "base_ms": 40 + self.rng.below(120),
        }

    def _service(self, one: ServiceSpec, names: Names) -> None:
        """Writes a service and what belongs to it."""
        minor, days = 10 + self.rng.below(60), sorted((self.rng.random() * 30 + 2 for _ in range(3)), reverse=True)
        for version, day in enumerate(days):
            message = self.rng.choice(spec().work).format(self.rng.choice(one.functions))
            facts = {"message": message, "author": self.person(), "commit": self.commit()}
            at = self.now - DAY * day
            times = {"committed": stamp(at - HOUR), "deployed": stamp(at)}
            names |= facts | times | {"version": f"2.{minor + version}.0"}
            names["diff"] = f"--- {names['file']}\n-    # {message}: before\n+    # {message}: after"
            names["deploy"] = f"D-{self.number()}"
            self.write("deploy", names | {"status": "live" if version == 2 else "superseded"})
        self.write("service", names)
        for copy in range(one.replicas):
            node = spec().nodes[(3 * int(names["place"]) + copy) % len(spec().nodes)]
            self.write("pod", names | {"copy": copy, "node": node})
        for place, text in enumerate(one.flags):
            flag, _, about = text.partition(": ")
            state = (
                {"state": "on", "percent": self.rng.choice((5, 20, 50))} if place else {"state": "off", "percent": 100}
            )
            self.write("flag", names | state | {"flag": flag, "about": about})
        for dependency in one.depends_on:
            self.write("dependency", names | {"dependency": dependency, "key": dependency.upper()})
        for text in one.tables:
            name, _, listed = text.partition(": ")
            facts = {"name": name, "table": f"{one.database}.{name}", "listed": listed, "column": listed.split(", ")[0]}
            self.write("table", names | facts)
        for group, text in (("role", one.database), ("cronjob", one.cronjob)):
            if text:
                self.write(group, names)
        if one.queue:
            queue, _, producer = one.queue.partition(": ")
            self.write("queue", names | {"queue": queue, "producer": producer})
        if one.record:
            record, _, values = one.record.partition(": ")
            self.write("record", names | {"record": record, "value": values.partition("|")[0]})
        self.logs.append(LogRow(names["service"], "INFO", 3, "request done in # ms"))
        self.logs.append(LogRow(names["service"], "WARN", 0.1, "retry 1 of 3 succeeded after # ms"))


class Base(NamedTuple):
    """A sound production, which incidents share: rows, and the same rows as tables that are forked."""

    now: float
    rows: Rows
    tables: dict[str, qn.Table[Any]]
    logs: list[LogRow]
    last: int


BASES = 12
_BEGIN = seconds("2026-03-02T06:00:00Z")


@functools.cache
def base(number: int) -> Base:
    """Returns one of the sound productions; built once in a process."""
    rng = Rng(key=key_of("ops", "base", number))
    now = _BEGIN + DAY * (number + rng.below(30)) + HOUR * rng.below(12) + MINUTE * rng.below(60)
    seeder = Seeder(rng, now, rows={name: {} for name in tables()}, logs=[], last=200 + rng.below(600))
    seeder.seed()
    made = {
        name: qn.Table(kind, ((key, kind(**values)) for key, values in seeder.rows[name].items()))
        for name, kind in ROWS.items()
    }
    return Base(now, seeder.rows, made, seeder.logs, seeder.last)


@functools.cache
def pages() -> dict[str, dict[str, Any]]:
    """Returns the pages of the documentation, which all productions share."""
    found: dict[str, dict[str, Any]] = {}
    for name, cause in causes().items():
        report = f"In a report: cause `{name}`, culprit {cause.culprit_is}."
        body = f"{cause.about}\n\n{cause.runbook} Tool: {cause.tool}\n\n{report}"
        found[f"runbook/{name}"] = {"kind": "runbook", "title": cause.about, "body": body}
    for name, one in spec().services.items():
        below = ", ".join(one.depends_on) or "none"
        body = f"{one.about} Team {one.team}. Depends on: {below}. Database: {one.database or 'none'}."
        if one.vendor:
            body += f" Vendor: {one.vendor}; the flag {name}.{one.failover} replaces it."
        found[f"service/{name}"] = {"kind": "service", "title": name, "body": body}
    for name, body in spec().policies.items():
        found[f"policy/{name}"] = {"kind": "policy", "title": f"Policy on {name}", "body": body}
    return found
