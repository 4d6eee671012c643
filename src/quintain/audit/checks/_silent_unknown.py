"""Checks names of things that do not exist: a tool must report them, and change nothing in their place.

A parameter names the things whose names it was given when the call worked: values of a column in which each row has its
own. Free words are not names, and a search that finds nothing is an answer; so a list is only accused where another
tool refuses the same name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, parsed
from quintain.audit.facts.variations import Variation, changed
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Probe, Record
from quintain.audit.kernel.registry import relation

from ._drift_words import SAYS, text_of

HERE = f"{__name__}:"
MAX_FINDINGS = 6
"""Findings; more of them say nothing new."""
_CREATES = re.compile(
    r"\b(creat\w*|new|add\w*|writ\w*|regist\w*|open|start|insert\w*|put|set|save\w*|store|upload\w*)\b", re.IGNORECASE
)
"""Words of tools that make what was not there."""


def is_name(variation: Variation) -> bool:
    """True if the parameter names one thing of the world: a value of a column without duplicates."""
    value = variation.good.get(variation.name)
    if not isinstance(value, str) or not value or " " in value.strip():
        return False
    if re.search(r"(^|_)(id|key|code|number|no|sku|path|ref|uuid|slug)$", variation.name):
        return True
    return any(
        value in values and _is_key(variation, column) for column, values in variation.base_state.columns.items()
    )


def _is_key(variation: Variation, column: str) -> bool:
    table, _, field = column.partition("/")
    if field in ("#", "id"):
        return True
    world = variation.base_state.world
    rows: Any = world.get(table) if is_dict(world) else None
    count = len(rows) if is_list(rows) or is_dict(rows) else 0
    return (
        count >= 3
        and len(variation.base_state.columns[column]) == count
        and variation.name in (field, f"{table}_{field}")
    )


def mentions(value: Any, text: str) -> bool:
    """True if a value mentions a text, in any case; 07 as text may be taken as 7."""
    said_text = json.dumps(value, ensure_ascii=False, default=str).casefold()
    if text.isdigit():
        text = text.lstrip("0") or "0"
    return json.dumps(text, ensure_ascii=False)[1:-1].strip().casefold() in said_text


# --- relations: the records are those of the unknown name, of the good one, and, for lists, of a tool that refuses ---


@relation
def answered(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The unknown name is answered like the good one: no error, no word of doubt, the same form."""
    got, good = records[0].at("call"), records[1].at("call")
    if got.is_error or good.is_error or (not records[2:] and empty(got.value)):
        return False
    if records[2:] and not records[2].at("call").is_error:
        return False
    words = {found.group().lower() for found in SAYS.finditer(text_of(got))}
    if words - {found.group().lower() for found in SAYS.finditer(text_of(good))} or negative(got.value, good.value):
        return False
    return bool(records[2:]) or (_keys(got.value) == _keys(good.value) and not _listing(good.value))


def negative(got: Any, good: Any) -> bool:
    """True if a flag reports absence: `{"found": false}` against true."""
    got, good = parsed(got), parsed(good)
    if not (is_dict(got) and is_dict(good)):
        return False
    return any(value is False and good.get(key) is True for key, value in got.items())


def empty(value: Any) -> bool:
    """Nothing at all: null, an empty list or dict, or a dict of only nulls and empty lists."""
    value = parsed(value)
    if is_dict(value):
        return all(item is None or item in ([], {}) for item in value.values())
    return value is None or value == []


def _listing(value: Any) -> bool:
    value = parsed(value)
    return is_list(value) or (is_dict(value) and any(is_list(item) for item in value.values()) and len(value) <= 3)


def _keys(value: Any) -> Any:
    value = parsed(value)
    return sorted(value) if is_dict(value) else type(value).__name__


@relation
def done_elsewhere(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the call reports success and its changes do not mention the given name."""
    got, good = records[0].at("call"), records[1].at("call")
    if got.is_error or good.is_error or (SAYS.search(text_of(got)) and not SAYS.search(text_of(good))):
        return False
    made, right = (changed(record.at("was").value, record.at("look").value) for record in records[:2])
    if made is None or not right:
        return False
    is_told = mentions(right, evidence.data["good"])
    return is_told and not mentions(made, evidence.data["unknown"]) and not negative(got.value, good.value)


@relation
def dangles(records: Sequence[Record], evidence: Evidence) -> bool:
    """The call changes the world for a name that another call refuses, without making a thing of that name."""
    got, good, refused = (record.at("call") for record in records)
    made = changed(records[0].at("was").value, records[0].at("look").value)
    if got.is_error or good.is_error or not refused.is_error or not made:
        return False
    return not makes(made, evidence.data["unknown"])


def makes(made: dict[str, list[Any]], name: str) -> bool:
    """True if a change is a new row of this name."""
    for path, (before, after) in made.items():
        is_named = name in path.split("/") or path.endswith(f"/{name}")  # The name may be a path itself.
        if before is None and (is_named or (is_dict(after) and name in list(after.values())[:2])):
            return True
        if is_list(before) and is_list(after) and name in after:
            return True
    return False


# --- the check ---


@check("x.unknown_names", "silent_default", needs=("tools", "call", "tasks"), value=47)
def unknown_names(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a call about a thing that does not exist reports so."""
    tried = [candidate for candidate in ctx.variations.all if candidate.kind == "unknown"]
    if not tried:
        raise NotChecked("no tool takes a name")
    reported: set[tuple[str, str]] = set()
    for variation in tried:
        ctx.count_comparisons()
        if not variation.works or (variation.tool.name, variation.name) in reported or len(reported) >= MAX_FINDINGS:
            continue
        good = next(
            candidate
            for candidate in ctx.variations.of(variation.tool.name)
            if candidate.kind == "good" and candidate.good == variation.good
        )
        sibling = _refuses(ctx, variation)
        found = _accused(ctx, variation, good, sibling=sibling)
        if found is not None:
            reported.add((variation.tool.name, variation.name))
            yield found


def _refuses(ctx: AuditContext, variation: Variation) -> Variation | None:
    """Returns a tool that refuses such a name in the same parameter and accepts the good one's kind."""
    if not is_name(variation) and not _informs(ctx, variation):
        return None
    own_values = {
        column for column, values in variation.base_state.columns.items() if variation.good[variation.name] in values
    }
    for candidate in ctx.variations.all:
        if candidate.kind != "unknown" or candidate.works or candidate.tool.name == variation.tool.name:
            continue
        if candidate.name != variation.name or candidate.name not in candidate.tool.required:
            continue
        other_values = {
            column
            for column, values in candidate.base_state.columns.items()
            if candidate.good[candidate.name] in values
        }
        about = candidate.op.value[candidate.name] in text_of(candidate.seen)
        if about and (own_values & other_values or not (own_values or other_values)):
            return candidate
    return None


def _informs(ctx: AuditContext, variation: Variation) -> bool:
    """True if a parameter is looked up: known words get answers of their own, unknown words share one."""
    known: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for candidate in ctx.variations.of(variation.tool.name):
        word = candidate.arguments.get(variation.name)
        if not candidate.works or candidate.name not in ("", variation.name) or not isinstance(word, str):
            continue
        if candidate.kind == "unknown" or re.fullmatch(r"[\w.-]+", word):
            (unknown if candidate.kind == "unknown" else known)[word] = text_of(candidate.seen).replace(word, "?")
    own = len(known) > 1 and len(set(known.values())) == len(known)
    return own and len(unknown) > 1 and len(set(unknown.values())) == 1


def _accused(ctx: AuditContext, variation: Variation, good: Variation, *, sibling: Variation | None) -> Finding | None:
    looks = variation.changes is not None
    unknown = str(variation.arguments[variation.name])
    pair = (variation.probe(looks=looks), good.probe(looks=looks))
    known = str(variation.good.get(variation.name) or "")
    data = {"unknown": unknown, "good": known}
    third = Probe((*sibling.base_state.head, sibling.op.marked("call"))) if sibling is not None else None
    if good.changes:
        return _misdone(ctx, variation, pair, third=third, data=data)
    title = f"{variation.tool.name} answers for a {variation.name} that does not exist as if it did"
    if variation.name not in variation.tool.required or (not looks and _makes_things(variation)):
        return None
    if is_name(variation) and answered([_record(variation), _record(good)], Evidence("", data=data)):
        return _finding(ctx, variation, title, *pair, relation="answered", data=data)
    if third and not _searches(variation) and answered(ctx.play_all([*pair, third]), Evidence("", data=data)):
        return _finding(ctx, variation, title, *pair, third, relation="answered", data=data)
    return None


def _misdone(
    ctx: AuditContext, variation: Variation, pair: tuple[Probe, Probe], *, third: Probe | None, data: dict[str, str]
) -> Finding | None:
    """A call that says that it is done for something that does not exist."""
    title = f"{variation.tool.name} takes a {variation.name} that does not exist, and says that it is done"
    if _always_told(ctx, variation) and done_elsewhere(ctx.play_all(pair), Evidence("", data=data)):
        return _finding(ctx, variation, title, *pair, relation="done_elsewhere", data=data)
    if (
        third is None
        or variation.name not in variation.tool.required
        or makes(variation.changes or {}, data["unknown"])
    ):
        return None
    if dangles(ctx.play_all([*pair, third]), Evidence("", data=data)):
        return _finding(ctx, variation, title, *pair, third, relation="dangles", data=data)
    return None


def _makes_things(variation: Variation) -> bool:
    return bool(_CREATES.search(f"{variation.tool.name.replace('_', ' ')}. {variation.tool.description}"))


def _searches(variation: Variation) -> bool:
    return bool(
        re.search(
            r"search|find|filter|quer|match", f"{variation.tool.name} {variation.tool.description}", re.IGNORECASE
        )
    )


def _record(variation: Variation) -> Record:
    return Record((variation.op.marked("call"),), (variation.seen,))


def _always_told(ctx: AuditContext, variation: Variation) -> bool:
    """True if every change by this tool mentions the argument, where the named thing exists."""
    there = variation.base_state.texts
    works = [
        candidate
        for candidate in ctx.variations.of(variation.tool.name)
        if candidate.works
        and candidate.kind in ("good", "legal")
        and candidate.changes
        and candidate.name in ("", variation.name)
    ]
    values = [candidate.arguments.get(variation.name) for candidate in works]
    stated = [
        mentions(candidate.changes, value)
        for candidate, value in zip(works, values, strict=True)
        if isinstance(value, str) and (value in there or candidate.kind == "good") and len(value.strip()) > 1
    ]
    return bool(stated) and all(stated)


def _finding(
    ctx: AuditContext, variation: Variation, title: str, *probes: Probe, relation: str, data: Any
) -> Finding | None:
    return ctx.finding(
        title,
        *probes,
        relation=f"{HERE}{relation}",
        marks=("call",),
        data=data,
        minimise=0,
        expected=f"an error that names {variation.arguments[variation.name]!r}",
        observed={"answer": variation.seen.value, "changes": list((variation.changes or {}).items())[:4]},
        teaches="that a wrong name still gives data",
    )
