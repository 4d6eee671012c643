"""Hidden values found by a walk through a task, each confirmed in a play of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_list, leaves
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, ask, number, reset, score
from quintain.audit.kernel.registry import relation

from ._leak_explore import GRADERS, Hit, evened, finds, flat, is_graders, read_text, stands_in
from ._leak_places import TEACHES
from ._leak_reading import unique
from ._leak_secrets import folded, spelled, text_of
from ._same_scripts import bare, seems_to_read

EXPLORE = "quintain.audit.checks._leak_explore:explore"
WHY = {
    "named": "in a file of a grader", "error": "in an error", "asked": "to whoever asks for it",
    "beyond": "though it stands nowhere in the world", "whole": "ready to be handed in",
    "after": "once something else was done",
}  # fmt: skip


@relation
def shows_beyond(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if hidden data is readable, plain or encoded, and was in no prompt, call or world."""
    record, needle = records[0], str(evidence.data["needle"])
    if needle not in {folded(spelled(leaf)) for _, leaf in leaves(record.at("hidden").value)}:
        return False
    others = (pair for other in records[1:] for pair in zip(other.ops, other.seen, strict=False))
    if any(op.mark == "read" and finds(read_text(seen), needle) is not None for op, seen in others):
        return False
    is_named = bool(evidence.data.get("is_named"))  # Then a world that has it as a file may not show it.
    for op, seen in zip(record.ops, record.seen, strict=False):
        text = read_text(seen)
        if op.mark == "read":
            is_lost = is_named and not is_graders(text)
            if needle in evened(flat(op.value)) or finds(text, needle) is None or is_lost:
                return False
            break
        known = text if op.do in ("reset", "prompt") else flat(seen.value) if op.do == "state" and not is_named else ""
        is_known = stands_in(needle, evened(known)) or stands_in(needle, known.casefold())
        if is_known or needle in evened(flat(op.value)) or (is_named and GRADERS.search(known.casefold())):
            return False
    full = evidence.data.get("paid")
    return full is None or (number(record.at("score")) or 0.0) >= float(full) - 1e-9


def is_special(needle: str) -> bool:
    """True if a value stands in no other text by accident: long, of several words, or a number of some size."""
    marks = len(re.findall(r"\W", needle))
    return (any(map(str.isdigit, needle)) and len(needle) >= 4) or (len(needle) >= 12 and marks >= 2)


def walked(ctx: AuditContext, tasks: Sequence[str]) -> Iterator[tuple[str, Hit]]:
    """Yields the hits of walks through tasks, each in the first task that showed it."""
    writers = {name for name in ctx.discovery.writers if not seems_to_read(ctx, name)}  # A read may be logged.
    bases: dict[str, list[Any]] = {}
    for op in unique([known.op for known in ctx.discovery.calls]):
        bases.setdefault(op.name, []).append(op.value)
    tools = [
        {"name": tool.name, "properties": tool.properties, "required": list(tool.required)}
        for tool in ctx.about.tools[:60]
    ]
    # In an invisible world, calls that end an episode look like reads; submitting is not a read.
    last = {ops[-1].name for task in tasks if (ops := ctx.oracle(task)) and ops[-1].do == "call"}
    budget = ctx.attribute("budget")
    is_native = isinstance(budget, int)  # Its calls cost ten times those of a plain subject.
    request = {
        "tools": tools, "bases": bases,
        "declared": evened("\n".join(text_of(msgspec.to_builtins(tool)) for tool in ctx.about.tools)),
        "chunk": max(4, budget - 3) if is_native else 300, "share": 0.3 if is_native else 1.0,
    }  # fmt: skip
    probes: list[Probe] = []
    for task in tasks:
        oracle = msgspec.to_builtins(list(map(bare, ctx.oracle(task) or ())))
        value = request | {"task": task, "oracle": oracle, "writers": sorted(writers | last)}
        probes.append(Probe((ask(EXPLORE, value),)))
    seen: set[tuple[str, str, str]] = set()
    for task, record in zip(tasks, ctx.play_all(probes), strict=True):
        found = record.at("ask").value
        ctx.count_comparisons()
        for hit in msgspec.convert(found if is_list(found) else [], list[Hit]):
            key = (hit.op.name or hit.op.do, hit.code or hit.why, ".".join(hit.path))
            if key not in seen:
                seen.add(key)
                yield task, hit


def told_again(ctx: AuditContext, task: str, hit: Hit, *, other_values: Sequence[str]) -> Finding | None:
    """Returns a finding for a hit that an agent can use: a reader can still earn the reward."""
    oracle = ctx.oracle(task) or ()
    before = [bare(op) for op in oracle[: hit.late]]
    world = [Op("state", mark="world")] if "state" in ctx.offers else []
    prompt = [Op("prompt", name=task, mark="prompt")] if "prompt" in ctx.offers else []
    again = world if before else []  # What the solution has just written is not a secret.
    start = (Op("hidden", name=task, mark="hidden"), reset(task, mark="start"), *prompt, *world, *before, *again)
    head = (*start, *hit.then)
    read = hit.op.marked("read")
    data: dict[str, Any] = {"needle": hit.needle} | ({"is_named": True} if hit.why == "named" else {})
    probe = Probe((*head, read))
    other_task = next((candidate for candidate in other_values if candidate != task), "")
    needs_other = not (hit.code or is_special(hit.needle))
    if needs_other and not other_task:
        return None
    beside = [Probe((reset(other_task), *before, *hit.then, read))] if needs_other else []
    beside += [Probe((reset(task), *before, read))] if hit.then else []
    relation = f"{__name__}:shows_beyond"
    solved, is_last = ctx.solution_score(task), bool(oracle) and hit.op.name == oracle[-1].name
    if solved and (hit.then or hit.why in ("error", "asked") or is_last or hit.op.name in ctx.discovery.writers):
        probe, data = Probe((*head, read, *map(bare, oracle[hit.late :]), score())), {**data, "paid": solved}
    if not ctx.holds([probe, *beside], Evidence(relation, ("hidden", "read"), data)):
        return None
    how = f"in {hit.code}" if hit.code else WHY[hit.why]
    text = read_text(ctx.play_probe(Probe((*head, read))).at("read"))
    return ctx.finding(
        f"{hit.op.name} shows the hidden {'.'.join(hit.path) or 'answer'} {how}", probe, *beside, relation=relation,
        marks=("hidden", "read"), data=data, minimise=20, tasks=[task], expected="nothing of what the task hides",
        observed=text[:600], teaches=TEACHES,
    )  # fmt: skip
