"""Days: each task begins where the last valid one before it ended, and all of it replays."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quintain as qn
from quintain import resource
from quintain.chain import TaskChain
from quintain.context import Snapshot
from quintain.errors import UsageError
from quintain.harness import Request
from quintain.record import RunFolder, read_traces
from quintain.replay import rebuild
from quintain.trace import Reply, Trace

from .worlds import call, says


class Shelf(qn.State):
    """Holds what was ever put on it."""

    things: list[str] = []

    @qn.tool
    def put(self, thing: str) -> str:
        """Put something on the shelf.

        Args:
            thing: What.
        """
        if thing == "bomb":
            self.things.append("ruins")
            raise ValueError("boom")
        self.things.append(f"{thing}{self.rng.below(1000)}")
        return ", ".join(self.things)


@qn.reward(low=0, high=100)
def added(outcome: qn.EpisodeView[Shelf]) -> float:
    """Counts the new things."""
    start = outcome.start.copy()
    start.things.append("a criterion's own")
    return len(outcome.state.things) + 1 - len(start.things)


@qn.reward(low=0, high=100)
def added_again(outcome: qn.EpisodeView[Shelf]) -> float:
    """Counts them again, although another criterion changed its copy of the start."""
    return len(outcome.state.things) - len(outcome.start.things)


ENV = qn.Environment(
    "shelf",
    tasks=lambda split: tasks(3),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(added, added_again),
    state=Shelf,
)


def tasks(count: int, *, day: str = "monday") -> list[qn.Task[Shelf]]:
    return [qn.Task(id=f"{day} {n}", prompt=f"{day} {n}", start=Shelf(things=["old"]), day=day) for n in range(count)]


async def putting(request: Request) -> Reply:
    """Puts what its task is called, then ends."""
    if len(request.messages) > 1:
        return says(text="done")
    return says(call("put", thing=request.messages[0].text))


def bombing(*names: str) -> Any:
    """As `putting`, but the world breaks in these tasks."""

    async def model(request: Request) -> Reply:
        if request.messages[0].text in names:
            return says(call("put", thing="bomb"))
        return await putting(request)

    return model


async def gathered(groups: AsyncIterator[qn.Group]) -> list[qn.Group]:
    return [group async for group in groups]


def play(given: Sequence[qn.Task[Shelf]], model: Any = putting, *, env: Any = ENV, **options: Any) -> list[qn.Group]:
    return asyncio.run(gathered(qn.rollouts(env, model, given, ordered=True, **options)))


def shelf(trace: Trace) -> list[str]:
    """Returns the things on the shelf that the model saw, without the random numbers."""
    said = str(trace.turns[0].steps[0].observation)
    return [thing.rstrip("0123456789") for thing in said.split(", ")]


@pytest.mark.parametrize("group", [1, 3])
def test_each_begins_where_the_one_before_ended(group: int) -> None:
    found = play([*tasks(3), *tasks(2, day="tuesday")], group=group)
    seen = [[shelf(trace) for trace in one.traces] for one in found]
    one = ["old", "monday "]
    days = [one, [*one, "monday "], [*one, "monday ", "monday "], ["old", "tuesday "], ["old", "tuesday ", "tuesday "]]
    assert seen == [[things] * group for things in days]
    afters = [{trace.continues for trace in one.traces} for one in found]
    unset = {msgspec.UNSET}
    assert afters == [unset, {("monday 0", 0)}, {("monday 1", 0)}, unset, {("tuesday 0", 0)}]
    assert {trace.score for one in found for trace in one.traces} == {2.0}, "new since the start of each, twice judged"


def test_alone_a_task_begins_in_its_own_world() -> None:
    (group,) = play(tasks(3)[2:])
    assert shelf(group.traces[0]) == ["old", "monday "]
    assert b"after" not in group.traces[0].to_json()


def test_the_world_after_a_failure_is_not_gone_on_in() -> None:
    first, broken, last = play(tasks(3), bombing("monday 1"), env=ENV.replace(config=qn.Config(gate_rate=None)))
    assert broken.traces[0].validity == "invalid"
    assert shelf(last.traces[0]) == ["old", "monday ", "monday "]
    assert last.traces[0].continues == ("monday 0", 0)
    assert first.traces[0].validity == "valid"


def test_a_group_that_is_played_again_begins_in_the_same_world() -> None:
    plays = 0

    async def model(request: Request) -> Reply:
        nonlocal plays
        if request.messages[0].text == "monday 1" and len(request.messages) == 1:
            plays += 1
            if plays <= 2:
                return says(call("put", thing="bomb"))
        return await putting(request)

    config = qn.Config(gate_rate=None, group_retries=1, concurrency=1)
    _, second, third = play(tasks(3), model, env=ENV.replace(config=config), group=2)
    assert [trace.attempt for trace in second.traces] == [1, 1]
    assert {trace.continues for trace in second.traces} == {("monday 0", 0)}
    assert {trace.continues for trace in third.traces} == {("monday 1", 1)}


def test_a_chain_does_not_wait_for_another_chain() -> None:
    async def law() -> None:
        gate = asyncio.Event()

        async def model(request: Request) -> Reply:
            if request.messages[0].text == "monday 0":
                await gate.wait()
            return await putting(request)

        env = ENV.replace(config=qn.Config(concurrency=2))
        groups = qn.rollouts(env, model, [*tasks(3), *tasks(3, day="tuesday")])
        assert [(await anext(groups)).task for _ in range(3)] == ["tuesday 0", "tuesday 1", "tuesday 2"]
        gate.set()
        assert [group.task async for group in groups] == ["monday 0", "monday 1", "monday 2"]

    asyncio.run(asyncio.wait_for(law(), 20))


def test_a_day_has_each_task_once() -> None:
    with pytest.raises(UsageError, match=r"two tasks have the id 'monday 0' \(split ''\)"):
        play([*tasks(1), *tasks(1)])


@given(st.integers(1, 5), st.integers(1, 3), st.data())
@settings(max_examples=30)
def test_a_run_that_was_broken_off_continues_its_days(count: int, group: int, data: st.DataObject) -> None:
    continues(tasks(count), group=group, cut=data.draw(st.integers(0, count)))


def test_a_run_that_was_broken_off_in_a_day_continues_it() -> None:
    continues(tasks(4), group=2, cut=2)


def continues(given: list[qn.Task[Shelf]], *, group: int, cut: int) -> None:
    """Asserts that a run with a break after some tasks records what a whole one does."""
    whole = play(given, group=group)
    with tempfile.TemporaryDirectory() as place:
        with RunFolder(place, {}) as folder:
            play(given[:cut], group=group, folder=folder)
        with RunFolder(place, {}, resume=True) as folder:
            again = play(given, group=group, folder=folder)
    assert [[t.to_bytes() for t in one.traces] for one in again] == [
        [t.to_bytes() for t in one.traces] for one in whole
    ]


def test_a_day_replays_in_the_order_it_was_played(tmp_path: Path) -> None:
    config = qn.Config(gate_rate=None, group_retries=1, concurrency=2)
    env = ENV.replace(config=config)
    with RunFolder(tmp_path, {}) as folder:
        play(tasks(4), bombing("monday 1"), env=env, group=2, folder=folder)
    traces = list(read_traces(tmp_path))
    assert len(traces) == 10, "the broken group was played twice"
    known = {task.id: task for task in tasks(4)}

    async def law() -> None:
        days = TaskChain(ENV)
        for trace in traces:
            assert (await days.replay(known[trace.task], trace)).to_bytes() == trace.to_bytes()
        last = next(trace for trace in traces if trace.task == "monday 3")
        with pytest.raises(UsageError, match="began in the world after task 'monday 2'"):
            await qn.replay(ENV, known["monday 3"], last)
        with pytest.raises(UsageError, match="task 'monday 2', member 0, attempt 0 is not known"):
            await TaskChain(ENV).replay(known["monday 3"], last)
        first = next(trace for trace in traces if trace.task == "monday 0")
        with pytest.raises(UsageError, match="began in its own world"):
            await rebuild(ENV, known["monday 0"], first, turns=0, start=Shelf())
        start = await days.world(("monday 2", last.member, 0))
        half = await rebuild(ENV, known["monday 3"], last, turns=1, start=start)
        assert half.trace.turns == last.turns[:1]

    asyncio.run(law())


def test_an_episode_of_a_day_goes_on_from_its_snapshot_and_its_fork() -> None:
    async def law() -> None:
        task, start = tasks(1)[0], Shelf(things=["a", "b", "c"])
        episode = await qn.Episode[Shelf].begin(ENV, task, start, continues=("earlier", 0))
        await episode.session.step(says(call("put", thing="d")))
        data = Snapshot.from_bytes((await episode.snapshot()).to_bytes())
        ends: set[str] = set()
        for twin in (await qn.Episode[Shelf].restore(ENV, task, data), await episode.fork(), episode):
            await twin.session.step(says(call("put", thing="e")))
            twin.terminate("done")
            assert await twin.verify() == 2 * 2
            ends.add(await resource.digest(twin.state))
        assert len(ends) == 1

    asyncio.run(law())


def test_task_outside_of_a_chain_replays_in_its_own_world() -> None:
    (task,) = tasks(1, day="")
    trace = asyncio.run(qn.rollout(ENV, task, putting)).trace
    assert asyncio.run(TaskChain(ENV).replay(task, trace)).to_bytes() == trace.to_bytes()
