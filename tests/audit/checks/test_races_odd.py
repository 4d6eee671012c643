"""Odd values and odd contents that break an environment which refuses others of their kind; sound ones are silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import races
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

NOTES = '''
import ast
import re
import traceback

TEXT = {"type": "string", "maxLength": 3000}

def tool(name, **properties):
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(properties),
                                         "additionalProperties": False}}

class Notes:
    """Notes that hold small sums; the total of all is asked for."""

    def tasks(self):
        return ["sum 1", "sum 2"]

    def tools(self):
        return [tool("write", title=TEXT, text=TEXT), tool("total"), tool("find", query=TEXT)]

    def reset(self, task, seed):
        self.notes = {"first": "1 + 2"}
        return f"Write a note whose sum is {task[-1]}."

    def call(self, name, arguments):
        schema = {one["name"]: one["parameters"] for one in self.tools()}.get(name)
        if schema is None:
            return {"error": "no such tool"}
        for key in schema["properties"]:
            if not isinstance(arguments.get(key), str) or len(arguments[key]) > 3000:
                return {"error": f"{key} must be a text"}
        if set(arguments) != set(schema["properties"]):
            return {"error": "too many arguments"}
        return getattr(self, name)(**arguments)

    def write(self, title, text):
        self.notes[title] = text
        return {"ok": True}

    def value(self, text):
        numbers = re.findall(r"[0-9]{1,6}", text)
        return sum(map(int, numbers))

    def total(self):
        return {"total": sum(self.value(one) for one in self.notes.values())}

    def find(self, query):
        return {"titles": [title for title, text in self.notes.items() if query in text]}

    def score(self):
        return float(self.notes.get("second", "") == "done")

    def state(self):
        return {"notes": dict(self.notes)}

    def oracle(self, task):
        return [["total", {}], ["write", {"title": "second", "text": "done"}]]

class Recursive(Notes):
    """Counts how deep each note is nested, by recursion."""

    def total(self):
        def depth(node):
            return 1 + max((depth(child) for child in ast.iter_child_nodes(node)), default=0)

        def deep(text):
            try:
                return depth(ast.parse(text))
            except SyntaxError:
                return 0

        return {"depth": max(deep(one) for one in self.notes.values())}

class Digits(Notes):
    """Takes for a number what only looks like digits."""

    def score(self):
        text = self.notes.get("second", "")
        return float(text.isdigit() and int(text) == 3)

class Talkative(Notes):
    """Answers an unknown query with its own traceback."""

    def find(self, query):
        try:
            return {"text": self.notes[query]}
        except KeyError:
            return {"error": traceback.format_exc()}

class Shell(Notes):
    """Sound: runs the agent's code, and shows the traceback of that."""

    def write(self, title, text):
        try:
            exec(text, {})
        except Exception:
            return {"error": traceback.format_exc()}
        return {"ok": True}

class Eager(Notes):
    """Measures before it checks."""

    def call(self, name, arguments):
        if name == "write" and "text" in arguments and len(arguments["text"]) > 2999:
            return {"error": "too long"}
        return super().call(name, arguments)

class Raising(Notes):
    """Answers no wrong call at all: whoever calls it must know how to."""

    def call(self, name, arguments):
        return getattr(self, name)(**arguments)

    def write(self, title, text):
        self.notes[title] = "" + text
        return {"ok": True}

    def total(self):
        return {"total": 0}

    def find(self, query):
        return {"titles": [title for title, text in self.notes.items() if query in text]}
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("notes") / "notes.py"
    path.write_text(NOTES, "utf-8")
    return path


def _audited(file: Path, factory: str, *ids: str) -> Report:
    report = audit(Subject(f"{file}:{factory}"), [one for one in checks_of(races) if one.id in ids])
    assert all(one.status == "checked" for one in report.checks), [(one.check, one.reason) for one in report.checks]
    return report


def test_sound_notes_are_left_in_peace(file: Path) -> None:
    assert _audited(file, "Notes", "x.odd_calls", "x.odd_contents").findings == ()


@pytest.mark.parametrize(
    ("factory", "part", "title"),
    [("Recursive", "S", "total() breaks"), pytest.param("Digits", "V", "score()", marks=pytest.mark.slow)],
)
def test_odd_content_that_breaks_later_calls_is_proven(file: Path, factory: str, part: str, title: str) -> None:
    (found,) = _audited(file, factory, "x.odd_contents").findings
    assert (found.class_, found.part, found.severity, found.confidence) == ("races", part, "error", "proven")
    assert found.title.startswith(title)
    assert [line["do"] for line in found.trajectory][:2] == ["reset", "call"]


@pytest.mark.parametrize(("factory", "count"), [("Talkative", 1), ("Shell", 0)])
def test_traceback_of_the_environment_is_proven_and_one_of_the_agent_is_not(
    file: Path, factory: str, count: int
) -> None:
    found = [one for one in _audited(file, factory, "x.odd_calls").findings if "traceback" in one.title]
    assert [(one.severity, one.confidence) for one in found] == [("error", "proven")] * count


@pytest.mark.slow
def test_a_wrong_call_that_breaks_is_an_error_where_others_are_refused(file: Path) -> None:
    found = _audited(file, "Eager", "x.odd_calls").findings
    assert {(one.severity, one.confidence) for one in found} == {("error", "proven")}
    assert all("where others are refused" in one.title for one in found)
    assert "refused" in found[0].title
    assert found[0].trajectory[-1]["observed"]["error"]


@pytest.mark.slow
def test_a_subject_that_refuses_nothing_is_only_warned_about(file: Path) -> None:
    found = [one for one in _audited(file, "Raising", "x.odd_calls").findings if "wrong call" in one.title]
    assert found
    assert {one.severity for one in found} == {"warning"}
