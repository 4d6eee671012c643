"""Class 4: checks that no fault of a backend or a verifier becomes a plain answer or a reward.

Every fault that the subject can inject meets every tool and the verdict, each beside the same run without the fault: an
answer that differs and is not an error was made up, and a reward that differs pays for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Record

from ._drift_nested import unread
from ._silent_faults import MARKS, Cell, accepted, calls, hides, lost, verdicts
from ._silent_limits import limits, misspelt, unknown_tasks, unread_reference, user_faults
from ._silent_sums import nothing
from ._silent_unknown import unknown_names

TOOLS, MAX_FINDINGS = 80, 6
"""Tools of which each meets every fault (of more, so many, spread evenly); findings, since more say nothing new."""
TITLES = {
    "defaults": "{name} gives an ordinary answer when its backend fails ({fault})",
    "loses": "{name} says that it is done when its backend fails ({fault}), and has not done it",
    "lingers": "{name} goes on giving a wrong answer after its backend failed ({fault})",
    "pays": "there is a score though the verifier met a fault ({fault}), on a world that is {name}",
}


@check("x.tool_faults", "silent_default", needs=("inject", "tools", "call", "tasks"), value=79)
def tool_faults(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a fault of a backend is an error to the tool's caller, never an answer."""
    tools = [tool.name for tool in ctx.about.tools if ctx.discovery.of(tool.name) or ctx.variations.of(tool.name)]
    faults = accepted(ctx)
    yield from _hidden(ctx, calls(ctx, tools[:: -(-len(tools) // TOOLS) or 1]), faults, most=MAX_FINDINGS)


@check("x.verifier_faults", "silent_default", needs=("inject", "tasks"), value=79)
def verifier_faults(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a fault of the verifier leaves no score, neither a low nor a high one."""
    faults = accepted(ctx)
    for task in ctx.sample_tasks(3):
        for finding in _hidden(ctx, verdicts(ctx, task), faults, most=1):
            yield finding
            if finding is not None:
                return


def _hidden(ctx: AuditContext, cells: Sequence[Cell], faults: Sequence[str], *, most: int) -> Iterator[Finding | None]:
    reported: set[str] = set()
    for cell, record in zip(cells, ctx.play_all([cell.sweep(ctx, faults) for cell in cells]), strict=True):
        ctx.count_comparisons(len(faults))
        found = [(way, fault) for fault in faults if (way := _way(ctx, record, fault))]
        if found and cell.name not in reported and len(reported) < most:
            finding = _finding(ctx, cell, found, record=record)
            reported |= {cell.name} if finding is not None else set()
            yield finding


def _way(ctx: AuditContext, record: Record, fault: str) -> str:
    """Returns the way in which the fault is hidden, or an empty string."""
    ways = (way for way in MARKS if hides([record], Evidence("", data=[way, fault], volatile=ctx.volatile)))
    return next(ways, "")


def _finding(ctx: AuditContext, cell: Cell, found: Sequence[tuple[str, str]], *, record: Record) -> Finding | None:
    way, fault = min(found, key=lambda one: list(MARKS).index(one[0]))
    mark = "call" if way == "loses" else MARKS[way]
    got, true = record.at(f"{mark} {fault}").value, record.at(mark).value
    observed: dict[str, Any] = {"score" if way == "pays" else "answer": got, "faults": [name for _, name in found]}
    if way == "loses":
        observed["missing"] = lost([record], Evidence("", data=[way, fault], volatile=ctx.volatile))[:5]
    pays = way == "pays"
    return ctx.finding(
        TITLES[way].format(name=cell.name, fault=fault), *cell.pair(fault), data=[way, fault], minimise=0,
        relation=f"{hides.__module__}:{hides.__name__}", marks=(f"inject {fault}", f"{mark} {fault}"),
        expected={"no score" if pays else "an error": fault, "without the fault": true}, observed=observed,
        teaches="a reward that was never measured" if pays else "that a failed look is a fact about the world",
        part="V" if pays else "S",
    )  # fmt: skip


__all__ = [
    "limits", "misspelt", "nothing", "tool_faults", "unknown_names", "unknown_tasks", "unread",
    "unread_reference", "user_faults", "verifier_faults",
]  # fmt: skip
