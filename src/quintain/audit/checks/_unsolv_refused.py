"""Checks for solutions that no agent can follow: a read refused in one task alone, a call outside its schema.

Both are paid in full, since the verifier checks neither the results of reads nor the form of calls. Siblings show that
a refusal is not part of the task; the schema shows which calls an agent that follows it can never send.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, number, reset, score
from quintain.audit.kernel.registry import relation

from ._reward_acts import only_reads, submits
from ._unsolv_runs import SolutionRun, decimal, kinds, solution_runs

_LEAST = 4
"""Siblings in which a look must work."""
_BARRED = "that its schema does not allow"
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


@check("x.solution_in_bounds", "unsolvable", needs=("oracle", "tasks", "tools"), value=82)
def solution_in_bounds(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each call of a solution is one that an agent can make: of an advertised tool, within its schema."""
    specs = {tool.name: tool for tool in ctx.about.tools}
    barred: dict[str, list[tuple[SolutionRun, int]]] = defaultdict(list)
    for solution_run in solution_runs(ctx):
        ctx.count_comparisons()
        for place, op in enumerate(solution_run.ops):
            why = _why(op, specs) if op.do == "call" and not solution_run.said[place].is_error else ""
            if why:
                barred[why].append((solution_run, place))
    for why, found in barred.items():
        solution_run, place = found[0]
        op = solution_run.ops[place]
        ops = [step.marked("call") if at == place else step for at, step in enumerate(solution_run.ops)]
        without = [step for at, step in enumerate(solution_run.ops) if at != place]
        yield ctx.finding(
            f"the solution makes a call that no agent can make: {why}",
            Probe((reset(solution_run.task), Op("tools", mark="tools"), *ops, score())),
            Probe((reset(solution_run.task), *without, score())),
            relation=f"{_HERE}:is_barred",
            marks=("tools", "call", "score"),
            data={"full": solution_run.full, "call": msgspec.to_builtins(op)},
            minimise=0,
            part="T",
            tasks=list(dict.fromkeys(walked_run.task for walked_run, _ in found)),
            expected=specs[op.name].parameters if op.name in specs else sorted(specs),
            observed={"call": op.name, "arguments": op.value},
            teaches="nothing: the paid solution cannot be executed",
        )


def _why(op: Op, specs: dict[str, ToolSpec]) -> str:
    """Returns what bars a call; empty for nothing, or for another spelling of an allowed value."""
    spec = specs.get(op.name)
    if spec is None:
        return f"the tool {op.name} does not exist"
    for key, value in op.value.items():
        schema = spec.properties.get(key)
        if spec.parameters and schema is None and spec.parameters.get("additionalProperties") is False:
            return f"{op.name} has no parameter {key}"
        if is_dict(schema) and not fits(value, schema, spec.parameters) and _is_kept_out(value, schema):
            return f"{op.name} is given a {key} {_BARRED}"
    return ""


def _is_kept_out(value: Any, schema: dict[str, Any]) -> bool:
    """True if a value of the right type is out of bounds, and not just spelled differently from a choice."""
    if schema.get("enum"):
        return str(value).casefold() not in {str(item).casefold() for item in schema["enum"]}
    loose = {key: item for key, item in schema.items() if key in ("type", "anyOf", "oneOf", "$ref")}
    return not is_list(value) and fits(value, loose)


@relation
def is_barred(records: Sequence[Record], evidence: Evidence) -> bool:
    """The call works, and is paid for, and not what lacks it; and it fits no tool that is declared."""
    paid, less = (number(record.at("score")) for record in records)
    full = float(evidence.data["full"])
    declared = records[0].at("tools")
    if paid is None or paid < full - 1e-9 or records[0].at("call").is_error or not declared.fine:
        return False
    specs = {tool.name: tool for tool in msgspec.convert(declared.value, list[ToolSpec])}
    lost = less is None or less < full - 1e-9
    return lost and bool(_why(msgspec.convert(evidence.data["call"], Op), specs))
