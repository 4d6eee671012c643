"""Reads that do not show what was written are found; reads that are counted, paged or rightly cached are let alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import stale_cache as stale
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.loader import Subject

SUBJECTS = """
import copy, time

ID = {"type": "string"}


def tool(name, *required, **properties):
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(required)}}


class Sound:
    def tasks(self):
        return ["i1", "i2"]

    def tools(self):
        return [
            tool("get_item", "item_id", item_id=ID),
            tool("list_items", status={"type": "string", "enum": ["open", "closed"]}),
            tool("set_note", "item_id", "note", item_id=ID, note=ID),
            tool("close_item", "item_id", item_id=ID),
        ]

    def reset(self, task, seed):
        self.task, self.cache, self.views, self.pending = task, {}, 0, []
        self.items = {f"i{n}": {"id": f"i{n}", "note": f"{task} {n}", "status": "open"} for n in range(3)}
        return f"Note done at {task} and close it."

    def call(self, name, arguments):
        return getattr(self, name)(**arguments)

    def get_item(self, item_id):
        if item_id not in self.items:
            raise ValueError("no such item")
        return dict(self.items[item_id])

    def list_items(self, status=None):
        return [dict(one) for one in self.items.values() if status in (None, one["status"])]

    def set_note(self, item_id, note):
        self.items[item_id]["note"] = note
        return {"ok": True}

    def close_item(self, item_id):
        self.items[item_id]["status"] = "closed"
        return {"ok": True}

    def state(self):
        return copy.deepcopy(self.items)

    def score(self):
        one = self.items[self.task]
        return (one["note"] == "done") / 2 + (one["status"] == "closed") / 2

    def oracle(self, task):
        item = {"item_id": task}
        return [["get_item", item], ["set_note", {**item, "note": "done"}], ["close_item", item]]


class Counted(Sound):
    def call(self, name, arguments):
        self.views += 1
        return {"step": self.views, "result": super().call(name, arguments)}


class Paged(Sound):
    def list_items(self, status=None):
        self.views += 1
        return super().list_items()[self.views % 3]


class Cached(Sound):
    def get_item(self, item_id):
        if item_id not in self.cache:
            self.cache[item_id] = super().get_item(item_id)
        return self.cache[item_id]


class Invalidated(Cached):
    def set_note(self, item_id, note):
        self.cache.clear()
        return super().set_note(item_id, note)

    def close_item(self, item_id):
        self.cache.clear()
        return super().close_item(item_id)


class Blind(Cached):
    state = None


class Eventual(Sound):
    def call(self, name, arguments):
        for due, item, note in self.pending:
            if time.monotonic() > due:
                self.items[item]["note"] = note
        return super().call(name, arguments)

    def set_note(self, item_id, note):
        self.pending.append((time.monotonic() + 0.1, item_id, note))
        return {"ok": True}


class Keyed(Sound):
    def list_items(self, status=None):
        if not self.cache:
            self.cache["list"] = super().list_items(status)
        return self.cache["list"]


ALL = {}


class Shared(Sound):
    def get_item(self, item_id):
        if item_id not in ALL:
            ALL[item_id] = super().get_item(item_id)
        return ALL[item_id]


class Early(Sound):
    def score(self):
        return self.cache.setdefault("score", super().score())


CURRENT = {}


class Threaded(Sound):
    def get_item(self, item_id):
        CURRENT["session"] = self
        time.sleep(0.001)
        return Sound.get_item(CURRENT["session"], item_id)
"""
LIKE_IT = ("Counted", "Paged", "Invalidated")
ALL = (
    stale.read_your_writes,
    stale.visible_at_once,
    stale.cache_keys,
    stale.cache_sessions,
    stale.score_is_now,
)


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("subjects") / "subjects.py"
    path.write_text(SUBJECTS)
    return path


def asked(subjects: Path, name: str, *checks: Check) -> Report:
    return audit(Subject(f"{subjects}:{name}"), checks)


def acts(line: dict[str, Any]) -> str:
    return str(line.get("name") if line["do"] == "call" else line["do"])


@pytest.mark.parametrize("name", ["Sound", *(pytest.param(name, marks=pytest.mark.slow) for name in LIKE_IT)])
def test_a_sound_subject_is_let_alone(subjects: Path, name: str) -> None:
    report = asked(subjects, name, *(ALL if name == "Sound" else (*ALL[:1], *ALL[2:5], *ALL[6:])))
    assert not report.findings
    assert {one.status for one in report.checks} == {"checked"}


@pytest.mark.parametrize("name", ["Cached", pytest.param("Blind", marks=pytest.mark.slow)])
def test_a_cache_that_writes_do_not_clear_is_found_by_its_shortest_trajectory(subjects: Path, name: str) -> None:
    found = asked(subjects, name, stale.read_your_writes).findings
    assert {one.confidence for one in found} == {"proven"}
    one = next(one for one in found if "set_note" in one.title)
    assert [acts(line) for line in one.trajectory] == ["reset", "get_item", "set_note", "get_item"]
    assert (one.class_, one.part) == ("stale_cache", "S")
    assert one.expected["note"] == "done"
    assert one.observed["note"] != "done"


@pytest.mark.parametrize(
    ("name", "check", "title"),
    [
        pytest.param("Eventual", stale.visible_at_once, "until time has passed", marks=pytest.mark.slow),
        pytest.param(
            "Keyed",
            stale.cache_keys,
            "list_items gives the answer that it gave with other arguments",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "Shared",
            stale.cache_sessions,
            "get_item gives the answer that it gave in another session",
            marks=pytest.mark.slow,
        ),
        pytest.param("Early", stale.score_is_now, "another one when it was asked for before", marks=pytest.mark.slow),
    ],
)
def test_staleness_of_other_kinds_is_found(subjects: Path, name: str, check: Check, title: str) -> None:
    found = asked(subjects, name, check).findings
    assert [one.class_ for one in found if title in one.title and one.confidence == "proven"] == ["stale_cache"]
