"""Caches that are kept under too little, within a session and beyond; those that are kept under enough are silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import stale_cache as stale
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

TRIPS = '''
def tool(name, **properties):
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}

PLACE = {"type": "string", "enum": ["Bern", "Oslo", "Rome"]}
DAY = {"type": "string"}
NUMBER = {"type": "integer", "minimum": 20, "maximum": 60}

class Trips:
    """Fares that depend on where, when, how long and on the season of the task. Nothing can be seen past the tools."""

    def __init__(self):
        self.kept = {}

    def tasks(self):
        return ["spring", "fall"]

    def tools(self):
        return [tool("find_fare", source=PLACE, target=PLACE, day=DAY, weight=NUMBER), tool("measure", weight=NUMBER)]

    def reset(self, task, seed):
        self.task, self.said = task, None
        return f"Tell the fare from Bern to Rome in {task}."

    def call(self, name, arguments):
        return getattr(self, name)(**arguments)

    def key(self, *given):
        return (self.task, *given)

    def find_fare(self, source, target, day, weight):
        key = self.key(source, target, day, weight)
        if key not in self.kept:
            base = 100 * PLACE["enum"].index(source) + 7 * PLACE["enum"].index(target) + len(self.task)
            self.kept[key] = {"fare": base + weight, "day": day}
        return dict(self.kept[key])

    def measure(self, weight):
        return {"grams": weight * len(self.task)}

    def score(self):
        return 0.0

    def oracle(self, task):
        return [["find_fare", {"source": "Bern", "target": "Rome", "day": "Monday", "weight": 30}],
                ["measure", {"weight": 25}]]

class WithoutWeight(Trips):
    def key(self, source, target, day, weight):
        return self.task, source, target, day

class EitherWay(Trips):
    def key(self, source, target, day, weight):
        return self.task, *sorted([source, target]), day, weight

class AllYear(Trips):
    def key(self, *given):
        return given

class Measured(Trips):
    def measure(self, weight):
        if weight not in self.kept:
            self.kept[weight] = super().measure(weight)
        return dict(self.kept[weight])
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trips") / "trips.py"
    path.write_text(TRIPS, "utf-8")
    return path


def _audited(file: Path, factory: str) -> Report:
    return audit(Subject(f"{file}:{factory}"), [stale.cache_keys, stale.cache_sessions])


def test_a_cache_under_all_that_counts_is_let_alone(file: Path) -> None:
    report = _audited(file, "Trips")
    assert report.findings == ()
    assert {one.status for one in report.checks} == {"checked"}


@pytest.mark.parametrize(
    ("factory", "title"),
    [
        ("WithoutWeight", "find_fare gives the answer that it gave with other arguments"),
        ("EitherWay", "find_fare gives the answer that it gave with other arguments"),
        ("AllYear", "find_fare gives the answer that it gave in another task"),
        ("Measured", "measure gives the answer that it gave in another task"),
    ],
)
def test_a_key_that_leaves_something_out_is_proven(file: Path, factory: str, title: str) -> None:
    found = _audited(file, factory).findings
    assert {(one.title, one.severity, one.confidence) for one in found} == {(title, "error", "proven")}
    assert [line["do"] for line in found[0].trajectory if line["do"] != "reset"] == ["call", "call"]
