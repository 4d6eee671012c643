"""What looks like a bug and is none: time that passes in a refused call, and ids that many tables have."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks import _race_fuzz as fuzz
from quintain.audit.checks._drift_rows import joined
from tests.audit.checks._found import firm, found

DESK = '''
def tool(name, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": "", "parameters": parameters}

class Desk:
    """Each call takes three minutes, and every quarter of an hour a letter goes out."""

    def tasks(self):
        return ["1", "2"]

    def tools(self):
        number = {"type": "integer", "minimum": 1}
        return [tool("get_ticket", number=number), tool("close_ticket", number=number)]

    def reset(self, task, seed):
        self.task, self.minutes, self.letters = task, 0, {}
        self.tickets = {"1": {"status": "open"}, "2": {"status": "open"}}
        return f"Close ticket {task}."

    def oracle(self, task):
        return [["get_ticket", {"number": int(task)}], ["close_ticket", {"number": int(task)}]]

    def call(self, name, arguments):
        self.minutes += 3
        for number in range(1, self.minutes // 15 + 1):
            self.letters.setdefault(f"M{number}", {"to": "all"})
        ticket = self.tickets.get(str(arguments.get("number")))
        if ticket is None:
            return self.refused() if name == "close_ticket" else {"error": "there is no such ticket"}
        if name == "close_ticket":
            ticket["status"] = "closed"
        return dict(ticket)

    def refused(self):
        return {"error": "there is no such ticket"}

    def state(self):
        return {"tickets": self.tickets, "letters": self.letters}

    def score(self):
        return float(self.tickets[self.task]["status"] == "closed")

class Writes(Desk):
    def refused(self):
        self.tickets["9"] = {"status": "closed"}
        return super().refused()
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "desk.py"
    path.write_text(DESK)
    return path


def test_what_goes_out_in_time_was_not_written_by_the_call(file: Path) -> None:
    assert firm(found(file, "Desk", [fuzz.refused_calls])) == []


def test_what_only_the_refused_call_writes_is_proven(file: Path) -> None:
    assert any(finding.stops for finding in found(file, "Writes", [fuzz.refused_calls]))


def test_rows_are_of_the_table_that_has_most_of_their_fields() -> None:
    events = [{"id": number, "at": 10 - number} for number in range(4)]
    orders = [{"id": number, "placed": number, "status": "sent"} for number in range(4)]
    rows = [{"id": 2, "placed": 2}, {"id": 1, "placed": 1}]
    assert joined(rows, {"events": events, "orders": orders}) == [orders[2], orders[1]]
