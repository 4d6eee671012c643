"""A harness that is told replies from outside: it runs until it asks its model, and is stopped there.

A stopped harness is a suspended coroutine and nothing else: it needs no thread and no event loop, and may be resumed
from any of them. What it awaits beside its model reaches the event loop of whoever resumes it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Generator, Sequence
from typing import Any, overload

from quintain.episode import BROKEN, ActorSession
from quintain.errors import EpisodeError, ModelError
from quintain.harness import Harness, Model, Request
from quintain.serve.limits import patience_s
from quintain.trace import Message, Reply

from .executor import unlimited
from .secrets import shown


class HarnessRun:
    """One play of a harness.

    Args:
        harness: Whose loop is played.
        session: The agent's side of a fresh episode of this process.
        others: Who answers for other roles, such as a simulated user; None where nobody does.
        everyone: Whether the questions of all roles are asked outside.

    Attributes:
        question: What the agent's model is asked; None before the first `run`, and when the harness has returned.
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
        self._play: Generator[Any, Any, None] = harness.play(_Side(session), self._model).__await__()

    def resume(self, reply: Reply | None = None) -> Awaitable[None]:
        """Go on, with a reply where one was asked for, until the next question or the end.

        Raises:
            Exception: Whatever the harness raises; it is done then.
        """
        return _Leg(self, reply)

    def close(self) -> None:
        """Drop a harness that will not be resumed; what it holds open is closed, and what it says to that is nobody's.

        One that is still at work, in a thread that was given up, cannot be closed: it is left to that thread.
        """
        self.done = True
        with contextlib.suppress(*BROKEN):
            self._play.close()

    async def _model(self, request: Request) -> Reply:
        shown().check(self._episode)  # A tool may have told this role what no model is to read.
        if self._role in {None, request.role}:
            self._check_place()
            return await _Question(request)
        if self._others is None:
            raise EpisodeError(
                f"nobody plays the role {request.role!r} here; serve with --user AGENT",
                component="H",
                kind="agent_run_error",
            )
        calls = 0
        with unlimited(lambda: patience_s(self._episode.env.config, calls)):
            try:
                reply = await self._others(request)
            except EpisodeError:
                raise
            except Exception as error:
                raise ModelError(f"the {request.role}: {type(error).__name__}: {error}") from error
            calls = len(reply.message.calls)
        return reply

    def _check_place(self) -> None:
        """Make sure that a question stops the harness and not a task beside it.

        Raises:
            EpisodeError: It would not.
        """
        if asyncio.current_task() is not self._task:
            raise EpisodeError(
                "the harness asks its model from a task of its own, as asyncio.gather makes one, and only what is "
                "awaited directly can wait for an answer over a wire: await the model in `play` itself, or have the "
                "environment played by `quintain run`",
                component="H",
                kind="agent_run_error",
            )

    def _go(self, reply: Reply | None) -> Generator[Any, Any, None]:
        """Send what was answered in, and hand out what it awaits, until it asks."""
        self.question = None
        self._task = asyncio.current_task()
        try:
            wish = self._play.send(reply)
            while not isinstance(wish, _Question):
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
    """The agent's side of an episode whose model is elsewhere: it asks without copying the whole context each time.

    Its requests have no seed, for who is asked draws by itself.
    """

    def __init__(self, session: ActorSession) -> None:
        super().__init__(session.episode, session.context)

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
    """A list as long as it is now: a context only grows at its end, and is another list once it is rewritten."""

    __slots__ = ("_count", "_messages")

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        self._count = len(messages)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self._messages[: self._count][index]


class _Leg:
    """From one question to the next, as something that can be awaited."""

    __slots__ = ("_reply", "_run")

    def __init__(self, run: HarnessRun, reply: Reply | None) -> None:
        self._run = run
        self._reply = reply

    def __await__(self) -> Generator[Any, Any, None]:
        return self._run._go(self._reply)  # pyright: ignore[reportPrivateUsage]  # its other half


class _Question:
    """What the harness waits for, where it waits for the agent."""

    __slots__ = ("request",)

    def __init__(self, request: Request) -> None:
        self.request = request

    def __await__(self) -> Generator[Any, Any, Reply]:
        reply = yield self
        return reply  # type: ignore[no-any-return]  # what `run` was given
