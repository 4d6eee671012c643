"""Random numbers, time and identifiers are data: what a copy does next is what its origin would have done."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import gc
import math
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import quintain as qn
from quintain import resource
from quintain.state import Clock, Rng, Shared, begin, parts

# --- random numbers


KEYS = st.binary(max_size=16)


def test_draws_are_golden() -> None:
    rng = Rng(key=b"quintain")
    assert [rng.bits() for _ in range(3)] == [16220979130739996428, 8143522066328564497, 805081852524445730]
    assert rng.random() == 0.4222220315034567
    assert [rng.below(6) for _ in range(10)] == [1, 3, 0, 4, 4, 2, 1, 2, 1, 5]
    assert rng.sample("abcdefgh", 4) == ["g", "c", "h", "a"]
    assert rng.choice("abcdefgh") == "h"
    assert rng.counter == 22


@given(KEYS, st.integers(0, 100), st.integers(0, 20))
def test_a_stream_can_be_cut_anywhere(key: bytes, start: int, length: int) -> None:
    whole = Rng(key)
    drawn = [whole.bits() for _ in range(start + length)]
    rest = Rng(key, start)
    assert [rest.bits() for _ in range(length)] == drawn[start:]


@given(KEYS)
def test_floats_are_in_the_unit_interval(key: bytes) -> None:
    rng = Rng(key)
    assert all(0 <= rng.random() < 1 for _ in range(50))


def test_floats_reach_both_ends_and_have_53_bits() -> None:
    class Fixed(Rng):
        value: int = 0

        def bits(self) -> int:
            return self.value

    assert Fixed(value=0).random() == 0.0
    assert Fixed(value=2**64 - 1).random() == 1 - 2**-53 < 1
    assert Fixed(value=2**63).random() == 0.5


@given(KEYS, st.integers(1, 2**64))
def test_below_stays_below(key: bytes, n: int) -> None:
    rng = Rng(key)
    assert all(0 <= rng.below(n) < n for _ in range(5))


@pytest.mark.parametrize("n", [0, -1, 2**64 + 1])
def test_below_refuses(n: int) -> None:
    with pytest.raises(ValueError, match=rf"n must be in 1\.\.2\*\*64, got {n}"):
        Rng().below(n)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_below_is_even(n: int) -> None:
    rng = Rng(b"even")
    counts = Counter(rng.below(n) for _ in range(n * 1000))
    assert all(abs(count - 1000) < 150 for count in counts.values())


def test_below_draws_again_rather_than_favour_small_numbers() -> None:
    class Scripted(Rng):
        script: list[int] = []

        def bits(self) -> int:
            return self.script.pop(0)

    n = 2**63 + 1  # only one whole copy of [0, n) fits into 64 bits, so nearly half of all draws are turned down
    assert Scripted(script=[2**64 - 1, n, n - 1]).below(n) == n - 1
    assert Scripted(script=[2**64 - 1]).below(2**64) == 2**64 - 1


@given(KEYS, st.lists(st.integers(), max_size=8))
def test_shuffle_is_a_permutation(key: bytes, items: list[int]) -> None:
    shuffled = items[:]
    Rng(key).shuffle(shuffled)
    assert sorted(shuffled) == sorted(items)


def test_every_permutation_comes_up() -> None:
    rng, counts = Rng(b"permutations"), Counter[str]()
    for _ in range(2400):
        items = list("abcd")
        rng.shuffle(items)
        counts["".join(items)] += 1
    assert len(counts) == 24
    assert all(50 < count < 160 for count in counts.values())


@given(KEYS, st.lists(st.integers(), unique=True, max_size=8), st.data())
def test_a_sample_is_of_different_positions(key: bytes, items: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(0, len(items)))
    sample = Rng(key).sample(items, k)
    assert len(set(sample)) == k
    assert set(sample) <= set(items)


@pytest.mark.parametrize("k", [3, -1])
def test_a_sample_has_no_other_size(k: int) -> None:
    rng = Rng()
    with pytest.raises(ValueError, match=f"cannot draw {k} of 2 items"):
        rng.sample("ab", k)
    assert rng.counter == 0


# --- time


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


def told(world: Tower) -> tuple[Any, ...]:
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
    assert told(whole) == told(cut)


class Copies(RuleBasedStateMachine):
    """A world that is copied or shipped after every move stays equal to one that never is."""

    def __init__(self) -> None:
        super().__init__()
        self.still, self.moved = tower(), tower()

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
        self.moved = resource.load(Tower, asyncio.run(resource.dump(self.moved)))

    @invariant()
    def equal(self) -> None:
        assert told(self.still) == told(self.moved)
        assert self.still == self.moved
        assert asyncio.run(resource.digest(self.still)) == asyncio.run(resource.digest(self.moved))


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


# --- worlds and parts


def test_parts_share_what_their_world_has() -> None:
    world = tower()
    assert parts(Tower) == {"small": Bell, "great": Bell}
    assert world.small.shared is world.great.shared is world.shared
    assert [world.small.new_id("R"), world.great.new_id("R"), world.new_id("S")] == ["R1", "R2", "S1"]
    world.great.finish("enough")
    assert world.finished == world.small.finished == "enough"


def test_a_copy_is_independent() -> None:
    world = tower()
    twin = world.copy()
    twin.great.ring("x")
    twin.clock.after(1, twin.small.ring, name="y")
    twin.rng.bits()
    twin.finish()
    assert twin.finished == "done"
    assert world == tower()
    assert world.shared == Shared() != twin.shared
    assert world.shared.__eq__(3) is False
    twin.clock.advance(1)
    assert (world.small.rung, twin.small.rung) == ([], ["y@1"])


def test_a_part_is_a_world_of_its_own() -> None:
    bell = Bell()
    bell.clock.after(1, bell.ring, name="alone")
    bell.clock.advance(1)
    assert bell.copy().rung == ["alone@1"]


class City(qn.State):
    tower: Tower
    spare: Bell | None = None


def test_parts_have_parts() -> None:
    city = City(tower=tower())
    city.clock.after(1, city.tower.great.ring, name="noon")
    twin = city.copy()
    twin.clock.advance(1)
    assert twin.tower.great.rung == ["noon@1"]
    assert twin.tower.great.shared is twin.shared


def test_a_part_that_is_put_in_later_joins_too() -> None:
    city = City(tower=tower())
    city.new_id("R")
    city.spare = Bell()
    city.tower.small = Bell()
    assert city.spare.new_id("R") == "R2"
    assert city.tower.small.new_id("R") == "R3"
    city.clock.after(1, city.spare.ring, name="x")
    assert city.copy().new_id("R") == city.new_id("R") == "R4"
    city.tower = tower()
    assert city.tower.great.shared is city.shared


@pytest.mark.parametrize(
    "live",
    [
        lambda bell: bell.new_id("R"),
        lambda bell: bell.rng.bits(),
        lambda bell: bell.clock.advance(1),
        lambda bell: bell.clock.after(1, bell.ring, name="x"),
        lambda bell: bell.finish(),
    ],
)
def test_a_part_with_a_past_is_refused(live: Callable[[Bell], object]) -> None:
    bell = Bell()
    live(bell)
    with pytest.raises(qn.DefinitionError, match="a Bell with a past cannot join a Tower: let it join first"):
        Tower(small=bell, great=Bell())
    city = City(tower=tower())
    with pytest.raises(qn.DefinitionError, match="a Bell with a past cannot join a City"):
        city.spare = bell


class Counted(qn.State):
    small: Bell
    words: list[str] = []
    count: int = 0

    def __post_init__(self) -> None:
        self.count = len(self.words)
        assert self.small.shared is self.shared


class Recounted(Counted):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.count += 1


def test_a_post_init_of_its_own_needs_no_super() -> None:
    world = Counted(small=Bell(), words=["a", "b"])
    assert world.count == 2
    world.clock.after(1, world.small.ring, name="x")
    twin = world.copy()
    twin.clock.advance(1)
    assert twin.small.rung == ["x@1"]
    assert Recounted(small=Bell(), words=["a"]).count == 2


def test_counters_and_keys_are_as_small_as_promised() -> None:
    assert len(msgspec.msgpack.encode(Rng(b"0" * 16, 100))) <= 40
    assert len(Shared().pack()) < 32


class Archive(qn.State):
    old: qn.Table[int]
    new: qn.Table[int]


def test_a_plain_copy_forks_resources() -> None:
    world = Archive(old=qn.Table(int, {"a": 1}), new=qn.Table(int))
    twin = world.copy()
    twin.new["b"] = 2
    assert (dict(twin.old), dict(twin.new), dict(world.new)) == ({"a": 1}, {"b": 2}, {})


# --- the beginning of an episode


@given(st.integers(), st.text(max_size=3))
def test_a_beginning_depends_on_seed_and_task_alone(seed: int, task: str) -> None:
    one, two = (asyncio.run(begin(tower(), seed=seed, task_id=task)) for _ in range(2))
    assert one == two
    assert one.rng.bits() == two.rng.bits()
    assert asyncio.run(begin(tower(), seed=seed + 1, task_id=task)) != asyncio.run(
        begin(tower(), seed=seed, task_id=task)
    )


def test_a_beginning_leaves_the_start_alone_and_forgets_its_end() -> None:
    start = tower()
    start.new_id("R")
    start.finish()
    world = asyncio.run(begin(start, seed=1, task_id="t"))
    assert world.finished is None
    assert world.new_id("R") == "R2"
    assert (start.finished, start.rng) == ("done", Rng())


class Echo(qn.State):
    heard: list[float] = []

    def hear(self, seconds: float, method: str, due: float) -> None:
        self.heard.append(seconds)


def test_a_timer_s_arguments_may_have_any_name() -> None:
    world = Echo()
    world.clock.after(1, world.hear, seconds=3.0, method="a", due=1.0)
    world.clock.advance(2)
    assert world.heard == [3.0]
