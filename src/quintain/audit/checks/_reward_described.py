"""Checks described effects that never come: the ticket is closed, and its comments stay.

Three kinds of promises are read: that something is done to all rows of a table ("move all comments of a ticket"), that
a field goes up or down ("reduces the stock"), and that money moves ("give the money back"). Each is held against what
calls that worked have changed; what says that it is done (a status, a note) does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, reset, state
from quintain.audit.kernel.registry import relation

from ._reward_acts import differences, is_bookkeeping, names, scalars

CALLS = 4
"""Calls of a tool that are looked at."""
_HERE = f"{__name__}:"
_EACH = (
    r"\b(mov|transfer|reassign|delet|remov|cancel|clos|releas|free|restor|reopen|unassign|copi|copy|clear|archiv|purg"
    r"|detach|expir|revok|void|drop|unlock|unlink|reset)(?:e|es|s|ing|ies|ing|els|ls)?"
    r"\s+(?:all|every|each|both|its|their)\s+(?:of\s+)?(?:the\s+|its\s+)?(?:\w+\s+)?"
)
_BETWEEN = r"(?:(?!\b(?:about|for|regarding|concerning|when|if|with|by|over|card|note)\b)[^.;:]){0,30}\b"
"""Text that may stand before a field: "an alert when the stock is low" and "the balance by the price" change neither.
"""
_RISES = rf"\b(?:increas|decreas|reduc|lower|rais|replenish|restock|increment|decrement)\w*{_BETWEEN}"
_TAKEN = rf"\b(?:deduct|subtract|credit|debit)\w*{_BETWEEN}"
_MOVED = r"(?!\s+(?:\w+\s+){0,4}(?:from|to|into|onto|against)\b)"
"""A sum taken from something else stays what it is."""
_MONEY = re.compile(
    r"\b(?:giv|pa(?:y|i)|mov|transfer|refund|return|reimburs|credit|debit|charg|withdraw|deposit)\w*"
    r"[^.;:]{0,25}\b(?:money|funds|cash)\b",
    re.IGNORECASE,
)
_OUTSIDE = re.compile(
    r"\b(cards?|cheques?|checks?|invoices?|vouchers?|original|provider|outside|external)\b", re.IGNORECASE
)
"""Sources and targets of money outside the world."""
_PURSES = re.compile(r"(^|_)(balance|funds|cash|wallet|purse|money|credit)(_|$)", re.IGNORECASE)
_LATER = re.compile(
    r"\b(not|never|without|later|pending|requests?|asks?|queues?|queued|schedul\w*|propos\w*|quotes?|plans?|drafts?"
    r"|previews?|simulat\w*|approv\w*|asynchron\w*|eventually|will be|dry.run|may)\b",
    re.IGNORECASE,
)
"""Words of descriptions that promise nothing, or nothing at once."""


_OVER = names(
    "done closed ended expired cancelled canceled released finished complete completed fulfilled inactive archived "
    "delivered returned void voided past settled resolved used gone"
)


class Promise(msgspec.Struct, frozen=True):
    """An effect of a call promised by its description.

    Attributes:
        kind: "rows" of `table`, all those that belong to the named thing, change; a "field" of this name changes;
            "money" does.
        said: The words.
        verb: The stem of the verb applied to the rows.
    """

    kind: str
    said: str
    table: str = ""
    field: str = ""
    verb: str = ""


@check("x.described_effect", "false_resolution", needs=("state", "tasks", "tools"), value=86, reads_prose=True)
def described_effect(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that successful calls have the described effect on records, fields or money."""
    for tool in ctx.about.tools:
        known = [call for call in ctx.discovery.of(tool.name) if call.writes]
        known = list({f"{call.task} {call.op.value}": call for call in known}.values())[:CALLS]
        if not known:
            continue
        world = next(iter(ctx.discovery.states.values()), None)
        promises = list(_promises(tool, world))
        if not promises:
            continue
        probes = [_looked_at(call.task, call.before, call.op) for call in known]
        records = ctx.play_all(probes)
        for promise in promises:
            ctx.count_comparisons()
            claims = [(probe, _broken(record, promise)) for probe, record in zip(probes, records, strict=True)]
            broken = [probe for probe, how in claims if how is True]
            if broken and not any(how is False for _, how in claims):
                yield _unkept(ctx, tool, promise, broken=broken)


def _looked_at(task: str, before: Sequence[Op], op: Op) -> Probe:
    return Probe((reset(task), *before, state(mark="before"), op.marked("call"), state(mark="after")))


def _unkept(ctx: AuditContext, tool: ToolSpec, promise: Promise, *, broken: Sequence[Probe]) -> Finding | None:
    several = len(broken) > 1
    return ctx.finding(
        f"{tool.name} works and does not do what its description says: {promise.said}",
        *broken[:2],
        relation=f"{_HERE}breaks_promise",
        marks=("before", "call", "after"),
        data=msgspec.to_builtins(promise),
        minimise=0,
        part="S",
        severity="error" if several else "warning",
        at_most="proven" if several else "likely",
        expected=tool.description[:300],
        observed={"rows": f"none of {promise.table} is another one", "field": f"{promise.field} stays as it was"}.get(
            promise.kind, "no number in the world is another one"
        ),
        teaches="that a record's status is enough",
    )


@relation
def breaks_promise(records: Sequence[Record], evidence: Evidence) -> bool:
    """Each call worked, changed something, and left as it was what the description says that it changes."""
    promise = msgspec.convert(evidence.data, Promise)
    return all(_broken(record, promise) is True for record in records)


# --- what is promised ---


def _promises(tool: ToolSpec, world: Any) -> Iterator[Promise]:
    """Promises of a description about what the world holds."""
    text = tool.description
    if _LATER.search(text):
        return
    tables = _tables(world)
    for table in tables:
        found = re.search(f"{_EACH}{_plural(table)}\\b", text, re.IGNORECASE)
        if found:
            yield Promise("rows", found[0], table=table, verb=found[1].lower())
    numeric = {key for rows in tables.values() for row in rows.values() for key, cell in row.items() if is_number(cell)}
    for field in sorted(numeric):
        words = re.escape(field.replace("_", " "))
        said = rf"{_RISES}{words}\b|{_TAKEN}{words}\b{_MOVED}"
        found = re.search(said, text, re.IGNORECASE) if len(field) > 3 else None
        if found:
            yield Promise("field", found[0], field=field)
    money = None if _OUTSIDE.search(text) else _MONEY.search(text)
    if money and any(_PURSES.search(field) for field in numeric):
        yield Promise("money", money[0])


def _plural(table: str) -> str:
    """A table's name as it is said of several rows."""
    word = table.lower().replace("_", " ")
    return re.escape(word) if word.endswith("s") else f"{re.escape(word)}s"


def _tables(world: Any) -> dict[str, dict[str, dict[str, Any]]]:
    """Tables of a state, their rows by id or place."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, table in world.items() if is_dict(world) else ():
        pairs = enumerate(table) if is_list(table) else table.items() if is_dict(table) else ()
        rows = {str(row.get("id", key)): row for key, row in pairs if is_dict(row)}
        if rows:
            found[str(name)] = rows
    return found


# --- what came of it ---


def _broken(record: Record, promise: Promise) -> bool | None:
    """True if a call that worked broke its promise; None if this call does not decide it."""
    before, after = record.at("before"), record.at("after")
    op = next(step for step in record.ops if step.mark == "call")
    if record.at("call").is_error or not (before.fine and after.fine):
        return None
    changed = {path: pair for path, pair in differences(before.value, after.value).items() if not is_bookkeeping(path)}
    reported = {str(value) for value in scalars(op.value) if len(str(value)) > 1}
    if not changed:
        return None
    if promise.kind == "rows":
        return _rows_stay(before.value, [path[0] for path in changed], promise, reported=reported)
    near = _near(before.value, reported | {step for path in changed for step in path[1:2]})
    if not any(_is_meant(field, promise) and is_number(value) for row in near for field, value in row.items()):
        return None
    if promise.kind == "field":
        return not any(promise.field in path or _made(new, promise.field) for path, (_, new) in changed.items())
    return not any(_has_number(old) or _has_number(new) for old, new in changed.values())


def _is_meant(field: str, promise: Promise) -> bool:
    return field == promise.field if promise.kind == "field" else bool(_PURSES.search(field))


def _rows_stay(world: Any, touched: Sequence[str], promise: Promise, *, reported: set[str]) -> bool | None:
    """True if no row changed although some could for each named thing; None if that is unknown."""
    rows = _tables(world).get(promise.table, {})
    named = {text for text in reported if any(text in table for table in _tables(world).values())}
    own_fields = {name: [row for key, row in rows.items() if key != name and _speaks(row, name)] for name in named}
    done = [row for some in own_fields.values() for row in some if _is_done(row, promise.verb)]
    if not named or not all(own_fields.values()) or done:
        return None
    return promise.table not in touched


def _speaks(row: dict[str, Any], name: str) -> bool:
    return any(str(value) == name for key, value in row.items() if key != "id")


def _is_done(row: dict[str, Any], verb: str) -> bool:
    """True if a row shows that the action was already done, or that it is over."""
    said = [value.lower() for value in row.values() if isinstance(value, str)]
    return any(value.startswith(verb[:4]) or value in _OVER for value in said)


def _near(world: Any, keys: set[str]) -> list[dict[str, Any]]:
    """Rows that are named, and those that these name."""
    tables = list(_tables(world).values())
    first = [row for rows in tables for key, row in rows.items() if key in keys]
    further = {str(value) for row in first for value in row.values() if isinstance(value, str | int)}
    return [row for rows in tables for key, row in rows.items() if key in keys | further]


def _made(value: Any, field: str) -> bool:
    return is_dict(value) and field in value


def _has_number(value: Any) -> bool:
    return any(is_number(scalar) for scalar in scalars(value)) if is_dict(value) or is_list(value) else is_number(value)
