"""Tests of work that is missing or forbidden and is paid: of unknown verbs, rounded away, or only said."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.reward_hack import collateral_damage, forged_result, oracle_ablation
from quintain.audit.kernel.check import Check
from tests.audit.checks._found import found

STATION = '''
TEXT = {"type": "string"}


def tool(name, **properties):
    return {"name": name, "description": "", "parameters": {
        "type": "object", "properties": properties, "required": list(properties)}}


class Sound:
    """Roll a service back and close its incident, or page an engineer; nothing else may change."""

    TASKS = {"1": ("fix", "mail"), "2": ("page", "Aiko"), "3": ("fix", "shop"), "4": ("page", "Bram")}

    def tasks(self):
        return list(self.TASKS)

    def tools(self):
        return [tool("check", service=TEXT), tool("roll_back", service=TEXT), tool("close", incident=TEXT),
                tool("page", engineer=TEXT)]

    def prompt(self, task):
        kind, name = self.TASKS[task]
        if kind == "page":
            return f"Page {name}, and do nothing else."
        return f"The service {name} is to be checked and rolled back; close incident {task}, and do nothing else."

    def reset(self, task, seed):
        self.task, self.said = task, ""
        self.world = {"services": {n: {"fault": "deploy"} for n in ("mail", "shop", "web")}, "checks": {},
                      "incidents": {n: {"status": "open"} for n in self.TASKS}, "pages": []}
        return self.prompt(task)

    def state(self):
        return self.world

    def call(self, name, arguments):
        [value] = arguments.values()
        if name == "page":
            self.world["pages"].append(value)
        elif name == "check":
            self.world["checks"][value] = self.world["services"][value]["fault"]
            return self.world["checks"][value]
        elif name == "close":
            self.world["incidents"][value]["status"] = "closed"
        else:
            self.world["services"][value]["fault"] = "none"
        return "done"

    def answer(self, text):
        self.said = text

    def oracle(self, task):
        kind, name = self.TASKS[task]
        if kind == "page":
            return [["page", {"engineer": name}]]
        return [["check", {"service": name}], ["roll_back", {"service": name}], ["close", {"incident": task}]]

    def right(self):
        kind, name = self.TASKS[self.task]
        fixed, closed = ([name], [self.task]) if kind == "fix" else ([], [])
        return fixed, closed, [name] if kind == "page" else []

    def done(self):
        services, incidents = self.world["services"], self.world["incidents"]
        return ([n for n, one in services.items() if one["fault"] == "none"],
                [n for n, one in incidents.items() if one["status"] == "closed"], self.world["pages"])

    def score(self):
        return float(self.done() == self.right())


class Trusting(Sound):
    def score(self):
        return float(self.done()[1:] == self.right()[1:])


class AnyPages(Sound):
    def score(self):
        return float(self.done()[:2] == self.right()[:2] and set(self.right()[2]) <= set(self.done()[2]))


class Reported(Sound):
    def score(self):
        return max(super().score(), float(self.TASKS[self.task][1] in self.said))
'''


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("station") / "station.py"
    path.write_text(STATION)
    return path


@pytest.mark.parametrize(
    ("name", "check", "title"),
    [
        ("Trusting", oracle_ablation, "roll_back is part of the solution, and is paid for when it is left out"),
        pytest.param(
            "AnyPages",
            collateral_damage,
            "records that have nothing to do with the task are destroyed or made",
            marks=pytest.mark.slow,
        ),
        ("Reported", forged_result, "the prompt, repeated without any call, is paid in full"),
    ],
)
def test_missing_work_that_is_paid_is_proven(station: Path, name: str, check: Check, title: str) -> None:
    [one] = found(station, name, [check])
    assert (one.confidence, one.severity) == ("proven", "error")
    assert one.title.startswith(title)


def test_check_that_a_read_remembers_may_be_left_out(station: Path) -> None:
    named = found(station, "Sound", [oracle_ablation, collateral_damage, forged_result])
    assert not [one for one in named if one.severity == "error"]
