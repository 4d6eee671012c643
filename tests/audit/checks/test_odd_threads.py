"""Half a character in a text, a session in thread after thread, a language that is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import flaky_verifier, races, reset_leak
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

NOTES = '''
import os
import subprocess
import threading

TEXT = {"type": "string", "maxLength": 40}

class Notes:
    """A pad on which one word is to be written."""

    def tasks(self):
        return ["blue", "green"]

    def tools(self):
        return [{"name": "write", "parameters": {"type": "object", "properties": {"text": TEXT}, "required": ["text"]}},
                {"name": "read", "parameters": {"type": "object", "properties": {}}}]

    def reset(self, task, seed):
        self.task, self.lines = task, []
        self.begun(task)
        return f"Write {task}."

    def begun(self, task):
        pass

    def call(self, name, arguments):
        if name == "read":
            return {"lines": list(self.lines)}
        text = arguments["text"]
        if any("\\ud800" <= letter <= "\\udfff" for letter in text):
            return {"error": "that is not a text"}
        return self.write(text)

    def write(self, text):
        self.lines.append(text)
        return {"ok": True}

    def score(self):
        return float(self.wanted() in self.lines)

    def wanted(self):
        return self.task

    def oracle(self, task):
        return [["write", {"text": task}]]

class Measured(Notes):
    def call(self, name, arguments):
        if name == "write" and len(arguments["text"].encode()) > 40:
            return {"error": "too long"}
        return super().call(name, arguments)

class MeasuredLater(Notes):
    def call(self, name, arguments):
        return self.write(arguments["text"]) if name == "write" else super().call(name, arguments)

    def score(self):
        return super().score() if sum(len(line.encode()) for line in self.lines) < 100 else 0.0

class OfItsThread(Notes):
    def begun(self, task):
        self.local = threading.local()
        self.local.task = task

    def wanted(self):
        return getattr(self.local, "task", None)

class OfItsLanguage(Notes):
    def call(self, name, arguments):
        answer = super().call(name, arguments)
        mark = "," if os.environ.get("LC_ALL", "").startswith("de") else "."
        return {**answer, "size": f"0{mark}5"} if name == "read" else answer

class Warned(Notes):
    def call(self, name, arguments):
        answer = super().call(name, arguments)
        done = subprocess.run(["bash", "-c", "true"], capture_output=True, text=True)
        return {**answer, "stderr": done.stderr} if name == "read" else answer
'''


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("notes") / "notes.py"
    path.write_text(NOTES, "utf-8")
    return path


def _audited(notes: Path, factory: str) -> Report:
    return audit(Subject(f"{notes}:{factory}"), [races.half_characters, flaky_verifier.verdict_by_thread])


def test_no_finding_for_half_characters_and_threads_handled_well(notes: Path) -> None:
    report = _audited(notes, "Notes")
    assert report.findings == ()
    assert {one.status for one in report.checks} == {"checked"}


@pytest.mark.parametrize(
    ("factory", "title"),
    [
        pytest.param(
            "Measured",
            "write() breaks when a text ends in half a character (UnicodeEncodeError)",
            marks=pytest.mark.slow,
        ),
        ("MeasuredLater", "write() leaves what breaks score() when a text ends in half a character"),
        pytest.param(
            "OfItsThread", "the verdict is another one in another thread of the process", marks=pytest.mark.slow
        ),
    ],
)
def test_half_a_character_and_another_thread_are_told(notes: Path, factory: str, title: str) -> None:
    (found,) = _audited(notes, factory).findings
    assert found.title.startswith(title)
    assert (found.severity, found.confidence) == ("error", "proven")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factory", "titles"), [("OfItsLanguage", ["read: size depends on the locale (LC_ALL)"]), ("Warned", [])]
)
def test_a_language_that_is_not_installed_is_in_the_environment(notes: Path, factory: str, titles: list[str]) -> None:
    found = audit(Subject(f"{notes}:{factory}"), [reset_leak.episode_determinism]).findings
    assert [one.title for one in found] == titles
