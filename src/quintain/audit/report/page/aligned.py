"""Trajectories side by side: corresponding ops in one row, and their differences marked."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Sequence
from typing import Any

from .markup import Html, join, lines, tag, text, words

Line = dict[str, Any]
Row = list[Line | None]
"""One op in each trajectory, or None in a trajectory without it."""


def aligned(trajectories: Sequence[Sequence[Line]]) -> list[Row]:
    """Returns rows of corresponding ops in the order of the first trajectory, with extra ops of others in between."""
    first = list(trajectories[0])
    rows: list[Row] = [[line, *([None] * (len(trajectories) - 1))] for line in first]
    gaps: dict[int, list[Row]] = {}
    for column, other in enumerate(trajectories[1:], 1):
        matcher = difflib.SequenceMatcher(
            None, [_what(one) for one in first], [_what(one) for one in other], autojunk=False
        )
        for _, start, end, there, until in matcher.get_opcodes():
            paired = min(end - start, until - there) if _alike(first[start:end], other[there:until]) else 0
            for n in range(paired):
                rows[start + n][column] = other[there + n]
            for line in other[there + paired : until]:
                row: Row = [None] * len(trajectories)
                row[column] = line
                gaps.setdefault(end, []).append(row)
    found: list[Row] = []
    for place in range(len(first) + 1):
        found += gaps.get(place, [])
        found += rows[place : place + 1]
    return found


def _what(line: Line) -> str:
    return words([line.get(name) for name in ("do", "on", "name", "arguments", "value")])


def _alike(some: Sequence[Line], others: Sequence[Line]) -> bool:
    """True if both stretches have the same ops, arguments aside."""
    return [(one["do"], one.get("name")) for one in some] == [(one["do"], one.get("name")) for one in others]


def outcome(line: Line) -> str:
    """Returns an op's result in words."""
    for how in ("crashed", "hung", "refused", "absent"):
        if how in line:
            return f"{how}: {line[how]}" + (f"\nat {line['where']}" if line.get("where") else "")
    return lines(line.get("observed"))


def differing(one: str, other: str) -> tuple[Html, Html]:
    """Returns both texts with their differences marked, within a line if lines correspond."""
    some, others = one.split("\n"), other.split("\n")
    left: list[Html] = []
    right: list[Html] = []
    for _, start, end, there, until in difflib.SequenceMatcher(None, some, others, autojunk=False).get_opcodes():
        for mine, theirs in itertools.zip_longest(some[start:end], others[there:until]):
            first, second = _marked(mine, theirs)
            left += [] if first is None else [first]
            right += [] if second is None else [second]
    return join(left, "\n"), join(right, "\n")


def _marked(one: str | None, other: str | None) -> tuple[Html | None, Html | None]:
    if one == other:
        same = text(one)
        return same, same
    if one is None or other is None:
        return (None if one is None else tag("mark", one)), (None if other is None else tag("mark", other))
    most = min(len(one), len(other))
    head = next((n for n in range(most) if one[n] != other[n]), most)
    tail = next((n for n in range(most - head) if one[-1 - n] != other[-1 - n]), most - head)
    return _middle(one, head, tail), _middle(other, head, tail)


def _middle(said: str, head: int, tail: int) -> Html:
    end = len(said) - tail
    middle = tag("mark", said[head:end]) if said[head:end] else tag("mark", "∅", title="nothing here")
    return join([said[:head], middle, said[end:]])
