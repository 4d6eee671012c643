"""Checks that the solution acts on what the prompt names, and that a few extra reads leave it possible.

Siblings of the same wording show which word of the prompt becomes which argument. Where nearly all follow it, a
solution that does something else belongs to another task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, number, reset, score
from quintain.audit.kernel.registry import relation

from ._reward_acts import only_reads
from ._reward_runs import runs_of, solve
from ._unsolv_looks import looks
from ._unsolv_runs import SolutionRun, common_words, decimal, kinds, leaves, plain, solution_runs

_LEAST = 4
_HERE = "quintain.audit.checks._unsolv_prompt"


@check("x.prompt_rule", "unsolvable", needs=("oracle", "tasks", "tools"), value=80, reads_prose=True)
def prompt_rule(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the solution acts on what the prompt names, as in sibling tasks."""
    for family in kinds(ctx, lambda solution_run: len(_words(solution_run.prompt))):
        if len(family) > _LEAST:
            ctx.count_comparisons(len(family))
            yield from _against(ctx, family)


def _against(ctx: AuditContext, family: Sequence[SolutionRun]) -> Iterator[Finding | None]:
    said = {solution_run.task: _words(solution_run.prompt) for solution_run in family}
    slots = [place for place in range(len(said[family[0].task])) if len({item[place] for item in said.values()}) > 2]
    arguments = [
        (place, path) for place, op in enumerate(family[0].ops) for path, _ in leaves(op.value) if op.do == "call"
    ]
    for place, path in arguments:
        for slot in slots:
            pairs = [
                (solution_run, dict(leaves(solution_run.ops[place].value)).get(path), said[solution_run.task][slot])
                for solution_run in family
            ]
            follow = [solution_run for solution_run, own, word in pairs if own is not None and _alike(own, word)]
            against = [pair for pair in pairs if pair[1] is not None and not _alike(pair[1], pair[2])]
            against = [item for item in against if plain(str(item[1])) not in map(plain, said[item[0].task])]
            if not against or len(follow) < max(_LEAST, 3 * len(against)) or len(follow) + len(against) < len(pairs):
                continue
            against = [item for item in against if not _says_more(item[0], follow)]
            if not against:
                continue
            solution_run, own, word = against[0]
            obeyed = tuple(_replaced(op, own, _typed(own, word)) for op in solution_run.ops)
            yield ctx.finding(
                f"{solution_run.ops[place].name} is given another {path[-1]} than the prompt names",
                solves(solution_run.task, obeyed),
                solves(solution_run.task, solution_run.ops),
                *(solves(sibling.task, sibling.ops) for sibling in follow[:3]),
                relation="quintain.audit.checks._unsolv_runs:loses",
                marks=("score",),
                data=solution_run.full,
                minimise=0,
                part="T",
                tasks=[item[0].task for item in against],
                expected=f"{word!r}, as the prompt says; {len(follow)} other tasks of this kind do as they say",
                observed=f"{own!r} is what is paid",
                teaches="not to follow the prompt",
            )
            return


def _words(prompt: str) -> list[str]:
    """The words of a prompt with digits in them, in order: ids, amounts, dates, references."""
    return [text.strip(".,:;!?()\"'") for text in re.findall(r"\S+", prompt) if any(sign.isdigit() for sign in text)]


def _says_more(solution_run: SolutionRun, siblings: Sequence[SolutionRun]) -> bool:
    """True if a prompt has a word, other than a name, that its siblings lack: it may mean another thing then."""
    prompt = re.sub(r"([A-Z]\S*)( [a-z']{1,4}){1,2}(?= [A-Z])", r"\1", solution_run.prompt)  # "Anna da Silva"
    own = {word for word in re.findall(r"\b[^\W\d_]+\b", prompt) if word.islower()}
    return bool(own - common_words([walked_run.prompt for walked_run in siblings]))


def _alike(value: Any, word: str) -> bool:
    left, right = decimal(value), decimal(word)
    if left is not None and right is not None:
        return left == right
    return bool(plain(word)) and plain(str(value)) == plain(word)


def _typed(own: Any, word: str) -> Any:
    value = decimal(word)
    if is_number(own) and value is not None:
        return int(value) if isinstance(own, int) and value == value.to_integral() else float(value)
    return word


def _replaced(op: Op, own: Any, other_value: Any) -> Op:
    def solution_run(value: Any) -> Any:
        if is_dict(value):
            return {key: solution_run(item) for key, item in value.items()}
        if is_list(value):
            return [solution_run(item) for item in value]
        return other_value if type(value) is type(own) and value == own else value

    return msgspec.structs.replace(op, value=solution_run(op.value)) if op.do == "call" else op


# --- room ---


@check("x.room_to_look", "unsolvable", needs=("oracle", "tasks"), value=78)
def room_to_look(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an agent that makes three more reads than the solution can still complete it."""
    if isinstance(ctx.attribute("budget"), int):
        raise ctx.not_checked("the number of calls that an episode allows is declared: x.budget asks about it")
    for solution in [solved for solved in solve(ctx, ctx.sample_tasks(4)) if solved.full and not solved.errors]:
        ways = [
            way for way in looks(ctx, solution) if way.severity == "error" and len(way.ops) <= len(solution.ops) + 3
        ]
        ctx.count_comparisons(len(ways))
        for way, run in zip(ways, runs_of(ctx, solution.task, [way.ops for way in ways]), strict=True):
            late = [place for place in run.errors if not only_reads(ctx, way.ops[place])]
            if not late or (run.score is not None and run.score >= (solution.full or 0.0) - 1e-9):
                continue
            marked = tuple(op.marked("late") if place == late[0] else op for place, op in enumerate(way.ops))
            yield ctx.finding(
                "an episode allows no more reads than its solution makes, and no text says so",
                Probe((reset(solution.task), *marked, score())),
                solves(solution.task, solution.ops),
                relation=f"{_HERE}:cut_short",
                marks=("late",),
                data=solution.full,
                minimise=0,
                part="C",
                tasks=(solution.task,),
                expected="room for further reads, or a limit stated to the agent",
                observed=f"{way.ops[late[0]].name or 'the answer'} is refused",
                teaches="to act without looking",
            )
            return


@relation
def cut_short(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a solution step is refused after more reads, all of which worked, and the reward is lost."""
    cut, whole = records
    place = next(at for at, op in enumerate(cut.ops) if op.mark == "late")
    worked = not any(seen.is_error for seen in whole.seen[1:-1]) and not any(
        seen.is_error for seen in cut.seen[1:place]
    )
    first, second = number(cut.at("score")), number(whole.at("score"))
    full = float(evidence.data)
    lost = first is None or first < full - 1e-9
    return worked and cut.at("late").is_error and lost and second is not None and second >= full - 1e-9


# --- one solution for all ---


@check("x.one_for_all", "unsolvable", needs=("oracle", "tasks"), value=78)
def one_for_all(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no single sequence of calls solves all tasks of different wording."""
    there = solution_runs(ctx)
    different = {solution_run.prompt: solution_run for solution_run in there}
    if len(different) < 6:
        raise ctx.not_checked("fewer than six tasks have different prompts")
    some = list(different.values())[:: max(1, len(different) // 6)][:6]
    probes = [solves(solution_run.task, some[0].ops) for solution_run in some]
    ctx.count_comparisons(len(probes))
    paid = [number(record.at("score")) for record in ctx.play_all(probes)]
    if all(
        amount is not None and amount >= solution_run.full - 1e-9
        for amount, solution_run in zip(paid, some, strict=True)
    ):
        yield ctx.finding(
            "one and the same sequence of calls is paid in full in tasks that ask for different things",
            *probes,
            relation="pays",
            marks=("score",),
            data=min(solution_run.full for solution_run in some),
            minimise=0,
            part="T",
            tasks=[solution_run.task for solution_run in some],
            expected="that what is asked for matters",
            observed=paid,
            teaches="one answer for every task",
        )
