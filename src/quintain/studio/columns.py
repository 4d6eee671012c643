"""Columns of a run as typed arrays: the browser receives the index once, and filters and sorts it by itself.

A message is four bytes with the length of a JSON head, the head, padding, and the arrays, each on a multiple of eight,
little-endian. NaN stands for "none". Whole numbers have one, two or four bytes, as few as the largest needs.
"""

from __future__ import annotations

import bisect
import itertools
import math
import sys
import time
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from .index import MOST_TOKENS, Index

MOST = 200
"""Most columns for rewards and tags; the head counts those that are left out."""
_CHARS = 200
"""Characters of a text; the episode has the whole."""
_BATCH = 4000

_TYPES = {"f": "f4", "B": "u1", "H": "u2", "I": "u4"}
"""Types of a message by those of arrays."""
_WIDER = {"B": "H", "H": "I"}

_FIXED: dict[str, Literal["text", "f4", "u4"]] = {
    "task": "text", "member": "u4", "attempt": "u4", "split": "text", "agent": "text", "seed": "text", "end": "text",
    "reason": "text", "component": "text", "kind": "text", "score": "f4", "turns": "u4", "steps": "u4", "errors": "u4",
    "faults": "u4", "moved": "u4", "branches": "u4", "threads": "u4", "prompt": "u4", "completion": "u4",
    "tokens": "u4", "version": "f4", "last_version": "f4", "logprob": "f4", "model_s": "f4", "tool_s": "f4",
    "verifier_s": "f4", "queue_s": "f4", "total_s": "f4", "shape": "text",
}  # fmt: skip
_CAST = {"seed": "CAST(seed AS TEXT)", "reason": f"substr(reason, 1, {_CHARS})"}
_CAST["tokens"] = f"min(prompt + completion, {MOST_TOKENS})"
_QUERY = f"""
SELECT {", ".join(_CAST.get(name, name) for name in _FIXED)}, tags, rewards, tools
FROM episode LEFT JOIN timing USING (task, member, attempt)
WHERE n >= ? ORDER BY n
"""  # noqa: S608  # names of our own


class _Values(msgspec.Struct, array_like=True, gc=False):
    level: str
    total: float
    least: float


_rewards = msgspec.json.Decoder(list[dict[str, _Values]])
_mappings = msgspec.json.Decoder(list[dict[str, str]])
_tools = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])


class Numbers:
    """Column of numbers, as 4-byte floats or unsigned integers below 2^32."""

    def __init__(self, kind: Literal["f4", "u4"], **facts: Any) -> None:
        self.facts = {"kind": "number"} | facts
        self._data: array[Any] = array("f" if kind == "f4" else "B")
        self._empty: list[float] = [math.nan if kind == "f4" else 0]

    def __len__(self) -> int:
        return len(self._data)

    def extend(self, values: Sequence[Any]) -> None:
        if self._data.typecode == "f" and None in values:
            values = [math.nan if value is None else value for value in values]
        self._data = _extended(self._data, values)

    def fill(self, rows: int) -> None:
        """Appends so many rows without a value."""
        self._data.extend(self._empty * rows)

    def parts(self, start: int) -> tuple[dict[str, Any], list[array[Any]]]:
        return self.facts | {"type": _TYPES[self._data.typecode]}, [self._data[start:]]


class Texts:
    """Column of texts: numbers of distinct values, in the order in which they came.

    Args:
        since: First row after which a browser knows the column.
        values: Values of the numbers from 0 on; a browser gives 0 to rows before the column.
    """

    def __init__(self, since: int = 0, values: Sequence[str] = ()) -> None:
        self._since = since
        self._data: array[Any] = array("B")
        self._values = {value: n for n, value in enumerate(values)}
        self._firsts = [0] * len(values)

    def __len__(self) -> int:
        return len(self._data)

    @property
    def values(self) -> list[str]:
        return list(self._values)

    def extend(self, values: Sequence[str]) -> None:
        known, end = self._values, len(self._data) + len(values)
        for value in dict.fromkeys(values):
            if value not in known:
                known[value] = len(known)
                self._firsts.append(end - 1)  # At the latest; a value that is sent twice does no harm.
        self._data = _extended(self._data, list(map(known.__getitem__, values)))

    def fill(self, rows: int) -> None:
        """Appends so many empty texts."""
        self.extend([""] * rows)

    def parts(self, start: int) -> tuple[dict[str, Any], list[array[Any]]]:
        base = bisect.bisect_left(self._firsts, start) if start > self._since else 0
        facts = {"kind": "text", "type": _TYPES[self._data.typecode], "base": base, "values": list(self._values)[base:]}
        return facts, [self._data[start:]]


class Lists:
    """Column of lists of texts: the items one after the other, and where each row's begin, if there are any.

    Args:
        values: Values of the numbers from 0 on.
    """

    def __init__(self, values: Sequence[str] = ()) -> None:
        self._items = Texts(values=values)
        self._starts = array("I", [0])

    @property
    def values(self) -> list[str]:
        return self._items.values

    def extend(self, values: Sequence[Collection[str]]) -> None:
        self._items.extend(list(itertools.chain.from_iterable(values)))
        self._starts.extend(list(itertools.accumulate(map(len, values), initial=self._starts.pop())))

    def parts(self, start: int) -> tuple[dict[str, Any], list[array[Any]]]:
        facts, items = self._items.parts(self._starts[start])
        first = self._starts[start]
        starts = [array("I", [one - first for one in self._starts[start:]])] if len(items[0]) else []
        return facts | {"kind": "lists"}, [*items, *starts]


class Columns:
    """Columns of a run in memory, continued as the index grows.

    Attributes:
        rows: Number of episodes.
        left_out: Number of rewards and tags that have no column.
    """

    def __init__(self) -> None:
        self.rows = self.left_out = self._epoch = 0
        self._fixed: dict[str, Numbers | Texts] = {
            name: Texts() if kind == "text" else Numbers(kind) for name, kind in _FIXED.items()
        }
        self._named: dict[str, Numbers | Texts] = {}
        self._refused: set[str] = set()
        self._tools = Lists()

    def update(self, index: Index, seconds: float = math.inf) -> bool:
        """Appends the episodes that the index has beyond these, for about so many seconds.

        It begins anew where the index did.

        Returns:
            True if nothing is left.
        """
        until = time.monotonic() + seconds
        with index.lock:
            (epoch,) = index.database.execute("SELECT epoch FROM source").fetchone()
            if epoch != self._epoch:
                vars(self).update(vars(Columns()))
                self._epoch = epoch
            cursor = index.database.execute(_QUERY, (self.rows,))
            while batch := cursor.fetchmany(_BATCH):
                self._append(batch)
                if time.monotonic() > until:
                    return False
        return True

    def _append(self, batch: Sequence[tuple[Any, ...]]) -> None:
        *fixed, tags, rewards, tools = zip(*batch, strict=True)
        for column, values in zip(self._fixed.values(), fixed, strict=True):
            column.extend(values)
        self._tools.extend(_tools.decode(_joined(tools)))
        given, words = _rewards.decode(_joined(rewards)), _mappings.decode(_joined(tags))
        levels = {name: reward.level for row in given for name, reward in row.items()}
        for name, level in levels.items():
            numbers = [row[name].total if name in row else None for row in given]
            self._name(f"reward.{name}", numbers, Numbers("f4", level=level))
        for name in {name: None for row in words for name in row}:
            since = self.rows + len(batch) - 1
            self._name(f"tag.{name}", [row.get(name, "")[:_CHARS] for row in words], Texts(since))
        self.rows += len(batch)
        for column in self._named.values():
            column.fill(self.rows - len(column))

    def _name(self, name: str, values: Sequence[Any], fresh: Numbers | Texts) -> None:
        """Appends the values of a column that some episodes have."""
        column = self._named.get(name)
        if column is None:
            if len(self._named) >= MOST:
                self._refused.add(name)
                self.left_out = len(self._refused)
                return
            column = self._named[name] = fresh
            column.fill(self.rows)
        column.extend(values)

    def pack(
        self, start: int = 0, more: Mapping[str, Numbers | Texts | Lists] | None = None, *, since: int = 0, **facts: Any
    ) -> bytes:
        """Returns the message with the episodes from `start` on; `facts` join its head.

        Args:
            start: Row of the first episode.
            more: Columns of labels.
            since: Row that these begin with.
            facts: Further facts for the head.
        """
        start, columns, end = min(start, self.rows), list[dict[str, Any]](), 0
        arrays: list[array[Any]] = []
        own = {**self._fixed, **self._named, "tool": self._tools}
        packed = {name: column.parts(start) for name, column in own.items()}
        for name, column in (more or {}).items():
            said, parts = column.parts(0)
            packed[name] = said | {"from": since, "level": "label"}, parts
        for name, (said, parts) in packed.items():
            places = list[int]()
            for part in parts:
                places.append(end)
                end += _padded(len(part) * part.itemsize)
            arrays += parts
            columns.append({"name": name} | said | {"length": len(parts[0]), "at": places})
        counts = {"from": start, "rows": self.rows, "left_out": self.left_out}
        head = msgspec.json.encode(counts | facts | {"columns": columns})
        head += b" " * (_padded(len(head) + 4) - len(head) - 4)
        return b"".join((len(head).to_bytes(4, "little"), head, *itertools.chain.from_iterable(map(_bytes, arrays))))


def clipped(text: str) -> str:
    """Returns a text as a column holds it."""
    return text[:_CHARS]


def _extended(data: array[Any], values: Sequence[Any]) -> array[Any]:
    """Returns the array with more values, or one of wider integers where they need it."""
    try:
        data.extend(array(data.typecode, values))  # All of them or none.
    except OverflowError:
        if data.typecode not in _WIDER:
            raise
        return _extended(array(_WIDER[data.typecode], data), values)
    return data


def _joined(texts: Iterable[str]) -> str:
    return f"[{','.join(texts)}]"


def _padded(size: int) -> int:
    return (size + 7) // 8 * 8


def _bytes(part: array[Any]) -> list[bytes | memoryview]:
    """Returns an array and its padding."""
    if sys.byteorder == "big":
        part.byteswap()
    size = len(part) * part.itemsize
    return [memoryview(part), bytes(_padded(size) - size)]
