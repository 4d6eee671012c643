"""Faults that become answers and rewards are found, tool by tool; the same subject that says so is left in peace."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import silent_default
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject
from tests.audit.checks._found import once

SHOP = '''
class ToolError(Exception):
    pass

class Shop:
    """Stock of a shop; `find`, `sell` and the verdict use a backend."""

    swallows = ()

    def tasks(self):
        return ["sell pens", "sell ink"]

    def tools(self):
        one = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
        limited = {"type": "object", "properties": {"word": {"type": "string"}, "limit": {"type": "integer"}},
                   "required": ["word"]}
        return [{"name": "find", "parameters": limited}, {"name": "sell", "parameters": one},
                {"name": "price", "parameters": one}, {"name": "shelf", "parameters": one},
                {"name": "hours", "parameters": {"type": "object", "properties": {}}}]

    def reset(self, task, seed):
        if task not in self.tasks():
            raise ValueError(f"no task {task!r}")
        self.goal = task.split()[1]
        self.stock = {"pens": 5, "ink": 3, "paper": 7}
        self.known = {}
        self.fault = ""
        return f"Sell one of {self.goal}, nothing else."

    def inject(self, fault):
        if fault == "disk_full":
            raise ValueError("the disk is missing")
        self.fault = fault

    def backend(self):
        fault, self.fault = self.fault, ""
        if fault:
            raise ToolError(f"the backend: {fault}")

    def call(self, name, arguments):
        done = getattr(self, f"_{name}", None)
        schema = next((one["parameters"] for one in self.tools() if one["name"] == name), None)
        if done is None or schema is None:
            return {"error": f"no tool {name}"}
        wrong = [key for key in arguments if key not in schema["properties"]]
        lacking = [key for key in schema.get("required", []) if key not in arguments]
        if wrong or lacking:
            return {"error": f"unknown {wrong}, missing {lacking}"}
        return done(**arguments)

    def _find(self, word, limit=10):
        if "find" in self.swallows:
            try:
                self.backend()
            except Exception:
                return []
        self.backend()
        return [name for name in sorted(self.stock) if word in name][:limit]

    def _sell(self, item):
        if "sell" in self.swallows:
            try:
                self.backend()
            except ToolError:
                return {"sold": item}
        self.backend()
        if item not in self.stock:
            return {"error": f"no {item}"}
        self.stock[item] -= 1
        return {"sold": item}

    def _price(self, item):
        if item not in self.known:
            try:
                self.backend()
                self.known[item] = len(item)
            except ToolError:
                if "price" in self.swallows:
                    self.known[item] = 0
                raise
        return {"price": self.known[item]}

    def _shelf(self, item):
        try:
            self.backend()
        except ToolError:
            return {"shelf": None, "warning": "the shelf service is down"}
        return {"shelf": f"{item}-7"}

    def _hours(self):
        return "9 to 5"

    def score(self):
        sold = self.stock[self.goal] == {"pens": 5, "ink": 3}[self.goal] - 1
        try:
            self.backend()
            kept = self.stock["paper"] == 7
        except ToolError:
            if "score" not in self.swallows:
                return None
            kept = True
        return {"score": float(sold and kept), "sold": float(sold)}

    def oracle(self, task):
        return [["find", {"word": task.split()[1]}], ["sell", {"item": task.split()[1]}]]

    def state(self):
        return {"stock": dict(self.stock)}

class Swallowing(Shop):
    swallows = ("find", "sell", "price", "score")

class Careless(Shop):
    budget = 20

    def reset(self, task, seed):
        return super().reset(task if task in self.tasks() else "sell pens", seed)

    def call(self, name, arguments):
        schema = next(one["parameters"] for one in self.tools() if one["name"] == name)
        known = {key: value for key, value in arguments.items() if key in schema["properties"]}
        return super().call(name, known)
'''


def _audited(folder: Path, factory: str) -> Report:
    path = folder / "shop.py"
    path.write_text(SHOP, "utf-8")
    return audit(Subject(f"{path}:{factory}"), checks_of(silent_default))


@pytest.fixture(scope="module")
def swallowing(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return once(tmp_path_factory, "swallowing", lambda folder: _audited(folder, "Swallowing"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return once(tmp_path_factory, "not_swallowing", lambda folder: _audited(folder, "Shop"))


def _of(report: Report, check: str) -> list[Finding]:
    return [one for one in report.findings if one.check == check]


def _one(report: Report, check: str, word: str) -> Finding:
    found = [one for one in _of(report, check) if word in one.title]
    assert len(found) == 1, [one.title for one in report.findings]
    return found[0]


def test_a_fault_that_becomes_an_answer_is_proven(swallowing: Report) -> None:
    found = _one(swallowing, "x.tool_faults", "find gives an ordinary answer")
    assert (found.class_, found.part, found.severity, found.confidence) == ("silent_default", "S", "error", "proven")
    assert found.observed["answer"] == []
    assert "timeout" in found.observed["faults"]
    assert "disk_full" not in found.observed["faults"]
    assert [line["do"] for line in found.trajectory] == ["reset", "inject", "call", "call"]


def test_a_write_that_is_said_and_not_done_is_proven(swallowing: Report) -> None:
    found = _one(swallowing, "x.tool_faults", "sell says that it is done")
    assert found.confidence == "proven"
    assert all(path.startswith("stock/") for path in found.observed["missing"])


def test_a_wrong_answer_that_a_fault_leaves_behind_is_proven(swallowing: Report) -> None:
    found = _one(swallowing, "x.tool_faults", "price goes on giving a wrong answer")
    assert (found.confidence, found.observed["answer"]) == ("proven", {"price": 0})


def test_a_criterion_that_counts_as_held_shows_on_a_damaged_world(swallowing: Report) -> None:
    found = _one(swallowing, "x.verifier_faults", "damaged")
    assert (found.part, found.confidence) == ("V", "proven")
    assert found.observed["score"]["score"] > found.expected["without the fault"]["score"]


def test_no_finding_when_faults_are_reported_as_errors(sound: Report) -> None:
    assert [one for one in sound.findings if one.confidence != "hint"] == []
    checked = {one.check: one for one in sound.checks}
    assert checked["x.tool_faults"].looked == 6 * 8
    assert all(checked[name].status == "checked" for name in ("x.tool_faults", "x.verifier_faults"))


def test_careless_limits_are_no_more_than_likely(tmp_path: Path) -> None:
    report = _audited(tmp_path, "Careless")
    found = {one.check for one in report.findings if one.confidence == "likely" and one.severity == "warning"}
    assert found == {"x.unknown_tasks", "x.unknown_parameters", "x.budget_is_kept"}
    assert not any(one.confidence == "proven" for one in report.findings)
