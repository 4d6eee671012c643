"""States of a task between start and solution with their rewards, and rules that no sound reward follows.

A state is the oracle with some of its writes left out, so it is known which of two states is more nearly done.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.acts import only_reads
from quintain.audit.facts.data import is_dict, is_number
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, number, reset
from quintain.audit.kernel.registry import relation

from ._reward_runs import longest

EPSILON = 1e-9
WALKED = 6
"""Tasks that are walked."""
FLAT = "that going on is worth nothing: these states have equal rewards"

Parts = dict[str, float]


class PaidState(msgspec.Struct, frozen=True):
    """A state, its reward, and the places of the oracle's writes that were played."""

    task: str
    ops: tuple[Op, ...]
    score: float
    done: frozenset[int]

    @property
    def probe(self) -> Probe:
        return solves(self.task, self.ops)


Walk = tuple[str, tuple[int, ...], list[PaidState]]


def walks(ctx: AuditContext) -> list[Walk]:
    """Returns tasks, their oracles' writes, and states: nothing, each write alone, all but each, prefixes, pairs."""
    tasks = dict.fromkeys((*ctx.sample_tasks(WALKED), *longest(ctx)))
    found = ctx.once(("ladders",), lambda own: [walk for task in tasks for walk in _walk(own, task)])
    if not found:
        raise ctx.not_checked("no task has a solution that does anything")
    return found


def _walk(ctx: AuditContext, task: str) -> Iterator[Walk]:
    writes = _writes(ctx, task)
    whole = frozenset(writes)
    kept = [frozenset[int](), whole, *(frozenset(writes[:count]) for count in range(1, len(writes)))]
    kept += [some for write in writes[:12] for some in (whole - {write}, frozenset({write}))]
    for size, most in ((2, 7), (3, 6)):
        if size < len(writes) <= most:
            kept += map(frozenset, itertools.combinations(writes, size))
    if writes:
        yield task, writes, _states(ctx, task, writes, kept=list(dict.fromkeys(kept)))


def _writes(ctx: AuditContext, task: str) -> tuple[int, ...]:
    """Returns the places of the oracle's ops that change the world or hand in text."""
    ops = ctx.oracle(task) or ()
    if "state" not in ctx.offers:
        return tuple(range(len(ops)))
    look = Op("changes")
    seen = ctx.play(reset(task), look, *(step for op in ops for step in (op, look))).seen
    looks = [result.value for result in seen[1::2]]
    steps, names = zip(ops, itertools.pairwise(looks), strict=False), ctx.discovery.background
    found = [place for place, (op, sides) in enumerate(steps) if op.do == "answer" or _differs(*sides, names)]
    # Where calls take time, the world goes on while one of them reads.
    acts = [place for place in found if not only_reads(ctx, ops[place])]
    return tuple(acts if any(ops[place].do == "call" for place in acts) else found)


def _differs(before: Any, after: Any, background: frozenset[str]) -> bool:
    if not (is_dict(before) and is_dict(after)):
        return bool(before != after)
    paths = [path for path in {*before, *after} if path.partition("/")[0] not in background]
    return any(before.get(path) != after.get(path) for path in paths)


def _states(ctx: AuditContext, task: str, writes: Sequence[int], *, kept: Sequence[frozenset[int]]) -> list[PaidState]:
    """Plays the oracle with only these of its writes (reads all stay), each from the start, and scores it."""
    ops = ctx.oracle(task) or ()
    plays = [tuple(op for place, op in enumerate(ops) if place not in writes or place in some) for some in kept]
    # Where the world can go back, many states share a probe: to go back costs less than to begin again.
    goes_back = {"snapshot", "restore"} <= ctx.offers
    size = max(1, (len(plays) + 3) // 4) if goes_back else 1
    head = (reset(task), *([Op("snapshot", name="start")] if goes_back else ()))
    tail = (Op("score"), *([Op("restore", name="start")] if goes_back else ()))
    parts = [range(start, min(start + size, len(plays))) for start in range(0, len(plays), size)]
    probes = [Probe((*head, *(op for place in part for op in (*plays[place], *tail)))) for part in parts]
    found: list[PaidState] = []
    for part, record in zip(parts, ctx.play_all(probes), strict=True):
        at = len(head)
        for place in part:
            seen = record.seen[at : at + len(plays[place]) + 1]
            at += len(plays[place]) + len(tail)
            paid = number(seen[-1]) if len(seen) == len(plays[place]) + 1 else None
            # Where a tool ends the episode, the oracle's last words come too late, and are refused.
            errors = [op.do for op, result in zip(plays[place], seen, strict=False) if result.is_error]
            if paid is not None and all(do == "answer" for do in errors):
                found.append(PaidState(task, plays[place], paid, kept[place]))
    return found


def _parts(seen: OpResult) -> Parts:
    """Returns the numeric components reported with a score, nested ones by their path."""
    return dict(_numbers(seen.value, "")) if seen.fine and is_dict(seen.value) else {}


def _numbers(value: dict[str, Any], under: str) -> Iterator[tuple[str, float]]:
    for name, item in value.items():
        path = f"{under}.{name}" if under else str(name)
        if is_dict(item):
            yield from _numbers(item, path)
        elif path != "score" and (is_number(item) or isinstance(item, bool)):
            yield path, float(item)


def is_graded(ctx: AuditContext, paid: Sequence[PaidState]) -> bool:
    """True if rewards are declared as graded or more than two reward levels were seen."""
    return ctx.attribute("graded") is True or len(levels(state.score for state in paid)) > 2


def levels(scores: Iterator[float] | Sequence[float]) -> set[float]:
    """Returns the distinct rewards."""
    return {round(score, 9) for score in scores}


# --- rules: each states the bug, of the rewards of a few probes and their components ---


def _does_not_count(scores: Sequence[float], _parts: Sequence[Parts], sizes: Any) -> bool:
    """The first states are paid as much as the next ones, or more, which have one right thing more.

    Where they are paid the same, the other states show two further amounts.
    """
    first, second = sizes
    less, more, others = scores[:first], scores[first : first + second], scores[first + second :]
    same = max(*less, *more) - min(*less, *more) <= EPSILON
    further = levels([score for score in others if abs(score - less[0]) > EPSILON])
    return max(more) < min(less) - EPSILON or (same and len(further) >= 2)


def _is_free(scores: Sequence[float], parts: Sequence[Parts], _data: Any) -> bool:
    """A second damage costs nothing, though some reward remains to be lost and a component tells one from two."""
    none, left, right, both = scores
    before, first, _, after = parts
    flat = max(left, right, both) - min(left, right, both) <= EPSILON < both < none - EPSILON
    known = [(before[name], first[name], after[name]) for name in before if name in first and name in after]
    return flat and any(a < b - EPSILON < c - 2 * EPSILON or a > b + EPSILON > c + 2 * EPSILON for a, b, c in known)


Rule = Callable[[Sequence[float], Sequence[Parts], Any], bool]
RULES: dict[str, Rule] = {
    # A state more nearly done is paid the same, though so many amounts occur.
    "stays": lambda s, parts, least: len(levels(s)) >= least and abs(s[0] - s[1]) <= EPSILON,
    "does_not_count": _does_not_count,
    "two_levels": lambda s, parts, least: len(s) >= least and len(levels(s)) == 2,
    # The right answer, a wrong one, and one that is far wrong.
    "pays_wrong": lambda s, parts, data: s[1] >= s[0] - EPSILON and s[2] < s[0] - 1e-6,
}
CLEAN_RULES: dict[str, Rule] = {
    # Without one field each, without several of them, and the whole.
    "rounds": lambda s, parts, data: min(s[:-2]) >= s[-1] - EPSILON > s[-2],
    # Each of three lost, each two of them, all three, and the whole.
    "cut_off": lambda s, parts, data: min(s[:3]) >= s[7] - EPSILON > max(s[3:6]) and s[6] < min(s[3:6]) - EPSILON,
    "climbs": lambda s, parts, data: all(less < more - EPSILON for less, more in itertools.pairwise(s)),
    # Without damage, with one, with another one, with both.
    "grows": lambda s, parts, data: min(s[1:3]) > s[0] + EPSILON and s[3] > max(s[1:3]) + EPSILON,
    "makes_good": lambda s, parts, data: max(s[1:3]) < s[0] - EPSILON and s[3] > max(s[1:3]) + EPSILON,
    "is_free": _is_free,
}
"""Rules of probes in which no op may fail."""


@relation
def pays_by(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if every probe has a score and the rule that `data` names, with its number, holds for them."""
    name, data = evidence.data
    seen = [record.at("score") for record in records]
    scores = [score for score in map(number, seen) if score is not None]
    is_clean = name in RULES or not any(result.is_error for record in records for result in record.seen)
    rule = (RULES | CLEAN_RULES)[name]
    return is_clean and len(scores) == len(seen) and rule(scores, list(map(_parts, seen)), data)


def holds(rule: str, records: Sequence[Record]) -> bool:
    """True if a rule holds for records."""
    return pays_by(records, Evidence("", data=[rule, None]))


def paid_by(
    ctx: AuditContext, rule: str, title: str, *probes: Probe, data: Any = None, **fields: Any
) -> Finding | None:
    """Returns the finding that a rule holds for the rewards of probes."""
    common: dict[str, Any] = {"marks": ("score",), "minimise": 0, "part": "V", "data": [rule, data]}
    return ctx.finding(title, *probes, relation=f"{__name__}:pays_by", **common | fields)
