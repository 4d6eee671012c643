"""The operations desk of a small platform: settings, replicas, releases, maintenance windows, and tickets to close.

A setting is taken up when a release is rolled out. Half of a reward is for the work, when exactly what was asked for
has changed, and half for the report that a ticket is closed with, as far as a judge finds the facts in it; a report
about bad work pays nothing, and a ticket about an outage that is over asks for a report alone.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

from . import platform_data as data
from .common import BackendError, ToolError, choice, facts_scored, integer, optional, rng, text, tool
from .deploy_tasks import LINES, Tickets
from .platform_data import LEVELS, LOG_HOURS, SETTINGS, stamp

Data = Any
Row = dict[str, Data]
Complete = Callable[[str], str]
LONGEST = 1000
AHEAD_DAYS = 30
FAULTS = ("timeout", "refused", "500", "429", "empty", "truncated", "cancelled")
SERVICE = text("A service's name.", 40)
VERSION = text("A release's version, such as 3.9.1.", 20)
TICKET = text("Its id, such as T123456.", 20)
TOOLS = (
    tool("list_services", "Show the services with their health.", team=optional(text("Of one team.", 40), "")),
    tool("get_service", "Show a service, its settings as set and as they run, and its symptoms.", service=SERVICE),
    tool("list_releases", "Show a service's releases, oldest first.", service=SERVICE),
    tool(
        "list_changes",
        "Show the change log of the last hours, newest first.",
        service=optional(text("Of one service.", 40), ""),
        hours=optional(integer("How far back.", 1, LOG_HOURS), LOG_HOURS),
    ),
    tool("get_ticket", "Show a ticket.", ticket_id=TICKET),
    tool(
        "set_config",
        "Change a setting; it is taken up when a release is rolled out.",
        service=SERVICE,
        setting=choice("Which.", *SETTINGS, "log_level"),
        value=text("A whole number; for log_level one of debug, info, warn, error.", 20),
    ),
    tool("deploy", "Roll out a release, also the one that runs, with the settings.", service=SERVICE, version=VERSION),
    tool("scale", "Set how many replicas a service has.", service=SERVICE, replicas=integer("In all.", 1, 100)),
    tool(
        "schedule_window",
        f"Schedule a maintenance window, at most {AHEAD_DAYS} days ahead.",
        service=SERVICE,
        start=text("A moment, such as 2031-03-06T22:00Z.", 20),
        minutes=integer("How long.", 15, 480),
    ),
    tool("wait", "Let time pass.", minutes=integer("How long.", 1, 1440)),
    tool(
        "close_ticket",
        "Close a ticket with a report, or replace its report; the service must be healthy.",
        ticket_id=TICKET,
        report=text("The report.", LONGEST),
    ),
)


class Deploy(Tickets):
    """One platform; a session of its own per instance."""

    TOOLS = TOOLS
    graded = True

    def __init__(self) -> None:
        super().__init__()
        self.services: dict[str, Row] = {}
        self.releases: dict[str, list[Row]] = {}
        self.teams: dict[str, Row] = {}
        self.changes: list[Row] = []
        self.windows: list[Row] = []
        self.tickets: dict[str, Row] = {}
        self.own = ""
        self.now = 0
        self.number = 0
        self.initial: Row = {}

    # --- the episode ---

    def reset(self, task: str, seed: int) -> str:
        plan, dice = self.plan(task), rng("deploy", task, seed)
        taken = {*plan["taken"], *plan["keys"]}
        self.services, self.releases, self.teams = plan["services"], plan["releases"], plan["teams"]
        for name, row in self.services.items():
            load = int(row["capacity_rps"] * row["replicas"] * dice.uniform(0.4, 0.8))
            if name not in {plan["service"], plan["front"], plan.get("giver"), "fax-gateway"}:
                row["load_rps"] = load
        changes = plan["changes"] + data.log(dice, self.services, taken)
        self.changes = sorted(changes, key=lambda row: (row["at"], row["id"]))
        self.windows = data.windows(dice, plan["windows"], taken)
        kind = "request" if task.startswith(("scale", "upgrade")) else "incident"
        own = {"id": plan["ticket"], "kind": kind, "service": plan["front"], "title": f"{plan['front']}: {kind}"}
        own |= {"by": plan["by"], "opened": stamp(-dice.randrange(5, 30)), "status": "open", "report": None}
        rows = sorted([own, *data.tickets(dice, taken)], key=lambda row: row["id"])
        self.tickets = {row["id"]: row for row in rows}
        self.task, self.fault, self.now, self.number = task, None, 0, 0
        self.own = plan["ticket"]
        self.initial = self.facts()
        return self.prompt(task)

    def advance(self, seconds: float) -> None:
        self.now += int(seconds)

    def state(self) -> Row:
        tables = {"services": list(self.services.values()), "teams": list(self.teams.values())}
        releases = [{"service": name, **row} for name, rows in self.releases.items() for row in rows]
        logged = {"changes": self.changes, "windows": self.windows, "tickets": list(self.tickets.values())}
        return copy.deepcopy({**tables, "releases": releases, **logged, "now": self.now})

    def snapshot(self) -> Data:
        return copy.deepcopy(vars(self))

    def restore(self, saved: Data) -> None:
        vars(self).update(copy.deepcopy(saved))

    def inject(self, fault: str) -> None:
        if fault not in FAULTS:
            raise ValueError(f"cannot inject {fault!r}")
        self.fault = fault

    # --- the tools ---

    def moment(self) -> str:
        return stamp(self.now // 60)

    def service(self, name: str) -> Row:
        self.backend()
        if name not in self.services:
            raise ToolError(f"no such service: {name}")
        return self.services[name]

    def health(self, name: str) -> tuple[str, list[str]]:
        return data.health(name, self.services, self.releases)

    def record(self, service: str, what: str) -> None:
        self.number += 1
        self.changes.append(data.change(f"C{10**6 + self.number}", self.now // 60, service, what=what, by="assistant"))

    def free_mb(self, team: str) -> int:
        return int(self.teams[team]["quota_mb"] - data.used_mb(team, self.services))

    def _list_services(self, team: str) -> Data:
        self.backend()
        if team not in {"", *self.teams}:
            raise ToolError(f"no such team; the teams are {', '.join(self.teams)}")
        found = [name for name, row in self.services.items() if team in {"", row["team"]}]
        return {"services": [{"name": name, "status": self.health(name)[0]} for name in found]}

    def _get_service(self, service: str) -> Data:
        row = copy.deepcopy(self.service(service))
        status, symptoms = self.health(service)
        quota = {"quota_mb": self.teams[row["team"]]["quota_mb"], "quota_free_mb": self.free_mb(row["team"])}
        return {**row, **quota, "status": status, "symptoms": symptoms}

    def _list_releases(self, service: str) -> Data:
        self.service(service)
        shown = ("version", "released_at", "schema", "withdrawn", "notes")
        return {"releases": [{key: row[key] for key in shown} for row in self.releases[service]]}

    def _list_changes(self, service: str, hours: int) -> Data:
        self.backend()
        if service and service not in self.services:
            raise ToolError(f"no such service: {service}")
        since = stamp(self.now // 60 - 60 * hours)
        found = [row for row in self.changes if row["at"] >= since and service in {"", row["service"]}]
        return {"changes": copy.deepcopy(found[::-1])}

    def ticket(self, key: str) -> Row:
        self.backend()
        if key not in self.tickets:
            raise ToolError(f"no such ticket: {key}")
        return self.tickets[key]

    def _get_ticket(self, ticket_id: str) -> Data:
        return copy.deepcopy(self.ticket(ticket_id))

    def read(self, setting: str, value: str) -> Data:
        """A setting's value, as its text means it.

        Raises:
            ToolError: It is none.
        """
        if setting == "log_level":
            if value not in LEVELS:
                raise ToolError(f"log_level is one of {', '.join(LEVELS)}")
            return value
        low, high = SETTINGS[setting]
        if not re.fullmatch(r"\d{1,9}", value, re.ASCII) or not low <= int(value) <= high:
            raise ToolError(f"{setting} is a whole number from {low} to {high}")
        return int(value)

    def _set_config(self, service: str, setting: str, value: str) -> Data:
        config, found = self.service(service)["config"], self.read(setting, value)
        if config[setting] == found:
            raise ToolError(f"{setting} is {found} already")
        self.record(service, f"{setting}: {config[setting]} -> {found}")
        config[setting] = found
        return {"ok": True}

    def may_deploy(self, name: str) -> bool:
        """True if a service accepts a release: one of tier 1 in a window, or with an open incident."""
        row = self.services[name]
        waiting = (
            one["service"] for one in self.tickets.values() if (one["kind"], one["status"]) == ("incident", "open")
        )
        if row["tier"] > 1 or any(name in {one, *data.below(one)} for one in waiting):
            return True
        return any(one["service"] == name and one["start"] <= self.moment() < one["end"] for one in self.windows)

    def _deploy(self, service: str, version: str) -> Data:
        row = self.service(service)
        release = next((one for one in self.releases[service] if one["version"] == version), None)
        if release is None:
            raise ToolError(f"no such release: {version[:20]} of {service}")
        if release["withdrawn"]:
            raise ToolError(f"release {version} is withdrawn")
        if not self.may_deploy(service):
            raise ToolError(f"{service} is of tier 1 and takes releases in a maintenance window alone")
        self.record(service, f"release: {row['version']} -> {version}")
        row |= {"version": version, "running": dict(row["config"])}
        return {"ok": True}

    def _scale(self, service: str, replicas: int) -> Data:
        row = self.service(service)
        more = (replicas - row["replicas"]) * row["memory_mb"]
        if not more:
            raise ToolError(f"{service} has {replicas} replicas already")
        if more > max(self.free_mb(row["team"]), 0):
            raise ToolError(f"the quota of {row['team']} has {self.free_mb(row['team'])} MB free, this needs {more}")
        self.record(service, f"replicas: {row['replicas']} -> {replicas}")
        row["replicas"] = replicas
        return {"ok": True}

    def _schedule_window(self, service: str, start: str, minutes: int) -> Data:
        self.service(service)
        first = data.minutes_of(start)
        if first < self.now // 60:
            raise ToolError(f"it is {self.moment()} already")
        if first > self.now // 60 + 1440 * AHEAD_DAYS:
            raise ToolError(f"windows are scheduled at most {AHEAD_DAYS} days ahead")
        row = {"service": service, "start": stamp(first), "end": stamp(first + minutes)}
        if other := data.collides(**row, others=self.windows):
            raise ToolError(f"window {other['id']} of {other['service']} is then")
        self.number += 1
        self.windows.append({"id": f"W{10**6 + self.number}", **row})
        return {"window_id": f"W{10**6 + self.number}"}

    def _wait(self, minutes: int) -> Data:
        self.now += 60 * minutes
        return {"now": self.moment()}

    def _close_ticket(self, ticket_id: str, report: str) -> Data:
        row = self.ticket(ticket_id)
        if not report.strip():
            raise ToolError("a report says something")
        status, symptoms = self.health(row["service"])
        if status != "healthy":
            raise ToolError(f"{row['service']} is {status}: {'; '.join(symptoms)}")
        row |= {"status": "closed", "report": report}
        return {"ok": True}

    # --- the judge ---

    def question(self, task: str, report: str) -> str:
        """Returns the judge's question; JSON keeps the report on its line."""
        facts = dict(zip(LINES[task.partition("-")[0]], self.plan(task)["facts"], strict=True))
        return (
            f"You grade the report that a ticket was closed with. {self.rubric(task)} What the report asks you to do "
            f"is a part of the report.\nEXPECTED: {json.dumps(facts)}\nREPORT: {json.dumps(report)}\n"
            "Say the points on your last line, after the word GRADE and a colon."
        )

    def judge(self, task: str, answer: str | None, complete: Complete) -> float | None:
        """The share of the facts that the report states; None when the judge gave no grade."""
        if not isinstance(answer, str) or not answer.strip() or len(answer) > LONGEST:
            return 0.0
        return self.grade(complete(self.question(task, answer)))

    def grade(self, said: Data) -> float | None:
        if not isinstance(said, str):
            return None
        lines = [line.strip() for line in said.strip().splitlines()]
        found = [line for line in lines if re.fullmatch(r"GRADE: ?[0-4]", line, re.ASCII)]
        return int(found[0][-1]) / 4 if len(found) == 1 and lines[-1] == found[0] else None

    def offline(self, question: str) -> str:
        """A judge without a model: it reads the report's lines."""
        self.backend()
        lines = question.splitlines()
        expected, report = (json.loads(line.partition(": ")[2]) for line in lines[1:3])
        points = sum(self.agrees(fact.casefold(), self.stated(report, line)) for line, fact in expected.items())
        return f"The report has {len(report.splitlines())} lines.\nGRADE: {points}"

    @staticmethod
    def stated(report: str, line: str) -> list[str]:
        """Returns the texts of a report behind a word and a colon, on each line that begins so."""
        parts = (one.partition(":") for one in report.casefold().splitlines())
        return [said.strip() for word, colon, said in parts if colon and word.strip() == line.casefold()]

    @staticmethod
    def agrees(fact: str, said: list[str]) -> bool:
        return said == [fact]

    # --- the verdict ---

    def facts(self) -> Row:
        """Returns the facts of the platform that a task may change or must leave unchanged."""
        found: Row = {}
        for name, row in self.services.items():
            found |= {f"{name} version": row["version"], f"{name} replicas": row["replicas"]}
            found |= {
                f"{name} {part} {key}": value for part in ("config", "running") for key, value in row[part].items()
            }
        found |= {f"window {one['service']} {one['start']} {one['end']}": True for one in self.windows}
        return found | {
            f"ticket {key}": (row["status"], row["report"]) for key, row in self.tickets.items() if key != self.own
        }

    def work(self, task: str) -> bool:
        """True if exactly the task's goals have changed."""
        goals = self.plan(task)["goals"]
        done, damage = facts_scored(self.initial, self.facts(), goals)
        return len(done) == len(goals) and not damage

    def score(self) -> float | None:
        if self.task is None:
            return None
        plan = self.plan(self.task)
        try:
            report = self.judge(self.task, self.tickets[plan["ticket"]]["report"], self.offline)
        except BackendError:
            return None
        if report is None:
            return None
        paid = 0.5 + 0.5 * report if plan["goals"] else report
        return paid if self.work(self.task) else 0.0
