"""A small world, a model whose replies are known, and a program's side of an episode without a program."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import httpx

import quintain as qn
from quintain import harness
from quintain.episode import Episode
from quintain.harness import Request
from quintain.replay import ReplayHarness, rebuild, replay
from quintain.rollout import _watched
from quintain.serve.model.conversation import Conversation
from quintain.serve.model.endpoint import Paths, ProgramHandlers
from quintain.trace import Image, Message, Reply, Tokens, ToolCall, Trace, Usage


class Bell(qn.State):
    """Rings, shows itself, and breaks."""

    rings: int = 0

    @qn.tool
    def ring(self, times: int = 1) -> str:
        """Ring the bell.

        Args:
            times: How often.
        """
        if times > 5:
            raise qn.ToolError("that is too often")
        self.rings += times
        return f"ding {self.rings}"

    @qn.tool
    def look(self) -> tuple[Image, ...]:
        """See the bell."""
        return (Image("image/png", b"png"),)

    @qn.tool
    def crack(self) -> str:
        """Break the bell."""
        raise RuntimeError("the bell is in pieces")

    @qn.tool
    def leave(self) -> str:
        """Go home."""
        self.finish("gone home")
        return "bye"


@qn.reward
def once(outcome: qn.EpisodeView[Bell]) -> float:
    return float(outcome.state.rings == 1)


env = qn.Environment(
    "bell",
    tasks=lambda split: [qn.Task(id="one", prompt="Ring the bell once.", start=Bell())],
    harness=qn.ToolLoop(system="You are a ringer."),
    verifier=qn.Verifier(once),
    state=Bell,
    config=qn.Config(max_turns=8),
)


def says(words: str = "", *calls: tuple[str, Any], thoughts: str = "") -> Reply:
    """A reply; a call is a name and its arguments, as a value or as a text that nobody parses before."""
    made = tuple(
        ToolCall(f"c{number}_{name}", name, given if isinstance(given, str) else json.dumps(given))
        for number, (name, given) in enumerate(calls)
    )
    return Reply(Message("assistant", words, made, reasoning=thoughts), usage=Usage(3, 2))


def drawn(reply: Reply, prompt: list[int], completion: list[int]) -> Reply:
    return Reply(
        reply.message, Tokens(prompt, completion, [-0.5] * len(completion)), Usage(len(prompt), len(completion)), 7
    )


class Model:
    """Gives replies in order, and remembers what it was asked."""

    name = "model"

    def __init__(self, *replies: Reply | Exception) -> None:
        self._replies: Iterator[Reply | Exception] = iter(replies)
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> Reply:
        self.asked.append(request)
        reply = next(self._replies)
        if isinstance(reply, Exception):
            raise reply
        return reply


class Talk:
    """A conversation and the two ways into it."""

    def __init__(self, episode: Episode[Bell], conversation: Conversation, client: httpx.AsyncClient) -> None:
        self.episode, self.conversation, self.client = episode, conversation, client

    async def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return await self.client.post(path, json=body, headers=headers)

    async def chat(self, *messages: dict[str, Any], tools: list[str] | None = None, **fields: Any) -> Any:
        """A completion's message; a refusal's document."""
        offered = [{"type": "function", "function": {"name": name}} for name in tools or []]
        body = {"model": "m", "messages": list(messages), **fields} | ({"tools": offered} if offered else {})
        answer = await self.post("v1/chat/completions", body)
        return answer.json()["choices"][0]["message"] if answer.status_code == 200 else answer.json()

    async def act(self, name: str, **arguments: Any) -> Any:
        """A call over MCP, by its plainest client."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        return (await self._rpc(body))["result"]

    async def tools(self) -> list[str]:
        found = await self._rpc({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        return [tool["name"] for tool in found["result"]["tools"]]

    async def _rpc(self, body: dict[str, Any]) -> Any:
        url = str(self.client.base_url).replace("/m/", "/e/") + "mcp"
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        answer = await self.client.post(url, json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        (line,) = [line for line in answer.text.splitlines() if line.startswith("data: {")]
        return json.loads(line.removeprefix("data: "))

    async def end(self) -> Trace:
        """Ends the episode as the harness does when the program has exited, and checks that the record replays."""
        words = await self.conversation.finish()
        session = self.episode.session
        if words is not None:
            await session.step(words)
            session.terminate("the agent answered")
        session.terminate("the program ended")
        await self.conversation.abandon()
        await self.episode.verify()
        await retold(self.episode.trace)
        return self.episode.trace


async def retold(trace: Trace) -> None:
    """Play a record again without the program, to the byte."""

    class Told(qn.ToolLoop, frozen=True):
        def replay_harness(self, trace: Trace) -> qn.Harness:
            return ReplayHarness(trace)

    twin = env.replace(config=trace.config)
    twin.harness = Told()
    for turns in range(len(trace.turns)):
        assert len((await rebuild(twin, env.tasks("test")[0], trace, turns=turns)).trace.turns) == turns
    assert (await replay(twin, env.tasks("test")[0], trace)).to_bytes() == trace.to_bytes()


@contextlib.asynccontextmanager
async def talking(
    model: harness.Model, *allowed: str, listed: bool = False, config: qn.Config | None = None
) -> AsyncGenerator[Talk]:
    """An episode at its beginning, with the endpoint open."""
    chosen = env.replace(config=config)
    episode = await Episode[Bell].begin(chosen, chosen.tasks("test")[0])
    conversation = Conversation(episode.session, _watched(model, episode), allowed, listed=listed)
    desk, paths = ProgramHandlers(conversation, bound=False), Paths()
    desk.start(0)
    paths.open(desk)
    transport = httpx.ASGITransport(app=paths)
    url = f"http://127.0.0.1/m/{desk.token}/"
    headers = {"Authorization": f"Bearer {desk.key}"}
    async with httpx.AsyncClient(transport=transport, base_url=url, headers=headers) as client:
        yield Talk(episode, conversation, client)
    await conversation.abandon()
    await paths.aclose()
