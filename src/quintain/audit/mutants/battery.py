"""The episodes in which mutants are tried: solutions, parts of them, and solutions with something beside them.

Each task's episodes are one probe: begin, act, look, score; and again. What they give without a mutant is the baseline.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.context import AuditContext
from quintain.audit.data import is_number
from quintain.audit.probe import Op, Probe, Record, number, reset, score

TASKS = 4
"""Tasks whose episodes are played."""
PARTS = 5
"""Parts of a solution, at most."""
STRANGE = 8
"""Solutions with something else in them, at most, of each kind as many."""


class Episode(msgspec.Struct, frozen=True):
    """One way to act on a task.

    Attributes:
        told: What it is, in words.
        is_solution: It is the task's solution, whole.
    """

    task: str
    told: str
    ops: tuple[Op, ...]
    is_solution: bool = False


class Tried(msgspec.Struct, frozen=True):
    """A task with its episodes and what they gave without a mutant.

    Attributes:
        scores: By episode; None where there was no verdict.
        refused: By episode, places of ops that were answered by an error.
        full: What the solution is paid.
        floor: What is paid for nothing.
        seconds: What it took to play them all.
    """

    task: str
    episodes: tuple[Episode, ...]
    scores: tuple[float | None, ...]
    refused: tuple[frozenset[int], ...]
    full: float
    floor: float
    seconds: float


def solved(ctx: AuditContext, most: int = TASKS) -> list[str]:
    """Tasks whose solution is known, spread over all.

    Raises:
        NotChecked: There is none.
    """
    known = [task for task in ctx.sample_tasks(2 * most) if ctx.oracle(task)]
    if not known:
        raise ctx.not_checked("no solution is known")
    return known[:: max(1, len(known) // most)][:most]


def verdicts(ctx: AuditContext) -> list[Tried]:
    """Episodes for mutants of the verifier: they are paid in many ways."""
    return _tried(ctx, [[*_parts(ctx, task), *_strange(ctx, task)] for task in solved(ctx)])


def deeds(ctx: AuditContext) -> list[Tried]:
    """Episodes for mutants of tools: solutions, and those with a call in them that is refused, and costs nothing."""
    tried = _tried(ctx, [[*_parts(ctx, task)[:2], *_strange(ctx, task)] for task in solved(ctx)])
    return [kept for one in tried if (kept := _harmless(one)) is not None]


def _harmless(one: Tried) -> Tried | None:
    """Only the episodes that are paid in full."""
    kept = [
        place
        for place, episode in enumerate(one.episodes)
        if one.scores[place] == one.full and (episode.is_solution or one.refused[place] - one.refused[0])
    ]
    if not kept or kept[0] != 0:
        return None
    return msgspec.structs.replace(
        one,
        episodes=tuple(one.episodes[place] for place in kept),
        scores=tuple(one.scores[place] for place in kept),
        refused=tuple(one.refused[place] for place in kept),
    )


def probe(episodes: Sequence[Episode], look: Sequence[Op] = (), *, around: Sequence[Op] = ()) -> Probe:
    """Episodes as one probe; `look` comes before the score, `around` before and after it, each under its own mark."""
    return Probe(
        tuple(op for place, one in enumerate(episodes) for op in _episode(place, one, look=look, around=around))
    )


def _episode(place: int, one: Episode, *, look: Sequence[Op], around: Sequence[Op]) -> Iterator[Op]:
    yield reset(one.task)
    for at, op in enumerate(one.ops):
        yield op.marked(f"{place} op {at}")
    yield from (op.marked(f"{place} {op.do}") for op in look)
    yield from (op.marked(f"{place} before") for op in around)
    yield score(mark=f"{place} score")
    yield from (op.marked(f"{place} after") for op in around)


def scores(record: Record, count: int) -> tuple[float | None, ...]:
    """What the episodes of a probe were paid; None where there was no verdict."""
    return tuple(number(record.at(f"{place} score")) for place in range(count))


def _tried(ctx: AuditContext, groups: Sequence[Sequence[Episode]]) -> list[Tried]:
    found: list[Tried] = []
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
        found.append(Tried(episodes[0].task, tuple(episodes), paid, tuple(refused), full, floor, seconds))
    if not found:
        raise ctx.not_checked("no solution is paid more than nothing is")
    return found


def _parts(ctx: AuditContext, task: str) -> list[Episode]:
    """The solution, nothing, its beginnings, and the solution without one of its ops."""
    ops = ctx.oracle(task) or ()
    whole = Episode(task, "the solution", ops, is_solution=True)
    without = [
        Episode(task, f"the solution without {_named(op)}", (*ops[:place], *ops[place + 1 :]))
        for place, op in enumerate(ops)
    ]
    begun = [Episode(task, f"the solution's first {end} steps", ops[:end]) for end in range(1, len(ops))]
    rest = [*without, *begun]
    drawn = rest if len(rest) <= PARTS else ctx.rng.sample(rest, PARTS)
    return [whole, Episode(task, "nothing", ()), *drawn]


def _strange(ctx: AuditContext, task: str) -> list[Episode]:
    """Solutions with one argument altered, with a call repeated, and with a call of another task in them."""
    ops = ctx.oracle(task) or ()
    calls = [place for place, op in enumerate(ops) if op.do == "call"]
    last = calls[-1] + 1 if calls else 0
    instead: list[Episode] = []
    beside: list[Episode] = []
    for place in calls:
        for told, other in alterations(ctx, ops[place]):
            instead.append(Episode(task, f"the solution with {told}", (*ops[:place], other, *ops[place + 1 :])))
            beside.append(Episode(task, f"the solution and then {told}", (*ops[:last], other, *ops[last:])))
    again = [
        Episode(task, f"the solution with {_named(ops[place])} once more", (*ops[:last], ops[place], *ops[last:]))
        for place in calls
    ]
    others = [
        Episode(task, f"the solution and {_named(known.op)} of another task", (*ops[:last], known.op, *ops[last:]))
        for known in ctx.discovery.writes()
        if known.task != task
    ]
    kinds = [ctx.rng.sample(kind, len(kind)) for kind in (beside, others, instead, again)]
    mixed = [one for several in itertools.zip_longest(*kinds) for one in several if one is not None]
    return mixed[:STRANGE]


def alterations(ctx: AuditContext, op: Op) -> Iterator[tuple[str, Op]]:
    """A call with one argument altered: a number moved, another value that was seen under its name."""
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


def _named(op: Op) -> str:
    return op.name if op.do == "call" else "its last words"
