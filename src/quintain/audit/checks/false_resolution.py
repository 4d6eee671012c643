"""Checks for false resolution: the status says "closed", the words say "done", and no work was done.

Every probe here leaves out, or takes back, what the task is about, and keeps what merely says so.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts import acts as act
from quintain.audit.facts.data import is_dict, is_number
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Record, call, number, state
from quintain.audit.kernel.registry import relation

from . import _reward_runs as ran
from ._clip_near import far_fields
from ._drift_words import show
from ._half_done import paid_and_not_moved
from ._reward_changed import stated
from ._reward_runs import paid
from ._reward_said import answered_and_not_done, answers_are_true, undone_in_sight

__all__ = ["answered_and_not_done", "answers_are_true", "far_fields", "paid_and_not_moved", "undone_in_sight"]

_TAKES_BACK = act.names(
    "cancel delete remove undo revert reopen unassign unmark restore return withdraw revoke void unbook "
    "refund reset rollback unlink unlock lock disable enable deactivate activate reactivate"
)
_TEACHES = "to undo what it did, once it is paid"


@check("x.undo", "false_resolution", needs=("oracle", "state", "tasks", "tools"), value=34)
def undo(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that work that is done and then undone is not paid in full."""
    reported, settled = set[str](), set[str]()
    known = paid(ctx, 8)
    kinds: dict[tuple[str, ...], ran.Solution] = {}
    for solution in known:
        kinds.setdefault(solution.shape, solution)
    # Solutions by other rows of tools first, then others.
    chosen = [*kinds.values(), *(one for one in known if one not in kinds.values())][:3]
    for solution in chosen:
        yield from _at_the_end(ctx, solution, reported, settled=settled)
    for solution in chosen[:2]:
        yield from _overtaken(ctx, solution, reported)
        yield from _halfway(ctx, solution, reported)
    for solution in known:
        if solution not in chosen:  # What could not be taken back in one task may be in another.
            yield from _at_the_end(ctx, solution, reported, settled=settled, again=True)


def _at_the_end(
    ctx: AuditContext, solution: ran.Solution, reported: set[str], *, settled: set[str], again: bool = False
) -> Iterator[Finding | None]:
    """Yields findings for each write that is undone at the end; `settled` collects tools that undid their own work.

    With `again`, only tools that have not undone their own work yet are tried.
    """
    acts = solution.acts
    for place in solution.writes:
        name = solution.ops[place].name
        if name in reported or (again and name in settled) or _only_opens(ctx, solution, place):
            continue
        back = [op for op in _ways_back(ctx, solution, place) if op.name == name or not again]
        back = back[: 2 if again else 14]
        is_set = _fields(solution, place).keys() & solution.ops[place].value.keys()
        guess = None if is_set else _with_old_values(solution, place)
        tried = ran.runs(ctx, solution, [(*acts, op, *solution.answers) for op in back])
        ctx.count_comparisons(len(back))
        if any(op.name == name and len(acts) not in run.errors for op, run in zip(back, tried, strict=True)):
            settled.add(name)
        for op, run in zip(back, tried, strict=True):
            gone = _gone(solution, run, place)
            if not gone:
                continue
            found = _taken_back(ctx, solution, (op,), gone=gone, later=place)
            if found is None and op != guess:  # The results still exist, but are void.
                void = [[list(path), solution.changed[path][1]] for path in gone][:10]
                found = ran.claim(
                    ctx, solution, (*acts, op.marked("back"), *solution.answers), lacks=void, minimise=0,
                    title=f"what was done is made void by {op.name}, and paid for all the same", teaches=_TEACHES,
                    **ran.weight(solution, void), expected=f"less than {solution.full:g}: {ran.places(void)} is gone",
                )  # fmt: skip
            if found is not None:
                reported.add(name)
                yield found
                break


def _gone(solution: ran.Solution, run: ran.Run, place: int) -> list[act.Path]:
    """Returns the effects of a write that a world lacks, if it is paid in full."""
    effects = solution.effects.get(place, ()) if ran.pays(solution, run) else ()
    lacks = [path for path in run.lacks if path[0] not in solution.drafts]
    own = [path for path in lacks if any(act.meets(path, effect) for effect in effects)]
    return [path for path in own if solution.changed[path][1] != "0"]  # An empty cell shows 0.


def _only_opens(ctx: AuditContext, solution: ran.Solution, place: int) -> bool:
    """True if a write sets only single fields and a later call needs it, as a login does: it is not the work itself.

    The later call is refused without it, or does something else, as one that depends on where one stands does.
    """
    effects = solution.effects.get(place, ())
    if any(len(path) > 1 for path in effects):
        return False
    (run,) = ran.runs(ctx, solution, [solution.without(place)], look=True)
    is_elsewhere = [path for path in run.lacks if not any(act.meets(path, effect) for effect in effects)]
    return bool(is_elsewhere) or any(error >= place for error in run.errors)


def _halfway(ctx: AuditContext, solution: ran.Solution, reported: set[str]) -> Iterator[Finding | None]:
    """Yields findings for a rewarded step that is undone before the solution continues."""
    steps = [run.score for run in ran.runs(ctx, solution, [solution.ops[:place] for place in range(len(solution.ops))])]
    for place in solution.writes:
        less, more = [*steps, solution.full][place : place + 2]
        name = solution.ops[place].name
        # What is paid in full has been taken back at the solution's end.
        if name in reported or less is None or more is None or not less + 1e-9 < more < solution.full - 1e-9:
            continue
        done, back = solution.ops[: place + 1], list(_ways_back(ctx, solution, place))[:8]
        tried = zip(back, ran.runs(ctx, solution, [(*done, op) for op in back]), strict=True)
        ctx.count_comparisons(len(back))
        scored = [(op, run.score) for op, run in tried if place + 1 not in run.errors]
        kept = [op for op, got in scored if got is not None and got >= more - 1e-9]
        if not kept:
            continue
        before, *found = ran.runs(ctx, solution, [done[:-1], *((*done, op) for op in kept)], look=True)
        alike = [op for op, run in zip(kept, found, strict=True) if _touched(run) == _touched(before)]
        finding = next(filter(None, (_still_paid(ctx, solution, place, back=op) for op in alike)), None)
        if finding is not None:
            reported.add(name)
            yield finding


def _overtaken(ctx: AuditContext, solution: ran.Solution, reported: set[str]) -> Iterator[Finding | None]:
    """Yields findings for a step that is undone after a later write depended on it.

    The earlier write is undone, the later one repeated, and the earlier one made again: a setting that must be rolled
    out, published or sent to count is set and does not count.
    """
    pairs = [(_with_old_values(solution, at), at, later) for at, later in itertools.combinations(solution.writes, 2)]
    tried = [
        (later, (old, solution.ops[later], solution.ops[first]))
        for old, first, later in pairs
        if old is not None and solution.ops[later].name not in {*reported, old.name}
    ][:2]
    ctx.count_comparisons(len(tried))
    ways = [(*solution.acts, *back, *solution.answers) for _, back in tried]
    for (later, back), run in zip(tried, ran.runs(ctx, solution, ways), strict=True):
        gone, name, size = _gone(solution, run, later), solution.ops[later].name, len(solution.acts)
        if gone and name not in reported and not {size, size + 1, size + 2} & set(run.errors):
            found = _taken_back(ctx, solution, back, gone=gone, later=later)
            if found is not None:
                reported.add(name)
                yield found


def _with_old_values(solution: ran.Solution, place: int) -> Op | None:
    """The write with what there was before in place of what it sets, under the field's name or not; None if nothing."""
    op = solution.ops[place]
    own: dict[str, Any] = {}
    for path in solution.effects.get(place, ()):
        old, new = solution.changed.get(path, (None, None))
        for key, value in op.value.items() if isinstance(old, str | int | float) and old != act.MISSING else ():
            if value == new or (isinstance(value, str) and value == str(new)):
                own.setdefault(key, str(old) if isinstance(value, str) else old)
    return act.giving(op, **own) if own else None


def _touched(run: ran.Run) -> set[act.Path]:
    return {path for path in run.touched if not act.is_bookkeeping(path)}


def _still_paid(ctx: AuditContext, solution: ran.Solution, place: int, *, back: Op) -> Finding | None:
    done, name = solution.ops[: place + 1], solution.ops[place].name
    return show(
        ctx, f"what {name} did is taken back by {back.name}, and paid for all the same", paid_for_nothing,
        *(solves(solution.task, (*ops, state())) for ops in ((*done, back.marked("back")), done[:-1], done)),
        marks=("score", "state", "back"), part="V",
        expected=f"what was paid before {name}: the world is as it was then", observed="what is paid where it is done",
        teaches="to do a thing and undo it",
    )  # fmt: skip


@relation
def paid_for_nothing(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if an undone step restores the world before it and keeps the reward of the step."""
    paid, less, more = (number(record.at("score")) for record in records)
    worlds = [record.at("state") for record in records]
    has_failed = records[0].at("back").is_error or not all(world.fine for world in worlds)
    if paid is None or less is None or more is None or has_failed:
        return False
    here, there, moved = (world.value for world in worlds)
    is_back = all(act.is_bookkeeping(path) for path in act.differences(here, there, evidence.volatile))
    is_kept = min(paid, more) > less + 1e-9 and paid >= more - 1e-9
    return is_back and is_kept and bool(act.differences(moved, there, evidence.volatile))


def _ways_back(ctx: AuditContext, solution: ran.Solution, place: int) -> Iterator[Op]:
    """Calls that may take a write back: its own tool with the old values, setters of a field, and inverse tools.

    A tool that the solution itself uses after such a write on the same thing is none: what it takes back is a means, as
    a lock is that is filled, passed and drained.
    """
    op, fields = solution.ops[place], _fields(solution, place)
    pairs = itertools.combinations(solution.acts, 2)
    means = {b.name for a, b in pairs if a.name == op.name and {*act.scalars(a.value)} & {*act.scalars(b.value)}}
    own = {key: fields[key] for key in op.value if fields.get(key) not in (act.MISSING, None)}
    old_op = act.giving(op, **own) if own else _with_old_values(solution, place)
    yield from [old_op] if old_op is not None else []
    ids = _ids(solution, place)
    for tool in ctx.about.tools:
        for key, schema in tool.properties.items():
            old = fields.get(key, act.MISSING)
            if old != act.MISSING and fits(old, schema, tool.parameters):
                for base in _filled([name for name in tool.required if name != key], ids, op.value):
                    yield call(tool.name, base | {key: old})
    others = [tool for tool in ctx.about.tools if tool.name not in {op.name, *means}]
    other_tools = [tool for tool in others if not act.only_reads(ctx, call(tool.name))]
    named = [not _TAKES_BACK & set(act.words(tool.name)) for tool in other_tools]
    for is_other, tool in sorted(zip(named, other_tools, strict=True), key=lambda pair: pair[0]):
        # What takes back by its name is tried with every thing that it may mean, any other tool with one.
        for base in _filled(tool.required, ids, op.value)[: 1 if is_other else 8]:
            yield call(tool.name, base)


def _fields(solution: ran.Solution, place: int) -> dict[str, Any]:
    """Returns the earlier values by the names of the fields that a write changed."""
    return {path[-1]: solution.changed[path][0] for path in solution.effects.get(place, ()) if path in solution.changed}


def _ids(solution: ran.Solution, place: int) -> list[Any]:
    """Returns identifiers of the thing that the write touched: row keys, arguments and scalars of the answer."""
    found: list[Any] = [path[1] for path in solution.effects.get(place, ()) if len(path) > 1]
    found += act.scalars(solution.ops[place].value)
    said = solution.said[place].value
    found += act.scalars(said) if is_dict(said) else [word.strip(".,:;") for word in str(said).split()][:12]
    return list({str(value): value for value in found if len(str(value)) <= 60}.values())


def _filled(required: list[str], ids: list[Any], given: dict[str, Any]) -> list[dict[str, Any]]:
    bases: list[dict[str, Any]] = [{}]
    for name in required:
        things = ids if {"id", "ids", "key", "name"} & set(act.words(name)) else ["undo"]
        values = [given[name]] if name in given else things
        bases = [base | {name: value} for base in bases for value in values][:8]
    return bases


def _taken_back(
    ctx: AuditContext, solution: ran.Solution, back: tuple[Op, ...], *, gone: list[act.Path], later: int
) -> Finding | None:
    as_before = [[list(path), solution.changed[path][0]] for path in gone][:10]
    marked = [op.marked(f"back {number}" if number else "back") for number, op in enumerate(back)]
    tools = " and ".join(dict.fromkeys(op.name for op in back))
    is_asked = len(back) > 1 and _in_words(ctx, solution, later)
    return ran.claim(
        ctx, solution, (*solution.acts, *marked, *solution.answers),
        title=f"what was done is taken back by {tools}, and paid for all the same", has=as_before, minimise=20,
        **(ran.SURE if is_asked else ran.weight(solution, as_before)), teaches=_TEACHES,
        expected=f"less than {solution.full:g}: {ran.places(as_before)} is as it was before",
    )  # fmt: skip


def _in_words(ctx: AuditContext, solution: ran.Solution, place: int) -> bool:
    """True if a prompt asks for a write in the first words of its tool's description, such as "roll out"."""
    tool = act.spec_of(ctx, solution.ops[place])
    start = re.match(r"(\w{4,} \w+)\b", tool.description) if tool else None
    return start is not None and re.search(rf"\b{start[1]}\b", solution.prompt, re.IGNORECASE) is not None


@check("x.status_without_work", "false_resolution", needs=("oracle", "state", "tasks"), value=52)
def status_without_work(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a record of progress, or work done at once, is not paid like the work at its times."""
    for solution in paid(ctx, 6):
        says = {at for at in solution.writes if any(act.is_status(path[-1]) for path in solution.effects.get(at, ()))}
        work = [place for place in solution.writes if place not in says]
        groups = [work, *([place] for place in work if len(work) > 1)] if says and work else []
        for left, way, run in ran.unpunished(ctx, solution, [(group, solution.without(*group)) for group in groups]):
            names_ = " and ".join(dict.fromkeys(solution.ops[place].name for place in left))
            effects = [
                path for place in left for path in solution.effects.get(place, ()) if not act.is_status(path[-1])
            ]
            lacks = [pair for pair in ran.lacking(solution, run, effects) if not act.is_status(pair[0][-1])]
            yield ran.claim(
                ctx, solution, way, lacks=lacks, **ran.weight(solution, lacks, left), observed=run.score,
                title=f"the record says how far it is and {names_} is left out, and that is paid in full",
                expected=f"under {solution.full:g}; lacking {ran.places(lacks)}",
                teaches="to write that it is done instead of doing it",
            ) if lacks else None  # fmt: skip
        yield from _in_no_time(ctx, solution)


def _in_no_time(ctx: AuditContext, solution: ran.Solution) -> Iterator[Finding | None]:
    """Yields a finding for work at once that is paid like work at the times that the prompt states."""
    given = [(place, *pair) for place, op in enumerate(solution.ops) if act.does_wait(op) for pair in op.value.items()]
    waits = [at for at, key, value in given if is_number(value) and stated(key, value, solution.prompt, schema={})]
    tried = [(0, solution.without(*waits))] if waits else []
    for _, way, run in ran.unpunished(ctx, solution, tried):
        lacks = [pair for path, value in ran.lacking(solution, run) for pair in _amounts(path, value)]
        yield ran.claim(
            ctx, solution, way, lacks=lacks, **ran.weight(solution, lacks), observed=run.score,
            title="work is done at once, not at the times that the prompt states, and that is paid in full",
            expected=f"under {solution.full:g}; lacking {ran.places(lacks)}",
            teaches="to do at once what takes time",
        ) if lacks else None  # fmt: skip


_DATES = re.compile(r"(^|_)(at|on|time|date|day|due|since|until|start\w*|began|end\w*)$", re.IGNORECASE)
"""Fields that date an event: a verifier may leave open when it happens."""


def _amounts(path: list[str], value: Any) -> list[list[Any]]:
    if is_dict(value):
        return [pair for name, item in value.items() for pair in _amounts([*path, name], item)]
    return [[path, value]] if is_number(value) and not _DATES.search(path[-1]) else []
