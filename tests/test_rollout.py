"""Rollouts: many episodes at once, none lost, none waiting for what does not concern it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quintain as qn
from quintain.errors import ModelError, RunStopped, UsageError
from quintain.harness import Model, Request, Session
from quintain.record import EpisodeRecord, RunFolder, read_traces
from quintain.rollouts import WINDOW, Draw
from quintain.trace import End, Reply

from .worlds import Yard, call, environment, fine, first_task, play, says, script

LIMIT = 20
"""Seconds after which a test says that something hangs."""


async def silent(request: Request) -> Reply:
    return says()


class Stage:
    """A model that holds every episode until it is let go, and counts who is on."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.on = self.most = self.started = 0

    async def __call__(self, request: Request) -> Reply:
        name = request.messages[-1].text
        self.started += 1
        self.on += 1
        self.most = max(self.most, self.on)
        try:
            gate = self.gates.get(name)
            await (gate.wait() if gate else asyncio.sleep(0))
        finally:
            self.on -= 1
        return says(text="done")


def tasks(count: int) -> list[qn.Task[Yard]]:
    return [qn.Task(id=f"t{n}", prompt=f"{n}", start=Yard()) for n in range(count)]


def small(*, concurrency: int = 4, **config: Any) -> qn.Environment[Any]:
    return environment(fine, concurrency=concurrency, **config)


async def collect(groups: AsyncIterator[qn.Group]) -> list[qn.Group]:
    async with asyncio.timeout(LIMIT):
        return [group async for group in groups]


def run(groups: AsyncIterator[qn.Group]) -> list[qn.Group]:
    async def main() -> list[qn.Group]:
        found = await collect(groups)
        assert len(asyncio.all_tasks()) == 1, "a task was left behind"
        return found

    return asyncio.run(main())


# --- the pipeline ---


@given(st.integers(0, 12), st.integers(1, 4), st.integers(1, 6), st.booleans(), st.lists(st.integers(0, 5), min_size=1))
@settings(max_examples=60)
def test_every_member_of_every_group_is_played_once(
    count: int, group: int, concurrency: int, ordered: bool, delays: list[int]
) -> None:
    left = iter(delays * 1000)

    async def slow(request: Request) -> Reply:
        for _ in range(next(left)):
            await asyncio.sleep(0)
        return says()

    env = small(concurrency=concurrency)
    found = run(qn.rollouts(env, slow, tasks(count), group=group, seed=7, split="s", ordered=ordered))
    indices = [one.index for one in found]
    assert sorted(indices) == list(range(count))
    assert indices == sorted(indices) or not ordered
    for one in found:
        assert one.kept
        assert one.earlier == ()
        assert [trace.member for trace in one.traces] == list(range(group))
        assert {(trace.task, trace.seed, trace.split) for trace in one.traces} == {(f"t{one.index}", 7, "s")}


def test_concurrency_is_reached_and_never_exceeded() -> None:
    stage = Stage()
    run(qn.rollouts(small(concurrency=5), stage, tasks(40), group=2))
    assert (stage.most, stage.started) == (5, 80)


def test_a_slow_member_holds_up_nobody_else() -> None:
    async def law() -> None:
        stage = Stage()
        stage.gates["0"] = asyncio.Event()
        groups = qn.rollouts(small(concurrency=3), stage, tasks(40), group=2)
        first = [await anext(groups) for _ in range(39)]
        assert {one.index for one in first} == set(range(1, 40))
        stage.gates["0"].set()
        assert [one.index async for one in groups] == [0]

    asyncio.run(asyncio.wait_for(law(), LIMIT))


def test_in_order_the_others_run_ahead_only_so_far() -> None:
    async def law() -> None:
        stage = Stage()
        stage.gates["0"] = asyncio.Event()
        groups = qn.rollouts(small(concurrency=2), stage, tasks(40), ordered=True)
        first = asyncio.ensure_future(anext(groups))
        for _ in range(500):
            await asyncio.sleep(0)
        assert not first.done()
        assert stage.started == 2 * WINDOW
        stage.gates["0"].set()
        assert (await first).index == 0
        assert [one.index async for one in groups] == list(range(1, 40))

    asyncio.run(asyncio.wait_for(law(), LIMIT))


def test_a_slow_consumer_slows_the_run_down() -> None:
    async def law() -> None:
        stage, read = Stage(), 0

        def lazily() -> Iterator[qn.Task[Yard]]:
            nonlocal read
            for task in tasks(200):
                read += 1
                yield task

        taken = 0
        async for _ in qn.rollouts(small(concurrency=2), stage, lazily()):
            taken += 1
            for _ in range(30):
                await asyncio.sleep(0)
            assert read <= taken + 2 * WINDOW
        assert (taken, read) == (200, 200)

    asyncio.run(asyncio.wait_for(law(), LIMIT))


def test_a_consumer_gets_its_turn_though_nothing_ever_waits() -> None:
    async def law() -> None:
        played = 0

        async def model(request: Request) -> Reply:
            nonlocal played
            played += 1
            return says()

        async for _ in qn.rollouts(environment(fine, concurrency=8), model, tasks(100)):
            assert played <= 16
            break

    asyncio.run(asyncio.wait_for(law(), LIMIT))


@pytest.mark.parametrize("group", [0, -1])
def test_a_group_has_members(group: int) -> None:
    with pytest.raises(UsageError, match=f"group and ahead must be >= 1, got group={group}"):
        run(qn.rollouts(small(), silent, tasks(1), group=group))


# --- draws ---


def test_tasks_may_wait_while_others_play() -> None:
    async def law() -> None:
        stage, allowed = Stage(), asyncio.Semaphore(3)

        async def admitted() -> AsyncIterator[qn.Task[Yard]]:
            for task in tasks(6):
                await allowed.acquire()
                yield task

        groups = qn.rollouts(small(concurrency=2), stage, admitted(), group=2)
        assert sorted([(await anext(groups)).index for _ in range(3)]) == [0, 1, 2]
        waiting = asyncio.ensure_future(anext(groups))
        for _ in range(50):
            await asyncio.sleep(0)
        assert (stage.started, waiting.done()) == (6, False)
        for _ in range(3):
            allowed.release()
        assert sorted([(await waiting).index, *[one.index async for one in groups]]) == [3, 4, 5]

    asyncio.run(asyncio.wait_for(law(), LIMIT))


def test_an_error_of_tasks_that_wait_surfaces() -> None:
    async def broken() -> AsyncIterator[qn.Task[Yard]]:
        yield tasks(1)[0]
        await asyncio.sleep(0)
        raise LookupError("the sampler broke")

    with pytest.raises(LookupError, match="the sampler broke"):
        run(qn.rollouts(small(), silent, broken()))


def test_a_run_that_is_closed_while_tasks_wait_leaves_no_task() -> None:
    async def law() -> None:
        async def stuck() -> AsyncIterator[qn.Task[Yard]]:
            yield tasks(1)[0]
            await asyncio.Event().wait()

        before = asyncio.all_tasks()
        groups = qn.rollouts(small(), silent, stuck())
        assert (await anext(groups)).index == 0
        await groups.aclose()
        assert asyncio.all_tasks() == before

    asyncio.run(asyncio.wait_for(law(), LIMIT))


@pytest.mark.parametrize("ordered", [False, True])
def test_a_group_whose_draw_gives_up_an_episode_is_cancelled(ordered: bool) -> None:
    async def cut(episode: Coroutine[Any, Any, EpisodeRecord]) -> EpisodeRecord | None:
        done = await episode
        return None if done.trace.member == 1 else done

    draws = [Draw(task, run=cut if task.id == "t1" else None) for task in tasks(3)]
    found = {one.index: one for one in run(qn.rollouts(small(), silent, draws, group=3, ordered=ordered))}
    assert [trace.member for trace in found[1].traces] == [0, 2]
    assert [found[n].kept for n in range(3)] == [True, False, True]
    assert found[1].earlier == ()


# --- the group rule ---


def failing(fails: dict[tuple[str, int], int]) -> Any:
    """An agent that fails a (task, member) in so many first attempts."""
    tried: Counter[tuple[str, int]] = Counter()

    class Harness(msgspec.Struct, frozen=True):
        async def play(self, session: Session, model: Model) -> None:
            trace: Any = session.episode.trace  # type: ignore[attr-defined]
            key = (trace.task, trace.member)
            tried[key] += 1
            if tried[key] <= fails.get(key, 0):
                raise ModelError("down", kind="transport_peer_drop")
            session.terminate("fine")

    return Harness(), tried


def test_a_group_with_too_few_valid_episodes_is_played_again_with_the_same_seeds() -> None:
    harness, tried = failing({("t1", 0): 1, ("t1", 1): 1, ("t1", 2): 2})
    found = run(qn.rollouts(small(harness=harness, gate_rate=None), silent, tasks(3), group=4, seed=3, ordered=True))
    assert [one.kept for one in found] == [True] * 3
    assert [(len(one.earlier), {t.attempt for t in one.traces}) for one in found] == [(0, {0}), (4, {1}), (0, {0})]
    again = found[1]
    assert {trace.seed for trace in (*again.traces, *(one.trace for one in again.earlier))} == {3}
    assert [trace.validity for trace in again.traces] == ["valid", "valid", "invalid", "valid"]
    assert tried["t1", 0] == 2


def test_a_group_is_given_up_after_its_retries() -> None:
    harness, _ = failing({("t0", n): 99 for n in range(4)})
    env = small(harness=harness, gate_rate=None, group_retries=2)
    (one,) = run(qn.rollouts(env, silent, tasks(1), group=4))
    assert (one.kept, len(one.earlier), {trace.attempt for trace in one.traces}) == (False, 8, {2})


def test_a_single_episode_is_not_played_again() -> None:
    harness, tried = failing({("t0", 0): 1})
    (one,) = run(qn.rollouts(small(harness=harness, gate_rate=None), silent, tasks(1)))
    assert (one.kept, one.earlier, tried["t0", 0]) == (False, (), 1)


def test_the_gate_stops_a_run_and_the_playing_with_it() -> None:
    harness, tried = failing({(f"t{n}", m): 9 for n in range(10, 500) for m in range(2)})
    env = environment(fine, harness=harness, concurrency=4, group_retries=0)
    with pytest.raises(RunStopped, match=r"above the limit of 5\.0% \(gate_rate\)\n  model  transport_peer_drop"):
        run(qn.rollouts(env, silent, tasks(500), group=2))
    assert sum(tried.values()) < 60


def test_a_first_group_that_fails_wholly_stops_the_run_at_once() -> None:
    harness, tried = failing({("t0", m): 9 for m in range(4)})
    with pytest.raises(RunStopped, match="4 episodes played so far, and every one failed"):
        run(qn.rollouts(environment(fine, harness=harness, concurrency=1), silent, tasks(50), group=4))
    assert sum(tried.values()) == 4


def test_a_base_exception_of_a_model_surfaces() -> None:
    class Doom(BaseException):
        pass

    async def model(request: Request) -> Reply:
        raise Doom

    with pytest.raises(Doom):
        run(qn.rollouts(small(), model, tasks(9)))


def test_tasks_that_raise_or_are_none_surface() -> None:
    def bad() -> Iterator[qn.Task[Yard]]:
        yield from tasks(3)
        raise LookupError("row 4 is torn")

    with pytest.raises(LookupError, match="row 4"):
        run(qn.rollouts(small(), silent, bad()))
    with pytest.raises(UsageError, match="plays Tasks, got a NoneType"):
        run(qn.rollouts(small(), silent, [*tasks(1), None, *tasks(1)]))  # type: ignore[list-item]
    with pytest.raises(TypeError):
        run(qn.rollouts(small(), silent, 5))  # type: ignore[arg-type]


# --- closing ---


def test_closing_early_leaves_no_task_and_loses_nothing(tmp_path: Path) -> None:
    async def law() -> None:
        stage = Stage()
        stage.gates["3"] = asyncio.Event()
        before = asyncio.all_tasks()
        with RunFolder(tmp_path, {}) as folder:
            groups = qn.rollouts(small(), stage, tasks(50), folder=folder)
            yielded = {(await anext(groups)).task for _ in range(5)}
            await groups.aclose()
            assert asyncio.all_tasks() == before
            assert stage.on == 0
        kept = [trace.task for trace in read_traces(tmp_path)]
        assert len(kept) == len(set(kept))
        assert yielded <= set(kept)

    asyncio.run(asyncio.wait_for(law(), LIMIT))


def test_cancellation_and_an_exception_in_the_consumer(tmp_path: Path) -> None:
    async def consume(folder: RunFolder, *, raising: bool) -> None:
        count = 0
        async for _ in qn.rollouts(small(), Stage(), tasks(1000), folder=folder):
            count += 1
            if count == 5 and raising:
                raise LookupError("the trainer broke")
            if count == 5:
                asyncio.current_task().cancel()  # type: ignore[union-attr]

    async def law() -> None:
        with RunFolder(tmp_path / "a", {}) as folder:
            with pytest.raises(LookupError):
                await consume(folder, raising=True)
            for _ in range(20):
                await asyncio.sleep(0)
            assert len(asyncio.all_tasks()) == 1
        with RunFolder(tmp_path / "b", {}) as folder:
            task = asyncio.create_task(consume(folder, raising=False))
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(asyncio.all_tasks()) == 1
            known = len(folder)
        assert known == len(list(read_traces(tmp_path / "b"))) < 1000

    asyncio.run(law())


def test_a_resumed_run_plays_what_is_missing(tmp_path: Path) -> None:
    stage = Stage()
    with RunFolder(tmp_path, {"a": 1}) as folder:
        first = run(qn.rollouts(small(), stage, tasks(3), group=2, folder=folder, ordered=True))
    with RunFolder(tmp_path, {"a": 1}, resume=True) as folder:
        second = run(qn.rollouts(small(), stage, tasks(6), group=2, folder=folder, ordered=True))
    assert stage.started == 12
    assert [t.to_bytes() for one in second[:3] for t in one.traces] == [
        t.to_bytes() for one in first for t in one.traces
    ]
    assert len(list(read_traces(tmp_path))) == 12


def test_in_a_folder_ids_are_distinct(tmp_path: Path) -> None:
    with RunFolder(tmp_path, {}) as folder, pytest.raises(UsageError, match=r"id 't0' \(split 'dev'\)"):
        run(qn.rollouts(small(), silent, tasks(1) * 2, split="dev", folder=folder))
    assert len(run(qn.rollouts(small(), silent, tasks(1) * 2))) == 2


# --- records ---


def test_seconds_are_split_and_lie_beside_the_record() -> None:
    async def slow(request: Request) -> Reply:
        await asyncio.sleep(0.01)
        return says(*[call("nod")] * (len(request.messages) < 4))

    env = environment(fine, concurrency=1)
    (one, two) = run(qn.rollouts(env, slow, tasks(2), ordered=True))
    timing = one.rollouts[0].timing
    assert timing.model_s >= 0.02
    assert timing.total_s >= timing.model_s + timing.tool_s + timing.verifier_s
    assert min(timing.tool_s, timing.verifier_s) > 0
    assert two.rollouts[0].timing.queue_s < timing.total_s
    assert one.traces[0].to_bytes() == run(qn.rollouts(env, slow, tasks(1)))[0].traces[0].to_bytes()


def test_the_record_names_the_agent() -> None:
    class Named:
        name = "policy-7"

        def model(self, task: Any, seed: int) -> Model:
            return silent

    class Silent:
        async def __call__(self, request: Request) -> Reply:
            return says()

    env = environment()
    names = {asyncio.run(qn.rollout(env, first_task(env), model)).trace.agent for model in (Named(), silent, Silent())}
    assert names == {"policy-7", "silent", "Silent"}


def test_the_model_may_go_on_after_the_end_but_the_world_does_not() -> None:
    class Overtime(msgspec.Struct, frozen=True):
        async def play(self, session: Session, model: Model) -> None:
            session.terminate("over")
            await model(session.request())

    trace = play(environment(harness=Overtime()), script())
    assert (trace.end, trace.turns) == (End.TERMINATED, [])
