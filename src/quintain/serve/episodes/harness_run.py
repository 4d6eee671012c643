"""Runs a harness from one question to the next: it is suspended wherever it asks the agent's model.

A suspended harness is a coroutine and nothing else: it needs no thread and no event loop, and may be resumed in any of
them. Whatever it awaits beside its model reaches the event loop in which it is resumed.
"""

from __future__ import annotations

import asyncio
import contextlib
import types
from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from quintain.episode import ActorSession
from quintain.errors import BROKEN, EpisodeError, ModelError
from quintain.harness import Harness, Model, Request
from quintain.serve.http.limits import patience_s
from quintain.trace import Message, Reply

from .actions import ResumedEpisode
from .executor import unlimited
from .secrets import shown


class HarnessRun:
    """One run of a harness, from the agent's side of a fresh episode of this process.

    Attributes:
        question: The open question; None before the first `resume`, and when the harness has returned.
        done: Whether the harness has returned.
    """

    def __init__(
        self, harness: Harness, session: ActorSession, *, others: Model | None = None, everyone: bool = False
    ) -> None:
        self.question: Request | None = None
        self.done = False
        self._role = None if everyone else session.role
        self._episode = session.episode
        self._others = others
        self._task: asyncio.Task[Any] | None = None
        side = _Side(session.episode, session.context)
        self._play: Generator[Any, Any, None] = harness.play(side, self._model).__await__()

    def close(self) -> None:
        """Closes the harness, and drops what it raises; one that runs on an abandoned thread is left to that thread."""
        self.done = True
        with contextlib.suppress(*BROKEN):
            self._play.close()

    async def _model(self, request: Request) -> Reply:
        shown().check(self._episode)  # A tool may have shown a secret to this role.
        if self._role in {None, request.role}:
            if asyncio.current_task() is not self._task:
                raise EpisodeError(
                    "the harness asks its model from a task of its own, as asyncio.gather makes one, and only what is "
                    "awaited directly can wait for an answer over a wire: await the model in `play` itself, or have "
                    "the environment played by `quintain run`",
                    component="H",
                    kind="agent_run_error",
                )
            return await _AgentQuestion(request)
        episode = self._episode
        model = episode.recall if isinstance(episode, ResumedEpisode) and episode.is_behind else self._others
        if model is None:
            raise EpisodeError(
                f"nobody plays the role {request.role!r} here; serve with --user AGENT",
                component="H",
                kind="agent_run_error",
            )
        calls = 0
        with unlimited(lambda: patience_s(episode.env.config, calls)):
            try:
                reply = await model(request)
            except EpisodeError:
                raise
            except Exception as error:
                raise ModelError(f"the {request.role}: {type(error).__name__}: {error}") from error
            calls = len(reply.message.calls)
        return reply

    @types.coroutine
    def resume(self, reply: Reply | None = None) -> Generator[Any, Any, None]:
        """Resumes the harness, with the reply to its question, until its next question or the end.

        What it awaits is passed on. Raises whatever the harness raises; it is done then.
        """
        self.question = None
        self._task = asyncio.current_task()
        try:
            wish = self._play.send(reply)
            while not isinstance(wish, _AgentQuestion):
                try:
                    answer = yield wish
                except BaseException as error:  # noqa: BLE001  # thrown in from outside, and meant for the harness
                    wish = self._play.throw(error)
                else:
                    wish = self._play.send(answer)
            self.question = wish.request
        except StopIteration:
            self.done = True
        except BaseException:
            self.done = True
            raise


class _Side(ActorSession):
    """The agent's side of an episode, whose requests share the context instead of copying it.

    They have no seed, because the client's model draws by itself.
    """

    def request(self) -> Request:
        config = self.config
        return Request(
            messages=_Until(self.context.messages),
            tools=self.tools,
            role=self.role,
            temperature=config.temperature,
            top_p=config.top_p,
            max_tokens=config.max_reply_tokens,
        )


class _Until(Sequence[Message]):
    """View of a list up to its length now: a context grows at its end, or is replaced by another list."""

    __slots__ = ("_count", "_messages")

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        self._count = len(messages)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        messages: Any = self._messages[: self._count]
        return messages[index]


class _AgentQuestion(msgspec.Struct):
    """Awaitable that suspends the harness at a question to the agent."""

    request: Request

    def __await__(self) -> Generator[Any, Any, Reply]:
        reply = yield self
        return reply  # type: ignore[no-any-return]  # what `run` was given
