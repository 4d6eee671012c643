"""Battery of episodes for mutants: solutions, parts of them, and solutions with further calls.

Each task's episodes are one probe of begin, act, look and score. Their results without a mutant are the baseline.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_number
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.probe import Op, Probe, Record, number, reset, score

TASKS = 4  # most tasks whose episodes are played
PARTS = 5  # most parts of a solution
STRANGE = 8  # most altered solutions of each kind


class EpisodeScript(msgspec.Struct, frozen=True):
    """Sequence of ops on a task, described for people; `is_solution` if it is the task's whole solution."""

    task: str
    description: str
    ops: tuple[Op, ...]
    is_solution: bool = False


class TaskBaseline(msgspec.Struct, frozen=True):
    """Task with its episodes and, by episode, their scores (None without a verdict) and the places of refused ops.

    `full` is the score of the solution, `floor` that of doing nothing.
    """

    task: str
    episodes: tuple[EpisodeScript, ...]
    scores: tuple[float | None, ...]
    refused: tuple[frozenset[int], ...]
    full: float
    floor: float
    seconds: float

    def only(self, places: Sequence[int]) -> TaskBaseline:
        kept: dict[str, Any] = {
            name: tuple(getattr(self, name)[place] for place in places) for name in ("episodes", "scores", "refused")
        }
        return msgspec.structs.replace(self, **kept)


def solved(ctx: AuditContext, most: int = TASKS) -> list[str]:
    """Returns tasks with a known solution, spread evenly; raises NotChecked if no task has one."""
    known = [task for task in ctx.sample_tasks(2 * most) if ctx.oracle(task)]
    if not known:
        raise ctx.not_checked("no solution is known")
    return known[:: max(1, len(known) // most)][:most]


def verdicts(ctx: AuditContext) -> list[TaskBaseline]:
    """Returns episodes with many different scores, for mutants of the verifier."""
    return _tried(ctx, [[*_parts(ctx, task), *_strange(ctx, task)] for task in solved(ctx)])


def deeds(ctx: AuditContext) -> list[TaskBaseline]:
    """Returns fully paid episodes for mutants of tools: solutions, also with a refused call that costs nothing."""
    found: list[TaskBaseline] = []
    for one in _tried(ctx, [[*_parts(ctx, task)[:2], *_strange(ctx, task)] for task in solved(ctx)]):
        paid = [place for place, score in enumerate(one.scores) if score == one.full]
        kept = [at for at in paid if one.episodes[at].is_solution or one.refused[at] - one.refused[0]]
        found += [one.only(kept)] if kept[:1] == [0] else []
    return found


def probe(episodes: Sequence[EpisodeScript], look: Sequence[Op] = (), *, around: Sequence[Op] = ()) -> Probe:
    """Returns episodes as one probe, with `look` before each score and `around` before and after it."""
    ops: list[Op] = []
    for place, one in enumerate(episodes):
        ops += [reset(one.task), *(op.marked(f"{place} op {at}") for at, op in enumerate(one.ops))]
        ops += [op.marked(f"{place} {op.do}") for op in look]
        ops += [op.marked(f"{place} before") for op in around]
        ops += [score(mark=f"{place} score"), *(op.marked(f"{place} after") for op in around)]
    return Probe(tuple(ops))


def scores(record: Record, count: int) -> tuple[float | None, ...]:
    return tuple(number(record.at(f"{place} score")) for place in range(count))


def _tried(ctx: AuditContext, groups: Sequence[Sequence[EpisodeScript]]) -> list[TaskBaseline]:
    found: list[TaskBaseline] = []
    for episodes, record in zip(groups, ctx.play_all([probe(one) for one in groups]), strict=True):
        paid = scores(record, len(episodes))
        full, floor = paid[0], paid[1]
        if record.died or full is None or floor is None or full <= floor + 1e-9:
            continue  # A task of which nothing is paid more than nothing says nothing about its verifier.
        refused = [
            frozenset(at for at in range(len(one.ops)) if record.at(f"{place} op {at}").is_error)
            for place, one in enumerate(episodes)
        ]
        seconds = sum(one.seconds for one in record.seen)
        found.append(TaskBaseline(episodes[0].task, tuple(episodes), paid, tuple(refused), full, floor, seconds))
    if not found:
        raise ctx.not_checked("no solution is paid more than nothing is")
    return found


def _parts(ctx: AuditContext, task: str) -> list[EpisodeScript]:
    """Returns the solution, doing nothing, the solution's beginnings, and the solution without one op."""
    ops = ctx.oracle(task) or ()
    without = [(f"the solution without {named(op)}", (*ops[:n], *ops[n + 1 :])) for n, op in enumerate(ops)]
    beginnings = [(f"the solution's first {end} steps", ops[:end]) for end in range(1, len(ops))]
    rest = [EpisodeScript(task, words, some) for words, some in (*without, *beginnings)]
    whole = EpisodeScript(task, "the solution", ops, is_solution=True)
    return [whole, EpisodeScript(task, "nothing", ()), *(rest if len(rest) <= PARTS else ctx.rng.sample(rest, PARTS))]


def _strange(ctx: AuditContext, task: str) -> list[EpisodeScript]:
    """Returns solutions with one argument altered, a call repeated, or a call of another task inserted."""
    ops = ctx.oracle(task) or ()
    calls = [place for place, op in enumerate(ops) if op.do == "call"]
    last = calls[-1] + 1 if calls else 0
    altered = [(place, *one) for place in calls for one in alterations(ctx, ops[place])]
    foreign = [known.op for known in ctx.discovery.writes() if known.task != task]
    beside = [(f"and then {words}", other) for _, words, other in altered]
    others = [(f"and {named(op)} of another task", op) for op in foreign]
    again = [(f"with {named(ops[place])} once more", ops[place]) for place in calls]
    also, more, twice = (
        [EpisodeScript(task, f"the solution {words}", (*ops[:last], op, *ops[last:])) for words, op in some]
        for some in (beside, others, again)
    )
    instead = [
        EpisodeScript(task, f"the solution with {words}", (*ops[:place], other, *ops[place + 1 :]))
        for place, words, other in altered
    ]
    kinds = [ctx.rng.sample(some, len(some)) for some in (also, more, instead, twice)]
    return [one for several in itertools.zip_longest(*kinds) for one in several if one is not None][:STRANGE]


def alterations(ctx: AuditContext, op: Op) -> Iterator[tuple[str, Op]]:
    """Yields a call with one argument altered: a number moved, or another seen value of that name."""
    for name, value in op.value.items():
        others: list[Any] = []
        if is_number(value):
            others = [value + 1, -value if value else -1, value * 10 + 7]
        elif isinstance(value, bool):
            others = [not value]
        elif isinstance(value, str):
            seen = [one for one in ctx.discovery.values.of(name) if isinstance(one, str) and one != value]
            others = ctx.rng.sample(seen, min(2, len(seen)))
        for other in others:
            changed = msgspec.structs.replace(op, value={**op.value, name: other})
            yield f"{op.name}({name}={other!r} instead of {value!r})"[:160], changed


def named(op: Op) -> str:
    return op.name if op.do == "call" else "its last words"
