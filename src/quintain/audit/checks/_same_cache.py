"""Answers that belong to another call, and scores of an earlier moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, zip_longest
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, call, reset

from ._same_reads import HERE
from ._same_scripts import SEARCHED, half, marked, other_values, seems_to_read, state_op
from ._same_splits import read
from ._same_walks import NEW, OLD, proved

VARIANTS = 14
"""Ways in which a tool that reads is called."""
LONG = 200
"""Length of a text that shows that something was found."""


# --- scores ---


def scored(acts: Sequence[Op], task: str, mark: str) -> Iterator[tuple[Op, ...]]:
    """An episode in which the score is asked for early: twice, at each step, and after last words that are wrong.

    What is marked is the episode without that.
    """
    first, begin, last = half(acts), reset(task, mark="step 0"), Op("score", mark=mark)
    ask = (Op("score"),)
    rest = marked(acts[len(first) :], tag="step later ")
    yield (begin, *ask, *marked(first, tag="step early "), *ask, *rest, last)
    yield (begin, *(op for step in marked(acts, tag="step each ") for op in (*ask, step)), *ask, last)
    wrong = mistold(acts[-1]) if acts else None
    if wrong is not None:
        before = marked(acts[:-1], tag="step before ")
        yield (begin, *before, wrong.marked("step wrong"), *ask, acts[-1].marked("step right"), last)


def mistold(op: Op) -> Op | None:
    """The same words with other digits, or other letters where there are none: as long, and as many."""
    if op.do == "answer" and isinstance(op.value, str):
        return msgspec.structs.replace(op, value=misspelt(op.value))
    if op.do == "call" and is_dict(op.value):
        texts = {name: misspelt(value) for name, value in op.value.items() if isinstance(value, str)}
        return call(op.name, {**op.value, **texts}) if texts else None
    return None


def misspelt(text: str) -> str:
    """A text with other digits, or backwards where there are none: as long as before."""
    if any(letter.isdigit() for letter in text):
        return "".join(str((int(letter) + 1) % 10) if letter in "0123456789" else letter for letter in text)
    return text[::-1]


# --- keys ---


def variants(ctx: AuditContext) -> dict[str, list[list[Op]]]:
    """Reads by task, a row for each tool: known ones, and those with one argument changed or left out."""
    found: dict[str, list[list[Op]]] = {}
    for tool in ctx.about.tools:
        known = sorted(ctx.discovery.of(tool.name), key=lambda known_call: len(known_call.before))
        row = list(_variants(ctx, tool, [known_call.op.value for known_call in known])) if known else []
        if len(row) > 1 and seems_to_read(ctx, tool.name):
            found.setdefault(known[0].task, []).append([call(tool.name, arguments) for arguments in row[:VARIANTS]])
    return found


def _variants(ctx: AuditContext, tool: ToolSpec, known: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    base = known[0]
    words = [name for name in tool.properties if name.lower() in SEARCHED and "enum" not in tool.properties[name]]
    if words and not _finds(read(ctx.discovery.of(tool.name)[0].seen.value)):
        # A broad search: an empty result does not tell one choice from another.
        base = {name: value for name, value in base.items() if name in tool.required} | {words[0]: "a"}
    # One other value of each parameter, then the next of each: a tool of many parameters is seen in all of them.
    columns = [
        [
            *({**base, name: value} for value in other_values(ctx, tool, name, value=base.get(name))),
            {key: item for key, item in base.items() if key != name},
        ]
        for name in tool.properties
    ]
    swaps = [{**base, first: base[second], second: base[first]} for first, second in combinations(base, 2)]
    fitting = (row for row in swaps if all(fits(row[name], tool.properties.get(name)) for name in row))
    rows = (row for turn in zip_longest(*columns) for row in turn if row is not None)
    found: dict[str, dict[str, Any]] = {}
    for arguments in chain([base], fitting, known[:3], rows):
        if all(need in arguments for need in tool.required):
            found.setdefault(repr(sorted(arguments.items())), arguments)
    yield from found.values()


def _finds(answer: Any) -> bool:
    """True if rows stand in an answer, or a long text."""
    if is_dict(answer):
        return any(map(_finds, answer.values()))
    return bool(answer) if is_list(answer) else isinstance(answer, str) and len(answer) > LONG


def confused(ctx: AuditContext, first: tuple[Op, ...], second: tuple[Op, ...], *, same_session: bool) -> Finding | None:
    """Returns a finding if the second read gives the answer of the first; both follow their own reset.

    For reads of one session, the first one's reset is the second's.
    """
    within = first[0] == second[0] and same_session
    world = (Op(state_op(ctx), mark="step world"),) if state_op(ctx) else ()
    on = "a" if same_session else "b"
    begin, *own = (op.moved(on) for op in (second[0].marked("step 0"), second[1].marked(NEW), *world))
    other = first[-1].marked(OLD)
    ops = (begin, other, *own) if within else (*first[:-1], other, begin, *own)
    both = (Probe(ops), Probe((begin, *own)))
    evidence = Evidence(f"{HERE}mistaken", (OLD, NEW, *(op.mark for op in world)), None, ctx.volatile)
    if not ctx.holds(both, evidence):
        return None
    whose = "with other arguments" if within else "in another task" if same_session else "in another session"
    return proved(ctx, f"{second[1].name} gives the answer that it gave {whose}", both, evidence=evidence, mark=NEW)
