"""Answers to a reply: the turn that the harness made of it, if it made one, and only once."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import quintain as qn
from quintain.harness import Model, Request
from quintain.serve.episodes.actions import Move
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.episodes.live import Live
from quintain.serve.errors import Conflict
from quintain.serve.http.keys import ANYONE
from quintain.trace import Message, Reply, ToolCall
from tests.serve.environments import counter

GATE = threading.Event()


class Curt(qn.ToolLoop, frozen=True):
    """Harness that asks once more after a reply without calls, and then ends, without making a turn of either."""

    async def play(self, session: qn.Session, model: Any) -> None:
        silent = 0
        while not session.ended:
            reply = await model(session.request())
            silent += not reply.message.calls
            if reply.message.calls:
                await session.step(reply)
            elif silent == 1:
                session.append(Message("user", "Call something."))
            else:
                session.terminate("it calls nothing")


class Polite(qn.ToolLoop, frozen=True):
    """Harness that lets a user look before each step of the agent."""

    async def play(self, session: qn.Session, model: Any) -> None:
        user = session.add_actor("user")
        while not session.ended:
            reply = await model(session.request())
            await user.step(await model(user.request()))
            await session.step(reply)


class Door(qn.State):
    """World of one door."""

    left: bool = False

    @qn.tool
    def knock(self) -> str:
        """Knock."""
        return "Who is there?"

    @qn.tool
    def leave(self) -> str:
        """Leave, once somebody opens."""
        GATE.wait()
        self.finish("left")
        return "Bye."

    @qn.tool(roles=("user",))
    def look(self) -> str:
        """Look who is there."""
        return "an agent, of whom no agent is to know"


@qn.reward
def one(_: qn.EpisodeView[Door]) -> float:
    return 1.0


ENV = qn.Environment(
    "door",
    tasks=lambda _split: [qn.Task(id="one", prompt="Knock.", start=Door())],
    harness=Curt(),
    verifier=qn.Verifier(one),
    state=Door,
)


class Looks:
    """A user who looks each time."""

    name = "looks"

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        async def model(_: Request) -> Reply:
            return Reply(Message("assistant", calls=(ToolCall("u", "look", "{}"),)))

        return model


async def opened(host: Host, **more: Any) -> Live:
    live = await host.create(EpisodeSpec(task=0, **more), ANYONE)
    await live.ready()
    return live


@pytest.mark.parametrize("knocks", [0, 2])
def test_a_reply_of_which_the_harness_makes_no_turn_is_answered_nevertheless(knocks: int) -> None:
    async def play() -> None:
        host = Host([ENV])
        live = await opened(host)
        for _ in range(knocks):
            await live.call("knock", "{}")
        asked = await live.answer("Hello?", key="first")
        assert (asked.content, asked.finished, asked.reward, asked.seq) == ("Call something.", False, None, knocks)
        assert await live.again("first") == [asked]
        last = await live.answer("Hello!", key="last")
        assert (last.finished, last.reward, last.meta["dev.quintain/reason"]) == (True, 1.0, "it calls nothing")
        assert await live.again("last") == [last]
        assert (live.trace.validity, len(live.trace.turns)) == ("valid", knocks)
        host.executor.close()

    asyncio.run(play())


def test_agent_reads_the_result_of_its_own_words_when_another_role_speaks_first() -> None:
    async def play() -> None:
        host = Host([ENV.replace(harness=Polite())], user=Looks())
        live = await opened(host)
        for number in range(2):
            answer = await live.call("knock", "{}", key=f"{number}")
            assert (answer.content, answer.seq) == ("Who is there?", 2 * number)
            assert (await live.again(f"{number}") or [])[0].content == answer.content
        assert [turn.role for turn in live.trace.turns] == ["user", "agent"] * 2
        host.executor.close()

    asyncio.run(play())


def test_requests_of_one_key_are_done_once_when_the_first_was_refused() -> None:
    async def play() -> None:
        host = Host([counter])
        live = await opened(host, led=True)
        add = Reply(Message("assistant", calls=(ToolCall("c", "add", "{}"),)))
        good, bad = (Move(add.message, thread=thread) for thread in (0, 9))
        before = asyncio.create_task(live.act(good))
        await asyncio.sleep(0)  # The others wait for it, and those of the key that are left for the last one.
        first, *rest = [asyncio.create_task(live.act(each, key="k")) for each in (bad, good, good)]
        after = asyncio.create_task(live.act(good))
        with pytest.raises(Conflict):
            await first
        contents = [(await task)[0].content for task in (before, after, *rest)]
        assert contents == ["The count is 1.", "The count is 2.", "The count is 3.", "The count is 3."]
        assert len(live.trace.turns) == 3
        host.executor.close()

    asyncio.run(play())


def test_an_episode_that_was_closed_in_its_last_call_is_closed() -> None:
    async def play() -> None:
        host = Host([ENV])
        live = await opened(host)
        leaving = asyncio.create_task(live.call("leave", "{}"))
        while not live.is_busy:  # noqa: ASYNC110  # it is, as soon as its task has begun
            await asyncio.sleep(0)
        await host.close(live.id, ANYONE)
        GATE.set()
        assert (await leaving).finished
        assert live.status == "closed"
        host.executor.close()

    GATE.clear()
    asyncio.run(play())
