"""On-call desk: incidents of services, their repair, and pages to engineers."""

from __future__ import annotations

import datetime as dt
import hashlib
import threading
import time
import traceback
from typing import Any, Literal

import msgspec

import quintain as qn
from quintain.state import Clock, Rng, Shared

MONDAY = 1772494200.0  # 2026-03-02 23:30 UTC
Fault = Literal["none", "hung", "disk full", "bad deploy"]
Cause = Literal["hung", "disk full", "bad deploy"]
Severity = Literal["sev1", "sev2", "sev3"]
FAULTS: tuple[Cause, ...] = ("hung", "disk full", "bad deploy")
SYMPTOMS = {
    "none": "normal",
    "hung": "requests time out, the process does not answer its probe",
    "disk full": "writes fail: no space left on device",
    "bad deploy": "errors since the last deployment",
}
TEAMS = {"payments": ("checkout", "ledger"), "search": ("index", "suggest"), "core": ("login", "mailer", "gateway")}
ENGINEERS = ("Aiko", "Bram", "Carla", "Dev", "Esra", "Femi", "Gus", "Hila", "Ivo")


class Service(msgspec.Struct):
    name: str
    team: str
    version: int
    fault: Fault
    latency_ms: int
    error_pct: float
    restarts: int = 0
    cleanups: int = 0
    is_monitored: bool = True


class Engineer(msgspec.Struct):
    name: str
    team: str
    is_on_call: bool


class Incident(msgspec.Struct):
    id: str
    service: str
    title: str
    severity: Severity
    opened: float
    status: Literal["open", "acknowledged", "resolved"] = "open"
    cause: Cause | None = None


class Page(msgspec.Struct):
    engineer: str
    incident: str
    at: float


class Desk(qn.State):
    services: dict[str, Service]
    engineers: dict[str, Engineer]
    incidents: dict[str, Incident]
    pages: list[Page] = []
    probes: dict[str, dict[str, Any]] = {}  # last probe by service, because a probe is slow in production

    @qn.tool
    def list_incidents(self, status: Literal["open", "acknowledged", "resolved"]) -> list[dict[str, Any]]:
        """List incidents with a status, the newest first.

        Args:
            status: The status.
        """
        found = [one for one in self.incidents.values() if one.status == status]
        return [msgspec.to_builtins(one) for one in self._ordered(found)]

    @qn.tool
    def incident(self, incident: str) -> Incident:
        """Show an incident.

        Args:
            incident: Its id, such as "I2".
        """
        return self._incident(incident)

    @qn.tool
    def owner(self, service: str) -> dict[str, Any]:
        """Show the team that owns a service, and who of the team is on call.

        Args:
            service: Name of the service.
        """
        team = self._service(service).team
        mates = [one for one in self.engineers.values() if one.team == team]
        return {"team": team, "on_call": [one.name for one in mates if one.is_on_call], "all": [m.name for m in mates]}

    @qn.tool
    def check(self, service: str) -> dict[str, Any]:
        """Probe a service: p95 latency in milliseconds, errors in percent of requests, and the symptom.

        Args:
            service: Name of the service.
        """
        row = self._service(service)
        self._check_monitored(row)
        if service not in self.probes:
            probe = {"latency_ms": row.latency_ms, "error_pct": row.error_pct, "symptom": SYMPTOMS[row.fault]}
            self.probes[service] = {"service": service, "version": row.version, **probe}
        return self.probes[service]

    @qn.tool
    def restart(self, service: str) -> str:
        """Restart a service. It is up again when the call returns.

        Args:
            service: Name of the service.
        """
        row = self._service(service)
        row.restarts += 1
        self._repair(row, "hung")
        return f"{service} is up"

    @qn.tool
    def free_disk(self, service: str) -> str:
        """Delete old logs of a service.

        Args:
            service: Name of the service.
        """
        row = self._service(service)
        row.cleanups += 1
        self._repair(row, "disk full")
        return f"old logs of {service} are deleted"

    @qn.tool
    def roll_back(self, service: str) -> str:
        """Deploy the version before the present one of a service.

        Args:
            service: Name of the service.
        """
        row = self._service(service)
        row.version -= 1
        self._repair(row, "bad deploy")
        return f"{service} runs version {row.version}"

    @qn.tool
    def page(self, engineer: str, incident: str) -> str:
        """Page an engineer about an incident.

        Args:
            engineer: Name of the engineer.
            incident: Id of the incident.
        """
        self._incident(incident)
        if engineer not in self.engineers:
            raise qn.ToolError(f"no engineer {engineer!r}")
        self.pages.append(Page(engineer, incident, self.clock.now))
        self.clock.advance(60)
        return f"{engineer} is paged"

    @qn.tool
    def acknowledge(self, incident: str, severity: Severity) -> str:
        """Acknowledge an open incident and set its severity.

        Args:
            incident: Id of the incident.
            severity: The severity, sev1 being the worst.
        """
        row = self._incident(incident)
        if row.status != "open":
            raise qn.ToolError(f"{incident} is {row.status}")
        row.status, row.severity = "acknowledged", severity
        return f"{incident} is acknowledged as {severity}"

    @qn.tool
    def resolve(self, incident: str, cause: Cause) -> str:
        """Resolve an incident of a service that works again.

        Args:
            incident: Id of the incident.
            cause: What was wrong with the service.
        """
        row = self._incident(incident)
        if row.status == "resolved":
            raise qn.ToolError(f"{incident} is resolved already")
        self._check_healthy(self.services[row.service])
        row.status, row.cause = "resolved", cause
        return f"{incident} is resolved"

    def _service(self, service: str) -> Service:
        if service not in self.services:
            raise qn.ToolError(f"no service {service!r}; there are {', '.join(self.services)}")
        return self.services[service]

    def _incident(self, incident: str) -> Incident:
        if incident not in self.incidents:
            raise qn.ToolError(f"no incident {incident!r}")
        return self.incidents[incident]

    def _ordered(self, found: list[Incident]) -> list[Incident]:
        return sorted(found, key=lambda one: one.opened, reverse=True)

    def _check_monitored(self, row: Service) -> None:
        if not row.is_monitored:
            raise qn.ToolError(f"{row.name} has no probe; ask its team")

    def _check_healthy(self, row: Service) -> None:
        if row.fault != "none":
            raise qn.ToolError(f"{row.name} does not work yet")

    def _repair(self, row: Service, fault: Fault) -> None:
        if row.fault == fault:
            row.fault, row.latency_ms, row.error_pct = "none", row.latency_ms // 8, 0.1
        self.probes.pop(row.name, None)


def start(rng: Rng, world: type[Desk], *, is_flat: bool = False) -> Desk:
    services: dict[str, Service] = {}
    broken = rng.sample(("checkout", "ledger", "index", "suggest", "login"), 3)
    for team, names in TEAMS.items():
        for name in names:
            fault: Fault = rng.choice(FAULTS) if name in broken else "none"
            latency, errors = 45 + rng.below(300), rng.below(40) / 100
            if fault != "none":
                latency, errors = latency * 8, 3 + rng.below(500) / 10
            if is_flat:
                latency, errors = 100, 0.0
            services[name] = Service(name, team, 20 + rng.below(80), fault, latency, errors)
    services["mailer"].is_monitored = False
    duty = {team: rng.below(3) for team in TEAMS}
    teams = tuple(TEAMS)
    engineers = {
        name: Engineer(name, teams[n // 3], n % 3 == duty[teams[n // 3]])
        for n, name in enumerate(rng.sample(ENGINEERS, len(ENGINEERS)))
    }
    incidents: dict[str, Incident] = {}
    for n, name in enumerate(rng.sample([*broken, "mailer", broken[0]], 5), 1):
        opened = MONDAY - 60 * (5 + rng.below(900)) - n
        title = rng.choice((f"{name} is slow", f"customers complain about {name}", f"alert: {name}"))
        incidents[f"I{n}"] = Incident(f"I{n}", name, title, rng.choice(("sev2", "sev3")), opened)
    desk = world(services=services, engineers=engineers, incidents=incidents)
    desk.shared = Shared()
    desk.shared.clock = Clock(MONDAY)
    desk.clock.belong(desk)
    return desk


def request(desk: Desk, rng: Rng, family: int) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """Returns a prompt and its solution: repair and resolve, page, or acknowledge the newest incident."""
    row = rng.choice([one for one in desk.incidents.values() if desk.services[one.service].fault != "none"])
    service = desk.services[row.service]
    if family == 1:
        (engineer,) = [one.name for one in desk.engineers.values() if one.team == service.team and one.is_on_call]
        text = f"Page the engineer on call of the team that owns the service of incident {row.id} about it."
        page = ("page", {"engineer": engineer, "incident": row.id})
        return text, [("incident", {"incident": row.id}), ("owner", {"service": service.name}), page]
    if family == 3:
        newest = max(desk.incidents.values(), key=lambda one: one.opened)
        text = "Acknowledge the newest open incident as sev1."
        return text, [
            ("list_incidents", {"status": "open"}),
            ("acknowledge", {"incident": newest.id, "severity": "sev1"}),
        ]
    tool = {"hung": "restart", "disk full": "free_disk", "bad deploy": "roll_back"}[service.fault]
    text = (
        f"Incident {row.id}: find out what is wrong with its service, repair that and nothing else, check the service "
        "again, and resolve the incident with its cause. A hung service is restarted, a full disk is freed, a bad "
        "deployment is rolled back."
    )
    check = ("check", {"service": service.name})
    resolve = ("resolve", {"incident": row.id, "cause": service.fault})
    return text, [("incident", {"incident": row.id}), check, (tool, {"service": service.name}), check, resolve]


def summary(desk: Desk) -> dict[str, Any]:
    return {
        "services": {s.name: [s.fault, s.version, s.restarts, s.cleanups] for s in desk.services.values()},
        "incidents": {one.id: [one.status, one.severity, one.cause] for one in desk.incidents.values()},
        "pages": [[one.engineer, one.incident] for one in desk.pages],
    }


def task(split: str, n: int, world: type[Desk], *, is_flat: bool) -> qn.Task[Desk]:
    rng = Rng(key=hashlib.blake2b(f"oncall/{split}/{n}".encode(), digest_size=16).digest())
    goal = start(Rng(key=rng.key), Desk)
    prompt, solution = request(goal, rng, n % 4)
    for name, arguments in solution:
        getattr(goal, name)(**arguments)
    begin = start(Rng(key=rng.key), world, is_flat=is_flat)
    truth = {**summary(goal), "day": "2026-03-02"}
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=begin, truth=truth, solution=tuple(solution))


@qn.reward
def desk_agrees(view: qn.EpisodeView[Desk]) -> qn.Score:
    wrong = [name for name, found in summary(view.state).items() if found != view.task.truth[name]]
    return qn.Score(float(not wrong), f"wrong: {', '.join(wrong)}" if wrong else "")


# Variants of the sound world.


class OldestFirst(Desk):
    def _ordered(self, found: list[Incident]) -> list[Incident]:
        return sorted(found, key=lambda one: one.opened)


class Unprobed(Desk):
    def _check_monitored(self, row: Service) -> None:
        if not row.is_monitored:
            self.probes[row.name] = {"service": row.name, "latency_ms": 0, "error_pct": 0.0, "symptom": "normal"}


class ProbeKept(Desk):
    def _repair(self, row: Service, fault: Fault) -> None:
        kept = self.probes.get(row.name) if fault == "disk full" else None
        Desk._repair(self, row, fault)
        self.probes |= {row.name: kept} if kept else {}


class Background(Desk):
    def _repair(self, row: Service, fault: Fault) -> None:
        def come_up() -> None:
            time.sleep(0.002)
            Desk._repair(self, row, fault)

        threading.Thread(target=come_up, daemon=True).start()


class Verbose(Desk):
    def _service(self, service: str) -> Service:
        try:
            return self.services[service]
        except KeyError as error:
            raise qn.ToolError(f"internal error\n{traceback.format_exc()}") from error


class Trusting(Desk):
    def _check_healthy(self, row: Service) -> None:
        self.probes.pop(row.name, None)


@qn.reward
def incidents_agree(view: qn.EpisodeView[Desk]) -> float:
    found = summary(view.state)
    return float(all(found[name] == view.task.truth[name] for name in ("incidents", "pages")))


@qn.reward
def was_paged(view: qn.EpisodeView[Desk]) -> float:
    found, wanted = summary(view.state), view.task.truth
    paged = all(one in found["pages"] for one in wanted["pages"])
    return float(paged and all(found[name] == wanted[name] for name in ("services", "incidents")))


@qn.reward
def paged_in_shift(view: qn.EpisodeView[Desk]) -> float:
    days = {dt.datetime.fromtimestamp(one.at).date().isoformat() for one in view.state.pages}  # noqa: DTZ006
    wanted = view.task.truth
    return float(days <= {wanted["day"]} and all(found == wanted[name] for name, found in summary(view.state).items()))


WORLDS: dict[str, type[Desk]] = {
    "oldest_first": OldestFirst,
    "unprobed": Unprobed,
    "probe_kept": ProbeKept,
    "background": Background,
    "verbose": Verbose,
    "trusting": Trusting,
}
VERIFIERS = {"trusting": incidents_agree, "was_paged": was_paged, "shift": paged_in_shift}
CONFIGS = {"brief": qn.Config(max_calls=3)}


def make(bug: str = "") -> qn.Environment[Desk]:
    """Returns the sound environment, or a variant of it."""
    world, is_flat = WORLDS.get(bug, Desk), bug == "flat"
    return qn.Environment(
        "oncall",
        tasks=lambda split: qn.Tasks(16, lambda n: task(split, n, world, is_flat=is_flat)),
        harness=qn.ToolLoop(system="You are on call tonight. Do what is asked, and nothing else."),
        verifier=qn.Verifier(VERIFIERS.get(bug, desk_agrees)),
        state=world,
        config=CONFIGS.get(bug, qn.Config(max_turns=15)),
    )


env = make()
env_oldest_first = make("oldest_first")
env_unprobed = make("unprobed")
env_probe_kept = make("probe_kept")
env_background = make("background")
env_verbose = make("verbose")
env_trusting = make("trusting")
env_was_paged = make("was_paged")
env_shift = make("shift")
env_brief = make("brief")
env_flat = make("flat")
