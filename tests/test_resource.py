"""A world is plain bytes over resources: copies, dumps and digests of any shape of world."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Generic, Self, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain import codec, resource
from quintain.resource import Parts

T = TypeVar("T")


class Log:
    """The smallest resource: lines."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    def fork(self) -> Self:
        return type(self)(*self.lines)

    def dump(self) -> bytes:
        return codec.dumps(self.lines)

    def digest(self) -> str:
        return codec.digest(self.dump())

    @classmethod
    def load(cls, data: bytes, *arguments: Any) -> Self:
        return cls(*codec.loads(data, list[str]))

    def pack(self) -> bytes:
        raise AssertionError("a resource may have a method of this name; nobody else calls it")


class Typed(Log, Generic[T]):
    """Learns its type arguments when it is loaded."""

    @classmethod
    def load(cls, data: bytes, *arguments: Any) -> Self:
        return cls(*codec.loads(data, list[str]), *(argument.__name__ for argument in arguments))


class Remote:
    """Every verb waits, and what was loaded must be made ready."""

    def __init__(self, *lines: str, is_ready: bool = True) -> None:
        self.lines = list(lines)
        self.is_ready = is_ready

    async def fork(self) -> Self:
        await asyncio.sleep(0)
        return type(self)(*self.lines)

    async def dump(self) -> bytes:
        await asyncio.sleep(0)
        return codec.dumps(self.lines)

    async def digest(self) -> str:
        await asyncio.sleep(0)
        return codec.digest(codec.dumps(self.lines))

    @classmethod
    def load(cls, data: bytes) -> Self:
        return cls(*codec.loads(data, list[str]), is_ready=False)

    async def ready(self) -> None:
        await asyncio.sleep(0)
        self.is_ready = True


class World(msgspec.Struct):
    here: Log | None = None
    named: dict[str, Log] = {}
    numbered: dict[int, list[Log]] = {}
    nested: list[World] = []
    pair: tuple[str, Log] | None = None
    words: dict[str, int] = {}


def logs(world: World) -> list[Log]:
    """Every place of a world where a log is, in an order of our own."""
    found = [world.here] if world.here else []
    found += [world.named[key] for key in sorted(world.named)]
    found += [log for key in sorted(world.numbered) for log in world.numbered[key]]
    found += [world.pair[1]] if world.pair else []
    return found + [log for inner in world.nested for log in logs(inner)]


def aliasing(world: World) -> list[int]:
    """For each place the first place that holds the same object."""
    everywhere = [id(log) for log in logs(world)]
    return [everywhere.index(one) for one in everywhere]


POOL = [Log(f"line {n}") for n in range(4)]
LOGS = st.sampled_from(POOL)


def worlds(numbered: st.SearchStrategy[Any]) -> st.SearchStrategy[World]:
    def build(nested: st.SearchStrategy[World]) -> st.SearchStrategy[World]:
        return st.builds(
            World,
            here=st.none() | LOGS,
            named=st.dictionaries(st.text(max_size=2), LOGS, max_size=4),
            numbered=numbered,
            nested=st.lists(nested, max_size=2),
            pair=st.none() | st.tuples(st.text(max_size=1), LOGS),
            words=st.dictionaries(st.text(max_size=2), st.integers(0, 9), max_size=4),
        )

    return st.recursive(st.builds(World), build, max_leaves=4)


ANY_KEYS = worlds(st.dictionaries(st.integers(0, 5), st.lists(LOGS, max_size=3), max_size=3))
STRING_KEYS = worlds(st.just({}))


@given(ANY_KEYS)
def test_each_place_keeps_its_resource_and_who_shares_it(world: World) -> None:
    for again in (
        asyncio.run(resource.fork(world)),
        resource.load(World, asyncio.run(resource.dump(world))),
    ):
        assert [log.lines for log in logs(again)] == [log.lines for log in logs(world)]
        assert aliasing(again) == aliasing(world)
        assert not {id(log) for log in logs(again)} & {id(log) for log in logs(world)}
        assert list(again.named) == list(world.named)
        assert list(again.words.items()) == list(world.words.items())


@given(STRING_KEYS)
def test_a_copy_has_the_digest_of_its_origin(world: World) -> None:
    digest = asyncio.run(resource.digest(world))
    assert asyncio.run(resource.digest(asyncio.run(resource.fork(world)))) == digest
    assert asyncio.run(resource.digest(resource.load(World, asyncio.run(resource.dump(world))))) == digest


@given(STRING_KEYS.filter(logs), st.data())
def test_a_change_of_any_resource_changes_the_digest(world: World, data: st.DataObject) -> None:
    twin = asyncio.run(resource.fork(world))
    data.draw(st.sampled_from(logs(twin))).lines.append("more")
    assert asyncio.run(resource.digest(twin)) != asyncio.run(resource.digest(world))


@given(ANY_KEYS)
def test_splitting_changes_nothing_and_joining_undoes_it(world: World) -> None:
    plain, held = resource.split(world)
    assert resource.split(world) == Parts(plain, held)
    assert len({id(one) for one in held}) == len(held)
    assert aliasing(resource.join(World, plain, held)) == aliasing(world)
    assert [id(log) for log in logs(resource.join(World, plain, held))] == [id(log) for log in logs(world)]


def test_aliasing_is_part_of_the_digest() -> None:
    shared, log = Log("x"), Log("x")
    one, two = World(here=shared, named={"a": shared}), World(here=shared, named={"a": log})
    assert asyncio.run(resource.digest(one)) != asyncio.run(resource.digest(two))


def test_type_arguments_reach_load() -> None:
    class Typical(msgspec.Struct):
        log: Typed[int]

    again = resource.load(Typical, asyncio.run(resource.dump(Typical(Typed("x")))))
    assert again.log.lines == ["x", "int"]


class Far(qn.State):
    one: Remote
    two: Remote
    count: int = 0


def test_resources_that_wait() -> None:
    async def scene() -> None:
        remote = Remote("x")
        far = Far(one=remote, two=remote)
        twin = await resource.fork(far)
        assert twin.one is twin.two
        assert twin.one is not remote
        assert await resource.digest(twin) == await resource.digest(far)
        loaded = resource.load(Far, await resource.dump(far))
        assert not loaded.one.is_ready
        await resource.ready(loaded)
        assert loaded.one.is_ready
        assert await resource.digest(loaded) == await resource.digest(far)
        await resource.ready(World(here=Log()))

    asyncio.run(scene())


def test_a_plain_copy_says_that_a_resource_waits() -> None:
    with pytest.raises(qn.DefinitionError, match=r"Remote\.fork\(\) must be awaited: await resource\.fork\(state\)"):
        Far(one=Remote(), two=Remote()).copy()


def test_settle_awaits_only_awaitables() -> None:
    assert asyncio.run(resource.settle(3)) == 3
    later: Awaitable[int] = asyncio.sleep(0, 3)
    assert asyncio.run(_settled(later)) == 3


async def _settled(later: Awaitable[int]) -> int:
    return await resource.settle(later)


def test_an_unsupported_field_value_is_named() -> None:
    with pytest.raises(TypeError, match=r"a Lock is neither plain data nor a Resource \(it lacks fork, dump"):
        asyncio.run(resource.fork([asyncio.Lock()]))


class Price(msgspec.Struct):
    amount: float
    note: str = ""


class Till(msgspec.Struct):
    prices: dict[str, list[Price]] = {}
    count: int = 0


@given(st.integers(-1000, 1000))
def test_an_int_where_a_float_is_declared_is_the_float(amount: int) -> None:
    as_int, as_float = Till({"a": [Price(amount)]}), Till({"a": [Price(float(amount))]})
    digest = asyncio.run(resource.digest(as_float))
    assert asyncio.run(resource.digest(as_int)) == digest
    assert asyncio.run(resource.digest(asyncio.run(resource.fork(as_int)))) == digest


def test_a_dict_needs_strings_for_keys_to_have_a_digest() -> None:
    with pytest.raises(TypeError, match="str keys"):
        asyncio.run(resource.digest(World(numbered={1: []})))


@given(st.data())
def test_a_damaged_dump_is_refused_or_read(data: st.DataObject) -> None:
    dump = bytearray(asyncio.run(resource.dump(World(here=POOL[0], named={"a": POOL[0], "b": POOL[1]}))))
    place = data.draw(st.integers(0, len(dump) - 1))
    dump[place] = data.draw(st.integers(0, 255))
    try:
        resource.load(World, bytes(dump))
    except msgspec.DecodeError:
        return


@pytest.mark.parametrize(
    ("plain", "dumps", "says"),
    [
        ({"here": 3}, [], "it refers to object 3 of 0"),
        ({"here": -1}, [], "it refers to object -1 of 0"),
        ({"here": "x"}, [], "it refers to object 'x' of 0"),
        ({"here": 0}, [], "it has 0 resources and refers to more"),
    ],
)
def test_a_dump_that_refers_to_nothing_is_refused(plain: Any, dumps: list[bytes], says: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=says):
        resource.load(World, codec.dumps((codec.dumps(plain), dumps)))
