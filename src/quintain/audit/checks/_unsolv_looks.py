"""Checks that looking around is not penalized: unlike an oracle, an agent must look first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.probe import Op

from ._reward_acts import names, reads_by_name, words
from ._reward_runs import Solution

Severity = Literal["error", "warning", "note"]
_MORE = (1, 3, 12)
"""So many looks more than the solution takes."""
_LOOKS = names(
    "get list search find read show view look lookup fetch describe browse see details info history cat ls grep preview"
)
"""First words of tools whose calls are free by common expectation."""
_UNIT = (
    r"(calls?|steps?|moves?|turns?|actions?|tries|attempts?|guess(es)?|quer(y|ies)|looks?|lookups?|requests?|reads?)"
)
_PRICE = re.compile(
    rf"\b(at most|no more than|within|fewer than|less than|maximum( of)?|max|up to|only|exactly|budget|limit(ed)?)\b"
    rf"[^.]{{0,24}}\b{_UNIT}\b"
    rf"|\b{_UNIT}\b[^.]{{0,40}}\b(costs?|limits?|limited|budget|penal\w*|counts?|counted|reduces?|minus|deducted)\b"
    rf"|\b{_UNIT}\b (that )?(remaining|left|are left)\b"
    rf"|\b(costs?|penal\w*|deduct\w*)\b[^.]{{0,40}}\b{_UNIT}\b"
    rf"|\b(as few|fewest|minimal number|shortest|efficien\w+|do not look|without looking)\b",
    re.IGNORECASE,
)
"""Words stating that looking has a price."""


class Variant(msgspec.Struct, frozen=True):
    """Another way to do the same.

    Attributes:
        said: What is other.
        ops: The way.
        severity, at_most: What it weighs when it is not paid: some of it may be meant.
        least: A pay up to which it weighs so much; where more is paid, it is a warning.
    """

    said: str
    ops: tuple[Op, ...]
    severity: Severity = "warning"
    at_most: str = "likely"
    least: float = float("inf")


def looks(ctx: AuditContext, solution: Solution) -> Iterator[Variant]:
    """The solution with looks that it does not take, before it begins and between its steps."""
    own = [op for place, op in enumerate(solution.ops) if _only_looks(ctx, op) and place not in solution.errors]
    known = [call.op for call in ctx.discovery.calls if call.task == solution.task and _only_looks(ctx, call.op)]
    bare = {(op.name, repr(op.value)): msgspec.structs.replace(op, mark="", on="a") for op in (*own, *known)}
    there = list(bare.values())[:8]
    budget: Any = ctx.attribute("budget")
    calls = sum(op.do == "call" for op in solution.ops)
    has_price = bool(_PRICE.search(" ".join([solution.prompt, *(tool.description for tool in ctx.about.tools)])))
    grave = not has_price and not ctx.attribute("graded")
    for count in _MORE if there else ():
        if isinstance(budget, int) and calls + count > budget:
            break
        more = [there[place % len(there)] for place in range(count)]
        half = (len(solution.ops) + 1) // 2
        yield Variant(
            "more looks than it needs",
            (*more[: count - count // 2], *solution.ops[:half], *more[count - count // 2 :], *solution.ops[half:]),
            "error" if grave else "warning",
            "proven" if grave else "likely",
            solution.floor or 0.0,
        )


def _only_looks(ctx: AuditContext, op: Op) -> bool:
    """True if a call only looks; a table that only such calls write to is a log."""
    if op.name in ctx.declared:
        return op.do == "call" and not ctx.declared[op.name]
    return _is_look(op) and (op.name not in ctx.discovery.writers or _logs(ctx, op.name))


def _logs(ctx: AuditContext, tool: str) -> bool:
    """True if a tool only changes tables that no other kind of tool writes to."""
    acts = {_top(path) for call in ctx.discovery.writes() if not _is_look(call.op) for path in call.changed or ()}
    return all(_top(path) not in acts for call in ctx.discovery.of(tool) for path in call.changed or ())


def _is_look(op: Op) -> bool:
    said: Sequence[str] = words(op.name)
    return reads_by_name(op) and any(word in _LOOKS for word in said)


def _top(path: str) -> str:
    return path.partition("/")[0]
