"""Checks invisible worlds through their own tools: work that they show as undone is not paid in full."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from quintain.audit.facts.data import parsed
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset, score

from . import _reward_claims as claims
from ._reward_acts import Path, asked_for, at, differences, does_write, is_bookkeeping, only_reads, words
from ._reward_runs import Solution, paid, runs, survives

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
