"""Baselines of a score: doing nothing, and doing anything."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import msgspec

from quintain import codec
from quintain.errors import UsageError
from quintain.harness import Request
from quintain.state import Rng
from quintain.tools import Tool
from quintain.trace import Message, Reply, ToolCall

from .drawing import Drawing

_TRIES = 256
_QUOTED = re.compile(r'"([^"\\]{1,100})"')
_MARKED = re.compile(r"[\w#@][\w#@.:+/-]*\w|\d")


class Noop:
    """Says nothing and calls nothing."""

    async def __call__(self, request: Request) -> Reply:
        return Reply(Message("assistant"))


class Random:
    """Makes valid calls, drawn from the tools' schemas by the request's seed, and then answers with something it read.

    Strings are drawn half from what the context has shown, so that it finds identifiers as any reader would.

    Args:
        calls: Most calls in one context, 0 and up. Before each it may also stop, one time in ten.
    """

    def __init__(self, calls: int = 8) -> None:
        if calls < 0:
            raise UsageError(f"calls must be >= 0, got {calls}")
        self._calls = calls

    async def __call__(self, request: Request) -> Reply:
        rng = Rng(key=hashlib.blake2b(f"random/{request.seed}".encode(), digest_size=16).digest())
        spent = sum(len(message.calls) for message in request.messages)
        words = seen(request.messages)
        if spent < self._calls and rng.below(10):
            for tool in rng.sample(request.tools, len(request.tools)):
                arguments = draw(tool, rng, words)
                if arguments is not None:
                    return Reply(Message("assistant", calls=(ToolCall(f"call_{spent}", tool.name, arguments),)))
        return Reply(Message("assistant", rng.choice(words) if words else "done"))


def draw(tool: Tool, rng: Rng, words: Sequence[str]) -> str | None:
    """Arguments that the tool accepts, as JSON; None when its schema doesn't say enough to find any."""
    for _ in range(_TRIES):
        drawing = Drawing(rng, words=words, definitions=tool.parameters.get("$defs"))
        arguments = codec.text(drawing.value(tool.parameters))
        try:
            tool.decode(arguments)
        except msgspec.DecodeError:
            continue
        return arguments
    return None


def seen(messages: Sequence[Message]) -> list[str]:
    """Returns the possible values in a context: quoted strings, and words with a digit, in order, each once."""
    found: dict[str, None] = {}
    for message in messages:
        text = message.text
        found |= dict.fromkeys(_QUOTED.findall(text))
        found |= dict.fromkeys(word for word in _MARKED.findall(text) if any(map(str.isdigit, word)))
    return list(found)
