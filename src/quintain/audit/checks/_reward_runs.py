"""Runs of many ways through one task in one child: their rewards, and what their worlds lack.

This is how the checks of reward look for candidates; what they claim is then proved by probes of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from quintain.audit.facts.acts import MISSING, Path, at, differences, meets, only_reads
from quintain.audit.facts.data import parsed
from quintain.audit.facts.walks import Solution, solve
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, ask, number, reset, score, state
from quintain.audit.kernel.registry import probe_function, relation

__all__ = ["Solution", "solve"]

_LOOKED_AT = 24  # Tasks of which some of each kind are chosen.
_MANY = 3, 8  # Calls of one tool between which a solution is long, and still soon taken apart.
_PART, _LIMIT_S = 24, 10.0  # Ways that are tried in one child, and seconds for them.
PAID, PAID_AS = f"{__name__}:paid_anyway", f"{__name__}:paid_as"
T = TypeVar("T")
SURE: dict[str, Any] = {"severity": "error", "at_most": "proven"}
UNSURE: dict[str, Any] = {"severity": "warning", "at_most": "likely"}
Pairs = Sequence[Sequence[Any]]
"""[[path, value], ...] of a state."""


@relation
def paid_anyway(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe is paid `full` at "score", though something that the task needs is not so.

    Data:
        full: The pay.
        lacks: Paths and values; what the state at "state", or what a tool shows there, lacks at least one of.
        has: Paths and values that it holds, all of them.
        done: Marks of ops that must have worked.
    """
    wanted: dict[str, Any] = evidence.data
    record = records[0]
    lacks, has = wanted.get("lacks", ()), wanted.get("has", ())
    if not paid_so(record, "full", wanted["full"]) or any(record.at(mark).is_error for mark in wanted.get("done", ())):
        return False
    end = record.at("state") if lacks or has else OpResult()
    world = parsed(end.value)
    missing = not lacks or any(at(world, path) != value for path, value in lacks)
    return end.fine and missing and all(at(world, path) == value for path, value in has)


@relation
def paid_as(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if each probe is paid as `data` says.

    Data:
        full: The pay of right work.
        paid: By probe: "full", "less", "lost" (less or no verdict), or "some" (anything).
        works: True if no call may have failed.
    """
    data: dict[str, Any] = evidence.data
    is_paid = all(paid_so(record, how, data["full"]) for record, how in zip(records, data["paid"], strict=True))
    ops = [pair for record in records for pair in zip(record.ops, record.seen, strict=False)] if data["works"] else []
    return is_paid and not any(seen.is_error for op, seen in ops if op.do in ("call", "answer"))


def paid_so(record: Record, how: str, full: float) -> bool:
    """True if a record is paid in full, less, less or nothing ("lost"), or something ("some")."""
    got = number(record.at("score"))
    if how == "lost":
        return got is None or got < full - 1e-9
    return got is not None and {"full": got >= full - 1e-9, "less": got < full - 1e-9, "some": got > 0}[how]


class Run(msgspec.Struct, frozen=True):
    """Result of one way to play a task.

    Attributes:
        score: None without a verdict.
        errors: Places of the ops that were refused or crashed.
        lacks: Paths at which the world differs from the solution's end; like the others, for full rewards only.
        touched: Paths at which it differs from the start.
        made: Those of them that did not exist at the start.
    """

    score: float | None
    errors: tuple[int, ...] = ()
    lacks: tuple[Path, ...] = ()
    touched: tuple[Path, ...] = ()
    made: tuple[Path, ...] = ()


def runs(ctx: AuditContext, solved: Solution, ways: Sequence[Sequence[Op]], *, look: bool = False) -> list[Run]:
    """Tries ways on the task of a solution; a way that broke its child has no score.

    The world is looked at behind those that are paid in full, or behind all: to look costs more than to play.
    """
    return runs_of(ctx, solved.task, ways, solved=solved, full=float("-inf") if look else solved.full)


def runs_of(
    ctx: AuditContext, task: str, ways: Sequence[Sequence[Op]], *, solved: Solution | None = None, full: float = 0.0
) -> list[Run]:
    """Returns the runs of a task without a known solution."""
    wanted = [[list(path), pair[1]] for path, pair in solved.changed.items()] if solved else []
    request = {"task": task, "wanted": wanted, "volatile": list(ctx.volatile), "full": full}
    return _several(ctx, request, [ways[start : start + _PART] for start in range(0, len(ways), _PART)])


def _several(ctx: AuditContext, request: dict[str, Any], parts: Sequence[Sequence[Sequence[Op]]]) -> list[Run]:
    """Each part in a child of its own; where one way breaks the child, each of its part is tried alone."""
    where = f"{__name__}:try_ways"
    probes = [Probe((ask(where, request | {"ways": msgspec.to_builtins(part)}),)) for part in parts]
    found: list[Run] = []
    for part, record in zip(parts, ctx.play_all(probes, _LIMIT_S), strict=True):
        seen = record.at("ask")
        if seen.fine:
            found += msgspec.convert(seen.value, list[Run])
        else:
            found += _several(ctx, request, [[way] for way in part]) if len(part) > 1 else [Run(None)]
    return found


class Track:
    """Instance in a child that goes back to earlier moments of its task, by snapshots if possible."""

    def __init__(self, player: Player, on: str, task: str) -> None:
        self.player, self.on, self.task, self.count = player, on, task, 0
        self.offers = player.adapter(on).offers

    def do(self, op: Op) -> OpResult:
        return self.player.do(op.moved(self.on))

    def begin(self) -> OpResult:
        self.do(Op("close"))
        self.player.adapters.pop(self.on, None)
        return self.do(reset(self.task))

    def keep(self) -> str:
        """Returns the name of a snapshot; empty if there is none."""
        self.count += 1
        name, can_return = f"moment {self.count}", {"snapshot", "restore"} <= self.offers
        return name if can_return and self.do(Op("snapshot", name=name)).fine else ""

    def back(self, kept: str) -> bool:
        return bool(kept) and self.do(Op("restore", name=kept)).fine

    def go(self, path: Sequence[Op], kept: str) -> None:
        """Goes back to a snapshot, or plays the path from the start."""
        if not self.back(kept):
            self.begin()
            for op in path:
                self.do(op)


@probe_function
def try_ways(player: Player, on: str, value: Any) -> list[Any]:
    """Returns, in the child, the runs of ways, each from the last moment that it shares with the one before."""
    ways = msgspec.convert(value["ways"], list[list[Op]])
    track, found, before = Track(player, on, value["task"]), list[Run](), list[Op]()
    sees, start = "state" in track.offers and bool(value["wanted"]), None
    kept, depth, kept_errors = "", 0, tuple[int, ...]()
    for way, following in zip(ways, [*ways[1:], []], strict=True):
        begun, errors, keep = depth, kept_errors, _shared(way, following)
        if depth > _shared(way, before) or not track.back(kept):
            kept, depth, begun, errors = "", 0, 0, ()
            if track.begin().how:
                found.append(Run(None))
                continue
            if sees and start is None:
                start = track.do(state()).value
        for place in range(begun, len(way) + 1):
            if place == keep and (name := track.keep()):
                kept, depth, kept_errors = name, keep, errors
            errors += (place,) if place < len(way) and track.do(way[place]).is_error else ()
        before, paid = way, number(track.do(score()))
        if not sees or paid is None or paid < value["full"] - 1e-9:
            found.append(Run(paid, errors))
            continue
        end = track.do(state()).value
        pairs = differences(start, end, value["volatile"]).items()
        touched = {path: pair for path, pair in pairs if pair[0] != MISSING or str(pair[1]).lower() not in _NOTHING}
        made = tuple(path for path, (old, _) in touched.items() if old == MISSING)
        lacks = tuple(tuple(path) for path, item in value["wanted"] if at(end, path) != item)
        found.append(Run(paid, errors, lacks, tuple(touched), made))
    return [msgspec.to_builtins(run) for run in found]


def _shared(first: Sequence[Op], second: Sequence[Op]) -> int:
    """Returns the number of equal ops at the start of two ways."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(first), len(second)))


def paid(ctx: AuditContext, count: int, also: Sequence[str] = ()) -> list[Solution]:
    """Returns walked solutions that are paid, and more than nothing is; those of other tools than the others first.

    Kinds of tasks often come in turn, so that tasks at equal distances may be of one kind.
    """
    by_tools: dict[frozenset[str], str] = {}
    for task in ctx.sample_tasks(_LOOKED_AT) if "oracle" in ctx.offers else ():
        by_tools.setdefault(frozenset(op.name for op in ctx.oracle(task) or ()), task)
    chosen = list(dict.fromkeys((*by_tools.values(), *ctx.sample_tasks(count))))[:count]
    return paid_of(ctx, tuple(dict.fromkeys((*chosen, *also))))


def longest(ctx: AuditContext) -> list[str]:
    """Returns the task whose solution calls one tool that writes most often; none below three calls.

    What a reward rounds or cuts off shows only where there is much of one kind to do.
    """
    most: dict[str, int] = {}
    for task in ctx.sample_tasks(_LOOKED_AT) if "oracle" in ctx.offers else ():
        calls = Counter(op.name for op in ctx.oracle(task) or () if op.do == "call" and not only_reads(ctx, op))
        if _MANY[0] <= (count := max(calls.values(), default=0)) <= _MANY[1]:
            most[task] = count
    return sorted(most, key=most.__getitem__)[-1:]


def paid_of(ctx: AuditContext, tasks: Sequence[str]) -> list[Solution]:
    """Returns the same of these tasks."""
    found = [one for one in solve(ctx, tasks) if one.full > 0 and (one.floor is None or one.floor < one.full - 1e-9)]
    if not found:
        raise ctx.not_checked("no solution is known that is paid more than nothing")
    return found


def pays(solution: Solution, run: Run) -> bool:
    """True if a way is paid in full."""
    return run.score is not None and run.score >= solution.full - 1e-9


def survives(solution: Solution, run: Run) -> bool:
    """True if a way that does less is paid in full and ends in another state."""
    return pays(solution, run) and (bool(run.lacks) or not solution.sees)


def unpunished(
    ctx: AuditContext, solution: Solution, tried: Sequence[tuple[T, Sequence[Op]]]
) -> Iterator[tuple[T, tuple[Op, ...], Run]]:
    """Yields the named ways that do less and are paid in full, with their runs."""
    ctx.count_comparisons(len(tried))
    for (name, way), run in zip(tried, runs(ctx, solution, [way for _, way in tried]), strict=True):
        if survives(solution, run):
            yield name, tuple(way), run


def claim(
    ctx: AuditContext, solution: Solution, way: Sequence[Op], *, title: str, lacks: Pairs | None = None,
    has: Pairs = (), also: Sequence[Probe] = (), **fields: Any,
) -> Finding | None:  # fmt: skip
    """Proves that a way on a solution's task is paid in full; its marked ops must work.

    Args:
        ctx: Plays the probes.
        solution: The solution.
        way: Ops in its place.
        title: The claim.
        lacks: What the world lacks at the end, or None to look at the reward alone.
        has: What the world holds at the end.
        also: Further probes.
        fields: Other fields of the finding than `claim` gives it.
    """
    done = [op.mark for op in way if op.mark]
    look = (state(),) if solution.sees and (lacks is not None or has) else ()
    data = {"full": solution.full, "lacks": list(lacks or ()), "has": list(has), "done": done}
    common: dict[str, Any] = {
        "relation": PAID, "part": "V", "expected": f"less than {solution.full:g}", "observed": solution.full,
        "data": data, "marks": ("score", *(op.mark for op in look), *done),
    }  # fmt: skip
    return ctx.finding(title, solves(solution.task, (*way, *look)), *also, **common | fields)


def paid_unlike(
    ctx: AuditContext, title: str, *probes: Probe, paid: Sequence[str], full: float, works: bool = True, **fields: Any
) -> Finding | None:
    """Proves that probes are paid as `paid_as` says."""
    data = {"full": full, "paid": list(paid), "works": works}
    common: dict[str, Any] = {"relation": PAID_AS, "marks": ("score",), "data": data, "minimise": 0, "part": "V"}
    return ctx.finding(title, *probes, **common | fields)


def places(pairs: Pairs, most: int = 4) -> str:
    """Returns the first paths of what a world lacks as text."""
    return ", ".join("/".join(path) for path, _ in pairs[:most])


_NOTHING = ("", "none", "null", "[]", "{}")  # what a field says that holds nothing, which is no record
_CLOCK = re.compile(r"minutes|seconds|hours|elapsed|clock|timer|updated|touched", re.IGNORECASE)
"""Fields that time itself changes; their changes are not part of any work."""


def lacking(solution: Solution, run: Run, effects: Sequence[Path] | None = None) -> list[list[Any]]:
    """Returns what the world lacks of given effects, or of all, in the form that the relation expects."""
    effects = tuple(solution.changed) if effects is None else effects
    gone = [path for path in run.lacks if not _CLOCK.search(path[-1]) and any(meets(path, e) for e in effects)]
    return demanded_first(solution, sorted(gone))[:20]


def weight(solution: Solution, lacks: Pairs, left_out: Sequence[int] = ()) -> dict[str, Any]:
    """Returns the severity of missing effects or left-out writes: an error if the prompt asked for them.

    Other writes of a solution may be a courtesy (a note, a run of the tests), and may be left out.
    """
    missing = any(solution.is_demanded(path) for path, _ in lacks)
    return SURE if missing or (not solution.sees and set(left_out) & set(solution.demanded)) else UNSURE


def demanded_first(solution: Solution, gone: Sequence[Path]) -> list[list[Any]]:
    """Returns the missing effects that the prompt asked for, or all if there are none."""
    lacks: list[list[Any]] = [[list(path), solution.changed[path][1]] for path in gone]
    return [pair for pair in lacks if solution.is_demanded(pair[0])] or lacks
