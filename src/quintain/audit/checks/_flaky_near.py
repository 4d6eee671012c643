"""Checks verdicts on nearly right work, and on right work with damage beside it.

A verifier that takes one entry of a set, or a sample of the facts, is consistent on a solution, where all are right,
and on an idle episode, where all are wrong. Where one thing among several is wrong, its verdict depends on the drawn
entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.fields import fields_of
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, answer, number, reset

from ._flaky_ends import SCORE, Ending, by_process, contexts, unsteady
from ._same_scripts import doing, other_values, seems_to_read
from ._same_wide import kinds, known

TASKS, CHANGED, DAMAGED, LINES = 3, 4, 2, 2
"""Tasks; ends of each at which an argument is another one, something else has been done, a line of a text is wrong."""
TIMES, CHEAP_S = 16, 0.15
"""Verdicts on an end, and seconds that they may take together; of a slow verifier fewer are asked for."""
_LAST = re.compile(r"(\w)([.!?]?\s*)$")


@check("x.verdict_near_the_solution", "flaky_verifier", needs=("tasks",), value=48)
def verdict_near_the_solution(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that nearly right or damaged work gets the same score each time and in every process."""
    ways = [(task, *_way(ctx, task)) for task in _tasks(ctx)]
    ends = [end for task, ops, _ in ways for end in _ends(ctx, task, ops)]
    if not ends:
        raise ctx.not_checked("no call is known that could be made otherwise")
    cost = len(ends) * max(seconds for *_, seconds in ways)
    times = max(5, min(TIMES, int(CHEAP_S / max(cost, 1e-6))))
    yield next(filter(None, chain(unsteady(ctx, ends, times), by_process(ctx, ends, contexts(ctx)))), None)


def _tasks(ctx: AuditContext) -> list[str]:
    """Returns a task of each kind. A call made twice is another kind: only then is there a first of several.

    Then those with most to say: a sample of few facts has all of them.
    """
    found: dict[tuple[str, ...], str] = {}
    tasks = (*kinds(ctx, 2), *ctx.sample_tasks(12))
    for task in tasks:
        found.setdefault(tuple(op.name or op.do for op in ctx.oracle(task) or ()), task)
    first = [task for _, task in sorted(found.items(), key=lambda item: len(item[0]), reverse=True)]
    large = sorted(tasks, key=lambda task: len(repr(ctx.oracle(task))), reverse=True)
    return list(dict.fromkeys((*first, *large)))[:TASKS]


def _way(ctx: AuditContext, task: str) -> tuple[tuple[Op, ...], float]:
    """The solution, without its reads where these are not needed, and the seconds of its verdict."""
    ops = doing(ctx, task)
    short = tuple(op for op in ops if op.do != "call" or not seems_to_read(ctx, op.name))
    first, second = ctx.play_all([Probe((reset(task), *some, SCORE)) for some in (ops, short)])
    seen, worked = first.at(SCORE.mark), not any(each.is_error for each in second.seen)
    is_short = short and seen.fine and worked and number(seen) == number(second.at(SCORE.mark))
    return short if is_short else ops, seen.seconds


def _ends(ctx: AuditContext, task: str, ops: tuple[Op, ...]) -> Iterator[Ending]:
    calls = tuple(op for op in ops if op.do != "answer" or op is not ops[-1])
    words = ops[len(calls) :]
    bent = [[(place, step) for step in _variants(ctx, op)] for place, op in enumerate(calls)]
    turns = [several[turn] for turn in range(CHANGED) for several in bent if turn < len(several)][:CHANGED]
    lines = [(place, step) for place, op in enumerate(ops) for step in _a_line_wrong(op)][-2 * LINES :]
    for place, other_op in (*turns, *lines):
        yield Ending(task, "nearly right", (reset(task), *ops[:place], other_op, *ops[place + 1 :]))
    for act in _beside(ctx, task, calls):
        yield Ending(task, "more than right", (reset(task), *calls, act, *words))


def _a_line_wrong(op: Op) -> Iterator[Op]:
    """Yields the op with its first line or sentence changed, and with its last one; or with entries or fields wrong."""
    if (fields := fields_of([op])) is not None:
        lists = [(key, 0) for key, item in fields.value.items() if (is_dict(item) or is_list(item)) and len(item) > 1]
        yield from (answer(fields.without(part)) for part in (*lists[:LINES], *fields.keys[-LINES:]))
        return
    texts = op.value.items() if is_dict(op.value) else [("", op.value)]
    for name, text in texts:
        between = "\n" if "\n" in str(text).strip() else " "
        lines = re.split(r"\n" if between == "\n" else r"(?<=[.!?])\s", text) if isinstance(text, str) else []
        said = [place for place, line in enumerate(lines) if _LAST.search(line)]
        for place in dict.fromkeys((said[0], said[-1])) if len(said) > 1 else ():
            wrong = between.join([*lines[:place], _LAST.sub(r"\1x\2", lines[place]), *lines[place + 1 :]])
            yield msgspec.structs.replace(op, value={**op.value, name: wrong} if name else wrong)


def _beside(ctx: AuditContext, task: str, calls: Sequence[Op]) -> list[Op]:
    """Returns writes outside the solution: known ones, and its own calls on other things."""
    own_value = {(op.name, repr(op.value)) for op in calls}
    acts = known(ctx, task).acts if task in kinds(ctx, 2) else ()  # Other checks ask about these, too.
    free = [op for op in acts if (op.name, repr(op.value)) not in own_value]
    own = [step for op in calls for step in _variants(ctx, op) if not seems_to_read(ctx, op.name)]
    return [*free[:: max(1, len(free) // DAMAGED)][:DAMAGED], *own][:DAMAGED]


def _variants(ctx: AuditContext, op: Op) -> Iterator[Op]:
    """The call with one of its arguments another one that its schema allows."""
    tool = next((spec for spec in ctx.about.tools if spec.name == op.name), None)
    if op.do != "call" or tool is None or not is_dict(op.value):
        return
    for name, value in op.value.items():
        for other_value in islice(other_values(ctx, tool, name, value=value), 1):
            yield msgspec.structs.replace(op, value={**op.value, name: other_value})
