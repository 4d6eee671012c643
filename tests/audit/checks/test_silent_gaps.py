"""Work on rows in which something is empty: it is done, or it is not said to be done."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import silent_default as silent
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

LIBRARY = '''
TEXT = {"type": "string"}

def tool(name, *given):
    parameters = {"type": "object", "properties": dict.fromkeys(given, TEXT), "required": list(given)}
    return {"name": name, "parameters": parameters}

class Library:
    """Readers who owe something; some of them have no card."""

    def tasks(self):
        return ["R1", "R5"]

    def tools(self):
        return [tool("get_reader", "reader_id"), tool("settle_fines", "reader_id")]

    def reset(self, task, seed):
        self.task = task
        self.rows = {f"R{n}": {"card": None if n % 5 == 3 else f"K{n}", "owes": 5 * n, "room": "" if n % 7 else "east"}
                     for n in range(30)}
        return f"Settle what {task} owes."

    def oracle(self, task):
        return [["get_reader", {"reader_id": task}], ["settle_fines", {"reader_id": task}]]

    def call(self, name, arguments):
        row = self.rows.get(arguments["reader_id"])
        if row is None:
            return {"error": "no such reader"}
        return dict(row) if name == "get_reader" else self.settle(row)

    def settle(self, row):
        row["owes"] = 0
        return {"ok": True}

    def state(self):
        return {"readers": {key: dict(row) for key, row in self.rows.items()}}

    def score(self):
        return float(self.rows[self.task]["owes"] == 0)

class NoCard(Library):
    def settle(self, row):
        return super().settle(row) if row["card"] else {"ok": True}

class ToldNoCard(Library):
    def settle(self, row):
        return super().settle(row) if row["card"] else {"ok": True, "settled": 0}

class Refused(Library):
    def settle(self, row):
        return super().settle(row) if row["card"] else {"error": "a reader without a card pays at the desk"}
'''


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        pytest.param("Library", [], marks=pytest.mark.slow),
        ("NoCard", ["settle_fines is said to be done on readers without card, and leaves owes as it was"]),
        pytest.param("ToldNoCard", [], marks=pytest.mark.slow),
        ("Refused", []),
    ],
)
def test_rows_with_gaps_get_the_same_effect(tmp_path: Path, name: str, titles: list[str]) -> None:
    (tmp_path / "library.py").write_text(LIBRARY, "utf-8")
    report = audit(Subject(f"{tmp_path / 'library.py'}:{name}"), [silent.gaps])
    assert [one.title for one in report.findings] == titles
    assert {(one.severity, one.confidence) for one in report.findings} <= {("error", "proven")}
    assert [one.status for one in report.checks] == ["checked"]
