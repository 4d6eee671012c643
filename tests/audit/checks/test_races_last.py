"""Two calls that want the same last place: who lets them meet between the count and the taking is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, audit
from quintain.audit.checks import races
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

HALLS = '''
import threading

TEXT = {"type": "string"}


class Hall:
    """Guests with seats in halls; a hall has three, and one lock is around everything."""

    shared = True
    PLACES = 3

    def __init__(self):
        self.lock = threading.RLock()

    def tasks(self):
        return ["G20", "G21"]

    def tools(self):
        seat = {"type": "object", "properties": {"guest_id": TEXT, "hall": TEXT}, "required": ["guest_id", "hall"]}
        return [{"name": "seat", "parameters": seat}]

    def reset(self, task, seed):
        with self.lock:
            self.task = task
            self.guests = [{"id": f"G{number}", "name": f"guest {number}"} for number in range(20, 40)]
            self.seats = {"G35": "blue"}
            return f"Seat {task} in the blue hall."

    def call(self, name, arguments):
        with self.lock:
            guest, hall = arguments["guest_id"], arguments["hall"]
            if hall != "blue" or guest not in [row["id"] for row in self.guests]:
                return {"error": "nobody and nothing is called so"}
            if self.count(guest) >= self.PLACES:
                return {"error": "the hall is full"}
            self.seats[guest] = hall
            return {"ok": True}

    def count(self, guest):
        return sum(one != guest for one in self.seats)

    def state(self):
        with self.lock:
            return {"guests": [dict(row) for row in self.guests], "seats": dict(self.seats)}

    def score(self):
        with self.lock:
            return float(self.task in self.seats)

    def oracle(self, task):
        return [["seat", {"guest_id": task, "hall": "blue"}]]


class Opened(Hall):
    """While the plan is drawn, others may come in."""

    def count(self, guest):
        taken = super().count(guest)
        self.lock.release()
        try:
            self.drawn()
        finally:
            self.lock.acquire()
        return taken

    def drawn(self):
        lines = []
        for row in self.guests:
            lines.append(row["name"])
        return lines
'''


@pytest.fixture(scope="module")
def halls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("halls") / "halls.py"
    path.write_text(HALLS, "utf-8")
    return path


def _found(halls: Path, factory: str) -> tuple[Finding, ...]:
    report = audit(Subject(f"{halls}:{factory}"), [races.stopped_midway])
    assert not [one for one in report.checks if one.reason.startswith(BROKE)]
    return report.findings


def test_a_last_place_that_two_can_take_is_proven(halls: Path) -> None:
    (found,) = _found(halls, "Opened")
    assert found.title == "seat() gives something else while seat of the same instance stands still"
    assert (found.severity, found.confidence) == ("error", "proven")
    assert "G2" in str(found.observed)


@pytest.mark.slow
def test_a_last_place_that_one_lock_keeps_is_let_alone(halls: Path) -> None:
    assert _found(halls, "Hall") == ()
