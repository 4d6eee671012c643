"""Verdicts on ends of episodes: asked for many times, after a pause, and in processes of other kinds."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import HOME, Op, Probe, ProcessContext, Record
from quintain.audit.kernel.registry import relation

from ._same_scripts import elsewhere, marked
from ._same_splits import by_cause, split
from ._same_splits import wavers as wavering

TEACHES = "noise: the same action is paid at one time and not at another"
SCORE = Op("score", mark="step score")
PAUSE_S = 0.3
LATER = (Op("wait", value=PAUSE_S, mark="pause"), Op("score", mark="later"))
TIMES = 59
"""Verdicts on one end in a proof: they find a flake of 5 % with a chance of 95 %."""
_ORDERING = ("list", "tuple", "sum", "next", "iter", "enumerate")


class Ending(NamedTuple):
    """An episode up to its score: its task, a word for how it went, and its ops."""

    task: str
    how: str
    ops: tuple[Op, ...]


@relation
def wavers(records: Sequence[Record], evidence: Evidence) -> bool:
    """The verdicts on one end are not all equal."""
    return len({*verdicts(records[0], evidence.marks)}) > 1


def verdicts(record: Record, marks: Sequence[str]) -> list[str]:
    """Returns the verdicts at these marks, one per request; an exception counts as a verdict."""
    found: list[str] = []
    for op in record.ops:
        seen = record.at(op.mark) if op.mark in marks else None
        if seen is not None and seen.how not in ("hung", "absent"):
            raised = seen.raised.partition(":")[0]
            found += map(repr, [raised] if not seen.fine else seen.value if op.times > 1 else [seen.value])
    return found


def unsteady(ctx: AuditContext, ends: Sequence[Ending], times: int, *, later: Sequence[Op] = ()) -> Iterator[Finding]:
    """Yields a finding for the first end whose verdicts are not all equal, at once or after a pause."""
    scripts = [(*end.ops, Op("score", times=times, mark=f"{place}"), *later) for place, end in enumerate(ends)]
    # Chance continues within a process, and begins anew in each: without a pause one process plays all ends.
    probes = [Probe(ops) for ops in scripts] if later else [Probe(tuple(op for ops in scripts for op in ops))]
    records = ctx.play_all(probes)
    ctx.count_comparisons(len(ends) * (times + 1))
    for place, end in enumerate(ends):
        record = records[place if later else 0]
        values = verdicts(record, (f"{place}", "later"))
        changes = sum(first != second for first, second in pairwise(values))
        waits = f"the verdict on a {end.how} episode is another one {PAUSE_S} s later"
        ways: list[tuple[str, tuple[Op, ...], int]] = []
        if changes == 1 and later:  # Time does that, too, and on a busy machine it passes while the score is asked for.
            ways.append((waits, (Op("score", mark="many"), *later), 1))
        if wavers([record], Evidence("", (f"{place}",))):
            title = f"one and the same {end.how} episode is not always scored alike"
            ways.append((title, (Op("score", times=TIMES, mark="many"),), 3))
        elif changes:
            ways.append((waits, (Op("score", times=times, mark="many"), *later), 1))
        for title, asked, tries in ways:
            finding = ctx.finding(
                title, Probe((*end.ops, *asked)), relation=f"{__name__}:wavers",
                marks=tuple(op.mark for op in asked if op.do == "score"), tries=tries, minimise=10, part="V",
                tasks=(end.task,), expected=f"{len(values)} equal verdicts",
                observed="; ".join(f"{values.count(kind)} x {kind}" for kind in dict.fromkeys(values)), teaches=TEACHES,
            )  # fmt: skip
            if finding is not None:
                yield finding
                return


def by_process(
    ctx: AuditContext, ends: Sequence[Ending], contexts: Sequence[ProcessContext]
) -> Iterator[Finding | None]:
    """Yields findings for verdicts that depend on the process, with the one difference that causes it."""
    scripts = [(*marked(end.ops), SCORE) for end in ends]
    ops = tuple(
        op.moved(f"session {place}").marked(f"{place}" if op is SCORE else "")
        for place, script in enumerate(scripts)
        for op in script
    )
    usual, *records = ctx.play_all([Probe(ops, context) for context in (HOME, *contexts)])
    ctx.count_comparisons(len(ends) * len(contexts))
    found: set[str] = set()
    for context, record in zip(contexts, records, strict=True):
        for place, (task, how, _) in enumerate(ends):
            gap = split(usual, record, [f"{place}"], volatile=ctx.volatile)
            if gap is None or how in found or wavering(ctx, scripts[place], SCORE.mark):
                continue
            gap = msgspec.structs.replace(gap, op=SCORE)
            fields: dict[str, Any] = {"part": "V", "tasks": (task,), "teaches": TEACHES}
            title = f"the verdict on a {how} episode"
            finding = by_cause(ctx, title, scripts[place], gap=gap, context=context, **fields)
            found |= {how} if finding is not None else set()
            yield finding


def contexts(ctx: AuditContext) -> tuple[ProcessContext, ...]:
    """Returns processes that differ in everything, and further hash seeds if the subject goes through a set."""
    files = {source.path for source in ctx.sources if source.path.endswith(".py") and Path(source.path).is_file()}
    trees = (ast.parse(Path(path).read_text("utf-8"), path) for path in sorted(files))
    is_ordered = any(_orders_a_set(node) for tree in trees for node in ast.walk(tree))
    return (*elsewhere(), *(ProcessContext(hash_seed=seed) for seed in (3, 4, 5, 6, 7) if is_ordered))


def _orders_a_set(node: ast.AST) -> bool:
    """True if a loop or a call depends on the order of a set, or a call on a hash."""
    if isinstance(node, ast.For | ast.comprehension):
        return _is_set(node.iter)
    if not isinstance(node, ast.Call):
        return False
    text = ast.unparse(node.func)
    orders = text in _ORDERING or text.endswith(".join")
    return text == "hash" or (orders and bool(node.args) and _is_set(node.args[0]))


def _is_set(node: ast.expr) -> bool:
    is_call = isinstance(node, ast.Call) and ast.unparse(node.func) in ("set", "frozenset")
    return is_call or isinstance(node, ast.Set | ast.SetComp)
