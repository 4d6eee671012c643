"""Lists that begin with what a task needs, and lists that are in an order of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, audit
from quintain.audit.checks import leak
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

CHECKS = [one for one in checks_of(leak) if one.id == "x.order_tells_nothing"]
SHELVES = '''
import random


def tool(name, **properties):
    return {"name": name, "description": name,
            "parameters": {"type": "object", "properties": properties, "required": list(properties)}}


class Shuffled:
    """The order hangs on the seed alone."""

    def tasks(self):
        return [f"t{n}" for n in range(6)]

    def tools(self):
        return [tool("list_jars"), tool("open_jar", jar_id={"type": "string"})]

    def wanted(self, task):
        return {f"J{(int(task[1:]) * 5 + n) % 20:02d}" for n in (3, 8)}

    def order(self, jars, task, seed):
        return jars

    def reset(self, task, seed):
        self.task = task
        jars = [{"id": f"J{n:02d}", "made": 100 + n} for n in range(20)]
        random.Random(f"{task} {seed}").shuffle(jars)
        self.jars, self.open = self.order(jars, task, seed), []
        return "Open the two jars that smell of mint."

    def call(self, name, arguments):
        if name == "list_jars":
            return {"jars": [{"id": one["id"]} for one in self.jars]}
        if arguments.get("jar_id") not in [one["id"] for one in self.jars]:
            return {"error": "no such jar"}
        self.open.append(arguments["jar_id"])
        return {"ok": True}

    def state(self):
        return {"jars": [dict(one) for one in self.jars], "open": list(self.open)}

    def oracle(self, task):
        return [["list_jars", {}], *(["open_jar", {"jar_id": one}] for one in sorted(self.wanted(task)))]

    def score(self):
        return float({*self.open} == self.wanted(self.task))


class Newest(Shuffled):
    """What is wanted was made last, and the world says so: the list is newest first."""

    def order(self, jars, task, seed):
        for one in jars:
            one["made"] += 1000 * (one["id"] in self.wanted(task))
        return sorted(jars, key=lambda one: -one["made"])


class Built(Shuffled):
    """What the task needs was put there first, and the rest behind it."""

    def order(self, jars, task, seed):
        return sorted(jars, key=lambda one: one["id"] not in self.wanted(task))


class Last(Shuffled):
    def order(self, jars, task, seed):
        return sorted(jars, key=lambda one: one["id"] in self.wanted(task))
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shelves") / "shelves.py"
    path.write_text(SHELVES, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("Shuffled", ""),
        pytest.param("Newest", "", marks=pytest.mark.slow),
        pytest.param("Built", "first", marks=pytest.mark.slow),
        ("Last", "last"),
    ],
)
def test_an_order_that_tells_the_answer_is_found(file: Path, name: str, end: str) -> None:
    report = audit(Subject(f"{file}:{name}"), CHECKS)
    assert not [one for one in report.checks if one.reason.startswith(BROKE)]
    assert [one.status for one in report.checks] == ["checked"]
    title = f"list_jars shows {end} what the task needs, in each task, and orders its rows by nothing else"
    assert [one.title for one in report.findings] == ([title] if end else [])
    assert {(one.confidence, one.severity) for one in report.findings} <= {("proven", "error")}
