"""Tests of a random order that shows in one row only, which no task uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import reset_leak
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

PARTS = '''
ROWS = {f"part-{n}": {f"maker {n} {word}" for word in ("a b c d e f g".split() if n == 11 else "x")} for n in range(14)}

def tool(name, *given):
    properties = dict.fromkeys(given, {"type": "string"})
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(given)}}

class Parts:
    """Parts and who makes them."""

    def tasks(self):
        return ["find"]

    def tools(self):
        return [tool("list_parts"), tool("get_part", "part_id")]

    def reset(self, task, seed):
        return "Say who makes what."

    def oracle(self, task):
        return [["list_parts", {}], ["get_part", {"part_id": "part-0"}]]

    def call(self, name, arguments):
        if name == "list_parts":
            return {"parts": [{"id": key} for key in ROWS]}
        if arguments["part_id"] not in ROWS:
            return {"error": "no such part"}
        return {"maker": self.chosen(ROWS[arguments["part_id"]])}

    def chosen(self, makers):
        return min(makers)

    def score(self):
        return 0.0

class AnyOfThem(Parts):
    def chosen(self, makers):
        return next(iter(makers))
'''


def test_every_row_is_asked_about_in_other_processes(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(PARTS)
    check = reset_leak.episode_determinism
    bad = audit(Subject(f"{tmp_path / 'parts.py'}:AnyOfThem"), [check])
    assert [(one.title, one.confidence) for one in bad.findings] == [
        ("get_part: maker depends on PYTHONHASHSEED", "proven")
    ]
    assert not audit(Subject(f"{tmp_path / 'parts.py'}:Parts"), [check]).findings
