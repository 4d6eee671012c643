"""Policies with tokens and versions, which the tests of asynchronous training share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import quintain as qn
from quintain.harness import Request
from quintain.trace import Reply, Tokens
from tests.worlds import Yard, call, environment, fine, says

LIMIT = 30
"""Seconds after which a test says that something hangs."""


class Policy:
    """A policy that plays `turns(request)` turns of two drawn tokens, and waits `ticks(request)` before each."""

    name = "table"

    def __init__(
        self, *, turns: Callable[[Request], int] = lambda _: 1, ticks: Callable[[Request], int] = lambda _: 0
    ) -> None:
        self.turns, self.ticks = turns, ticks
        self.version: int | None = 0
        self.begun: set[str] = set()
        """Prompts of the tasks that began."""

    async def __call__(self, request: Request) -> Reply:
        self.begun.add(request.messages[1].text)
        for _ in range(self.ticks(request)):
            await asyncio.sleep(0)
        said = sum(message.role == "assistant" for message in request.messages)
        tokens = Tokens([0] * (1 + 3 * said), [0, 0], [-0.5, -0.5])
        calls = (call("note", text="x"),) if said + 1 < self.turns(request) else ()
        return says(*calls, text="done", tokens=tokens, policy_version=self.version)


def env(concurrency: int = 8) -> qn.Environment[Yard]:
    return environment(fine, concurrency=concurrency)


def tasks(count: int) -> list[qn.Task[Yard]]:
    return [qn.Task(id=f"t{n}", prompt=f"{n}", start=Yard()) for n in range(count)]


def lags(rows: Iterable[qn.Trajectory], version: int) -> list[int]:
    """Returns the lag of each drawn token, counted token by token."""
    found: list[int] = []
    for row in rows:
        versions = dict(row.versions)
        drew = -1
        for place, drawn in enumerate(row.mask):
            drew = versions.get(place, drew)
            if drawn:
                found.append(version - drew)
    return found


def names(rows: Iterable[qn.Trajectory]) -> list[tuple[str, int, int, int]]:
    return [(row.task, row.seed, row.attempt, row.member) for row in rows]
