"""Two runs compared: episodes joined by task and member, and what differs most by task, tag, tool, phase or shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from .folders import Run
from .shapes import SEPARATOR


class _PlayedRow(msgspec.Struct, array_like=True, gc=False):
    """Row of an episode."""

    n: int
    task: str
    member: int
    score: float | None
    tags: str
    rewards: str
    tools: str
    shape: str


class _Part(msgspec.Struct):
    """Sums over n pairs in both runs: of scores, or of episodes for which something holds."""

    name: str
    a: float = 0
    b: float = 0
    n: int = 0


_Pair = tuple[_PlayedRow, _PlayedRow]
_QUERY = "SELECT n, task, member, score, tags, rewards, tools, shape FROM episode ORDER BY n"
_mapping = msgspec.json.Decoder(dict[str, str])
_names = msgspec.json.Decoder(dict[str, msgspec.Raw])
_rewards = msgspec.json.Decoder(dict[str, tuple[str, float, float]])


def compared(a: Run, b: Run) -> dict[str, Any]:
    """Returns what two runs have in common, as JSON types.

    Only pairs with a score in both runs are `better`, `worse` or `same`; of several attempts the last one counts.
    `parts` holds sums over pairs by task, tag, tool, phase and shape of failure; those that differ most come first.
    """
    first, second = _played(a), _played(b)
    joined = [(one, second[key]) for key, one in first.items() if key in second]
    pairs = [(one, other) for one, other in joined if one.score is not None and other.score is not None]
    gaps = [(other.score or 0) - (one.score or 0) for one, other in pairs]
    better, worse = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
    found: dict[str, Any] = {
        "better": better,
        "worse": worse,
        "same": len(pairs) - better - worse,
        "open": len(joined) - len(pairs),
        "missing": len(first) + len(second) - 2 * len(joined),
        "parts": {by: sorted(parts(pairs), key=_gap, reverse=True) for by, parts in _PARTS.items()},
    }
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain


def _gap(part: _Part) -> float:
    return abs(part.b - part.a) / part.n


def _played(run: Run) -> dict[tuple[str, int], _PlayedRow]:
    run.index.update()
    with run.index.lock:
        found = run.index.database.execute(_QUERY).fetchall()
    return {(row[1], row[2]): _PlayedRow(*row) for row in found}


def _scores(pairs: Iterable[_Pair], of: Callable[[_PlayedRow, _PlayedRow], Iterable[str]]) -> list[_Part]:
    """Adds up scores by what a pair is about."""
    found = dict[str, _Part]()
    for one, other in pairs:
        for name in of(one, other):
            part = found.setdefault(name, _Part(name))
            part.a += one.score or 0
            part.b += other.score or 0
            part.n += 1
    return list(found.values())


def _shares(pairs: Sequence[_Pair], of: Callable[[_PlayedRow], Iterable[str]]) -> list[_Part]:
    """Counts the pairs for which something holds in the first run, and in the second one."""
    found = dict[str, _Part]()
    for one, other in pairs:
        for name in of(one):
            found.setdefault(name, _Part(name, n=len(pairs))).a += 1
        for name in of(other):
            found.setdefault(name, _Part(name, n=len(pairs))).b += 1
    return list(found.values())


def _tags(one: _PlayedRow, _other: _PlayedRow) -> list[str]:
    return [
        f"{name}:{msgspec.json.encode(value).decode()}" for name, value in _mapping.decode(one.tags).items() if value
    ]


def _phases(one: _PlayedRow) -> list[str]:
    return [name for name, (level, total, _) in _rewards.decode(one.rewards).items() if level == "phase" and total > 0]


_PARTS: dict[str, Callable[[Sequence[_Pair]], list[_Part]]] = {
    "task": lambda pairs: _scores(pairs, lambda one, _: [one.task]),
    "tag": lambda pairs: _scores(pairs, _tags),
    "tool": lambda pairs: _scores(pairs, lambda one, other: _names.decode(one.tools) | _names.decode(other.tools)),
    "phase": lambda pairs: _shares(pairs, _phases),
    "shape": lambda pairs: _shares(pairs, lambda one: [one.shape.split(SEPARATOR)[0]] if one.shape else []),
}
