"""Finds where a parameter cuts a list, or moves a date, from the answers to some of its values."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from .data import is_dict, is_number

TIME = re.compile(r"\b\d{1,2}:\d\d\b")
_WAYS: tuple[Callable[[Any, Any], bool], ...] = (operator.ge, operator.gt, operator.le, operator.lt)


_WORKDAYS = re.compile(r"(how many|number of) (working|business|week)[ -]?days", re.IGNORECASE)
_INCLUDED = re.compile(r"(?=.*\b(last|end|final|until|through)\b).*\b(included|inclusive)\b", re.IGNORECASE | re.DOTALL)
_WHOLE = re.compile(r"\b(complete|whole|entire|in full)\b", re.IGNORECASE)
_MONEY = re.compile(r"([$€£]\s?)((?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d{1,2})?)((?![\w.,])\D*)")


Answer = tuple[Any, Any, list[Any], dict[str, list[Any]]]
"""The value of a parameter, the answer, its rows, and the changes of the state by path, as [before, after]."""


def misread(answers: Sequence[Answer], description: str) -> str:
    """Returns for what a tool takes a parameter that is none of it, as answers to its values show; empty for nothing.

    Args:
        answers: Answers to calls that differ in this parameter alone.
        description: What the parameter is said to be.
    """
    numbered = [one for one in answers if is_number(one[0])]
    if _WORKDAYS.search(description) and _moves_every_day([(days, str(text)) for days, text, *_ in numbered]):
        return "days of the calendar, where it says working days"
    if _INCLUDED.match(description) and _leaves_out_the_end({end: rows for end, _, rows, _ in numbered}):
        return "an end that is left out, where it says included"
    texts = [one for one in answers if isinstance(one[0], str) and len(one[0]) > 2]
    if _WHOLE.search(description) and any(_changes_parts(value, made.values()) for value, *_, made in texts):
        return "a part of a longer value, where it says that it is complete"
    lists = [(value, rows) for value, _, rows, _ in texts if TIME.fullmatch(value)]
    return "text, by which 10:30 comes before 9:00" if _are_cut_as_text(lists) else ""


def _changes_parts(value: str, changes: Iterable[list[Any]]) -> bool:
    """True if a value is replaced, and also in a longer one, where it ends amid a word or number."""
    pairs = [(str(before), str(after)) for before, after in changes if isinstance(before, str)]
    new, inner = dict(pairs).get(value), rf"\w{re.escape(value)}|{re.escape(value)}\w"
    return any(re.search(inner, old) and after == old.replace(value, new) for old, after in pairs if new is not None)


def _moves_every_day(answers: Sequence[tuple[int, str]]) -> bool:
    """True if a week and more moves the one date (2026-03-09) of an answer by all its days, weekends too."""
    found = [(days, {*re.findall(r"\b\d{4}-\d\d-\d\d\b", text)}) for days, text in answers]
    known = sorted((days, texts.pop()) for days, texts in found if len(texts) == 1)
    if len(known) < 2 or known[-1][0] - known[0][0] < 7:
        return False
    (first, text), (last, end) = known[0], known[-1]
    try:
        return date.fromisoformat(text) + timedelta(days=last - first) == date.fromisoformat(end)
    except ValueError:  # Such a date does not exist: 2026-02-30.
        return False


def _leaves_out_the_end(lists: Mapping[int, list[Any]]) -> bool:
    """True if lists cut at the numbers that follow some numbers gain only rows of the numbers themselves.

    The numbers have gaps: those of lines, which count from 0 or from 1, have none.
    """
    ends = [end for end in lists if end + 1 in lists and _gains_its_own(lists[end], lists[end + 1], end)]
    return len(ends) > 1 and max(ends) - min(ends) >= len(ends)


def _are_cut_as_text(lists: Sequence[tuple[str, list[Any]]]) -> bool:
    """True if three unlike lists or more are cut by the text of a field of times, not by times."""
    every = [*{_text(row): row for _, rows in lists for row in rows}.values()]
    cuts = {value: {*map(_text, rows)} for value, rows in lists}
    if len({*map(frozenset, cuts.values())}) < 3 or not all(map(is_dict, every)):
        return False
    for field in every[0]:
        cells = {_text(row): str(row.get(field)) for row in every}
        if not all(map(TIME.fullmatch, cells.values())):
            continue
        for is_in in _WAYS:
            is_text = all((row in cuts[at]) == is_in(cell, at) for row, cell in cells.items() for at in cuts)
            pairs = ((cell, at) for cell in cells.values() for at in cuts)
            if is_text and any(is_in(cell, at) != is_in(_minutes(cell), _minutes(at)) for cell, at in pairs):
                return True
    return False


def _gains_its_own(less: Sequence[Any], more: Sequence[Any], value: int) -> bool:
    """True if a list cut at the next number gains rows, all of them with the number itself."""
    known = {*map(_text, less)}
    gained = [{*numbers(row)} for row in more if _text(row) not in known]
    return bool(gained) and all(value in row and value + 1 not in row for row in gained)


def numbers(value: Any) -> list[int]:
    """Returns the whole numbers in a value, also those in its texts, in ascending order."""
    return sorted({int(text) for text in re.findall(r"(?<![\w.])\d{1,9}(?![\w.])", _text(value))})


def money(value: Any) -> tuple[float, str] | None:
    """Returns a number, or a text with one amount of money ("$9 each"), as its number and unit; None for others."""
    if is_number(value):
        return float(value), ""
    found = _MONEY.fullmatch(value) if isinstance(value, str) else None
    return (float(found[2].replace(",", "")), found[1] + found[3]) if found else None


def _minutes(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return 60 * int(hours) + int(minutes)


def _text(row: Any) -> str:
    return json.dumps(row, sort_keys=True, default=str)
