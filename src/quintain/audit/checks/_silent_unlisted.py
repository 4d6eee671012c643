"""Checks names in no list: a tool that shows one of several named things has no answer for another name.

What the names are says the subject itself: an enum of the schema, or the answer of a tool that lists them. Two names
that are in no list and get one and the same answer, of the form of a right one and like that of no thing that there
is, got a default. No state is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list, is_number, parsed
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import OpResult, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_words import SAYS, text_of
from ._silent_unknown import empty, negative

HERE = f"{__name__}:"
NAMES = 12
"""Listed names that are asked for."""
LEAST = 3
"""Answers of listed names that must differ, so that the answer is known to be about the name."""
TOOLS = 12
STRANGERS = ("Qazwell", "Vexholm 7")
"""Names that stand in no list."""
_NAMES = re.compile(r"(^|_)(name|id|key|code|number|no|sku|path|ref|slug|symbol|title)$", re.IGNORECASE)
_COUNTS = re.compile(r"count|total|found|hits|results|match|score|balance|sum$|number_of", re.IGNORECASE)
_SEARCHES = re.compile(r"search|find|filter|quer|match|count|check|exists|classif|has_|is_|translat", re.IGNORECASE)


class NamedThing(msgspec.Struct, frozen=True):
    """A parameter of a tool that names a thing, a call that works, and the names that there are."""

    tool: ToolSpec
    known: KnownCall
    name: str
    listed: tuple[str, ...]
    is_enum: bool


def _cells(ctx: AuditContext) -> Iterator[NamedThing]:
    lists = _lists(ctx)
    for tool in ctx.about.tools:
        known = next((known_call for known_call in ctx.discovery.of(tool.name) if not known_call.writes), None)
        if known is None or _SEARCHES.search(tool.name):
            continue
        for name, schema in tool.properties.items():
            kind: Any = schema.get("type", "string") if is_dict(schema) else None
            if kind != "string" or name not in tool.required or not isinstance(known.op.value.get(name), str):
                continue
            enum = [option for option in schema.get("enum") or () if isinstance(option, str)]
            if len(enum) >= LEAST:
                yield NamedThing(tool, known, name, tuple(enum[:NAMES]), is_enum=True)
            elif not schema.get("enum") and _NAMES.search(name):
                for names in [names for of, names in lists.items() if of != tool.name][:2]:
                    yield NamedThing(tool, known, name, tuple(names[:NAMES]), is_enum=False)


def _lists(ctx: AuditContext) -> dict[str, list[str]]:
    """By tool the names that it lists when it is asked for nothing in particular."""
    found: dict[str, list[str]] = {}
    for known_call in ctx.discovery.calls:
        if not known_call.op.value and not known_call.writes and known_call.op.name not in found:
            names = names_in(parsed(known_call.seen.value))
            if len(names) >= LEAST:
                found[known_call.op.name] = names
    return found


def names_in(value: Any) -> list[str]:
    """The texts of a list, the keys of a dict of dicts, or the first short text of each row."""
    if is_dict(value):
        if value and all(map(is_dict, value.values())):
            return [str(text) for text in value]
        none: list[str] = []
        return next((names for item in value.values() if len(names := names_in(item)) >= LEAST), none)
    rows: list[Any] = value if is_list(value) else []
    first = [
        next((cell for cell in row.values() if isinstance(cell, str)), "") if is_dict(row) else row for row in rows
    ]
    texts = [item for item in first if isinstance(item, str) and 0 < len(item) <= 60]
    return list(dict.fromkeys(texts)) if len(texts) == len(rows) else []


# --- the relation: the records are those of two strangers, then those of listed names ---


@relation
def made_up(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if two unlisted names get like answers in the form of a right one, unlike any listed name's."""
    name = evidence.data["name"]
    seen = [record.at("call") for record in records]
    asked = [next(str(op.value[name]) for op in record.ops if op.mark == "call") for record in records]
    if any(result.is_error for result in seen):
        return False
    strangers, listed = seen[:2], seen[2:]
    plain = [bare(result.value, word) for result, word in zip(seen, asked, strict=True)]
    if plain[0] != plain[1] or plain[0] in plain[2:] or len({*plain[2:]}) < LEAST:
        return False
    if any(form(strangers[0], asked[0]) != form(result, word) for result, word in zip(listed, asked[2:], strict=True)):
        return False
    words = {found.group().lower() for found in SAYS.finditer(text_of(strangers[0]))}
    if words - {found.group().lower() for result in listed for found in SAYS.finditer(text_of(result))}:
        return False
    values = [parsed(result.value) for result in seen]
    if empty(values[0]) or any(negative(values[0], value) or _lacks(values[0], value) for value in values[2:]):
        return False
    return evidence.data["is_enum"] or _is_nothing(values[0], asked[0])


def bare(value: Any, word: str) -> str:
    """An answer without the name that it was asked for."""
    text = json.dumps(parsed(value), ensure_ascii=False, sort_keys=True, default=str)
    return re.sub(re.escape(json.dumps(word, ensure_ascii=False)[1:-1]), "\0", text, flags=re.IGNORECASE)


def form(seen: OpResult, word: str) -> Any:
    """Returns the common form of answers of one kind: their keys, or their words without numbers."""
    value = parsed(seen.value)
    if is_dict(value):
        return sorted(value)
    if isinstance(value, str):
        return re.sub(r"[-\d.,]+", "0", bare(value, word))
    return "number" if is_number(value) else type(value).__name__


def _lacks(got: Any, good: Any) -> bool:
    """True if a field is null or an empty list where a listed name has content."""
    if not (is_dict(got) and is_dict(good)):
        return False
    return any(got.get(key) in (None, [], {}) and good.get(key) not in (None, [], {}) for key in good)


def _is_nothing(value: Any, word: str) -> bool:
    """True if an answer is only zeros and empty texts, and not the result of a count."""
    if is_dict(value):
        kept = {key: item for key, item in value.items() if str(item).casefold() != word.casefold()}
        numbers = [key for key, item in kept.items() if is_number(item)]
        plain = all(item in (0, "", False) for item in kept.values() if not is_list(item) and not is_dict(item))
        return bool(numbers) and plain and not any(_COUNTS.search(key) for key in kept)
    stated = re.findall(r"\d[\d.,]*", value.replace(word, "")) if isinstance(value, str) else []
    return bool(stated) and not any(re.search(r"[1-9]", item) for item in stated) and not _COUNTS.search(str(value))


# --- the check ---


@check("x.unlisted_names", "silent_default", needs=("tools", "call", "tasks"), value=90)
def unlisted_names(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a call about an unlisted name reports so."""
    found = list(_cells(ctx))[:TOOLS]
    if not found:
        raise NotChecked("no tool takes a name of which a list is known")
    reported: set[tuple[str, str]] = set()
    for cell in found:
        ctx.count_comparisons()
        probes = [] if (cell.tool.name, cell.name) in reported else _asked(ctx, cell)
        data = {"name": cell.name, "is_enum": cell.is_enum}
        records = ctx.play_all(probes)
        if not probes or not made_up(records, Evidence("", data=data)):
            continue
        reported.add((cell.tool.name, cell.name))
        yield ctx.finding(
            f"{cell.tool.name} answers for a {cell.name} that is in no list with a default",
            *probes,
            relation=f"{HERE}made_up",
            marks=("call",),
            data=data,
            minimise=0,
            expected=f"an error: {cell.name} is one of {list(cell.listed[:4])}",
            observed=records[0].at("call").value,
            teaches="that a wrong name still gives data",
        )


def _asked(ctx: AuditContext, cell: NamedThing) -> list[Probe]:
    """Calls for two strangers and for some listed names with unlike answers; none where a stranger is refused.

    All are tried in one probe, each on an instance of its own.
    """
    asks = [*STRANGERS, *cell.listed]
    head = (reset(cell.known.task), *cell.known.before)
    calls = {word: call(cell.tool.name, {**cell.known.op.value, cell.name: word}, mark="call") for word in asks}
    sweep = ctx.play(
        *(
            op.moved(f"s{place}")
            for place, word in enumerate(asks)
            for op in (*head, calls[word].marked(f"call {place}"))
        )
    )
    seen = {word: sweep.at(f"call {place}") for place, word in enumerate(asks)}
    if any(seen[word].is_error for word in STRANGERS):
        return []
    unlike: dict[str, str] = {}
    for word in cell.listed:
        if not seen[word].is_error:
            unlike.setdefault(bare(seen[word].value, word), word)
    chosen = [*STRANGERS, *list(unlike.values())[: LEAST + 1]] if len(unlike) >= LEAST else []
    return [Probe((*head, calls[word])) for word in chosen]
