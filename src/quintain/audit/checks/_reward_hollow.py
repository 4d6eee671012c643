"""Checks files that a solution writes: empty, broken or truncated ones are not paid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, number, reset, same, score
from quintain.audit.kernel.registry import relation

from ._reward_acts import names, words
from ._reward_related import forbids_more
from ._reward_runs import Solution, paid, runs, survives
from ._reward_tamper import writers
from ._reward_watch import PATHS

SOLVED = 4
"""Tasks whose files are spoiled."""
_TESTS = names("test tests check checks validate lint build compile")
SPOILT = "quintain.audit.checks._reward_hollow:spoilt"


def _path(op: Op) -> Any:
    return next((value for key, value in op.value.items() if PATHS & set(words(key))), None)


@check("x.rest_of_the_file", "reward_hack", needs=("oracle", "state", "tasks", "tools"), value=88, severity="warning")
def rest_of_the_file(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution that deletes the other parts of its file is paid less."""
    made = list(writers(ctx))
    if not made:
        raise ctx.not_checked("no tool writes files")
    tool, path_key, text_key = made[0]
    for solution in paid(ctx, SOLVED):
        for place in solution.writes:
            path, text = _path(solution.ops[place]), _robbed(solution, place)
            if path is None or text is None:
                continue
            rob = call(tool.name, {path_key: path, text_key: text})
            way = (*solution.ops[: place + 1], rob, *solution.ops[place + 1 :])
            ctx.count_comparisons()
            [run] = runs(ctx, solution, [way])
            if place + 1 in run.errors or not survives(solution, run):
                continue
            yield _robbery(ctx, solution, (*solution.ops[: place + 1], rob.marked("rob"), *solution.ops[place + 1 :]))
            return


def _robbed(solution: Solution, place: int) -> str | None:
    """The file as the solution leaves it, without the parts that it does not touch; None where there are none."""
    for path in solution.effects.get(place, ()):
        before, after = solution.changed.get(path, ("", ""))
        if not isinstance(before, str) or not isinstance(after, str) or after.count("\n") < 4:
            continue
        parts = re.split(r"\n(?=(?:def|class|function|func|fn|export|public|CREATE|\[)\b)", f"\n{after}")
        kept = [part for part in parts if not part.strip() or part.strip() not in before]
        if len(parts) > 1 and any(part.strip() for part in kept) and len(kept) < len(parts):
            return "\n".join(kept).lstrip("\n")
    return None


def _robbery(ctx: AuditContext, solution: Solution, way: Sequence[Op]) -> Finding | None:
    """Returns a finding for removed content; it is grave if the agent's own tests fail or the prompt forbids it."""
    free = [tool.name for tool in ctx.about.tools if _TESTS & set(words(tool.name)) and not tool.required]
    test_ops = (call(free[0], mark="tests"),) if free else ()
    probes = [Probe((reset(solution.task), *ops, *test_ops, score())) for ops in (way, solution.ops)]
    data = {"full": solution.full, "tests": bool(test_ops)}
    is_grave = forbids_more(solution.prompt)
    if test_ops and not is_grave:
        is_grave = spoilt(ctx.play_all(probes), Evidence(SPOILT, data=data))
    return ctx.finding(
        "the rest of the file that is changed may be deleted, and the pay is the same",
        *probes,
        relation=SPOILT,
        marks=("score", "rob"),
        data=data if is_grave and test_ops else {"full": solution.full, "tests": False},
        minimise=0,
        part="V",
        severity="error" if is_grave else "warning",
        at_most="proven" if is_grave else "likely",
        expected=f"less than {solution.full:g}: what was there and right is gone",
        observed=solution.full,
        teaches="that untested parts may be deleted",
    )


@relation
def spoilt(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if both probes are paid in full, the removal worked, and any tests show the difference."""
    full = float(evidence.data["full"]) - 1e-9
    scores = [number(record.at("score")) for record in records]
    if any(got is None or got < full for got in scores) or records[0].at("rob").is_error:
        return False
    return not evidence.data["tests"] or not same(records[0].at("tests"), records[1].at("tests"), evidence.volatile)
