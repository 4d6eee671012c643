"""Three weeks at once are three weeks in pieces, wherever the world is copied, shipped or asked on the way."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quintain import resource
from quintain.resources.schedule import Every
from quintain.testing.elsewhere import ask

from .desk import DAY, HOUR, Desk, desk, record

WEEKS = 21 * DAY


def digest(world: Desk) -> str:
    return asyncio.run(resource.digest(world))


def shipped(world: Desk) -> Desk:
    return resource.load(Desk, asyncio.run(resource.dump(world)))


@pytest.fixture(scope="module")
def whole() -> Desk:
    world = desk()
    world.clock.advance(WEEKS)
    return world


def test_the_world_is_lively(whole: Desk) -> None:
    """Were nothing to happen, the law would hold for nothing."""
    outcomes = [line.outcome for line in whole.outbox.log.values()]
    assert {"delivered", "refused", "duplicate", "dead"} <= set(outcomes)
    assert len(whole.log) > 500 < len(whole.mailbox.mails)
    for words in ("backup", "payday", "sweep", "outage True", "outage False", "at once", "by the clock", "is late"):
        assert any(words in line for line in whole.log), words


@pytest.mark.parametrize("step", [DAY, HOUR, 60])
def test_step_by_step(whole: Desk, step: int) -> None:
    world = desk()
    for _ in range(WEEKS // step):
        world.clock.advance(step)
    assert record(world) == record(whole)
    assert digest(world) == digest(whole)


CUTS = st.lists(st.floats(0, WEEKS, allow_nan=False), max_size=12).map(sorted)
MOVES: Sequence[Callable[[Desk], Desk]] = (lambda world: world, Desk.copy, shipped)


@functools.cache
def in_one_go(seconds: float) -> tuple[Any, str]:
    """Record and digest of a world that advances once; nearly all examples ask for the same time."""
    world = desk()
    world.clock.advance(seconds)
    return record(world), digest(world)


@pytest.mark.slow  # `TestMoved` shows the same in shorter times
@settings(max_examples=6, deadline=None)
@given(CUTS, st.lists(st.sampled_from(MOVES), min_size=13, max_size=13))
def test_in_any_pieces_with_copies_between(cuts: list[float], moves: list[Callable[[Desk], Desk]]) -> None:
    world = desk()
    start = world.clock.now
    for cut, move in zip([*cuts, WEEKS], moves, strict=False):
        world.clock.advance(max(0.0, start + cut - world.clock.now))
        world = move(world)
        digest(world)
        world.jobs.all()
        world.outbox.waiting()
    assert (record(world), digest(world)) == in_one_go(world.clock.now - start)


def test_forks_part_and_leave_their_origin_alone() -> None:
    origin = desk()
    origin.clock.advance(3 * DAY)
    before = digest(origin)
    one, two = origin.copy(), origin.copy()
    one.clock.advance(2 * DAY)
    two.ticket("Dora")
    two.clock.advance(2 * DAY)
    assert digest(origin) == before
    origin.clock.advance(2 * DAY)
    assert record(origin) == record(one)
    assert record(origin) != record(two)


class Moved(RuleBasedStateMachine):
    """A world that is cut, copied and shipped after every move stays equal to one that never is."""

    def __init__(self) -> None:
        super().__init__()
        self.still, self.moved = desk(), desk()
        self.owed = 0

    def pay(self) -> None:
        """The still world advances in one go, and only when it must."""
        if self.owed:
            self.still.clock.advance(self.owed)
            self.owed = 0

    @rule(minutes=st.integers(0, 2000))
    def advance(self, minutes: int) -> None:
        self.owed += minutes * 60
        self.moved.clock.advance(minutes * 60)

    @rule(customer=st.sampled_from(["Ann", "Dora"]))
    def ticket(self, customer: str) -> None:
        self.pay()
        for world in (self.still, self.moved):
            world.ticket(customer)

    @rule(seconds=st.integers(0, 5 * HOUR), number=st.integers(1, 40))
    def timers(self, seconds: int, number: int) -> None:
        self.pay()
        set_ = [world.timers.after(seconds, world.note, what="mine") for world in (self.still, self.moved)]
        gone = [world.timers.cancel(number) for world in (self.still, self.moved)]
        assert (set_[0], gone[0]) == (set_[1], gone[1])

    @rule(topic=st.sampled_from(["opened", "escalated"]), pause=st.booleans())
    def outage(self, topic: str, pause: bool) -> None:
        self.pay()
        for world in (self.still, self.moved):
            (world.outbox.pause if pause else world.outbox.resume)(topic)

    @rule(every=st.integers(60, 5 * HOUR), count=st.none() | st.integers(1, 5))
    def job(self, every: int, count: int | None) -> None:
        self.pay()
        for world in (self.still, self.moved):
            world.jobs.add(world.new_id("J"), Every(every), world.sweep, count=count)

    @rule(name=st.sampled_from(["calls", "morning", "cron"]), pause=st.booleans())
    def beat(self, name: str, pause: bool) -> None:
        self.pay()
        for world in (self.still, self.moved):
            if name in world.jobs.jobs:
                (world.jobs.pause if pause else world.jobs.resume)(name)

    @precondition(lambda self: len(self.moved.outbox.dead) > 0)
    @rule()
    def redeliver(self) -> None:
        self.pay()
        for world in (self.still, self.moved):
            world.outbox.redeliver(int(next(iter(world.outbox.dead))))

    @rule()
    def copy(self) -> None:
        self.moved = self.moved.copy()

    @rule()
    def ship(self) -> None:
        self.moved = shipped(self.moved)

    @rule()
    def meet(self) -> None:
        self.pay()

    @invariant()
    def equal(self) -> None:
        if not self.owed:
            assert record(self.still) == record(self.moved)
            assert self.still == self.moved
            assert digest(self.still) == digest(self.moved)

    def teardown(self) -> None:
        self.pay()
        self.equal()


TestMoved = Moved.TestCase
TestMoved.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)


class Elsewhere:
    """Questions to other processes."""

    def days(self) -> list[str]:
        """Digests of the world, and of its bytes, day by day."""
        world, found = desk(seed=7), list[str]()
        for _ in range(10):
            world.clock.advance(DAY)
            found.append(digest(world))
        return [*found, asyncio.run(resource.dump(world)).hex()]


def test_other_processes_give_the_same_bytes() -> None:
    assert ask(Elsewhere(), "days") == [Elsewhere().days()] * 2
