"""An episode that takes too much memory is void; the others go on."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.episode import Episode
from quintain.resources.database import Database
from quintain.resources.schedule.queues import Queue
from quintain.resources.workspace import Workspace
from quintain.serve.episodes.actions import Change, Join, Move, Rewrite, Tell
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.size import SizeLimit
from quintain.serve.errors import Void
from quintain.serve.http.keys import ANYONE
from quintain.serve.http.limits import Limits
from quintain.trace import Image, Message, Reply, Text, Tokens, ToolCall


class Hoard(qn.State):
    kept: list[str] = []

    @qn.tool
    def say(self, size: int) -> str:
        """Say much.

        Args:
            size: How much.
        """
        return "x" * size

    @qn.tool
    def keep(self, size: int) -> str:
        """Keep much, and say little.

        Args:
            size: How much.
        """
        self.kept.append("x" * size)
        return "kept"


@qn.reward
def fine(outcome: qn.EpisodeView[Hoard]) -> float:
    return 1.0


ENV = qn.Environment(
    "hoard",
    tasks=lambda split: [qn.Task(id="one", prompt="Go on.", start=Hoard())],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(fine),
    state=Hoard,
)


async def opened(host: Host) -> Live:
    live = await host.create(EpisodeSpec(split="test", task=0), ANYONE)
    await live.ready()
    return live


@pytest.mark.parametrize("tool", ["say", "keep"])
def test_a_record_or_a_world_that_grows_too_large_is_void(tool: str) -> None:
    async def play() -> tuple[Live, Live, int]:
        host = Host([ENV], limits=Limits(episode_bytes=100_000))
        greedy, modest = await opened(host), await opened(host)
        calls = 0
        with pytest.raises(Void, match="an episode may have 100,000"):
            for _ in range(64):
                await greedy.call(tool, '{"size": 4000}')
                calls += 1
        await modest.call(tool, '{"size": 4000}')
        await modest.answer("done")
        host.executor.close()
        return greedy, modest, calls

    greedy, modest, calls = asyncio.run(play())
    assert calls < 64
    assert greedy.trace.failure is not None
    assert (greedy.trace.failure.component, greedy.trace.failure.kind) == ("S", "provider_oom_killed")
    assert greedy.reward is None
    assert modest.reward == 1.0


class Later(msgspec.Struct, frozen=True):
    due: float
    number: int
    text: str


class Held(qn.State):
    rows: Database
    files: Workspace
    table: qn.Table[str]
    later: Queue[Later]

    @qn.tool
    def grow_rows(self, size: int) -> str:
        """Put a row.

        Args:
            size: How long.
        """
        self.rows.execute("INSERT INTO kept VALUES (?)", "x" * size)
        return "grown"

    @qn.tool
    def grow_files(self, size: int) -> str:
        """Write a file.

        Args:
            size: How long.
        """
        self.files.write(f"file {self.files.image.count}", "x" * size)
        return "grown"

    @qn.tool
    def grow_table(self, size: int) -> str:
        """Put a row.

        Args:
            size: How long.
        """
        self.table[f"row {len(self.table)}"] = "x" * size
        return "grown"

    @qn.tool
    def grow_later(self, size: int) -> str:
        """Put something off.

        Args:
            size: How long.
        """
        self.later[f"row {len(self.later)}"] = Later(0.0, len(self.later), "x" * size)
        return "grown"


@qn.reward
def held(outcome: qn.EpisodeView[Held]) -> float:
    return 1.0


def begun() -> Held:
    return Held(
        rows=Database("CREATE TABLE kept (text TEXT)"),
        files=Workspace({"base": "y" * 500_000}),
        table=qn.Table(str),
        later=Queue(Later),
    )


HOLDING = qn.Environment(
    "holding",
    tasks=lambda split: [qn.Task(id="one", prompt="Go on.", start=begun)],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(held),
    state=Held,
)


@pytest.mark.parametrize("tool", ["grow_rows", "grow_files", "grow_table", "grow_later"])
def test_resources_that_grow_too_large_make_it_void_and_what_they_share_weighs_nothing(tool: str) -> None:
    async def play() -> tuple[Live, int]:
        host = Host([HOLDING], limits=Limits(episode_bytes=200_000))
        greedy = await opened(host)
        calls = 0
        with pytest.raises(Void, match="an episode may have 200,000"):
            for _ in range(64):
                await greedy.call(tool, '{"size": 10000}')
                calls += 1
        host.executor.close()
        return greedy, calls

    greedy, calls = asyncio.run(play())
    assert 12 <= calls <= 32
    assert greedy.trace.failure is not None
    assert greedy.trace.failure.kind == "provider_oom_killed"


LONG = "x" * 10_000


def reply(n: int, *, name: str = "say", arguments: str = '{"size": 1}', id: str = "", **more: Any) -> Reply:
    words = {one: more.pop(one) for one in ("content", "reasoning") if one in more}
    return Reply(Message("assistant", calls=(ToolCall(id or f"call {n}", name, arguments),), **words), **more)


def tokens(n: int) -> Tokens:
    """Returns tokens of a prompt that grows by 100 tokens beyond the reply before."""
    return Tokens([*range(1000, 1100 + 200 * n)], [*range(1100 + 200 * n, 1200 + 200 * n)])


SENT: dict[str, Callable[[int], Reply]] = {
    "words": lambda n: reply(n, content=f"{n}{LONG}"),
    "words of another script": lambda n: reply(n, content=f"{n}{LONG}\N{SLIGHTLY SMILING FACE}"),
    "blocks": lambda n: reply(n, content=(Text(f"{n}{LONG}"), Image("image/png", f"{n}{LONG}".encode()))),
    "thoughts": lambda n: reply(n, reasoning=f"{n}{LONG}"),
    "a name": lambda n: reply(n, name=f"{n}{LONG}"),
    "an id": lambda n: reply(n, id=f"{n}{LONG}"),
    "arguments": lambda n: reply(n, arguments=f'{{"size": {n}}}' + 10_000 * " "),
    "why it ended": lambda n: reply(n, finish_reason=f"{n}{LONG}"),
    "tokens": lambda n: reply(n, tokens=tokens(n)),
    "logprobs": lambda n: reply(n, tokens=msgspec.structs.replace(tokens(n), logprobs=[-k / 3 for k in range(100)])),
    "calls": lambda n: Reply(Message("assistant", calls=tuple(ToolCall(f"{k}", "peek", "{}") for k in range(100)))),
}
CHANGES: dict[str, Callable[[int], Change]] = {
    "a message": lambda n: Tell(0, (Message("user", f"{n}{LONG}"),)),
    "messages": lambda n: Tell(0, tuple(Message("user", f"{n} {k}") for k in range(100))),
    "to another actor": lambda n: Tell(1, (Message("user", f"{n}{LONG}"),)),
    "an answer": lambda n: Tell(0, (Message("tool", "", call_id=f"{n}{LONG}"),)),
    "another context": lambda n: Rewrite(0, n, (Message("user", f"{n}{LONG}"),)),
    "actors": lambda n: Join(f"role {n}", (Message("user", f"{n}{LONG}"),)),
    "a role": lambda n: Join(f"{n}{LONG}"),
    "many actors": lambda n: Join(f"role {n}"),
}
TALKING = ENV.replace(config=qn.Config(max_turns=10_000, max_calls=None))


async def talking(host: Host, what: str) -> Live:
    live = await host.create(EpisodeSpec(task=0, led=what in CHANGES), ANYONE)
    await live.ready()
    if what in CHANGES:
        await live.change((Join("user"),))
    return live


async def send(live: Live, what: str, n: int, *, steps: bool = False) -> None:
    if what in SENT:
        await live.act(SENT[what](n))
    elif steps:
        change = CHANGES[what](n)
        thread = getattr(change, "thread", n + 2)
        await live.act(Move(Message("assistant"), before=(change,), thread=thread))
    else:
        await live.change((CHANGES[what](n),))


SAMPLE = {"words", "tokens", "many actors"}
"""The kinds that every run weighs; the others are slow."""


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(what, marks=() if what in SAMPLE else pytest.mark.slow)
        for what in (*SENT, *CHANGES)
        if what != "words of another script"  # Text weighs its UTF-8; Python may hold it in up to four times as much.
    ],
)
def test_weighed_size_is_close_to_the_memory_held(what: str) -> None:
    async def play() -> float:
        host = Host([TALKING])
        live = await talking(host, what)
        await send(live, what, 0, steps=True)
        gc.collect()
        held, weighed = tracemalloc.get_traced_memory()[0], live._size.record
        for n in range(1, 50):
            await send(live, what, n, steps=True)
        gc.collect()
        held, weighed = tracemalloc.get_traced_memory()[0] - held, live._size.record - weighed
        host.executor.close()
        return weighed / held

    tracemalloc.start()
    try:
        assert 0.8 < asyncio.run(play()) < 1.3
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("what", [*SENT, *CHANGES])
def test_too_large_messages_of_any_kind_void_the_episode(what: str) -> None:
    async def play() -> Live:
        host = Host([TALKING], limits=Limits(episode_bytes=200_000))
        live = await talking(host, what)
        for n in range(500):
            with contextlib.suppress(Void):
                await send(live, what, n)
            if live.finished:
                break
        host.executor.close()
        return live

    failure = asyncio.run(play()).failure
    assert failure is not None
    assert (failure.component, failure.kind) == ("S", "provider_oom_killed")


def test_a_copy_weighs_what_it_was_copied_from() -> None:
    """A copy weighs its turns, and the messages since the last turn."""

    async def play() -> None:
        host = Host([TALKING])
        live = await talking(host, "a message")
        for n in range(5):
            await live.act(Move(Message("assistant", LONG), before=(CHANGES["a message"](n),)))
            await live.change((CHANGES["to another actor"](n),))
        data = (await (await live.ready()).snapshot()).to_bytes()
        twin = await host.create(EpisodeSpec(task=0, led=True, origin=data), ANYONE)
        await twin.ready()
        assert 0.9 < twin._size.record / live._size.record < 1.1
        host.executor.close()

    asyncio.run(play())


def test_an_episode_that_is_made_anew_is_not_weighed_twice() -> None:
    async def play() -> tuple[Episode[Any], Episode[Any]]:
        host = Host([TALKING])
        live = await talking(host, "words")
        episodes = []
        for n in range(9):
            await send(live, "words", n)
            episodes.append(await (await live.ready()).fork())
        host.executor.close()
        return episodes[3], episodes[8]

    early, late = asyncio.run(play())
    scale = SizeLimit(1 << 20)
    scale.check(late)
    weighed = scale.record
    for episode in (early, late):
        scale.check(episode)
    assert scale.record == weighed > 9 * len(LONG)


@pytest.mark.slow
def test_a_hundred_megabytes_at_once_are_void_and_gone() -> None:
    async def play() -> int:
        host = Host([ENV], limits=Limits(episode_bytes=1 << 20))
        before = memory()
        for _ in range(8):
            greedy = await opened(host)
            with pytest.raises(Void):
                await greedy.call("keep", '{"size": 100000000}')
            await host.close(greedy.id, ANYONE)
        host.executor.close()
        gc.collect()
        return memory() - before

    assert asyncio.run(play()) < 400 << 20


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_without_a_limit_nothing_is_weighed() -> None:
    async def play() -> float | None:
        host = Host([ENV], limits=Limits(episode_bytes=None))
        live = await opened(host)
        for _ in range(8):
            await live.call("say", '{"size": 100000}')
        await live.answer("done")
        host.executor.close()
        return live.reward

    assert asyncio.run(play()) == 1.0
