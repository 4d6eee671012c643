"""Checks invisible worlds through their own tools: work that they show as undone is not paid in full."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_number, parsed
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset, score
from quintain.audit.kernel.registry import relation

from ._drift_words import show
from ._reward_acts import (
    Path,
    asked_for,
    at,
    differences,
    does_write,
    giving,
    is_bookkeeping,
    is_id,
    known_as,
    names,
    only_reads,
    words,
    writes_by_name,
)
from ._reward_runs import Solution, claim, paid, paid_so, places, unpunished
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
    tools = {tool.name: tool for tool in ctx.about.tools}
    for tool in ctx.about.tools:
        texts = [tool.description, *(str(schema.get("description", "")) for schema in tool.properties.values())]
        if LATER.search(" ".join(texts)):
            del tools[tool.name]
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


def _tried(
    ctx: AuditContext, solution: Solution, place: int, *, spec: ToolSpec, looks: Sequence[Op]
) -> Iterator[Finding | None]:
    """One argument after the other: the solution's value and others, with a look before and after."""
    op = solution.ops[place]

    def played(ways: Sequence[Op], looks: Sequence[Op], *after: Op) -> list[Probe]:
        before = [*solution.ops[:place], *(look.marked(f"before {look.mark}") for look in looks)]
        return [Probe((reset(solution.task), *before, way.marked("done"), *looks, *after)) for way in ways]

    for key, value in op.value.items():
        other_values = _other_values(value, key, spec=spec)
        if len(other_values) < 2 or str(value).lower() in _LEFT_OPEN:
            continue
        ctx.count_comparisons()
        ways = [op, *(giving(op, **{key: other_value}) for other_value in other_values)]
        records = ctx.play_all(played(ways, looks))
        for look in looks:
            for path, rule in _moved(look.mark, records, [value, *other_values]):
                yield show(
                    ctx, f"{op.name} says that it worked, does nothing of what it does with another {key}, and is paid",
                    without_effect, *played(ways[:1], [look], *solution.ops[place + 1 :], score()),
                    *played(ways[1:], [look]), marks=("score", look.mark, "done"),
                    data={"full": solution.full, "path": list(path), "rule": rule, "values": [value, *other_values]},
                    part="V",
                    expected=f"{look.name} shows at {'/'.join(path)} what {key} = {value!r} does, as {other_values} do",
                    observed=f"it is as before, {op.name} answers the same, and the pay is {solution.full:g}",
                    teaches="that a call is enough, whatever its effect",
                )  # fmt: skip
                return


def _other_values(value: Any, key: str, *, spec: ToolSpec) -> list[Any]:
    """Other values of an argument: sums that are far less and a little more; words that were met or may be chosen."""
    schema: Any = spec.properties.get(key, {})
    found: list[Any] = []
    if is_number(value) and not is_id(key) and value > 0:
        found = [times * type(value)(max(1, value // 1000)) for times in (1, 2, 3)]
    elif isinstance(value, str) and schema.get("enum"):
        found = list(schema["enum"])
    elif isinstance(value, str) and not is_id(key):
        found = [f"{value} {word}" for word in ("b", "c")] if " " in value else []
    return [other for other in found if other != value and fits(other, schema, spec.parameters)][:_MAX_OTHER_VALUES]


def _moved(mark: str, records: Sequence[Record], values: Sequence[Any]) -> Iterator[tuple[Path, str]]:
    """Yields paths where each other value shows, as a sum or as itself, and the solution's value does not."""
    before = parsed(records[0].at(f"before {mark}").value)
    for path, _ in leaves(before):
        if path and not is_bookkeeping(path):
            yield from ((path, rule) for rule in ("sum", "set") if _is_idle(mark, records, values, where=(path, rule)))


def _is_idle(mark: str, records: Sequence[Record], values: Sequence[Any], *, where: tuple[Path, str]) -> bool:
    path, rule = where
    marks = (f"before {mark}", mark)
    if not all(record.at(name).fine for record in records for name in ("done", *marks)):
        return False
    said = {_answer(record, value) for record, value in zip(records, values, strict=True)}
    if len(said) > 1 or LATER.search(said.pop()):
        return False
    worlds = [tuple(parsed(record.at(name).value) for name in marks) for record in records]
    pairs = [(at(before, path), at(after, path)) for before, after in worlds]
    if len({repr(old) for old, _ in pairs}) > 1 or pairs[0][0] != pairs[0][1]:
        return False
    if rule == "sum":
        return _is_sum(pairs[1:], values[1:])
    # A value may stand at a new place: an "eco" mode is shown, and the device under it is unchanged.
    before, after = (dict(leaves(world)) for world in worlds[0])
    is_elsewhere = any(item == values[0] and before.get(path) != item for path, item in after.items())
    return _is_set(pairs, values) and not is_elsewhere


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
    numbers = [tuple(map(decimal, (*pair, value))) for pair, value in zip(pairs, values, strict=True)]
    steps = {
        round((new - old) / by, 6) if old is not None and new is not None and by else None for old, new, by in numbers
    }
    return len(steps) == 1 and steps <= {1, -1}


@relation
def without_effect(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe is paid `full`, and its call changes nothing where the same call with other values does."""
    data, where = evidence.data, (tuple(evidence.data["path"]), evidence.data["rule"])
    is_paid = paid_so(records[0], "full", data["full"])
    return is_paid and _is_idle(evidence.marks[1], records, data["values"], where=where)


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
        writes = [place for place in solution.writes if does_write(ctx, solution.ops[place]) and len(solution.ops) > 1]
        asked = [place for place in writes if is_spoken_of(ctx, solution, place, known=known)]
        for place, way, _ in unpunished(ctx, solution, [(place, solution.without(place)) for place in asked]):
            name = solution.ops[place].name
            finding = None if name in reported else _left_undone(ctx, solution, name, way=way)
            if finding is not None:
                reported.add(name)
                yield finding


def looks_of(ctx: AuditContext, solution: Solution) -> list[Op]:
    """Calls that read, by their names: those of the solution, those that need no argument, and of things it names."""
    given = [value for op in solution.ops if op.do == "call" for value in op.value.values()]
    named = list(dict.fromkeys(value for value in given if isinstance(value, str) and value))
    found = [op for op in solution.ops if only_reads(ctx, op) and not does_write(ctx, op)]
    for tool in ctx.about.tools:
        if only_reads(ctx, call(tool.name)) and {"wait", "sleep", "advance", "ask"}.isdisjoint(words(tool.name)):
            found += [call(tool.name)] if not tool.required else []
            found += [call(tool.name, {tool.required[0]: name}) for name in named[:4] if len(tool.required) == 1]
    return list({known_as(op): op.marked("") for op in found}.values())[:_LOOKS]


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


def _left_undone(ctx: AuditContext, solution: Solution, name: str, *, way: Sequence[Op]) -> Finding | None:
    """The way is paid: what the readers show of the write, and show no more when it is left out."""
    marked = [op.marked(f"look {number}") for number, op in enumerate(looks_of(ctx, solution))]
    plays = ((), solution.ops, solution.ops, tuple(way))
    records = ctx.play_all([Probe((reset(solution.task), *ops, *marked)) for ops in plays])
    shown = [(look, undone) for look in marked if (undone := _shown(look.mark, records, ctx.volatile))]
    for look, undone in shown[:1]:
        lacks, has = ([[list(path), pair[at]] for path, *pair in undone[:10]] for at in (1, 0))
        return claim(
            ctx, solution, (*way, look.marked("state")),
            title=f"{name} is left out, {look.name} shows that nothing of it is done, and that is paid in full",
            lacks=lacks, has=has, minimise=0,
            expected=f"less than {solution.full:g}: the task names it, but {look.name} still shows {places(lacks)} as "
            "at the start",
            observed=solution.full, teaches=f"to leave out {name}",
        )  # fmt: skip
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
