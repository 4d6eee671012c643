"""Checks for solutions that no agent can follow: a read refused in one task alone, a call outside its schema.

Both are paid in full, since the verifier checks neither the results of reads nor the form of calls. Siblings show that
a refusal is not part of the task; the schema shows which calls an agent that follows it can never send.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Probe, Record, number, reset, score
from quintain.audit.kernel.registry import relation

from ._reward_acts import only_reads, submits
from ._unsolv_runs import SolutionRun, decimal, kinds

_LEAST = 4
"""Siblings in which a look must work."""
_HERE = "quintain.audit.checks._unsolv_refused"


# --- looks that are refused ---


@check("x.refused_look", "unsolvable", needs=("oracle", "tasks", "tools"), value=80)
def refused_look(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each read of the solution works, as in sibling tasks."""
    for family in kinds(ctx):
        if len(family) <= _LEAST:
            continue
        ctx.count_comparisons(len(family))
        for place, op in enumerate(family[0].ops):
            refused = [solution_run for solution_run in family if solution_run.said[place].is_error]
            works = [
                solution_run for solution_run in family if not any(result.is_error for result in solution_run.said)
            ]
            if only_reads(ctx, op) and refused and len(works) >= max(_LEAST, 3 * len(refused)):
                solution_run = refused[0]
                if _says_alike(solution_run, works) and _matters(solution_run, place):
                    yield _missing(ctx, solution_run, place, refused=refused, works=works)
                    return


def _says_alike(solution_run: SolutionRun, siblings: Sequence[SolutionRun]) -> bool:
    """True if the answer has the form of its siblings' answers, so that it does not report an absence."""
    forms = Counter(_form(other_solution_run) for other_solution_run in siblings)
    return len(forms) == 1 and _form(solution_run) in forms and _form(solution_run) != ""


def _form(solution_run: SolutionRun) -> str:
    """Returns the form of the solution's final answer; empty where it might as well be "none"."""
    last = solution_run.ops[-1]
    if last.do != "answer" and not submits(last):
        return "acts"
    values = [last.value] if last.do == "answer" else list(last.value.values())
    if len(values) != 1 or not isinstance(values[0], str | int | float):
        return ""
    as_number = decimal(values[0])
    if as_number is not None:
        return "number" if as_number else ""
    parts = re.split(r"[,;>]", str(values[0]))
    return f"{len(parts)} parts" if len(parts) > 1 else ""


def _matters(solution_run: SolutionRun, place: int) -> bool:
    """True if no other action of the solution on the same thing works; else the read was redundant."""
    asked = {str(value) for value in solution_run.ops[place].value.values()}
    return not any(
        op.do == "call"
        and at != place
        and asked & set(map(str, op.value.values()))
        and not solution_run.said[at].is_error
        for at, op in enumerate(solution_run.ops)
    )


def _missing(
    ctx: AuditContext,
    solution_run: SolutionRun,
    place: int,
    *,
    refused: Sequence[SolutionRun],
    works: Sequence[SolutionRun],
) -> Finding | None:
    op = solution_run.ops[place]
    acts = _form(solution_run) == "acts"
    return ctx.finding(
        f"what the solution reads by {op.name} is not there, and its answer is paid all the same",
        *(_looking(walked_run, place) for walked_run in (solution_run, *works[:3])),
        relation=f"{_HERE}:is_missing",
        marks=("look", "score"),
        data=solution_run.full,
        minimise=0,
        part="T",
        severity="warning" if acts else "error",
        at_most="likely" if acts else "proven",
        tasks=[walked_run.task for walked_run in refused],
        expected=f"{op.name}({op.value}) works, as in {len(works)} other tasks of this kind",
        observed=solution_run.said[place].raised or solution_run.said[place].value,
        teaches="to guess",
    )


def _looking(solution_run: SolutionRun, place: int) -> Probe:
    ops = [op.marked("look") if at == place else op for at, op in enumerate(solution_run.ops)]
    return Probe((reset(solution_run.task), *ops, score()))


@relation
def is_missing(records: Sequence[Record], evidence: Evidence) -> bool:
    """The look is refused in the first task, and works in the others; the solutions of all are paid."""
    first, *other_records = records
    paid = [number(record.at("score")) for record in records]
    full = paid[0] is not None and paid[0] >= float(evidence.data) - 1e-9
    there = not any(record.at("look").is_error for record in other_records)
    return full and first.at("look").is_error and there and all(amount is not None and amount > 0 for amount in paid)


# --- calls that no schema allows ---
