"""Tests that paid answers under undeclared names, and test code among notes, are proven."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import leak
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

SUBJECT = """
import random

TOWNS = ["Bosk", "Elsby", "Fontana Alta"]


def tool(called, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": called, "description": called, "parameters": schema}


class Towns:
    # Questions about a table; nothing is offered but what must be there.
    kind = ""
    said = None

    def tasks(self):
        return ["t0", "t1", "t2"]

    def tools(self):
        text = {"type": "string"} if self.kind in ("free", "loose") else {"type": "string", "enum": TOWNS}
        row = {"type": "integer", "minimum": 0, "maximum": 2}
        return [tool("get_town", name=text), tool("get_row", row=row), tool("submit", value={"type": "integer"})]

    def reset(self, task, seed):
        dice = random.Random(f"{task} {seed}")
        self.people = [dice.randrange(1000, 10**6) for _ in TOWNS]
        self.said = None
        self.answer = self.people[0] + self.people[2] if self.kind != "lookup" else self.people[2]
        asked = "How many live in Bosk and Fontana Alta together?" if self.kind != "lookup" else "How big is the last?"
        return asked + " Submit the number."

    def call(self, name, arguments):
        if name == "submit" and type(arguments.get("value")) is int and self.said is None:
            self.said = arguments["value"]
            return {"ok": True}
        more = {"expected_answer": self.answer} if self.kind == "field" else {}
        if name == "get_town":
            wanted = str(arguments.get("name"))
            if self.kind in ("enum", "free") and wanted == "_answer":
                return {"value": self.answer}
            if self.kind == "lookup":
                wanted = next((one for one in TOWNS if wanted and wanted.casefold() in one.casefold()), wanted)
            if wanted in TOWNS:
                return {"people": self.people[TOWNS.index(wanted)], "_id": len(wanted)} | more
            known = TOWNS + ["_answer"] * (self.kind == "enum")
            return {"error": "no such town; there are " + ", ".join(known)}
        if name == "get_row":
            row = arguments.get("row")
            if type(row) is int and (0 <= row <= 2 or (row == -1 and self.kind == "row")):
                return {"people": ([*self.people, self.answer])[row]}
            return {"error": "no such row"}
        if name == "get_answer" and self.kind == "method":
            return {"value": self.answer}
        return {"error": "unknown tool"}

    def score(self):
        return float(self.said == self.answer)


class Notes:
    # A line is to be corrected; what checks it is hidden.
    kind = ""

    def tasks(self):
        return ["day", "hour"]

    def tools(self):
        text = {"type": "string"}
        return [tool("list_notes"), tool("read_note", note=text), tool("write_note", note=text, text=text)]

    def hidden(self, task):
        if self.kind == "prose":
            return {"letter": f"Dear Ada, the {task} has changed and we meet on Thursday at nine instead."}
        return {"tests": f"assert notes['plan'] == {self.right(task)!r}, 'the plan is wrong'"}

    def right(self, task):
        return f"We meet; the {task} is {'Thursday' if task == 'day' else 'nine'}."

    def reset(self, task, seed):
        self.task = task
        self.notes = {"plan": f"We meet; the {task} is open.", "inbox": self.right(task), "misc": "tea"}
        if self.kind:
            self.notes["tests"] = next(iter(self.hidden(task).values()))
        self.before = dict(self.notes)
        return "Correct the plan as the inbox says."

    def state(self):
        return {"notes": [{"name": name, "text": text} for name, text in self.notes.items()]}

    def call(self, name, arguments):
        note = arguments.get("note")
        if name == "list_notes":
            return {"notes": sorted(self.notes)}
        if note not in self.notes:
            return {"error": "no such note"}
        if name == "read_note":
            return {"text": self.notes[note]}
        self.notes[note] = str(arguments.get("text"))
        return {"ok": True}

    def oracle(self, task):
        write = {"note": "plan", "text": self.right(task)}
        return [["read_note", {"note": "inbox"}], ["write_note", write]]

    def score(self):
        return float(self.notes == {**self.before, "plan": self.right(self.task)})


for kind in ("sound", "enum", "free", "field", "row", "method", "loose", "lookup"):
    globals()[f"towns_{kind}"] = type(kind, (Towns,), {"kind": kind})
for kind in ("sound", "tests", "prose"):
    globals()[f"notes_{kind}"] = type(kind, (Notes,), {"kind": kind if kind != "sound" else ""})
"""


def found(folder: Path, kind: str) -> list[Finding]:
    path = folder / "subject.py"
    path.write_text(SUBJECT, "utf-8")
    mine = leak.under_other_names if kind.startswith("towns") else leak.readable
    report = audit(Subject(f"{path}:{kind}"), [mine])
    assert all("broke" not in one.reason for one in report.checks), report.checks
    return list(report.findings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("enum", "get_town {'name': '_answer'} answers what is paid"),
        ("free", "get_town {'name': '_answer'} answers what is paid"),
        ("row", "get_row {'row': -1} answers what is paid"),
        ("method", "get_answer {} answers what is paid"),
        ("field", "shows the answer in its field expected_answer"),
    ],
)
def test_paid_value_under_an_undeclared_name_is_proven(tmp_path: Path, kind: str, words: str) -> None:
    [one] = found(tmp_path, f"towns_{kind}")
    assert words in one.title
    assert one.stops


@pytest.mark.parametrize("kind", ["sound", pytest.param("loose", marks=pytest.mark.slow), "lookup"])
def test_rows_that_can_be_asked_for_are_data(tmp_path: Path, kind: str) -> None:
    """Also where the answer is one of them, and a part of its name is enough to get it."""
    assert not found(tmp_path, f"towns_{kind}")


@pytest.mark.slow
def test_the_code_of_the_tests_is_no_data_wherever_it_stands(tmp_path: Path) -> None:
    [one] = found(tmp_path, "notes_tests")
    assert "read_note shows the hidden tests" in one.title
    assert one.stops


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sound", "prose"])
def test_a_text_of_the_world_may_be_a_part_of_the_truth(tmp_path: Path, kind: str) -> None:
    assert not [one for one in found(tmp_path, f"notes_{kind}") if one.stops]
