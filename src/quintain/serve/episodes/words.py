"""What an agent says without calling a tool, for protocols in which it can do nothing but call tools.

There it is a tool itself, whose name `told.last_words` says: last words, which end an episode of most harnesses, or
words to a simulated user.
"""

from __future__ import annotations

from typing import Any

import msgspec

from quintain.serve.errors import Refused

ARGUMENT = "text"
DESCRIPTION = (
    "Say something without calling a tool: your answer at the end or, where somebody talks with you, your next words "
    "to them."
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {ARGUMENT: {"type": "string", "description": "What you say."}},
    "required": [ARGUMENT],
    "additionalProperties": False,
}


class _Words(msgspec.Struct, forbid_unknown_fields=True):
    text: str


def said(arguments: str | bytes | msgspec.Raw) -> str:
    """The words in a call's arguments.

    Raises:
        Refused: There are none, or more than words.
    """
    try:
        return msgspec.json.decode(arguments, type=_Words).text
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(str(error)) from error
