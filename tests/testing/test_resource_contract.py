"""The contract holds for resources that keep it, and notices each way to break it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any, Self

import pytest

import quintain as qn
from quintain import codec
from quintain.testing import ResourceContract
from quintain.testing.fakes import Account
from quintain.testing.resource import Operation


class TestTable(ResourceContract):
    declared = qn.Table[Account]

    def make(self) -> qn.Table[Account]:
        return qn.Table(Account, {"ann": Account("Ann", 5), "bob": Account("Bob", 0)})

    def operations(self) -> Sequence[Operation]:
        def put(name: str, cents: int) -> Operation:
            return lambda table: table.__setitem__(name, Account(name, cents))

        def take(name: str) -> Operation:
            return lambda table: table.pop(name)

        return [
            *(put(name, cents) for name in ("ann", "bob", "cid") for cents in (0, 1)),
            *(take(name) for name in ("ann", "bob", "cid")),
            list,
            lambda table: table["cid"].cents,
        ]


class Box:
    """A resource that waits; subclasses break it."""

    def __init__(self, *items: int) -> None:
        self.items = list(items)
        self.is_ready = True

    async def put(self, item: int) -> int:
        await asyncio.sleep(0)
        if not self.is_ready:
            raise RuntimeError("not ready")
        self.items.append(item)
        return len(self.items)

    async def fork(self) -> Self:
        await asyncio.sleep(0)
        return type(self)(*self.items)

    async def dump(self) -> bytes:
        await asyncio.sleep(0)
        return codec.dumps(self.items)

    async def digest(self) -> str:
        await asyncio.sleep(0)
        return codec.digest(codec.dumps(self.items))

    @classmethod
    def load(cls, data: bytes) -> Self:
        box = cls(*codec.loads(data, list[int]))
        box.is_ready = False
        return box

    async def ready(self) -> None:
        self.is_ready = True


class TestBox(ResourceContract):
    examples = 20
    subject: type[Box] = Box

    def make(self) -> Box:
        return self.subject()

    def operations(self) -> Sequence[Operation]:
        return [lambda box: box.put(1), lambda box: box.put(2), lambda box: box.no_such_verb()]


class SharedFork(Box):
    async def fork(self) -> Self:
        twin = type(self)()
        twin.items = self.items
        return twin


class EmptyFork(Box):
    async def fork(self) -> Self:
        return type(self)()


class Tired(Box):
    """Forgets on its way through a dump how tired it is, which no digest tells."""

    spent = 0

    async def put(self, item: int) -> int:
        self.spent += 1
        return await super().put(item * self.spent)

    async def fork(self) -> Self:
        twin = await super().fork()
        twin.spent = self.spent
        return twin


class Forgetful(Box):
    async def fork(self) -> Self:
        twin = await super().fork()
        twin.is_ready = False
        return twin


class EmptyLoad(Box):
    @classmethod
    def load(cls, data: bytes) -> Self:
        return cls()


class Counting(Box):
    async def digest(self) -> str:
        self.items.append(0)
        return await super().digest()


class Growing(Box):
    async def dump(self) -> bytes:
        data = await super().dump()
        self.items.append(0)
        return data


class Numbered(Box):
    numbers = itertools.count()

    def __init__(self, *items: int) -> None:
        super().__init__(*items)
        self.number = next(self.numbers)

    async def digest(self) -> str:
        return str(self.number)


class Hashed(Box):
    async def digest(self) -> str:
        return str(hash(f"{self.items}"))


def contract(subject_: type[Box]) -> ResourceContract:
    class Broken(TestBox):
        subject = subject_

    return Broken()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("subject", "law", "says"),
    [
        (SharedFork, "test_neither_twin_sees_what_the_other_does", "what was done to"),
        (EmptyFork, "test_a_fork_is_equal_and_goes_on_alike", "a fork has another digest"),
        (Forgetful, "test_a_fork_is_equal_and_goes_on_alike", "a fork goes on differently"),
        (Tired, "test_a_dump_is_loaded_as_it_was_and_goes_on_alike", "what was loaded ends up differently"),
        (EmptyLoad, "test_a_dump_is_loaded_as_it_was_and_goes_on_alike", "loaded with another digest"),
        (Counting, "test_looking_changes_nothing", r"digest\(\) or dump\(\) changed the resource"),
        (Growing, "test_looking_changes_nothing", r"digest\(\) or dump\(\) changed the resource"),
        (Numbered, "test_equal_histories_have_equal_digests", "the same history, another digest"),
    ],
)
def test_contract_detects_each_broken_law(subject: type[Box], law: str, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        getattr(contract(subject), law)()


class HashedContract(TestBox):
    __test__ = False
    subject = Hashed


def test_a_digest_that_depends_on_the_process_is_noticed() -> None:
    HashedContract().test_equal_histories_have_equal_digests()
    with pytest.raises(AssertionError, match="a digest depends on the process"):
        HashedContract().test_other_processes_give_the_same_digests()


class Unfinished(ResourceContract):
    def make(self) -> Any:
        return Box()


def test_a_contract_says_what_it_needs() -> None:
    with pytest.raises(
        NotImplementedError, match=r"Unfinished\.operations\(\) returns what can be done to the resource"
    ):
        Unfinished().test_looking_changes_nothing()
    with pytest.raises(NotImplementedError, match=r"ResourceContract\.make\(\) returns the resource that is tested"):
        ResourceContract().make()
