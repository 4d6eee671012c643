"""The sound production as rows: services and what belongs to them, with a history that a task's random stream draws."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import msgspec

import quintain as qn
from quintain.authoring import key_of
from quintain.state import Rng

from .description import FOLDER, causes, tables
from .state import ROWS
from .telemetry import MINUTE, LogRow, seconds, stamp

DAY = 86400.0
HOUR = 3600.0
Rows = dict[str, dict[str, dict[str, Any]]]
"""Table to key to values."""


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
    databases: dict[str, str]
    parameters: dict[str, str]
    teams: dict[str, str]
    vendors: dict[str, dict[str, str]]
    services: dict[str, ServiceSpec]


@functools.cache
def spec() -> ProductionSpec:
    """Returns the description of the sound production."""
    return msgspec.toml.decode((FOLDER / "production.toml").read_bytes(), type=ProductionSpec)


SUFFIX = {"python": "py", "java": "java", "go": "go", "typescript": "ts"}
_WORK = (
    "Tidy up {0}",
    "Add a test of {0}",
    "Rename a variable in {0}",
    "Log less in {0}",
    "Describe {0} in the README",
    "Use a constant for the limit in {0}",
    "Remove code that {0} never reached",
)
_NOISE = (
    ("Read timed out while a client went away", "{1}", "warning"),
    ("Unknown coupon format", "{0}", "warning"),
    ("Request body ended too early", "{0}", "error"),
    ("Session cookie could not be parsed", "{1}", "warning"),
)


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

    def add(self, table: str, key: str, /, **values: Any) -> str:
        """Adds a row; returns its key."""
        self.rows[table][key] = values
        return key

    def edit(self, table: str, key: str, /, **values: Any) -> None:
        """Sets values of a row, which is made if it does not exist."""
        self.rows[table][key] = self.rows[table].get(key, {}) | values

    def number(self) -> int:
        """Returns the next number for a key."""
        self.last += 1 + self.rng.below(3)
        return self.last

    def ago(self, low: float, high: float) -> str:
        """Returns a time between so many days ago."""
        return stamp(self.now - DAY * (low + (high - low) * self.rng.random()))

    def person(self) -> str:
        """Returns somebody."""
        return self.rng.choice(spec().people)


class Seeder(Writer):
    """Writer of a sound production."""

    def seed(self) -> None:
        """Writes all of it."""
        for step in (self._platform, self._services, self._noise):
            step()
        self.rows["pages"] = pages()

    def _platform(self) -> None:
        for place, name in enumerate(spec().nodes):
            zone = spec().zones[place % len(spec().zones)]
            self.add("nodes", name, zone=zone, status="Ready", cordoned=False, cpus=16, memory_gb=64, kernel="6.6.31")
        for name, engine in spec().databases.items():
            size = 200 + 100 * self.rng.below(8)
            self.add("databases", name, engine=engine, version="16.4", storage_gb=size, status="up")
            self.add("replicas", f"{name}-replica", database=name, state="streaming", lag_s=0, last_error="")
            for parameter, value in spec().parameters.items():
                facts = {"value": value, "standard": value, "changed": self.ago(90, 400), "changed_by": "platform"}
                self.add("parameters", f"{name}.{parameter}", database=name, **facts)
            for day in range(2):
                at = stamp(self.now - DAY * (day + 0.4))
                self.add("backups", f"BK-{self.number()}", database=name, at=at, status="done", size_gb=size // 3)
        for name, facts in spec().vendors.items():
            self.add("vendors", name, **facts, status="operational", says="All systems operational.")
        for team, person in spec().teams.items():
            self.add("duties", team, person=person, backup=self.person())
        begins, ends = stamp(self.now + 20 * DAY), stamp(self.now + 24 * DAY)
        self.add("freezes", "quarter-end", begins=begins, ends=ends, reason="closing of the quarter")

    def _services(self) -> None:
        for place, (name, one) in enumerate(spec().services.items()):
            domain = f"{name}.halden.example"
            facts: dict[str, Any] = {"team": one.team, "language": one.language, "tier": one.tier, "domain": domain}
            self.add("services", name, **facts, database=one.database, depends_on=list(one.depends_on))
            self._code(name, one)
            self._runtime(name, one, place)
            self._switches(name, one)
            if one.database:
                self._data(name, one)
            self._watch(name)

    def _code(self, name: str, one: ServiceSpec) -> None:
        suffix, minor = SUFFIX[one.language], 10 + self.rng.below(60)
        path = f"{name}/src/main.{suffix}"
        for place, days in enumerate(sorted((self.rng.random() * 30 + 2 for _ in range(3)), reverse=True)):
            at = self.now - DAY * days
            author = self.person()
            message = self.rng.choice(_WORK).format(self.rng.choice(one.functions))
            commit = f"{self.rng.bits():016x}"[:10]
            diff = f"--- {path}\n-    # {message.lower()}: before\n+    # {message.lower()}: after"
            self.add(
                "commits",
                commit,
                service=name,
                at=stamp(at - HOUR),
                author=author,
                message=message,
                files=[path],
                diff=diff,
            )
            self.add(
                "pulls",
                f"PR-{self.number()}",
                service=name,
                title=message,
                author=author,
                status="merged",
                commit=commit,
            )
            self.add(
                "pipelines", f"P-{self.number()}", service=name, commit=commit, at=stamp(at - HOUR / 2), status="passed"
            )
            status = "live" if place == 2 else "superseded"
            version = f"2.{minor + place}.0"
            self.add(
                "deploys",
                f"D-{self.number()}",
                service=name,
                version=version,
                commit=commit,
                at=stamp(at),
                author=author,
                status=status,
            )
        lines = [f"# {one.about}", *(f"def {function}(request): ..." for function in one.functions)]
        self.add("files", path, service=name, text="\n".join(lines))
        self.add("owners", f"{name}/", team=one.team, reviewers=[spec().teams[one.team], self.person()])
        for library in ("http-client", "metrics"):
            self.add("libraries", f"{name}/{library}", service=name, version="3.1.4", newest="3.2.0")

    def _runtime(self, name: str, one: ServiceSpec, place: int) -> None:
        memory = 512 * (1 + self.rng.below(4))
        version = next(
            row["version"] for row in self.rows["deploys"].values() if (row["service"], row["status"]) == (name, "live")
        )
        changed: dict[str, Any] = {"changed": self.ago(30, 200), "changed_by": "platform"}
        limits = {"cpu_limit": 2.0, "memory_limit_mb": memory, "previous_memory_limit_mb": memory}
        self.add(
            "workloads",
            name,
            image=f"{name}:{version}",
            replicas=one.replicas,
            autoscaling=False,
            **limits,
            **changed,
            restarts=0,
        )
        nodes = spec().nodes
        for copy in range(one.replicas):
            node = nodes[(place * 3 + copy) % len(nodes)]
            used = memory // 2 + self.rng.below(memory // 10)
            self.add(
                "pods",
                f"{name}-{copy}",
                workload=name,
                node=node,
                status="Running",
                restarts=0,
                started=self.ago(2, 3),
                memory_mb=used,
            )
        expires = stamp(self.now + DAY * (20 + self.rng.below(60)))
        self.add(
            "certificates",
            f"{name}.halden.example",
            service=name,
            issuer="Halden CA",
            expires=expires,
            state="valid",
            renews=True,
        )
        version_number = 2 + self.rng.below(6)
        self.add(
            "secrets",
            f"{name}-key",
            service=name,
            version=version_number,
            mounted=version_number,
            rotated=self.ago(20, 80),
        )
        self.add(
            "volumes",
            f"{name}-data",
            workload=name,
            size_gb=20 * (1 + self.rng.below(4)),
            used_percent=40 + self.rng.below(15),
        )
        allows = [*one.depends_on, *([one.database] if one.database else []), "metrics"]
        self.add("policies", f"{name}-egress", workload=name, allows=allows, previous=allows, **changed)
        target = f"10.4.{place}.10"
        self.add("hosts", f"{name}.internal", service=name, target=target, previous=target, **changed)
        if one.cronjob:
            last = stamp(self.now - MINUTE * (5 + self.rng.below(40)))
            facts = {"schedule": "every hour", "state": "active", "last_run": last, "last_status": "succeeded"}
            self.add("cronjobs", one.cronjob, service=name, **facts, **changed)
        if one.queue:
            queue, _, producer = one.queue.partition(": ")
            self.add(
                "queues",
                queue,
                producer=producer,
                consumer=name,
                state="running",
                waiting=5 + self.rng.below(50),
                **changed,
            )

    def _switches(self, name: str, one: ServiceSpec) -> None:
        for place, text in enumerate(one.flags):
            flag, _, about = text.partition(": ")
            state, percent = ("off", 100) if place == 0 else ("on", self.rng.choice((5, 20, 50, 100)))
            self.add(
                "flags",
                f"{name}.{flag}",
                service=name,
                about=about,
                state=state,
                percent=percent,
                changed=self.ago(3, 60),
                changed_by=self.person(),
            )
        values = {"TIMEOUT_MS": "3000", "LOG_LEVEL": "info", "CACHE_SECONDS": "300"}
        values |= {f"{other.upper()}_URL": f"http://{other}.internal" for other in one.depends_on}
        for key, value in values.items():
            self.add(
                "configs",
                f"{name}.{key}",
                service=name,
                value=value,
                previous=value,
                changed=self.ago(20, 300),
                changed_by=self.person(),
            )
        if one.record:
            key, _, choice = one.record.partition(": ")
            value, _, _ = choice.partition("|")
            self.add(
                "records",
                key,
                service=name,
                value=value,
                previous=value,
                changed=self.ago(60, 300),
                changed_by=self.person(),
            )

    def _data(self, name: str, one: ServiceSpec) -> None:
        role = self.add("roles", f"{name}_rw", database=one.database, service=name, state="active", failed_logins=0)
        for text in one.tables:
            table, _, listed = text.partition(": ")
            key = f"{one.database}.{table}"
            rows = 100_000 * (1 + self.rng.below(80))
            self.add(
                "tables",
                key,
                database=one.database,
                rows=rows,
                dead_rows=0,
                size_mb=rows // 4000,
                analyses=3,
                analyzed=self.ago(0.2, 2),
                vacuumed=self.ago(0.2, 2),
            )
            first = listed.split(", ")[0]
            self.add("indexes", f"{key}.{first}", table=key, columns=first, state="valid", scans=rows // 10)
            self.add("files", f"schema/{key}", service=name, text=f"columns: {listed}")
            facts = {
                "database": one.database,
                "service": name,
                "table": key,
                "calls_per_minute": 60 + self.rng.below(900),
            }
            plan = f"Index Scan using {key}.{first}"
            self.add(
                "statements",
                f"Q-{self.number()}",
                **facts,
                text=f"SELECT * FROM {table} WHERE {first} = $1",  # noqa: S608 (shown, never run)
                mean_ms=1 + self.rng.below(9),
                plan=plan,
            )
        facts = {"database": one.database, "role": role, "state": "idle", "statement": "", "waits_for": ""}
        self.add("sessions", f"S-{self.number()}", **facts, since=self.ago(0.01, 0.1))
        self.add(
            "migrations",
            f"M-{self.number()}",
            database=one.database,
            service=name,
            at=self.ago(10, 90),
            summary=f"add a column to {one.tables[0].partition(':')[0]}",
        )

    def _watch(self, name: str) -> None:
        self.add("monitors", f"{name}-errors", service=name, metric="error_rate", above=2.0, minutes=3, muted=False)
        self.add("monitors", f"{name}-latency", service=name, metric="latency_ms", above=800.0, minutes=3, muted=False)
        self.add(
            "objectives",
            f"{name}-availability",
            service=name,
            goal_percent=99.9,
            budget_left_percent=40.0 + self.rng.below(50),
        )
        self.logs.append(LogRow(name, "INFO", 3, "request done in # ms"))
        if self.rng.below(2):
            self.logs.append(LogRow(name, "WARN", 0.1, "retry 1 of 3 succeeded after # ms"))
        for _ in range(2):
            at, ms = stamp(self.now - MINUTE * (2 + self.rng.below(50))), 40 + self.rng.below(120)
            self.add(
                "traces",
                f"T-{self.number()}",
                service=name,
                at=at,
                duration_ms=ms,
                status="ok",
                spans=[f"{name} {ms} ms"],
            )

    def _noise(self) -> None:
        """Adds issues that are always there, and an old alert."""
        names = list(spec().services)
        for title, where, level in _NOISE:
            name = self.rng.choice(names)
            function = where.format(*spec().services[name].functions)
            key = f"ERR-{self.number()}"
            self.add(
                "issues",
                key,
                service=name,
                title=title,
                function=function,
                level=level,
                status="open",
                first_seen=self.ago(10, 200),
                events=20 + self.rng.below(400),
            )
            self.add(
                "events",
                f"EV-{self.number()}",
                issue=key,
                at=self.ago(0.01, 1),
                pod=f"{name}-0",
                message=title,
                stack=[function],
            )
        name = self.rng.choice(names)
        self.add(
            "alerts",
            f"AL-{self.number()}",
            service=name,
            rule=f"{name}-latency",
            severity="ticket",
            status="resolved",
            since=self.ago(1, 6),
            value="1 s for 4 minutes",
        )
        self.add("complaints", f"C-{self.number()}", at=self.ago(0.2, 2), text="I would like a dark theme in the shop.")
        reason = "Started container"
        for pod in self.rng.sample(list(self.rows["pods"]), 4):
            self.add(
                "happenings",
                f"H-{self.number()}",
                at=self.rows["pods"][pod]["started"],
                object=pod,
                reason="Started",
                message=reason,
            )
        for _ in range(4):
            cause, name = self.rng.choice(list(causes())), self.rng.choice(names)
            facts = {"service": name, "cause": cause, "summary": causes()[cause].about}
            self.add("postmortems", f"INC-{self.number()}", at=self.ago(20, 300), **facts)


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
        body = f"{cause.about}\n\n{cause.runbook}\n\nIn a report: cause `{name}`, culprit {cause.culprit_is}."
        found[f"runbook/{name}"] = {"kind": "runbook", "title": cause.about, "body": body}
    for name, one in spec().services.items():
        below = ", ".join(one.depends_on) or "none"
        body = f"{one.about} Team {one.team}. Depends on: {below}. Database: {one.database or 'none'}."
        if one.vendor:
            body += f" Vendor: {one.vendor}; the flag {name}.{one.failover} replaces it."
        found[f"service/{name}"] = {"kind": "service", "title": name, "body": body}
    for name, body in _POLICIES.items():
        found[f"policy/{name}"] = {"kind": "policy", "title": f"Policy on {name}", "body": body}
    return found


_POLICIES = {
    "repairs": "Repair the cause as its runbook says, and change nothing else. Restarts do not repair what a runbook "
    "repairs in another way.",
    "alerts": "Alerts resolve by themselves when their cause is repaired. Acknowledging one is free.",
    "freezes": "Repairs of incidents are allowed during a freeze.",
}
