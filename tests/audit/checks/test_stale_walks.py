"""Staleness that shows after the right write, at the right row, at an earlier moment or in the verdict only."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import stale_cache as stale
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

LIBRARY = '''
import copy

ID = {"type": "string"}

def tool(name, **properties):
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}

class Library:
    """Books that stand on shelves; shelves are joined, and a loan is due when its day has come."""

    def __init__(self):
        self.cache = {}

    def tasks(self):
        return ["join 1", "lend 1", "join 2", "lend 2"]

    def tools(self):
        return [tool("list_shelf", shelf_id=ID), tool("get_book", book_id=ID), tool("join_shelves", one=ID, other=ID),
                tool("lend", book_id=ID), tool("list_due")]

    def reset(self, task, seed):
        self.cache.clear()
        self.now, self.said = 0, 0
        self.books = {f"B{n}": {"id": f"B{n}", "shelf": f"S{n % 3}", "due": None} for n in range(7)}
        return f"Do as the task says: {task}."

    def call(self, name, arguments):
        return getattr(self, name)(**arguments)

    def kept(self, key, make):
        if key not in self.cache:
            self.cache[key] = make()
        return copy.deepcopy(self.cache[key])

    def wrote(self):
        self.cache.clear()

    def list_shelf(self, shelf_id):
        found = lambda: [one["id"] for one in self.books.values() if one["shelf"] == shelf_id]
        there = self.kept(("shelf", shelf_id), found)
        return {"books": there} if there else {"error": f"nothing stands on shelf {shelf_id}"}

    def get_book(self, book_id):
        if book_id not in self.books:
            return {"error": f"no book {book_id}"}
        return self.kept(("book", book_id), lambda: dict(self.books[book_id]))

    def join_shelves(self, one, other):
        if one == other or not any(book["shelf"] == one for book in self.books.values()):
            return {"error": "these cannot be joined"}
        self.wrote()
        for book in self.books.values():
            if book["shelf"] == one:
                book["shelf"] = other
        return {"ok": True}

    def lend(self, book_id):
        if book_id not in self.books or self.books[book_id]["due"] is not None:
            return {"error": f"{book_id} cannot be lent"}
        self.wrote()
        self.books[book_id]["due"] = self.now + 60
        return {"ok": True}

    def list_due(self):
        found = lambda: {"due": [one["id"] for one in self.books.values() if one["due"] and one["due"] <= self.now]}
        return self.kept("due", found)

    def advance(self, seconds):
        self.wrote()
        self.now += seconds

    def state(self):
        return copy.deepcopy({"books": list(self.books.values()), "now": self.now})

    def snapshot(self):
        return copy.deepcopy((self.books, self.now))

    def restore(self, saved):
        self.cache.clear()
        self.books, self.now = copy.deepcopy(saved)

    def score(self):
        return float(any(book["due"] for book in self.books.values()) or "S1" not in str(self.books))

    def oracle(self, task):
        if task.startswith("join"):
            return [["get_book", {"book_id": "B1"}], ["join_shelves", {"one": "S1", "other": "S2"}]]
        return [["list_shelf", {"shelf_id": "S0"}], ["lend", {"book_id": "B3"}], ["list_due", {}]]

class Merged(Library):
    """Of two shelves that are joined the other one stays as it was known."""

    def join_shelves(self, one, other):
        known = self.cache.get(("shelf", other))
        done = super().join_shelves(one, other)
        if known is not None:
            self.cache["shelf", other] = known
        return done

class Timeless(Library):
    """What is due is found once."""

    def advance(self, seconds):
        self.now += seconds

class Kept(Library):
    """What was known stays known at an earlier moment."""

    def restore(self, saved):
        self.books, self.now = copy.deepcopy(saved)

class Verdicts(Library):
    """A verdict is kept for each number of calls that were made."""

    def call(self, name, arguments):
        self.said += name != "list_due"
        return super().call(name, arguments)

    def score(self):
        return self.kept(("verdict", len(str(self.books)) // 1000), super().score)

    def wrote(self):
        self.cache = {key: value for key, value in self.cache.items() if key[0] == "verdict"}

class Short(Library):
    """An episode ends after twelve calls."""

    calls = 0

    def reset(self, task, seed):
        self.calls = 0
        return super().reset(task, seed)

    def call(self, name, arguments):
        self.calls += 1
        return super().call(name, arguments) if self.calls <= 12 else {"error": "the episode has ended"}
'''
ALL = (stale.read_walks, stale.score_is_now)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "library.py"
    path.write_text(LIBRARY, "utf-8")
    return path


def _audited(file: Path, factory: str, *checks: Check) -> Report:
    return audit(Subject(f"{file}:{factory}"), checks)


@pytest.mark.parametrize("factory", ["Library", pytest.param("Short", marks=pytest.mark.slow)])
def test_a_sound_library_is_let_alone(file: Path, factory: str) -> None:
    report = _audited(file, factory, *ALL)
    assert report.findings == ()
    assert {one.status for one in report.checks} == {"checked"}


@pytest.mark.parametrize(
    ("factory", "check", "title", "calls"),
    [
        (
            "Merged",
            stale.read_walks,
            "list_shelf does not show what join_shelves brought, if it was read before",
            ["reset", "list_shelf", "join_shelves", "list_shelf"],
        ),
        pytest.param(
            "Timeless",
            stale.read_walks,
            "list_due does not show what the passing of time brought, if it was read before",
            ["reset", "lend", "list_due", "advance", "list_due"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "Verdicts",
            stale.score_is_now,
            "the score at the end is another one when it was asked for before",
            [],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_stale_read_is_proven(file: Path, factory: str, check: Check, title: str, calls: list[str]) -> None:
    found = {one.title: one for one in _audited(file, factory, check).findings}
    assert title in found
    assert {(one.class_, one.severity, one.confidence) for one in found.values()} == {
        ("stale_cache", "error", "proven")
    }
    if calls:
        assert [line.get("name") or line["do"] for line in found[title].trajectory][1:] == calls[1:]
