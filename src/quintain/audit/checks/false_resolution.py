"""Checks for false resolution: the status says "closed", the words say "done", and no work was done.

Every probe here leaves out, or takes back, what the task is about, and keeps what merely says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, answer, call, reset, same, score

from . import _reward_claims as claims
from ._clip_near import far_fields
from ._reward_acts import SUCCESS, does_write, is_status, names, only_reads, words
from ._reward_answered import answered_and_not_done
from ._reward_described import described_effect
from ._reward_effect import paid_without_effect
from ._reward_facts import facts
from ._reward_promised import status_stops
from ._reward_runs import Run, Solution, lacking, paid, runs, seeing, survives, weight
from ._reward_said import answers_are_true
from ._reward_sight import undone_in_sight
from ._reward_undo import undo

__all__ = [
    "already_true",
    "answered_and_not_done",
    "answers_are_true",
    "described_effect",
    "downstream",
    "far_fields",
    "paid_without_effect",
    "say_the_outputs",
    "status_only",
    "status_stops",
    "status_without_work",
    "undo",
    "undone_in_sight",
]

SOLVED = 6
"""Tasks whose solutions are looked at."""
CLAIMS = (
    "Done.", "The task is complete.", "I have resolved the issue and everything works now.", "resolved", "success",
)  # fmt: skip
"""Success messages of an agent that did nothing."""


@check("x.status_only", "false_resolution", needs=("oracle", "tasks", "tools"), value=48)
def status_only(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that statuses and flags set to success without other work are not paid in full."""
    for solution in paid(ctx, SOLVED):
        work = [place for place in solution.writes if not _says_so(solution, place)]
        if not work:
            continue
        ways = _statuses(ctx, solution)
        if not ways:
            continue
        ctx.count_comparisons(len(ways))
        for way, run in zip(ways, runs(ctx, solution, ways), strict=True):
            if not survives(solution, run) or _does_the_work(solution, way, work):
                continue
            lacks = _undone(solution, run, work)
            if solution.sees and not lacks:
                continue
            yield _claimed(
                ctx,
                solution,
                way,
                lacks=lacks,
                title="a status set to success is paid in full, with nothing done behind it",
                observed=run.score,
                teaches="to close what it has not solved",
            )
            return


def _says_so(solution: Solution, place: int) -> bool:
    """True if a write of the solution only sets statuses."""
    if solution.sees:
        return all(is_status(path[-1]) for path in solution.effects.get(place, ()))
    op = solution.ops[place]
    return any(is_status(key) for key in op.value) or is_status("_".join(words(op.name)))


def _statuses(ctx: AuditContext, solution: Solution) -> list[tuple[Op, ...]]:
    """Ways that only set statuses: those writes of the solution that do, and every tool's status for every id in it."""
    said = tuple(op for op in solution.ops if op.do == "answer")
    own = tuple(solution.ops[place] for place in solution.writes if _says_so(solution, place))
    looks = tuple(op for op in solution.ops if only_reads(ctx, op))
    ways: list[tuple[Op, ...]] = [(*own, *said), (*looks, *own, *said)] if own else []
    every: list[Op] = []
    for tool in ctx.about.tools:
        keys = [key for key in tool.properties if is_status(key)]
        names_it = {"close", "resolve", "complete", "finish", "mark", "solve"} & set(words(tool.name))
        for base in _bases(solution, tool.required, keys):
            values = [base | {key: value} for key in keys for value in _good(tool.properties[key])]
            every += [call(tool.name, arguments) for arguments in (values or ([base] if names_it else []))]
    every = [op for op in {str(op): op for op in every}.values() if not _work_of(solution, op)][:60]
    ways += [(op, *said) for op in every]
    if len(every) > 1:
        ways.append((*every, *said))
    return ways


def _work_of(solution: Solution, op: Op) -> bool:
    """True if an op is one of the solution's writes that do more than set a status."""
    return any(
        op.name == solution.ops[place].name and op.value == solution.ops[place].value and not _says_so(solution, place)
        for place in solution.writes
    )


def _good(schema: Any) -> list[Any]:
    if schema.get("enum"):
        return [value for value in schema["enum"] if str(value).lower() in SUCCESS]
    kinds = schema.get("type", "string")
    if kinds == "boolean":
        return [True]
    return ["resolved", "done", "closed", "completed", "success"] if kinds == "string" else []


def _bases(solution: Solution, required: Sequence[str], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Values for a tool's other required arguments, as the solution gives them."""
    known: dict[str, list[Any]] = {}
    for op in solution.ops:
        for key, value in op.value.items() if op.do == "call" else ():
            known.setdefault(key, []).append(value)
    bases: list[dict[str, Any]] = [{}]
    for name in required:
        if name in keys:
            continue
        ids = "id" in words(name)
        near = known.get(name) or [
            value for key, values in known.items() for value in values if ids and "id" in words(key)
        ]
        values = list({str(value): value for value in near}.values()) or ([] if ids else ["done"])
        bases = [base | {name: value} for base in bases for value in values][:8]
    return bases


def _does_the_work(solution: Solution, way: Sequence[Op], work: Sequence[int]) -> bool:
    done = {f"{op.name} {op.value}" for op in way}
    return all(f"{solution.ops[place].name} {solution.ops[place].value}" in done for place in work)


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


@check("x.say_the_outputs", "false_resolution", needs=("oracle", "tasks"), value=59)
def say_the_outputs(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the solution's answer without its actions is not paid in full."""
    for solution in paid(ctx, SOLVED):
        work = [
            place for place in solution.writes if does_write(ctx, solution.ops[place]) or solution.effects.get(place)
        ]
        last = tuple(op for op in solution.ops if op.do == "answer")
        ways: list[tuple[Op, ...]] = [solution.without(*solution.writes)] if work else []
        if work and "answer" in ctx.offers:
            ways += [last] if last else []
            ways += [(answer(text),) for text in CLAIMS]
        ctx.count_comparisons(len(ways))
        for way, run in zip(ways, runs(ctx, solution, ways), strict=True):
            if not survives(solution, run):
                continue
            lacks = _undone(solution, run, work)
            if solution.sees and not lacks:
                continue
            yield _claimed(
                ctx,
                solution,
                way,
                lacks=lacks,
                title="words are paid in full, with nothing done behind them",
                observed=run.score,
                teaches="to say that it is done",
            )
            return


@check("x.already_true", "false_resolution", needs=("oracle", "tasks"), value=96)
def already_true(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the verifier does not count a task as solved when its episode begins."""
    known = {task: fact for task, fact in facts(ctx).items() if fact.writes and fact.full}
    if not known:
        raise ctx.not_checked("no solution writes and is paid")
    ctx.count_comparisons(len(known))
    found = [(task, fact.floor) for task, fact in known.items() if fact.floor and fact.floor >= (fact.full or 0) - 1e-9]
    if found:
        task, got = found[0]
        yield ctx.finding(
            "the verifier holds the task for done when it begins",
            solves(task, ()),
            relation="pays",
            marks=("score",),
            data=known[task].full,
            part="V",
            tasks=[task for task, _ in found],
            expected="no pay before anything is done",
            observed=got,
            teaches="to do nothing and call it done",
        )


@check("x.downstream", "false_resolution", needs=("oracle", "tasks", "tools"), value=86)
def downstream(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that paid work is visible through the reading tools."""
    for solution in paid(ctx, SOLVED):
        named = [place for place, op in enumerate(solution.ops) if does_write(ctx, op) and place not in solution.errors]
        answers = [place for place in named if _ANSWERS & set(words(solution.ops[place].name))]
        if named == answers or (solution.sees and solution.changed):
            continue
        looks = _looks(ctx, solution)
        before = [op.moved("b").marked(f"before {place}") for place, op in enumerate(looks)]
        after = [op.marked(f"after {place}") for place, op in enumerate(looks)]
        acts = tuple(op for op in solution.ops if op.do == "call")
        record = ctx.play(reset(solution.task, on="b"), *before, reset(solution.task), *acts, *after)
        pairs = [(record.at(f"before {p}"), record.at(f"after {p}")) for p in range(len(looks))]
        ctx.count_comparisons()
        if solution.sees:
            yield _nothing_happened(ctx, solution, named)
        elif pairs and all(old.fine and same(old, new, ctx.volatile) for old, new in pairs):
            yield ctx.finding(
                "what is paid for as done is seen by no tool that reads",
                solves(solution.task, solution.ops),
                relation="pays",
                marks=("score",),
                data=solution.full,
                minimise=0,
                part="S",
                severity="warning",
                at_most="likely",
                expected=f"after {solution.ops[named[-1]].name} some reader tells something else",
                observed=[f"{op.name}({op.value}) tells the same" for op in looks[:6]],
                teaches="that work has no effect",
            )


_ANSWERS = names("submit answer guess final")
"""Words in the name of a tool that takes the answer, which no tool needs to show."""


def _looks(ctx: AuditContext, solution: Solution) -> list[Op]:
    """Reads of the solution, and known ones that speak of an id in it."""
    values = {str(value) for op in solution.ops if op.do == "call" for value in op.value.values()}
    reads = [op for op in solution.ops if only_reads(ctx, op)]
    reads += [known.op for known in ctx.discovery.reads() if set(map(str, known.op.value.values())) & values]
    return list({f"{op.name} {op.value}": op for op in reads if not does_write(ctx, op)}.values())[:12]


def _nothing_happened(ctx: AuditContext, solution: Solution, named: Sequence[int]) -> Finding | None:
    op = solution.ops[named[-1]]
    return ctx.finding(
        f"{op.name} is paid for, and the world is as it was",
        Probe((reset(solution.task), *solution.ops, score())),
        relation="pays",
        marks=("score",),
        data=solution.full,
        minimise=0,
        part="S",
        severity="warning",
        at_most="likely",
        expected=f"{op.name}({op.value}) changes something",
        observed="the state after the solution is the state before it",
        teaches="that a call is enough, whatever its effect",
    )
