"""Where nobody can look into the world, its own tools still show it: what they show undone is not paid in full."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from quintain.audit.check import check
from quintain.audit.context import AuditContext
from quintain.audit.data import parsed
from quintain.audit.finding import Finding
from quintain.audit.probe import Op, Probe, Record, call, reset, score

from . import _reward_claims as claims
from ._reward_acts import Path, asked_for, at, differences, is_bookkeeping, reads_by_name, words, writes_by_name
from ._reward_runs import Solved, paid, runs, survives

_LOOKS = 8
"""Calls by which the world is looked at."""
_SEEN = 400
"""Paths of one answer that are compared; who answers more tells too much to be read."""


@check("x.undone_in_sight", "false_resolution", needs=("oracle", "tasks", "tools"), value=91)
def undone_in_sight(ctx: AuditContext) -> Iterator[Finding | None]:
    """What the tools that read show as undone, though the task speaks of it, is not paid in full."""
    known = [one for one in paid(ctx, 6) if not one.sees]
    if not known:
        raise ctx.not_checked("the world can be looked into: other checks do")
    told: set[str] = set()
    for one in known:
        places = [place for place in one.writes if writes_by_name(one.ops[place])]
        places = [place for place in places if is_spoken_of(ctx, one, place, known=known)]
        ways = [one.without(place) for place in places if len(one.ops) > 1]
        ctx.count_comparisons(len(ways))
        for place, way, run in zip(places, ways, runs(ctx, one, ways), strict=False):
            name = one.ops[place].name
            if name in told or not survives(one, run):
                continue
            finding = _left_undone(ctx, one, place, way=way)
            if finding is not None:
                told.add(name)
                yield finding


def looks_of(ctx: AuditContext, one: Solved) -> list[Op]:
    """Calls that read, by their names: those of the solution, those that need no argument, and of things it names."""
    named = list(dict.fromkeys(
        value for op in one.ops if op.do == "call" for value in op.value.values() if isinstance(value, str) and value
    ))  # fmt: skip
    found = [op for op in one.ops if reads_by_name(op) and not writes_by_name(op)]
    for tool in ctx.about.tools:
        if reads_by_name(call(tool.name)) and {"wait", "sleep", "advance", "ask"}.isdisjoint(words(tool.name)):
            found += [call(tool.name)] if not tool.required else []
            found += [call(tool.name, {tool.required[0]: name}) for name in named[:4] if len(tool.required) == 1]
    return list({f"{op.name} {op.value}": op.marked("") for op in found}.values())[:_LOOKS]


def is_spoken_of(ctx: AuditContext, one: Solved, place: int, *, known: Sequence[Solved]) -> bool:
    """Whether a task asks for a call: for its verb or a value, or for a thing that this tool alone is named after.

    A thing counts that the prompts of some tasks do not speak of, so that it is not what the world is about.
    """
    op = one.ops[place]
    if asked_for(op, one.told):
        return True
    others = {word for tool in ctx.about.tools if tool.name != op.name for word in words(tool.name)}
    for word in words(op.name)[1:]:
        is_said = [re.search(rf"\b{re.escape(word)}", each.told, re.IGNORECASE) is not None for each in known]
        here = is_said[known.index(one)]
        if len(word) >= 4 and word not in others and here and not all(is_said):
            return True
    return False


def _left_undone(ctx: AuditContext, one: Solved, place: int, *, way: Sequence[Op]) -> Finding | None:
    """The way is paid: what the readers show of the write, and show no more when it is left out."""
    looks = looks_of(ctx, one)
    marked = [op.marked(f"look {number}") for number, op in enumerate(looks)]
    plays = ((), one.ops, one.ops, tuple(way))
    start, end, again, short = ctx.play_all([Probe((reset(one.task), *ops, *marked)) for ops in plays])
    for op in marked:
        undone = _shown(op.mark, (start, end, again, short), ctx.volatile)
        if undone:
            return _told(ctx, one, place, way=way, look=op.marked("state"), undone=undone)
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


def _told(
    ctx: AuditContext,
    one: Solved,
    place: int,
    *,
    way: Sequence[Op],
    look: Op,
    undone: list[tuple[Path, object, object]],
) -> Finding | None:
    op = one.ops[place]
    where = ", ".join("/".join(path) for path, *_ in undone[:4])
    return ctx.finding(
        f"{op.name} is left out, {look.name} shows that nothing of it is done, and that is paid in full",
        Probe((reset(one.task), *way, look, score())),
        relation=claims.PAID,
        marks=("score", "state"),
        data={
            "full": one.full,
            "lacks": [[list(path), new] for path, _, new in undone[:10]],
            "has": [[list(path), old] for path, old, _ in undone[:10]],
        },
        minimise=0,
        part="V",
        expected=f"less than {one.full:g}: the task speaks of it, and {look.name} still shows {where} as at the start",
        observed=one.full,
        teaches=f"to leave out {op.name}",
    )
