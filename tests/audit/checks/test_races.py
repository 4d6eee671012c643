"""Crashes, half-done writes, races and leaks are found where they are; the sound shop next door is left in peace."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import races
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject
from tests.audit.checks._found import once

BANK = '''
import os
import subprocess
import threading

class ToolError(Exception):
    pass

class Bank:
    """Accounts, and money that moves between them."""

    shared = True

    def __init__(self):
        self.lock = threading.Lock()

    def tasks(self):
        return ["move 1", "move 2", "move 3"]

    def tools(self):
        name, number = {"type": "string"}, {"type": "number"}
        two = {"type": "object", "properties": {"source": name, "target": name, "amount": number},
               "required": ["source", "target", "amount"], "additionalProperties": False}
        one = {"type": "object", "properties": {"name": name}, "required": ["name"], "additionalProperties": False}
        return [{"name": "move", "parameters": two}, {"name": "balance", "parameters": one}]

    def reset(self, task, seed):
        self.task = task
        self.amount = int(task.split()[1])
        self.accounts = {"ann": 100, "ben": 100, "cem": 100}
        return f"Move {self.amount} from ann to ben."

    def call(self, name, arguments):
        schema = {one["name"]: one["parameters"] for one in self.tools()}.get(name)
        if schema is None:
            return {"error": f"no tool {name!r}"}
        for key, rule in schema["properties"].items():
            kind = str if rule["type"] == "string" else (int, float)
            if not isinstance(arguments.get(key), kind) or isinstance(arguments.get(key), bool):
                return {"error": f"{key} must be a {rule['type']}"}
        if set(arguments) != set(schema["properties"]):
            return {"error": "too many parameters"}
        return getattr(self, name)(**arguments)

    def read(self, name):
        return self.accounts[name]

    def write(self, name, value):
        self.accounts[name] = value

    def move(self, source, target, amount):
        if source not in self.accounts or target not in self.accounts:
            return {"error": "no such account"}
        if not 0 < amount <= 1000:
            return {"error": "amount must be above 0 and at most 1000"}
        with self.lock:
            self.write(source, self.read(source) - amount)
            self.write(target, self.read(target) + amount)
        return {"moved": amount}

    def balance(self, name):
        if name not in self.accounts:
            return {"error": "no such account"}
        return {"balance": self.read(name)}

    def answer(self, text):
        self.said = text

    def score(self):
        return float(self.accounts["ben"] == 100 + self.amount)

    def oracle(self, task):
        return [["balance", {"name": "ann"}], ["move", {"source": "ann", "target": "ben", "amount": int(task[-1])}]]

    def state(self):
        return {"accounts": dict(self.accounts)}

    def close(self):
        pass

class Fragile(Bank):
    """Breaks on what it should refuse."""

    said = ""

    def balance(self, name):
        return {"balance": self.accounts[name]}

    def move(self, source, target, amount):
        if source in self.accounts:
            self.accounts[source] -= amount
        if target not in self.accounts:
            return {"error": "no such account"}
        self.accounts[target] += amount
        return {"moved": amount}

    def score(self):
        if "{" in self.said:
            self.said.format()
        return super().score()

class NoLock:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass

class Racing(Bank):
    """Threads lose each other's money."""

    def __init__(self):
        self.lock = NoLock()

CURRENT = []

class Mixed(Bank):
    """Sessions share what they should not."""

    def reset(self, task, seed):
        CURRENT[:] = [task]
        return super().reset(task, seed)

    def move(self, source, target, amount):
        for _ in range(50):
            self.read(source)
        return {**super().move(source, target, amount), "task": CURRENT[0]}

HELD = []

class Leaking(Bank):
    """Files, threads and children stay behind."""

    def reset(self, task, seed):
        HELD.append(open("/dev/null"))
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        return super().reset(task, seed)

    def close(self):
        HELD.clear()

class Spawning(Bank):
    """A helper process outlives its session."""

    def __init__(self):
        super().__init__()
        self.helper = None

    def reset(self, task, seed):
        if self.helper is None:
            self.helper = subprocess.Popen(["sleep", "1000"])
        return super().reset(task, seed)
'''


def _audited(folder: Path, factory: str, *ids: str) -> Report:
    path = folder / "bank.py"
    path.write_text(BANK, "utf-8")
    checks = [one for one in checks_of(races) if not ids or one.id in ids]
    return audit(Subject(f"{path}:{factory}"), checks)


def _of(report: Report, check: str) -> list[Finding]:
    assert all(one.status == "checked" for one in report.checks), [(one.check, one.reason) for one in report.checks]
    return [one for one in report.findings if one.check == check]


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Report:
    wanted = ("x.odd_calls", "x.odd_answers")
    return once(tmp_path_factory, "fragile", lambda folder: _audited(folder, "Fragile", *wanted))


def test_a_sound_subject_is_left_in_peace(tmp_path: Path) -> None:
    report = _audited(tmp_path, "Bank")
    assert {one.status for one in report.checks} == {"checked"}
    assert report.findings == ()


def test_a_call_that_the_schema_allows_and_that_breaks_is_an_error(fragile: Report) -> None:
    found = next(one for one in _of(fragile, "x.odd_calls") if "schema allows" in one.title)
    assert (found.class_, found.part, found.severity, found.confidence) == ("races", "S", "error", "proven")
    assert [line["do"] for line in found.trajectory] == ["reset", "call"]
    assert "bank.py:" in found.where


def test_words_that_break_the_verdict_are_an_error(fragile: Report) -> None:
    found = _of(fragile, "x.odd_answers")
    assert {(one.part, one.severity, one.confidence) for one in found} == {("V", "error", "proven")}
    assert all("score() breaks" in one.title for one in found)


def test_lost_updates_are_proven(tmp_path: Path) -> None:
    found = _of(_audited(tmp_path, "Racing", "x.linearizable"), "x.linearizable")
    assert {(one.part, one.severity, one.confidence) for one in found} == {("S", "error", "proven")}
    assert "world" in found[0].expected


@pytest.mark.slow
def test_sessions_that_mix_are_proven(tmp_path: Path) -> None:
    (found,) = _of(_audited(tmp_path, "Mixed", "x.concurrent_sessions"), "x.concurrent_sessions")
    assert (found.severity, found.confidence) == ("error", "proven")
    assert found.expected["task"] != found.observed["task"]


@pytest.mark.slow
def test_resource_growth_per_episode_is_proven(tmp_path: Path) -> None:
    found = _of(_audited(tmp_path, "Leaking", "x.resources"), "x.resources")
    assert {one.title.split()[2] for one in found if one.confidence == "proven"} >= {"leaves"}
    assert {what for one in found for what in ("threads", "files") if what in one.title} == {"threads", "files"}


@pytest.mark.slow
def test_processes_that_are_left_are_proven(tmp_path: Path) -> None:
    found = _of(_audited(tmp_path, "Spawning", "x.resources"), "x.resources")
    assert any("processes" in one.title and one.confidence == "proven" for one in found)
