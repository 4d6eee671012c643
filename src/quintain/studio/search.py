"""Search in the traces of a run: lines that hold a text, and the places of their texts where it stands."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from quintain.errors import TraceError, UsageError
from quintain.trace import Message, Trace, Turn, plain

if TYPE_CHECKING:
    from .index import Index

CHUNK = 8 << 20
"""Bytes that a search reads at once."""
PER_EPISODE = 5
"""Most places of one episode that a search names."""
_BEFORE, _AFTER = 50, 110
"""Characters of an excerpt around what was found."""

_MOST = 300
"""Characters of what was found."""

_Text = tuple[int | None, int | None, str, str]
"""Turn, step, label and words of a text."""


class Hit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Place at which a text stands.

    Attributes:
        n: Row of the episode.
        turn, step: None for a text of the whole episode, or of the whole turn.
        field: Label of the text on the page; "record" if only the line of the episode has it.
        excerpt: What stands before it, the text, and what stands behind it.
    """

    n: int
    task: str
    member: int
    attempt: int
    field: str
    turn: int | None = None
    step: int | None = None
    excerpt: tuple[str, str, str]


def patterns(text: str) -> set[bytes]:
    """Returns the forms in which a line may hold a text: in a text, or in one within it, as arguments of calls are."""
    once = msgspec.json.encode(text)[1:-1]
    return {once, msgspec.json.encode(once.decode())[1:-1]} - {b""}


def matches(file: BinaryIO, end: int, wanted: Collection[bytes], *, fold: bool = False) -> Iterator[int]:
    """Yields places of the wanted bytes up to `end`, in order, at least one for each line that holds one.

    Args:
        file: Traces, from where the search starts.
        end: Place at which it ends.
        wanted: Bytes, any of which is searched for.
        fold: A letter from A to Z is the same in both cases.
    """
    wanted = {one.lower() for one in wanted} if fold else wanted
    overlap, tail = max(map(len, wanted)) - 1, b""
    while (place := file.tell()) < end and (chunk := file.read(min(CHUNK, end - place))):
        text, base = tail + (chunk.lower() if fold else chunk), place - len(tail)
        found = list[int]()
        for one in wanted:
            at = text.find(one)
            while at >= 0:
                found.append(base + at)
                line_end = text.find(b"\n", at)
                at = text.find(one, line_end) if line_end >= 0 else -1
        yield from sorted(found)
        tail = text[-overlap:] if overlap else b""


def hits(index: Index, text: str, *, fold: bool = False, field: str = "") -> Iterator[Hit]:
    """Yields places at which a text stands, at most `PER_EPISODE` of one episode.

    Args:
        index: Index of the run.
        text: What is searched for.
        fold: A letter from A to Z is the same in both cases.
        field: Label of the texts that are searched, such as "says"; empty for all.

    Raises:
        UsageError: The text is empty.
    """
    wanted = patterns(text)
    if not wanted:
        raise UsageError("a search needs a text")
    words = {text, msgspec.json.encode(text)[1:-1].decode()}
    pattern = re.compile("|".join(map(re.escape, words)), re.ASCII | re.IGNORECASE if fold else re.ASCII)
    for n in index.rows_with(wanted, fold=fold):
        line = index.line(n)
        yield from in_line(n, line, pattern=pattern, field=field)


def in_line(n: int, line: bytes, *, pattern: re.Pattern[str], field: str) -> Iterator[Hit]:
    """Yields places of one episode at which a pattern fits more than nothing, at most `PER_EPISODE`.

    Args:
        n: Row of the episode.
        line: Its line.
        pattern: What is searched for.
        field: As for `hits`.
    """
    return itertools.islice(_places(n, line, pattern=pattern, field=field), PER_EPISODE)


def _places(n: int, line: bytes, *, pattern: re.Pattern[str], field: str) -> Iterator[Hit]:
    try:
        trace = Trace.from_json(line)
    except (TraceError, msgspec.DecodeError):  # A trace that no run writes is found as the text that it is.
        trace = None
    key = msgspec.json.decode(line, type=_KeyLine).trace
    texts: Iterator[_Text] = iter(()) if trace is None else _texts(trace)
    is_found = False
    for turn, step, label, words in texts:
        if (not field or field == label) and (match := _first(pattern, words)):
            is_found = True
            yield _hit(n, key, match, turn=turn, step=step, field=label)
    if not is_found and field in {"", "record"} and (match := _first(pattern, line.decode("utf-8", "replace"))):
        yield _hit(n, key, match, turn=None, step=None, field="record")


def _first(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next((one for one in pattern.finditer(text) if one[0]), None)


class _Key(msgspec.Struct):
    task: str
    member: int = 0
    attempt: int = 0


class _KeyLine(msgspec.Struct):
    trace: _Key


def _hit(n: int, key: _Key, match: re.Match[str], *, turn: int | None, step: int | None, field: str) -> Hit:
    start, end, text = match.start(), match.end(), match.string
    excerpt = (text[max(0, start - _BEFORE) : start], text[start : min(end, start + _MOST)], text[end : end + _AFTER])
    names: dict[str, Any] = {"task": key.task, "member": key.member, "attempt": key.attempt}
    return Hit(n=n, turn=turn, step=step, field=field, excerpt=excerpt, **names)


def _texts(trace: Trace) -> Iterator[_Text]:
    """Yields the texts of an episode with the labels that they have on the page."""
    yield None, None, "task", trace.task
    for turn in trace.turns:
        yield from _of_turn(turn)
    yield None, None, "end", trace.reason
    if trace.failure is not None:
        yield None, None, "failure", trace.failure.type
        yield None, None, "failure", trace.failure.message
    for reward in trace.rewards:
        yield None, None, "rewards", reward.reason


def _of_turn(turn: Turn) -> Iterator[_Text]:
    message: Message = turn.reply.message
    for added in turn.added:
        yield turn.index, None, added.role, plain(added.content)
    yield turn.index, None, "thinks", message.reasoning
    yield turn.index, None, "says", plain(message.content)
    for n, step in enumerate(turn.steps):
        yield turn.index, n, "calls", step.call.name
        yield turn.index, n, "calls", step.call.arguments
        yield turn.index, n, "sees", plain(step.observation)
    for reward in turn.rewards:
        yield turn.index, reward.step, "rewards", reward.reason
