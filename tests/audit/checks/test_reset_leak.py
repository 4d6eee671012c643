"""Tests that leaks over resets, machines and sessions are found, and declared volatility is not reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import reset_leak as reset
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.loader import Subject

SUBJECTS = """
import copy, datetime, random, time, uuid

TEXT = {"type": "string"}


def tool(name, *required, **properties):
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(required)}}


class Sound:
    def tasks(self):
        return ["one", "two", "three"]

    def tools(self):
        return [tool("get_note"), tool("list_words"), tool("set_note", "note", note=TEXT)]

    def reset(self, task, seed):
        self.task, self.rng, self.note = task, random.Random(f"{task}/{seed}"), ""
        self.words = [self.rng.choice("abcdefgh") for _ in range(8)]
        return f"Write {task}."

    def call(self, name, arguments):
        return getattr(self, name)(**arguments)

    def get_note(self):
        return {"note": self.note}

    def list_words(self):
        return {"words": self.words}

    def set_note(self, note):
        if not isinstance(note, str):
            raise ValueError("a note is a text")
        self.note = note
        return {"ok": True}

    def state(self):
        return {"note": self.note, "words": list(self.words)}

    def score(self):
        return float(self.note == self.task)

    def oracle(self, task):
        return [["get_note", {}], ["set_note", {"note": task}]]

    def snapshot(self):
        return copy.deepcopy((self.task, self.rng, self.note, self.words))

    def restore(self, moment):
        self.task, self.rng, self.note, self.words = copy.deepcopy(moment)


class Declared(Sound):
    volatile = ("at",)

    def get_note(self):
        return {"note": self.note, "at": time.time()}


class Kept(Sound):
    notes = []

    def set_note(self, note):
        self.notes.append(note)
        return super().set_note(note)

    def get_note(self):
        return {"note": self.note, "before": list(self.notes)}


class Failed(Sound):
    failed = False

    def set_note(self, note):
        if self.failed:
            raise ValueError("the connection has failed")
        self.failed = not isinstance(note, str)
        return super().set_note(note)


class Drawn(Sound):
    def set_note(self, note):
        return {"id": str(uuid.uuid4()), **super().set_note(note)}


class Global(Sound):
    def reset(self, task, seed):
        random.seed(seed)
        return super().reset(task, seed)

    def list_words(self):
        return {"words": random.sample(self.words, 8)}


class Zero(Sound):
    def reset(self, task, seed):
        first = super().reset(task, seed)
        if not seed:
            self.words = random.choices("abcdefgh", k=8)
        return first


class Hashed(Sound):
    def list_words(self):
        return {"words": list({"ash", "birch", "cedar", "elm", "fir", "oak"})}


class Today(Sound):
    def reset(self, task, seed):
        return super().reset(task, seed) + f" It is {datetime.date.today().year}, day {time.time() // 2e6:.0f}."


class Shallow(Sound):
    def reset(self, task, seed):
        self.box = {"note": ""}
        return super().reset(task, seed)

    def set_note(self, note):
        self.box["note"] = note
        return super().set_note(note)

    def get_note(self):
        return dict(self.box)

    def snapshot(self):
        return self.task, self.rng, self.note, self.words, self.box

    def restore(self, moment):
        self.task, self.rng, self.note, self.words, self.box = moment
"""
ALL = (
    reset.episode_isolation,
    reset.episode_determinism,
    reset.snapshot_restore,
    reset.seed_control,
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


@pytest.mark.parametrize("name", ["Sound", pytest.param("Declared", marks=pytest.mark.slow)])
def test_a_sound_subject_is_let_alone(subjects: Path, name: str) -> None:
    report = asked(subjects, name, *ALL)
    assert not report.findings
    assert {one.status for one in report.checks} == {"checked"}


@pytest.mark.parametrize(
    ("name", "check", "title", "trajectory"),
    [
        pytest.param(
            "Kept",
            reset.episode_isolation,
            "get_note: before",
            ["reset", "set_note", "reset", "get_note"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "Failed",
            reset.episode_isolation,
            "calls that were refused",
            ["reset", "set_note", "reset", "set_note"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "Drawn",
            reset.episode_determinism,
            "set_note: id is not the same in two equal",
            ["reset", "set_note"],
            marks=pytest.mark.slow,
        ),
        pytest.param("Hashed", reset.episode_determinism, "PYTHONHASHSEED", None, marks=pytest.mark.slow),
        pytest.param("Zero", reset.seed_control, "seed 0 is not taken for a seed", None, marks=pytest.mark.slow),
        pytest.param(
            "Shallow", reset.snapshot_restore, "note is another one after a restore", None, marks=pytest.mark.slow
        ),
    ],
)
def test_a_leak_is_found(subjects: Path, name: str, check: Check, title: str, trajectory: list[str] | None) -> None:
    found = [one for one in asked(subjects, name, check).findings if title in one.title]
    assert {(one.confidence, one.severity, one.class_) for one in found} == {("proven", "error", "reset_leak")}
    if trajectory is not None:
        assert trajectory in [[acts(line) for line in one.trajectory] for one in found]


FIELDS = """
from typing import ClassVar
import quintain as qn

class Base(qn.State):
    lent: dict[str, str] = {}

class Library(Base):
    books: list[str] = []
    drawn: ClassVar[list[str]] = []

    @qn.tool
    def lend(self) -> str:
        \"\"\"Lends a book.\"\"\"
        self.lent["Emma"] = "Ann"
        self.books.append("Emma")
        self.drawn.append("Emma")
        return "lent"

def tasks(split):
    return [qn.Task(id="lend", prompt="Lend.", start=Library(), solution=(("lend", {}),))]

@qn.reward
def lent(view):
    return float("Emma" in view.state.lent)

env = qn.Environment("library", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(lent), state=Library)
"""
