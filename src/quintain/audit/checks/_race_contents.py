"""Checks odd contents: later calls and the verdict must work with any accepted text.

A text that is stored is read by others later: parsed, counted, matched, formatted. So each text that a tool takes is
made deep, long or full of signs, as far as its schema allows; where the call is accepted, the tools that read follow,
and the score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.generate import fits, valid
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, ask, call, reset
from quintain.audit.kernel.registry import probe_function, relation
from quintain.audit.kernel.relations import breakage

from ._same_scripts import bare, seems_to_read

HERE = f"{__name__}:"
PLACES, READS, MOST = 12, 3, 4
"""Texts of tools that are tried; calls that follow each; findings."""
TRIED = 400
"""Calls in all."""
LONGEST = 20_000
SHORT = (
    "(", "[", "*", "\\", "'", '"', "%", "{}", "{0}", "\u00b2", "\u00bd", "-", ".", ",", "1/0", "1,5", "--5", "1e400",
    "\u0130", "\u0663", "\u200b", "NaN", "0x1F", "5 5", "-0", "1_000", "\u22125", "null", "[]", '{"a": 1}',
)  # fmt: skip
"""Texts that are special when parsed as a number, a pattern, a format or data."""


def deep(size: int) -> Iterator[str]:
    """Texts of at most so many letters that are nested or chained as deeply as that allows."""
    half = size // 2
    yield "1+" * (half - 1) + "1"
    yield "(" * (half - 1) + "1" + ")" * (half - 1)
    yield "[" * half + "]" * half
    yield "(" * size
    yield "-" * (size - 1) + "1"
    yield "not " * (size // 4 - 1) + "1"
    yield "a." * (half - 1) + "a"
    yield '{"a":' * (size // 6 - 1) + "1" + "}" * (size // 6 - 1)
    yield "<b>" * (size // 7) + "</b>" * (size // 7)
    yield "a/" * half
    yield "9" * size
    yield "a " * half
    yield "a" * (size - 1) + "!"
    yield "\n" * size


def texts(schema: dict[str, Any], good: Any) -> list[str]:
    """Returns candidate texts for a parameter: alone, and in place of the last word of a good value."""
    size = max(8, min(int(schema.get("maxLength", LONGEST)), LONGEST))
    found = [*deep(size), *SHORT]
    last = re.search(r"\w+\W*$", good) if isinstance(good, str) and len(good) > 3 else None
    if last is not None:
        room = size - last.start()
        found += [good[: last.start()] + item for item in (*(deep(room) if room >= 8 else ()), *SHORT)]
    return [text for text in dict.fromkeys(found) if fits(text, schema)]


class TextPlace(msgspec.Struct, frozen=True):
    """A parameter of a call that is known to work, and what is read after it."""

    task: str
    before: tuple[Op, ...]
    op: Op
    name: str
    texts: tuple[str, ...]
    after: tuple[Op, ...]


def places(ctx: AuditContext) -> Iterator[TextPlace]:
    """The texts that tools take which do not only read, tool by tool."""
    for tool in ctx.about.tools:
        if seems_to_read(ctx, tool.name):
            continue
        free = {name: one for name, one in tool.properties.items() if is_dict(one) and one.get("type") == "string"}
        names = [name for name, schema in free.items() if not schema.get("enum") and "const" not in schema]
        for task, before, op in _bases(ctx, tool):
            after = _after(ctx, task, tool.name)
            for name in names:
                tried = tuple(texts(tool.properties[name], op.value.get(name)))
                yield TextPlace(task, before, op, name, tried, after)


def _bases(ctx: AuditContext, tool: ToolSpec) -> list[tuple[str, tuple[Op, ...], Op]]:
    known = sorted(ctx.discovery.of(tool.name), key=lambda known_call: len(known_call.before))
    if known:
        return [(base_call.task, tuple(map(bare, base_call.before)), bare(base_call.op)) for base_call in known[:1]]
    return [(ctx.tasks[0], (), call(tool.name, valid(tool, ctx.discovery.values, ctx.rng)))]


def _after(ctx: AuditContext, task: str, tool: str) -> tuple[Op, ...]:
    """Other calls of the task: those without arguments first, for they show everything."""
    bare_ones = [call(spec.name) for spec in ctx.about.tools if not spec.required and spec.name != tool]
    known = sorted(ctx.discovery.calls, key=lambda known_call: (known_call.task != task, bool(known_call.op.value)))
    ops = [*bare_ones, *(bare(base_call.op) for base_call in known if seems_to_read(ctx, base_call.op.name))]
    return tuple({op.name: op for op in reversed(ops)}.values())[::-1][:READS]


# --- inside the subject's process ---


@probe_function
def tried(player: Player, on: str, value: Any) -> list[list[Any]]:
    """Play each text; where the call is answered, what follows too.

    Returns:
        [number of the text, place among the call, what follows and the score, how it broke, where] per way to break.
    """
    place = msgspec.convert(value, TextPlace)
    found: dict[str, list[Any]] = {}
    start = (reset(place.task), *place.before)
    is_fresh = False
    for number, text in enumerate(place.texts):
        op = written(place, text).moved(on)
        first = player.do(op) if number else OpResult(how="refused")
        if first.how in ("", "refused") and first.is_error and not is_fresh:
            # What is refused may only be refused because of what the texts before have left.
            for call_op in start:
                player.do(call_op.moved(on))
            first = player.do(op)
        is_fresh = first.how in ("", "refused") and first.is_error
        seen = [first, *(player.do(item.moved(on)) for item in (*place.after, Op("score")) if not first.is_error)]
        for step, saw in enumerate(seen):
            if saw.how == "crashed":
                found.setdefault(f"{step > 0} {saw.where}", [number, step, breakage(saw), saw.where])
    return list(found.values())


def written(place: TextPlace, text: str) -> Op:
    return call(place.op.name, {**place.op.value, place.name: text})


# --- the claim ---


@relation
def breaks_afterwards(records: Sequence[Record], evidence: Evidence) -> bool:
    """The write is answered, or is the one that breaks; the last op breaks in that way at that line."""
    write, last = (records[0].at(mark) for mark in evidence.marks)
    answered = evidence.marks[0] == evidence.marks[1] or not write.is_error
    # Which line of a recursion is one too many depends on how deep its caller stands.
    is_there = last.where == evidence.data["where"] or "RecursionError" in evidence.data["how"]
    return answered and breakage(last) == evidence.data["how"] and is_there


@check("x.odd_contents", "races", needs=("tools", "call", "tasks"), value=19)
def odd_contents(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that later calls and the verdict work after any text was written."""
    there = list(places(ctx))
    if not there:
        raise NotChecked("no tool that writes takes a text")
    there = there[:: -(-len(there) // PLACES)]
    each = TRIED // len(there)
    there = [msgspec.structs.replace(place, texts=place.texts[:: -(-len(place.texts) // each)]) for place in there]
    asked = [
        Probe((reset(place.task), ask(f"{HERE}tried", msgspec.to_builtins(place), mark="tried"))) for place in there
    ]
    reported: set[str] = set()
    for place, record in zip(there, ctx.play_all(asked), strict=True):
        ctx.count_comparisons(len(place.texts))
        ways: list[tuple[int, int, str, str]] = record.at("tried").value or []
        for number, step, how, where in ways:
            if where not in reported and len(reported) < MOST:
                reported.add(where)
                yield _broken(ctx, place, place.texts[number], step=step, how=how, where=where)


def _broken(ctx: AuditContext, place: TextPlace, text: str, *, step: int, how: str, where: str) -> Finding | None:
    ops = [written(place, text), *place.after, Op("score")][: step + 1]
    ops[0] = ops[0].marked("write")
    ops[-1] = ops[-1].marked("last" if step else "write")
    after = f", after {place.op.name} was answered" if step else ""
    return broken_afterwards(
        ctx, f"an odd {place.name}{after}", (reset(place.task), *place.before, *ops), marks=("write", ops[-1].mark),
        how=how, where=where, minimise=10,
        teaches="nothing: the episode is lost, and every group in which a model writes this",
    )  # fmt: skip


def broken_afterwards(
    ctx: AuditContext, on: str, ops: Sequence[Op], *, how: str, where: str, **fields: Any
) -> Finding | None:
    """Returns the finding that the last op breaks on something."""
    return ctx.finding(
        f"{ops[-1].name or 'score'}() breaks on {on} ({how.partition(': ')[2]})", Probe(tuple(ops)),
        relation=f"{HERE}breaks_afterwards", data={"how": how, "where": where},
        part="V" if ops[-1].do == "score" else "S", expected="an answer, or an error that the agent can read",
        observed=how, where=where, **fields,
    )  # fmt: skip
