"""Checks that tasks of the audited split are not tasks of another one: a score on them measures memory.

Two tasks are equal if prompt, truth, solution and start state are; their ids may differ. A few may be equal by chance,
or a split may be a part of another one. Neither makes the last tasks of one split, in order, the first of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Probe, Record, ask
from quintain.audit.kernel.registry import probe_function, relation
from quintain.environment import SPLITS

from ._reward_runs import SURE, UNSURE

CONTENTS = f"{__name__}:contents"
TASKS = 40
"""Tasks of each split that are compared."""
MANY, SOME = 0.5, 0.1
"""Shares of equal tasks that make an error and a warning."""
LEAST = 3
"""Least number of equal tasks: two small ones may be equal by chance."""

Shared = tuple[str, list[str], bool]
"""Another split, the equal tasks, and whether they are too many, or in an order, for chance."""


@probe_function
def contents(player: Player, on: str, _value: Any) -> dict[str, dict[str, str]]:
    """Returns the digests of tasks by split and id, the audited split first; empty if the subject has one split."""
    read = getattr(player.adapter(on).subject, "contents", None)
    return {} if read is None else read(TASKS)


@relation
def repeats(records: Sequence[Record], evidence: Evidence) -> bool:
    """Tasks of the audited split are tasks of another one."""
    return any(
        [name, len(equal), sure] == evidence.data for name, equal, sure in _equal(records[0].at("contents").value)
    )


def _equal(value: Any) -> Iterator[Shared]:
    """Yields what the first of some splits shares with each other one."""
    splits: list[tuple[str, dict[str, str]]] = list(value.items()) if is_dict(value) else []
    for name, tasks in splits[1:]:
        (split, own), there = splits[0], list(tasks.values())
        equal = [task for task, digest in own.items() if digest in there]
        is_many = len(equal) >= MANY * len(own)
        is_row = {split, name} <= {*SPLITS} and len(equal) < min(len(own), len(there)) and _follows(own, there, equal)
        yield name, equal, (is_many or is_row) and set(own) != set(tasks)


def _follows(own: dict[str, str], there: Sequence[str], equal: Sequence[str]) -> bool:
    """True if the equal tasks begin one split and end the other, in the same order."""
    count, here, shared = len(equal), list(own.values()), [own[task] for task in equal]
    pairs = ((here[:count], there[-count:]), (here[-count:], there[:count]))
    return any(first == last == shared for first, last in pairs) and len({*shared}) == count


@check("x.splits_differ", "leak", needs=("tasks",), value=63)
def splits_differ(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no task of the audited split is a task of another split under any id."""
    probe = Probe((ask(CONTENTS, mark="contents"),))
    value: Any = ctx.play_probe(probe).at("contents").value
    if not is_dict(value) or len(value) < 2:
        raise ctx.not_checked("the subject has no other split")
    split, own = next(iter(value.items()))
    for name, equal, sure in _equal(value):
        ctx.count_comparisons(len(own))
        if len(equal) < max(LEAST, 0 if sure else SOME * len(own)):
            continue
        yield ctx.finding(
            f"tasks of the split {split} are tasks of {name}", probe, relation=f"{__name__}:repeats",
            marks=("contents",), data=[name, len(equal), sure], minimise=0, part="T",
            tasks=tuple(equal[:10]), **(SURE if sure else UNSURE),
            expected=f"tasks of {split} that {name} does not have",
            observed=f"{len(equal)} of {len(own)} tasks are equal in prompt, truth, solution and start state",
            teaches="nothing wrong; but a score on these tasks measures what was learned by heart",
        )  # fmt: skip
        return
