"""Finds where a parameter cuts a list, or moves a date, from the answers to some of its values."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any

from .data import is_dict

TIME = re.compile(r"(\d{1,2}):(\d\d)")
_WAYS: tuple[Callable[[Any, Any], bool], ...] = (operator.ge, operator.gt, operator.le, operator.lt)


def moves_every_day(answers: Sequence[tuple[int, str]]) -> bool:
    """True if a week and more moves the one date (2026-03-09) of an answer by all its days, weekends too.

    Args:
        answers: (days, answer) pairs.
    """
    found = [(days, {*re.findall(r"\b\d{4}-\d\d-\d\d\b", text)}) for days, text in answers]
    known = sorted((days, texts.pop()) for days, texts in found if len(texts) == 1)
    if len(known) < 2 or known[-1][0] - known[0][0] < 7:
        return False
    (first, text), (last, end) = known[0], known[-1]
    try:
        return date.fromisoformat(text) + timedelta(days=last - first) == date.fromisoformat(end)
    except ValueError:  # Such a date does not exist: 2026-02-30.
        return False


def cut_as_text(lists: Sequence[tuple[str | None, list[Any]]]) -> str:
    """Returns the field of times by whose text, and not by whose time, lists are cut; empty for none.

    Args:
        lists: (value, rows) pairs, of three lists at least that differ and are cut at a time such as 9:30; a list
            without a value has all rows.
    """
    every = [*{_text(row): row for _, rows in lists for row in rows}.values()]
    cuts = {value: {*map(_text, rows)} for value, rows in lists if value is not None and TIME.fullmatch(value)}
    if len({*map(frozenset, cuts.values())}) < 3 or not all(map(is_dict, every)):
        return ""
    for field in every[0]:
        cells = {_text(row): str(row.get(field)) for row in every}
        if not all(map(TIME.fullmatch, cells.values())):
            continue
        for is_in in _WAYS:
            is_text = all((row in cuts[at]) == is_in(cell, at) for row, cell in cells.items() for at in cuts)
            pairs = ((cell, at) for cell in cells.values() for at in cuts)
            if is_text and any(is_in(cell, at) != is_in(_minutes(cell), _minutes(at)) for cell, at in pairs):
                return str(field)
    return ""


def gains_its_own(less: Sequence[Any], more: Sequence[Any], value: int) -> bool:
    """True if a list cut at the next number gains rows, all of them with the number itself."""
    known = {*map(_text, less)}
    gained = [{*numbers([row])} for row in more if _text(row) not in known]
    return bool(gained) and all(value in row and value + 1 not in row for row in gained)


def numbers(rows: Sequence[Any]) -> Iterator[int]:
    """Yields the whole numbers in rows, also those in texts."""
    yield from (int(text) for row in rows for text in re.findall(r"(?<![\w.])\d{1,9}(?![\w.])", _text(row)))


def _minutes(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return 60 * int(hours) + int(minutes)


def _text(row: Any) -> str:
    return json.dumps(row, sort_keys=True, default=str)
