"""Checks invisible worlds through their own tools: work that they show as undone is not paid in full."""

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
from quintain.audit.kernel.probe import Op, Probe, Record, call, number, reset, score
from quintain.audit.kernel.registry import relation

from . import _reward_runs as claims
from ._reward_acts import (
    Path,
    asked_for,
    at,
    differences,
    does_write,
    is_bookkeeping,
    is_id,
    names,
    only_reads,
    words,
    writes_by_name,
)
from ._reward_runs import Solution, paid, runs, survives
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


_LOOKS = 8
"""Calls by which the world is looked at."""
_SEEN = 400
"""Largest number of paths of one answer that are compared."""


@check("x.undone_in_sight", "false_resolution", needs=("oracle", "tasks", "tools"), value=96)
def undone_in_sight(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that work that the task requires and readers show as undone is not paid in full."""
    known = [solution for solution in paid(ctx, 6) if not solution.sees]
    if not known:
        raise ctx.not_checked("the world can be looked into: other checks do")
    reported: set[str] = set()
    for solution in known:
        places = [place for place in solution.writes if does_write(ctx, solution.ops[place])]
        places = [place for place in places if is_spoken_of(ctx, solution, place, known=known)]
        ways = [solution.without(place) for place in places if len(solution.ops) > 1]
        ctx.count_comparisons(len(ways))
        for place, way, run in zip(places, ways, runs(ctx, solution, ways), strict=False):
            name = solution.ops[place].name
            if name in reported or not survives(solution, run):
                continue
            finding = _left_undone(ctx, solution, place, way=way)
            if finding is not None:
                reported.add(name)
                yield finding


def looks_of(ctx: AuditContext, solution: Solution) -> list[Op]:
    """Calls that read, by their names: those of the solution, those that need no argument, and of things it names."""
    named = list(dict.fromkeys(
        value
        for op in solution.ops if op.do == "call"
        for value in op.value.values() if isinstance(value, str) and value
    ))  # fmt: skip
    found = [op for op in solution.ops if only_reads(ctx, op) and not does_write(ctx, op)]
    for tool in ctx.about.tools:
        if only_reads(ctx, call(tool.name)) and {"wait", "sleep", "advance", "ask"}.isdisjoint(words(tool.name)):
            found += [call(tool.name)] if not tool.required else []
            found += [call(tool.name, {tool.required[0]: name}) for name in named[:4] if len(tool.required) == 1]
    return list({f"{op.name} {op.value}": op.marked("") for op in found}.values())[:_LOOKS]


def is_spoken_of(ctx: AuditContext, solution: Solution, place: int, *, known: Sequence[Solution]) -> bool:
    """True if a prompt asks for a call: for its verb, a value, or a thing named by this tool alone.

    A thing counts if the prompts of some tasks do not mention it, so that it is not the subject of the whole world.
    """
    op = solution.ops[place]
    if asked_for(op, solution.prompt):
        return True
    other_values = {word for tool in ctx.about.tools if tool.name != op.name for word in words(tool.name)}
    for word in words(op.name)[1:]:
        is_said = [re.search(rf"\b{re.escape(word)}", each.prompt, re.IGNORECASE) is not None for each in known]
        here = is_said[known.index(solution)]
        if len(word) >= 4 and word not in other_values and here and not all(is_said):
            return True
    return False


def _left_undone(ctx: AuditContext, solution: Solution, place: int, *, way: Sequence[Op]) -> Finding | None:
    """The way is paid: what the readers show of the write, and show no more when it is left out."""
    looks = looks_of(ctx, solution)
    marked = [op.marked(f"look {number}") for number, op in enumerate(looks)]
    plays = ((), solution.ops, solution.ops, tuple(way))
    start, end, again, short = ctx.play_all([Probe((reset(solution.task), *ops, *marked)) for ops in plays])
    for op in marked:
        undone = _shown(op.mark, (start, end, again, short), ctx.volatile)
        if undone:
            return _finding(ctx, solution, place, way=way, look=op.marked("state"), undone=undone)
    return None


def _shown(mark: str, records: Sequence[Record], volatile: Sequence[str]) -> list[tuple[Path, object, object]]:
    """Paths that the solution changes, the same in each play, and the way leaves as they were."""
    if not all(record.at(mark).fine for record in records):
        return []
    start, end, again, short = (parsed(record.at(mark).value) for record in records)
    unsure = differences(end, again, volatile)
    changed = differences(start, end, volatile, most=_SEEN)
    return [
        (path, old, new)
        for path, (old, new) in changed.items()
        if path and path not in unsure and at(short, path) == old and not is_bookkeeping(path)
    ]


def _finding(
    ctx: AuditContext,
    solution: Solution,
    place: int,
    *,
    way: Sequence[Op],
    look: Op,
    undone: list[tuple[Path, object, object]],
) -> Finding | None:
    op = solution.ops[place]
    where = ", ".join("/".join(path) for path, *_ in undone[:4])
    return ctx.finding(
        f"{op.name} is left out, {look.name} shows that nothing of it is done, and that is paid in full",
        Probe((reset(solution.task), *way, look, score())),
        relation=claims.PAID,
        marks=("score", "state"),
        data={
            "full": solution.full,
            "lacks": [[list(path), new] for path, _, new in undone[:10]],
            "has": [[list(path), old] for path, old, _ in undone[:10]],
        },
        minimise=0,
        part="V",
        expected=f"less than {solution.full:g}: the task names it, but {look.name} still shows {where} as at the start",
        observed=solution.full,
        teaches=f"to leave out {op.name}",
    )
