"""Shapes of failure: what several failed episodes have in common, found without a model.

A shape is a text of four parts: the criteria that failed, their reasons without names and numbers, the first refused
call, and the end. An episode that was solved has none.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

SEPARATOR = " ▸ "
_CHARS = 100
"""Characters of a part."""
_NAMES = re.compile(
    r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)*"""
    r"""|(?<![\w-])(?=[a-f-]*+\d)[0-9a-f-]{8,}+(?!\w)|\d+(?:[.,:]\d+)*"""
)
"""Quoted texts, e-mail addresses, hexadecimal ids and numbers."""


def plain(text: str) -> str:
    """Returns a text without quoted names and numbers, so that reasons of one kind are equal."""
    return _plain(text[: 3 * _CHARS])


@functools.lru_cache(4096)  # Most reasons of a run repeat.
def _plain(text: str) -> str:
    words = _NAMES.sub("#", text.replace(SEPARATOR.strip(), ">"))
    return " ".join(words.split())[:_CHARS]


def shape(failed: Iterable[tuple[str, str]], refused: tuple[str, str] | None, end: str) -> str:
    """Returns the shape of an episode.

    Args:
        failed: Name and reason of each criterion that failed.
        refused: Tool and answer of the first refused call.
        end: End of the episode, with its reason.
    """
    failed = list(failed)
    names = ", ".join([name for name, _ in failed])[:_CHARS]
    reasons = "; ".join([f"{name}: {plain(reason)}" if reason else name for name, reason in failed])[: 2 * _CHARS]
    call = f"{refused[0]}: {plain(refused[1])}" if refused else "none refused"
    return SEPARATOR.join((names or "no criterion", reasons or "no reason", call, plain(end)))
