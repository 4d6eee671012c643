"""`Timers` fire as the clock's own timers do, and refuse what cannot be called."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.errors import DefinitionError, UsageError
from quintain.resources.schedule import Call, Timers


class Bell(qn.State):
    timers: Timers
    rung: list[str] = []

    def ring(self, name: str) -> None:
        self.rung.append(f"{name}@{self.clock.now:g}")


class Tower(qn.State):
    """World whose timers are the clock's or rows."""

    timers: Timers
    bell: Bell
    rows: bool = True
    log: list[str] = []

    @property
    def setter(self) -> Any:
        return self.timers if self.rows else self.clock

    def note(self, name: str) -> None:
        self.log.append(f"{name}@{self.clock.now:g}")

    def chain(self, every: float, left: int) -> None:
        self.note(f"chain {left}")
        if left:
            self.setter.after(every, self.chain, every=every, left=left - 1)

    def drop(self, number: int) -> None:
        self.note(f"drop {number} {self.setter.cancel(number)}")

    def forever(self) -> None:
        self.timers.after(0, self.forever)

    def look_ahead(self) -> None:
        twin = self.copy()
        twin.clock.advance(100)
        self.note(",".join(twin.log))

    def nested(self) -> None:
        self.clock.advance(1)

    def refuse(self) -> None:
        raise qn.ToolError("no")

    def broken(self) -> None:
        raise KeyError("bug")

    async def slow(self) -> None:
        raise AssertionError("it is not awaited")


def tower(*, rows: bool = True) -> Tower:
    return Tower(timers=Timers(), bell=Bell(timers=Timers()), rows=rows)


Action = Callable[[Tower], object]


def _set(after: int, kind: int) -> Action:
    actions: list[Action] = [
        lambda world: world.setter.after(after, world.note, name=f"n{after}"),
        lambda world: world.setter.after(after, world.bell.ring, name="bell"),
        lambda world: world.setter.after(after, world.chain, every=after % 3, left=3),
        lambda world: world.setter.after(after, world.drop, number=after),
        lambda world: world.setter.cancel(after),
    ]
    return actions[kind]


ACTIONS = st.builds(_set, st.integers(0, 9), st.integers(0, 4))


@given(st.lists(ACTIONS, max_size=12), st.lists(st.integers(0, 7), min_size=1, max_size=6))
def test_rows_fire_as_the_clock_s_timers_do(actions: list[Action], pieces: list[int]) -> None:
    clock, rows = tower(rows=False), tower()
    for action in actions:
        assert action(clock) == action(rows)
    clock.clock.advance(sum(pieces))
    for piece in pieces:
        rows.clock.advance(piece)
        assert len(rows.clock.timers) <= 1
    assert (clock.log, clock.bell.rung) == (rows.log, rows.bell.rung)
    assert [call.due for call in rows.timers.waiting()] == [timer.due for timer in clock.clock.timers]


def test_a_call_is_known_by_its_number() -> None:
    world = tower()
    assert world.timers.after(5, world.note, name="five") == 1
    assert world.timers.at(3, "bell.ring", name="three") == 2
    assert world.timers.waiting() == [
        Call(3.0, 2, "bell.ring", {"name": "three"}),
        Call(5.0, 1, "note", {"name": "five"}),
    ]
    assert world.timers.cancel(1)
    assert not world.timers.cancel(1)
    world.clock.advance(9)
    assert (world.log, world.bell.rung) == ([], ["three@3"])


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_any_number_needs_one_timer_of_the_clock(count: int) -> None:
    world = tower()
    for number in range(count):
        world.timers.after(number % 97, world.note, name=str(number))
    assert len(world.clock.timers) == 1
    for number in range(1, count + 1, 2):
        world.timers.cancel(number)
    twin = world.copy()
    twin.clock.advance(100)
    assert world.log == []
    expected = sorted(range(1, count, 2), key=lambda number: (number % 97, number))
    assert twin.log == [f"{number}@{number % 97}" for number in expected]
    assert twin.clock.timers == ()


def test_a_copy_calls_its_own_methods() -> None:
    world = tower()
    world.bell.timers.after(1, world.bell.ring, name="part of a part")
    twin = world.copy()
    twin.clock.advance(1)
    assert (world.bell.rung, twin.bell.rung) == ([], ["part of a part@1"])


def test_timers_are_a_world_of_their_own_too() -> None:
    class Clockwork(Timers):
        ticks: int = 0

        def tick(self) -> None:
            self.ticks += 1

    alone = Clockwork()
    alone.after(1, alone.tick)
    alone.clock.advance(1)
    assert alone.ticks == 1
    with pytest.raises(DefinitionError, match="with a past cannot join"):
        Tower(timers=alone, bell=Bell(timers=Timers()))


def test_a_method_may_copy_its_world_and_play_it_on() -> None:
    world = tower()
    world.timers.after(1, world.look_ahead)
    world.timers.after(1, world.note, name="same instant")
    world.timers.after(50, world.note, name="later")
    world.clock.advance(2)
    assert world.log == ["same instant@1,later@50@1", "same instant@1"]


def test_arguments_are_frozen_when_the_call_is_set() -> None:
    world, names = tower(), ["a"]
    world.timers.after(1, world.note, name=names)
    names.append("b")
    world.clock.advance(1)
    assert world.log == ["['a']@1"]


def test_calls_that_set_off_each_other_at_one_instant_are_stopped() -> None:
    world = tower()
    world.timers.limit = 50
    world.timers.after(1, world.forever)
    with pytest.raises(
        RuntimeError, match=r"Call\(.*method='forever'.* is one of over 50 that set off each other at 1"
    ):
        world.clock.advance(2)


def test_many_at_one_instant_are_no_chain() -> None:
    world = tower()
    world.timers.limit = 5
    for number in range(100):
        world.timers.after(1, world.note, name=str(number))
    world.timers.after(2, world.chain, every=0, left=5)
    world.clock.advance(1)
    world.clock.advance(1)
    assert len(world.log) == 106


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda w: w.timers.at(-1, w.note, name="x"), UsageError, "a call is due at -1, but it is 0.0 already"),
        (lambda w: w.timers.at(math.nan, w.note, name="x"), UsageError, "a call is due at nan"),
        (lambda w: w.timers.at(math.inf, w.note, name="x"), UsageError, "a call is due at inf"),
        (lambda w: w.timers.after(1, "no"), UsageError, "'no': Tower has no method 'no'; it has .*chain.*note"),
        (lambda w: w.timers.after(1, "log"), UsageError, "Tower has no method 'log'"),
        (lambda w: w.timers.after(1, "well.ring"), UsageError, "Tower has no part 'well'; it has timers, bell"),
        (lambda w: w.timers.after(1, "timers.clock.at"), UsageError, "Timers has no part 'clock'; it has none"),
        (lambda w: w.timers.after(1, tower().note, name="x"), TypeError, "is not a method of this Tower"),
        (lambda w: w.timers.after(1, print), TypeError, "is not a method of this Tower"),
        (lambda w: w.timers.after(1, w.slow), TypeError, "'slow' is async; time passes inside one call"),
        (lambda w: w.timers.after(1, w.note), TypeError, r"'note' takes \(self, name: .*missing a required argument"),
        (lambda w: w.timers.after(1, w.note, name="x", loud=1), TypeError, "unexpected keyword argument 'loud'"),
        (lambda w: w.timers.after(1, w.note, name=object()), TypeError, "unsupported"),
    ],
)
def test_methods_that_cannot_be_called_are_refused(
    wrong: Callable[[Tower], object], error: type[Exception], says: str
) -> None:
    world = tower()
    with pytest.raises(error, match=says):
        wrong(world)
    assert world == tower()


@pytest.mark.parametrize(
    ("method", "error", "says"),
    [
        ("nested", RuntimeError, "a timer's method must not advance the clock that called it"),
        ("refuse", RuntimeError, r"'refuse' raised ToolError\(no\) while time passed: no model reads it"),
        ("broken", KeyError, "bug"),
    ],
)
def test_a_call_goes_wrong(method: str, error: type[Exception], says: str) -> None:
    world = tower()
    world.timers.after(1, method)
    world.timers.after(1, world.note, name="next")
    with pytest.raises(error, match=says):
        world.clock.advance(3)
    world.clock.advance(1)
    assert world.log == ["next@1"], "what was due behind it is still there"
