"""Checks walks of writes with reads between them: each read must not depend on earlier reads.

One session reads everything before the first write and after each; for each step a fresh session makes the same writes
alone and reads then. What is written is whatever the oracles and the survey know, of all tools, time that passes and
moments that are gone back to; what is read is asked of whatever the writes name, change or answer: rows are known by
the paths that differ in the state, not only by the arguments of the write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import changes, is_dict, is_list
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, Probe, ask, call, reset, same
from quintain.audit.kernel.registry import probe_function

from . import _same_cache as cache
from ._same_reads import Pair, tells
from ._same_scripts import SEARCHED, bare, doing, marked, seems_to_read, state_op
from ._same_splits import apart, read

HERE = f"{__name__}:"
STEPS, READS, EACH = 9, 26, 5
"""Writes of a walk; reads after each; of one tool at first."""
TRIED = 160
"""Reads that are tried, to see which work."""
ADVANCED = (90, 7200)
"""Seconds that pass between writes, where they can."""
_SHAPE = re.compile(r"\d+")


class Walk(msgspec.Struct, frozen=True):
    """Parameters of a walk.

    Attributes:
        tools: The reading tools, each with arguments that work, where such are known.
        values: Seen values by parameter name.
        sees: True if the state is visible.
        reads: Number of reads after each step.
    """

    task: str
    steps: tuple[Op, ...]
    tools: tuple[tuple[ToolSpec, dict[str, Any]], ...]
    values: dict[str, list[Any]]
    sees: bool
    volatile: tuple[str, ...] = ()
    reads: int = READS


class OldRead(msgspec.Struct, frozen=True):
    """A read that did not show a step: after `step` writes it gives what it gave before the last of them."""

    step: int
    read: Op


class WalkResult(msgspec.Struct, frozen=True):
    """Result of a walk.

    Attributes:
        stale, older: Reads that wrongly repeat their previous result, or an older result or a part of one.
        looked: Number of comparisons.
        ended: True if the episode does not allow that many calls.
    """

    stale: tuple[OldRead, ...]
    older: tuple[OldRead, ...]
    reads: tuple[Op, ...]
    looked: int
    ended: bool = False


def walks(ctx: AuditContext, most: int) -> list[Walk]:
    """Returns walks of `most` tasks, of different kinds where oracles tell kinds apart.

    Raises:
        NotChecked: No known call writes, or none reads.
    """
    readers = [tool for tool in ctx.about.tools if seems_to_read(ctx, tool.name)]
    bases = [(tool, _base(ctx, tool)) for tool in readers]
    found = [
        Walk(task, steps, tuple(bases), _values(ctx, readers), "state" in ctx.offers, ctx.volatile)
        for task in kinds(ctx, most)
        if (steps := tuple(_steps(ctx, task)))
    ]
    if not found or not readers:
        raise NotChecked("no call is known to write, or none to read")
    return found


def kinds(ctx: AuditContext, most: int) -> list[str]:
    """Tasks whose oracles use tools that those of the others do not, then others."""
    known: dict[frozenset[str], str] = {}
    for task in dict.fromkeys((*ctx.sample_tasks(8), *(known_call.task for known_call in ctx.discovery.calls))):
        known.setdefault(frozenset(op.name for op in ctx.oracle(task) or () if op.do == "call"), task)
    return list(known.values())[:most]


def _base(ctx: AuditContext, tool: ToolSpec) -> dict[str, Any]:
    known = ctx.discovery.of(tool.name)
    return dict(known[0].op.value) if known else {}


def _values(ctx: AuditContext, tools: Sequence[ToolSpec]) -> dict[str, list[Any]]:
    names = {name for tool in tools for name in tool.properties}
    return {name: ctx.discovery.values.of(name)[:8] for name in sorted(names)}


def _steps(ctx: AuditContext, task: str) -> Iterator[Op]:
    """The oracle's writes and others that are known there, each tool once before any twice; time between them."""
    acts = [bare(op) for op in doing(ctx, task) if op.do == "call" and not seems_to_read(ctx, op.name)]
    known = [
        bare(known_call.op) for known_call in ctx.discovery.calls if known_call.task == task and not known_call.before
    ]
    more = [op for op in known if not seems_to_read(ctx, op.name)]
    again = [step for op in acts for step in _moved_on(ctx, task, op)]
    distinct = list({f"{op.name} {op.value!r}": op for op in (*acts, *more[:STEPS], *again)}.values())
    for place, op in enumerate(distinct[:STEPS]):
        yield op
        if "advance" in ctx.offers and place < len(ADVANCED):
            yield Op("advance", value=ADVANCED[place])


def _moved_on(ctx: AuditContext, task: str, op: Op) -> Iterator[Op]:
    """Yields the same write once more, on another of the rows next to the one that its last argument names.

    The row that is left must show the move as much as the row that is reached.
    """
    for name, value in reversed(op.value.items()):
        if isinstance(value, str | int) and not isinstance(value, bool):
            older_reads = _beside(ctx, task, value)
            yield from [call(op.name, {**op.value, name: older_reads})] if older_reads is not None else []
            return


def _beside(ctx: AuditContext, task: str, value: Any) -> Any:
    """Returns the name of the row after the one that a value names, in a list read before."""
    for known_call in ctx.discovery.calls:
        for rows in lists(read(known_call.seen.value)) if known_call.task == task else ():
            keys = [key for row in rows for key, cell in row.items() if cell == value and type(cell) is type(value)]
            names = [row[keys[0]] for row in rows if keys and keys[0] in row]
            if keys and len(names) > 1 and len(set(map(repr, names))) == len(names):
                return names[(names.index(value) + 1) % len(names)]
    return None


def lists(value: Any) -> Iterator[list[dict[str, Any]]]:
    """Every list of rows in plain data."""
    if is_dict(value):
        for item in value.values():
            yield from lists(item)
    elif is_list(value):
        rows = [element for element in value if is_dict(element)]
        if rows:
            yield rows
        for element in value:
            yield from lists(element)


# --- the proof ---


def walked(ctx: AuditContext, asked: Walk) -> WalkResult | None:
    """Returns the result of a walk, or None if it did not end."""
    ops = (reset(asked.task, on="warm"), ask(f"{HERE}walk", msgspec.to_builtins(asked), mark="walk"))
    value = ctx.play(*ops).at("walk")
    return msgspec.convert(value.value, WalkResult) if value.fine else None


def shorter(asked: Walk) -> Walk:
    """The same for episodes that end after a few dozen calls."""
    return msgspec.structs.replace(asked, steps=asked.steps[:4], reads=4)


def shown(ctx: AuditContext, asked: Walk, found: WalkResult, *, old: OldRead) -> Finding | None:
    """The finding that a read is old: asked once before, or twice, or among all the others."""
    before, write = asked.steps[: old.step - 1], asked.steps[old.step - 1]
    start = marked((reset(asked.task), *before))
    asks = old.read.marked(cache.NEW)
    without, brought = (
        record.at(cache.NEW) for record in ctx.play_all([Probe((*start, asks)), Probe((*start, write, asks))])
    )
    if not apart(without, brought, ctx.volatile):
        return None  # It brought nothing: what differs is what the reads before did to the world.
    last = (old.read.marked(cache.OLD), write.marked(cache.WRITE), old.read.marked(cache.NEW))
    marks = (cache.OLD, cache.WRITE, cache.NEW)
    title = f"{old.read.name} does not show what {write.name or 'the passing of time'} brought, if it was read"
    between = [step for op in start for step in (op, *found.reads)]
    for ops in ((*start, *last), (*start, old.read, old.read, *last), (*between, *found.reads, *last)):
        finding = cache.proved(ctx, ops, marks, title=title)
        if finding is not None:
            return finding
    return None


def moved(ctx: AuditContext, asked: Walk, found: WalkResult, *, old: OldRead) -> Finding | None:
    """Returns a finding if a read repeats an older result, even in part, in an equal world."""
    world = (Op(state_op(ctx), mark="step world"),) if state_op(ctx) else ()
    pair = Pair(asked.task, asked.steps[: old.step - 1], asked.steps[old.step - 1], found.reads)
    return cache.is_moved(ctx, pair, found.reads.index(old.read), world=world)


# --- inside the subject's process ---


@probe_function
def walk(player: Player, on: str, value: Any) -> Any:
    """Walk, and compare each read with that of a session which only wrote."""
    asked = msgspec.convert(value, Walk)
    reads = _working(player, f"{on} scout", asked)
    player.do(reset(asked.task, on=on))
    before = _round(player, on, reads)
    before = _round(player, on, reads)
    earlier = [[seen] for seen in before]
    stale: list[OldRead] = []
    older_reads: list[OldRead] = []
    partly: list[OldRead] = []
    ended = False
    for step, op in enumerate(asked.steps, 1):
        result = player.do(op.moved(on))
        after = _round(player, on, reads)
        alone = f"{on} {step}"
        fresh_results = [player.do(call_op.moved(alone)) for call_op in (reset(asked.task), *asked.steps[:step])][-1]
        if result.is_error and not fresh_results.is_error:
            ended = True
            break
        clean = _round(player, alone, reads)
        for place, call_op in enumerate(reads):
            if same(after[place], clean[place], asked.volatile) or not tells(call_op, after[place]):
                continue
            is_old = same(after[place], before[place], asked.volatile)
            was = is_old or any(same(after[place], seen, asked.volatile) for seen in earlier[place])
            (stale if is_old else older_reads if was else partly).append(OldRead(step, call_op))
        player.adapters.pop(alone)
        before = after
        for place, seen in enumerate(after):
            earlier[place].append(seen)
    found = WalkResult(
        tuple(stale[:20]), tuple([*older_reads, *partly][:20]), tuple(reads), len(reads) * len(asked.steps), ended
    )
    return msgspec.to_builtins(found)


def _round(player: Player, on: str, reads: Sequence[Op]) -> list[OpResult]:
    return [player.do(op.moved(on)) for op in reads]


def _working(player: Player, on: str, asked: Walk) -> list[Op]:
    """Reads of whatever the writes touch: those that work before or after them; the ones that changed come first."""
    player.do(reset(asked.task, on=on))
    start = player.do(Op("state", on)).value if asked.sees else None
    answers = [player.do(op.moved(on)) for op in asked.steps]
    end = player.do(Op("state", on)).value if asked.sees else None
    hot = list(dict.fromkeys(_hot(asked.steps, answers, changes(start, end) if asked.sees else {})))
    columns = [list(_asked(tool, base, hot, values=asked.values)) for tool, base in asked.tools]
    tried = [op for column in columns for op in column[: max(3, TRIED // max(1, len(columns)))]]
    later = _round(player, on, tried)
    first = f"{on} first"
    player.do(reset(asked.task, on=first))
    soon = _round(player, first, tried)
    ranked: list[tuple[int, int, Op]] = []
    counts: dict[tuple[str, bool], int] = {}
    for op, left, right in zip(tried, soon, later, strict=True):
        if left.is_error and right.is_error:
            continue
        is_same = same(left, right, asked.volatile)
        rank = counts[op.name, is_same] = counts.get((op.name, is_same), -1) + 1
        ranked.append((rank + (EACH if is_same and rank else 0), len(ranked), op))
    for name in (on, first):
        player.adapters.pop(name)
    return [op for _, _, op in sorted(ranked, key=lambda row: row[:2])][: asked.reads]


def _hot(steps: Iterable[Op], answers: Iterable[OpResult], changed: dict[str, list[Any]]) -> Iterator[Any]:
    """Scalars that writes name or are answered, and of what they changed: keys of rows, old values and new ones."""
    for op in steps:
        yield from scalars(op.value)
    for seen in answers:
        yield from scalars(read(seen.value))
    for path, both in changed.items():
        yield from path.split("/")[1:]
        yield from scalars(both)


def scalars(value: Any) -> Iterator[Any]:
    """Every text and whole number in plain data."""
    if is_dict(value):
        for item in value.values():
            yield from scalars(item)
    elif is_list(value):
        for element in value[:20]:
            yield from scalars(element)
    elif isinstance(value, str | int) and not isinstance(value, bool) and 0 < len(str(value)) < 200:
        yield value


def _asked(tool: ToolSpec, base: dict[str, Any], hot: Sequence[Any], *, values: dict[str, list[Any]]) -> Iterator[Op]:
    """A reader's calls: as known, and with each hot value that looks like what its parameters take."""
    found: dict[str, Op] = {}
    required = {name: value for name, value in base.items() if name in tool.required}
    tried: list[dict[str, Any]] = [base, required] if base or not tool.required else []
    for name, schema in tool.properties.items():
        if not is_dict(schema):
            continue
        fitting = [item for item in _fitting(name, hot, [base.get(name), *values.get(name, ())]) if fits(item, schema)]
        tried += [{**(base if name in base else required), name: item} for item in (*schema.get("enum", ()), *fitting)]
    for arguments in tried:
        if all(name in arguments for name in tool.required):
            found.setdefault(repr(sorted(arguments.items())), call(tool.name, arguments))
    yield from found.values()


def _fitting(name: str, hot: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    """Returns the hot values of the form of a known one; words for a search parameter."""
    if name.lower() in SEARCHED:
        words = [word for item in hot if isinstance(item, str) for word in (item, *item.split())]
        return ["a", *dict.fromkeys(word for word in words if len(word) > 2)][:12]
    forms = {form(item) for item in like if item is not None}
    return [item for item in hot if form(item) in forms] or [item for item in hot if isinstance(item, str)][:12]


def form(value: Any) -> str:
    """The type of a value; of a text with digits also what stands around them."""
    if isinstance(value, str):
        return f"text {_SHAPE.sub('0', value)}" if any(letter.isdigit() for letter in value) else "text"
    return type(value).__name__
