"""Checks requests that are silently ignored: unknown tasks, misspelt and dead parameters, limits without effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import one as drawn
from quintain.audit.kernel.adapter import ToolSpec, plain
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, Record, ask, reset, same
from quintain.audit.kernel.registry import probe_function, relation

from ._silent_faults import sweep

HERE = f"{__name__}:"
NAMELESS = "a task that does not exist 7f3a"
DRAWS, CASES = 4, 40
"""Values of a parameter that are tried, and parameters."""


@probe_function
def begin_unknown(player: Player, on: str, _value: Any) -> dict[str, Any]:
    """Begin a task that does not exist, past the auditor's own check of names."""
    subject = player.adapter(on).subject
    try:
        return {"began": True, "first": plain(subject.reset(NAMELESS, 0))[0]}
    except Exception as error:  # noqa: BLE001 (that it raises is what is wanted)
        return {"began": False, "raised": f"{type(error).__name__}: {error}"}


@relation
def began(records: Sequence[Record], _evidence: Evidence) -> bool:
    """A task that does not exist began."""
    value = records[0].at("unknown").value
    return is_dict(value) and value.get("began") is True


@check("x.unknown_tasks", "silent_default", needs=("tasks",), value=72, severity="warning")
def unknown_tasks(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a task name that does not exist is refused."""
    if len(ctx.about.tasks) < 2 or ctx.about.kind in ("gymnasium", "scorer"):
        raise NotChecked("a subject of one task need not look at its name")
    probe = Probe((ask(f"{HERE}begin_unknown", mark="unknown"),))
    record = ctx.play_probe(probe)
    ctx.count_comparisons()
    if began([record], Evidence("")):
        yield ctx.finding(
            "reset begins a task that does not exist",
            probe,
            relation=f"{HERE}began",
            marks=("unknown",),
            at_most="likely",
            expected=f"an exception for the task {NAMELESS!r}",
            observed=record.at("unknown").value,
            teaches="some other task than the one that was asked for",
        )


@relation
def passes(records: Sequence[Record], evidence: Evidence) -> bool:
    """The call works with a misspelt parameter, as if it were not there."""
    right, wrong = records[0].at("right"), records[0].at("wrong")
    return not right.is_error and not wrong.is_error and same(right, wrong, evidence.volatile)


@check("x.unknown_parameters", "silent_default", needs=("tools", "call", "tasks"), value=26, severity="warning")
def misspelt(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a misspelt parameter is refused, not silently ignored."""
    found: list[tuple[str, Probe]] = []
    probes: list[tuple[str, Probe]] = []
    for tool in ctx.about.tools[:60]:
        known = next(iter(sorted(ctx.discovery.of(tool.name), key=lambda call: len(call.before))), None)
        if known is None or tool.parameters.get("additionalProperties"):
            continue
        optional = [name for name in tool.properties if name not in tool.required] or ["limit"]
        wrong = msgspec.structs.replace(
            known.op, value={**known.op.value, f"{optional[0]}x": "1"}, mark="wrong", on="b"
        )
        head = (reset(known.task), *known.before, known.op.marked("right"))
        probes.append((tool.name, Probe((*head, *(op.moved("b") for op in head[:-1]), wrong))))
    for (name, probe), record in zip(probes, ctx.play_all([probe for _, probe in probes]), strict=True):
        ctx.count_comparisons()
        if passes([record], Evidence("", volatile=ctx.volatile)):
            found.append((name, probe))
    if found:
        name, probe = found[0]
        yield ctx.finding(
            f"{name} leaves out a misspelt parameter and says nothing",
            probe,
            relation=f"{HERE}passes",
            marks=("right", "wrong"),
            minimise=0,
            at_most="likely",
            part="H",
            expected="an error that names the parameter",
            observed={"the same answer from": [name for name, _ in found]},
            teaches="that parameters need not be right",
        )


@check("x.dead_parameters", "silent_default", needs=("tools", "call", "tasks"), value=11, severity="note")
def effects(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each declared parameter has an effect on the answer or the world for some value."""
    found: list[str] = []
    cases = [(tool, name, known) for tool in ctx.about.tools[:40] for name, known in _variable(ctx, tool)]
    cases = sorted(cases, key=lambda case: len(case[2].before))[:CASES]
    probes = [_varied(ctx, known, tool, name=name) for tool, name, known in cases]
    for (tool, name, known), record in zip(cases, ctx.play_all(probes), strict=True):
        marks = ("call", "look") if known.writes else ("call",)
        ways = [[record.at(f"{mark} {place}") for mark in marks] for place in range(DRAWS + 1)]
        ctx.count_comparisons()
        drew = {repr(op.value.get(name)) for op in record.ops if op.do == "call" and op.mark}
        if len(drew) < 3 or any(seen.is_error for way in ways for seen in way):
            continue
        if all(same(seen, first) for way in ways[1:] for seen, first in zip(way, ways[0], strict=True)):
            found.append(f"{tool.name}: {name}")
    if found:
        yield ctx.finding(
            f"parameters that nothing depends on: {', '.join(found[:6])}",
            part="H",
            at_most="hint",
            expected="another answer or another world for some value",
            observed=found,
            teaches="to fill in parameters without effect",
        )


def _variable(ctx: AuditContext, tool: ToolSpec) -> Iterator[tuple[str, KnownCall]]:
    known = next(iter(sorted(ctx.discovery.of(tool.name), key=lambda call: len(call.before))), None)
    if known is None or (known.writes is not False and "state" not in ctx.offers):
        return
    yield from ((name, known) for name in tool.properties)


def _varied(ctx: AuditContext, known: KnownCall, tool: ToolSpec, *, name: str) -> Probe:
    schema = tool.properties[name]
    values = [drawn(schema, ctx.discovery.values, ctx.rng, name=name, root=tool.parameters) for _ in range(DRAWS)]
    ways: list[tuple[Op, ...]] = []
    for place, arguments in enumerate([known.op.value, *({**known.op.value, name: value} for value in values)]):
        op = msgspec.structs.replace(known.op, value=arguments, mark=f"call {place}")
        ways.append((op, *((Op("changes", mark=f"look {place}"),) if known.writes else ())))
    return sweep(ctx, (reset(known.task), *known.before), ways)


@relation
def unlimited(records: Sequence[Record], evidence: Evidence) -> bool:
    """A call beyond the budget that the subject declares works, and so do those within it."""
    calls = [seen for op, seen in zip(records[0].ops, records[0].seen, strict=False) if op.do == "call"]
    beyond = records[0].at("beyond")
    return len(calls) > int(evidence.data) and not any(seen.is_error for seen in calls) and beyond.fine


@check("x.budget_is_kept", "silent_default", needs=("tools", "call", "tasks"), value=65, severity="warning")
def limits(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the declared budget of calls ends the episode, or at least its tools."""
    budget = ctx.attribute("budget")
    if not isinstance(budget, int) or not 0 < budget <= 1000:
        raise NotChecked("no budget of calls is declared")
    known = next((call for call in ctx.discovery.reads() if not call.before), None)
    if known is None:
        raise NotChecked("no call is known that can be made again and again")
    calls = [known.op] * (budget + 2)
    probe = Probe((msgspec.structs.replace(reset(known.task), value=0), *calls, known.op.marked("beyond")))
    ctx.count_comparisons()
    if unlimited([ctx.play_probe(probe)], Evidence("", data=budget)):
        yield ctx.finding(
            f"{known.op.name} works beyond the declared budget of {budget} calls",
            probe,
            relation=f"{HERE}unlimited",
            marks=("beyond",),
            data=budget,
            minimise=0,
            at_most="likely",
            part="C",
            expected=f"no more than {budget} calls",
            observed=f"{budget + 3} calls",
            teaches="that there is always one more call",
        )
