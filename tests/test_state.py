"""Worlds and their parts: what a copy does next is what its origin would have done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.state import Rng, Shared, begin, parts
from tests.test_clock import Bell, Tower, tower

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


class Dice:
    """A resource that draws from its world."""

    def __init__(self) -> None:
        self.world = Shared()

    def bind(self, world: Shared) -> None:
        self.world = world

    def fork(self) -> Dice:
        return Dice()

    def dump(self) -> bytes:
        return b""

    def digest(self) -> str:
        return ""

    @classmethod
    def load(cls, data: bytes) -> Dice:
        return cls()


class Table(qn.State):
    dice: Dice


def test_a_resource_is_bound_to_the_world_that_holds_it() -> None:
    class Room(qn.State):
        table: Table

    room = Room(table=Table(dice=Dice()))
    assert room.table.dice.world is room.shared
    twin = room.copy()
    assert twin.table.dice.world is twin.shared is not room.shared
    room.table.dice = Dice()
    assert room.table.dice.world is room.shared


class Cup(msgspec.Struct):
    dice: Dice | None = None


class Casino(qn.State):
    cups: list[Cup] = []
    named: dict[str, tuple[Dice, ...]] = {}
    names: list[str] = []


def test_a_resource_deep_inside_a_field_is_bound_too() -> None:
    casino = Casino(cups=[Cup(Dice()), Cup()], named={"a": (Dice(), Dice())})
    for world in (casino, casino.copy()):
        held = [world.cups[0].dice, *world.named["a"]]
        assert all(dice and dice.world is world.shared for dice in held)
    casino.cups.append(Cup(Dice()))
    assert casino.copy().cups[2].dice is not None
    twin = casino.copy()
    dice = twin.cups[2].dice
    assert dice is not None
    assert dice.world is twin.shared


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
