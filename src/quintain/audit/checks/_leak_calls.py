"""Checks for calls of the solution spelled out to the agent: as a declared example, or named in an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, reset
from quintain.audit.kernel.registry import relation

from ._leak_explore import flat, read_text, stands_in
from ._leak_places import TEACHES
from ._leak_reading import unique
from ._leak_secrets import folded, leaves, spelled

LEAST = 3
"""Arguments that must stand together in a declaration."""


@relation
def declares(records: Sequence[Record], evidence: Evidence) -> bool:
    """The declaration in this task, and in no other one, holds most arguments of a call that solves it."""
    wanted = _scalars(records[0], int(evidence.data))
    own_values, other_values = (_declared_sentences(record.at("read")) for record in records[:2])
    new = "\n".join(line for line in own_values if line not in set(other_values))
    there = sum(stands_in(text, folded(new)) for text in wanted)
    return there >= LEAST and there >= len(wanted) / 2


@relation
def answers(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if, before any action, an earlier call by others names a tool of the solution with all its arguments."""
    record = records[0]
    step = record.at("oracle").value[int(evidence.data)]
    wanted, text = _scalars(record, int(evidence.data)), folded(read_text(record.at("read")))
    read = next(op for op in record.ops if op.mark == "read")
    said, world = flat(read.value), flat(record.at("state").value) if _has(record, "state") else ""
    name = str(step["name"]).lower()
    is_new = any(candidate not in said for candidate in wanted) and name not in said and not stands_in(name, world)
    return bool(wanted) and is_new and stands_in(name, text) and all(stands_in(candidate, text) for candidate in wanted)


def _has(record: Record, mark: str) -> bool:
    return any(op.mark == mark for op in record.ops)


def _scalars(record: Record, place: int) -> list[str]:
    """The arguments of a call of the solution, as text."""
    step = record.at("oracle").value[place]
    found = [
        folded(spelled(leaf)) for _, leaf in leaves(step["value"]) if leaf is not None and not isinstance(leaf, bool)
    ]
    return [text for text in dict.fromkeys(found) if len(text) >= 2]


def _declared_sentences(seen: OpResult) -> list[str]:
    """Texts of a declaration, a sentence each, choices left out."""
    texts = [spelled(leaf) for path, leaf in leaves(seen.value) if "enum" not in path]
    return [part for text in texts for part in re.split(r"(?<=[.!?]) |\n", text)]


def shown_calls(ctx: AuditContext, task: str) -> Iterator[Finding | None]:
    """Calls of one task's solution that are spelled out."""
    oracle = ctx.oracle(task) or ()
    writes = [
        place
        for place, op in enumerate(oracle)
        if op.do == "call" and (op.name in ctx.discovery.writers or place == len(oracle) - 1)
    ]
    other_task = next((task_id for task_id in ctx.tasks if task_id != task), "")
    if not writes or not other_task:
        return
    known = Op("oracle", name=task, mark="oracle")
    probes = [Probe((known, reset(text), Op("tools", mark="read"))) for text in (task, other_task)]
    records = ctx.play_all(probes)
    ctx.count_comparisons()
    for place in writes:
        if declares(records, Evidence("", data=place)):
            yield _finding(ctx, "the tools' declaration", place, probes=probes, relation="declares")
            break
    own = {op.name for op in oracle}
    ops = unique([known.op for known in ctx.discovery.reads() if known.op.name not in own])[:30]
    ops += unique([msgspec.structs.replace(op, mark="") for op in oracle if op.name not in ctx.discovery.writers])[:4]
    record = ctx.play(reset(task), *ops)
    for op, seen in zip(ops, record.seen[1:], strict=False):
        for place in writes:
            if "_" not in oracle[place].name or oracle[place].name not in read_text(seen):
                continue
            state = [Op("state", mark="state")] if "state" in ctx.offers else []
            probe = Probe((known, reset(task), *state, op.marked("read")))
            if answers([ctx.play_probe(probe)], Evidence("", data=place)):
                yield _finding(ctx, op.name, place, probes=[probe], relation="answers")
                return


def _finding(ctx: AuditContext, what: str, place: int, *, probes: Sequence[Probe], relation: str) -> Finding | None:
    seen = ctx.play_probe(probes[0]).at("read")
    return ctx.finding(
        f"{what} spells out a call that solves the task",
        *probes,
        relation=f"{__name__}:{relation}",
        marks=("oracle", "read"),
        data=place,
        minimise=0,
        part="H" if relation == "declares" else "S",
        expected="nothing of the solution",
        observed=read_text(seen)[-600:] if relation == "answers" else "\n".join(_declared_sentences(seen))[-600:],
        teaches=TEACHES,
    )
