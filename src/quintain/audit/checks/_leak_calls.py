"""Checks for calls of the solution spelled out to the agent: as a declared example, or named in an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from quintain.audit.facts.data import leaves
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, reset
from quintain.audit.kernel.registry import relation

from ._leak_explore import flat, read_text, stands_in
from ._leak_places import TEACHES
from ._leak_reading import unique
from ._leak_secrets import folded, spelled

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
    is_visible = any(op.mark == "state" for op in record.ops)
    said, world = flat(read.value), flat(record.at("state").value) if is_visible else ""
    name = str(step["name"]).lower()
    is_new = any(candidate not in said for candidate in wanted) and name not in said and not stands_in(name, world)
    return bool(wanted) and is_new and stands_in(name, text) and all(stands_in(candidate, text) for candidate in wanted)


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
    oracle, writers = [op.marked("") for op in ctx.oracle(task) or ()], ctx.discovery.writers
    last = len(oracle) - 1
    writes = [at for at, op in enumerate(oracle) if op.do == "call" and (op.name in writers or at == last)]
    other_task = next((task_id for task_id in ctx.tasks if task_id != task), "")
    if not writes or not other_task:
        return
    ctx.count_comparisons()
    own = {op.name for op in oracle}
    ops = unique([known.op for known in ctx.discovery.reads() if known.op.name not in own])[:30]
    ops += unique([op for op in oracle if op.name not in writers])[:4]
    names = {oracle[place].name for place in writes if "_" in oracle[place].name}
    seen = ctx.play(reset(task), *ops).seen[1:]
    telling = [op for op, each in zip(ops, seen, strict=False) if any(name in read_text(each) for name in names)]
    known = Op("oracle", name=task, mark="oracle")
    state = [Op("state", mark="state")] if "state" in ctx.offers else []
    declared = [Probe((known, reset(text), Op("tools", mark="read"))) for text in (task, other_task)]
    answered = [(op.name, [Probe((known, reset(task), *state, op.marked("read")))]) for op in telling]
    for what, probes in (("the tools' declaration", declared), *answered):
        records, relation = ctx.play_all(probes), declares if probes is declared else answers
        place = next((place for place in writes if relation(records, Evidence("", data=place))), None)
        if place is not None:
            result = records[0].at("read")
            text = "\n".join(_declared_sentences(result)) if probes is declared else read_text(result)
            yield ctx.finding(
                f"{what} spells out a call that solves the task", *probes, relation=f"{__name__}:{relation.__name__}",
                marks=("oracle", "read"), data=place, minimise=0, part="H" if probes is declared else "S",
                expected="nothing of the solution", observed=text[-600:], teaches=TEACHES,
            )  # fmt: skip
