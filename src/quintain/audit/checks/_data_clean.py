"""Signs that rows were made up: what tables in use hardly ever look like. Priors, no proofs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ._data_tables import STAMP, Row, column, columns, filled, is_id, is_stamps, numbers, texts

OPTIONAL = re.compile(
    r"(?:^|_)(?:phone|mobile|fax|title|job_title|zone|timezone|notes?|comments?|industry|middle_name|website|company"
    r"|birthday|birth_date|address2|employees|department|remarks?|referrer|nickname)$"
)
"""Columns that people leave empty."""
AMOUNT = re.compile(r"amount|price|total|cost|sum|value|revenue|budget|fee|balance|salary|cents|_eur$|_usd$")
PROSE = re.compile(r"text|body|comment|message|note|description|content|summary|review|feedback|remark")
NAMED = re.compile(r"(?:^|_)(?:name|full_name|customer|company|contact|city)$")


class Sign(msgspec.Struct, frozen=True):
    """Something too clean.

    Attributes:
        is_strong: It would be a wonder in a table in use.
    """

    kind: str
    where: str
    what: str
    expected: str
    observed: Any
    is_strong: bool = False


def signs(table: str, rows: Sequence[Row]) -> Iterator[Sign]:
    """What is too clean in a table of a dozen rows or more."""
    optional = [name for name in columns(rows) if OPTIONAL.search(name.lower())]
    gaps = {name: 1 - len(filled(column(rows, name))) / len(rows) for name in optional}
    full = [name for name, share in gaps.items() if share <= 0.01]
    if len(full) >= 2 and len(full) >= 0.6 * len(optional) and len(rows) >= 30:
        what = f"and {', '.join(full[1:])} are never empty"
        yield Sign("no gaps", f"{table}.{full[0]}", what, "gaps in some rows", gaps, is_strong=True)
    for name in columns(rows):
        values = filled(column(rows, name))
        if len(values) >= 12 and not is_id(name, values):
            yield from _column(f"{table}.{name}", name.lower(), values)
    yield from _ids(table, rows)


def _column(where: str, name: str, values: Sequence[Any]) -> Iterator[Sign]:
    words, amounts = texts(values), numbers(values)
    if len(words) == len(values) and is_stamps(values):
        yield from _stamps(where, words)
    elif len(words) == len(values) and PROSE.search(name):
        yield from _prose(where, words)
    elif len(words) == len(values) and NAMED.search(name) and len(values) >= 30:
        if all(one.isascii() for one in words):
            yield Sign("no letters beyond ASCII", where, "has none", "some names with accents", words[:4])
        if not any(one in (one.lower(), one.upper()) for one in words) and not _repeats(words):
            yield Sign("no variants", where, "has no repeated and no miswritten value", "some", words[:4])
    elif len(amounts) == len(values) and AMOUNT.search(name):
        yield from _amounts(where, amounts)


def _prose(where: str, words: Sequence[str]) -> Iterator[Sign]:
    kinds = Counter(re.sub(r"\d+", "0", one) for one in words)
    length = sum(map(len, words)) / len(words)
    sentences = sum(bool(re.search(r"[.!?]", one)) for one in words)
    if len(words) >= 50 and length >= 20 and sentences >= len(words) / 2 and len(kinds) <= 6:
        what = f"says one of {len(kinds)} things in {len(words)} rows"
        most = dict(kinds.most_common(3))
        yield Sign("one template", where, what, "as many texts as people wrote", most, is_strong=True)


def _amounts(where: str, amounts: Sequence[float]) -> Iterator[Sign]:
    value, count = Counter(amounts).most_common(1)[0]
    if count >= 0.8 * len(amounts) and value != 0:
        what = f"is {value:g} in {count} of {len(amounts)} rows"
        yield Sign("one amount", where, what, "amounts that differ", value, is_strong=True)
    elif len(amounts) >= 30 and all(one % 10 == 0 for one in amounts):
        yield Sign("round amounts", where, "is always a round number", "some that are not", amounts[:6])


def _stamps(where: str, words: Sequence[str]) -> Iterator[Sign]:
    clocks = [match.groups() for one in words if (match := STAMP.match(one)) and match.group(1)]
    if len(clocks) >= 30 and len({*clocks}) == 1:
        yield Sign("one time of day", where, "is always at the same time of day", "times that differ", words[:4])


def _ids(table: str, rows: Sequence[Row]) -> Iterator[Sign]:
    ids = numbers(column(rows, "id"))
    if len(ids) == len(rows) >= 30 and sorted(ids) == [ids[0] + place for place in range(len(ids))]:
        yield Sign("consecutive ids", f"{table}.id", "has no gap", "gaps where rows were deleted", ids[:4])


def _repeats(words: Sequence[str]) -> bool:
    return len({one.casefold() for one in words}) < len(words)
