"""Replies that are known beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quintain import codec
from quintain.errors import ModelError
from quintain.harness import Request
from quintain.task import Call
from quintain.trace import Message, Reply, ToolCall


class Scripted:
    """Model that returns fixed replies in order, then empty ones. Use one instance per episode.

    Args:
        replies: Replies, first to last; afterwards every reply is empty and calls nothing.
    """

    def __init__(self, replies: Iterable[Reply]) -> None:
        self._replies = iter(tuple(replies))
        self._roles: set[str] = set()

    @classmethod
    def calls(cls, solution: Sequence[Call], answer: str = "done") -> Scripted:
        """One call a turn, then the answer.

        Raises:
            TypeError, ValueError: The arguments of a call have no JSON form.
        """
        turns = [
            Message("assistant", calls=(ToolCall(f"call_{number}", name, codec.text(arguments)),))
            for number, (name, arguments) in enumerate(solution)
        ]
        return cls(Reply(message) for message in [*turns, Message("assistant", answer)])

    async def __call__(self, request: Request) -> Reply:
        """Returns the next reply.

        Raises:
            ModelError: Every reply was given, and a context without replies asks: a second episode begins.
        """
        reply = next(self._replies, None)
        begins = request.messages and all(message.role != "assistant" for message in request.messages)
        if reply is None and begins and request.role in self._roles:
            raise ModelError("a Scripted plays one episode and was asked in a second one; make one for each episode")
        self._roles.add(request.role)
        return reply or Reply(Message("assistant"))
