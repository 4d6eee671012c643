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
        kept = [
            place
            for place, episode in enumerate(one.episodes)
            if one.scores[place] == one.full and (episode.is_solution or one.refused[place] - one.refused[0])
        ]
        found += [one.only(kept)] if kept and kept[0] == 0 else []
    return found


def probe(episodes: Sequence[EpisodeScript], look: Sequence[Op] = (), *, around: Sequence[Op] = ()) -> Probe:
    """Returns episodes as one probe, with `look` before each score and `around` before and after it."""
    return Probe(
        tuple(op for place, one in enumerate(episodes) for op in _episode(place, one, look=look, around=around))
    )


def _episode(place: int, one: EpisodeScript, *, look: Sequence[Op], around: Sequence[Op]) -> Iterator[Op]:
    yield reset(one.task)
    for at, op in enumerate(one.ops):
        yield op.marked(f"{place} op {at}")
    yield from (op.marked(f"{place} {op.do}") for op in look)
    yield from (op.marked(f"{place} before") for op in around)
    yield score(mark=f"{place} score")
    yield from (op.marked(f"{place} after") for op in around)


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
    rest = [
        EpisodeScript(task, f"the solution without {named(op)}", (*ops[:place], *ops[place + 1 :]))
        for place, op in enumerate(ops)
    ]
    rest += [EpisodeScript(task, f"the solution's first {end} steps", ops[:end]) for end in range(1, len(ops))]
    whole = EpisodeScript(task, "the solution", ops, is_solution=True)
    return [whole, EpisodeScript(task, "nothing", ()), *(rest if len(rest) <= PARTS else ctx.rng.sample(rest, PARTS))]


def _strange(ctx: AuditContext, task: str) -> list[EpisodeScript]:
    """Returns solutions with one argument altered, a call repeated, or a call of another task inserted."""
    ops = ctx.oracle(task) or ()
    calls = [place for place, op in enumerate(ops) if op.do == "call"]
    last = calls[-1] + 1 if calls else 0

    def also(op: Op, words: str) -> EpisodeScript:
        return EpisodeScript(task, f"the solution {words}", (*ops[:last], op, *ops[last:]))

    altered = [(place, *one) for place in calls for one in alterations(ctx, ops[place])]
    beside = [also(other, f"and then {words}") for _, words, other in altered]
    instead = [
        EpisodeScript(task, f"the solution with {words}", (*ops[:place], other, *ops[place + 1 :]))
        for place, words, other in altered
    ]
    again = [also(ops[place], f"with {named(ops[place])} once more") for place in calls]
    foreign = [known.op for known in ctx.discovery.writes() if known.task != task]
    others = [also(op, f"and {named(op)} of another task") for op in foreign]
    kinds = [ctx.rng.sample(kind, len(kind)) for kind in (beside, others, instead, again)]
    mixed = [one for several in itertools.zip_longest(*kinds) for one in several if one is not None]
    return mixed[:STRANGE]


def alterations(ctx: AuditContext, op: Op) -> Iterator[tuple[str, Op]]:
    """Yields a call with one argument altered: a number moved, or another seen value of that name."""
    for name, value in op.value.items():
        for other in _others(ctx, name, value):
            changed = msgspec.structs.replace(op, value={**op.value, name: other})
            yield f"{op.name}({name}={other!r} instead of {value!r})"[:160], changed


def _others(ctx: AuditContext, name: str, value: Any) -> Iterator[Any]:
    if is_number(value):
        yield from (value + 1, -value if value else -1, value * 10 + 7)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, str):
        seen = [one for one in ctx.discovery.values.of(name) if isinstance(one, str) and one != value]
        yield from ctx.rng.sample(seen, min(2, len(seen)))


def named(op: Op) -> str:
    return op.name if op.do == "call" else "its last words"
