"""Native environments in threads: each session's criteria read their own start world."""

from __future__ import annotations

import threading
from typing import Annotated

import msgspec

import quintain as qn
from quintain.audit.subjects import native
from quintain.resources.database import Database, Key

BOTH = threading.Barrier(2)
NOTES = "SELECT id FROM notes"


class Note(msgspec.Struct):
    id: Annotated[int, Key]


class Desk(qn.State):
    db: Database = msgspec.field(default_factory=lambda: Database(Note))


@qn.reward
def untouched(outcome: qn.EpisodeView[Desk]) -> float:
    """Scores 1 if no note was written since the start, which both sessions read at the same time."""
    start = outcome.task.world()
    with start.db.transaction():
        BOTH.wait(timeout=10)
        return float(outcome.state.db.execute(NOTES) == start.db.execute(NOTES))


def test_two_sessions_of_one_task_look_into_its_start_at_the_same_time() -> None:
    task = qn.Task[Desk](id="t0", prompt="Note nothing.", start=Desk())
    desk = qn.Environment(
        "desk",
        tasks=lambda _: [task],
        verifier=qn.Verifier(untouched),
        state=Desk,
        harness=qn.ToolLoop("Be brief."),
        config=qn.Config(max_turns=4),
    )
    make = native.of(desk)
    paid: list[dict[str, float | None] | None] = []

    def work() -> None:
        subject = make()
        subject.reset("t0", 0)
        paid.append(subject.score())

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert paid == [{"untouched": 1.0, "score": 1.0}] * 2
