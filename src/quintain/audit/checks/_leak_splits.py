"""Checks that tasks of the audited split are not tasks of another one: a score on them measures memory.

Two tasks are equal if prompt, truth, solution and start state are; their ids may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Confidence, Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Probe, Record, ask
from quintain.audit.kernel.registry import probe_function, relation

CONTENTS = f"{__name__}:contents"
TASKS = 40
"""Tasks of each split that are compared."""
MANY, SOME = 0.5, 0.1
"""Shares of equal tasks that make an error and a warning."""
LEAST = 3
"""Least number of equal tasks: two small ones may be equal by chance."""


@probe_function
def contents(player: Player, on: str, _value: Any) -> dict[str, dict[str, str]]:
    """Returns the digests of tasks by split and id, the audited split first; empty if the subject has one split."""
    read = getattr(player.adapter(on).subject, "contents", None)
    return {} if read is None else read(TASKS)


@relation
def repeats(records: Sequence[Record], evidence: Evidence) -> bool:
    """Tasks of the audited split are tasks of another one."""
    other, number = evidence.data
    return any(name == other and len(equal) >= number for name, equal, _ in _equal(records[0].at("contents").value))


def _equal(value: Any) -> Iterator[tuple[str, list[str], float]]:
    """Yields (other split, ids of equal tasks, their share) for the first of some splits."""
    splits: list[tuple[str, dict[str, str]]] = list(value.items()) if is_dict(value) else []
    for name, tasks in splits[1:]:
        there, own = set(tasks.values()), splits[0][1]
        equal = [task for task, digest in own.items() if digest in there]
        yield name, equal, len(equal) / max(1, len(own))


@check("x.splits_differ", "leak", needs=("tasks",), value=63)
def splits_differ(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no task of the audited split is a task of another split under any id."""
    probe = Probe((ask(CONTENTS, mark="contents"),))
    value: Any = ctx.play_probe(probe).at("contents").value
    if not is_dict(value) or len(value) < 2:
        raise ctx.not_checked("the subject has no other split")
    split, own = next(iter(value.items()))
    for name, equal, share in _equal(value):
        ctx.count_comparisons(len(own))
        if len(equal) < LEAST or share < SOME:
            continue
        at_most: Confidence = "proven" if share >= MANY and set(own) != set(value[name]) else "likely"
        yield ctx.finding(
            f"tasks of the split {split} are tasks of {name}", probe, relation=f"{__name__}:repeats",
            marks=("contents",), data=[name, len(equal)], minimise=0, part="T",
            severity="error" if at_most == "proven" else "warning", at_most=at_most, tasks=tuple(equal[:10]),
            expected=f"tasks of {split} that {name} does not have",
            observed=f"{len(equal)} of {len(own)} tasks are equal in prompt, truth, solution and start state",
            teaches="nothing wrong; but a score on these tasks measures what was learned by heart",
        )  # fmt: skip
        return
