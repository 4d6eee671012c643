"""Tests that hidden data is found wherever an agent can read it, and plain data is not reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import _leak_secrets as secrets
from quintain.audit.checks import leak
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

SUBJECT = """
import base64
import json

RIGHT = ["refund_full", "replace_item", "escalate_now", "close_ticket", "refund_full"]
CODES = ["A7F3K9Q2LL", "B8G4M1R3PP", "C9H5N2S4QQ", "D1J6P3T5RR", "E2K7Q4U6SS"]
TICKETS = {f"t{n}": {"id": f"T-{1000 + n}", "text": f"please handle case {n}"} for n in range(5)}
TEXT = {"type": "string"}


def tool(name, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": name, "parameters": schema}


class Desk:
    leak = ""

    def tasks(self):
        return list(TICKETS)

    def tools(self):
        choice = {"type": "string", "enum": sorted(set(RIGHT))}
        resolve = tool("resolve", ticket_id=TEXT, action=choice)
        return [tool("get_ticket", ticket_id=TEXT), tool("read_file", path=TEXT), resolve]

    def reset(self, task, seed):
        self.task, self.done = task, None
        self.gold, self.code = RIGHT[int(task[1:])], CODES[int(task[1:])]
        said = f" (debug: expected action {self.gold})" if self.leak == "reset" else ""
        return f"Resolve ticket {TICKETS[task]['id']}.{said}"

    def call(self, name, arguments):
        if name == "read_file":
            return self.file(str(arguments.get("path")))
        if name == "get_ticket":
            row = next((dict(row) for row in TICKETS.values() if row["id"] == arguments.get("ticket_id")), None)
            more = {
                "field": {"expected_resolution": self.gold},
                "meta": {"_meta": self.gold},
                "base64": {"etag": base64.b64encode(self.code.encode()).decode()},
                "reversed": {"etag": self.code[::-1]},
            }
            return {"error": "no such ticket"} if row is None else row | more.get(self.leak, {})
        if name == "resolve":
            if arguments.get("action") not in RIGHT:
                return {"error": "unknown action" + (f"; expected {self.gold}" if self.leak == "error" else "")}
            self.done = arguments
            return {"ok": True}
        if self.leak == "getattr" and hasattr(self, name):
            try:
                return getattr(self, name)(**arguments)
            except TypeError:
                return {"error": "bad arguments"}
        return {"error": "unknown tool"}

    def file(self, path):
        if self.leak == "source":
            try:
                return open(path).read()
            except (OSError, ValueError):
                return {"error": "no such file"}
        if self.leak == "register" and path == "answers.json":
            return json.dumps({task: self.hidden(task) for task in TICKETS})
        return "Be kind." if path == "policy.txt" else {"error": "no such file"}

    def score(self):
        return float(bool(self.done) and self.done == {"ticket_id": TICKETS[self.task]["id"], "action": self.gold})

    def oracle(self, task):
        ticket = {"ticket_id": TICKETS[task]["id"]}
        return [["get_ticket", ticket], ["resolve", ticket | {"action": RIGHT[int(task[1:])]}]]

    def state(self):
        return {"tickets": [*TICKETS.values()], "done": self.done}

    def hidden(self, task):
        number = int(task[1:])
        return {"action": RIGHT[number], "code": CODES[number], "ticket_id": TICKETS[task]["id"]}


for kind in ("sound", "reset", "field", "meta", "base64", "reversed", "error", "getattr", "source", "register"):
    globals()[f"leaks_{kind}"] = type(kind, (Desk,), {"leak": kind})
"""


def found(folder: Path, kind: str) -> list[Finding]:
    """Returns the findings in a variant of the subject, without hints."""
    path = folder / "subject.py"
    path.write_text(SUBJECT, "utf-8")
    report = audit(Subject(f"{path}:{kind}"), checks_of(leak))
    assert all("broke" not in one.reason for one in report.checks), report.checks
    return [one for one in report.findings if one.confidence != "hint"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "check", "words"),
    [
        ("reset", "semantic.no_solution_leakage", "reset shows the hidden action"),
        ("field", "semantic.no_solution_leakage", "expected_resolution"),
        ("base64", "semantic.no_solution_leakage", "the hidden code in base64"),
        ("error", "semantic.no_solution_leakage", "resolve shows the hidden action"),
        ("getattr", "runtime.oracle_containment", "hidden shows the hidden answer"),
        ("source", "runtime.oracle_containment", "read_file reads the environment's own source"),
    ],
)
def test_leak_is_proven(tmp_path: Path, kind: str, check: str, words: str) -> None:
    said = found(tmp_path, f"leaks_{kind}")
    mine = [one for one in said if one.check == check and words in one.title]
    assert mine, [one.title for one in said]
    assert mine[0].confidence == "proven"


def test_a_leak_in_an_answer_is_the_environments_and_its_trajectory_is_one_call(tmp_path: Path) -> None:
    (one,) = [one for one in found(tmp_path, "leaks_meta") if one.check == "semantic.no_solution_leakage"]
    assert one.part == "S"
    assert [line["do"] for line in one.trajectory] == ["hidden", "reset", "call"]


def test_the_ids_and_choices_of_a_sound_desk_are_no_leak(tmp_path: Path) -> None:
    assert not found(tmp_path, "leaks_sound")


def test_values_are_found_in_each_encoding() -> None:
    secret = secrets.sought({"code": "A7F3K9Q2LL"})
    for form in ("QTdGM0s5UTJMTA==", "413746334b3951324c4c", "LL2Q9K3F7A", "N7S3X9D2YY"):
        assert secrets.shown({"etag": f"x-{form}"}, secret), form
    assert not secrets.shown({"etag": "QUJDREVGR0g="}, secret)


def test_a_mark_on_the_right_choice_is_a_leak_and_a_list_of_choices_is_none() -> None:
    secret = secrets.sought({"answer": "B"})
    choices = [{"id": "A", "is_correct": False}, {"id": "B", "is_correct": True}]
    assert [one.how for one in secrets.shown(choices, secret)] == ["marked"]
    assert not secrets.shown([{"id": "A"}, {"id": "B"}], secret)
