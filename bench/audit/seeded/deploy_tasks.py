"""Tasks of the operations desk of `deploy.py`: five kinds of tickets, each with its platform and report."""

from __future__ import annotations

import copy
import random
from typing import Any

from . import platform_data as data
from .common import World, fresh, name_of, rng
from .platform_data import CAST, stamp

Data = Any
Row = dict[str, Data]
BREAKABLE = ("timeout_ms", "pool_size", "heap_mb")
LINES = {
    "repair": ("Service", "Setting", "Value", "Change"),
    "rollback": ("Service", "From", "To", "Change"),
    "scale": ("Service", "Replicas", "Taken", "Free"),
    "upgrade": ("Service", "From", "To", "Until"),
    "outage": ("Service", "Change", "Started", "Minutes"),
}


class Tickets(World):
    """Tasks of the operations desk."""

    def tasks(self) -> list[str]:
        return [f"{kind}-{number}" for number in range(5) for kind in LINES]

    def plan(self, task: str) -> Row:
        """The platform of a task and what is wanted of it, the same under every seed."""
        if task not in self.tasks():
            raise LookupError(f"no such task: {task!r}")
        kind, _, number = task.partition("-")
        dice, taken = rng("deploy", task), set[str]()
        services, releases = data.platform(dice)
        plan: Row = {"services": services, "releases": releases, "changes": [], "windows": [], "goals": {}, "facts": []}
        plan["keys"] = [fresh(dice, "C", taken) for _ in range(3)]
        plan |= {"ticket": fresh(dice, "T", taken), "taken": taken, "by": name_of(dice)}
        slack = {team: 1024 * dice.randrange(1, 6) for _, team, _, _ in CAST}
        shapes = {"repair": self.broken, "outage": self.broken, "rollback": self.bad, "scale": self.small}
        shapes.get(kind, self.old)(plan, dice, kind, number=int(number))
        slack |= plan.get("slack", {})
        plan["teams"] = {
            team: {"name": team, "quota_mb": data.used_mb(team, services) + slack[team]} for team in sorted(slack)
        }
        return plan

    def broken(self, plan: Row, dice: random.Random, kind: str, *, number: int) -> None:
        """A setting was changed and harmed; in an outage it was put back."""
        front = dice.choice(("web", "checkout", "payouts", "basket"))
        name = dice.choice([one for one in data.below(front) if data.STANDS_ON[one]])
        row, setting = plan["services"][name], BREAKABLE[number % 3]
        good, harmless = row["config"][setting], BREAKABLE[(number + 1) % 3]
        bad = {
            "timeout_ms": dice.randrange(2, 15),
            "pool_size": data.CONNECTIONS // row["replicas"] + dice.randrange(20, 400),
            "heap_mb": row["memory_mb"] + dice.choice((128, 512)),
        }[setting]
        minutes, started = dice.randrange(7, 240), -dice.randrange(300, 60 * 65)
        if kind == "repair":
            row["config"][setting] = row["running"][setting] = bad
        keys, here = plan["keys"], row["config"][harmless]
        events = [(started, f"{setting}: {good} -> {bad}"), (started - 97, f"{harmless}: {here - here // 5} -> {here}")]
        if kind == "outage":
            events.append((started + minutes, f"{setting}: {bad} -> {good}"))
        for key, (at, what) in zip(keys, events, strict=False):
            plan["changes"].append(data.change(key, at, name, what=what, by=name_of(dice)))
        plan |= {"front": front, "service": name, "facts": [name, keys[0], stamp(started), str(minutes)]}
        if kind == "repair":
            plan["goals"] = {f"{name} config {setting}": good, f"{name} running {setting}": good}
            plan |= {"calls": [["set_config", {"service": name, "setting": setting, "value": str(good)}]]}
            plan["calls"].append(["deploy", {"service": name, "version": row["version"]}])
            plan["facts"] = [name, setting, str(good), keys[0]]

    def bad(self, plan: Row, dice: random.Random, _: str, *, number: int) -> None:
        """The last release is bad, and not every earlier one will do."""
        name = ("identity", "search", "payments", "checkout", "prices")[number]
        releases, wanted = plan["releases"][name], dice.choice((1, 2))
        releases[-1] |= {"errors_percent": round(dice.uniform(2, 30), 1), "released_at": stamp(-60 * 80)}
        releases[3]["withdrawn"] = True
        if wanted == 1:
            releases[2]["schema"] += 1
        last, version, key = releases[-1]["version"], releases[wanted]["version"], plan["keys"][0]
        what = f"release: {releases[3]['version']} -> {last}"
        plan["changes"] = [data.change(key, -dice.randrange(40, 60 * 60), name, what=what, by=name_of(dice))]
        plan |= {"front": name, "service": name, "facts": [name, last, version, key]}
        plan |= {"goals": {f"{name} version": version}, "calls": [["deploy", {"service": name, "version": version}]]}

    def small(self, plan: Row, dice: random.Random, _: str, *, number: int) -> None:
        """A service needs replicas that the quota does not hold unless another one gives some."""
        pairs = (("web", "search"), ("payments", "payouts"), ("basket", "catalogue"), ("sessions", "identity"))
        name, giver = (*pairs, ("prices", "basket"))[number]
        row, other = plan["services"][name], plan["services"][giver]
        need = row["replicas"] + dice.randrange(3, 8)
        more = (need - row["replicas"]) * row["memory_mb"]
        slack = dice.randrange(more // 2)
        taken = -(-(more - slack) // other["memory_mb"])
        left = -(-other["load_rps"] // other["capacity_rps"]) + dice.randrange(1, 3)
        other["replicas"] = left + taken
        for one in (row, other):
            one["config"]["pool_size"] = one["running"]["pool_size"] = 5
        free = slack - more + taken * other["memory_mb"]
        plan |= {"front": name, "service": name, "facts": [name, str(need), str(taken), str(free)]}
        plan |= {"giver": giver, "peak": need * row["capacity_rps"] - dice.randrange(row["capacity_rps"])}
        plan |= {"slack": {row["team"]: slack}, "goals": {f"{name} replicas": need, f"{giver} replicas": left}}
        plan["calls"] = [["scale", {"service": one, "replicas": to}] for one, to in ((giver, left), (name, need))]

    def old(self, plan: Row, dice: random.Random, _: str, *, number: int) -> None:
        """A release is ready, and a window for it agreed."""
        name = ("ledger-db", "identity", "payouts", "checkout", "web")[number]
        row, start, minutes = plan["services"][name], 15 * dice.randrange(8, 60), dice.choice((30, 60, 90))
        major, minor, _patch = row["version"].split(".")
        version = f"{major}.{int(minor) + 1}.0"
        plan["releases"][name].append(data.release(dice, version, 1, row["schema"]))
        window = {"service": name, "start": stamp(start), "end": stamp(start + minutes)}
        plan |= {"front": name, "service": name, "facts": [name, row["version"], version, window["end"]]}
        plan |= {"windows": [window], "minutes": minutes}
        plan["goals"] = {f"{name} version": version, f"window {name} {window['start']} {window['end']}": True}
        plan["calls"] = [
            ["schedule_window", {"service": name, "start": window["start"], "minutes": minutes}],
            ["wait", {"minutes": start + 5}],
            ["deploy", {"service": name, "version": version}],
        ]

    def prompt(self, task: str) -> str:
        plan, kind = self.plan(task), task.partition("-")[0]
        name, lines = plan["service"], "; ".join(f"{one}: ..." for one in LINES[kind])
        asked = {
            "repair": f"{plan['front']} is not healthy. A change of a setting in a service that it stands on, "
            "directly or by way of others, is the cause. Put that setting back to what it was, and roll out the "
            "release that runs there. Value is what it is put back to, Change the id of the change that did the harm.",
            "rollback": f"{name} fails since its last release. Roll out the newest earlier release that is not "
            "withdrawn and has the schema of the service. Change is the id of the change that brought the bad release.",
            "scale": f"{name} will get {plan.get('peak')} requests/s tomorrow. Give it the fewest replicas that carry "
            f"them. Take from {plan.get('giver')} as many replicas as the team's quota makes necessary and no more. "
            "Taken is how many that are, Free how many MB of the quota are free in the end.",
            "upgrade": f"Roll out release {plan['facts'][2]} of {name} in a maintenance window of "
            f"{plan.get('minutes')} minutes from {(plan['windows'] or [{}])[0].get('start')}. Until is the window's "
            "end.",
            "outage": f"An outage of {plan['front']} is over: a setting of a service that it stands on, directly or by "
            "way of others, was changed and later put back. Change nothing. Change is the id of the change that did "
            "the harm, Started its time as the log has it, Minutes how long it took until the setting was put back.",
        }[kind]
        return (
            f"{asked} Leave all else as it is. Close ticket {plan['ticket']} with a report of these four lines, each "
            f"once: {lines}. Write numbers as digits alone."
        )

    def report(self, task: str) -> str:
        kind = task.partition("-")[0]
        return "\n".join(f"{line}: {fact}" for line, fact in zip(LINES[kind], self.plan(task)["facts"], strict=True))

    def hidden(self, task: str) -> Row:
        return {"rubric": self.rubric(task)}

    def oracle(self, task: str) -> list[list[Data]] | None:
        plan = self.plan(task)
        looks: list[list[Data]] = [["get_ticket", {"ticket_id": plan["ticket"]}], ["list_services", {}]]
        looks += [["get_service", {"service": name}] for name in dict.fromkeys((plan["front"], plan["service"]))]
        if task.startswith(("repair", "rollback", "outage")):
            looks.append(["list_changes", {"service": plan["service"]}])
        if task.startswith(("rollback", "upgrade")):
            looks.append(["list_releases", {"service": plan["service"]}])
        if task.startswith("scale"):
            looks.append(["get_service", {"service": plan["giver"]}])
        closing = ["close_ticket", {"ticket_id": plan["ticket"], "report": self.report(task)}]
        return [*looks, *plan.get("calls", []), closing]

    def rubric(self, task: str) -> str:
        lines = zip(LINES[task.partition("-")[0]], self.plan(task)["facts"], strict=True)
        return (
            "One point for each of these lines that stands in the report once: "
            + ", ".join(map(": ".join, lines))
            + "."
        )

    def production(self) -> Row:
        rows: dict[str, list[Row]] = {"services": [], "changes": [], "tickets": []}
        for number in range(6):
            dice, taken = rng("deploy", "production", number), set[str]()
            services, _ = data.platform(dice)
            rows["services"] += services.values()
            rows["changes"] += data.log(dice, services, taken)
            rows["tickets"] += data.tickets(dice, taken)
        calls: list[list[Data]] = [["get_ticket", {"ticket_id": "T1"}, {"error": "no such ticket: T1"}]]
        calls.append(["get_service", {"service": "mainframe"}, {"error": "no such service: mainframe"}])
        return {"tools": copy.deepcopy(list(self.TOOLS)), "data": rows, "calls": calls}
