"""The laws of a Resource, as tests to inherit."""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from quintain.resource import settle
from quintain.state import Rng

from .elsewhere import ask

Operation = Callable[[Any], object]
"""Changes a resource, or reads it. What it returns, or the error it raises, is compared."""

History = Sequence[Operation]
Law = Callable[[History, History, History], Awaitable[None]]


class ResourceContract:
    """Contract of `quintain.resource.Resource`. Define a factory and operations.

        class TestLog(ResourceContract):
            def make(self):
                return Log()

            def operations(self):
                return [lambda log: log.write("a"), Log.read]

    Attributes:
        declared: The type as a State would declare it, if it is more than the class: `Table[Order]`.
        examples: Number of histories for each law.
        lengths: Lengths of the fixed histories whose digests are compared with those in other processes.
    """

    declared: Any = None
    examples = 50
    lengths: Sequence[int] = range(16)

    def make(self) -> Any:
        """Returns a resource, always the same."""
        raise NotImplementedError(f"{type(self).__name__}.make() returns the resource that is tested")

    def operations(self) -> Sequence[Operation]:
        """Returns operations on the resource; each always the same, plain or async."""
        raise NotImplementedError(f"{type(self).__name__}.operations() returns what can be done to the resource")

    def test_a_fork_is_equal_and_goes_on_alike(self) -> None:
        async def law(past: History, future: History, _: History) -> None:
            origin = await self._after(past)
            twin = await settle(origin.fork())
            assert await settle(twin.digest()) == await settle(origin.digest()), "a fork has another digest"
            assert await _play(twin, future) == await _play(origin, future), "a fork goes on differently"
            assert await settle(twin.digest()) == await settle(origin.digest()), "a fork ends up differently"

        self._for_all(law)

    def test_neither_twin_sees_what_the_other_does(self) -> None:
        async def law(past: History, one: History, two: History) -> None:
            origin = await self._after(past)
            twin = await settle(origin.fork())
            before = await settle(origin.digest())
            await _play(twin, one)
            assert await settle(origin.digest()) == before, "what was done to a fork changed its origin"
            before = await settle(twin.digest())
            await _play(origin, two)
            assert await settle(twin.digest()) == before, "what was done to the origin changed its fork"

        self._for_all(law)

    def test_a_dump_is_loaded_as_it_was_and_goes_on_alike(self) -> None:
        async def law(past: History, future: History, _: History) -> None:
            origin = await self._after(past)
            again = await self._load(await settle(origin.dump()))
            assert await settle(again.digest()) == await settle(origin.digest()), "loaded with another digest"
            assert await _play(again, future) == await _play(origin, future), "what was loaded goes on differently"
            assert await settle(again.digest()) == await settle(origin.digest()), "what was loaded ends up differently"

        self._for_all(law)

    def test_looking_changes_nothing(self) -> None:
        async def law(past: History, _: History, __: History) -> None:
            one = await self._after(past)
            digest = await settle(one.digest())
            dump = await settle(one.dump())
            assert await settle(one.digest()) == digest, "digest() or dump() changed the resource"
            assert await settle(one.dump()) == dump, "dump() changed the resource"

        self._for_all(law)

    def test_equal_histories_have_equal_digests(self) -> None:
        async def law(past: History, _: History, __: History) -> None:
            one, two = await self._after(past), await self._after(past)
            assert await settle(one.digest()) == await settle(two.digest()), "the same history, another digest"

        self._for_all(law)

    def test_other_processes_give_the_same_digests(self) -> None:
        assert ask(self, "digests") == [self.digests()] * 2, "a digest depends on the process"

    def digests(self) -> list[str]:
        """Returns the digests after some fixed histories."""
        rng, operations = Rng(b"histories"), self.operations()
        histories = [[rng.choice(operations) for _ in range(length)] for length in self.lengths]

        async def name(history: History) -> str:
            return await settle((await self._after(history)).digest())

        return [asyncio.run(name(history)) for history in histories]

    def _for_all(self, law: Law) -> None:
        from .strategies import for_all, lists_of, one_of

        histories = lists_of(one_of(self.operations()))
        for_all(lambda *histories: asyncio.run(_run(law, *histories)), [histories] * 3, examples=self.examples)

    async def _after(self, history: History) -> Any:
        one = self.make()
        await _play(one, history)
        return one

    async def _load(self, data: bytes) -> Any:
        made: object = self.make()
        declared: Any = self.declared or type(made)
        one: Any = (typing.get_origin(declared) or declared).load(data, *typing.get_args(declared))
        if hasattr(one, "ready"):
            await settle(one.ready())
        return one


async def _run(law: Law, *histories: History) -> None:
    await law(*histories)


async def _play(one: Any, history: History) -> list[object]:
    results: list[object] = []
    for operation in history:
        try:
            results.append(await settle(operation(one)))
        except Exception as error:  # noqa: BLE001 (a refusal is a result like any other)
            results.append((type(error).__name__, str(error)))
    return results
