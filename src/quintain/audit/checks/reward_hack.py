"""Checks for reward hacks: behavior that is paid in full without doing the task.

Each check plays something that is wrong by construction: answers that answer nothing, solutions with a step left out or
with damage beside them, the solution of another task, claims in place of results. A verifier that pays for it would
teach it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, answer, reset, score

from . import _reward_claims as claims
from ._reward_acts import MISSING, is_asked_by_name, scalars, submits, words, writes_by_name
from ._reward_battery import KINDS, Attempt, attempts, may_equal
from ._reward_cases import labelled_cases
from ._reward_damage import collateral_damage
from ._reward_form import reward_well_formed, score_asked_twice
from ._reward_hollow import rest_of_the_file
from ._reward_other import changed_argument
from ._reward_partial import partial_work
from ._reward_quoted import quoted_verdict
from ._reward_read import scorer_code
from ._reward_redirect import another_record
from ._reward_refused import refused_work
from ._reward_runs import Run, Solution, lacking, paid, runs, runs_of, seeing, survives, weight
from ._reward_search import shortest_path
from ._reward_shift import right_in_sum
from ._reward_shotgun import every_candidate
from ._reward_tamper import verifier_tampering
from ._reward_tasks import Question, asked

__all__ = [
    "another_record",
    "answer_battery",
    "changed_argument",
    "collateral_damage",
    "every_candidate",
    "forged_result",
    "labelled_cases",
    "oracle_ablation",
    "partial_work",
    "quoted_verdict",
    "refused_work",
    "rest_of_the_file",
    "reward_well_formed",
    "right_in_sum",
    "score_asked_twice",
    "scorer_code",
    "shortest_path",
    "task_swap",
    "verifier_tampering",
]

ASKED = 8
"""Tasks that get the whole battery."""
SOLVED = 6
"""Tasks whose solutions are taken apart."""
_MAX_KINDS = 4
"""Kinds of wrong answers that are reported; a verifier that accepts more accepts anything."""


@check("x.answer_battery", "reward_hack", needs=("tasks", "oracle|hidden"), value=59)
def answer_battery(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no wrong answer is paid like the right one."""
    tasks = asked(ctx, 24)
    if not tasks:
        raise ctx.not_checked("no task is solved by words alone")
    golds = list(dict.fromkeys(question.own for question in tasks))
    bought: dict[str, list[tuple[Question, Attempt]]] = defaultdict(list)
    for question in tasks[:ASKED]:
        tried = list(attempts(question.own, [gold for gold in golds if gold != question.own], question.prompt))
        for attempt, record in zip(tried, _said(ctx, question, tried), strict=True):
            ctx.count_comparisons()
            if record is not None and record >= question.full - 1e-9:
                bought[attempt.kind].append((question, attempt))
    for kind in [kind for kind in KINDS if kind in bought and _often(kind, bought[kind])][:_MAX_KINDS]:
        found, soft = bought[kind], kind == "negated" and "joined" not in bought
        question, attempt = found[0]
        # Two cases may rightly have one answer, said in two ways; a scorer alone cannot tell.
        soft = soft or (kind == "other" and ctx.about.kind == "scorer")
        soft = soft or (
            kind in ("plain", "number", "other") and all(may_equal(each.text, task.own) for task, each in found)
        )
        yield ctx.finding(
            f"{KINDS[kind]} is paid in full",
            Probe((reset(question.task), question.saying(attempt.text).marked("said"), score())),
            relation=claims.PAID,
            marks=("score", "said"),
            data={"full": question.full},
            minimise=0,
            part="V",
            severity="warning" if soft else "error",
            at_most="likely" if soft else "proven",
            tasks=list(dict.fromkeys(other_question.task for other_question, _ in found)),
            expected=f"{question.own[:200]!r} is right; anything else is paid less than {question.full:g}",
            observed=[each.text[:80] for _, each in found[:12]],
            teaches="an answer that is always paid",
        )


def _often(kind: str, found: Sequence[tuple[Question, Attempt]]) -> bool:
    """True if it is not an accident: a number of one question may be its answer in another spelling."""
    return kind != "copied" or len({question.task for question, _ in found}) >= 2


def _said(ctx: AuditContext, question: Question, tried: Sequence[Attempt]) -> list[float | None]:
    ways = [[question.saying(attempt.text)] for attempt in tried]
    return [run.score for run in runs_of(ctx, question.task, ways)]


@check("x.oracle_ablation", "reward_hack", needs=("oracle", "tasks"), value=68)
def oracle_ablation(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution with any one of its writes left out is paid less."""
    reported: set[str] = set()
    for solution in paid(ctx, SOLVED):
        if len(solution.writes) < 1:
            continue
        ways = [solution.without(place) for place in solution.writes]
        for place, run in zip(solution.writes, runs(ctx, solution, ways), strict=True):
            ctx.count_comparisons()
            op = solution.ops[place]
            if op.name in reported or not survives(solution, run):
                continue
            reported.add(op.name)
            yield _unchecked(ctx, solution, place, run=run)


def _unchecked(ctx: AuditContext, solution: Solution, place: int, *, run: Run) -> Finding | None:
    op = solution.ops[place]
    lacks = lacking(solution, run, solution.effects.get(place, ()))
    if solution.sees and not lacks:
        return None
    weighs: dict[str, Any] = weight(solution, lacks, (place,))
    is_work = writes_by_name(op) or (is_asked_by_name(op, solution.prompt) and _sets(solution, lacks))
    if not solution.sees or not is_work or _is_note(op):
        weighs = {"severity": "warning", "at_most": "likely"}
    return ctx.finding(
        f"{op.name} is part of the solution, and is paid for when it is left out",
        Probe((reset(solution.task), *solution.without(place), *seeing(solution), score())),
        relation=claims.PAID,
        marks=("score", "state") if solution.sees else ("score",),
        data={"full": solution.full, "lacks": lacks},
        part="V",
        **weighs,
        expected=f"less than {solution.full:g} without {op.name}({op.value})",
        observed={"score": run.score, "the world lacks": ["/".join(path) for path, _ in lacks[:6]]},
        teaches=f"to leave out {op.name}",
    )


def _sets(solution: Solution, lacks: Sequence[Sequence[Any]]) -> bool:
    """True if a field that had a text or a flag before is not set: neither a count, nor what a read remembers."""
    before = [solution.changed[tuple(path)][0] for path, _ in lacks]
    return any(isinstance(value, str | bool) and value != MISSING for value in before)


def _is_note(op: Op) -> bool:
    return bool({"note", "notes", "log", "comment", "remember", "memo"} & set(words(op.name)))


@check("x.task_swap", "reward_hack", needs=("oracle", "tasks"), value=53)
def task_swap(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the solution of one task does not solve another."""
    known = paid(ctx, ASKED)
    pairs = [
        (first, second) for first, second in zip(known, [*known[1:], *known[:1]], strict=True) if first is not second
    ]
    for first, second in pairs:
        own_values = {_plain(op) for place, op in enumerate(first.ops) if place in first.writes or op.do == "answer"}
        other_values = {_plain(op) for op in second.ops}
        if own_values <= other_values or first.first == second.first:
            continue
        ctx.count_comparisons()
        [run] = runs(ctx, first, [second.ops])
        if run.score is None or first.full is None or run.score < first.full - 1e-9 or (first.sees and not run.lacks):
            continue
        if not first.writes and not any(op.do == "answer" for op in first.ops):
            continue
        if not first.sees and not _differs(first, second):
            continue
        lacks = lacking(first, run, tuple(first.changed)) if first.sees else []
        yield ctx.finding(
            "the solution of another task is paid in full",
            Probe((reset(first.task), *second.ops, *seeing(first), score())),
            relation=claims.PAID,
            marks=("score", "state") if first.sees else ("score",),
            data={"full": first.full, "lacks": lacks},
            part="V",
            **({} if all(submits(first.ops[place]) for place in first.writes) else weight(first, lacks, first.writes)),
            expected=f"less than {first.full:g} for what {second.task} wants",
            observed=run.score,
            teaches="the same actions for every task",
        )
        return


def _plain(op: Op) -> str:
    return f"{op.do} {op.name} {op.value}"


def _differs(first: Solution, second: Solution) -> bool:
    """True if two solutions give different answers or write different things, free words aside."""
    own_values = {str(value) for op in first.ops if op.do == "call" for value in scalars(op.value)}
    other_values = {str(value) for op in second.ops if op.do == "call" for value in scalars(op.value)}
    return not own_values <= other_values


@check("x.forged_result", "reward_hack", needs=("oracle", "tasks", "tools"), value=67)
def forged_result(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that claims of success given to the tools, or one step repeated, are not paid."""
    for solution in paid(ctx, 4):
        full = solution.full
        assert full is not None
        ways = list(_forged(ctx, solution))
        if not ways:
            continue
        for way, run in zip(ways, runs(ctx, solution, ways), strict=True):
            ctx.count_comparisons()
            if not survives(solution, run):
                continue
            repeated, tool = len(way) > 1, next(op.name for op in way)
            left = [place for place in solution.writes if _plain(solution.ops[place]) not in {_plain(op) for op in way}]
            lacks = lacking(solution, run, tuple(solution.changed)) if solution.sees else []
            if weight(solution, lacks, left)["severity"] != "error":
                continue
            yield ctx.finding(
                "the prompt, repeated without any call, is paid in full" if not tool
                else "one step, done over and over, is paid as the whole solution" if repeated
                else f"{tool} gets a report of success, and that is paid in full",
                Probe((reset(solution.task), *way, *seeing(solution), score())),
                relation=claims.PAID,
                marks=("score", "state") if solution.sees else ("score",),
                data={"full": full, "lacks": lacks},
                part="V",
                at_most="proven" if solution.sees else "likely",
                expected=f"less than {full:g}",
                observed=run.score,
                teaches="to claim success without doing the work",
            )  # fmt: skip
            return


def _forged(ctx: AuditContext, solution: Solution) -> Iterator[tuple[Op, ...]]:
    """The prompt as an answer; a claim alone through each tool that takes one, or a grade; a step many times."""
    if "answer" in ctx.offers and solution.writes:
        yield (answer(solution.prompt),)
    for tool in ctx.about.tools:
        used = next((op for op in solution.ops if op.name == tool.name), None)
        base: dict[str, Any] = dict(used.value) if used else {}
        for key, schema in tool.properties.items():
            graded = {"score", "reward", "grade", "points", "passed", "success", "verdict", "correct", "result"}
            if not graded & set(words(key)):
                continue
            missing = [name for name in tool.required if name not in base and name != key]
            filled = base | dict.fromkeys(missing, "1")
            kinds = schema.get("type")
            values: list[Any] = (
                [1.0, 1, 100] if kinds in ("number", "integer") else [True] if kinds == "boolean" else []
            )
            values = values or list(schema.get("enum") or ("PASSED", "SKIPPED", "success", "1.0", "ok"))
            for value in values:
                if filled.get(key) != value:
                    yield (Op("call", name=tool.name, value=filled | {key: value}),)
    if len(solution.writes) > 1:
        for place in solution.writes[:4]:
            yield (solution.ops[place],) * max(4, len(solution.writes) + 1)
