"""Virtual time: timers fire in order, however time is cut into pieces and wherever the world is copied."""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import quintain as qn
from quintain import resource
from quintain.state import Clock


class Bell(qn.State):
    """A part with timers of its own."""

    rung: list[str] = []

    def ring(self, name: str) -> None:
        self.rung.append(f"{name}@{self.clock.now:g}")


class Tower(qn.State):
    small: Bell
    great: Bell
    floor: int = 0
    log: list[str] = []

    def note(self, name: str) -> None:
        self.log.append(f"{name}@{self.clock.now:g}")

    def chain(self, name: str, every: float, left: int) -> None:
        self.note(name)
        if left:
            self.clock.after(every, self.chain, name=name, every=every, left=left - 1)

    def drop(self, number: int) -> None:
        self.note(f"drop {self.clock.cancel(number)}")

    def now_too(self) -> None:
        self.clock.after(0, self.note, name="at once")

    def nested(self) -> None:
        self.clock.advance(1)

    def refuse(self) -> None:
        raise qn.ToolError("no")

    def broken(self) -> None:
        raise KeyError("bug")

    async def slow(self) -> None:
        raise AssertionError("nobody awaits it")


def tower() -> Tower:
    return Tower(small=Bell(), great=Bell())


Action = Callable[[Tower], object]


def _set(after: int, kind: int) -> Action:
    actions: list[Action] = [
        lambda world: world.clock.after(after, world.note, name=f"n{after}"),
        lambda world: world.clock.after(after, world.small.ring, name="small"),
        lambda world: world.clock.after(after, world.great.ring, name="great"),
        lambda world: world.clock.after(after, world.chain, name="chain", every=2, left=3),
        lambda world: world.clock.after(after, world.now_too),
        lambda world: world.clock.after(after, world.drop, number=after),
        lambda world: world.clock.cancel(after),
    ]
    return actions[kind]


ACTIONS = st.builds(_set, st.integers(0, 9), st.integers(0, 6))


def times(world: Tower) -> tuple[Any, ...]:
    return world.log, world.small.rung, world.great.rung, world.clock.now, world.clock.timers, world.clock.pack()


@given(st.lists(ACTIONS, max_size=8), st.lists(st.integers(0, 7), min_size=1, max_size=6))
def test_in_one_go_or_in_pieces(actions: list[Action], pieces: list[int]) -> None:
    whole, cut = tower(), tower()
    for action in actions:
        action(whole)
        action(cut)
    whole.clock.advance(sum(pieces))
    for piece in pieces:
        cut.clock.advance(piece)
    assert times(whole) == times(cut)


class Copies(RuleBasedStateMachine):
    """A world that is copied or shipped after every move stays equal to one that never is."""

    def __init__(self) -> None:
        super().__init__()
        self.still, self.moved = tower(), tower()
        # One loop for all steps, because making one costs as much as what is awaited in it.
        self.runner = asyncio.Runner()

    def teardown(self) -> None:
        self.runner.close()

    @rule(action=ACTIONS)
    def act(self, action: Action) -> None:
        assert action(self.still) == action(self.moved)

    @rule(seconds=st.integers(0, 9))
    def advance(self, seconds: int) -> None:
        self.still.clock.advance(seconds)
        self.moved.clock.advance(seconds)

    @rule(draws=st.integers(1, 3), prefix=st.sampled_from("RS"))
    def use(self, draws: int, prefix: str) -> None:
        for _ in range(draws):
            assert self.still.rng.bits() == self.moved.small.rng.bits()
        assert self.still.great.new_id(prefix) == self.moved.new_id(prefix)

    @rule()
    def copy(self) -> None:
        self.moved = self.moved.copy()

    @rule()
    def ship(self) -> None:
        self.moved = resource.load(Tower, self.runner.run(resource.dump(self.moved)))

    @invariant()
    def equal(self) -> None:
        assert times(self.still) == times(self.moved)
        assert self.still == self.moved
        assert self.runner.run(resource.digest(self.still)) == self.runner.run(resource.digest(self.moved))


TestCopies = Copies.TestCase


@given(st.lists(st.integers(0, 5), max_size=10))
def test_timers_fire_by_time_and_then_by_insertion(dues: list[int]) -> None:
    world = tower()
    for number, due in enumerate(dues):
        world.clock.at(due, world.note, name=str(number))
    firing = [(timer.due, timer.number) for timer in world.clock.timers]
    assert firing == sorted(firing)
    world.clock.advance(5)
    assert world.log == [f"{number}@{dues[number]}" for number in sorted(range(len(dues)), key=dues.__getitem__)]
    assert world.clock.timers == ()


def test_a_timer_that_is_due_beyond_the_goal_waits() -> None:
    world = tower()
    world.clock.after(2, world.note, name="late")
    world.clock.advance(1.5)
    assert (world.log, world.clock.now) == ([], 1.5)
    world.clock.advance(0.5)
    assert world.log == ["late@2"]


def test_timers_may_set_timers_that_are_due_already() -> None:
    world = tower()
    world.clock.after(1, world.now_too)
    world.clock.after(0, world.chain, name="c", every=1, left=2)
    world.clock.advance(2)
    assert world.log == ["c@0", "c@1", "at once@1", "c@2"]


def test_cancel_says_whether_there_was_one() -> None:
    world = tower()
    number = world.clock.after(1, world.note, name="never")
    assert world.clock.cancel(number)
    assert not world.clock.cancel(number)
    world.clock.advance(2)
    assert world.log == []
    assert world.clock.after(1, world.note, name="next") == number + 1


def test_an_int_is_the_time_it_stands_for() -> None:
    one, two = tower(), tower()
    one.clock.at(1, one.note, name="x")
    two.clock.at(1.0, two.note, name="x")
    assert one.shared == two.shared == one.copy().shared
    one.clock.advance(1)
    assert isinstance(one.clock.now, float)


def test_the_date_is_in_utc() -> None:
    world = tower()
    world.clock.advance(86_400)
    assert world.clock.date == datetime(1970, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("seconds", [-1, math.inf, math.nan])
def test_time_does_not_run(seconds: float) -> None:
    with pytest.raises(ValueError, match=f"a clock advances by 0 or more seconds, got {seconds}"):
        tower().clock.advance(seconds)


@pytest.mark.parametrize("due", [-1.0, math.nan])
def test_a_timer_is_due_later(due: float) -> None:
    world = tower()
    with pytest.raises(ValueError, match=f"a timer is due at {due}, but it is 0.0 already"):
        world.clock.at(due, world.note, name="x")


def test_only_methods_of_the_world_are_called() -> None:
    world = tower()
    for method in (tower().note, world.log.append, lambda: None, print):
        with pytest.raises(TypeError, match="is not a method of this world or of one of its parts"):
            world.clock.after(1, method)
    with pytest.raises(TypeError, match="type object is unsupported"):
        world.clock.after(1, world.note, name=object())
    assert world.clock.timers == ()


def test_arguments_are_frozen_when_the_timer_is_set() -> None:
    world, names = tower(), ["a"]
    world.clock.after(1, world.note, name=names)
    names.append("b")
    world.clock.advance(1)
    assert world.log == ["['a']@1"]


@pytest.mark.parametrize(
    ("method", "error", "says"),
    [
        ("nested", RuntimeError, "a timer's method must not advance the clock that called it"),
        ("refuse", RuntimeError, r"timer 'refuse' raised ToolError\(no\): no model reads it"),
        ("broken", KeyError, "bug"),
        ("slow", TypeError, "timer 'slow' is async; time passes inside one call, so it cannot wait"),
    ],
)
def test_a_timer_goes_wrong(method: str, error: type[Exception], says: str) -> None:
    world = tower()
    world.clock.after(1, getattr(world, method))
    world.clock.after(2, world.note, name="after")
    with pytest.raises(error, match=says):
        world.clock.advance(3)
    world.clock.advance(1)
    assert world.log == ["after@2"], "the clock itself is sound"


def test_a_clock_without_its_world() -> None:
    with pytest.raises(RuntimeError, match="this clock belongs to a world that is gone"):
        Clock().after(1, tower().note, name="x")
    world = tower()
    clock, method = world.clock, world.small.ring
    del world
    gc.collect()
    with pytest.raises(RuntimeError, match="this clock belongs to a world that is gone"):
        clock.after(1, method, name="x")
