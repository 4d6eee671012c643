"""A turn whose calls are made by a program, when and as it likes."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec

from quintain import codec
from quintain.episode import ActorSession
from quintain.trace import Message, Reply, Step, ToolCall

from .gate import is_object


class PendingReply(msgspec.Struct, frozen=True):
    """A reply that is given, and not recorded yet.

    Attributes:
        context: What the model saw.
        aside: Whether it was asked without any tool by a program that has tools: a title, a summary, no answer.
    """

    context: tuple[Message, ...]
    reply: Reply
    aside: bool

    @property
    def answers(self) -> bool:
        return not self.reply.message.calls and not self.aside


class OpenTurn:
    """A turn that waits for the program to make its calls.

    Attributes:
        context: The model's context.
        reply: The model's reply.
        pending: The episode's name of each tool, and the call as the model wrote it, for calls not made yet.
        closed: Set when it is over.
    """

    def __init__(self, session: ActorSession, held: PendingReply, pending: list[tuple[str, ToolCall]]) -> None:
        self.context, self.reply, self.pending = held.context, held.reply, pending
        self._inbox: asyncio.Queue[ToolCall | None] = asyncio.Queue()
        self._waiting: asyncio.Future[Step] | None = None
        self._turn = asyncio.ensure_future(session.step(held.reply, self._course))
        self.closed = asyncio.Event()

    def match(self, name: str, arguments: str) -> ToolCall | None:
        """The call that the program makes here, off the list; None when the model asked for nothing like it.

        A program may fill in defaults; then the arguments are those that it really sent.
        """
        alike = [one for one in self.pending if one[0] == name]
        if not alike:
            return None
        found = next((one for one in alike if _same(one[1].arguments, arguments)), None)
        chosen = found or alike[0]
        self.pending.remove(chosen)
        return ToolCall(chosen[1].id, name, chosen[1].arguments if found else arguments)

    async def run(self, call: ToolCall) -> Step:
        """Make a call."""
        waiting = self._waiting = asyncio.get_running_loop().create_future()
        self._inbox.put_nowait(call)
        await asyncio.wait({waiting, self._turn}, return_when=asyncio.FIRST_COMPLETED)
        # A call that ended the episode is the last one, and nothing asks what it gave but us.
        return waiting.result() if waiting.done() else (await self._turn).steps[-1]

    async def close(self) -> None:
        """No more calls."""
        self._inbox.put_nowait(None)
        try:
            await self._turn
        finally:
            self.closed.set()

    async def abandon(self) -> None:
        """Break it off."""
        self._turn.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self._turn

    async def _course(self, step: Step | None) -> ToolCall | None:
        if step is not None and self._waiting is not None:
            self._waiting.set_result(step)
        return await self._inbox.get()


def _same(one: str, other: str) -> bool:
    """True if two texts of arguments are the same JSON."""
    return is_object(one) and is_object(other) and _parsed(one) == _parsed(other)


def _parsed(arguments: str) -> Any:
    return msgspec.json.decode(arguments.strip() or "{}")


def key(message: Message) -> bytes:
    """Returns what stays of an assistant's message when a program repeats it: without thoughts and JSON's spaces."""
    calls = [(call.id, call.name, _plain(call.arguments)) for call in message.calls]
    return codec.dumps([message.text.strip(), calls])


def _plain(arguments: str) -> str:
    return codec.text(_parsed(arguments)) if is_object(arguments) else arguments
