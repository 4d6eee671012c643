"""Environments that another framework drives: its own loop asks the model of Quintain, its own scorer decides.

An adapter gives an `Upstream`. The harness runs the original's loop and records each reply with the tool results that
the loop made of it. The score is made from the record: the loop runs again with the recorded replies, must go the same
way, and its scorer judges the result.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import itertools
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from quintain import codec
from quintain.config import Config
from quintain.environment import Environment
from quintain.episode import ActorSession, Episode
from quintain.errors import BROKEN, EpisodeError, short
from quintain.harness import CallSource, Model, Session
from quintain.state import State
from quintain.task import Task
from quintain.tools import Tool
from quintain.trace import Content, Image, Level, Message, Reply, Step, Text, ToolCall, Trace
from quintain.verifier import Criterion, EpisodeView, Score, Verifier

Ask = Callable[[Sequence[Message], Sequence[Tool]], Awaitable[Reply | None]]
"""Asks for the reply to a context, with the tools that may be called; None ends the episode."""
MAX_REWARD = 1e9
"""Bound of an original's rewards, which it does not declare."""
MAX_TURNS = 200
"""Limit of turns if the original has none."""


class Ending(NamedTuple):
    """End of the original's loop."""

    reason: str
    messages: Sequence[Message]
    """The whole conversation."""
    result: Any
    """Input of the original's scorer."""


class Upstream(Protocol):
    """Environment of another framework."""

    async def play(self, task: Task[Any], ask: Ask) -> Ending:
        """Runs the original's loop on one task.

        Raises:
            Exception: The original broke; an EpisodeError names another component than S.
        """
        ...

    async def score(self, ending: Ending) -> tuple[float, Mapping[str, float]]:
        """Returns the original's reward, and the parts of it by name."""
        ...


class Conversation(State):
    """World of a conversation that an original drives; it is empty between two turns.

    Attributes:
        results: Results of the calls that the turn makes next, in order.
    """

    results: list[Content] = []

    def result(self) -> Content:
        if not self.results:
            message = "the tools of this environment run inside the original's loop; let its own harness play it"
            raise EpisodeError(message, component="H", kind="agent_run_error")
        return self.results.pop(0)


class OriginalTool(Tool, frozen=True, kw_only=True):
    """Schema of a tool that the original runs; the original also checks the arguments."""

    def decode(self, arguments: str, *, strict: bool = True) -> dict[str, Any]:
        return {}


def tool(name: str, description: str = "", parameters: Mapping[str, Any] | None = None) -> OriginalTool:
    """Returns the tool of an original."""
    return OriginalTool(
        name=name,
        description=description,
        parameters=dict(parameters or {}),
        roles=("agent",),
        arguments=msgspec.Struct,
        path=("result",),
    )


class OriginalEnvironment(Environment[Conversation]):
    """Environment whose loop, tools and scorer are those of an original.

    Args:
        name: Name of the original; other characters than letters and digits become "_".
        original: The original.
        tasks: Split name to a function that returns its tasks; their truth is all that the original needs.
        tools: Tools that are known before an episode.
        parts: Names of the parts of the reward.
        code: Digest of the original's code and settings.
        config: Limits.
    """

    def __init__(
        self,
        name: str,
        *,
        original: Upstream,
        tasks: Mapping[str, Callable[[], Sequence[Task[Conversation]]]],
        tools: Iterable[Tool],
        parts: Iterable[str],
        code: str,
        config: Config,
    ) -> None:
        super().__init__(
            re.sub(r"\W", "_", name),
            tasks=lambda split: tasks[split](),
            harness=OriginalLoop(original=original, code=code),
            verifier=Verifier(_score(original), *map(_part, dict.fromkeys(parts))),
            state=Conversation,
            config=config,
            splits=tuple(tasks),
        )
        self.tools = {one.name: one for one in tools}
        described = [(one.name, one.description, one.parameters) for one in self.tools.values()]
        self.tools_digest = codec.digest(codec.json(described))
        self.fingerprint = self._fingerprint()

    def tool_of(self, role: str, name: str) -> Tool | None:
        """Returns the tool of this name, also of one that the original does not have: it answers such calls too."""
        return super().tool_of(role, name) or tool(name)


class _OpenQuestion(NamedTuple):
    messages: Sequence[Message]
    tools: Sequence[Tool]
    reply: asyncio.Future[Reply | None]


class OriginalLoop(msgspec.Struct, frozen=True, kw_only=True):
    """Harness that runs the loop of an original in a task of its own, and answers its questions.

    A turn is recorded when the loop asks again or ends, because only then the results of its calls are known.
    """

    original: Upstream
    code: str

    async def play(self, session: Session, model: Model) -> None:
        assert isinstance(session, ActorSession)  # `Episode.begin` has no others.
        episode = session.episode
        if session.config.noise_rate:
            message = "noise_rate must be 0: the original runs the tools and would not see injected faults"
            raise EpisodeError(message, component="C", kind="agent_run_error")
        questions: asyncio.Queue[_OpenQuestion | None] = asyncio.Queue()

        async def ask(messages: Sequence[Message], tools: Sequence[Tool]) -> Reply | None:
            question = _OpenQuestion(messages, tools, asyncio.get_running_loop().create_future())
            questions.put_nowait(question)
            return await question.reply

        loop = asyncio.ensure_future(self.original.play(episode.task, ask))
        loop.add_done_callback(lambda _: questions.put_nowait(None))
        reply: Reply | None = None
        try:
            while (question := await questions.get()) is not None:
                if reply is not None:
                    await _record(episode, reply, question.messages)
                    reply = None
                if not session.ended:
                    session.set_context(question.messages)
                    request = msgspec.structs.replace(session.request(), tools=question.tools)
                    reply = await model(request)
                if not question.reply.done():  # The loop may have cancelled it.
                    question.reply.set_result(reply)
            await self._end(episode, reply, loop)
        finally:
            loop.cancel()

    async def _end(self, episode: Episode[Any], reply: Reply | None, loop: asyncio.Future[Ending]) -> None:
        try:
            ending = loop.result()
        except BROKEN as error:
            if reply is not None:
                await _record(episode, reply, ())
            episode.fail(error, component="S", kind="quintain:tool_bug")
            return
        if reply is not None:
            await _record(episode, reply, ending.messages)
        episode.terminate(ending.reason)


def _score(original: Upstream) -> Criterion[Conversation]:
    async def judge(view: EpisodeView[Conversation]) -> Score:
        value, parts = await original.score(await _again(original, view.task, view.trace))
        return Score(value, codec.text(dict(parts)))

    async def score(view: EpisodeView[Conversation]) -> Score:
        return await asyncio.ensure_future(judge(view))  # In a task, because an original may set context variables.

    return Criterion(name="reward", level=Level.TRAJECTORY, fn=score, low=-MAX_REWARD, high=MAX_REWARD)


def _part(name: str) -> Criterion[Conversation]:
    """Returns a criterion without weight that shows one part of the reward before it."""

    def part(view: EpisodeView[Conversation]) -> Score:
        parts = msgspec.json.decode(view.trace.rewards[0].reason, type=dict[str, float | None])
        return Score(parts.get(name))

    named = f"{name}_part" if name == "reward" else name
    return Criterion(name=named, level=Level.TRAJECTORY, fn=part, weight=0.0, low=-MAX_REWARD, high=MAX_REWARD)


async def _again(original: Upstream, task: Task[Any], trace: Trace) -> Ending:
    """Runs the original's loop with the replies of a record.

    Raises:
        EpisodeError: The loop went another way: it asked after other messages, or stopped before the last reply.
    """
    played = 0
    diverged = ""

    async def ask(messages: Sequence[Message], _: Sequence[Tool]) -> Reply | None:
        nonlocal played, diverged
        if played == len(trace.turns) or diverged:
            return None
        found, expected = _after_reply(messages), _after_reply(trace.context(played))
        if played and found != expected:  # What stands before the first reply is the original's own prompt.
            diverged = f"before reply {played} the record has {short(expected)}, the original now says {short(found)}"
            return None
        played += 1
        return trace.turns[played - 1].reply

    ending = await original.play(task, ask)
    if not diverged and played < len(trace.turns):
        diverged = f"the record has {len(trace.turns)} replies, the original now stops after {played}"
    if diverged:
        raise EpisodeError(f"{diverged}; it is not deterministic", component="S", kind="quintain:replay_diverged")
    return ending


async def _record(episode: Episode[Any], reply: Reply, messages: Sequence[Message]) -> None:
    """Plays a reply whose calls the original has run; `messages` begins with the conversation so far and the reply."""
    results = {message.call_id: message.content for message in _after_reply(messages) if message.role == "tool"}
    calls = [call for call in reply.message.calls if call.id in results]
    episode.state.results = [results[call.id] for call in calls]
    await episode.session.step(reply, _source(calls))


def _source(calls: Iterable[ToolCall]) -> CallSource:
    left = iter(calls)

    async def source(_: Step | None) -> ToolCall | None:
        return next(left, None)

    return source


def _after_reply(messages: Sequence[Message]) -> list[Message]:
    """Returns the messages behind the last reply."""
    return list(itertools.takewhile(lambda message: message.role != "assistant", reversed(messages)))[::-1]


def content(given: Any) -> Content:
    """Returns the content of a message in the form of OpenAI's chat API, whose blocks may also be objects.

    Raises:
        EpisodeError: It has a block that is neither text nor a picture in a data URL.
    """
    if given is None or isinstance(given, str):
        return given or ""
    return tuple(map(_block, cast(Iterable[Any], given)))


def _block(part: Any) -> Text | Image:
    if part["type"] == "text":
        return Text(part["text"])
    url = str(part["image_url"]["url"]) if part["type"] == "image_url" else ""
    return picture(url, part["type"])


def picture(url: str, what: str = "image") -> Image:
    """Returns the picture in a data URL.

    Raises:
        EpisodeError: The URL is another one; `what` names the block that has it.
    """
    if match := re.fullmatch(r"data:([\w/+.-]+);base64,(.*)", url, re.DOTALL):
        try:
            return Image(match[1], base64.b64decode(match[2], validate=True))
        except binascii.Error as error:
            message = f"a picture in a data URL must be base64: {error}"
            raise EpisodeError(message, component="T", kind="agent_run_error") from error
    message = f"a message has a block of type {what!r} with {short(url)}; only text and pictures as data URLs are known"
    raise EpisodeError(message, component="T", kind="agent_run_error")
