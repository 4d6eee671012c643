"""Checks for leaked verdicts: a field of an answer that is the score, under any name.

A solution is played whole, without one of its calls, and with unrelated damage. A value that depends on all of that is
not data of the world: it is the verifier's result. An agent that reads it can retry until it is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from quintain.audit.facts.data import is_dict, is_list, is_number, leaves, parsed
from quintain.audit.facts.generate import Values
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, call, number, reset, score
from quintain.audit.kernel.registry import relation

from ._data_tables import is_id
from ._leak_reading import unique
from ._same_scripts import bare

TEACHES = "to retry until the environment reports success"
NAMED = re.compile(
    r"scor|reward|point|progress|verdict|grade|check|pass|correct|right|solved|complete|done|goal|success"
)
"""Words in a declaration stating that the agent learns its progress."""
LATE = 24
"""Reads at each end."""


def scalars(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields scalars with their paths; texts that are not data yield their words."""
    if is_dict(value):
        for key, item in value.items():
            yield from scalars(item, f"{path}/{key}")
    elif is_list(value):
        yield path, None
        for place, element in enumerate(value[:30]):
            yield from scalars(element, f"{path}/{place}")
    else:
        yield path, value


def answered(seen: OpResult) -> dict[str, Any]:
    """Returns the values read by place; an error's text has a place of its own."""
    if seen.how:
        return {"(error)": seen.raised.partition(":")[2]}
    return dict(scalars(parsed(seen.value)))


@relation
def tells(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if one place of an answer has one value wherever the score is full, and others elsewhere."""
    want: dict[str, Any] = evidence.data
    good: list[Any] = []
    bad: list[Any] = []
    for record in records:
        paid, there = number(record.at("score")), answered(record.at("read"))
        if paid is None or want["place"] not in there:
            return False
        (good if paid >= float(want["full"]) - 1e-9 else bad).append(there[want["place"]])
        if any(op.mark == "again" for op in record.ops) and (number(record.at("again")) or 0) < want["full"] - 1e-9:
            return False
    return len(good) >= 1 and len(bad) >= 3 and _splits(good, bad)


def _splits(good: Sequence[Any], bad: Sequence[Any]) -> bool:
    """True if all good values are one and no bad one equals it: booleans, numbers up to 1, or one text for all."""
    if len({repr(item) for item in good}) != 1 or any(type(item) is not type(good[0]) for item in bad):
        return is_number(good[0]) and all(is_number(item) and item < good[0] for item in bad) and _is_score(good, bad)
    if isinstance(good[0], bool):
        return good[0] not in bad
    if is_number(good[0]):
        return _is_score(good, bad)
    return isinstance(good[0], str) and good[0] not in bad and len({*bad}) == 1


def _is_score(good: Sequence[Any], bad: Sequence[Any]) -> bool:
    return good[0] in (1, 100) and all(item < good[0] for item in bad)


Play = tuple[str, tuple[Op, ...]]
"""A way to play a task before something is read: "right", a "part" of the solution, or right with "damage"."""


def plays(ctx: AuditContext, task: str) -> list[Play]:
    """The solution, the solution without one of its writes, and with a write of another kind in front of it."""
    oracle = tuple(map(bare, ctx.oracle(task) or ()))
    writes = [place for place, op in enumerate(oracle) if op.name in ctx.discovery.writers]
    parts = [(*oracle[:place], *oracle[place + 1 :]) for place in writes[: 2 if is_costly(ctx) else 4]]
    damaged = [(op, *oracle) for op in _harm(ctx, task, oracle)]
    return [("right", oracle), *(("part", ops) for ops in (*parts, ())), *(("damage", ops) for ops in damaged)]


def is_costly(ctx: AuditContext) -> bool:
    """True if a call passes through a whole framework, at ten times the cost of a plain subject's call."""
    return isinstance(ctx.attribute("budget"), int)


def _harm(ctx: AuditContext, task: str, oracle: Sequence[Op]) -> Iterator[Op]:
    """Writes to what the task does not speak of: a call that works, with other ids out of this task's world."""
    values = Values()
    if "state" in ctx.offers:
        values.take(ctx.play(reset(task), Op("glance", mark="world")).at("world").value)
    used = {str(leaf) for op in oracle for _, leaf in leaves(op.value)}
    known = {known_call.op.name: known_call.op for known_call in ctx.discovery.writes() if is_dict(known_call.op.value)}
    for name, op in list(known.items())[: 4 if is_costly(ctx) else 6]:
        other_fields = {key: [value for value in values.of(key) if str(value) not in used][:5] for key in op.value}
        other_fields = {key: there for key, there in other_fields.items() if there and is_id(key, [])}
        for turn in range(2 if other_fields and not is_costly(ctx) else 1):
            swapped = {key: there[turn % len(there)] for key, there in other_fields.items()}
            yield call(name, {**op.value, **swapped})


def verdicts(ctx: AuditContext, task: str, looked: set[str]) -> Iterator[Finding | None]:
    """Calls whose answer depends on the score, in one task; tools that were looked at in another are left out."""
    full, own = ctx.solution_score(task), [bare(op) for op in ctx.oracle(task) or () if op.do == "call"]
    if not full or not own:
        return
    writers = set(ctx.discovery.writers)
    known = [step for step in (*own, *(known.op for known in ctx.discovery.reads())) if step.name not in writers]
    reads = [op for op in unique(known) if op.name not in looked][:LATE]
    again = [op for op in own if op.name in writers and op.name not in looked]
    each = list({op.name: op for op in again}.values())
    batches = [batch for batch in (reads, *([op] for op in (each[-1:] if is_costly(ctx) else each))) if batch]
    looked |= {op.name for batch in batches for op in batch}
    every = plays(ctx, task)
    records = ctx.play_all([Probe((reset(task), *ops, *batch, score())) for batch in batches for _, ops in every])
    ctx.count_comparisons(len(batches))
    for start, batch in zip(range(0, len(records), len(every)), batches, strict=True):
        for place, op in enumerate(batch):
            rows: list[PlayedCall] = []
            for (kind, ops), record in zip(every, records[start : start + len(every)], strict=True):
                paid, at = number(record.at("score")), 1 + len(ops) + place
                if paid is not None and at < len(record.seen):
                    rows.append(PlayedCall(kind, ops, paid >= full - 1e-9, answered(record.seen[at])))
            for where in _telling(rows):
                yield _alone(ctx, task, op, where=where, full=full, rows=rows)


class PlayedCall(NamedTuple):
    """A play, whether it was paid in full, and what one call behind it answered."""

    kind: str
    ops: tuple[Op, ...]
    is_paid: bool
    shown: dict[str, Any]


def _telling(rows: Sequence[PlayedCall]) -> Iterator[str]:
    """Places at which what was read splits as the scores do, damage and all."""
    for where in sorted({where for row in rows if row.kind == "right" for where in row.shown}):
        there = [row for row in rows if where in row.shown]
        good, bad = ([row.shown[where] for row in there if row.is_paid is paid] for paid in (True, False))
        damaged = [row for row in there if row.kind == "damage" and not row.is_paid]
        if good and len(bad) >= 3 and len(damaged) >= 2 and _splits(good, bad):
            yield where


def _alone(
    ctx: AuditContext, task: str, op: Op, *, where: str, full: float, rows: Sequence[PlayedCall]
) -> Finding | None:
    """A finding: a few plays of each kind, the call alone behind it, and the score."""
    probes = [Probe((reset(task), *row.ops, op.marked("read"), score())) for row in rows]
    left = {"right": 1, "part": 2, "damage": 2}
    kept: list[Probe] = []
    for row, probe, record in zip(rows, probes, ctx.play_all(probes), strict=True):
        paid = number(record.at("score"))
        is_of_use = paid is not None and (row.kind == "right" or paid < full - 1e-9)
        if is_of_use and where in answered(record.at("read")) and left[row.kind]:
            left[row.kind] -= 1
            kept.append(probe)
    return None if left["right"] else _finding(ctx, op.name, where, probes=kept, data={"place": where, "full": full})


def _finding(
    ctx: AuditContext, tool: str, where: str, *, probes: Sequence[Probe], data: dict[str, Any]
) -> Finding | None:
    declared = next((spec for spec in ctx.about.tools if spec.name == tool), None)
    is_said = declared is not None and bool(NAMED.search(declared.description.lower()))
    return ctx.finding(
        f"{tool} tells at {where} whether the episode would be paid now", *probes, relation=f"{__name__}:tells",
        marks=("read", "score"), data=data, minimise=0, part="V",
        expected="nothing that depends on what the verifier wants",
        observed="one value where the score is full, another wherever it is not", teaches=TEACHES,
        at_most="likely" if is_said else "proven", severity="warning" if is_said else "error",
    )  # fmt: skip


def _with_words(last: Op, other: Op) -> Op:
    """The last call with the words of another task's, such as a report; without words, that call."""
    said = {name: text for name, text in other.value.items() if isinstance(text, str) and " " in text}
    return call(last.name, {**last.value, **(said or other.value)})


NAMES = re.compile(r"(?:^|[/_])(?:quality|correct|right|scores?|rewards?|passed|verdict|grade|solved|accepted)(?:$|_)")


def submitted(ctx: AuditContext, task: str) -> Iterator[Finding | None]:
    """The last call of a solution, with what other tasks answer: whether it says which is right, and bears more."""
    full, oracle = ctx.solution_score(task), ctx.oracle(task) or ()
    if not full or not oracle or oracle[-1].do != "call":
        return
    *before, last = map(bare, oracle)
    ends = [ops[-1] for text in ctx.sample_tasks(8) if (ops := ctx.oracle(text))]
    wrong = unique([_with_words(last, op).marked("read") for op in ends if op.name == last.name])
    wrong = [op for op in wrong if op.value != last.value][:4]
    if len(wrong) < 3:
        return
    right = Probe((reset(task), *before, last.marked("read"), score()))
    probes = [right, *(Probe((reset(task), *before, op, score(), last, score(mark="again"))) for op in wrong)]
    records = ctx.play_all(probes)
    ctx.count_comparisons()
    for where, value in answered(records[0].at("read")).items():
        data = {"place": where, "full": full}
        is_named = bool(NAMES.search(where)) or (isinstance(value, str) and bool(_JUDGED.search(value.lower())))
        if is_named and tells(records, Evidence("", data=data)):
            yield _finding(ctx, last.name, where, probes=probes, data=data)


_JUDGED = re.compile(r"\b(?:in)?correct\b|\bwrong\b|\bpassed\b|\bverdict\b|\bscore\b|\breward\b")
