"""Runs of many ways through one task in one child: their rewards, and what their worlds lack.

This is how the checks of reward look for candidates; what they claim is then proved by probes of its own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from quintain.audit.facts.data import parsed
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, ask, number, reset, score, state
from quintain.audit.kernel.registry import probe_function, relation

from ._reward_acts import (
    MISSING,
    Path,
    asked_for,
    at,
    differences,
    is_bookkeeping,
    meets,
    pattern,
    reads_by_name,
    submits,
    writes_by_name,
)


@relation
def paid_anyway(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe is paid `full` at "score", though something that the task needs is not so.

    Data:
        full: The pay.
        lacks: [[path, value], ...]: what the state at "state", or what a tool shows of it there, does not hold; one of
            them at least.
        has: [[path, value], ...]: what it does hold, all of it.
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


_PART = 24
"""Ways that are tried in one child."""
_LIMIT_S = 10.0
"""Seconds for them."""
PAID, PAID_AS = f"{__name__}:paid_anyway", f"{__name__}:paid_as"
T = TypeVar("T")
SURE: dict[str, Any] = {"severity": "error", "at_most": "proven"}
UNSURE: dict[str, Any] = {"severity": "warning", "at_most": "likely"}


class Run(msgspec.Struct, frozen=True):
    """Result of one way to play a task.

    Attributes:
        score: None without a verdict.
        errors: Places of the ops that were refused or crashed.
        lacks: Paths at which the world differs from the solution's end, with the solution's values; for full rewards.
        touched: Paths at which it differs from the start; for full rewards.
        made: Those of them that did not exist at the start.
    """

    score: float | None
    errors: tuple[int, ...] = ()
    lacks: dict[str, Any] = {}
    touched: tuple[Path, ...] = ()
    made: tuple[Path, ...] = ()


class Solution(msgspec.Struct, frozen=True):
    """A task's solution, played.

    Attributes:
        full: Its reward.
        floor: Reward without any action.
        effects: By place of an op, the paths that it changed for good, without bookkeeping.
        changed: (before, after) of each such path.
        sees: True if the world's state is visible.
        said: Result of each op.
        first: Result of `reset`.
        prompt: The whole prompt at the start, as text.
        errors: Places of ops that were refused or crashed.
        contents: Tables with the name of a log that are none: some call changes nothing else.
        declared: Whether a tool writes, where its author declares it or it only keeps what it answers.
    """

    task: str
    ops: tuple[Op, ...]
    full: float
    floor: float | None
    effects: dict[int, tuple[Path, ...]]
    changed: dict[Path, tuple[Any, Any]]
    sees: bool
    said: tuple[OpResult, ...]
    first: Any
    prompt: str
    errors: tuple[int, ...]
    contents: frozenset[str] = frozenset()
    declared: dict[str, bool] = {}

    @property
    def writes(self) -> tuple[int, ...]:
        """Places of the calls that do something for good; by their names where the state cannot be seen."""
        calls = [place for place, op in enumerate(self.ops) if op.do == "call" and place not in self.errors]
        known = [(place, self.ops[place]) for place in calls]
        named = [(place, op) for place, op in known if self.declared.get(op.name, not reads_by_name(op))]
        if self.sees:
            return tuple(place for place, _ in named if self.effects.get(place))
        return tuple(place for place, op in named if op.name in self.declared or writes_by_name(op) or submits(op))

    @property
    def demanded(self) -> tuple[int, ...]:
        """Places of the writes that the agent was asked for; a solution may do more than it must."""
        return tuple(place for place in self.writes if asked_for(self.ops[place], self.prompt))

    @property
    def acts(self) -> tuple[Op, ...]:
        """Returns all ops but the answers."""
        return tuple(op for op in self.ops if op.do != "answer")

    @property
    def answers(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ops if op.do == "answer")

    def without(self, *gone: int) -> tuple[Op, ...]:
        return tuple(op for place, op in enumerate(self.ops) if place not in gone)


def solve(ctx: AuditContext, tasks: Sequence[str]) -> list[Solution]:
    """Walks the solutions of tasks; those that have none, or get no verdict, are left out."""
    memory: dict[str, Solution | None] = ctx.once(("walked",), lambda _: {})
    missing = [task for task in tasks if task not in memory]
    memory |= dict.fromkeys(missing) | {solution.task: solution for solution in _solve(ctx, missing)}
    return [solution for task in tasks if (solution := memory[task]) is not None]


def _solve(ctx: AuditContext, tasks: Sequence[str]) -> Iterator[Solution]:
    known = [(task, ops) for task in tasks if (ops := ctx.oracle(task))]
    sees = "state" in ctx.offers
    value = {"sees": sees, "prompt": "prompt" in ctx.offers, "volatile": list(ctx.volatile)}
    probes = [asking("walk", value | {"task": task, "ops": msgspec.to_builtins(ops)}) for task, ops in known]
    # What a read keeps in the state is not the work of the solution.
    declared = dict.fromkeys(ctx.discovery.memos if known and sees else (), False) | ctx.declared
    for (task, ops), record in zip(known, ctx.play_all(probes), strict=True):
        seen = record.at("ask")
        if seen.fine and seen.value["full"] is not None:
            walked = msgspec.convert(seen.value, _Walked)
            fields = {name: getattr(walked, name) for name in ("full", "floor", "first", "prompt", "contents")}
            yield Solution(
                task, ops, sees=sees, declared=declared, said=walked.said, **fields,
                effects=dict(walked.effects), changed={path: (old, new) for path, old, new in walked.changed},
                errors=tuple(place for place, result in enumerate(walked.said) if result.is_error),
            )  # fmt: skip


def asking(name: str, value: Any) -> Probe:
    """Returns a probe that asks a function of this module."""
    return Probe((ask(f"{__name__}:{name}", value),))


class _Walked(msgspec.Struct, frozen=True):
    """A walk over a solution, as its child reports it."""

    full: float | None
    floor: float | None
    first: Any
    prompt: str
    contents: frozenset[str]
    said: tuple[OpResult, ...]
    effects: list[tuple[int, tuple[Path, ...]]]
    changed: list[tuple[Path, Any, Any]]


@probe_function
def walk(player: Player, on: str, value: Any) -> Any:
    """In the child: a solution, with a look at the world around each op; states are compared here, being large."""
    task, ops = value["task"], msgspec.convert(value["ops"], list[Op])
    idle = f"{on} idle"
    player.do(reset(task, on=idle))
    floor = number(player.do(score(on=idle)))
    first = player.do(reset(task, on=on)).value
    texts = [first] + ([player.do(Op("prompt", on, task)).value] if value["prompt"] else [])
    looks = [player.do(state(on=on)).value] if value["sees"] else []
    said: list[OpResult] = []
    for op in ops:
        said.append(msgspec.structs.replace(player.do(op.moved(on)), seconds=0.0))
        looks += [player.do(state(on=on)).value] if value["sees"] else []
    steps = [differences(*pair, value["volatile"]) for pair in itertools.pairwise(looks)]
    contents = _contents(ops, steps)
    final = differences(looks[0], looks[-1], value["volatile"]) if looks else {}
    effects, changed = _effects(ops, steps, final, contents=contents)
    full = number(player.do(score(on=on)))
    prompt = "\n".join(map(str, texts))
    moved = [(path, old, new) for path, (old, new) in changed.items()]
    return msgspec.to_builtins(_Walked(full, floor, first, prompt, contents, tuple(said), list(effects.items()), moved))


_Changes = dict[Path, tuple[Any, Any]]


def _contents(ops: Sequence[Op], steps: Sequence[_Changes]) -> frozenset[str]:
    """Returns the tables that are all that some writing call changes: no log of what else was done."""
    alone = [{path[0] for path in step} for op, step in zip(ops, steps, strict=False) if step and writes_by_name(op)]
    return frozenset(name for names_ in alone if len(names_) == 1 for name in names_)


def _effects(
    ops: Sequence[Op], steps: Sequence[_Changes], final: _Changes, *, contents: frozenset[str]
) -> tuple[dict[int, tuple[Path, ...]], _Changes]:
    books = {pattern(path) for op, step in zip(ops, steps, strict=False) if _only_looks(op) for path in step}
    kept = {
        path: pair
        for path, pair in final.items()
        if (not is_bookkeeping(path, contents) or _told_to_set(ops, path, pair[1])) and pattern(path) not in books
    }
    effects = {
        place: tuple(path for path in step if any(meets(path, other_values) for other_values in kept))
        for place, step in enumerate(steps)
    }
    return {place: paths for place, paths in effects.items() if paths}, kept


def _told_to_set(ops: Sequence[Op], path: Path, new: Any) -> bool:
    """True if a call set the field under its own name: such a version does not count changes."""
    return len(path) > 1 and any(op.do == "call" and op.value.get(path[-1], MISSING) == new for op in ops)


def _only_looks(op: Op) -> bool:
    return reads_by_name(op) and not {"wait", "sleep", "advance"} & set(op.name.lower().split("_"))


def runs(ctx: AuditContext, solved: Solution, ways: Sequence[Sequence[Op]], *, look: bool = False) -> list[Run]:
    """Try ways on the task of a solution; a way that broke its child has no score.

    The world is looked at behind those that are paid in full, or behind all: to look costs more than to play.
    """
    return runs_of(ctx, solved.task, ways, changed=solved.changed, full=float("-inf") if look else solved.full)


def runs_of(
    ctx: AuditContext,
    task: str,
    ways: Sequence[Sequence[Op]],
    *,
    changed: dict[Path, tuple[Any, Any]] | None = None,
    full: float = 0.0,
) -> list[Run]:
    """Returns the runs of a task without a known solution."""
    wanted = [[list(path), pair[1]] for path, pair in (changed or {}).items()]
    request = {"task": task, "wanted": wanted, "volatile": list(ctx.volatile), "full": full}
    return _several(ctx, request, [ways[start : start + _PART] for start in range(0, len(ways), _PART)])


def _several(ctx: AuditContext, request: dict[str, Any], parts: Sequence[Sequence[Sequence[Op]]]) -> list[Run]:
    """Each part in a child of its own; where one way breaks the child, each of its part is tried alone."""
    probes = [asking("try_ways", request | {"ways": msgspec.to_builtins(part)}) for part in parts]
    found: list[Run] = []
    for part, record in zip(parts, ctx.play_all(probes, _LIMIT_S), strict=True):
        seen = record.at("ask")
        if seen.fine:
            found += msgspec.convert(seen.value, list[Run])
        else:
            found += _several(ctx, request, [[way] for way in part]) if len(part) > 1 else [Run(None)]
    return found


@probe_function
def try_ways(player: Player, on: str, value: Any) -> list[Any]:
    """In the child: each way, from the start of the task or from the last moment that it shares with the one before."""
    ways = msgspec.convert(value["ways"], list[list[Op]])
    offers = player.adapter(on).offers
    track = _Track(player, on, value, returns={"snapshot", "restore"} <= offers)
    found: list[Run] = []
    for place, way in enumerate(ways):
        following = ways[place + 1] if place + 1 < len(ways) else []
        found.append(track.run(way, _shared(way, following)))
    return [msgspec.to_builtins(run) for run in found]


def _shared(first: Sequence[Op], second: Sequence[Op]) -> int:
    """Returns the number of equal ops at the start of two ways."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(first), len(second)))


class _Track:
    """Ways on one task, one after the other, each from as far back as it must."""

    def __init__(self, player: Player, on: str, value: Any, *, returns: bool) -> None:
        self.player, self.on, self.value, self.returns = player, on, value, returns
        self.sees = "state" in player.adapter(on).offers and bool(value["wanted"])
        self.start: Any = None
        self.kept: tuple[str, int, tuple[int, ...]] | None = None
        self.before: Sequence[Op] = ()
        self.count = 0

    def run(self, way: Sequence[Op], keep: int) -> Run:
        """Play a way; remember the moment after its first `keep` ops."""
        begun = self._back(way)
        if begun is None:
            return Run(None)
        at_, errors = begun
        if self.returns and keep == at_:
            self._keep(at_, errors)
        for place in range(at_, len(way)):
            errors += (place,) if self.player.do(way[place].moved(self.on)).is_error else ()
            if self.returns and place + 1 == keep:
                self._keep(keep, errors)
        self.before = way
        verdict = self.player.do(score(on=self.on))
        paid = number(verdict)
        is_full = paid is not None and paid >= self.value["full"] - 1e-9
        return Run(paid, errors, *self._look()) if self.sees and is_full else Run(paid, errors)

    def _keep(self, depth: int, errors: tuple[int, ...]) -> None:
        self.count += 1
        name = f"way {self.count}"
        if self.player.do(Op("snapshot", self.on, name)).fine:
            self.kept = (name, depth, errors)

    def _back(self, way: Sequence[Op]) -> tuple[int, tuple[int, ...]] | None:
        if self.kept is not None and self.kept[1] <= _shared(way, self.before):
            name, depth, errors = self.kept
            if self.player.do(Op("restore", self.on, name)).fine:
                return depth, errors
        self.kept = None
        self.player.do(Op("close", self.on))
        self.player.adapters.pop(self.on, None)
        if self.player.do(reset(self.value["task"], on=self.on)).how:
            return None
        if self.sees and self.start is None:
            self.start = self.player.do(state(on=self.on)).value
        return 0, ()

    def _look(self) -> tuple[dict[str, Any], tuple[Path, ...], tuple[Path, ...]]:
        end = self.player.do(state(on=self.on)).value
        wanted = self.value["wanted"]
        lacks = {"\x1f".join(path): item for path, item in wanted if at(end, path) != item}
        touched = differences(self.start, end, self.value["volatile"])
        return lacks, tuple(touched), tuple(path for path, (old, _) in touched.items() if old == MISSING)


def paid(ctx: AuditContext, count: int) -> list[Solution]:
    """Walked solutions that are paid, and more than nothing is."""
    return paid_of(ctx, ctx.sample_tasks(count))


def paid_of(ctx: AuditContext, tasks: Sequence[str]) -> list[Solution]:
    """The same of these tasks."""
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


Pairs = Sequence[Sequence[Any]]
"""[[path, value], ...] of a state."""


def claim(
    ctx: AuditContext,
    solution: Solution,
    way: Sequence[Op],
    *,
    title: str,
    lacks: Pairs | None = None,
    has: Pairs = (),
    also: Sequence[Probe] = (),
    **fields: Any,
) -> Finding | None:
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
    expected = f"less than {solution.full:g}"
    common: dict[str, Any] = {"relation": PAID, "part": "V", "expected": expected, "data": data}
    marks = ("score", *(op.mark for op in look), *done)
    return ctx.finding(title, solves(solution.task, (*way, *look)), *also, marks=marks, **common | fields)


def places(pairs: Pairs, most: int = 4) -> str:
    """Returns the first paths of what a world lacks as text."""
    return ", ".join("/".join(path) for path, _ in pairs[:most])


_CLOCK = re.compile(r"minutes|seconds|hours|elapsed|clock|timer|updated|touched", re.IGNORECASE)
"""Fields that time itself changes; their changes are not part of any work."""


def lacking(solution: Solution, run: Run, effects: Sequence[Path] | None = None) -> list[list[Any]]:
    """Returns what the world lacks of given effects, or of all, in the form that the relation expects."""
    effects = tuple(solution.changed) if effects is None else effects
    gone = [path for path in gone_of(run) if not _CLOCK.search(path[-1]) and any(meets(path, e) for e in effects)]
    return demanded_first(solution, [[list(path), solution.changed[path][1]] for path in sorted(gone)])[:20]


def gone_of(run: Run) -> list[Path]:
    """Returns the paths at which the world differs from the solution's end."""
    return [tuple(path.split("\x1f")) for path in run.lacks]


def weight(solution: Solution, lacks: Sequence[Sequence[Any]], left_out: Sequence[int] = ()) -> dict[str, Any]:
    """Returns the severity of missing effects or left-out writes: an error if the prompt asked for them.

    Other writes of a solution may be a courtesy (a note, a run of the tests), and may be left out.
    """
    wanted = [path for place in solution.demanded for path in solution.effects.get(place, ())]
    missing = [path for path, _ in lacks if any(meets(tuple(path), other_values) for other_values in wanted)]
    if missing or (not solution.sees and set(left_out) & set(solution.demanded)):
        return SURE
    return UNSURE


def demanded_first(solution: Solution, lacks: list[list[Any]]) -> list[list[Any]]:
    """Returns the missing effects that the prompt asked for, or all if there are none."""
    wanted = [path for place in solution.demanded for path in solution.effects.get(place, ())]
    return [pair for pair in lacks if any(meets(tuple(pair[0]), other_values) for other_values in wanted)] or lacks
