"""A database of a module, which a server asks in several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.serve.serving import serve

DESK = '''
import datetime as dt

import msgspec

import quintain as qn
from quintain.resources.database import Database


class Ticket(msgspec.Struct):
    id: int
    due: dt.date


DB = Database(Ticket, seed=lambda db: db.insert(*(Ticket(n, dt.date(2026, 1, n)) for n in range(1, 6))))


class Desk(qn.State):
    db: Database

    @qn.tool
    def late(self, day: dt.date) -> int:
        """Count the tickets that are late.

        Args:
            day: Today.
        """
        return self.db.one(int, "SELECT count(*) FROM tickets WHERE due < ?", day)


SLOW = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT count(*) FROM n"


def tasks(split):
    DB.execute(SLOW)
    return [
        qn.Task(id=f"{split}-{number}", prompt="How many are late?", start=lambda: Desk(db=DB))
        for (number,) in DB.execute("SELECT id FROM tickets ORDER BY id")
    ]


@qn.reward
def done(outcome: qn.EpisodeView[Desk]) -> float:
    return 1.0


env = qn.Environment("desk", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(done), state=Desk)
'''


def test_a_database_of_a_module_is_asked_in_tasks_while_episodes_begin_in_it(tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(DESK)
    with (
        serve("env", folder=tmp_path, file=tmp_path / "desk.py") as served,
        httpx.Client(base_url=served.url, timeout=60) as http,
    ):

        def play(number: int) -> object:
            wanted = {"split": ("train", "validation", "test")[number % 3], "index": number % 5}
            made = http.post("/v1/episodes", json=wanted).raise_for_status().json()["id"]
            call = {"name": "late", "arguments": {"day": "2026-01-03"}}
            turns = http.post(f"/v1/episodes/{made}/calls", json=call).raise_for_status().json()["turns"]
            return turns[-1]["steps"][0]["observation"]

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(play, range(12))) == ["2"] * 12
