"""Tests of caches behind searches with few hits and behind calls that work only after others."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import audit
from quintain.audit.checks import stale_cache as stale
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

SHELF = '''
import time

def tool(name, required, **properties):
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": required}}

TEXT = {"type": "string"}
KIND = {"type": "string", "enum": ["any", "book", "map"], "default": "any"}
ROWS = {f"I{100 + n}": {"title": f"{word} atlas", "kind": "map" if n % 3 else "book", "held": False}
        for n, word in enumerate(["old", "new", "red", "big", "far", "low"])}

class Shelf:
    """Things on a shelf that are held for somebody and given free again."""

    def __init__(self):
        self.kept = {}

    def tasks(self):
        return ["I101", "I104"]

    def tools(self):
        return [tool("search_items", ["query"], query=TEXT, kind=KIND), tool("get_item", ["item_id"], item_id=TEXT),
                tool("hold", ["item_id"], item_id=TEXT), tool("free", ["item_id"], item_id=TEXT)]

    def reset(self, task, seed):
        self.task, self.rows = task, {key: dict(row) for key, row in ROWS.items()}
        self.kept.clear()
        return f"Hold {task}."

    def call(self, name, arguments):
        if name in ("hold", "free"):
            self.forget(name)
            row = self.rows.get(arguments["item_id"])
            if row is None or row["held"] is (name == "hold"):
                return {"error": "that cannot be done"}
            row["held"] = name == "hold"
            return {"ok": True}
        key = self.key(name, arguments)
        if key not in self.kept:
            self.kept[key] = self.read(name, arguments)
        return dict(self.kept[key])

    def read(self, name, arguments):
        if name == "get_item":
            row = self.rows.get(arguments["item_id"])
            return dict(row) if row else {"error": "no such thing"}
        kind = arguments.get("kind", "any")
        return {"items": [key for key, row in self.rows.items()
                          if arguments["query"] in row["title"] and kind in ("any", row["kind"])]}

    def key(self, name, arguments):
        return name, *sorted(arguments.items())

    def forget(self, name):
        self.kept.clear()

    def state(self):
        return {"rows": self.rows}

    def score(self):
        return float(self.rows[self.task]["held"])

    def oracle(self, task):
        return [["hold", {"item_id": task}]]

class OfAnyKind(Shelf):
    def key(self, name, arguments):
        return (name, arguments["query"]) if "query" in arguments else super().key(name, arguments)

class FreedUnseen(Shelf):
    def forget(self, name):
        if name != "free":
            self.kept.clear()

class Behind(Shelf):
    """Reads come from a copy that follows a few milliseconds later: a slow machine never sees it behind."""

    written = 0.0

    def forget(self, name):
        super().forget(name)
        if time.monotonic() - self.written > 0.004:
            self.copy = {key: dict(row) for key, row in self.rows.items()}
        self.written = time.monotonic()

    def reset(self, task, seed):
        self.written = 0.0
        return super().reset(task, seed)

    def key(self, name, arguments):
        self.kept.clear()
        return name, *sorted(arguments.items())

    def read(self, name, arguments):
        if time.monotonic() - self.written > 0.004:
            return super().read(name, arguments)
        now, self.rows = self.rows, self.copy
        found = super().read(name, arguments)
        self.rows = now
        return found
'''


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shelf") / "shelf.py"
    path.write_text(SHELF, "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "proven"),
    [
        pytest.param("OfAnyKind", "cache_keys", marks=pytest.mark.slow),
        ("FreedUnseen", "read_your_writes"),
        ("Behind", "visible_at_once"),
    ],
)
def test_cache_is_found_by_its_first_check(shelf: Path, name: str, proven: str) -> None:
    check = getattr(stale, proven)
    wrong = audit(Subject(f"{shelf}:{name}"), [check])
    assert [one.confidence for one in wrong.findings] == ["proven"]
    assert audit(Subject(f"{shelf}:Shelf"), [check]).findings == ()
