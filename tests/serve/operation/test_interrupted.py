"""What is interrupted on the event loop, a call or a beginning, and made anew: who was asked is not asked again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.errors import EpisodeError
from quintain.harness import Dialogue, Model, Request
from quintain.serve.episodes.executor import TRIALS
from quintain.serve.episodes.host import Host, Wanted
from quintain.serve.journal.database import Journal
from quintain.serve.journal.entries import FORGETFUL
from quintain.serve.journal.user_model_log import Kept
from quintain.serve.keys import ANYONE
from quintain.trace import Message, Reply, ToolCall

GATE = threading.Event()


class Clock(qn.State):
    """A clock that may stand still."""

    @qn.tool(roles=("user",))
    def look(self) -> str:
        """Look at it."""
        GATE.wait()
        return "noon"


@qn.reward
def seen(outcome: qn.EpisodeView[Clock]) -> float:
    return 1.0


ENV = qn.Environment(
    "clock",
    tasks=lambda split: [qn.Task(id="one", prompt="", start=Clock())],
    harness=Dialogue(opening="Good day."),
    verifier=qn.Verifier(seen),
    state=Clock,
    config=qn.Config(max_turns=60),
)


class Bell(qn.State):
    """A bell that sticks, when it is rung on the event loop while the gate is shut."""

    rung: int = 0

    @qn.tool
    def ring(self) -> str:
        """Ring it."""
        if threading.current_thread() is threading.main_thread():
            GATE.wait()
        self.rung += 1
        return f"rung {self.rung} times"


@qn.reward
def often(outcome: qn.EpisodeView[Bell]) -> float:
    return outcome.state.rung / 100


BELL = qn.Environment(
    "bell",
    tasks=lambda split: [qn.Task(id="one", prompt="Ring.", start=Bell())],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(often),
    state=Bell,
    config=qn.Config(tool_timeout_s=2.0),
)


class User:
    """Counts how often he is asked, and says the count; he looks at the clock once the agent speaks of it.

    Attributes:
        asked: So often.
    """

    name = "user"
    asked = 0

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        return self

    async def __call__(self, request: Request) -> Reply:
        self.asked += 1
        looks = request.messages[-1].text == "What time is it?"
        calls = (ToolCall("c", "look", "{}"),) if looks else ()
        return Reply(Message("assistant", str(self.asked), calls=calls))


@asynccontextmanager
async def up(folder: Path, env: qn.Environment[Any], user: User | None = None) -> AsyncGenerator[Host]:
    """A server with what its journal brings back, which is gone afterwards as by kill -9: no episode is closed."""
    with closing(Journal(folder)) as journal:
        host = Host([env], user=user, log=journal)
        await host.recover(journal.pasts())
        yield host
        host.crew.close()


def test_who_was_heard_in_an_interrupted_call_is_not_asked_again(tmp_path: Path) -> None:
    async def play() -> None:
        user = User()
        async with up(tmp_path, ENV, user) as host:
            live, other = [await host.create(Wanted(split="test", task=0), ANYONE) for _ in range(2)]
            for one in (live, other):
                await one.ready()
            for _ in range(TRIALS + 4):
                await live.answer("Well?")
            before = user.asked
            waiting = asyncio.create_task(live.answer("What time is it?"))
            await asyncio.sleep(0)  # It begins, and holds the loop, until it is interrupted.
            await other.answer("And you?")
            assert not waiting.done()
            GATE.set()
            await waiting
            assert user.asked == before + 3  # For the look, for the other, and for the words after the look.
        async with up(tmp_path, ENV, user) as host:
            again = host.get(live.id, ANYONE)
            await again.ready()
            assert again.trace.failure is None, again.trace.failure
            assert again.trace.to_bytes() == live.trace.to_bytes()
            assert user.asked == before + 3

    asyncio.run(play())


class Early(User):
    """Looks at the clock before he says anything, from the last of the beginnings on that make them known as quick."""

    async def __call__(self, request: Request) -> Reply:
        self.asked += 1
        calls = (ToolCall("c", "look", "{}"),) if self.asked == TRIALS + 4 else ()
        return Reply(Message("assistant", str(self.asked), calls=calls))


def test_who_was_heard_in_an_interrupted_beginning_is_not_asked_again(tmp_path: Path) -> None:
    async def play() -> None:
        GATE.clear()
        user = Early()
        async with up(tmp_path, ENV, user) as host:
            for _ in range(TRIALS + 3):
                await (await host.create(Wanted(split="test", task=0), ANYONE)).ready()
            live = await host.create(Wanted(split="test", task=0), ANYONE)
            await asyncio.sleep(0)  # It begins, and holds the loop, until it is interrupted.
            assert user.asked == TRIALS + 4
            GATE.set()
            await live.ready()
            assert [turn.reply.message.text for turn in live.trace.turns] == [str(TRIALS + 4), str(TRIALS + 5)]
        async with up(tmp_path, ENV, user) as host:
            again = host.get(live.id, ANYONE)
            await again.ready()
            assert again.trace.to_bytes() == live.trace.to_bytes()
            assert user.asked == TRIALS + 5

    asyncio.run(play())


def test_an_episode_that_is_played_again_may_stall_and_is_what_it_was(tmp_path: Path) -> None:
    times = TRIALS + 4

    async def play() -> None:
        GATE.set()
        async with up(tmp_path, BELL) as host:
            live = await host.create(Wanted(split="test", task=0), ANYONE)
            await live.ready()
            for _ in range(times):
                await live.call("ring", "{}")
        GATE.clear()
        async with up(tmp_path, BELL) as host:
            again = host.get(live.id, ANYONE)
            await again.ready()
            assert again.trace.failure is None, again.trace.failure
            assert again.trace.to_bytes() == live.trace.to_bytes()
            GATE.set()
            assert (await again.call("ring", "{}")).content == f"rung {times + 1} times"

    asyncio.run(play())


def test_who_was_heard_is_heard_again_from_where_the_episode_goes_back_to() -> None:
    async def play() -> None:
        user = User()
        kept = Kept(user, "one", FORGETFUL)
        asked = Request(messages=[Message("user", "Well?")], tools=(), role="user")
        kept.rewind(3)  # The record with which it began has three replies of others.
        first, second = await kept(asked), await kept(asked)
        kept.rewind(4)
        assert await kept(asked) == second
        kept.rewind(3)
        assert (await kept(asked), user.asked) == (first, 2)
        with pytest.raises(EpisodeError, match="'judge' is asked, where 'user' was"):
            await kept(Request(messages=asked.messages, tools=(), role="judge"))

    asyncio.run(play())
