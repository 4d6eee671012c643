"""Verdicts that depend on chance, time, place or spelling are found; sound ones are let alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import flaky_verifier as flaky
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.clock_skew import shim
from quintain.audit.kernel.loader import Subject

SUBJECTS = """
import datetime, random, time
from pathlib import Path

NOTE = {"type": "object", "properties": {"note": {"type": "string"}, "price": {"type": "number"}}, "required": ["note"]}


class Sound:
    def tasks(self):
        return ["one", "two"]

    def tools(self):
        return [{"name": "write", "parameters": NOTE}, {"name": "read", "parameters": {}}]

    def reset(self, task, seed):
        self.task, self.note, self.price, self.order, self.looked = task, "", 0, [], 0
        return f"Write {task} for 3."

    def call(self, name, arguments):
        if name == "write":
            self.note, self.price = arguments["note"], arguments.get("price", 0)
            self.order = list(arguments)
        return {"note": self.note, "price": self.price}

    def state(self):
        return {"note": self.note, "price": self.price, "looked": self.looked}

    def right(self):
        return float(self.note == self.task and self.price == 3)

    def score(self):
        return self.right()

    def oracle(self, task):
        return [["write", {"note": task, "price": 3}]]


class Flake(Sound):
    def score(self):
        return self.right() if random.random() > 0.2 else 0.0


class Slow(Sound):
    def reset(self, task, seed):
        self.begun = time.monotonic()
        return super().reset(task, seed)

    def score(self):
        return self.right() if time.monotonic() - self.begun < 0.25 else self.right() / 2


class HeldUp(Slow):
    "The machine does something else for a while, once."

    def score(self):
        self.looked += 1
        if self.looked == 10 and not (held := Path(__file__).with_name("held")).exists():
            held.touch()
            time.sleep(0.3)
        return super().score()


class Heavy(Slow):
    "A score takes its time."

    def score(self):
        time.sleep(0.01)
        return super().score()


class Zone(Sound):
    def score(self):
        return self.right() if time.localtime(0).tm_hour == 0 else 0.0


class Day(Sound):
    def score(self):
        return self.right() if datetime.date.today().year < 2027 else self.right() / 2


class Impure(Sound):
    def score(self):
        self.looked += 1
        return self.right()


JUDGED = []


class Full(Sound):
    def score(self):
        JUDGED.append(self.task)
        return self.right() if len(JUDGED) < 4 else 0.0


class Spelled(Sound):
    def score(self):
        return self.right() * (repr(self.price) == "3")


class Ordered(Sound):
    def score(self):
        return self.right() * (self.order == ["note", "price"])
"""


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("subjects") / "subjects.py"
    path.write_text(SUBJECTS)
    return path


def asked(subjects: Path, name: str, *checks: Check) -> Report:
    return audit(Subject(f"{subjects}:{name}"), checks)


@pytest.mark.parametrize(
    ("name", "check", "title"),
    [
        ("Flake", flaky.verifier_determinism, "not always scored alike"),
        pytest.param("Slow", flaky.verifier_determinism, "0.3 s later", marks=pytest.mark.slow),
        pytest.param("HeldUp", flaky.verifier_determinism, "0.3 s later", marks=pytest.mark.slow),
        pytest.param("Heavy", flaky.verifier_determinism, "0.3 s later", marks=pytest.mark.slow),
        pytest.param("Zone", flaky.verifier_portability, "the time zone", marks=pytest.mark.slow),
        pytest.param("Impure", flaky.verifier_purity, "changes its world", marks=pytest.mark.slow),
    ],
)
def test_a_bad_verifier_is_found(subjects: Path, name: str, check: Check, title: str) -> None:
    (found,) = asked(subjects, name, check).findings
    assert title in found.title
    assert (found.confidence, found.class_, found.part) == ("proven", "flaky_verifier", "V")
    assert [line["name"] for line in found.trajectory if line["do"] == "call"] in ([], ["write"])


@pytest.mark.slow
@pytest.mark.skipif(shim() is None, reason="no C compiler here")
def test_a_verdict_that_expires_is_found(subjects: Path) -> None:
    (found,) = asked(subjects, "Day", flaky.verifier_portability).findings
    assert "the wall clock" in found.title
    assert found.confidence == "proven"
