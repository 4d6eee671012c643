"""Checks two views of one row, a list and a detail: equal before a write, so equal after it.

A view that reads from a copy of its own gives the same result however often and whenever it is read: no read before the
write causes it, and no other session gets a better one. The write's arguments decide which of them is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, reset
from quintain.audit.kernel.registry import relation

from ._same_cache import TEACHES
from ._same_reads import Pair, around, writes
from ._same_scripts import bare
from ._same_splits import read
from ._same_walks import lists

HERE = f"{__name__}:"
WRITES, READS = 12, 10
"""Writes that are looked at, and reads around each."""
OLD, WRITE, NEW = "old", "write", "new"
_MAY_LAG = re.compile(
    r"\bas of\b|snapshot|nightly|hourly|daily|delay|\blag|refresh|eventual|cache|publish|\breport|\bsync|minutes old",
    re.IGNORECASE,
)
"""Words of a tool that says that it need not show the newest."""


class Views(msgspec.Struct, frozen=True):
    """A list and a detail that show one row.

    Attributes:
        key: Field that names the row in the list, and its value.
        field: What both show of it.
    """

    many: Op
    detail: Op
    key: tuple[str, Any]
    field: str


# --- the relation ---


@relation
def parted(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if two views of a row agree before a write and not after it: one is new, one is old.

    This holds with reads before the write, and without.
    """
    first, bare_one = records[:2]
    key, field = tuple(evidence.data["key"]), str(evidence.data["field"])
    if any(record.at(WRITE).is_error for record in records):
        return False
    old = _field_values(first, OLD, key, field=field)
    if old is None or old[0] != old[1]:
        return False
    write = next(op for op in first.ops if op.mark == WRITE)
    for record in (first, bare_one):
        new = _field_values(record, NEW, key, field=field)
        if new is None or (new[0] == old[0]) is (new[1] == old[0]):
            return False
        there = new[1] if new[0] == old[0] else new[0]
        if not _is_written(write, there, field, other_values=_column(record.at(f"{NEW} many"), field)):
            return False
    return True


def _field_values(record: Record, when: str, key: tuple[Any, ...], *, field: str) -> tuple[Any, Any] | None:
    """Returns the values of a row's field in the list and in the detail."""
    many, result = record.at(f"{when} many"), record.at(f"{when} one")
    row = _row(many, key)
    alone = _alone(result, key)
    if row is None or alone is None or field not in row or field not in alone:
        return None
    return row[field], alone[field]


def _row(seen: OpResult, key: tuple[Any, ...]) -> dict[str, Any] | None:
    """The only row of a list that has this key."""
    if seen.is_error:
        return None
    found = [row for rows in lists(read(seen.value)) for row in rows if _same(row.get(key[0]), key[1])]
    return found[0] if len(found) == 1 else None


def _alone(seen: OpResult, key: tuple[Any, ...]) -> dict[str, Any] | None:
    """Returns the row in a detail answer: the answer itself, or the only object in it, unless its key differs."""
    value = None if seen.is_error else read(seen.value)
    if is_dict(value) and len(value) == 1 and is_dict(inner := next(iter(value.values()))):
        value = inner
    return value if is_dict(value) and _same(value.get(key[0], key[1]), key[1]) else None


def _same(first: Any, second: Any) -> bool:
    return type(first) is type(second) and bool(first == second)


def _column(seen: OpResult, field: str) -> list[Any]:
    return [row[field] for rows in lists(read(seen.value)) for row in rows if field in row]


def _is_written(write: Op, value: Any, field: str, *, other_values: Sequence[Any]) -> bool:
    """True if a write contains this value, or a list has it for other rows."""
    if write.value.get(field) == value and field in write.value:
        return True
    return isinstance(value, str) and bool(value) and value in (*_texts(write.value), *other_values)


def _texts(value: dict[str, Any]) -> list[str]:
    return [item for item in value.values() if isinstance(item, str)]


# --- the check ---


@check("x.views_agree", "stale_cache", needs=("tools", "tasks"), value=84)
def views_agree(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a list and a detail of a row agree after a write, if they did before."""
    timely = {tool.name for tool in ctx.about.tools if not _MAY_LAG.search(f"{tool.name} {tool.description}")}
    pairs = [around(ctx, write, READS) for write in writes(ctx, WRITES)]
    pairs = [msgspec.structs.replace(case, reads=tuple(op for op in case.reads if op.name in timely)) for case in pairs]
    if not any(case.reads for case in pairs):
        raise NotChecked("no pair of a call that writes and a call that reads is known")
    reported: set[tuple[str, str, str]] = set()
    for pair, record in zip(pairs, ctx.play_all([Probe(_whole(case)) for case in pairs]), strict=True):
        for views, is_parted in _views(pair, record):
            ctx.count_comparisons()
            names = (pair.write.name, views.many.name, views.detail.name)
            if names in reported or not is_parted:
                continue
            finding = _differ(ctx, pair, views)
            reported |= {names} if finding is not None else set()
            yield finding


def _whole(pair: Pair) -> tuple[Op, ...]:
    """Every read, the write, every read."""
    before = [op.marked(f"{OLD} {place}") for place, op in enumerate(pair.reads)]
    after = [op.marked(f"{NEW} {place}") for place, op in enumerate(pair.reads)]
    return (reset(pair.task), *pair.before, *before, pair.write.marked(WRITE), *after)


def _views(pair: Pair, record: Record) -> Iterator[tuple[Views, bool]]:
    """Yields lists and details that agreed on a field before the write, with True if one of them alone changed."""
    if record.at(WRITE).is_error:
        return
    for many, first in enumerate(pair.reads):
        for read_call, second in enumerate(pair.reads):
            if first.name == second.name:
                continue
            seen = record.at(f"{OLD} {many}")
            for key in _keys(seen, second):
                row, alone = _row(seen, key), _alone(record.at(f"{OLD} {read_call}"), key)
                later, after = _row(record.at(f"{NEW} {many}"), key), _alone(record.at(f"{NEW} {read_call}"), key)
                if row is None or alone is None or later is None or after is None:
                    continue
                for field, value in row.items():
                    both = field in later and field in after and not is_dict(value) and not is_list(value)
                    if both and _same(alone.get(field), value):
                        is_parted = (later[field] != value) is not (after[field] != value)
                        yield Views(first, second, key, field), is_parted


def _keys(seen: OpResult, detail: Op) -> list[tuple[str, Any]]:
    """The fields of a list's rows that a detail's arguments name a row by."""
    named = [item for item in detail.value.values() if isinstance(item, str | int) and not isinstance(item, bool)]
    rows = [] if seen.is_error else [row for rows in lists(read(seen.value)) for row in rows]
    return list(dict.fromkeys((key, item) for item in named for row in rows for key in row if _same(row[key], item)))


def _differ(ctx: AuditContext, pair: Pair, views: Views) -> Finding | None:
    many, ops = (
        [bare(op).marked(f"{when} {word}") for when in (OLD, NEW)]
        for op, word in ((views.many, "many"), (views.detail, "one"))
    )
    start, write = (reset(pair.task), *pair.before), pair.write.marked(WRITE)
    asked = Probe((*start, many[0], ops[0], write, many[1], ops[1]))
    unasked = Probe((*start, write, ops[1], many[1]))
    data = {"key": list(views.key), "field": views.field}
    records = ctx.play_all([asked, unasked])
    if not parted(records, Evidence("", data=data)):
        return None
    old, new = (_field_values(records[0], when, views.key, field=views.field) for when in (OLD, NEW))
    assert old is not None
    assert new is not None
    late, right = (views.many, views.detail) if new[0] == old[0] else (views.detail, views.many)
    return ctx.finding(
        f"{late.name} goes on to show the {views.field} that {pair.write.name} changed, and {right.name} the new one",
        asked,
        unasked,
        relation=f"{HERE}parted",
        marks=(WRITE, f"{NEW} many", f"{NEW} one"),
        data=data,
        minimise=0,
        expected={views.many.name: old[0], views.detail.name: old[1], "afterwards": "the same in both"},
        observed={views.many.name: new[0], views.detail.name: new[1]},
        teaches=TEACHES,
    )
