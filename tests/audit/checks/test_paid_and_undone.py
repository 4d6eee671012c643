"""Tests of a sound desk and of five that pay refused, left-out or half-filled work or remember an episode."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.false_resolution import status_without_work
from quintain.audit.checks.reset_leak import episode_determinism, episode_isolation
from quintain.audit.checks.reward_clipping import half_filled
from quintain.audit.checks.reward_hack import refused_work
from quintain.audit.kernel.check import Check
from tests.audit.checks._found import audited

pytestmark = pytest.mark.slow

DESKS = '''
class ToolError(Exception):
    pass


def tool(name, required, *optional):
    properties = {key: {"type": "string"} for key in (*required, *optional)}
    return {"name": name, "description": name, "parameters": {
        "type": "object", "properties": properties, "required": list(required)}}


PEOPLE = ["Ada Lane", "Ben Hale", "Cara Nash", "Dana Reed", "Eva Marsh", "Finn Baker", "Gina Hart", "Hana Slate"]


class Desk:
    """Each task: write a letter to a lead, file it under three headings, and set its stage."""

    def tasks(self):
        return ["L1", "L2", "L3"]

    def tools(self):
        return [tool("find_leads", ["query"]), tool("send_letter", ["lead_id"], "text"),
                tool("file_lead", ["lead_id"], "region", "size", "source"), tool("set_stage", ["lead_id", "stage"])]

    def prompt(self, task):
        return f"Send a letter to {task}, file it (region north, size big, source fair) and set its stage to won."

    def reset(self, task, seed):
        self.task, self.letters, self.tried = task, [], []
        self.leads = {f"L{n}": {"name": f"{name} of {task}", "stage": "new"} for n, name in enumerate(PEOPLE, 1)}
        return self.prompt(task)

    def call(self, name, arguments):
        self.tried.append(name)
        if name == "find_leads":
            return self._find(arguments["query"])
        if arguments["lead_id"] not in self.leads:
            raise ToolError(f"no lead {arguments['lead_id']!r}")
        lead = self.leads[arguments["lead_id"]]
        if name == "send_letter":
            self.letters.append({"id": f"M{len(self.letters)}", "to": arguments["lead_id"]})
        elif name == "file_lead":
            lead.update({key: value for key, value in arguments.items() if key != "lead_id"})
        else:
            lead["stage"] = arguments["stage"]
        return "done"

    def _find(self, query):
        return [row["name"] for row in self.leads.values() if query in row["name"]]

    def oracle(self, task):
        fields = {"region": "north", "size": "big", "source": "fair"}
        return [["find_leads", {"query": "Ada"}], ["send_letter", {"lead_id": task, "text": "Hello"}],
                ["file_lead", {"lead_id": task, **fields}], ["set_stage", {"lead_id": task, "stage": "won"}]]

    def state(self):
        return {"leads": {key: dict(row) for key, row in self.leads.items()}, "letters": list(self.letters)}

    def parts(self):
        lead = self.leads[self.task]
        filed = sum(lead.get(key) == value for key, value in self.oracle(self.task)[2][1].items() if key != "lead_id")
        letter = any(row["to"] == self.task for row in self.letters)
        return float(letter), filed / 3, float(lead["stage"] == "won")

    def score(self):
        return sum(self.parts()) / 3


class CountsCalls(Desk):
    def score(self):
        return len({"send_letter", "file_lead", "set_stage"} & set(self.tried)) / 3


class BelievesStages(Desk):
    def score(self):
        return self.parts()[2]


class Rounds(Desk):
    def score(self):
        letter, filed, stage = self.parts()
        return (letter + round(filed) + stage) / 3


class Remembers(Desk):
    known = {}

    def call(self, name, arguments):
        if name != "find_leads":
            self.known.clear()
        return super().call(name, arguments)

    def _find(self, query):
        if query not in self.known:
            self.known[query] = super()._find(query)
        return self.known[query]


class Hashes(Desk):
    def _find(self, query):
        return list(set(super()._find(query)))
'''
CHECKS = (refused_work, status_without_work, half_filled, episode_isolation, episode_determinism)


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("desks") / "desks.py"
    path.write_text(DESKS)
    return path


def test_the_sound_desk_is_left_alone(desks: Path) -> None:
    report = audited(desks, "Desk", CHECKS)
    assert [one.title for one in report.findings if one.stops] == []


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("CountsCalls", refused_work),
        pytest.param("BelievesStages", status_without_work, marks=pytest.mark.slow),
        pytest.param("Rounds", half_filled, marks=pytest.mark.slow),
        pytest.param("Remembers", episode_isolation, marks=pytest.mark.slow),
        pytest.param("Hashes", episode_determinism, marks=pytest.mark.slow),
    ],
)
def test_paid_but_undone_work_is_proven(desks: Path, name: str, check: Check) -> None:
    report = audited(desks, name, [check])
    assert report.stops
    assert {one.class_ for one in report.findings} == {check.class_}
