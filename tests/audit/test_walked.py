"""Forks that several probes share, once solutions have shown that no later episode can tell."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quintain.audit.kernel.child import WORKERS, Child, WorkerPool
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.loader import Made, Subject
from quintain.audit.kernel.probe import Op, Probe, answer, call, reset, score

DESK = """
import os
import quintain as qn

MADE = []


class Desk(qn.State):
    noted: int = 0

    @qn.tool
    def note(self) -> int:
        "Note something."
        self.noted += 1
        return self.noted

    @qn.tool
    def where(self) -> str:
        "Tell the process."
        return str(os.getpid())

    @qn.tool
    def leave(self) -> str:
        "End the process."
        os._exit(3)

    @qn.tool
    def count(self) -> int:
        "Count the calls of the process."
        MADE.append(1)
        return len(MADE)


@qn.reward
def noted(outcome: qn.EpisodeView[Desk]) -> float:
    return float(outcome.state.noted > 0)


def environment(tool: str) -> qn.Environment:
    def task(split: str, index: int) -> qn.Task[Desk]:
        return qn.Task(id=f"t{index}", prompt="Note it.", start=Desk(), solution=[("note", {}), (tool, {})])

    return qn.Environment(
        tool,
        tasks=lambda split: qn.Tasks(4, lambda index: task(split, index)),
        harness=qn.ToolLoop("Be brief."),
        verifier=qn.Verifier(noted),
        state=Desk,
    )


sound, counting = environment("note"), environment("count")
"""
WHERE = Probe((reset("t1"), call("where", mark="where"), answer("done"), score()))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("desk") / "desk.py"
    made.write_text(DESK)
    return made


@pytest.fixture
def walked(desk: Path, request: pytest.FixtureRequest) -> Iterator[AuditContext]:
    subject = Subject(f"{desk}:{request.param}")
    with Child(subject, made=Made(4)) as child:
        about = child.about
    subject.index.update(zip(about.tasks, about.indices, strict=True))
    pool = WorkerPool(subject)
    ctx = AuditContext(pool, about, about.tasks, seed=0, until=None, limit=20.0)
    ctx.walk()
    yield ctx
    pool.close()


def places(ctx: AuditContext, probes: list[Probe]) -> list[Any]:
    return [record.at("where").value for record in ctx.play_all(probes)]


@pytest.mark.parametrize("walked", ["sound"], indirect=True)
def test_probes_share_forks_unless_they_look_at_the_process(walked: AuditContext) -> None:
    found = places(walked, [WHERE] * 4 * WORKERS)
    assert sorted(found.count(one) for one in set(found)) == [4] * WORKERS
    waiting = Probe((*WHERE.ops, Op("wait", value=0.01)))
    assert len(set(places(walked, [waiting] * 4))) == 4
    cold = walked.derive("cold")
    cold.cold = True
    assert len(set(places(cold, [WHERE] * 4))) == 4


@pytest.mark.parametrize("walked", ["sound"], indirect=True)
def test_probes_of_the_lowest_rank_get_the_next_core(walked: AuditContext) -> None:
    done: list[int] = []
    begun = threading.Event()

    def play(rank: int) -> None:
        begun.wait()
        walked.pool.play(WHERE, 20.0, rank=rank)
        done.append(rank)

    usual = [threading.Thread(target=play, args=(9,)) for _ in range(12 * WORKERS)]
    for thread in usual:
        thread.start()
    begun.set()
    while not done:  # Now all cores are taken, and the others wait.
        time.sleep(0.001)
    play(0)
    assert done.index(0) < 6 * WORKERS
    for thread in usual:
        thread.join()


@pytest.mark.parametrize("walked", ["sound"], indirect=True)
def test_probes_beside_one_that_ends_the_process_are_played_alone(walked: AuditContext) -> None:
    ends = Probe((reset("t0"), call("leave"), score()))
    records = walked.play_all([WHERE, ends, WHERE, WHERE])
    assert [record.died for record in records] == ["", "it ended the process with 3", "", ""]
    assert [len(record.seen) for record in records] == [4, 1, 4, 4]


@pytest.mark.parametrize("walked", ["counting"], indirect=True)
def test_probes_stay_apart_where_a_later_episode_can_tell(walked: AuditContext) -> None:
    assert len(set(places(walked, [WHERE] * 4))) == 4
    counts = [record.at("n").value for record in walked.play_all([Probe((reset("t0"), call("count", mark="n")))] * 4)]
    assert counts == ["1", "1", "1", "1"]
