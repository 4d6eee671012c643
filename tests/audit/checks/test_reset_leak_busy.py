"""On a busy machine time passes in the midst of an episode: nothing that leaks is missed for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import reset_leak as reset
from quintain.audit.kernel.child import WorkerPool
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.probe import Op, Probe, call
from quintain.audit.kernel.probe import reset as begin

SUBJECTS = """
import os, subprocess, threading, time
from pathlib import Path

ISBN = {"type": "string", "enum": ["978-0", "978-1"]}


def tool(name, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "parameters": parameters}


class Behind:
    "What an episode has asked for is done in the background, a tenth of a second after the next one has begun."

    def __init__(self):
        self.begun, self.fines, self.waits = threading.Event(), 0, False

    def tasks(self):
        return ["hold-0", "hold-1"]

    def tools(self):
        return [tool("get_book", isbn=ISBN), tool("hold", isbn=ISBN)]

    def reset(self, task, seed):
        before, self.begun = self.begun, threading.Event()
        self.late, self.waits, self.calls = self.waits, False, 0
        self.task, self.fines, self.holds = task, 0, []
        before.set()
        return task

    def call(self, name, arguments):
        self.calls += 1
        return getattr(self, name)(**arguments)

    def get_book(self, isbn):
        return {"isbn": isbn, "fines": self.fines}

    def hold(self, isbn):
        self.holds.append(isbn)
        self.waits = True
        threading.Thread(target=self.send, args=(self.begun,), daemon=True).start()
        return {"ok": True}

    def send(self, begun):
        begun.wait()
        time.sleep(0.1)
        self.fines += 1

    def score(self):
        return float(self.holds == [self.task.replace("hold", "978")])

    def oracle(self, task):
        return [["hold", {"isbn": task.replace("hold", "978")}]]


class Held(Behind):
    "The machine does something else for a while, once."
    at = 0

    def call(self, name, arguments):
        if self.late and self.calls == self.at and not (held := Path(__file__).with_name("held")).exists():
            held.touch()
            time.sleep(0.3)
        return super().call(name, arguments)


class Early(Held):
    at = 0


class Late(Held):
    at = 6


class Slow(Behind):
    "Every call takes its time, so that much is done before an episode has come far."

    def call(self, name, arguments):
        time.sleep(0.02)
        return super().call(name, arguments)


class Stopped(Behind):
    "The machine stops in the midst of a pause, and what is done in the background has two parts."

    def reset(self, task, seed):
        if self.waits:
            stops = f"sleep 0.03; kill -STOP {os.getpid()}; sleep 0.6; kill -CONT {os.getpid()}"
            subprocess.Popen(["sh", "-c", stops], start_new_session=True)
        return super().reset(task, seed)

    def send(self, begun):
        begun.wait()
        time.sleep(0.05)
        time.sleep(0.05)
        self.fines += 1
"""


@pytest.fixture
def subjects(tmp_path: Path) -> Path:
    path = tmp_path / "subjects.py"
    path.write_text(SUBJECTS, "utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Behind", "Early", "Late", "Slow"])
def test_delayed_leak_is_found_on_a_busy_machine(subjects: Path, name: str) -> None:
    report = audit(Subject(f"{subjects}:{name}"), [reset.episode_isolation])
    (finding,) = report.findings
    assert finding.title.startswith("get_book: fines is another one a moment after ")
    assert (finding.confidence, finding.severity) == ("proven", "error")
    assert len(finding.trajectory) <= 6
    assert (subjects.parent / "held").exists() == (name in ("Early", "Late"))


def test_a_machine_that_stops_in_a_pause_does_not_cut_it_short(subjects: Path) -> None:
    ops = (begin("hold-0"), call("hold", {"isbn": "978-0"}), begin("hold-0"), Op("wait", value=0.3))
    pool = WorkerPool(Subject(f"{subjects}:Stopped"))
    try:
        record = pool.fresh([Probe((*ops, call("get_book", {"isbn": "978-0"}, mark="book")))], 30.0)[0]
    finally:
        pool.close()
    assert record.at("book").value == {"isbn": "978-0", "fines": 1}
