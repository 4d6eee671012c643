"""Tests of plain classes without state and solution, whose rows show in their own lists only."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import stale_cache as stale
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

CHORES = '''
def tool(name, **properties):
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}

class Numbered:
    """Chores by number, which a list gives."""

    KEY, TYPE = "chore_id", {"type": "integer", "minimum": 1, "maximum": 9999}
    IDS = [4101, 4102, 4103]

    def tasks(self):
        return ["one", "two"]

    def tools(self):
        key = {self.KEY: self.TYPE}
        return [tool("list_chores"), tool("finish_chore", **key), tool("delete_chore", **key)]

    def reset(self, task, seed):
        self.done = {key: False for key in self.IDS}
        self.drawn = None
        return f"Do {task}."

    def call(self, name, arguments):
        if name == "list_chores":
            return self.listed()
        key = arguments.get(self.KEY)
        if key not in self.done:
            return {"error": "no such chore"}
        if name == "finish_chore":
            self.done[key] = True
        else:
            del self.done[key]
        return {"ok": True}

    def listed(self):
        return {"chores": [{"id": key, "done": done} for key, done in self.done.items()]}

    def score(self):
        return float(all(self.done.values()))

class Worded(Numbered):
    KEY, TYPE, IDS = "chore", {"type": "string"}, ["c-41", "c-42", "c-43"]

class ByLength:
    """The list is drawn anew when it has become shorter."""

    def listed(self):
        if self.drawn is None or len(self.drawn["chores"]) != len(self.done):
            self.drawn = super().listed()
        return self.drawn

class NumberedByLength(ByLength, Numbered):
    pass

class WordedByLength(ByLength, Worded):
    pass
'''


@pytest.mark.parametrize("name", ["Numbered", "Worded"])
def test_rows_that_only_a_list_names_are_written_and_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "chores.py").write_text(CHORES)
    checks = [stale.read_your_writes]
    bad = audit(Subject(f"{tmp_path / 'chores.py'}:{name}ByLength"), checks)
    assert [(one.check, one.confidence) for one in bad.findings] == [("x.read_your_writes", "proven")]
    assert "list_chores does not show what finish_chore brought" in bad.findings[0].title
    assert not audit(Subject(f"{tmp_path / 'chores.py'}:{name}"), checks).findings
