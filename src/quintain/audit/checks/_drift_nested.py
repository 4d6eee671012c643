"""Checks that an unreadable query finds nothing, and that searches take a text for itself.

The right rows need not be known: what a text finds depends on the order of its letters, what a class of a regular
expression finds does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_words import rows_of, show

_RANKED = re.compile(
    r"best|top\b|nearest|closest|similar|fuzzy|relevan|recommend|suggest|semantic|random|sample|page", re.IGNORECASE
)
GARBAGE = ("zzz-wrong", "9999-99-99", "#")


def _lists(ctx: AuditContext) -> list[KnownCall]:
    """One call of each reading tool that gives rows, the longest."""
    known = sorted(ctx.discovery.reads(), key=lambda one: -len(rows_of(one.seen.value) or ()))
    best = {one.op.name: one for one in reversed(known) if rows_of(one.seen.value) and not one.writes}
    return list(best.values())[:40]


@relation
def of_another(records: Sequence[Record], evidence: Evidence) -> bool:
    """Good lists have only rows of what was asked for; the one for a value that is none has rows of another."""
    name, record = evidence.data, records[0]
    asked = {op.mark: op.value[name] for op in record.ops if op.mark}
    rows = {mark: _fields(record, mark, name) for mark in asked}
    right = all({*map(str, rows[mark])} == {str(asked[mark])} for mark in ("one", "other"))
    return right and bool(rows["call"]) and asked["call"] not in rows["call"]


def _fields(record: Record, mark: str, name: str) -> list[Any]:
    seen = record.at(mark)
    rows = [] if seen.is_error else rows_of(seen.value) or []
    return [row[name] for row in rows] if all(is_dict(row) and name in row for row in rows) else []


@check("x.unread_filters_find_nothing", "silent_default", needs=("tools", "call", "tasks"), value=96)
def unread(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a list for an unreadable value is an error or empty, not the list for another value."""
    found = [(known, *item) for known in _lists(ctx) for item in _equal(ctx, known).items()]
    if not found:
        raise NotChecked("no list is of one value of a field")
    for known, name, (first, second) in found:
        marked = (reset(known.task), *known.before, first.marked("one"), second.marked("other"))
        for value in GARBAGE:
            probe = Probe((*marked, call(known.op.name, {**first.value, name: value}, mark="call")))
            ctx.count_comparisons()
            record = ctx.play_probe(probe)
            if of_another([record], Evidence("", data=name)):
                yield show(
                    ctx, f"{known.op.name} shows the rows of another {name} when it cannot read the given one",
                    of_another, probe, marks=("one", "other", "call"), data=name, expected="an error, or no rows",
                    observed=sorted({str(item) for item in _fields(record, "call", name)})[:4],
                    teaches="that the shown rows match the query",
                )  # fmt: skip
                break


def _equal(ctx: AuditContext, known: KnownCall) -> dict[str, tuple[Op, Op]]:
    """Parameters of text by which rows are chosen, each with two calls that show it."""
    found: dict[str, tuple[Op, Op]] = {}
    tool, given = next(spec for spec in ctx.about.tools if spec.name == known.op.name), known.op.value
    rows = [row for row in rows_of(known.seen.value) or [] if is_dict(row) and not _RANKED.search(tool.description)]
    for name, value in given.items():
        if not isinstance(value, str) or not rows or any(row.get(name) != value for row in rows):
            continue
        known_to_work = [str(known_call.op.value.get(name)) for known_call in ctx.discovery.of(tool.name)]
        texts = dict.fromkeys([*known_to_work, *map(str, ctx.discovery.values.of(name))])
        for text in [candidate for candidate in texts if candidate != value][:6]:
            other_op = call(tool.name, {**given, name: text})
            record = ctx.play(reset(known.task), *known.before, other_op.marked("other"))
            there = _fields(record, "other", name)
            if there and all(item == text for item in there):
                found[name] = (call(tool.name, given), other_op)
                break
    return found


# --- texts that are searched for ---

_PATTERNS = re.compile(r"reg.?ex|regular|pattern|glob|wildcard|syntax|operator|grep|express|bracket", re.IGNORECASE)
_PLAIN = re.compile(r"contain|includ|substring|literal|verbatim|exact|character|phrase", re.IGNORECASE)


@relation
def is_class(records: Sequence[Record], _evidence: Evidence) -> bool:
    """In brackets a word finds more than without them, and the same backwards, though it then finds nothing without."""
    seen = [records[0].at(mark) for mark in ("word", "call", "turned", "bare")]
    word, many, turned, bare = ([] if one.is_error else rows_of(one.value) or [] for one in seen)
    return many == turned and len(many) > len(word) > 0 and not bare


@check("x.texts_are_no_patterns", "action_drift", needs=("tools", "call", "tasks"), value=40)
def patterns(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a search which promises no patterns finds the text that it is given."""
    good = [one for one in ctx.variations.all if one.kind == "good" and not one.changes and rows_of(one.seen.value)]
    good = [one for one in good if not _PATTERNS.search(str(one.tool))]
    for base, name, value in [(one, *item) for one in good for item in one.arguments.items()]:
        word = max(re.findall(r"[^\W\d_]{3,}", str(value)), key=len, default="")
        texts = {"word": word, "call": f"[{word}]", "turned": f"[{word[::-1]}]", "bare": word[::-1]}
        ops = [call(base.tool.name, base.arguments | {name: text}, mark=mark) for mark, text in texts.items()]
        probe = Probe((*base.base_state.head, *ops))
        ctx.count_comparisons()
        if word and isinstance(value, str) and is_class([ctx.play_probe(probe)], Evidence("")):
            yield show(
                ctx, f"{base.tool.name} takes the text in {name} for a regular expression", is_class, probe,
                marks=tuple(texts), severity="error" if _PLAIN.search(str(base.tool)) else "warning",
                expected=f"what has the text [{word}]", observed=f"what has one of the letters of {word}",
                teaches="a syntax that the described tool does not have",
            )  # fmt: skip
            return
