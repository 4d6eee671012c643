"""Checks for false resolution: the status says "closed", the words say "done", and no work was done.

Every probe here leaves out, or takes back, what the task is about, and keeps what merely says so.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, number, reset, score, state
from quintain.audit.kernel.registry import relation

from . import _reward_runs as claims
from ._clip_near import far_fields
from ._reward_acts import MISSING, Path, differences, is_bookkeeping, is_status, names, only_reads, scalars, words
from ._reward_runs import Run, Solution, lacking, paid, runs, seeing, survives, weight
from ._reward_said import answered_and_not_done, answers_are_true
from ._reward_sight import paid_without_effect, undone_in_sight

__all__ = [
    "answered_and_not_done", "answers_are_true", "far_fields", "paid_without_effect", "undone_in_sight",
]  # fmt: skip

MAX_SOLUTIONS, SOLVED_undo = 8, 3
"""Solutions that are walked, and those of them whose work is taken back."""
_PAIRS, _MIDWAY = 2, 2
"""Pairs of a write and a later one that may take over what it set; solutions in which such pairs, and steps that are
paid for by themselves, are looked for."""
_TAKES_BACK = names(
    "cancel delete remove undo revert reopen unassign unmark restore return withdraw revoke void unbook "
    "refund reset rollback unlink unlock lock disable enable deactivate activate reactivate"
)
_MAX_INVERSES = 14
"""Ways back that are tried for one write."""
_FEWER = 8
"""The same for a write after which the solution goes on."""
_OWN = 2
"""The same by its own tool, in a further task."""


@check("x.undo", "false_resolution", needs=("oracle", "state", "tasks", "tools"), value=25)
def undo(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that work that is done and then undone is not paid in full."""
    reported: set[str] = set()
    settled: set[str] = set()
    known = paid(ctx, MAX_SOLUTIONS)
    chosen = _each_kind(known)
    for solution in chosen:
        yield from _at_the_end(ctx, solution, reported, settled=settled)
    for solved in chosen[:_MIDWAY]:
        yield from _overtaken(ctx, solved, reported)
        yield from _halfway(ctx, solved, reported)
    for item in known:
        if item not in chosen:  # What could not be taken back in one task may be in another.
            yield from _at_the_end(ctx, item, reported, settled=settled, again=True)


def _each_kind(known: Sequence[Solution]) -> list[Solution]:
    """Solutions by other rows of tools first, then others, until there are `SOLVED`."""
    kinds: dict[tuple[str, ...], Solution] = {}
    for solution in known:
        kinds.setdefault(tuple(op.name or op.do for op in solution.ops), solution)
    more = [solved for solved in known if solved not in kinds.values()]
    return [*kinds.values(), *more][:SOLVED_undo]


def _at_the_end(
    ctx: AuditContext, solution: Solution, reported: set[str], *, settled: set[str], again: bool = False
) -> Iterator[Finding | None]:
    """Yields findings for each write that is undone at the end.

    Args:
        ctx: Plays the ops.
        solution: The solution.
        reported: Collects the tools with a finding.
        settled: Collects the tools that undid their own work.
        again: True to use only tools that have not undone their own work yet.
    """
    said = tuple(op for op in solution.ops if op.do == "answer")
    acts = tuple(op for op in solution.ops if op.do != "answer")
    for place in solution.writes:
        name, effects = solution.ops[place].name, solution.effects.get(place, ())
        if name in reported or (again and name in settled) or _only_opens(ctx, solution, place):
            continue
        back = [op for op in _ways_back(ctx, solution, place) if op.name == name or not again]
        back = back[: _OWN if again else _MAX_INVERSES]
        guess = (
            None
            if _fields(solution, place).keys() & solution.ops[place].value.keys()
            else _with_old_values(solution, place)
        )
        tried = runs(ctx, solution, [(*acts, op, *said) for op in back])
        ctx.count_comparisons(len(back))
        if any(op.name == name and len(acts) not in run.errors for op, run in zip(back, tried, strict=True)):
            settled.add(name)
        for op, run in zip(back, tried, strict=True):
            gone = [path for path in _gone(run.lacks) if any(_inside(path, effect) for effect in effects)]
            if run.score is None or solution.full is None or run.score < solution.full - 1e-9 or not gone:
                continue
            found = _taken_back(ctx, solution, (acts, (op,), said), gone=gone, later=place)
            if found is None and op != guess:
                found = _voided(ctx, solution, (acts, op, said), gone=gone)
            if found is not None:
                reported.add(name)
                yield found
                break


def _only_opens(ctx: AuditContext, solution: Solution, place: int) -> bool:
    """True if a write sets only single fields and a later call needs it, as a login does: it is not the work itself."""
    if any(len(path) > 1 for path in solution.effects.get(place, ())):
        return False
    (run,) = runs(ctx, solution, [(*solution.ops[:place], *solution.ops[place + 1 :])])
    return any(error >= place for error in run.errors)


def _halfway(ctx: AuditContext, solution: Solution, reported: set[str]) -> Iterator[Finding | None]:
    """Yields findings for a rewarded step that is undone before the solution continues."""
    steps = runs(ctx, solution, [solution.ops[:place] for place in range(len(solution.ops))])
    for place in solution.writes:
        less, more = steps[place].score, steps[place + 1].score if place + 1 < len(steps) else solution.full
        name = solution.ops[place].name
        if (
            name in reported
            or less is None
            or more is None
            or more <= less + 1e-9
            or more >= (solution.full or 0.0) - 1e-9
        ):
            continue  # What is paid in full has been taken back at the solution's end.
        done = solution.ops[: place + 1]
        back = list(_ways_back(ctx, solution, place))[:_FEWER]
        tried = zip(back, runs(ctx, solution, [(*done, op) for op in back]), strict=True)
        ctx.count_comparisons(len(back))
        kept = [
            op
            for op, run in tried
            if run.score is not None and run.score >= more - 1e-9 and place + 1 not in run.errors
        ]
        if not kept:
            continue
        before, *found = runs(ctx, solution, [done[:-1], *((*done, op) for op in kept)], look=True)
        alike = [op for op, run in zip(kept, found, strict=True) if _touched(run) == _touched(before)]
        finding = next(filter(None, (_still_paid(ctx, solution, place, back=op) for op in alike)), None)
        if finding is not None:
            reported.add(name)
            yield finding


def _overtaken(ctx: AuditContext, solution: Solution, reported: set[str]) -> Iterator[Finding | None]:
    """Yields findings for a step that is undone after a later write depended on it.

    The earlier write is undone, the later one repeated, and the earlier one made again: a setting that must be rolled
    out, published or sent to count is set and does not count.
    """
    said = tuple(op for op in solution.ops if op.do == "answer")
    acts = tuple(op for op in solution.ops if op.do != "answer")
    tried: list[tuple[int, tuple[Op, ...]]] = []
    for first, later in itertools.combinations(solution.writes, 2):
        old = _with_old_values(solution, first)
        if old is not None and solution.ops[later].name not in {*reported, old.name}:
            tried.append((later, (old, solution.ops[later], solution.ops[first])))
    tried = tried[:_PAIRS]
    ctx.count_comparisons(len(tried))
    for (later, back), run in zip(tried, runs(ctx, solution, [(*acts, *way, *said) for _, way in tried]), strict=True):
        effects, name = solution.effects.get(later, ()), solution.ops[later].name
        gone = [path for path in _gone(run.lacks) if any(_inside(path, effect) for effect in effects)]
        worked = not {len(acts), len(acts) + 1, len(acts) + 2} & set(run.errors)
        if run.score is None or run.score < (solution.full or 0.0) - 1e-9 or not gone or not worked or name in reported:
            continue
        found = _taken_back(ctx, solution, (acts, back, said), gone=gone, later=later)
        if found is not None:
            reported.add(name)
            yield found


def _with_old_values(solution: Solution, place: int) -> Op | None:
    """The write with what there was before in place of what it sets, under the field's name or not; None if nothing."""
    op = solution.ops[place]
    own: dict[str, Any] = {}
    for path in solution.effects.get(place, ()):
        old, new = solution.changed.get(path, (None, None))
        if old is None or old == MISSING or not isinstance(old, str | int | float):
            continue
        for key, value in op.value.items():
            is_text = isinstance(value, str) and value == str(new)
            if key not in own and (value == new or is_text):
                own[key] = str(old) if is_text else old
    return msgspec.structs.replace(op, value=op.value | own) if own else None


def _touched(run: Run) -> set[Path]:
    return {path for path in run.touched if not is_bookkeeping(path)}


def _still_paid(ctx: AuditContext, solution: Solution, place: int, *, back: Op) -> Finding | None:
    done, name = solution.ops[: place + 1], solution.ops[place].name
    return ctx.finding(
        f"what {name} did is taken back by {back.name}, and paid for all the same",
        Probe((reset(solution.task), *done, back.marked("back"), state(), score())),
        Probe((reset(solution.task), *done[:-1], state(), score())),
        Probe((reset(solution.task), *done, state(), score())),
        relation=f"{__name__}:paid_for_nothing",
        marks=("score", "state", "back"),
        minimise=0,
        part="V",
        expected=f"what was paid before {name}: the world is as it was then",
        observed="what is paid where it is done",
        teaches="to do a thing and undo it",
    )


@relation
def paid_for_nothing(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if an undone step restores the world before it and keeps the reward of the step."""
    back, before, done = records
    paid, less, more = (number(record.at("score")) for record in records)
    if paid is None or less is None or more is None or back.at("back").is_error:
        return False
    worlds = [record.at("state") for record in (back, before, done)]
    if not all(world.fine for world in worlds):
        return False
    here, there, moved = (world.value for world in worlds)
    is_back = not any(not is_bookkeeping(path) for path in differences(here, there, evidence.volatile))
    return (
        is_back
        and bool(differences(moved, there, evidence.volatile))
        and min(paid, more) > less + 1e-9
        and (paid >= more - 1e-9)
    )


def _voided(
    ctx: AuditContext, solution: Solution, way: tuple[tuple[Op, ...], Op, tuple[Op, ...]], *, gone: list[Path]
) -> Finding | None:
    """Returns a finding for results that still exist but are void."""
    acts, op, said = way
    void = [[list(path), solution.changed[path][1]] for path in gone][:10]
    return ctx.finding(
        f"what was done is made void by {op.name}, and paid for all the same",
        Probe((reset(solution.task), *acts, op.marked("back"), *said, state(), score())),
        relation=claims.PAID,
        marks=("score", "state", "back"),
        data={"full": solution.full, "lacks": void, "done": ["back"]},
        minimise=0,
        part="V",
        **weight(solution, void),
        expected=f"less than {solution.full:g}: {', '.join('/'.join(path) for path in gone[:4])} is not so any more",
        observed=f"{solution.full:g}",
        teaches="to undo what it did, once it is paid",
    )


def _gone(lacks: dict[str, Any]) -> list[Path]:
    return [tuple(path.split("\x1f")) for path in lacks]


def _inside(path: Path, effect: Path) -> bool:
    short = min(len(path), len(effect))
    return path[:short] == effect[:short]


def _ways_back(ctx: AuditContext, solution: Solution, place: int) -> Iterator[Op]:
    """Calls that may take a write back: its own tool with the old values, setters of a field, and inverse tools."""
    op = solution.ops[place]
    fields = _fields(solution, place)
    own = {key: fields[key] for key in op.value if key in fields and fields[key] not in (MISSING, None)}
    if own:
        yield msgspec.structs.replace(op, value=op.value | own)
    elif (old := _with_old_values(solution, place)) is not None:
        yield old
    ids = _ids(solution, place)
    for tool in ctx.about.tools:
        for key, schema in tool.properties.items():
            old = fields.get(key, MISSING)
            if old == MISSING or not fits(old, schema, tool.parameters):
                continue
            for base in _filled(tool.required, ids, op.value, but=key):
                yield call(tool.name, base | {key: old})
    other_tools = [tool for tool in ctx.about.tools if tool.name != op.name and not only_reads(ctx, call(tool.name))]
    named = [_TAKES_BACK & set(words(tool.name)) for tool in other_tools]
    for tool, is_named in sorted(zip(other_tools, named, strict=True), key=lambda pair: not pair[1]):
        # What takes back by its name is tried with every thing that it may mean, any other tool with one.
        for base in _filled(tool.required, ids, op.value)[: 8 if is_named else 1]:
            yield call(tool.name, base)


def _fields(solution: Solution, place: int) -> dict[str, Any]:
    """Returns the earlier values by the names of the fields that a write changed."""
    return {path[-1]: solution.changed[path][0] for path in solution.effects.get(place, ()) if path in solution.changed}


def _ids(solution: Solution, place: int) -> list[Any]:
    """Returns identifiers of the thing that the write touched: row keys, arguments and scalars of the answer."""
    found: list[Any] = [path[1] for path in solution.effects.get(place, ()) if len(path) > 1]
    found += scalars(solution.ops[place].value)
    said = solution.said[place].value
    found += scalars(said) if is_dict(said) else [word.strip(".,:;") for word in str(said).split()][:12]
    return list({str(value): value for value in found if len(str(value)) <= 60}.values())


def _filled(required: list[str], ids: list[Any], given: dict[str, Any], *, but: str = "") -> list[dict[str, Any]]:
    bases: list[dict[str, Any]] = [{}]
    for name in required:
        if name == but:
            continue
        values = (
            [given[name]] if name in given else ids if {"id", "ids", "key", "name"} & set(words(name)) else ["undo"]
        )
        bases = [base | {name: value} for base in bases for value in values][:8]
    return bases


def _taken_back(
    ctx: AuditContext,
    solution: Solution,
    way: tuple[tuple[Op, ...], tuple[Op, ...], tuple[Op, ...]],
    *,
    gone: list[Path],
    later: int,
) -> Finding | None:
    acts, back, said = way
    as_before = [[list(path), solution.changed[path][0]] for path in gone][:10]
    marked = [op.marked(f"back {number}" if number else "back") for number, op in enumerate(back)]
    names_ = " and ".join(dict.fromkeys(op.name for op in back))
    asked = _in_words(ctx, solution, later) if len(back) > 1 else False
    sure: dict[str, Any] = {"severity": "error", "at_most": "proven"} if asked else weight(solution, as_before)
    return ctx.finding(
        f"what was done is taken back by {names_}, and paid for all the same",
        Probe((reset(solution.task), *acts, *marked, *said, state(), score())),
        relation=claims.PAID,
        marks=("score", "state", *(op.mark for op in marked)),
        data={"full": solution.full, "has": as_before, "done": [op.mark for op in marked]},
        minimise=20,
        part="V",
        **sure,
        expected=f"less than {solution.full:g}: {', '.join('/'.join(path) for path in gone[:4])} is as it was before",
        observed=f"{solution.full:g}",
        teaches="to undo what it did, once it is paid",
    )


def _in_words(ctx: AuditContext, solution: Solution, place: int) -> bool:
    """True if a prompt asks for a write in the first words of its tool's description, such as "roll out"."""
    tool = next((tool for tool in ctx.about.tools if tool.name == solution.ops[place].name), None)
    start = re.match(r"(\w{4,} \w+)\b", tool.description) if tool else None
    return start is not None and re.search(rf"\b{start[1]}\b", solution.prompt, re.IGNORECASE) is not None


SOLVED = 6
"""Tasks whose solutions are looked at."""


def _undone(solution: Solution, run: Run, work: Sequence[int]) -> list[list[Any]]:
    """Returns what the world lacks of the work, without statuses."""
    effects = [path for place in work for path in solution.effects.get(place, ()) if not is_status(path[-1])]
    return [pair for pair in lacking(solution, run, effects) if not is_status(pair[0][-1])]


def _claimed(
    ctx: AuditContext, solution: Solution, way: Sequence[Op], *, lacks: list[list[Any]], **stated: Any
) -> Finding | None:
    done = {f"{op.name} {op.value}" for op in way}
    left = [place for place in solution.writes if f"{solution.ops[place].name} {solution.ops[place].value}" not in done]
    return ctx.finding(
        stated.pop("title"),
        Probe((reset(solution.task), *way, *seeing(solution), score())),
        relation=claims.PAID,
        marks=("score", "state") if solution.sees else ("score",),
        data={"full": solution.full, "lacks": lacks},
        part="V",
        **weight(solution, lacks, left),
        expected=f"under {solution.full:g}; lacking {', '.join('/'.join(path) for path, _ in lacks[:4]) or 'the work'}",
        **stated,
    )


@check("x.status_without_work", "false_resolution", needs=("oracle", "state", "tasks"), value=68)
def status_without_work(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a record that reports progress does not pay for the work itself."""
    reported: set[str] = set()
    for solution in paid(ctx, SOLVED):
        says = [
            place for place in solution.writes if any(is_status(path[-1]) for path in solution.effects.get(place, ()))
        ]
        work = [place for place in solution.writes if place not in says]
        if not says or not work:
            continue
        ways = [solution.without(*work), *(solution.without(place) for place in work if len(work) > 1)]
        ctx.count_comparisons(len(ways))
        for way, run in zip(ways, runs(ctx, solution, ways), strict=True):
            left = [place for place in work if solution.ops[place] not in way]
            names = " and ".join(dict.fromkeys(solution.ops[place].name for place in left))
            lacks = _undone(solution, run, left)
            if not survives(solution, run) or not lacks or names in reported:
                continue
            reported.add(names)
            yield _claimed(
                ctx,
                solution,
                way,
                lacks=lacks,
                title=f"the record says how far it is and {names} is left out, and that is paid in full",
                observed=run.score,
                teaches="to write that it is done instead of doing it",
            )
