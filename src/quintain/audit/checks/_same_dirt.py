"""Earlier episodes: solved, abandoned, ended by odd calls, by faults, by too many calls, or by a call that is cut off.

A tracer counts the lines that a call runs in the subject's own files, and raises a TimeoutError before one of them, as
a limit of time would. Lines are counted, not seconds, so a cut falls in the same place whenever it is played.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import odd
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, ask, call, reset
from quintain.audit.kernel.registry import probe_function

from ._same_cache import mistold
from ._same_scripts import doing, half, other_tasks, reads, seems_to_read, tour
from ._same_wide import ACTS, LATER, Pool, drawn, known

Stage = tuple[str, tuple[Op, ...]]
"""An earlier episode: in words ("after another task that was solved"), and its ops."""
MANY = 120
"""Calls of an episode that goes on for too long, where no budget is declared."""
ASKED, ODD, RESETS = 20, 3, 12
"""Reads of the task itself in an episode before; odd calls per tool; pairs of episodes that hardly begin."""
CALLS, PLACES = 4, (0.35, 0.7, 1.0)
"""Calls that are cut, each of another tool; parts of a call's lines after which it is cut."""
PARTS = 16
"""Parts of a solution, each the work of one episode."""
SCORE = Op("score")


def stages(ctx: AuditContext, task: str) -> Iterator[Stage]:
    """Yields ways in which an episode before may have ended."""
    other_task, *more = other_tasks(ctx, task, 3)
    other_ops, own_ops = doing(ctx, other_task), doing(ctx, task)
    yield "after another task that was solved", (reset(other_task), *other_ops, SCORE)
    yield "after the same task that was solved", (reset(task), *own_ops, SCORE)
    yield "after the same task that was left in the middle", (reset(task), *half(own_ops))
    yield "after another task that was left in the middle", (reset(other_task), *half(other_ops))
    yield "after the same task that was ended early", tuple(_early(ctx, task, own_ops))
    yield "after an episode that only read", (reset(other_task), *reads(ctx, other_task, 12))
    yield "after the same task with another seed", (reset(task, seed=12345), *own_ops[:1])
    yield "after two resets", (reset(other_task), SCORE, reset(task))
    calls = [op for op in own_ops if op.do == "call" and seems_to_read(ctx, op.name)]
    if asked := tuple({repr((op.name, op.value)): op for op in calls}.values())[:ASKED]:
        yield "after another task in which the same was asked", (reset(other_task), *asked)
        yield "after the same task that was solved and looked at once more", (reset(task), *own_ops, *asked)
    if ctx.discovery.calls:
        yield "after an episode that used every tool", tour(ctx, other_task)
    if len(more) > 1:
        several = (op for text in more for op in (reset(text), *doing(ctx, text), SCORE))
        yield "after several episodes", tuple(several)
    if strange := tuple(_odd(ctx)):
        yield "after an episode of calls that were refused", (reset(other_task), *strange)
    first = next((op for op in other_ops if op.do == "call"), None)
    if first is None:
        return
    many = max(MANY, min(400, int(ctx.attribute("budget", 0)) + 5))
    yield "after an episode of too many calls", (reset(other_task), msgspec.structs.replace(first, times=many))
    if "inject" in ctx.offers:
        faults = (Op("inject", name="timeout"), first, Op("inject", name="500"))
        yield "after an episode with a fault", (reset(other_task), *faults)
    if cut := _cuts(ctx):
        yield "after calls that were cut off midway", cut
    if "advance" in ctx.offers:
        yield "after an episode in which a day went by", (reset(other_task), Op("advance", value=86_400))


def _early(ctx: AuditContext, task: str, ops: Sequence[Op]) -> Iterator[Op]:
    """Episodes with a part of the work each, then the last call and the answer, in other words."""
    acts = [op for op in ops if op.do == "call" and not seems_to_read(ctx, op.name)]
    end = [mistold(op) or op for op in (*acts[-1:], *(op for op in ops if op.do != "call"))]
    for place in range(0, max(1, len(acts)), len(acts) // PARTS + 1):
        yield from (reset(task), *acts[:place], *end, SCORE)


def _odd(ctx: AuditContext) -> Iterator[Op]:
    """Wrong calls of each tool, and of one that is not there."""
    if ctx.about.tools:
        yield call("no_such_tool")
    for tool in ctx.about.tools:
        known_calls = ctx.discovery.of(tool.name)
        base: dict[str, Any] = known_calls[0].op.value if known_calls else {}
        strange = list(odd(tool, base, ctx.discovery.values, rng=ctx.rng))
        yield from (call(tool.name, some) for some in ({}, *ctx.rng.sample(strange, min(ODD, len(strange)))))


def dirty(ctx: AuditContext, task: str) -> Iterator[Stage]:
    """Yields episodes before an episode of a task: of all kinds of calls, and ended in each way."""
    rng = random.Random(f"{ctx.seed} dirty {task}")  # noqa: S311 (draws of probes, no secrets)
    other_task, *more = other_tasks(ctx, task, 3)
    for number in range(len(_endings(ctx, known(ctx, task)))):
        where = other_task if number % 2 else task
        words, last = _endings(ctx, known(ctx, where))[number]
        whose = "the same task" if where == task else "another task"
        ops = drawn(ctx, where, rng, whole=number % 3 != 2)
        yield f"after an episode of {whose} {words}", (reset(where), *ops, *last)
    yield (
        "after the same task with another seed, in which much was done",
        (reset(task, seed=12345), *drawn(ctx, task, rng, whole=True)),
    )
    asked = (*known(ctx, task).reads, *known(ctx, other_task).reads)
    yield "after the same was asked in another task", (reset(other_task), *asked)
    each = ((reset(text), *drawn(ctx, text, rng, whole=True), SCORE) for text in (other_task, *more))
    yield "after several episodes", tuple(op for ops in each for op in ops)
    begun = tuple(reset(text, seed=number) for number in range(RESETS) for text in (task, other_task))
    yield "after many episodes that hardly began", begun


def _endings(ctx: AuditContext, pool: Pool) -> list[Stage]:
    """Ways in which an episode ends: in words, and its last ops."""
    unknown = (call("no_such_tool"),)
    faulty = (Op("inject", name="timeout"), *pool.reads[:1], Op("inject", name="500"))
    gone_back = (Op("snapshot", name="dirty"), *reversed(pool.acts), Op("restore", name="dirty"))
    rows: list[tuple[str, str, tuple[Op, ...]]] = [
        ("", "that ended with a write", pool.acts[:ACTS]),
        ("", "whose last call was refused", pool.wrong[:1] or unknown), ("", "that ended with a read", pool.reads),
        ("", "whose last call was of no tool", unknown),
        ("advance", "in which time went by", (Op("advance", value=LATER),)), ("", "that was scored", (SCORE,)),
        ("inject", "that ended with a fault", faulty),
        ("snapshot restore", "that went back to an earlier moment", gone_back), ("", "that was left in the middle", ()),
    ]  # fmt: skip
    return [(words, ops) for needs, words, ops in rows if {*needs.split()} <= ctx.offers]


# --- calls that are cut off ---


def _cuts(ctx: AuditContext) -> tuple[Op, ...]:
    """Episodes, one after the other, each ended by a call that is cut; empty where no call of ours can be cut."""
    folders = sorted({f"{Path(source.path).resolve().parent}/" for source in ctx.sources if source.path})
    ordered = sorted(ctx.discovery.calls, key=lambda known_call: not known_call.writes)
    chosen = list({known_call.op.name: known_call for known_call in reversed(ordered)}.values())[::-1][:CALLS]
    if not folders or not chosen:
        return ()
    counted = ctx.play_all([Probe(_cut(known_call, folders, 0)) for known_call in chosen])
    found: list[Op] = []
    for known_call, record in zip(chosen, counted, strict=True):
        lines = record.seen[-1].value["lines"] if len(record.seen) == len(record.ops) and record.seen[-1].fine else 0
        for line in sorted({max(1, round(lines * part)) for part in PLACES}) if lines else ():
            found += _cut(known_call, folders, line)
    return tuple(found)


def _cut(known_call: KnownCall, folders: Sequence[str], line: int) -> tuple[Op, ...]:
    value = {"op": msgspec.to_builtins(known_call.op.marked("")), "folders": list(folders), "line": line}
    before = (op.marked("") for op in known_call.before)
    return (reset(known_call.task), *before, ask(f"{__name__}:cut", value, mark=""))


@probe_function
def cut(player: Player, on: str, value: dict[str, Any]) -> dict[str, Any]:
    """In the child: do an op until so many lines of the subject have run, then raise in it.

    Args:
        player: Holds the instances.
        on: The instance.
        value: `op`; `folders` of the files whose lines count; `line`, before which it is cut, 0 for never.

    Returns:
        `lines` that were begun, and `raised`, what came out of the call.
    """
    folders, lines = tuple(value["folders"]), 0

    def enter(frame: FrameType, _event: str, _argument: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(folders) else None

    def line(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        if event == "line" and lines == value["line"]:
            raise TimeoutError("the call took too long and was cut off")
        return line

    op = msgspec.convert(value["op"], Op).moved(on)
    player.adapter(on)
    sys.settrace(enter)
    try:
        seen = player.do(op)
    finally:
        sys.settrace(None)
    return {"lines": lines, "raised": seen.raised}
