"""Checks that a narrower query returns a subset of a wider one, and that an unreadable query finds nothing.

The right rows need not be known: "at least 8" cannot show a row that "at least 4" leaves out, nor a longer word a row
that a part of it does not find.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_number, parsed
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_claims import PART
from ._drift_words import rows_of

HERE = f"{__name__}:"
_LEAST = re.compile(r"at least|minimum|or more|no (?:fewer|less) than|not below", re.IGNORECASE)
_UP_TO = re.compile(r"at most|maximum|or (?:less|fewer)|no more than|not above", re.IGNORECASE)
_RANKED = re.compile(
    r"best|top\b|nearest|closest|similar|fuzzy|relevan|recommend|suggest|semantic|random|sample|page", re.IGNORECASE
)
_SIZES = re.compile(r"limit|max_results|top|per_page|(^|_)(size|count|k|n)$", re.IGNORECASE)
"""Parameters that say how many rows are shown."""
_LIMITS = re.compile(r"limit|max_results|top|per_page|page|offset|first|count|cursor|days|hours|minutes|seconds")
_NAMES = re.compile(r"(^|_)(id|name|key|title|number|no|code|sku|ref|slug|email|path|file)$", re.IGNORECASE)
"""Fields by which a row is known. One without is made for the question: a slot that is as long as was asked for."""
_CUT = (10, 20, 25, 30, 50, 100, 200)
"""Lengths at which lists are cut without a word."""
GARBAGE = ("zzz-wrong", "9999-99-99", "#")
MAX_FINDINGS = 4


def keys_of(seen: OpResult) -> dict[str, Any] | None:
    """Rows by what they are known by; None where an answer is an error or no list of such rows."""
    rows = None if seen.is_error else rows_of(seen.value)
    if rows is None or any(_key(row) is None for row in rows):
        return None
    return {json.dumps(_key(row), sort_keys=True, default=str): row for row in rows}


def _key(row: Any) -> Any:
    if not is_dict(row):
        return row
    fields = [name for name in ("id", "name", "key") if row.get(name)]
    return next((row[name] for name in (*fields, *filter(_NAMES.search, row))), None)


def is_whole(seen: OpResult) -> bool:
    """True if a list shows no sign of being truncated."""
    rows, value = rows_of(seen.value) or [], parsed(seen.value)
    stated = [item for item in value.values() if not isinstance(item, list)] if is_dict(value) else []
    return len(rows) not in _CUT and all(item in (None, False, len(rows)) for item in stated)


@relation
def sticks_out(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The narrower list has a row that the wider one, which is whole, does not have."""
    wide, narrow = records[0].at("wide"), records[0].at("narrow")
    own_fields, other_fields = keys_of(narrow), keys_of(wide)
    return (
        own_fields is not None
        and other_fields is not None
        and is_whole(wide)
        and not own_fields.keys() <= other_fields.keys()
    )


@check("x.narrower_lists_are_parts", "action_drift", needs=("tools", "call", "tasks"), value=84, reads_prose=True)
def nested(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a narrower query returns a subset of a wider one."""
    reported: set[str] = set()
    looked = False
    for known in _lists(ctx):
        for name, how in _narrowing(ctx, known):
            if f"{known.op.name} {name}" in reported or len(reported) >= MAX_FINDINGS:
                continue
            looked = True
            pairs = list(_pairs(ctx, known, name, how=how))
            records = ctx.play_all([_beside(known, *pair) for pair in pairs])
            ctx.count_comparisons(len(pairs))
            for (wide, narrow), record in zip(pairs, records, strict=True):
                limit = _limit(ctx, known, wide, but=name)
                if not sticks_out([record], Evidence("")) or _is_cut(record, records, limit=limit):
                    continue
                reported.add(f"{known.op.name} {name}")
                yield ctx.finding(
                    f"{known.op.name} shows rows for {name}={narrow[name]!r} that {name}={wide[name]!r} leaves out",
                    _beside(known, wide, narrow),
                    relation=f"{HERE}sticks_out",
                    marks=("wide", "narrow"),
                    minimise=0,
                    expected=f"a part of the rows for {wide}",
                    observed=f"further rows for {narrow}",
                    teaches="that a query does not mean what it says",
                )
                break
    if not looked:
        raise NotChecked("no list can be asked for more narrowly")


def _limit(ctx: AuditContext, known: KnownCall, given: dict[str, Any], *, but: str) -> float:
    """Returns the row limit of a list, from the call or a default; 0 if it is unknown."""
    tool = next(spec for spec in ctx.about.tools if spec.name == known.op.name)
    limits = [
        given.get(name, schema.get("default"))
        for name, schema in tool.properties.items()
        if is_dict(schema) and schema.get("type") == "integer" and name != but and _SIZES.search(name)
    ]
    return min((limit if is_number(limit) else 0 for limit in limits), default=math.inf)


def _is_cut(record: Record, records: Sequence[Record], *, limit: float) -> bool:
    """True if the wider list may end before its last row.

    That is so at the limit, and where the longest lists have one length, share rows and differ.
    """
    kept = [keys for each in records for mark in ("wide", "narrow") if (keys := keys_of(each.at(mark)))]
    most = max(map(len, kept), default=0)
    longest = [item.keys() for item in kept if len(item) == most]
    alike = any(first & second and first != second for first, second in itertools.combinations(longest, 2))
    own_place = len(keys_of(record.at("wide")) or ())
    return own_place >= limit or (alike and own_place == most)


def _lists(ctx: AuditContext) -> list[KnownCall]:
    """One call of each reading tool that gives rows, the longest."""
    best: dict[str, KnownCall] = {}
    for known in ctx.discovery.reads():
        count = len(rows_of(known.seen.value) or ())
        if (
            count
            and not known.writes
            and count > len(rows_of(best[known.op.name].seen.value) or () if known.op.name in best else ())
        ):
            best[known.op.name] = known
    return list(best.values())[:40]


def _narrowing(ctx: AuditContext, known: KnownCall) -> Iterator[tuple[str, str]]:
    """Parameters that leave out rows: "least", "most", or "part" of a text."""
    tool = next(spec for spec in ctx.about.tools if spec.name == known.op.name)
    for name, schema in tool.properties.items():
        text = f"{schema.get('description') or ''}" if is_dict(schema) else ""
        if not is_dict(schema) or _LIMITS.search(name) or _RANKED.search(f"{tool.description} {text}"):
            continue
        kinds = schema.get("type")
        least = bool(_LEAST.search(text)) or name.startswith("min_")
        most = bool(_UP_TO.search(text)) or name.startswith("max_")
        if kinds in ("integer", "number") and least != most:
            yield name, "least" if least else "most"
        elif kinds == "string" and not schema.get("enum") and _is_part(f"{text} {tool.description}"):
            yield name, "part"


def _is_part(text: str) -> bool:
    """True if a text matches as a substring and not as a word."""
    return PART.search(text) is not None and not re.search(r"\b(?:key)?words?\b|\bterms?\b|exact", text, re.IGNORECASE)


def _pairs(
    ctx: AuditContext, known: KnownCall, name: str, *, how: str
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Arguments that ask for more, and for less."""
    base: dict[str, Any] = known.op.value
    if how == "part":
        text = base.get(name)
        if isinstance(text, str) and len(text.strip()) >= 3:
            yield {**base, name: text.strip()[:-1]}, base
        for row in (rows_of(known.seen.value) or [])[:2]:
            words = [
                word
                for value in (row.values() if is_dict(row) else ())
                if isinstance(value, str)
                for word in value.split()
            ]
            yield from (({**base, name: word[:3]}, {**base, name: word}) for word in words[:3] if len(word) > 3)
        return
    for low, high in itertools.pairwise(_numbers(ctx, known, name)):
        pair = ({**base, name: low}, {**base, name: high})
        yield pair if how == "least" else (pair[1], pair[0])


def _numbers(ctx: AuditContext, known: KnownCall, name: str) -> list[Any]:
    """Values at which rows come or go: those of the field that the parameter is called like, else of all fields."""
    rows = [row for row in rows_of(known.seen.value) or [] if is_dict(row)]
    stem = re.sub(r"^(min|max)(imum)?_|_(min|max)$", "", name)
    own = {row[field] for row in rows for field in row if field in (name, stem) and is_number(row[field])}
    every = own or {cell for row in rows for cell in row.values() if is_number(cell)}
    seen = [item for item in (known.op.value.get(name), *ctx.discovery.values.of(name)) if is_number(item)]
    tool = next(spec for spec in ctx.about.tools if spec.name == known.op.name)
    found = sorted(item for item in {*every, *seen} if fits(item, tool.properties[name]))
    return found[:: max(1, len(found) // 6)][:8]


def _beside(known: KnownCall, wide: dict[str, Any], narrow: dict[str, Any]) -> Probe:
    name = known.op.name
    return Probe((reset(known.task), *known.before, call(name, wide, mark="wide"), call(name, narrow, mark="narrow")))


# --- what cannot be read ---


@relation
def of_another(records: Sequence[Record], evidence: Evidence) -> bool:
    """Good lists have only rows of what was asked for; the one for a value that is none has rows of another."""
    name, record = evidence.data, records[0]
    for mark in ("one", "other"):
        rows = _fields(record, mark, name)
        if not rows or any(row != _asked(record, mark, name) for row in rows):
            return False
    wrong = _fields(record, "call", name)
    return bool(wrong) and all(item != _asked(record, "call", name) for item in wrong)


def _fields(record: Record, mark: str, name: str) -> list[Any]:
    seen = record.at(mark)
    rows = [] if seen.is_error else rows_of(seen.value) or []
    return [row[name] for row in rows] if all(is_dict(row) and name in row for row in rows) else []


def _asked(record: Record, mark: str, name: str) -> Any:
    return next(op.value[name] for op in record.ops if op.mark == mark)


@check("x.unread_filters_find_nothing", "silent_default", needs=("tools", "call", "tasks"), value=84)
def unread(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a list for an unreadable value is an error or empty, not the list for another value."""
    looked = False
    for known in _lists(ctx):
        for name, (first, second) in _equal(ctx, known).items():
            looked = True
            marked = (reset(known.task), *known.before, first.marked("one"), second.marked("other"))
            for value in GARBAGE:
                wrong = call(known.op.name, {**first.value, name: value}, mark="call")
                probe = Probe((*marked, wrong))
                ctx.count_comparisons()
                record = ctx.play_probe(probe)
                if not of_another([record], Evidence("", data=name)):
                    continue
                yield ctx.finding(
                    f"{known.op.name} shows the rows of another {name} when it cannot read the given one",
                    probe,
                    relation=f"{HERE}of_another",
                    marks=("one", "other", "call"),
                    data=name,
                    minimise=0,
                    expected="an error, or no rows",
                    observed=sorted({str(found) for found in _fields(record, "call", name)})[:4],
                    teaches="that the shown rows match the query",
                )
                break
    if not looked:
        raise NotChecked("no list is of one value of a field")


def _equal(ctx: AuditContext, known: KnownCall) -> dict[str, tuple[Op, Op]]:
    """Parameters of text by which rows are chosen, each with two calls that show it."""
    found: dict[str, tuple[Op, Op]] = {}
    tool = next(spec for spec in ctx.about.tools if spec.name == known.op.name)
    if _RANKED.search(tool.description):
        return {}
    rows = [row for row in rows_of(known.seen.value) or [] if is_dict(row)]
    for name, value in known.op.value.items():
        if not isinstance(value, str) or not rows or any(row.get(name) != value for row in rows):
            continue
        known_to_work = [str(known_call.op.value.get(name)) for known_call in ctx.discovery.of(tool.name)]
        texts = list(dict.fromkeys([*known_to_work, *map(str, ctx.discovery.values.of(name))]))
        for text in [candidate for candidate in texts if candidate != value][:6]:
            other_op = call(tool.name, {**known.op.value, name: text})
            record = ctx.play(reset(known.task), *known.before, other_op.marked("other"))
            there = _fields(record, "other", name)
            if there and all(item == text for item in there):
                found[name] = (call(tool.name, known.op.value), other_op)
                break
    return found
