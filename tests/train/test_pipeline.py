"""Pipeline: no token is older than the bound, nothing is lost, and nothing comes twice."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

import quintain as qn
from quintain.errors import ModelError, RunStopped, UsageError
from quintain.harness import Model, Request, Session
from quintain.rollouts import Draw, Group
from quintain.trace import Message, Reply, Tokens
from quintain.train.curriculum import AdaptiveSampler, Sampler
from quintain.train.pipeline import AsyncBatches, Batch, Buffer, EndedGroup, Staleness, pipeline
from quintain.train.report import TrainingLog, read_updates
from tests.train.policies import LIMIT, Policy, env, lags, names, tasks
from tests.worlds import Yard, environment, fine, says

T = TypeVar("T")


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Returns the result of what need not wait."""
    with pytest.raises(StopIteration) as done:
        work.send(None)
    return done.value.value  # type: ignore[no-any-return]


def limited(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, LIMIT))


def row(task: str, version: int) -> qn.Trajectory:
    async def one() -> qn.Trajectory:
        policy = Policy()
        policy.version = version
        async for group in qn.rollouts(env(), policy, [qn.Task(id=task, prompt=task, start=Yard())]):
            return qn.trajectories(group.traces)[0]
        raise AssertionError("no group came")

    return asyncio.run(one())


ROWS = [row("r", version) for version in range(40)]


def played(index: int, oldest: int, *, rows: bool = True, cancelled: bool = False) -> EndedGroup:
    found = [ROWS[oldest]] if rows else []
    return EndedGroup(
        index=index, task=f"t{index}", rows=found, oldest=oldest, tokens=2, episodes=1, cancelled=cancelled
    )


# --- the rules, without play ---


class Training(RuleBasedStateMachine):
    """A trainer and groups that end in any order; each draws its tokens at any time while it is in play."""

    running: Bundle[tuple[int, int]] = Bundle("running")

    @initialize(
        bound=st.integers(0, 4), batch=st.integers(1, 4), concurrent=st.integers(1, 12), version=st.integers(0, 3)
    )
    def start(self, bound: int, batch: int, concurrent: int, version: int) -> None:
        self.staleness = Staleness(bound=bound, batch=batch, concurrent=concurrent, version=version)
        self.buffer = Buffer(self.staleness)
        self.first = version
        self.begun = self.read = self.lost = self.waiting = 0

    @precondition(lambda self: self.staleness.capacity > 0)
    @rule(target=running)
    def begin(self) -> tuple[int, int]:
        self.buffer.begin()
        self.begun += 1
        return self.begun, self.staleness.version

    @rule(
        group=consumes(running), kind=st.sampled_from(["kept", "kept", "kept", "unkept", "cancelled"]), data=st.data()
    )
    def end(self, group: tuple[int, int], kind: str, data: st.DataObject) -> None:
        index, since = group
        oldest = data.draw(st.integers(since, self.staleness.version))
        self.buffer.add(played(index, oldest, rows=kind == "kept", cancelled=kind == "cancelled"))
        is_stale = oldest < self.staleness.version - self.staleness.bound
        self.waiting += kind == "kept" and not is_stale
        self.lost += kind != "kept" or is_stale

    @precondition(lambda self: self.waiting >= self.staleness.batch)
    @rule()
    def take(self) -> None:
        batch = at_once(self.buffer.take())
        assert batch is not None
        assert max(lags(batch.rows, self.staleness.version)) <= self.staleness.bound
        assert (batch.ledger.groups, len(batch.rows)) == (self.staleness.batch, self.staleness.batch)
        assert batch.ledger.lag_max == max(lags(batch.rows, self.staleness.version))
        self.waiting -= batch.ledger.groups
        self.read += batch.ledger.groups
        self.lost -= len(batch.ledger.dropped) + batch.ledger.unkept
        self.begun -= len(batch.ledger.dropped) + batch.ledger.unkept

    @precondition(lambda self: self.staleness.version < 30)
    @rule()
    def advance(self) -> None:
        before = len(self.buffer._ready)
        self.buffer.advance(self.staleness.version + 1)
        self.waiting -= before - len(self.buffer._ready)
        self.lost += before - len(self.buffer._ready)

    @invariant()
    def admission_holds(self) -> None:
        one = self.staleness
        assert one.accepted + one.running <= (one.bound + one.version + 1) * one.batch
        assert 0 <= one.running <= one.concurrent

    @invariant()
    def nothing_is_lost_and_nothing_counts_twice(self) -> None:
        assert self.begun == self.staleness.running + self.waiting + self.read + self.lost
        assert self.staleness.accepted == self.first * self.staleness.batch + self.waiting + self.read


TestTraining = Training.TestCase
TestTraining.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(st.integers(0, 5), st.integers(1, 5), st.integers(1, 40))
def test_admission_alone_keeps_the_bound_when_groups_end_in_order(bound: int, batch: int, concurrent: int) -> None:
    rule = Staleness(bound=bound, batch=batch, concurrent=concurrent)
    running, ready = deque[int](), deque[int]()
    for _ in range(400):
        while rule.capacity > 0:
            rule.running += 1
            running.append(rule.version)
        ready.append(running.popleft())
        rule.running -= 1
        rule.accepted += 1
        if len(ready) == batch:
            assert max(rule.version - since for since in ready) <= bound
            ready.clear()
            rule.version += 1
    assert rule.version == 400 // batch


def test_a_batch_takes_the_oldest_groups_first() -> None:
    buffer = Buffer(Staleness(bound=2, batch=2, concurrent=9, version=2))
    for index, oldest in enumerate([2, 1, 2, 0]):
        buffer.begin()
        buffer.add(played(index, oldest))
    batch = at_once(buffer.take())
    assert batch is not None
    assert lags(batch.rows, 2) == [2, 2, 1, 1]


def test_a_dropped_group_is_counted_with_its_length_and_frees_its_place() -> None:
    buffer = Buffer(Staleness(bound=0, batch=1, concurrent=9))
    buffer.begin()
    buffer.add(EndedGroup(index=0, task="long", rows=[ROWS[0]], oldest=0, tokens=90, episodes=2))
    assert buffer.staleness.capacity == 0
    buffer.advance(1)
    assert buffer.staleness.capacity == 2
    buffer.begin()
    buffer.add(played(1, 1))
    batch = at_once(buffer.take())
    assert batch is not None
    (dropped,) = batch.ledger.dropped
    assert (dropped.task, dropped.place, dropped.lag, dropped.tokens) == ("long", "in queue", 1, 90)
    assert (batch.ledger.length, batch.ledger.dropped_length) == (2.0, 45.0)


@pytest.mark.parametrize(("bound", "batch", "version"), [(-1, 1, 0), (0, 0, 0), (0, 1, -1)])
def test_numbers_out_of_their_range_are_refused(bound: int, batch: int, version: int) -> None:
    with pytest.raises(UsageError, match="bound and version must be >= 0 and batch >= 1, got"):
        Staleness(bound=bound, batch=batch, concurrent=1, version=version)


@pytest.mark.parametrize("version", [0, 2, -1])
def test_versions_count_updates(version: int) -> None:
    with pytest.raises(UsageError, match=f"versions count updates: expected 1, got {version}"):
        Buffer(Staleness(bound=0, batch=1, concurrent=1)).advance(version)


# --- play ---


async def eventually(condition: Callable[[], bool]) -> None:
    """Waits for a condition that the trainer makes true; after many ticks it goes on, and the test fails."""
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0)


async def train(pipe: AsyncBatches[Any], policy: Policy, *, updates: int = 10**9, ticks: int = 0) -> list[Batch]:
    """Returns the batches; each update takes some ticks, and the policy's weights are swapped before `advance`."""
    found: list[Batch] = []
    version = policy.version or 0
    async with pipe:
        async for batch in pipe:
            assert all(lag <= batch.ledger.lag_max for lag in lags(batch.rows, version))
            found.append(batch)
            if len(found) == updates:
                break
            for _ in range(ticks):
                await asyncio.sleep(0)
            version += 1
            policy.version = version
            pipe.advance(version)
    return found


@given(
    count=st.integers(0, 30),
    size=st.integers(1, 3),
    batch=st.integers(1, 4),
    bound=st.integers(0, 3),
    rates=st.tuples(st.integers(1, 8), st.lists(st.sampled_from([0, 1, 3, 80]), min_size=1, max_size=8)),
    pause=st.integers(0, 20),
)
@settings(max_examples=40, deadline=None)
def test_every_group_is_in_one_batch_or_dropped_and_no_token_is_too_old(
    *, count: int, size: int, batch: int, bound: int, rates: tuple[int, list[int]], pause: int
) -> None:
    concurrency, ticks = rates
    left = itertools.cycle(ticks)
    policy = Policy(turns=lambda request: 1 + request.seed % 4, ticks=lambda _: next(left))
    pipe = pipeline(env(concurrency), policy, tasks(count), batch_groups=batch, group=size, bound=bound)
    found = limited(train(pipe, policy, ticks=pause))
    for version, one in enumerate(found):
        own = lags(one.rows, version)
        ledger = one.ledger
        assert max(own) <= bound
        assert (ledger.lag_min, ledger.lag_max, ledger.tokens) == (min(own), max(own), len(own))
        assert ledger.lag_mean == pytest.approx(sum(own) / len(own))
        assert (ledger.version, ledger.episodes) == (version, ledger.groups * size)
        assert ledger.groups == batch or one is found[-1]
    rows = names(row for one in found for row in one.rows)
    assert len(set(rows)) == len(rows)
    dropped = [one.task for batch in found for one in batch.ledger.dropped] + [one.task for one in pipe.dropped]
    assert len(set(dropped)) == len(dropped)
    read = {task for task, _, _, _ in rows}
    assert not read & set(dropped)
    assert len(read) + len(dropped) == count


def test_batches_are_logged_with_what_was_dropped_since_the_one_before(tmp_path: Path) -> None:
    @qn.reward
    def no_fives(view: qn.EpisodeView[Yard]) -> float:
        if view.task.id.endswith("5"):
            raise RuntimeError("the grader is down")
        return 1.0

    left = itertools.cycle([0, 1, 80])
    policy = Policy(ticks=lambda _: next(left), turns=lambda request: 1 + request.seed % 4)
    graded = environment(no_fives, concurrency=8, gate_rate=None, group_retries=0)
    with TrainingLog(tmp_path) as log:
        pipe = pipeline(graded, policy, AdaptiveSampler(tasks(30)), batch_groups=2, group=2, bound=1, log=log)
        ledgers = [batch.ledger for batch in limited(train(pipe, policy, updates=15))]
    found = read_updates(tmp_path)
    assert [one.step for one in found] == [one.version for one in ledgers]
    assert sum(len(one.dropped) for one in ledgers)
    assert sum(one.unkept for one in ledgers)
    assert all(one.sampler and sum(one.sampler.weights) == 30 for one in found)
    for one, ledger in zip(found, ledgers, strict=True):
        parts, lags = one.counts.parts, one.counts.lags
        assert (parts["trained"].groups, parts["trained"].tokens) == (ledger.groups, ledger.tokens)
        assert (min(lags), max(lags), sum(lags.values())) == (ledger.lag_min, ledger.lag_max, ledger.tokens)
        counted = {part: parts[part].groups for part in ("stale", "dropped") if part in parts}
        lost = {"stale": len(ledger.dropped), "dropped": ledger.unkept}
        assert counted == {part: count for part, count in lost.items() if count}


def test_a_group_in_play_that_becomes_too_old_is_cancelled_with_its_length() -> None:
    async def law() -> None:
        stuck = asyncio.Event()
        ended = asyncio.Event()

        class Long(Policy):
            async def __call__(self, request: Request) -> Reply:
                said = sum(message.role == "assistant" for message in request.messages)
                if request.messages[1].text == "0" and said == 2:
                    try:
                        await stuck.wait()
                    finally:
                        ended.set()
                return await super().__call__(request)

        policy = Long(turns=lambda request: 9 if request.messages[1].text == "0" else 1)
        pipe = pipeline(env(), policy, tasks(12), batch_groups=2, group=2, bound=1)
        found = await train(pipe, policy)
        assert ended.is_set()
        assert not stuck.is_set()
        (dropped,) = [one for batch in found for one in batch.ledger.dropped]
        assert (dropped.task, dropped.place, dropped.tokens, dropped.episodes) == ("t0", "in flight", 8, 2)
        assert dropped.lag == 2
        assert len({task for batch in found for task, _, _, _ in names(batch.rows)}) == 11

    limited(law())


def test_a_reply_that_comes_with_old_weights_ends_its_group() -> None:
    class Late(Policy):
        late = 0

        async def __call__(self, request: Request) -> Reply:
            reply = await super().__call__(request)
            if request.messages[1].text != "0":
                return reply
            self.late += 1
            await eventually(lambda: (self.version or 0) > 1)
            assert reply.tokens is not None
            tokens = msgspec.structs.replace(reply.tokens, versions=[(0, reply.policy_version)])
            return msgspec.structs.replace(reply, tokens=tokens, policy_version=None)

    policy = Late(turns=lambda _: 9)
    pipe = pipeline(env(), policy, tasks(12), batch_groups=2, group=1, bound=1)
    found = limited(train(pipe, policy, ticks=5))
    (dropped,) = [one for batch in found for one in batch.ledger.dropped]
    assert (dropped.task, dropped.tokens, dropped.place) == ("t0", 2, "in flight")
    assert policy.late == 1


def test_an_earlier_attempt_makes_a_group_no_older() -> None:
    class Shaky(Policy):
        async def __call__(self, request: Request) -> Reply:
            reply = await super().__call__(request)
            if request.messages[1].text != "0":
                return reply
            if reply.policy_version == 0 and any(message.role == "assistant" for message in request.messages):
                await eventually(lambda: self.version != 0)
                raise ModelError("down", kind="transport_peer_drop")
            await eventually(lambda: self.version != 1 or reply.policy_version != 1)
            return reply

    policy = Shaky(turns=lambda _: 2)
    given = pipeline(environment(fine, gate_rate=None), policy, tasks(12), batch_groups=2, group=2, bound=1)
    found = limited(train(given, policy, ticks=30))
    assert [one.task for batch in found for one in batch.ledger.dropped] == []
    assert {row.attempt for batch in found for row in batch.rows if row.task == "t0"} == {1}


def test_a_group_of_a_task_chain_is_played_to_its_end_and_then_dropped() -> None:
    days = [qn.Task(id=f"t{n}", prompt=f"{n}", start=Yard(), day="d" if n < 2 else "") for n in range(20)]
    policy = Policy(
        ticks=lambda request: 20 if request.messages[1].text == "0" else 0,
        turns=lambda request: 9 if request.messages[1].text == "0" else 1,
    )
    pipe = pipeline(env(4), policy, days, batch_groups=2, group=1, bound=1)
    found = limited(train(pipe, policy))
    (dropped,) = [one for batch in found for one in batch.ledger.dropped]
    assert (dropped.task, dropped.tokens) == ("t0", 18)
    assert "t1" in {row.task for batch in found for row in batch.rows}


def test_weights_that_are_swapped_within_a_reply_count_token_by_token() -> None:
    class Swapped(Policy):
        async def __call__(self, request: Request) -> Reply:
            reply = await super().__call__(request)
            assert reply.tokens is not None
            versions = [(0, max(0, (self.version or 0) - 1)), (1, self.version or 0)]
            return msgspec.structs.replace(reply, tokens=msgspec.structs.replace(reply.tokens, versions=versions))

    policy = Swapped(turns=lambda _: 2)
    found = limited(train(pipeline(env(), policy, tasks(12), batch_groups=2, group=2, bound=2), policy))
    ledgers = [(one.ledger.lag_min, one.ledger.lag_mean, one.ledger.lag_max) for one in found]
    assert ledgers[0] == (0, 0.0, 0)
    assert [max(lags(one.rows, version)) for version, one in enumerate(found)] == [high for _, _, high in ledgers]
    assert any(low < mean < high for low, mean, high in ledgers)


def test_play_stops_when_the_trainer_stops_reading() -> None:
    async def law() -> None:
        policy = Policy()
        sampler = Sampler(tasks(50))
        async with pipeline(env(), policy, sampler, batch_groups=3, group=2, bound=2) as pipe:
            await anext(pipe)
            for _ in range(2000):
                await asyncio.sleep(0)
            assert len(policy.begun) == (2 + 1) * 3
            assert len(asyncio.all_tasks()) > 1
        assert len(policy.begun) == 9
        assert sum("rollouts" in repr(task) or "_drain" in repr(task) for task in asyncio.all_tasks()) == 0

    limited(law())


def test_closing_does_not_wait_for_new_episodes_while_a_cancelled_one_cleans_up() -> None:
    async def law() -> None:
        class Slow(Policy):
            cleaning = False
            asked = 0

            async def __call__(self, request: Request) -> Reply:
                self.asked += 1
                if request.messages[1].text == "0" and any(message.role == "assistant" for message in request.messages):
                    try:
                        await asyncio.Event().wait()
                    finally:
                        self.cleaning = True
                        await eventually(lambda: False)
                return await super().__call__(request)

        policy = Slow(turns=lambda _: 2)
        async with pipeline(env(6), policy, tasks(40), batch_groups=1, group=5, bound=3) as pipe:
            for version in itertools.count(1):
                await anext(pipe)
                policy.version = version
                pipe.advance(version)
                if policy.cleaning:
                    break
                await asyncio.sleep(0)
            asked = policy.asked
        assert policy.asked == asked

    limited(law())


def test_a_closed_pipeline_says_so() -> None:
    async def law() -> None:
        pipe = pipeline(env(), Policy(), Sampler(tasks(5)), batch_groups=2, group=2, bound=1)
        await anext(pipe)
        await pipe.aclose()
        with pytest.raises(UsageError, match="the pipeline is closed: its play was cancelled"):
            await anext(pipe)

    limited(law())


def test_an_episode_that_cancels_itself_closes_the_pipeline() -> None:
    async def cancelling(request: Request) -> Reply:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return says()

    pipe = pipeline(env(), cancelling, tasks(5), batch_groups=2, group=2, bound=1)
    with pytest.raises(UsageError, match="the pipeline is closed"):
        limited(train(pipe, Policy()))


def test_a_trainer_that_forgets_to_advance_is_told_so() -> None:
    async def law() -> None:
        async with pipeline(env(), Policy(), Sampler(tasks(5)), batch_groups=2, group=2, bound=1) as pipe:
            assert [(await anext(pipe)).ledger.lag_max for _ in range(2)] == [0, 0]
            with pytest.raises(UsageError, match=r"with bound=1 no more groups may begin: call advance\(version\)"):
                await anext(pipe)

    limited(law())


def test_an_endpoint_without_versions_is_refused() -> None:
    policy = Policy()
    policy.version = None
    pipe = pipeline(env(), policy, Sampler(tasks(5)), batch_groups=2, group=2, bound=1)
    with pytest.raises(UsageError, match=r"episodes of 't[0-4]' have no policy version, so their staleness is unknown"):
        limited(train(pipe, policy))


def test_an_endpoint_that_drops_versions_later_is_refused() -> None:
    class Forgetful(Policy):
        async def __call__(self, request: Request) -> Reply:
            if self.version == 2 and any(message.role == "assistant" for message in request.messages):
                return says(text="done", tokens=(await super().__call__(request)).tokens)
            return await super().__call__(request)

    policy = Forgetful(turns=lambda _: 2)
    pipe = pipeline(env(), policy, Sampler(tasks(5)), batch_groups=2, group=2, bound=0)
    with pytest.raises(UsageError, match="have no policy version"):
        limited(train(pipe, policy))


def test_an_endpoint_that_counts_otherwise_is_refused() -> None:
    policy = Policy()
    policy.version = 7
    pipe = pipeline(env(), policy, Sampler(tasks(5)), batch_groups=2, group=2, bound=1)
    with pytest.raises(UsageError, match="has version 7, the trainer is at 0: endpoint and trainer must count alike"):
        limited(train(pipe, policy))


def test_an_endpoint_that_keeps_its_old_weights_stops_the_run() -> None:
    async def law() -> None:
        async with pipeline(env(), Policy(), Sampler(tasks(5)), batch_groups=2, group=2, bound=1) as pipe:
            for version in (1, 2, 3):
                await anext(pipe)
                pipe.advance(version)

    with pytest.raises(RunStopped, match=r"version 0, but when it was asked for, .* was 1: the endpoint lacks"):
        limited(law())


def test_training_goes_on_from_a_version() -> None:
    policy = Policy()
    policy.version = 7
    pipe = pipeline(env(), policy, Sampler(tasks(5)), batch_groups=2, group=2, bound=1, version=7)
    assert [batch.ledger.version for batch in limited(train(pipe, policy, updates=3))] == [7, 8, 9]


def test_a_run_that_the_gate_stops_is_stopped_for_the_trainer() -> None:
    async def down(request: Request) -> Reply:
        raise ModelError("down", kind="transport_peer_drop")

    pipe = pipeline(env(), down, Sampler(tasks(5)), batch_groups=2, group=2, bound=1)
    with pytest.raises(RunStopped, match="every one failed"):
        limited(train(pipe, Policy()))


def test_groups_with_too_few_valid_episodes_are_counted_and_played_on() -> None:
    class Shaky(Policy):
        async def __call__(self, request: Request) -> Reply:
            if request.messages[1].text == "3":
                raise ModelError("down", kind="transport_peer_drop")
            return await super().__call__(request)

    policy = Shaky()
    pipe = pipeline(environment(fine, gate_rate=None), policy, tasks(8), batch_groups=2, group=2, bound=2)
    found = limited(train(pipe, policy))
    assert sum(batch.ledger.unkept for batch in found) == 1
    assert [batch.ledger.groups for batch in found] == [2, 2, 2, 1]


def test_a_sampler_hears_of_each_group_and_draws_after_it() -> None:
    class Listening(Sampler[Yard]):
        drawn = 0

        def __init__(self, given: Sequence[qn.Task[Yard]]) -> None:
            super().__init__(given)
            self.heard: list[str] = []

        def draw(self) -> Draw[Yard]:
            self.drawn += 1
            return super().draw()

        def observe(self, group: Group) -> None:
            assert group.kept
            self.heard.append(group.task)

    sampler, policy = Listening(tasks(4)), Policy()
    pipe = pipeline(env(), policy, sampler, batch_groups=2, group=2, bound=0)
    found = limited(train(pipe, policy, updates=4))
    assert Counter(sampler.heard) == {f"t{n}": 2 for n in range(4)}
    assert {row.task for batch in found[:2] for row in batch.rows} == set(sampler.heard)
    assert sampler.drawn == 8


def test_a_sampler_that_raises_is_heard() -> None:
    def broken() -> Iterator[qn.Task[Yard]]:
        yield tasks(1)[0]
        raise LookupError("the sampler broke")

    with pytest.raises(LookupError, match="the sampler broke"):
        limited(train(pipeline(env(), Policy(), broken(), batch_groups=2, group=1, bound=1), Policy()))


def test_versions_of_a_simulated_user_do_not_count() -> None:
    class Talk:
        async def play(self, session: Session, model: Model) -> None:
            user = session.add_actor("user", Message("user", "Ask."))
            await user.step(await model(user.request()))
            session.append(Message("user", "hello"))
            await session.step(await model(session.request()))

    class Both(Policy):
        async def __call__(self, request: Request) -> Reply:
            old = says(text="hello", tokens=Tokens([0], [0]), policy_version=-9)
            return old if request.role == "user" else await super().__call__(request)

    policy = Both()
    pipe = pipeline(environment(fine, harness=Talk()), policy, tasks(2), batch_groups=2, group=2, bound=0)
    assert [len(batch.rows) for batch in limited(train(pipe, policy))] == [4]
