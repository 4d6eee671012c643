"""Acceptance of a summary: the four conditions under which it may replace a part of a context."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quintain.trace import Message

from .budget import View, references
from .sources import CITATION

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_QUOTE = re.compile(r"\"([^\"\n]+)\"|\u201c([^\u201d\n]+)\u201d")
_BULLET = re.compile(r"^\s*(?:[-*]|\d+[.)])\s+")


def broken_conditions(view: View, summary: str, *, body: list[Message], target: int) -> Iterator[str]:
    """Yields a sentence for each condition that a summary breaks; none if it may be used.

    (1) It cites only results that exist. (2) Each result that a kept claim cites is still in the context. (3) Its
    numbers and quotes occur in the results that the same line cites. (4) The new context has at most `target` tokens.

    Args:
        view: The context before.
        summary: Text of the new summary, one claim a line.
        body: The context after, without the head.
        target: Most tokens of the context after.
    """
    if not summary.strip():
        yield "the summary is empty"
    if unknown := sorted(set(CITATION.findall(summary)) - view.sources.entries.keys()):
        yield f"no result has the id {', '.join(unknown)}"
    if lost := sorted(view.sources.cited(body) - references(body)):
        yield f"the context would lose the cited results {', '.join(lost)}"
    for line in summary.splitlines():
        yield from _unfounded(view, line)
    if (tokens := view.size(body)) > target:
        yield f"the context would have {tokens} tokens, at most {target} are allowed; write less"


def _unfounded(view: View, line: str) -> Iterator[str]:
    """Yields a sentence for each number and quote of a line that the results which it cites do not hold."""
    cited = [one for one in CITATION.findall(line) if one in view.sources.entries]
    claim = CITATION.sub(" ", _BULLET.sub("", line))
    numbers = _NUMBER.findall(claim)
    quotes = [one or other for one, other in _QUOTE.findall(claim)]
    if not numbers and not quotes:
        return
    texts = [view.sources.entries[one].text for one in cited]
    known = {number for text in texts for number in _NUMBER.findall(text)}
    where = f"the results that its line cites ({', '.join(cited)})" if cited else "any result: its line cites none"
    for number in dict.fromkeys(numbers):
        if number not in known:
            yield f"the number {number} is not in {where}"
    for quote in dict.fromkeys(quotes):
        if not any(quote in text for text in texts):
            yield f'the quote "{quote}" is not in {where}'
