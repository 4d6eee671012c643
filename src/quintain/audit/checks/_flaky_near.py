"""Checks verdicts on nearly right work, and on right work with damage beside it.

A verifier that takes one entry of a set, or a sample of the facts, is consistent on a solution, where all are right,
and on an idle episode, where all are wrong. Where one thing among several is wrong, its verdict depends on the drawn
entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import HOME, Op, Probe, ProcessContext, number, reset

from ._flaky_ends import SCORE, TEACHES, WAVERS, by_process, counted, kinds, verdicts
from ._same_scripts import doing, elsewhere, seems_to_read
from ._same_splits import split
from ._same_splits import wavers as wavering
from ._same_static import order_hints
from ._same_wide import kinds as kinds_of_tasks
from ._same_wide import known

TASKS = 3
CHANGED = 4
"""Ends of a task at which an argument is another one."""
DAMAGED = 2
"""Ends of a task at which something else has been done, too."""
LINES = 2
"""Ends of a task at which a line of a text is wrong."""
TIMES = 16
"""Verdicts on an end."""
CHEAP_S = 0.15
"""Seconds that they may take together; of a slow verifier fewer are asked for."""
SEEDS = (3, 4, 5, 6)
"""Further hash seeds, where the code of the subject goes through a set."""


class ScoredEnd(NamedTuple):
    """An episode that was not solved as meant: what it is called, and its ops."""

    task: str
    how: str
    ops: tuple[Op, ...]


class Way(NamedTuple):
    """A solution of a task and the time of its verdict in seconds."""

    task: str
    ops: tuple[Op, ...]
    seconds: float


@check("x.verdict_near_the_solution", "flaky_verifier", needs=("tasks", "tools"), value=51)
def verdict_near_the_solution(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that nearly right or damaged work gets the same score each time and in every process."""
    ways = [_way(ctx, task) for task in _tasks(ctx)]
    ends = [end for way in ways for end in _ends(ctx, way)]
    if not ends:
        raise ctx.not_checked("no call is known that could be made otherwise")
    cost = len(ends) * max(way.seconds for way in ways)
    times = max(5, min(TIMES, int(CHEAP_S / max(cost, 1e-6))))
    contexts = list(elsewhere())
    if any("set" in hint.title or "hash" in hint.title for hint in order_hints(ctx)):
        contexts += [ProcessContext(hash_seed=seed) for seed in SEEDS]
    many, *records = ctx.play_all([_all(ends, times=times), *(_all(ends, context=item) for item in contexts)])
    ctx.count_comparisons(len(ends) * (times + len(contexts)))
    for place, end in enumerate(ends):
        if len(kinds(many, (f"{place}",))) > 1:
            yield _wavers(ctx, end, verdicts(many, (f"{place}",)))
            return
    for context, record in zip(contexts, records, strict=True):
        for place, (task, how, ops) in enumerate(ends):
            if kinds(many, (f"{place}",)) == kinds(record, (f"{place}",)):
                continue
            script = (*(op.marked(f"step {step}") for step, op in enumerate(ops)), SCORE)
            first, second = ctx.play_all([Probe(script), Probe(script, context)])
            apart = split(first, second, [SCORE.mark], volatile=ctx.volatile)
            if apart is not None and not wavering(ctx, script, SCORE.mark):
                yield by_process(ctx, task, script, apart=apart, context=context, how=how)
                return


def _all(ends: Sequence[ScoredEnd], *, times: int = 1, context: ProcessContext = HOME) -> Probe:
    scored = ((*end.ops, Op("score", times=times, mark=f"{place}")) for place, end in enumerate(ends))
    return Probe(tuple(op for ops in scored for op in ops), context)


def _wavers(ctx: AuditContext, end: ScoredEnd, seen: Sequence[Any]) -> Finding | None:
    return ctx.finding(
        f"one and the same {end.how} episode is not always scored alike",
        Probe((*end.ops, Op("score", times=59, mark="many"))),
        relation=WAVERS,
        marks=("many",),
        tries=3,
        minimise=10,
        part="V",
        tasks=(end.task,),
        expected="equal verdicts",
        observed=counted(seen),
        teaches=TEACHES,
    )


# --- ends ---


def _tasks(ctx: AuditContext) -> list[str]:
    """One of each kind: a call twice is another kind than once, for only then is there a first of several."""
    found: dict[tuple[str, ...], str] = {}
    for task in (*kinds_of_tasks(ctx, 2), *ctx.sample_tasks(12)):
        found.setdefault(tuple(op.name or op.do for op in ctx.oracle(task) or ()), task)
    by_length = sorted(found.items(), key=lambda item: len(item[0]), reverse=True)
    return [task for _, task in by_length[:TASKS]]


def _way(ctx: AuditContext, task: str) -> Way:
    """The solution, without its reads where these are not needed: many ends begin like it."""
    ops = doing(ctx, task)
    short = tuple(op for op in ops if op.do != "call" or not seems_to_read(ctx, op.name))
    first, second = ctx.play_all([Probe((reset(task), *some, SCORE)) for some in (ops, short)])
    seen = first.at(SCORE.mark)
    if (
        short
        and seen.fine
        and not any(each.is_error for each in second.seen)
        and number(seen) == number(second.seen[-1])
    ):
        return Way(task, short, seen.seconds)
    return Way(task, ops, seen.seconds)


def _ends(ctx: AuditContext, way: Way) -> Iterator[ScoredEnd]:
    task, ops = way.task, way.ops
    words = tuple(op for op in ops[-1:] if op.do == "answer")
    calls = ops[: len(ops) - len(words)]
    bent = [[(place, step) for step in _variants(ctx, op)] for place, op in enumerate(calls)]
    turns = [several[turn] for turn in range(CHANGED) for several in bent if turn < len(several)]
    for place, other_op in turns[:CHANGED]:
        yield ScoredEnd(task, "nearly right", (reset(task), *calls[:place], other_op, *calls[place + 1 :], *words))
    for place, other_item in [(place, step) for place, op in enumerate(ops) for step in _a_line_wrong(op)][-LINES:]:
        yield ScoredEnd(task, "nearly right", (reset(task), *ops[:place], other_item, *ops[place + 1 :]))
    for act in _beside(ctx, task, calls):
        yield ScoredEnd(task, "more than right", (reset(task), *calls, act, *words))


def _a_line_wrong(op: Op) -> Iterator[Op]:
    """Yields the op with its first line of content changed, and with its last one changed."""
    texts = op.value.items() if is_dict(op.value) else [("", op.value)]
    for name, text in texts:
        lines = text.split("\n") if isinstance(text, str) else []
        said = [place for place, line in enumerate(lines) if re.search(r"\w\s*$", line)]
        for place in dict.fromkeys((said[0], said[-1])) if len(said) > 1 else ():
            wrong = "\n".join([*lines[:place], f"{lines[place].rstrip()}x", *lines[place + 1 :]])
            yield msgspec.structs.replace(op, value={**op.value, name: wrong} if name else wrong)


def _beside(ctx: AuditContext, task: str, calls: Sequence[Op]) -> list[Op]:
    """Returns writes outside the solution: known ones, and its own calls on other things."""
    own_value = {(op.name, repr(op.value)) for op in calls}
    acts = known(ctx, task).acts if task in kinds_of_tasks(ctx, 2) else ()  # Other checks ask about these, too.
    free = [op for op in acts if (op.name, repr(op.value)) not in own_value]
    own = [step for op in calls for step in _variants(ctx, op) if not seems_to_read(ctx, op.name)]
    return [*free[:: max(1, len(free) // DAMAGED)][:DAMAGED], *own][:DAMAGED]


def _variants(ctx: AuditContext, op: Op) -> Iterator[Op]:
    """The call with one of its arguments another one that its schema allows."""
    tool = next((spec for spec in ctx.about.tools if spec.name == op.name), None)
    if op.do != "call" or tool is None or not is_dict(op.value):
        return
    for name, value in op.value.items():
        schema: Any = tool.properties.get(name, {})
        fit = (
            candidate
            for candidate in _values(ctx, name, value, schema=schema)
            if candidate != value and fits(candidate, schema, tool.parameters)
        )
        other_value = next(fit, None)
        if other_value is not None:
            yield msgspec.structs.replace(op, value={**op.value, name: other_value})


def _values(ctx: AuditContext, name: str, value: Any, *, schema: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value - 1, value + 1)
    elif is_list(value):
        yield value[:-1]
    elif is_dict(schema) and is_list(schema.get("enum")):
        yield from schema["enum"]
    elif isinstance(value, str):
        yield from (candidate for candidate in ctx.discovery.values.of(name) if isinstance(candidate, str))
        yield f"{value}x"
