"""The language of filters, as the page of the studio reads it: terms that must all hold.

`score<1 tool:crm_search -end:failed "too small"` chooses the episodes below full marks that called the tool, did not
fail, and hold the text.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from quintain.errors import UsageError

if TYPE_CHECKING:
    from quintain.studio.episodes import EpisodeTable

Row = Mapping[str, Any]
Test = Callable[[Row], bool]

_TERM = re.compile(
    r"""\s*(-?)(?:"((?:[^"\\]|\\.)*)"|([\w.@/-]*?)(:|<=|>=|!=|=|<|>)(?:"((?:[^"\\]|\\.)*)"|(\S+))|(\S+))"""
)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_ALIASES = {"seconds": "total_s", "ver": "version"}
_LISTS = ("label", "mode", "by", "owner")
_TEXTS = frozenset({"task", "split", "agent", "seed", "end", "reason", "component", "kind", "shape", "digest"})
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    ":": lambda a, b: a == b,
}


def rows_where(table: EpisodeTable, text: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of a table that all terms of a filter hold for, as in `score<1 tool:crm_search`.

    Raises:
        UsageError: A term is none, names no column, or compares what is no number.
    """
    tests = [_term(found, table) for found in _TERM.finditer(text)]
    return (row for row in table.rows() if all(test(row) for test in tests))


def _term(found: re.Match[str], table: EpisodeTable) -> Test:
    minus, quoted, name, sign, in_quotes, bare, lone = found.groups()
    if lone is not None:
        raise UsageError(f'{lone} is not a term; write name:text, name<number or "exact text"')
    if sign is None:
        held = frozenset(table.search(_unescaped(quoted)))
        test: Test = lambda row: row["n"] in held  # noqa: E731
    else:
        test = _about(name, sign, bare if in_quotes is None else _unescaped(in_quotes), table=table)
    return (lambda row: not test(row)) if minus else test


def _about(name: str, sign: str, value: str, *, table: EpisodeTable) -> Test:
    """Returns the test of a term about a column."""
    columns = table.columns
    known, fits = _ALIASES.get(name, name), _pattern("" if value == "none" else value)
    if known == "tool" or known in _LISTS:
        if sign != ":":
            raise UsageError(f"{name} takes a colon, as {name}:{value}")
        if value == "none":
            return lambda row: not _items(row, known)
        return lambda row: any(map(fits, _items(row, known)))
    column = next((one for one in (known, f"reward.{known}", f"tag.{known}") if one in columns), None)
    if column is None:
        there = [re.sub(r"^(reward|tag)\.", "", one) for one in columns if not one.startswith("tool.")]
        raise UsageError(f"there is no column {name}; there are {', '.join(dict.fromkeys([*there, 'tool']))}")
    if column in _TEXTS or column.startswith("tag.") or column in table.texts:
        if sign not in (":", "=", "!="):
            raise UsageError(f"{name} is text; write {name}:{value}")
        return lambda row: fits("" if row[column] is None else str(row[column])) == (sign != "!=")
    if value == "none":
        return lambda row: (row[column] is None) == (sign != "!=")
    if _NUMBER.fullmatch(value) is None:
        raise UsageError(f"{name} is a number, got {value}")
    number, holds = _single(float(value)), _COMPARE.get(sign)
    if holds is None:
        return lambda row: row[column] is None or _single(row[column]) != number
    return lambda row: row[column] is not None and holds(_single(row[column]), number)


def _items(row: Row, name: str) -> list[str]:
    """Returns the tools that an episode called, or its labels."""
    if name == "tool":
        return [column.removeprefix("tool.") for column, calls in row.items() if column.startswith("tool.") and calls]
    return [one for one in (row[name] or "").split(", ") if one]


def _single(value: float) -> float:
    """Returns a number in the precision of the page."""
    rounded: float = array("f", [value])[0]
    return rounded


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _pattern(value: str) -> Callable[[str], bool]:
    """Returns the test of a text in which * stands for any characters."""
    made = re.compile(".*".join(map(re.escape, value.split("*"))), re.DOTALL)
    return lambda text: made.fullmatch(text) is not None
