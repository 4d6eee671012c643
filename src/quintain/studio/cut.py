"""Lines of episodes without their longest texts, which the page asks for when someone reads them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

from quintain.errors import UsageError

MOST = 100_000
"""Characters of a text that is sent with its episode."""
_SHOWN = 1200
"""Characters of a longer one."""
_TEXTS: frozenset[str | int] = frozenset({"content", "text", "reasoning", "arguments", "observation"})


def text_address(run: str, n: int) -> str:
    """Returns the address below `/api` at which a studio answers with texts of an episode."""
    return f"runs/{quote(run, safe='')}/episodes/{n}/text"


def cut(line: bytes, address: str) -> bytes:
    """Returns a line of traces without texts of more than `MOST` characters.

    `{"cut": BEGINNING, "length": CHARACTERS, "at": ADDRESS}` stands for each of them.

    Args:
        line: The line.
        address: Where a studio answers with its texts.
    """
    if len(line) <= MOST:
        return line
    value = json.loads(line)
    _cut(value["trace"].get("turns", []), ["trace", "turns"], address)
    return json.dumps(value).encode()


def _cut(holder: Any, place: list[str | int], address: str) -> None:
    """Cuts the texts in an object or a list of JSON, in place."""
    for key in list(holder) if hasattr(holder, "keys") else range(len(holder)):
        value, at = holder[key], [*place, key]
        if type(value) in {dict, list}:
            _cut(value, at, address)
        elif key in _TEXTS and isinstance(value, str) and len(value) > MOST:
            there = urlencode({"at": json.dumps(at)})
            holder[key] = {"cut": value[:_SHOWN], "length": len(value), "at": f"{address}?{there}"}


def text_at(line: bytes, at: str) -> str:
    """Returns a text of a line.

    Args:
        line: The line.
        at: Keys and places that lead to it, as a list in JSON.

    Raises:
        UsageError: No text is there.
    """
    try:
        value = json.loads(line)
        for key in json.loads(at):
            value = value[key]
    except (ValueError, LookupError, TypeError) as error:
        raise UsageError(f"the episode has no text at {at[:200]!r}") from error
    if not isinstance(value, str):
        raise UsageError(f"what the episode has at {at[:200]!r} is no text")
    return value
