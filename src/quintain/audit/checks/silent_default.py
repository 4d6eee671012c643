"""Class 4: checks that no fault of a backend, a verifier or a judge becomes a plain answer or a reward.

Every fault that the subject can inject meets every tool, the verdict and the judge, each beside the same run without
the fault: an answer that differs and is not an error was made up, and a reward that differs pays for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, number, reset, score
from quintain.audit.kernel.registry import relation

from . import _silent_faults as faults
from . import _silent_score as verdicts
from ._drift_nested import unread
from ._silent_agreed import refuse_alike
from ._silent_faults import Cell, accepted, cells, read_sweep
from ._silent_gaps import gaps
from ._silent_limits import effects, limits, misspelt, unknown_tasks
from ._silent_reference import unread_reference
from ._silent_score import World, worlds
from ._silent_static import swallowed
from ._silent_sums import nothing
from ._silent_unknown import unknown_names
from ._silent_user import user_faults

TEACHES = "that a failed look at the world is a fact about the world"
TOOLS = 80
"""Tools of which each meets every fault; of more, so many, spread evenly."""
MAX_FINDINGS = 6
"""Findings of one kind; more of them say nothing new."""


def _accepted(ctx: AuditContext) -> list[str]:
    known = accepted(ctx)
    if not known:
        raise NotChecked("inject() takes none of the faults")
    return known


@check("x.tool_faults", "silent_default", needs=("inject", "tools", "call", "tasks"), value=67)
def tool_faults(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a fault of a backend is an error to the tool's caller, never an answer."""
    known = _accepted(ctx)
    tools = [tool.name for tool in ctx.about.tools if ctx.discovery.of(tool.name) or ctx.variations.of(tool.name)]
    tools = tools[:: -(-len(tools) // TOOLS)] if tools else []
    there = cells(ctx, tools)
    reported: set[str] = set()
    for cell, record in zip(there, ctx.play_all([cell.sweep(ctx, known) for cell in there]), strict=True):
        if cell.known.op.name in reported or len(reported) >= MAX_FINDINGS:
            continue
        found = [(fault, kind) for fault in known if (kind := _kind(ctx, record, fault))]
        ctx.count_comparisons(len(known))
        if found:
            finding = _silent(ctx, cell, found, record=record)
            reported |= {cell.known.op.name} if finding is not None else set()
            yield finding


_KINDS = ("defaults", "loses", "lingers")


def _kind(ctx: AuditContext, record: Record, fault: str) -> str:
    """Returns the kind of failure in this cell, or an empty string."""
    records = read_sweep(record, fault)
    has = {op.mark for op in records[0].ops}
    for name in _KINDS:
        if (name == "loses" and "look" not in has) or (name == "lingers" and "after" not in has):
            continue
        if getattr(faults, name)(records, Evidence("", volatile=ctx.volatile)):
            return name
    return ""


_TITLES = {
    "defaults": "{tool} gives an ordinary answer when its backend fails ({fault})",
    "loses": "{tool} says that it is done when its backend fails ({fault}), and has not done it",
    "lingers": "{tool} goes on giving a wrong answer after its backend failed ({fault})",
}


def _silent(ctx: AuditContext, cell: Cell, found: Sequence[tuple[str, str]], *, record: Record) -> Finding | None:
    kind = next(name for name in _KINDS if any(name == text for _, text in found))
    fault = next(fault for fault, text in found if text == kind)
    mark = "after" if kind == "lingers" else "call"
    faulted, free = read_sweep(record, fault)
    observed: dict[str, Any] = {"answer": faulted.at(mark).value, "faults": [text for text, _ in found]}
    if kind == "loses":
        observed["missing"] = faults.lost((faulted, free), ctx.volatile)[:5]
    return ctx.finding(
        _TITLES[kind].format(tool=cell.known.op.name, fault=fault),
        *cell.pair(fault),
        relation=f"{faults.HERE}{kind}",
        marks=("inject", mark),
        minimise=0,
        expected={"an error": fault, "without the fault": free.at(mark).value},
        observed=observed,
        teaches=TEACHES,
    )


@check("x.verifier_faults", "silent_default", needs=("inject", "tasks"), value=67)
def verifier_faults(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a fault of the verifier leaves no score, neither a low nor a high one."""
    known = _accepted(ctx)
    met: list[World] = []
    is_told = False
    for task in ctx.sample_tasks(3):
        there = worlds(ctx, task)
        ways = [(world, words) for world in there for words in ((False, True) if world.speaks else (False,))]
        records = ctx.play_all([world.sweep(ctx, known, words=words) for world, words in ways])
        for (world, words), record in zip(ways, records, strict=True):
            ctx.count_comparisons(len(known))
            wrong = [fault for fault in known if _pays(ctx, record, fault)]
            is_told = is_told or any(number(record.at(f"score {fault}")) is None for fault in known)
            finding = _paid(ctx, world, wrong, record=record, words=words) if wrong else None
            if finding is not None:
                yield finding
                return
        met += there
    if met and not is_told and verdicts.components_never_move(met):
        yield _used_up(ctx, met, known[0])


def _pays(ctx: AuditContext, record: Record, fault: str) -> bool:
    return verdicts.pays_anyway(read_sweep(record, fault), Evidence("", volatile=ctx.volatile))


def _paid(ctx: AuditContext, world: World, wrong: Sequence[str], *, record: Record, words: bool) -> Finding | None:
    fault = wrong[0]
    return ctx.finding(
        f"there is a score though the verifier met a fault ({fault}), on a world that is {world.name}",
        *world.pair(fault, words=words),
        relation=f"{verdicts.HERE}pays_anyway",
        marks=("inject", "score"),
        minimise=0,
        part="V",
        expected={"no score": None, "without the fault": record.at("score").value},
        observed={"score": record.at(f"score {fault}").value, "faults": list(wrong)},
        teaches="a reward that was never measured",
    )


def _used_up(ctx: AuditContext, there: Sequence[World], fault: str) -> Finding | None:
    """A verdict that meets a fault and hides it, where no world shows by how much it may be wrong."""
    world = there[-1]
    for read in ctx.discovery.reads():
        if read.task != world.task or read.before:
            continue
        next_ = read.op.marked("next")
        head, inject = (reset(world.task), *world.ops), Op("inject", name=fault, mark="inject")
        probes = tuple(
            Probe(tuple(ops))
            for ops in (
                (*head, inject, score(), next_),
                (*head, inject, next_),
                (*head, score(), next_),
            )
        )
        ctx.count_comparisons()
        if verdicts.uses_up(ctx.play_all(probes), Evidence("", volatile=ctx.volatile)):
            return ctx.finding(
                f"the verifier meets a fault ({fault}) and scores as if there had been none",
                *probes,
                relation=f"{verdicts.HERE}uses_up",
                marks=("score", "next"),
                minimise=0,
                part="V",
                severity="warning",
                at_most="likely",
                expected="no score, or a second look that is known to have worked",
                observed="the same score as without the fault, which is used up",
                teaches="a reward that was never measured",
            )
    return None


# --- the judge ---


@check("x.judge_faults", "silent_default", needs=("judge", "tasks"), value=90)
def judge_faults(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a judge whose model does not answer gives no grade."""
    for task in ctx.sample_tasks(3):
        for text in ("42", "I do not know."):
            ctx.count_comparisons()
            op = Op("judge", name=task, value={"answer": text, "raises": "timed out"}, mark="grade")
            probe = Probe((reset(task), op))
            record = ctx.play_probe(probe)
            if grades([record], Evidence("")):
                yield ctx.finding(
                    "the judge gives a grade though its model never answered",
                    probe,
                    relation=f"{__name__}:grades",
                    marks=("grade",),
                    part="V",
                    expected="no grade: None, or an exception",
                    observed=_grade(record.at("grade")),
                    teaches="any behavior while the judge is down",
                )
                return


@relation
def grades(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The model was asked, it raised, and there is a grade."""
    seen = records[0].at("grade")
    asked = seen.value.get("asked") if seen.fine and is_dict(seen.value) else None
    return bool(asked) and _grade(seen) is not None


def _grade(seen: OpResult) -> Any:
    grade: Any = seen.value.get("grade") if is_dict(seen.value) else None
    if is_dict(grade):
        named = [key for key in ("score", "grade", "reward", "value") if key in grade]
        return grade[named[0]] if named else None if grade.get("error") else grade
    return grade


__all__ = [
    "effects",
    "gaps",
    "judge_faults",
    "limits",
    "misspelt",
    "nothing",
    "refuse_alike",
    "swallowed",
    "tool_faults",
    "unknown_names",
    "unknown_tasks",
    "unread",
    "unread_reference",
    "user_faults",
    "verifier_faults",
]
