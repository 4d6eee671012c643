"""Checks that the order of a list does not tell which of its rows a task needs.

Only a list of the same rows in every task is looked at: then no field of a row can be what it is ordered by.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from quintain.audit.facts.data import leaves
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, reset, text_of
from quintain.audit.kernel.registry import relation

from ._drift_words import rows_of, show
from ._leak_reading import unique
from ._same_scripts import bare, seems_to_read

TASKS, READS, LEAST_ROWS = 10, 8, 6
CHANCE = 1e-6
"""Probability below which rows do not come first by chance."""
_ORDERED = re.compile(
    r"\b(first|top|next|latest|newest|oldest|recent\w*|queue\w*|urgent\w*|priorit\w*)\b", re.IGNORECASE
)
"""Words of a prompt that asks for a row by its place."""


@relation
def leads(records: Sequence[Record], _evidence: Evidence) -> bool:
    """In each task, the rows of its solution come first in a list with the same rows in all."""
    chance, sets, needs = 1.0, set[str](), set[str]()
    for record in records:
        # The places of rows of which a text is an argument of the solution.
        solution, listed = record.at("oracle").value or (), rows_of(record.at("list").value) or []
        given = {leaf for op in solution for _, leaf in leaves(op.get("value")) if isinstance(leaf, str)}
        rows = [repr(row) for row in listed]
        places = [place for place, row in enumerate(listed) if given & {leaf for _, leaf in leaves(row)}]
        sets.add(repr(sorted(rows)))
        needs.add(repr(sorted(rows[place] for place in places)))
        if len(rows) < LEAST_ROWS or places != list(range(len(places))) or _ORDERED.search(text_of(record.seen[0])):
            return False
        chance /= math.comb(len(rows), len(places))
    return len(sets) == 1 and len(needs) > 2 and chance < CHANCE


@check("x.order_tells_nothing", "leak", needs=("oracle", "call", "tools", "tasks"), value=46)
def order_tells_nothing(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a list does not begin with the rows that the task needs."""
    known = (bare(known.op) for known in ctx.discovery.calls if seems_to_read(ctx, known.op.name))
    for op in unique(list(known))[:READS]:
        tasks = [task for task in ctx.sample_tasks(TASKS) if ctx.oracle(task)]
        probes = [Probe((reset(task), op.marked("list"), Op("oracle", name=task, mark="oracle"))) for task in tasks]
        ctx.count_comparisons(len(probes))
        if leads(ctx.play_all(probes), Evidence("")):
            yield show(
                ctx, f"{op.name} begins with the rows that the task needs, in each task", leads, *probes,
                marks=("list", "oracle"), expected="an order that has nothing to do with the task",
                observed=f"the needed rows come first in {len(probes)} tasks", teaches="to take what comes first",
            )  # fmt: skip
            return
