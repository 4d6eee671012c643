"""Checks what episodes leave in the process: threads, files, children, memory; and effects of `close` on others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.load import script
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, same
from quintain.audit.kernel.registry import relation

from ._race_memory import episodes

HERE = f"{__name__}:"
WARM, EACH, ROUNDS = 6, 8, 3
"""Episodes before the first look, and between two looks; so many looks after the first."""
HALF = 0.5
"""Leak per episode that counts; a smaller one may be chance."""
MEMORY = 400_000
"""Bytes per episode."""


@relation
def grows(records: Sequence[Record], evidence: Evidence) -> bool:
    """From each look to the next the process holds more by at least so much per episode."""
    steps = growth(records[0], evidence.data["what"])
    return len(steps) == ROUNDS and all(step >= evidence.data["least"] * EACH for step in steps)


def growth(record: Record, what: str) -> list[int]:
    """Returns the growth of a process resource between successive looks."""
    looks = [seen.value for op, seen in zip(record.ops, record.seen, strict=False) if op.do == "resources"]
    held = [look[what] for look in looks if is_dict(look)]
    return [after - before for before, after in itertools.pairwise(held)]


@relation
def leaves(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if processes remain after the subject has closed."""
    return records[0].left > 0


@check("x.resources", "races", needs=("tasks",), value=79)
def resources(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that tens of episodes leave no thread, file or process behind, and that memory does not grow."""
    ways = {"in one session": _episodes(ctx, again=True)}
    if "close" in ctx.offers:
        ways["in sessions that were closed"] = _episodes(ctx, again=False)
    reported: set[str] = set()
    for (words, probe), record in zip(ways.items(), ctx.play_all(list(ways.values())), strict=True):
        for what, least in (("threads", HALF), ("files", HALF), ("processes", HALF), ("memory", MEMORY)):
            ctx.count_comparisons()
            data = {"what": what, "least": least}
            if what == "memory" and not words.endswith("one session"):
                continue  # Whoever plays holds them still: `x.memory` looks at sessions that are dropped.
            if what in reported or not grows([record], Evidence("", data=data)):
                continue
            reported.add(what)
            per = sum(growth(record, what)) / (EACH * ROUNDS)
            yield ctx.finding(
                f"each episode leaves {what} behind, {words}",
                probe,
                relation=f"{HERE}grows",
                data=data,
                minimise=0,
                severity="warning" if what == "memory" else "error",
                at_most="likely" if what == "memory" else "proven",
                expected="as much after the episode as before it",
                observed={f"{what} per episode": round(per, 1)},
                teaches="nothing; the run runs out of resources",
            )
        if record.left and "left" not in reported and "processes" not in reported:
            reported.add("left")
            yield ctx.finding(
                f"processes are left behind, {words}",
                probe,
                relation=f"{HERE}leaves",
                minimise=0,
                expected="none",
                observed={"processes": record.left},
                teaches="nothing; the machine fills up",
            )


def _episodes(ctx: AuditContext, *, again: bool) -> Probe:
    """Episodes with a look every few; `again`: on one instance, else each on its own, closed at its end."""
    scripts = episodes(ctx)
    ops: list[Op] = []
    for number in range(WARM + EACH * ROUNDS):
        if number >= WARM and (number - WARM) % EACH == 0:
            ops.append(Op("resources"))
        on = "a" if again else f"s{number}"
        ops += [op.moved(on) for op in scripts[number % len(scripts)]]
        if not again:
            ops.append(Op("close", on))
    last = () if not again or "close" not in ctx.offers else (Op("close"),)
    return Probe((*ops, Op("resources"), *last))


# --- close ---


@relation
def closes_others(records: Sequence[Record], evidence: Evidence) -> bool:
    """A session does not give what it gives alone when another one is closed meanwhile."""
    beside, alone, again = records
    return any(
        same(alone.at(op.mark), again.at(op.mark), evidence.volatile)
        and not same(beside.at(op.mark), alone.at(op.mark), evidence.volatile)
        for op in alone.ops
        if op.mark
    )


@check("x.close", "races", needs=("close", "tasks"), value=35)
def close(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that closing one session, even twice, does not affect another one."""
    for task in ctx.sample_tasks(2):
        ops = [op.moved("b").marked(f"op {place}") for place, op in enumerate(script(ctx, task))]
        half = len(ops) // 2 + 1
        own_ops = script(ctx, task)[:2]
        closed = Probe((*ops[:1], *own_ops, *ops[1:half], Op("close"), *ops[half:]))
        alone = Probe(tuple(ops))
        records = ctx.play_all([closed, alone, alone])
        ctx.count_comparisons(len(ops))
        if closes_others(records, Evidence("", volatile=ctx.volatile)):
            yield ctx.finding(
                "closing a session changes another one",
                closed,
                alone,
                alone,
                relation=f"{HERE}closes_others",
                minimise=0,
                expected="what it gives alone",
                observed=_broken(records[0]),
                teaches="nothing; sessions break each other",
            )
            return


def _broken(record: Record) -> Any:
    return next((seen.raised for seen in record.seen if seen.raised), "another answer")
