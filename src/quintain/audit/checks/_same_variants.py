"""Calls of reading tools that differ in one argument or in order, which a cache must not confuse."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.probe import Op, call

from ._same_scripts import SEARCHED, bare, seems_to_read
from ._same_splits import read

VARIANTS = 14
"""Ways in which a tool that reads is called."""
LONG = 200
"""Length of a text that shows that something was found."""
MAX_KNOWN_CALLS = 3
"""Calls of a tool that are known, which are varied around the first."""


class CallRow(list[Op]):
    """Calls of one tool in one task.

    Attributes:
        task: In which the first of them is known to work.
    """

    task: str = ""


def variants(ctx: AuditContext) -> list[CallRow]:
    """Reads by tool, which differ in their arguments: known ones, and those with one argument changed or left out."""
    rows: list[CallRow] = []
    for tool in ctx.about.tools:
        if not seems_to_read(ctx, tool.name):
            continue
        known = sorted(ctx.discovery.of(tool.name), key=lambda known_call: len(known_call.before))
        row = CallRow(itertools.islice(_variants(ctx, tool, known), VARIANTS))
        row.task = known[0].task if known else ctx.tasks[0]
        rows.append(row)
    return [row for row in rows if len(row) > 1]


def _variants(ctx: AuditContext, tool: ToolSpec, known: list[KnownCall]) -> Iterator[Op]:
    first = [bare(known_call.op) for known_call in known]
    broad = _broad(tool, known)
    base: dict[str, Any] = broad or (first[0].value if first else {})
    found = {_key(op.value): op for op in ([call(tool.name, broad)] if broad else first[:1])}
    # One other value of each parameter, then the next of each: a tool of many parameters is seen in all of them.
    columns = [list(_other_arguments(ctx, tool, name, base=base)) for name in tool.properties]
    rows = itertools.chain.from_iterable(itertools.zip_longest(*columns))
    # Another row of the table comes among them: what is kept under too little is kept for all of them.
    for arguments in (*_swapped(tool, base), *(op.value for op in first[not broad : MAX_KNOWN_CALLS]), *rows):
        if arguments is not None and all(need in arguments for need in tool.required):
            found.setdefault(_key(arguments), call(tool.name, arguments))
    yield from found.values()


def _broad(tool: ToolSpec, known: list[KnownCall]) -> dict[str, Any]:
    """Returns a broad search where the known one found nothing; empty for a tool without a search parameter.

    An empty result does not tell one choice from another.
    """
    words = [name for name in tool.properties if name.lower() in SEARCHED and "enum" not in tool.properties[name]]
    if not words or (known and _finds(read(known[0].seen.value))):
        return {}
    base: dict[str, Any] = known[0].op.value if known else {}
    return {name: value for name, value in base.items() if name in tool.required} | {words[0]: "a"}


def _finds(answer: Any) -> bool:
    """True if rows stand in an answer, or a long text."""
    if is_dict(answer):
        return any(map(_finds, answer.values()))
    return bool(answer) if is_list(answer) else isinstance(answer, str) and len(answer) > LONG


def _key(arguments: dict[str, Any]) -> str:
    return repr(sorted(arguments.items()))


def _other_arguments(ctx: AuditContext, tool: ToolSpec, name: str, *, base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    schema = tool.properties[name]
    for value in _values(ctx, name, schema, value=base.get(name)):
        if name not in base or value != base[name] or type(value) is not type(base[name]):
            yield {**base, name: value}
    if name in base:
        yield {key: item for key, item in base.items() if key != name}


def _values(ctx: AuditContext, name: str, schema: Any, *, value: Any) -> list[Any]:
    """Other values of an argument: of its enum, far and near in its range, or seen elsewhere under its name."""
    if not is_dict(schema):
        return []
    kind = schema.get("type")
    if schema.get("enum") or kind == "boolean":
        return list(schema.get("enum") or (True, False))[:4]
    if kind in ("integer", "number"):
        return [number for number in dict.fromkeys(_numbers(schema, value)) if fits(number, schema)][:4]
    return _texts(ctx, name, schema, value=value) if kind == "string" else []


def _texts(ctx: AuditContext, name: str, schema: Any, *, value: Any) -> list[Any]:
    seen = [candidate for candidate in ctx.discovery.values.of(name) if isinstance(candidate, str)]
    words = [word for text in ctx.discovery.values.strings() for word in text.split() if len(word) > 3]
    near = [value.upper(), value[: len(value) // 2], f"{value}0"] if isinstance(value, str) and value else []
    if name.lower() in SEARCHED:  # Parts of words find something.
        return [*near[:2], "a", "e", *words[:: max(1, len(words) // 3)][:3], *seen[:2]]
    return [text for text in dict.fromkeys((*seen[:3], *seen[-1:], *near[2:])) if fits(text, schema)]


def _numbers(schema: dict[str, Any], value: Any) -> Iterator[Any]:
    if is_number(value):
        yield from (value * 2, value // 2, value + 1)
    for bound in ("minimum", "maximum"):
        if is_number(schema.get(bound)):
            yield schema[bound]
    yield from (1, 2, 3, 0, 10)


def _swapped(tool: ToolSpec, base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Two arguments of one kind in each other's place."""
    for first, second in itertools.combinations([name for name in tool.properties if name in base], 2):
        if (
            base[first] != base[second]
            and fits(base[second], tool.properties[first])
            and fits(base[first], tool.properties[second])
        ):
            yield {**base, first: base[second], second: base[first]}
