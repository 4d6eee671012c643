"""A scene: the production with failures and decoys, whose traces agree in time because each begins at one onset."""

from __future__ import annotations

from typing import Any, NamedTuple

import quintain as qn
from quintain.state import Rng

from .description import Cause, Decoy, Edit, Issue, Traces
from .seeding import BASES, SUFFIX, Names, Writer, base, fill, spec
from .state import ROWS, Value
from .telemetry import MINUTE, LogRow, ShiftRow, stamp

_ALERTS = {
    "slow": ("latency", "p95 above 2 s"),
    "failing": ("errors", "errors above 10 percent"),
    "stale": ("freshness", "data is not fresh"),
}
"""Rule and value of an alert, by symptom."""


class Breakdown(NamedTuple):
    """A failure in a scene.

    Attributes:
        name: Name of its root cause.
        names: What its placeholders stand for.
        onset: When it began, in seconds.
        heals: Values that come back when it ends.
    """

    name: str
    cause: Cause
    names: Names
    onset: float
    heals: list[Value]


class Scene(Writer):
    """Rows with failures and decoys.

    Attributes:
        base: The sound production below.
        shifts: Curves that leave their base.
        failures: What is wrong.
    """

    def __init__(self, rng: Rng) -> None:
        self.base = base(rng.below(BASES))
        rows = {name: dict(table) for name, table in self.base.rows.items()}
        super().__init__(rng, self.base.now, rows=rows, logs=list(self.base.logs), last=self.base.last)
        self.last += 100 + rng.below(800)
        self.shifts: list[ShiftRow] = []
        self.failures: list[Breakdown] = []

    def fail(self, name: str, cause: Cause, *, alerts: tuple[str, ...], taken: set[str]) -> Breakdown:
        """Lets a root cause befall a service.

        Args:
            name: Name of the root cause.
            cause: The root cause.
            alerts: Which services raise an alert: "service", "upstream".
            taken: Services that are not to be chosen.
        """
        service = self.rng.choice([name for name in fitting(cause) if name not in taken])
        onset = self.now - MINUTE * (18 + self.rng.below(40))
        names = self.names(service, onset)
        failure = Breakdown(name, cause, names, onset, [])
        self.trace(cause, names, onset=onset, failure=failure)
        self._spread(failure, alerts)
        self.failures.append(failure)
        return failure

    def distract(self, decoy: Decoy, failure: Breakdown, *, taken: set[str]) -> None:
        """Adds harmless traces near a failure."""
        low, high = decoy.minutes
        onset = failure.onset + MINUTE * (low + self.rng.below(high - low + 1))
        others = [name for name in spec().services if name not in taken]
        service = failure.names["service"] if decoy.at_service == "same" else self.rng.choice(others)
        self.trace(decoy, self.names(service, min(onset, self.now - MINUTE)), onset=onset)

    def tables(self) -> dict[str, qn.Table[Any]]:
        """Returns the rows as tables: forks of those of the base with what is different."""
        made = {name: table.fork() for name, table in self.base.tables.items()}
        for name, kind in ROWS.items():
            rows, before = self.rows[name], self.base.rows[name]
            for key in before.keys() - rows.keys():
                del made[name][key]
            for key, values in rows.items():
                if before.get(key) is not values:
                    made[name][key] = kind(**values)
        return made

    def names(self, service: str, onset: float) -> Names:
        """Returns what the placeholders mean for a failure of a service."""
        one = spec().services[service]
        upstream = next((name for name, other in spec().services.items() if service in other.depends_on), service)
        live, deploys = self._live(service), self.rows["deploys"]
        before = [one for one in deploys.values() if (one["service"], one["status"]) == (service, "superseded")]
        workload = self.rows["workloads"][service]
        table = one.tables[-1].partition(": ") if one.tables else ("", "", "")
        pod = f"{service}-{self.rng.below(one.replicas)}"
        volume = self.rows["volumes"][f"{service}-data"]
        record, _, values = one.record.partition(": ")
        flags = [f"{service}.{text.partition(':')[0]}" for text in one.flags]
        names: Names = {
            "service": service, "upstream": upstream, "team": one.team, "author": self.person(),
            "octet": 20 + self.rng.below(200), "target": self.rows["hosts"][f"{service}.internal"]["target"],
            "allows": self.rows["policies"][f"{service}-egress"]["allows"],
            "mounted": self.rows["secrets"][f"{service}-key"]["version"],
            "dependency": one.depends_on[0] if one.depends_on else "", "database": one.database,
            "deploy": live, "version": deploys[live]["version"], "commit": deploys[live]["commit"],
            "previous": before[-1]["version"], "function": one.functions[0], "helper": one.functions[1],
            "file": f"{service}/src/main.{SUFFIX[one.language]}", "pod": pod, "node": self.rows["pods"][pod]["node"],
            "replicas": workload["replicas"], "double": 2 * workload["replicas"],
            "memory": workload["memory_limit_mb"], "less_memory": workload["memory_limit_mb"] // 4,
            "domain": f"{service}.halden.example", "secret": f"{service}-key", "volume": f"{service}-data",
            "size": volume["size_gb"], "double_size": 2 * volume["size_gb"], "policy": f"{service}-egress",
            "host": f"{service}.internal", "role": f"{service}_rw", "flag": flags[-1], "cronjob": one.cronjob,
            "queue": one.queue.partition(":")[0], "producer": one.queue.partition(": ")[2], "vendor": one.vendor,
            "failover": f"{service}.{one.failover}", "record": record, "right": values.partition("|")[0],
            "wrong": values.partition("|")[2], "table": f"{one.database}.{table[0]}", "table_name": table[0],
            "column": table[2].split(", ")[0], "replica": f"{one.database}-replica",
            "new": self.number(), "other": self.number(), "at": stamp(onset), "time": stamp(onset)[11:16],
            "just_before": stamp(onset - 2 * MINUTE), "changed": stamp(onset - 2 * MINUTE)[11:16],
            "long_ago": stamp(onset - 300 * MINUTE), "day": stamp(onset)[:10],
        }  # fmt: skip
        for key, row in self.rows["statements"].items():
            if row["table"] == names["table"]:
                names |= {"statement": key, "sql": row["text"]}
        names["secret_version"] = names["mounted"] + 1
        names["dependency_key"] = f"{names['dependency'].upper()}_URL"
        return names

    def _live(self, service: str) -> str:
        deploys = self.rows["deploys"].items()
        return next(key for key, row in deploys if (row["service"], row["status"]) == (service, "live"))

    # -- traces

    def trace(self, traces: Traces, names: Names, *, onset: float, failure: Breakdown | None = None) -> None:
        """Writes traces into the rows, from an onset on."""
        fault = failure.name if failure else ""
        if traces.commit:
            self._deploy(traces.commit, names, onset=onset, failure=failure)
        for edit in traces.edits:
            self._edit(edit, names, failure)
        for curve, to, minutes in traces.shifts:
            self.shifts.append(ShiftRow(fill(curve, names), to, onset, minutes, fault=fault))
        for service, level, rate, text in traces.logs:
            self.logs.append(LogRow(fill(service, names), level, rate, fill(text, names), onset, fault=fault))
        for issue in traces.issues:
            self._issue(issue, names, onset=onset, failure=failure)

    def _edit(self, edit: Edit, names: Names, failure: Breakdown | None) -> None:
        table, _, key = fill(edit.row, names).partition("/")
        if edit.is_gone:
            del self.rows[table][key]
            return
        to = fill(edit.to, names)
        if edit.heals and failure is not None:
            failure.heals.extend(Value(table, key, name, self.rows[table][key][name]) for name in to)
        self.edit(table, key, **to)

    def _deploy(self, commit: tuple[str, str], names: Names, *, onset: float, failure: Breakdown | None) -> None:
        """Adds a commit and its deploy, which goes live two minutes before the onset."""
        service = names["service"]
        message, diff = (fill(text, names) for text in commit)
        live = self._live(service)
        major, minor, _ = self.rows["deploys"][live]["version"].split(".")
        names |= {"previous": f"{major}.{minor}.0", "version": f"{major}.{int(minor) + 1}.0"}
        names |= {"commit": self.commit(), "deploy": f"D-{self.number()}"}
        at = onset - 2 * MINUTE
        times = {"committed": stamp(at - 40 * MINUTE), "deployed": stamp(at)}
        self.edit("deploys", live, status="superseded")
        self.write("deploy", names | times | {"message": message, "diff": diff, "status": "live"})
        self.edit("workloads", service, image=f"{service}:{names['version']}")
        for pod in [key for key, row in self.rows["pods"].items() if row["workload"] == service]:
            self.edit("pods", pod, started=stamp(at))
        text = self.rows["files"][names["file"]]["text"]
        if failure is not None:
            failure.heals.append(Value("files", names["file"], "text", text))
        added = [line[1:] for line in diff.splitlines() if line.startswith("+")]
        self.edit("files", names["file"], text="\n".join([text, *added]))

    def _issue(self, issue: Issue, names: Names, *, onset: float, failure: Breakdown | None) -> None:
        at, key = onset + MINUTE * issue.after, f"ERR-{self.number()}"
        minutes = max(1, int((self.now - at) / MINUTE))
        facts = {
            name: fill(getattr(issue, name), names) for name in ("service", "function", "title", "message", "level")
        }
        facts |= {"issue": key, "file": names["file"], "events": minutes * (3 + self.rng.below(9))}
        self.write("issue", facts | {"at": stamp(at)})
        if failure is not None:
            names.setdefault("issue", key)
            failure.heals.append(Value("issues", key, "status", "resolved"))
        for later in (0, minutes // 2):
            self.write("event", facts | {"at": stamp(at + MINUTE * later)})

    def _spread(self, failure: Breakdown, alerts: tuple[str, ...]) -> None:
        """Lets callers feel a failure: curves, logs, traces and alerts of the service and of the one that calls it."""
        names, onset, symptom = failure.names, failure.onset, failure.cause.symptom
        service, upstream = names["service"], names["upstream"]
        metric, high = {"slow": ("latency_ms", 2600.0), "failing": ("error_rate", 24.0), "stale": ("", 0.0)}[symptom]
        for one, delay, share in ((service, 0, 1.0), (upstream, 1, 0.6)):
            if metric and (one == service or upstream != service):
                self.shifts.append(
                    ShiftRow(f"{one}/{metric}", round(high * share, 1), onset + delay * MINUTE, 4, fault=failure.name)
                )
        if metric and upstream != service:
            text = f"{service} {'took # ms' if symptom == 'slow' else 'answered with status 503'}"
            self.logs.append(LogRow(upstream, "WARN", 5, text, onset + MINUTE, fault=failure.name))
            status, ms, below = ("ok", 2601, "2570 ms") if symptom == "slow" else ("failed", 43, "failed after 12 ms")
            facts = {"service": upstream, "status": status, "ms": ms, "span": f"{service} {below}"}
            self.write("trace", facts | {"at": stamp(onset + 4 * MINUTE)})
        kind, value = _ALERTS[symptom]
        for one in dict.fromkeys(names[which] for which in alerts):
            key = f"AL-{self.number()}"
            names.setdefault("alert", key)
            facts = {"service": one, "alert": key, "kind": kind, "value": value}
            self.write("alert", facts | {"at": stamp(onset + 3 * MINUTE)})
            failure.heals.append(Value("alerts", key, "status", "resolved"))


def fitting(cause: Cause) -> list[str]:
    """Returns the services that a root cause can befall."""
    return [name for name, one in spec().services.items() if all(getattr(one, need) for need in cause.needs)]
