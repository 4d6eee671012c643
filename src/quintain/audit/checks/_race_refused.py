"""Checks for half-done calls: a call that fits its schema is refused after it has already written.

Rows in the wrong state, amounts that exceed a balance, repetitions, two names for one thing: an environment detects
such cases late, between two writes. So good calls are changed in one argument, to values that the world itself holds
and to bounds, and made a second time and after each other; a refused call must have changed nothing.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import changes, is_dict, is_number
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, ask, call, reset
from quintain.audit.kernel.registry import probe_function

from ._race_fuzz import OddCalls, quiet, written, wrote
from ._same_scripts import bare
from ._same_walks import form, scalars

HERE = f"{__name__}:"
TRIED, PLACES, MOST = 200, 20, 3
"""Calls in all; starting points; findings."""
MAX_OTHER_VALUES = 7
"""Other values of one argument."""


class Start(msgspec.Struct, frozen=True):
    """A start for calls tried one after another; each accepted call is undone by a new start."""

    known: KnownCall
    before: tuple[Op, ...]
    ops: tuple[Op, ...]


def starts(ctx: AuditContext) -> list[Start]:
    """Good calls of each tool that writes: changed, made again, and followed by those of the others."""
    tools = {tool.name: tool for tool in ctx.about.tools}
    known: list[KnownCall] = []
    for name in ctx.discovery.writers:
        of_tool = [known_call for known_call in ctx.discovery.of(name) if known_call.writes]
        known += list({known_call.task: known_call for known_call in of_tool}.values())[:2] if name in tools else []
    rows: list[list[Start]] = []
    for known_call in known:
        before = tuple(map(bare, known_call.before))
        again = (*before, bare(known_call.op))
        other_ops = [
            bare(other_call.op)
            for other_call in known
            if other_call.task == known_call.task and other_call.op.name != known_call.op.name
        ]
        changed = [call(known_call.op.name, given) for given in _changed(ctx, tools[known_call.op.name], known_call)]
        rows.append(
            [Start(known_call, before, tuple(changed)), Start(known_call, again, (bare(known_call.op), *other_ops[:6]))]
        )
    return [start for start in itertools.chain.from_iterable(rows) if start.ops][:PLACES]


def _changed(ctx: AuditContext, tool: ToolSpec, known_call: KnownCall) -> Iterator[dict[str, Any]]:
    """The arguments with another value in one place, as the schema allows."""
    good: dict[str, Any] = known_call.op.value
    columns: list[list[dict[str, Any]]] = []
    for name, schema in tool.properties.items():
        if not is_dict(schema):
            continue
        values = [value for value in _values(ctx, name, good, schema=schema) if fits(value, schema, tool.parameters)]
        columns.append([{**good, name: value} for value in values if value != good.get(name)])
    rows = itertools.chain.from_iterable(itertools.zip_longest(*columns))
    yield from (given for given in rows if given is not None)


def _values(ctx: AuditContext, name: str, good: dict[str, Any], *, schema: dict[str, Any]) -> list[Any]:
    value = good.get(name)
    if schema.get("enum"):
        return list(schema["enum"])
    if is_number(value) or schema.get("type") in ("integer", "number"):
        base = value if is_number(value) else 1
        near: tuple[Any, ...] = (schema.get("maximum"), 10**6, base * 50, schema.get("minimum"), base + 1, 0)
        return [item for item in near if item is not None]
    if not isinstance(value, str):
        return []
    own_values = [field_value for field, field_value in good.items() if field != name and isinstance(field_value, str)]
    like = ctx.once(("scalars by form",), _forms).get(form(value), [])
    seen = [candidate for candidate in ctx.discovery.values.of(name) if isinstance(candidate, str)]
    step = max(1, len(like) // MAX_OTHER_VALUES)
    return list(dict.fromkeys((*own_values, *seen[:3], *like[::step][:MAX_OTHER_VALUES], "", value + "0")))


def _forms(ctx: AuditContext) -> dict[str, list[Any]]:
    """All scalars of the worlds that were seen, by their form."""
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for world in ctx.discovery.states.values():
        for scalar in scalars(world):
            found[form(scalar)].append(scalar)
    return found


# --- inside the subject's process ---


@probe_function
def tried(player: Player, on: str, value: Any) -> list[int]:
    """Places of calls that were refused and changed the world.

    Args:
        player: Makes the sessions.
        on: The session.
        value: {"task", "before": ops, "ops", "background": names in the state that do not count}.
    """
    first = [reset(value["task"], on=on), *(msgspec.convert(op, Op).moved(on) for op in value["before"])]
    found: list[int] = []
    world: Any = None
    for place, op in enumerate(msgspec.convert(value["ops"], list[Op])):
        if world is None:
            for step in first:
                player.do(step)
            world = player.do(Op("state", on)).value
        seen = player.do(op.moved(on))
        if not seen.is_error or seen.how not in ("", "refused"):
            world = None
            continue
        after = player.do(Op("state", on)).value
        if written({}, changes(world, after), value["background"]):
            found.append(place)
        world = after
    return found


@check("x.refused_halfway", "races", needs=("tools", "call", "state", "tasks"), value=27)
def refused_halfway(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a call refused for its content has not been carried out in part."""
    there = starts(ctx)
    if not there:
        raise NotChecked("no tool is known to write")
    each = max(4, TRIED // len(there))
    there = [msgspec.structs.replace(start, ops=start.ops[:each]) for start in there]
    background = quiet(ctx)
    records = ctx.play_all([_probe(start, background) for start in there])
    reported: set[str] = set()
    for start, record in zip(there, records, strict=True):
        ctx.count_comparisons(len(start.ops))
        tool = next(tool for tool in ctx.about.tools if tool.name == start.known.op.name)
        places: list[int] = record.at("tried").value or []
        for op in (start.ops[place] for place in places):
            if op.name in reported or len(reported) >= MOST:
                continue
            reported.add(op.name)
            spec = next((tool for tool in ctx.about.tools if tool.name == op.name), tool)
            known = msgspec.structs.replace(start.known, before=start.before)
            yield wrote(ctx, OddCalls(spec, known, start.known.task, ()), op, background=background, earlier=())


def _probe(start: Start, background: Sequence[str]) -> Probe:
    asked = {
        "task": start.known.task,
        "before": msgspec.to_builtins(start.before),
        "ops": msgspec.to_builtins(start.ops),
        "background": list(background),
    }
    return Probe((reset(start.known.task, on="warm"), ask(f"{HERE}tried", asked, mark="tried")))
