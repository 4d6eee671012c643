"""Checks for signs of made-up rows, which tables in production hardly ever show. Priors, not proofs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_list
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding

from ._data_near import AMOUNT, BENFORD, first_digits, is_wide, near_rows, near_texts, off_benford, phrased, things
from ._data_tables import STAMP, Row, column, columns, filled, is_id, is_stamps, numbers, pooled, state_probes, texts

TASKS = 4
"""Tasks whose start state is looked at."""
TEACHES = "what holds in these rows only, and breaks on production's"
DIGITS = 0.22
"""From Benford's law; digits that are all as frequent are 0.27 away."""
PHRASED, NEAR = 0.85, 0.5
"""Part of the words of a usual text that stand in phrases which others have, and of texts that nearly are others."""
ROWS = 0.5
"""Part of rows that nearly are others."""

OPTIONAL = re.compile(
    r"(?:^|_)(?:phone|mobile|fax|title|job_title|zone|timezone|notes?|comments?|industry|middle_name|website|company"
    r"|birthday|birth_date|address2|employees|department|remarks?|referrer|nickname)$"
)
"""Columns that people leave empty."""
PROSE = re.compile(r"text|body|comment|message|note|description|content|summary|review|feedback|remark")
FILLER = re.compile(r"\blorem ipsum\b|\bdolor sit amet\b|\bplaceholder text\b|\bsample text\b|\bfoo ?bar\b|\basdf")
COUNTED = re.compile(
    r"(?:^|_)(?:full_name|first_name|last_name|customer|company|contact|author|title|subject|headline)$"
)
"""Columns whose values people think of: a room or a table may well be called by a number."""
_COUNTER = re.compile(r"(\D*[^\W\d]{3}) #?\d+")
"""A word, a space and a number; without the space it is an id."""
NAMED = re.compile(r"(?:^|_)(?:name|full_name|customer|company|contact|city)$")


class Sign(msgspec.Struct, frozen=True):
    """A sign of data that is too clean.

    Attributes:
        is_strong: True if a table in production would hardly ever show it.
        is_odd: True if it is reported by itself, although tables in production may show it.
    """

    kind: str
    where: str
    what: str
    expected: str
    observed: Any
    is_strong: bool = False
    is_odd: bool = False


def signs(table: str, rows: Sequence[Row]) -> Iterator[Sign]:
    """Yields the signs of too clean data in a table of a dozen rows or more."""
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
    yield from _rows(table, rows)


def _column(where: str, name: str, values: Sequence[Any]) -> Iterator[Sign]:
    words, amounts = texts(values), numbers(values)
    yield from _made(where, name, values)
    if len(words) == len(values) and is_stamps(values):
        yield from _stamps(where, words)
    elif len(words) == len(values) and PROSE.search(name):
        yield from _prose(where, words)
    elif len(words) == len(values) and NAMED.search(name) and len(values) >= 30:
        if all(word.isascii() for word in words):
            yield Sign("no letters beyond ASCII", where, "has none", "some names with accents", words[:4])
        if not any(word in (word.lower(), word.upper()) for word in words) and not _repeats(words):
            yield Sign("no variants", where, "has no repeated and no miswritten value", "some", words[:4])
    elif len(amounts) == len(values) and AMOUNT.search(name):
        yield from _amounts(where, amounts)


def _made(where: str, name: str, values: Sequence[Any]) -> Iterator[Sign]:
    words = [text for value in values for text in texts(value if is_list(value) else [value])]
    filler = [word for word in words if FILLER.search(word.lower())]
    if len(filler) >= 3:
        yield Sign("filler", where, "holds filler text", "texts that say something", filler[:2], is_strong=True)
    stems = Counter(found[1] for word in words if COUNTED.search(name) and (found := _COUNTER.fullmatch(word)))
    for stem, count in stems.most_common(1):
        if count >= 0.9 * len(values) and len({*words}) > 1:
            what = f"is {stem.strip()!r} and a number in {count} of {len(values)} rows"
            yield Sign("counted", where, what, "what people would call it", words[:4], is_strong=True)


def _prose(where: str, words: Sequence[str]) -> Iterator[Sign]:
    kinds = Counter(re.sub(r"\d+", "0", word) for word in words)
    length = sum(map(len, words)) / len(words)
    sentences = sum(bool(re.search(r"[.!?]", word)) for word in words)
    if len(words) >= 50 and length >= 20 and sentences >= len(words) / 2 and len(kinds) <= 6:
        what = f"says one of {len(kinds)} things in {len(words)} rows"
        most = dict(kinds.most_common(3))
        yield Sign("one template", where, what, "as many texts as people wrote", most, is_strong=True)
        return
    parts, near = sorted(phrased(words)), near_texts(words)
    if len(parts) >= 50 and parts[len(parts) // 2] >= PHRASED:
        share = round(parts[len(parts) // 2], 2)
        what = f"is made of phrases that come back: {share:.0%} of the words of a usual text stand in them"
        yield Sign("phrases", where, what, "texts that people wrote, each in its words", list(words[:3]), is_odd=True)
    elif len(near) >= 50 and sum(near) >= NEAR * len(near):
        what = f"holds texts that nearly are others: {sum(near)} of {len(near)}"
        yield Sign("near duplicates", where, what, "texts that differ", list(words[:3]), is_odd=True)


def _rows(table: str, rows: Sequence[Row]) -> Iterator[Sign]:
    distinct = things(rows)
    near = near_rows(distinct)
    if len(near) >= 50 and sum(near) >= ROWS * len(near):
        what = f"are others but for one column, {sum(near)} of {len(near)}"
        alike = [row for row, is_near in zip(distinct, near, strict=True) if is_near][:3]
        yield Sign("near duplicates", f"rows of {table}", what, "rows that differ", alike, is_odd=True)


def _amounts(where: str, amounts: Sequence[float]) -> Iterator[Sign]:
    value, count = Counter(amounts).most_common(1)[0]
    if count >= 0.8 * len(amounts) and value != 0:
        what = f"is {value:g} in {count} of {len(amounts)} rows"
        yield Sign("one amount", where, what, "amounts that differ", value, is_strong=True)
    elif len(amounts) >= 30 and all(amount % 10 == 0 for amount in amounts):
        yield Sign("round amounts", where, "is always a round number", "some that are not", amounts[:6])
    elif is_wide(amounts) and off_benford(amounts) > DIGITS:
        what = f"has first digits that are no amounts': {off_benford(amounts):.2f} away from Benford's law"
        seen = dict(sorted(Counter(first_digits(amounts)).items()))
        usual = {digit: round(share * len(amounts)) for digit, share in enumerate(BENFORD, 1)}
        yield Sign("first digits", where, what, str(usual), seen, is_odd=True)


def _stamps(where: str, words: Sequence[str]) -> Iterator[Sign]:
    clocks = [match.groups() for word in words if (match := STAMP.match(word)) and match.group(1)]
    if len(clocks) >= 30 and len({*clocks}) == 1:
        yield Sign("one time of day", where, "is always at the same time of day", "times that differ", words[:4])


def _ids(table: str, rows: Sequence[Row]) -> Iterator[Sign]:
    ids = numbers(column(rows, "id"))
    if len(ids) == len(rows) >= 30 and sorted(ids) == [ids[0] + place for place in range(len(ids))]:
        yield Sign("consecutive ids", f"{table}.id", "has no gap", "gaps where rows were deleted", ids[:4])


def _repeats(words: Sequence[str]) -> bool:
    return len({word.casefold() for word in words}) < len(words)


@check("x.data_is_not_too_clean", "data_realism", needs=("state", "tasks"), value=18, severity="warning")
def clean(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that tables look real: gaps, variants, repeated and odd values, more than one template."""
    tables = pooled(ctx.play_all(state_probes(ctx.sample_tasks(TASKS))))
    large = {name: rows for name, rows in tables.items() if len(rows) >= 12}
    if not large:
        raise ctx.not_checked("no table has twelve rows")
    ctx.count_comparisons(len(large))
    found = [sign for name, rows in large.items() for sign in signs(name, rows)]
    strong = [sign for sign in found if sign.is_strong]
    are_several = len({item.kind for item in strong}) >= 2
    for sign in strong[:6]:
        yield ctx.finding(
            f"{sign.where} {sign.what}",
            expected=sign.expected,
            observed=sign.observed,
            teaches=TEACHES,
            at_most="likely" if are_several or sign.kind in ("one template", "filler") else "hint",
        )
    for sign in [sign for sign in found if sign.is_odd][:4]:
        yield ctx.finding(
            f"{sign.where} {sign.what}",
            expected=sign.expected,
            observed=sign.observed,
            teaches=TEACHES,
            at_most="hint",
            severity="note",
        )
    weak = [sign for sign in found if not (sign.is_strong or sign.is_odd)]
    if len({sign.kind for sign in weak}) >= 3 and not strong:
        yield ctx.finding(
            "the tables are cleaner than tables are: " + ", ".join(sorted({sign.kind for sign in weak})),
            expected="some gaps, variants and odd values",
            observed=[f"{sign.where} {sign.what}" for sign in weak[:10]],
            teaches=TEACHES,
            at_most="hint",
            severity="note",
        )
