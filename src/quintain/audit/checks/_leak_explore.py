"""Explores all readable data of a task inside the child: thousands of answers are searched for hidden values.

The walk starts with calls that work and continues with their answers: ids, paths and words become arguments of the next
calls, as for a curious agent. Deliberately wrong calls stand between them, since error messages may leak. Text from the
prompt, from the agent itself or from the visible world is not a secret.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from quintain.audit.facts.data import parsed
from quintain.audit.kernel.probe import Op, OpResult

from ._leak_codes import decoded
from ._leak_secrets import folded, leaves, spelled

WHOLE = 40
"""Characters of a text that is a piece of work, and no fact that stands somewhere."""


class Hit(msgspec.Struct, frozen=True):
    """A hidden value that could be read.

    Attributes:
        code: Name of its encoding; empty for plain text.
        why: "error": an error message contained it; "asked": a word that only a search for the answer uses returned
            it; "beyond": it stands nowhere in the world that the tool else shows; "whole": it is the whole content
            of an unmentioned place, and what the oracle hands in; "after": it is shown only after another action.
        needle: The hidden value's text, folded.
        path: Its path in the hidden data.
        late: Number of oracle ops before it.
        then: Ops between those and the op that showed it.
    """

    code: str
    why: str
    needle: str
    path: tuple[str, ...]
    op: Op
    late: int = 0
    then: tuple[Op, ...] = ()


def flat(value: Any) -> str:
    """All scalars of a value and its keys, folded, one a line: for asking whether something stands in it."""
    lines = [folded(spelled(leaf)) for _, leaf in leaves(value)]
    keys = [folded(key) for key in dict.fromkeys(key for path, _ in leaves(value) for key in path)]
    return "\n".join((*lines, *keys))


def stands_in(needle: str, text: str) -> bool:
    """True if a text contains a value by itself, and not as a part of a longer word or number."""
    start = 0
    while (at := text.find(needle, start)) >= 0:
        before, behind = text[at - 1 : at], text[at + len(needle) : at + len(needle) + 2]
        inside = (needle[0].isalnum() and before.isalnum()) or (needle[-1].isalnum() and behind[:1].isalnum())
        decimal = needle[-1].isdigit() and behind[:1] == "." and behind[1:].isdigit()
        if not inside and not decimal and not (needle[0].isdigit() and before in (".", ",")):
            return True
        start = at + 1
    return False


def evened(text: str) -> str:
    """Folded, and numbers without marks between thousands."""
    return re.sub(r"(?<=\d)[,'_ \u2009\u202f](?=\d{3}(?!\d))", "", folded(text))


def read_text(seen: OpResult) -> str:
    """Returns the result as the agent reads it: strings as they are, not as JSON writes them."""
    if seen.how:
        return seen.raised.partition(":")[2]
    value = parsed(seen.value)
    return value if isinstance(value, str) else "\n".join(spelled(leaf) for _, leaf in leaves(value))


def finds(text: str, needle: str) -> str | None:
    """Returns how a text shows a value: "" for plain, the name of a code, or None if it does not."""
    even = evened(text)
    if stands_in(needle, even) or stands_in(needle, folded(text)):
        return ""
    return next((name for name, plain in decoded(text) if _behind(name, plain, needle)), None)


TURNED = frozenset(("rot13", "rot47", "backwards", "words backwards", "letters apart", "first letters", "last letters"))


def _behind(name: str, plain: str, needle: str) -> bool:
    is_turned = name.partition(" in ")[0] in TURNED
    least = 6 if is_turned else 3 if name != "words for digits" else 2
    short = needle.replace(" ", "") if name in ("letters apart", "first letters", "last letters") else needle
    return len(short) >= least and len(set(short)) >= 3 and stands_in(short, evened(plain))
