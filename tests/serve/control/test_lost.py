"""Connections that break: nothing is done twice, and what is lost for good is nobody's reward."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

import quintain as qn
from quintain.config import Config
from quintain.errors import RunStopped
from quintain.harness import Model, Request
from quintain.models import Scripted
from quintain.serve.client import transport as transport_
from quintain.serve.client.transport import ConnectionFailure, Transport
from quintain.trace import Message, Reply, ToolCall
from tests.serve.control.conftest import TALK, here
from tests.serve.control.test_remote import call, say
from tests.serve.operation.again import Mortal, mortal
from tests.serve.serving import Served


class Wire:
    """Stands between a client and the server, and lets answers get lost.

    Attributes:
        lose: So many answers are swallowed from now on, each with its connection.
        lost: How many have been.
    """

    def __init__(self, port: int) -> None:
        self.lose = self.lost = 0
        self._port = port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @classmethod
    @asynccontextmanager
    async def to(cls, served: Served) -> AsyncGenerator[tuple[Wire, str]]:
        wire = cls(served.port)
        wire._server = await asyncio.start_server(wire._serve, "127.0.0.1", 0)
        port = wire._server.sockets[0].getsockname()[1]
        try:
            yield wire, f"http://127.0.0.1:{port}"
        finally:
            await wire.cut()

    async def cut(self) -> None:
        """Nobody gets through any more."""
        if self._server is not None:
            self._server.close()
        for writer in self._open:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, on = await asyncio.open_connection("127.0.0.1", self._port)
        self._open |= {writer, on}
        try:
            await asyncio.gather(self._forward(reader, on), self._back(there, writer))
        except OSError:
            return  # One of both went away, and so does the other.
        finally:
            on.close()
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            if self.lose:
                self.lose -= 1
                self.lost += 1
                raise ConnectionResetError
            writer.write(data)
            await writer.drain()
        writer.close()


def agent(before: Callable[[int], Awaitable[None] | None]) -> Callable[[Request], Awaitable[Reply]]:
    """Adds one at each turn, and hands in three; is told of each turn before it answers."""

    async def model(request: Request) -> Reply:
        turn = sum(message.role == "assistant" for message in request.messages)
        waiting = before(turn)
        if waiting is not None:
            await waiting
        name, arguments = ("submit", '{"answer": 3}') if turn == 3 else ("add", '{"by": 1}')
        return Reply(Message("assistant", calls=(ToolCall(str(turn), name, arguments),)))

    return model


@pytest.mark.parametrize("harness", ["there", "here"])
def test_an_answer_that_is_lost_is_given_again(served: Served, harness: str) -> None:
    """Of the creation, of each step, of the verdict and of the record."""

    async def play() -> None:
        local = here("counter")
        async with Wire.to(served) as (wire, url), qn.connect(url) as server:
            remote = await server.environment("counter")
            if harness == "here":
                remote = remote.replace(harness=local.harness)
            task = await asyncio.to_thread(remote.task, "train", "train-3")

            def lose(turn: int) -> None:
                wire.lose = 1

            wire.lose = 2
            names: dict[str, Any] = {"seed": 3, "split": "train", "agent": "x"}
            found = (await qn.rollout(remote, task, agent(lose), **names)).trace
            expected = (await qn.rollout(local, local.task("train", "train-3"), agent(lambda _: None), **names)).trace
            assert wire.lost == 6
            assert expected.score == 1
            assert found.to_json() == expected.to_json()

    asyncio.run(play())


def test_a_server_lost_for_good_is_a_failure_of_the_world(served: Served) -> None:
    async def play() -> None:
        async with Wire.to(served) as (wire, url), qn.connect(url, patience_s=0.2) as server:
            counter = await server.environment("counter")
            task = await asyncio.to_thread(counter.task, "train", "train-3")

            def cut(turn: int) -> Awaitable[None] | None:
                return wire.cut() if turn == 2 else None

            trace = (await qn.rollout(counter, task, agent(cut), split="train")).trace
            assert trace.failure is not None
            assert (trace.failure.component, trace.failure.kind) == ("S", "transport_unreachable")
            assert (len(trace.turns), trace.score, trace.validity) == (2, None, "invalid")
            again = (await qn.rollout(counter, task, agent(cut), split="train")).trace
            assert again.failure is not None
            assert (again.failure.stage, again.failure.kind) == ("seed", "transport_unreachable")

    asyncio.run(play())


def test_a_run_stops_when_its_server_is_gone(served: Served) -> None:
    async def play() -> None:
        async with Wire.to(served) as (wire, url), qn.connect(url, patience_s=0.1) as server:
            counter = (await server.environment("counter")).replace(config=Config(gate_minimum=2, concurrency=2))
            tasks = await asyncio.to_thread(lambda: list(counter.tasks("train")))
            await wire.cut()
            with pytest.raises(RunStopped, match="transport_unreachable"):
                async for group in qn.rollouts(counter, agent(lambda _: None), tasks, split="train"):
                    assert not group.kept

    asyncio.run(play())


@asynccontextmanager
async def answering(*answers: bytes, after_s: float = 0.0) -> AsyncGenerator[Transport]:
    """To a server that gives one answer after the other, each after a while; an empty one is a broken connection."""
    left = iter(answers)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(after_s)
        writer.write(next(left))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        transport = Transport(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", None, patience_s=0.5)
        yield transport
        await transport.aclose()


DONE = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\ndone"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n"
BUILDING = BUSY + b"x-backend-state: starting\r\n\r\n"


def test_patience_begins_when_something_fails_and_not_when_it_is_asked() -> None:
    async def play() -> None:
        async with answering(b"", DONE, after_s=0.7) as transport:
            assert await transport.request("GET", "/step") == b"done"

    asyncio.run(play())


def test_a_world_that_is_being_built_uses_up_no_patience_but_some_time() -> None:
    async def play() -> None:
        async with answering(BUILDING, BUILDING, b"", DONE, after_s=0.2) as transport:
            assert await transport.request("GET", "/prompt") == b"done"
        async with answering(*[BUSY + b"\r\n"] * 9, after_s=0.2) as transport:
            with pytest.raises(ConnectionFailure, match="503"):
                await transport.request("GET", "/prompt")
        async with answering(*[BUILDING] * 9, after_s=0.2) as transport:
            with pytest.MonkeyPatch.context() as patch, pytest.raises(ConnectionFailure, match="503"):
                patch.setattr(transport_, "BUILDING_S", 0.3)
                await transport.request("GET", "/prompt")

    asyncio.run(play())


@pytest.mark.slow
@pytest.mark.parametrize("harness", ["there", "here"])
def test_a_server_that_is_killed_and_started_again_is_not_missed(tmp_path: Path, harness: str) -> None:
    """Killed twice between two turns; the record is that of a quiet run."""

    async def play(server: Mortal) -> None:
        local = here("counter")
        names: dict[str, Any] = {"seed": 3, "split": "train", "agent": "x"}
        async with qn.connect(f"http://127.0.0.1:{server.port}") as far:
            remote = await far.environment("counter")
            if harness == "here":
                remote = remote.replace(harness=local.harness)
            task = await asyncio.to_thread(remote.task, "train", "train-3")

            def killed(turn: int) -> Awaitable[None] | None:
                return asyncio.to_thread(server.again) if turn in {1, 3} else None

            found = (await qn.rollout(remote, task, agent(killed), **names)).trace
        expected = (await qn.rollout(local, local.task("train", "train-3"), agent(lambda _: None), **names)).trace
        assert expected.score == 1
        assert found.to_json() == expected.to_json()

    with mortal(tmp_path, "counter") as server:
        asyncio.run(play(server))


def test_twins_and_restored_episodes_outlive_the_server(tmp_path: Path) -> None:
    rest = [say("It is 3."), call("write", '{"number": 3}'), say("Done."), say("###STOP###")]

    async def play(server: Mortal) -> None:
        async with qn.connect(f"http://127.0.0.1:{server.port}") as far:
            remote = await far.environment("talk")
            episode = await remote.begin("train", 3, harness="server", seed=4)
            for reply in (say("Hello!"), say("What is it?"), call("look", "{}")):
                await episode.session.step(reply)
            twins = [
                episode,
                await episode.fork(),
                await remote.restore(await episode.snapshot(), harness="server"),
            ]
            await asyncio.to_thread(server.again)
            for one in twins:
                model = Scripted(rest)
                while not one.ended:
                    await one.session.step(await model(one.session.request()))
                assert await one.verify() == 1
            assert twins[1].trace.forked
            twins[1].trace.forked = msgspec.UNSET
            assert len({one.trace.to_json() for one in twins}) == 1

    with mortal(tmp_path, f"{TALK}:talk") as server:
        asyncio.run(play(server))


def test_a_rollout_that_was_broken_off_leaves_no_episode_behind(served: Served) -> None:
    async def never(_request: Request) -> Reply:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    begun = asyncio.Event()

    async def play() -> None:
        async with httpx.AsyncClient(base_url=served.url) as http:
            before = {one["id"] for one in (await http.get("/v1/episodes?limit=1000")).json()["episodes"]}
            async with qn.connect(served.url) as server:
                counter = await server.environment("counter")
                playing = asyncio.create_task(qn.rollout(counter, counter.tasks("train")[0], never, split="train"))
                await begun.wait()
                playing.cancel()
                await asyncio.wait({playing})
            assert {one["id"] for one in (await http.get("/v1/episodes?limit=1000")).json()["episodes"]} == before

    asyncio.run(play())


def test_a_record_of_a_lost_server_has_the_tags_of_its_task(served: Served) -> None:
    async def play() -> None:
        async with Wire.to(served) as (wire, url), qn.connect(url, patience_s=0.2) as server:
            talk = await server.environment("talk")
            task = await asyncio.to_thread(talk.task, "train", "train-3")

            async def cutting(_request: Request) -> Reply:
                await wire.cut()
                return say("Hello!")

            trace = (await qn.rollout(talk, task, cutting, split="train")).trace
            assert trace.failure is not None
            assert trace.failure.kind == "transport_unreachable"
            assert trace.tags == {"parity": "odd"}

    asyncio.run(play())


@pytest.mark.parametrize("words", ["told", "said"])
def test_words_that_no_record_can_hold_are_the_harness_failure_as_at_home(served: Served, words: str) -> None:
    class Muddled(qn.ToolLoop, frozen=True):
        async def play(self, session: qn.Session, model: Model) -> None:
            if words == "told":
                session.append(Message("user", "\ud800"))
            await session.step(say("\ud800") if words == "said" else await model(session.request()))

    async def play() -> None:
        local = here("counter").replace(harness=Muddled())
        async with qn.connect(served.url) as server:
            remote = (await server.environment("counter")).replace(harness=Muddled())
            task = await asyncio.to_thread(remote.task, "train", "train-3")
            found = (await qn.rollout(remote, task, agent(lambda _: None), split="train")).trace
        expected = (await qn.rollout(local, local.task("train", "train-3"), agent(lambda _: None), split="train")).trace
        for failure in (expected.failure, found.failure):
            assert failure is not None
            assert (failure.component, failure.kind, failure.type) == ("H", "agent_run_error", "UsageError")

    asyncio.run(play())
