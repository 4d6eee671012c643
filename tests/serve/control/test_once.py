"""Answers that are kept for who asks again are few and small enough; what still runs is not among those forgotten."""

from __future__ import annotations

import asyncio
import functools

import pytest
from starlette.responses import Response

from quintain.serve.control import once
from quintain.serve.control.once import Once


def test_a_running_request_is_done_once_whatever_else_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "MOST", 2)
    monkeypatch.setattr(once, "MOST_BYTES", 100)

    async def play() -> None:
        known, gate, done = Once(), asyncio.Event(), list[str]()

        async def slow() -> Response:
            await gate.wait()
            return await quick("slow", 50)

        async def quick(name: str, size: int = 40) -> Response:
            done.append(name)
            return Response(name.encode().ljust(size))

        first = asyncio.create_task(known.do(("me", "slow"), "", slow))
        await asyncio.sleep(0)
        for number in "012345678":
            await known.do(("me", number), "", functools.partial(quick, number))
        again = asyncio.create_task(known.do(("me", "slow"), "", slow))
        await asyncio.sleep(0)
        gate.set()
        assert await first == await again
        assert done == [*"012345678", "slow"]
        for number in "012345678":  # The size of what was kept is still known: as many as fit are kept, and no fewer.
            await known.do(("me", f"later-{number}"), "", functools.partial(quick, number))
        await known.do(("me", "later-7"), "", slow)
        assert len(done) == 19

    asyncio.run(play())


def test_answers_are_forgotten_when_they_are_too_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "MOST_BYTES", 100)

    async def play() -> list[str]:
        known, done = Once(), list[str]()

        async def answer(name: str) -> Response:
            done.append(name)
            return Response(bytes(40))

        for name in ("a", "b", "c", "b", "a"):
            await known.do(("me", name), "", functools.partial(answer, name))
        return done

    assert asyncio.run(play()) == ["a", "b", "c", "a"]
