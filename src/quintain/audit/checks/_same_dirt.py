"""Earlier episodes: solved, abandoned, ended by odd calls, by faults, or by too many calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.generate import odd
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.probe import Op, Record, call, reset

from ._same_cut import cuts
from ._same_scripts import doing, half, other_tasks, reads, seems_to_read, tour
from ._same_splits import Split, split

MANY = 120
"""Calls of an episode that goes on for too long, where no budget is declared."""
ASKED = 20
"""Reads of the task itself that are done in an episode before."""
ODD = 3
"""Odd calls per tool."""


class Stage(msgspec.Struct, frozen=True):
    """An earlier event.

    Attributes:
        after: Description: "after another task that was solved".
        ops: Its ops.
        apart: True to play it in a process of its own, which it may break.
    """

    after: str
    ops: tuple[Op, ...]
    apart: bool = False


def stages(ctx: AuditContext, task: str) -> list[Stage]:
    """Ways in which an episode before may have ended."""
    other_task, *more = other_tasks(ctx, task, 3)
    other_ops, own_ops = doing(ctx, other_task), doing(ctx, task)
    score = Op("score")
    seen = reads(ctx, other_task, 12)
    found = [
        Stage("after another task that was solved", (reset(other_task), *other_ops, score)),
        Stage("after the same task that was solved", (reset(task), *own_ops, score)),
        Stage("after the same task that was left in the middle", (reset(task), *half(own_ops))),
        Stage("after another task that was left in the middle", (reset(other_task), *half(other_ops))),
        Stage("after an episode that only read", (reset(other_task), *seen)),
        Stage("after the same task with another seed", (reset(task, seed=12345), *own_ops[:1])),
        Stage("after two resets", (reset(other_task), score, reset(task))),
    ]
    asked = _asked(ctx, task)
    if asked:
        # In a process of its own: what the script itself asked before would hide what others asked.
        found.append(Stage("after another task in which the same was asked", (reset(other_task), *asked), apart=True))
        again = (reset(task), *own_ops, *asked)
        found.append(Stage("after the same task that was solved and looked at once more", again, apart=True))
    if ctx.discovery.calls:
        found.append(Stage("after an episode that used every tool", tour(ctx, other_task)))
    if len(more) > 1:
        several = tuple(op for text in more for op in (reset(text), *doing(ctx, text), score))
        found.append(Stage("after several episodes", several))
    return found + list(_breaking(ctx, other_task, other_ops))


def _asked(ctx: AuditContext, task: str) -> tuple[Op, ...]:
    """Returns the reads of an episode of the task: a cache that outlives an episode answers the same ones."""
    calls = [op for op in doing(ctx, task) if op.do == "call" and seems_to_read(ctx, op.name)]
    return tuple({repr((op.name, op.value)): op for op in calls}.values())[:ASKED]


def _breaking(ctx: AuditContext, other_task: str, other_ops: tuple[Op, ...]) -> Iterator[Stage]:
    strange = tuple(_odd(ctx))
    if strange:
        yield Stage("after an episode of calls that were refused", (reset(other_task), *strange), apart=True)
    first = next((op for op in other_ops if op.do == "call"), None)
    if first is None:
        return
    many = max(MANY, min(400, int(ctx.attribute("budget", 0)) + 5))
    repeated = msgspec.structs.replace(first, times=many)
    yield Stage("after an episode of too many calls", (reset(other_task), repeated), apart=True)
    if "inject" in ctx.offers:
        faults = (Op("inject", name="timeout"), first, Op("inject", name="500"))
        yield Stage("after an episode with a fault", (reset(other_task), *faults), apart=True)
    if cut := cuts(ctx):
        yield Stage("after calls that were cut off midway", cut, apart=True)
    if "advance" in ctx.offers:
        yield Stage(
            "after an episode in which a day went by", (reset(other_task), Op("advance", value=86_400)), apart=True
        )


def _odd(ctx: AuditContext) -> Iterator[Op]:
    """Wrong calls of each tool, and of one that is not there."""
    if ctx.about.tools:
        yield call("no_such_tool")
    for tool in ctx.about.tools:
        known = ctx.discovery.of(tool.name)
        base: dict[str, Any] = known[0].op.value if known else {}
        strange = list(odd(tool, base, ctx.discovery.values, rng=ctx.rng))
        yield call(tool.name, {})
        for arguments in ctx.rng.sample(strange, min(ODD, len(strange))):
            yield call(tool.name, arguments)


class Rounds(msgspec.Struct, frozen=True):
    """Stages, each followed by the script."""

    stages: tuple[Stage, ...]
    script: tuple[Op, ...]

    @property
    def ops(self) -> tuple[Op, ...]:
        found: list[Op] = []
        for place, stage in enumerate(self.stages):
            found += stage.ops
            found += [op.marked(f"{place}/{op.mark}") for op in self.script]
        return tuple(found)

    def before(self, place: int) -> tuple[Op, ...]:
        """Everything up to the script after this stage, nothing marked."""
        found: list[Op] = []
        for stage in self.stages[:place]:
            found += [*stage.ops, *(op.marked("") for op in self.script)]
        return (*found, *self.stages[place].ops)

    def split(self, clean: Record, record: Record, place: int, *, volatile: Sequence[str]) -> Split | None:
        """Returns where the script after this stage deviates from the clean one."""
        marks = [op.mark for op in self.script]
        start = sum(len(stage.ops) + len(marks) for stage in self.stages[:place]) + len(self.stages[place].ops)
        seen = record.seen[start : start + len(marks)]
        return split(clean, Record(self.script, seen), marks[: len(seen)], volatile=volatile)


def rounds(stages: Sequence[Stage], script: Sequence[Op]) -> Rounds:
    return Rounds(tuple(stages), tuple(script))


# --- canaries ---
