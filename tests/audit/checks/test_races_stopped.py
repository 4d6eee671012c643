"""Tests of calls paused while another runs: interference is reported, isolation is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import races
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

TILLS = '''
import threading

TEXT = {"type": "string"}

def tool(name, *required):
    return {"name": name, "parameters": {"type": "object", "properties": {one: TEXT for one in required},
                                         "required": list(required)}}

class Till:
    """A till that several may use at once: one lock around everything."""

    shared = True

    def __init__(self):
        self.lock = threading.RLock()

    def tasks(self):
        return ["apple", "bread", "candle"]

    def tools(self):
        return [tool("sell", "item"), tool("get_sum")]

    def reset(self, task, seed):
        with self.lock:
            self.task, self.sold = task, []
            return f"Sell one {task}."

    def call(self, name, arguments):
        with self.lock:
            if name == "get_sum":
                return {"sold": len(self.sold)}
            self.sold.append(arguments["item"])
            return {"ok": True}

    def state(self):
        return {"sold": list(self.sold)}

    def score(self):
        with self.lock:
            return float(self.sold == [self.wanted(self.task)])

    def wanted(self, task):
        return task

    def oracle(self, task):
        return [["get_sum", {}], ["sell", {"item": task}]]

class OneDesk(Till):
    shared = False
    desk = [""]

    def wanted(self, task):
        self.desk[0] = task
        found = str(self.desk[0])
        return found

class OneCustomer(Till):
    """Whoever has looked stands at the till until something is sold, whichever session that is."""

    shared = False
    there = {}

    def reset(self, task, seed):
        self.there.clear()
        return super().reset(task, seed)

    def call(self, name, arguments):
        if self.there.setdefault(self.task, self) is not self:
            return {"error": "somebody else is being served"}
        answer = super().call(name, arguments)
        if name == "sell":
            self.there.pop(self.task)
        return answer

class Busy(Till):
    def score(self):
        if not self.lock.acquire(timeout=0.002):
            return 0.0
        try:
            return super().score()
        finally:
            self.lock.release()

class SaysBusy(Till):
    def call(self, name, arguments):
        if not self.lock.acquire(timeout=0.002):
            return {"error": "somebody else is at the till; try again"}
        try:
            return super().call(name, arguments)
        finally:
            self.lock.release()
'''


@pytest.fixture(scope="module")
def tills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tills") / "tills.py"
    path.write_text(TILLS, "utf-8")
    return path


def _audited(tills: Path, factory: str, check: Check = races.stopped_midway) -> Report:
    return audit(Subject(f"{tills}:{factory}"), [check])


@pytest.mark.parametrize("factory", ["Till", pytest.param("SaysBusy", marks=pytest.mark.slow)])
def test_no_finding_for_isolated_or_busy_sessions(tills: Path, factory: str) -> None:
    report = _audited(tills, factory)
    assert report.findings == ()
    assert [one.status for one in report.checks] == ["checked"]


@pytest.mark.parametrize(
    ("factory", "title"),
    [
        ("OneDesk", "score() gives something else while a call of another session stands still"),
        pytest.param("Busy", "score() gives something else while", marks=pytest.mark.slow),
    ],
)
def test_interleaving_within_a_call_is_proven(tills: Path, factory: str, title: str) -> None:
    (found,) = _audited(tills, factory).findings
    assert found.title.startswith(title)
    assert (found.severity, found.confidence) == ("error", "proven")


@pytest.mark.slow
def test_sessions_in_step_do_not_change_each_other(tills: Path) -> None:
    (found,) = _audited(tills, "OneCustomer", races.concurrent_sessions).findings
    assert found.title == "get_sum gives something else when another session does the same task in step"
    assert (found.severity, found.confidence) == ("error", "proven")
    assert _audited(tills, "Till", races.concurrent_sessions).findings == ()
