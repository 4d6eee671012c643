"""Wide scripts and dirty episodes: every tool in several ways, among calls of all kinds, with time passing.

What an episode leaves behind may show in one answer alone: of a tool that no solution uses, for one argument, a minute
later, or after a write. So the script asks each reading tool about everything that the task, its solution and its
answers have named, before and after time has passed and each writing tool has been used. The episodes before it are
drawn from the same calls; they end in each way in which an episode can end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.generate import Values, fits, odd, valid
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.probe import Op, call, reset

from ._same_scripts import bare, doing, half, in_turn, other_tasks, seems_to_read, state_op

CALLS, READS, EACH, ACTS = 120, 60, 6, 24
"""Calls of a wide script, where no smaller budget is declared; reads known of a task; of one tool; writes."""
DRAWN, TOOLS = 8, 60
"""Arguments that are drawn for a tool, and tools that are looked at."""
SOON, LATER = 900, 2 * 86_400
"""Seconds that pass: what is on its way arrives, what is due is done."""
DIRTY = 24
"""Calls drawn for one episode besides those of a solution."""
ROWS = 48
"""Rows that are asked about in one episode, by all tools that read one."""


class Pool(NamedTuple):
    """Calls that work in a task, for all that is known: reads, writes, and calls that are refused."""

    reads: tuple[Op, ...]
    acts: tuple[Op, ...]
    wrong: tuple[Op, ...]


def known(ctx: AuditContext, task: str) -> Pool:
    """Returns the calls of a task, learned in two rounds: the answers of the first feed the second."""
    return ctx.once(("wide", task), lambda own: _known(own, task))


def kinds(ctx: AuditContext, most: int) -> list[str]:
    """Tasks that are solved by other tools, one of each kind."""
    found: dict[frozenset[str], str] = {}
    for task in ctx.sample_tasks(8):
        found.setdefault(frozenset(op.name or op.do for op in ctx.oracle(task) or ()), task)
    return list(found.values())[:most]


def _known(ctx: AuditContext, task: str) -> Pool:
    rng = random.Random(f"{ctx.seed} wide {task}")  # noqa: S311 (draws of probes, no secrets)
    own, first = Values(), list(map(bare, doing(ctx, task))) if ctx.about.tools else []
    look = [Op("glance", mark="glance")] if "state" in ctx.offers else []
    record = ctx.play(reset(task), *look, *first)
    for op in first:
        own.take(op.value)
    done = list(zip(record.ops[1:], record.seen[1:], strict=False))
    for op, seen in (*done[len(look) :], *done[: len(look)]):
        if op.mark or not seen.is_error:
            own.take(seen.value, op.name)
    tried: dict[str, Op] = {_key(op): op for op in first if op.do == "call"}
    new = [bare(known_call.op) for known_call in ctx.discovery.calls]
    for _ in range(3):
        worked = _working(ctx, task, [op for op in new if _key(op) not in tried], own=own)
        tried |= {_key(op): op for op in worked}
        new = [op for tool in ctx.about.tools[:TOOLS] for op in _draw(ctx, tool, own, rng=rng)]
    own_values = {_key(op) for op in first}
    order = sorted(tried.values(), key=lambda op: _key(op) not in own_values)
    acts = [op for op in order if not seems_to_read(ctx, op.name)]
    return Pool(
        tuple(_spread([op for op in order if seems_to_read(ctx, op.name)], EACH))[:READS],
        tuple(_spread(acts, max(2, ACTS // max(1, len({op.name for op in acts})))))[:ACTS],
        tuple(_wrong(ctx, order, own, rng=rng)),
    )


def _key(op: Op) -> str:
    return f"{op.name} {op.value!r}"


def _draw(ctx: AuditContext, tool: ToolSpec, own: Values, *, rng: random.Random) -> Iterator[Op]:
    """Calls of a tool: with values of a closed choice, with values seen under a parameter's name, and drawn ones."""
    base = next((dict(known.op.value) for known in ctx.discovery.of(tool.name)), None) or valid(tool, own, rng)
    yield call(tool.name, base)
    for name, schema in tool.properties.items():
        if not is_dict(schema):
            continue
        values: list[Any] = list(schema.get("enum") or ())
        seen = dict.fromkeys((*own.of(name), *own.of(f"{name}_id")))
        values = values or [value for value in seen if fits(value, schema)]
        # Not the first ones: rows that come first anyway would hide what moves rows to the front.
        chosen = rng.sample(values, min(EACH, len(values)))
        yield from (call(tool.name, {**base, name: value}) for value in chosen)
    for _ in range(DRAWN):
        yield call(tool.name, valid(tool, own, rng))


def _working(ctx: AuditContext, task: str, ops: Sequence[Op], *, own: Values) -> list[Op]:
    """Returns the calls accepted at the start of the task, reads first; their answers are stored."""
    inner = sorted(ops, key=lambda op: not seems_to_read(ctx, op.name))
    record = ctx.play(reset(task), *inner)
    found: list[Op] = []
    for op, seen in zip(inner, record.seen[1:], strict=False):
        if not seen.is_error:
            own.take(seen.value, op.name)
            found.append(op)
    return found


def _spread(ops: Sequence[Op], each: int) -> list[Op]:
    return in_turn(ops, lambda op: op.name, each)


def _wrong(ctx: AuditContext, ops: Sequence[Op], own: Values, *, rng: random.Random) -> Iterator[Op]:
    bases: dict[str, Any] = {op.name: op.value for op in reversed(ops)}
    for tool in ctx.about.tools[:TOOLS]:
        strange = list(odd(tool, bases.get(tool.name, {}), own, rng=rng))
        yield from (call(tool.name, arguments) for arguments in rng.sample(strange, min(2, len(strange))))


# --- scripts ---


def wide(ctx: AuditContext, task: str) -> tuple[Op, ...]:
    """Reset, score, state, reads, time, reads, writes, time, reads, state, score; nothing is marked.

    What another task would ask about is asked, too: an episode of that one may have been before.
    """
    pool, calls = known(ctx, task), budget(ctx) - len(doing(ctx, task))
    more = _spread(known(ctx, other_tasks(ctx, task, 1)[0]).reads, 2)[: calls // 8]
    look = (Op(state_op(ctx)),) if state_op(ctx) else ()
    distinct = {_key(op): op for op in (*pool.reads[: calls // 3], *more)}
    asked = sorted(distinct.values(), key=lambda op: len(op.value))  # Lists first: to look at a row may move it.
    soon, later = _passing(ctx, SOON), _passing(ctx, LATER)
    acts = pool.acts[: calls // 4]
    left = max(0, calls - len(asked) - len(acts)) // 2
    return (
        reset(task), Op("score"), *look, *asked, *soon, *asked[::-1][:left], *acts, *doing(ctx, task),
        *later, *asked[:left], *look, Op("score"),
    )  # fmt: skip


def rows(ctx: AuditContext, task: str) -> tuple[Op, ...]:
    """Reset, and what each tool that reads one row says of as many rows as are known; nothing is marked.

    What hangs on an order of chance may show in one row alone: of that which has two of something.
    """
    tools = [tool for tool in ctx.about.tools if len(tool.required) == 1 and seems_to_read(ctx, tool.name)]
    each = max(EACH, ROWS // max(1, len(tools)))
    asked: list[Op] = []
    for tool in tools[: ROWS // EACH]:
        (name,) = tool.required
        fitting = [value for value in ctx.discovery.values.of(name) if fits(value, tool.properties.get(name) or {})]
        asked += [call(tool.name, {name: item}) for item in fitting[:each]]
    return (reset(task), *asked) if asked else ()


def budget(ctx: AuditContext) -> int:
    """Calls of an episode that need not be its last."""
    declared = int(ctx.attribute("budget", 0))
    return min(CALLS, max(8, declared - 2)) if declared else CALLS


def _passing(ctx: AuditContext, seconds: int) -> tuple[Op, ...]:
    return (Op("advance", value=seconds),) if "advance" in ctx.offers else ()


def detours(ctx: AuditContext, task: str, own_ops: Sequence[Op]) -> Iterator[tuple[str, tuple[Op, ...]]]:
    """Yields the script with a snapshot in its middle, many other ops, and a restore."""
    rng = random.Random(f"{ctx.seed} detours {task}")  # noqa: S311 (draws of probes, no secrets)
    (other_task,) = other_tasks(ctx, task, 1)
    kept, back = Op("snapshot", name="kept", mark="kept"), Op("restore", name="kept", mark="back")
    more, later = drawn(ctx, task, rng, whole=True), _passing(ctx, LATER)
    away = (reset(other_task), *drawn(ctx, other_task, rng, whole=True), Op("score"))
    between = (*later, *more[:DIRTY], Op("snapshot", name="further"), *more[DIRTY:])
    early, late = min(8, len(own_ops) // 4), max(0, len(own_ops) - 12)
    yield "after a restore", (*own_ops[:early], kept, *more, *later, back, *own_ops[early:])
    yield "after a restore", (*own_ops[:late], kept, *between, back, *own_ops[late:])
    yield "after a restore across a reset", (*own_ops[:early], kept, *away, back, *own_ops[early:])


def drawn(ctx: AuditContext, task: str, rng: random.Random, *, whole: bool) -> list[Op]:
    """A solution, all of it or half, with calls of all kinds among its steps, in their own order."""
    pool = known(ctx, task)
    asked = rng.sample(pool.reads, min(DIRTY // 2, len(pool.reads)))
    acts = list(pool.acts)
    rng.shuffle(acts)
    extra = [*asked, *acts[:DIRTY], *rng.sample(pool.wrong, min(3, len(pool.wrong)))]
    rng.shuffle(extra)
    steps = list(doing(ctx, task)) if whole else list(half(doing(ctx, task)))
    extra = extra[: max(4, budget(ctx) - len(steps) - 4)]
    # The solution comes first as often as not: what else is done may make it fail.
    return [*steps, *extra] if rng.random() < 0.5 else [*extra, *steps]
