"""Checks paid calls that report success without the effect that they have with other values.

A tool that moves a sum shows elsewhere by how much, for every sum; a tool that sets a field shows the value, for every
value. Where it answers the solution's value just the same, and nothing has moved, the work is not done.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_number, parsed
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, number, reset, score
from quintain.audit.kernel.registry import relation

from ._reward_acts import Path, at, is_bookkeeping, is_id, names, writes_by_name
from ._reward_runs import Solution, paid
from ._reward_sight import looks_of
from ._unsolv_runs import decimal, leaves

_MAX_OTHER_VALUES = 3
"""Other values that a tool is tried with; each must have its effect."""
_TASKS = 2
"""Tasks in which a tool is tried."""
LATER = re.compile(
    r"\b(later|pending|queue\w*|schedul\w*|approv\w*|review\w*|limit\w*|cap|capped|threshold\w*|above|over|more than"
    r"|at most|at least|maximum|minimum|up to|exceed\w*|overnight|batch\w*|tomorrow|accepted|unless|asynchron\w*"
    r"|eventual\w*|rounded)\b",
    re.IGNORECASE,
)
"""Words by which a tool or a task says that a value may be treated otherwise, or not at once."""


_LEFT_OPEN = names("auto automatic default keep none same inherit inherited any unchanged normal standard system")
"""Values that leave to the world what comes of them."""


@check("x.paid_without_effect", "false_resolution", needs=("oracle", "tasks", "tools"), value=95)
def paid_without_effect(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a paid call of a solution has the effect that it has with other values."""
    tools = {tool.name: tool for tool in ctx.about.tools if not LATER.search(f"{tool.description} {_described(tool)}")}
    tried: Counter[str] = Counter()
    reported: set[str] = set()
    for solution, place in _calls(paid(ctx, 6)):
        name = solution.ops[place].name
        looks = [op.marked(f"look {count}") for count, op in enumerate(looks_of(ctx, solution))]
        if name not in tools or name in reported or tried[name] >= _TASKS or not looks or LATER.search(solution.prompt):
            continue
        tried[name] += 1
        for finding in _tried(ctx, solution, place, spec=tools[name], looks=looks):
            reported.add(name)
            yield finding


def _calls(known: Sequence[Solution]) -> list[tuple[Solution, int]]:
    """Writes of the solutions, those with the largest numbers first: what goes wrong beyond a limit does so there."""
    found = [
        (solution, place)
        for solution in known
        for place, op in enumerate(solution.ops)
        if writes_by_name(op) and place not in solution.errors
    ]
    return sorted(found, key=lambda pair: -max(filter(is_number, pair[0].ops[pair[1]].value.values()), default=0))


def _described(spec: ToolSpec) -> str:
    return " ".join(str(schema.get("description", "")) for schema in spec.properties.values())


def _tried(
    ctx: AuditContext, solution: Solution, place: int, *, spec: ToolSpec, looks: Sequence[Op]
) -> Iterator[Finding | None]:
    """One argument after the other: the solution's value and others, with a look before and after."""
    op = solution.ops[place]
    for key, value in op.value.items():
        other_values = _other_values(value, key, spec=spec)
        if len(other_values) < 2 or str(value).lower() in _LEFT_OPEN:
            continue
        ctx.count_comparisons()
        ways = [op, *(msgspec.structs.replace(op, value=op.value | {key: other_value}) for other_value in other_values)]
        probes = [_acted(solution, place, way, looks=looks) for way in ways]
        records = ctx.play_all(probes)
        for look in looks:
            for path, rule in _moved(look.mark, records, [value, *other_values]):
                probes = [_acted(solution, place, way, looks=[look]) for way in ways]
                yield ctx.finding(
                    f"{op.name} says that it worked, does nothing of what it does with another {key}, and is paid",
                    msgspec.structs.replace(probes[0], ops=(*probes[0].ops, *solution.ops[place + 1 :], score())),
                    *probes[1:],
                    relation=f"{__name__}:without_effect",
                    marks=("score", look.mark, "done"),
                    data={"full": solution.full, "path": list(path), "rule": rule, "values": [value, *other_values]},
                    minimise=0,
                    part="V",
                    expected=f"{look.name} shows at {'/'.join(path)} what {key} = {value!r} does, as {other_values} do",
                    observed=f"it is as before, {op.name} answers the same, and the pay is {solution.full:g}",
                    teaches="that a call is enough, whatever its effect",
                )
                return


def _acted(solution: Solution, place: int, way: Op, *, looks: Sequence[Op]) -> Probe:
    before = [look.marked(f"before {look.mark}") for look in looks]
    return Probe((reset(solution.task), *solution.ops[:place], *before, way.marked("done"), *looks))


def _other_values(value: Any, key: str, *, spec: ToolSpec) -> list[Any]:
    """Other values of an argument: sums that are far less and a little more; words that were met or may be chosen."""
    schema: Any = spec.properties.get(key, {})
    found: list[Any] = []
    if is_number(value) and not is_id(key) and value > 0:
        unit = type(value)(max(1, value // 1000))
        found = [unit, 2 * unit, 3 * unit]
    elif isinstance(value, str) and schema.get("enum"):
        found = list(schema["enum"])
    elif isinstance(value, str) and not is_id(key):
        found = [f"{value} {word}" for word in ("b", "c")] if " " in value else []
    return [
        other_value for other_value in found if other_value != value and fits(other_value, schema, spec.parameters)
    ][:_MAX_OTHER_VALUES]


def _moved(mark: str, records: Sequence[Record], values: Sequence[Any]) -> Iterator[tuple[Path, str]]:
    """Yields paths where each other value shows, as a sum or as itself, and the solution's value does not."""
    before = parsed(records[0].at(f"before {mark}").value)
    for path, _ in leaves(before):
        if path and not is_bookkeeping(path):
            yield from ((path, rule) for rule in ("sum", "set") if _is_idle(mark, records, values, where=(path, rule)))


def _is_idle(mark: str, records: Sequence[Record], values: Sequence[Any], *, where: tuple[Path, str]) -> bool:
    path, rule = where
    if not all(record.at(name).fine for record in records for name in ("done", mark, f"before {mark}")):
        return False
    said = {_answer(record, value) for record, value in zip(records, values, strict=True)}
    if len(said) > 1 or LATER.search(said.pop()):
        return False
    pairs = [tuple(at(parsed(record.at(name).value), path) for name in (f"before {mark}", mark)) for record in records]
    if len({repr(old) for old, _ in pairs}) > 1 or pairs[0][0] != pairs[0][1]:
        return False
    if rule == "sum":
        return _is_sum(pairs[1:], values[1:])
    return _is_set(pairs, values) and not _shows_elsewhere(records[0], mark, values[0])


def _shows_elsewhere(record: Record, mark: str, value: Any) -> bool:
    """True if a value stands at a new place: an "eco" mode is shown, and the device under it is unchanged."""
    before, after = (dict(leaves(parsed(record.at(name).value))) for name in (f"before {mark}", mark))
    return any(item == value and before.get(path) != value for path, item in after.items())


def _answer(record: Record, value: Any) -> str:
    """Returns the call's result, with a placeholder wherever it repeats the value."""
    seen = parsed(record.at("done").value)
    given = {str(path): "<value>" if leaf == value else leaf for path, leaf in leaves(seen)}
    return repr(given) if given else repr(seen)


def _is_set(pairs: Sequence[tuple[Any, ...]], values: Sequence[Any]) -> bool:
    """True if each value but the first stands there; some numbers lie on the solution's side of the old one."""
    old, own = pairs[0][0], values[0]
    shown = all(new == value for (_, new), value in zip(pairs[1:], values[1:], strict=True))
    if not shown or old == own or type(old) is not type(own):
        return False
    return not is_number(own) or any((value > old) == (own > old) for value in values[1:])


def _is_sum(pairs: Sequence[tuple[Any, ...]], values: Sequence[Any]) -> bool:
    """True if a number has risen, or fallen, by each of the values."""
    steps: set[Any] = set()
    for (old, new), value in zip(pairs, values, strict=True):
        first, second, by = decimal(old), decimal(new), decimal(value)
        if first is None or second is None or not by:
            return False
        steps.add(round((second - first) / by, 6))
    return len(steps) == 1 and abs(steps.pop()) == 1


@relation
def without_effect(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe is paid `full`, and its call changes nothing where the same call with other values does."""
    got = number(records[0].at("score"))
    where = (tuple(evidence.data["path"]), evidence.data["rule"])
    is_paid = got is not None and got >= evidence.data["full"] - 1e-9
    return is_paid and _is_idle(evidence.marks[1], records, evidence.data["values"], where=where)
