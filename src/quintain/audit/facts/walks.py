"""The one walk over solutions: rewards, results and effects of each task, computed once for all checks."""

from __future__ import annotations

import functools
import itertools
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from quintain.audit.facts import acts as act
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, Probe, ask, number, reset, score, state, text_of
from quintain.audit.kernel.registry import probe_function

from .data import is_number

TOP = 1.0  # The best reward of an environment that pays within [0, 1].
_PART = 6  # Tasks that one child plays.
_BEYOND_S = 0.6  # Seconds after which no further tasks are begun that were not chosen.
_LONGEST = 60_000  # Characters of an observation that are kept.
_Changes = dict[act.Path, tuple[Any, Any]]


class Fact(msgspec.Struct, frozen=True, dict=True, kw_only=True):
    """A task, its solution, and both of its rewards.

    Attributes:
        solution: "known", "none", or "broken" where `oracle` itself failed.
        full: Reward of the solution; None without a verdict.
        floor: Reward of an idle episode.
        first: Result of `reset`.
        prompt: All text at the start.
        said: Result of each op.
        sees: True if the states around each op were compared.
        steps: For each op, the paths that it changed for good, without bookkeeping.
        moved: Each such path, with its values before and after the solution.
        contents: Tables with the name of a log that are none: some call changes nothing else.
        declared: Whether a tool writes, where its author declares it or it only keeps what it answers.
    """

    task: str
    solution: str = "none"
    full: float | None = None
    floor: float | None = None
    ops: tuple[Op, ...] = ()
    said: tuple[OpResult, ...] = ()
    first: Any = None
    prompt: str = ""
    sees: bool = False
    steps: tuple[tuple[act.Path, ...], ...] = ()
    moved: tuple[tuple[act.Path, Any, Any], ...] = ()
    contents: frozenset[str] = frozenset()
    declared: dict[str, bool] = {}

    @property
    def calls(self) -> int:
        return sum(op.do == "call" for op in self.ops)

    @functools.cached_property
    def effects(self) -> dict[int, tuple[act.Path, ...]]:
        """Returns the paths that each op changed, by its place."""
        return {place: paths for place, paths in enumerate(self.steps) if paths}

    @functools.cached_property
    def changed(self) -> _Changes:
        """Returns (before, after) of each path that the solution changes."""
        return {path: (old, new) for path, old, new in self.moved}

    @functools.cached_property
    def errors(self) -> tuple[int, ...]:
        """Returns the places of ops that were refused or crashed."""
        return tuple(place for place, result in enumerate(self.said) if result.is_error)

    @functools.cached_property
    def writes(self) -> tuple[int, ...]:
        """Returns the places of calls that do something for good; by their names where the state cannot be seen."""
        calls = [(at, op) for at, op in enumerate(self.ops) if op.do == "call" and at not in self.errors]
        named = [(at, op) for at, op in calls if self.declared.get(op.name, not act.reads_by_name(op))]
        if self.sees:
            return tuple(at for at, _ in named if self.effects.get(at))
        return tuple(at for at, op in named if op.name in self.declared or act.writes_by_name(op) or act.submits(op))

    @functools.cached_property
    def demanded(self) -> tuple[int, ...]:
        """Returns the places of writes that the agent was asked for; a solution may do more than it must."""
        return tuple(place for place in self.writes if act.asked_for(self.ops[place], self.prompt, talks=False))

    @functools.cached_property
    def drafts(self) -> frozenset[str]:
        """Returns the tables of which a later op copies the changes to another table, as it publishes a draft."""
        first = {path: place for place, paths in sorted(self.effects.items(), reverse=True) for path in paths}
        ends = {(path[1:], repr(new), path[0]): first[path] for path, (_, new) in self.changed.items() if path in first}
        pairs = itertools.permutations(ends.items(), 2)
        return frozenset(one[2] for (one, at), (two, later) in pairs if at < later and one[0] and one[:2] == two[:2])

    @functools.cached_property
    def tallies(self) -> frozenset[act.Path]:
        """Returns the paths of numbers that several tools change, such as costs and moves: to need less is no fault."""
        pairs = {(path, self.ops[place].name) for place, paths in self.effects.items() for path in paths}
        tools = Counter(path for path, _ in pairs)
        return frozenset(path for path, (_, new) in self.changed.items() if is_number(new) and tools[path] > 1)

    def is_demanded(self, path: Sequence[str]) -> bool:
        """True if a write that the agent was asked for changes this path, which is no tally."""
        return tuple(path) not in self.tallies and any(
            act.meets(path, own) for place in self.demanded for own in self.effects.get(place, ())
        )

    @property
    def acts(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ops if op.do != "answer")

    @property
    def answers(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ops if op.do == "answer")

    def without(self, *gone: int) -> tuple[Op, ...]:
        return tuple(op for place, op in enumerate(self.ops) if place not in gone)

    @property
    def shape(self) -> tuple[str, ...]:
        """Returns the names of the called tools, in order."""
        return tuple(op.name or op.do for op in self.ops)

    def before(self, place: int) -> str:
        """Returns all text read before an op: the prompt, and the observations until then."""
        return "\n".join([self.prompt, *(text_of(result) for result in self.said[:place])])


class Solution(Fact, frozen=True, dict=True, kw_only=True):
    """A solution that has a verdict."""

    full: float = 0.0


def facts(ctx: AuditContext) -> dict[str, Fact]:
    """Returns the facts of all tasks that are looked at."""
    return ctx.once(("facts",), lambda own: walked(own, own.tasks))


def beyond(ctx: AuditContext) -> dict[str, Fact]:
    """Returns the facts of tasks that the audit did not choose, as far as a short time goes.

    A wrong solution spoils its own task alone, so that no sample stands for the others.
    """
    return ctx.once(("facts beyond",), _beyond)


def _beyond(ctx: AuditContext) -> dict[str, Fact]:
    rest, found, size = ctx.not_sampled(len(ctx.tasks)), dict[str, Fact](), 4  # The cost of one is still unknown.
    rest = ctx.rng.sample(rest, len(rest))
    until = time.monotonic() + min(_BEYOND_S, ctx.seconds_left() / 4)
    while len(found) < len(rest) and time.monotonic() < until:
        found |= walked(ctx, ctx.tasks_at(rest[len(found) : len(found) + size]))
        size = min(2 * size, 40)
    return found


def solve(ctx: AuditContext, tasks: Sequence[str]) -> list[Solution]:
    """Walks the solutions of tasks with a look at the state around each op; those without a verdict are left out."""
    known = walked(ctx, tasks, looks=True).values() if "oracle" in ctx.offers else ()
    return [fact for fact in known if isinstance(fact, Solution) and fact.ops]


def walked(ctx: AuditContext, tasks: Sequence[str], *, looks: bool = False) -> dict[str, Fact]:
    """Returns the facts of these tasks; with `looks` the effects of each op are known, where the state is visible."""
    memory: dict[str, Fact] = ctx.once(("walks", str(looks)), lambda _: {})
    missing = [(task, 0) for task in tasks if task not in memory]
    memory |= {fact.task: fact for fact in play_tasks(ctx, missing, looks=looks)}
    return {task: memory[task] for task in tasks}


def play_tasks(
    ctx: AuditContext, pairs: Sequence[tuple[str, int]], *, plays: str = "idle solution", looks: bool = False
) -> list[Fact]:
    """Plays nothing, or the solution, or both, in each pair of a task and a seed."""
    sees = looks and "state" in ctx.offers
    # What a read keeps in the state is not the work of the solution.
    declared = (dict.fromkeys(ctx.discovery.memos, False) if sees and pairs else {}) | ctx.declared
    request = {
        "plays": plays.split(), "sees": sees, "prompt": "prompt" in ctx.offers, "volatile": list(ctx.volatile),
        "declared": declared if looks else {},
    }  # fmt: skip
    size = 1 if looks else _PART
    return _played(ctx, request, [pairs[start : start + size] for start in range(0, len(pairs), size)])


def _played(ctx: AuditContext, request: dict[str, Any], parts: Sequence[Sequence[tuple[str, int]]]) -> list[Fact]:
    probes = [Probe((ask(f"{__name__}:walk", request | {"pairs": part}),)) for part in parts]
    found: list[Fact] = []
    for part, record in zip(parts, ctx.play_all(probes), strict=True):
        seen = record.at("ask")
        if seen.fine:
            found += [msgspec.convert(one, Fact if one["full"] is None else Solution) for one in seen.value]
        elif len(part) > 1:  # One of them broke the child: each is asked alone.
            found += _played(ctx, request, [[pair] for pair in part])
        else:
            found.append(Fact(task=part[0][0], solution="broken"))
    return found


@probe_function
def walk(player: Player, _on: str, value: Any) -> Any:
    """Returns, in the child, the facts of pairs of a task and a seed; states are compared here, being large."""
    return [msgspec.to_builtins(_fact(player, pair, value)) for pair in value["pairs"]]


def _fact(player: Player, pair: Any, value: Any) -> Fact:
    task, seed = pair
    fact = Fact(task=task)
    if "idle" in value["plays"]:
        player.do(reset(task, on="idle", seed=seed))
        fact = Fact(task=task, floor=number(player.do(score(on="idle"))))
    if "solution" in value["plays"]:
        fact = _solved(player, fact, value, seed=seed)
    for on in ("idle", "busy"):
        if on in player.adapters:
            player.do(Op("close", on))
            player.adapters.pop(on)
    return fact


def _solved(player: Player, fact: Fact, value: Any, *, seed: int) -> Fact:
    first, seen = player.do(reset(fact.task, on="busy", seed=seed)), player.do(Op("oracle", "busy", fact.task))
    if not first.fine or not seen.fine or seen.value is None:
        is_none = seen.how == "absent" or (seen.fine and seen.value is None)
        return msgspec.structs.replace(fact, solution="none" if is_none else "broken")
    ops = tuple(msgspec.convert(seen.value, list[Op]))
    texts = [first, *([player.do(Op("prompt", "busy", fact.task))] if value["prompt"] else [])]
    looks = [player.do(state(on="busy")).value] if value["sees"] else []
    said: list[OpResult] = []
    for op in ops:
        said.append(_short(player.do(op.moved("busy"))))
        looks += [player.do(state(on="busy")).value] if value["sees"] else []
    steps = [act.differences(*pair, value["volatile"]) for pair in itertools.pairwise(looks)]
    contents = _contents(ops, steps)
    kept = _kept(
        ops, steps, act.differences(looks[0], looks[-1], value["volatile"]) if looks else {}, contents=contents
    )
    return msgspec.structs.replace(
        fact, solution="known", full=number(player.do(score(on="busy"))), ops=ops, said=tuple(said), first=first.value,
        prompt="\n".join(dict.fromkeys(map(text_of, texts))), sees=value["sees"], declared=value["declared"],
        steps=tuple(tuple(path for path in step if any(act.meets(path, own) for own in kept)) for step in steps),
        moved=tuple((path, old, new) for path, (old, new) in kept.items()), contents=contents,
    )  # fmt: skip


def _short(seen: OpResult) -> OpResult:
    text = text_of(seen)
    value = seen.value if len(text) <= _LONGEST else text[:_LONGEST]
    return msgspec.structs.replace(seen, value=value, seconds=0.0)


def _contents(ops: Sequence[Op], steps: Sequence[_Changes]) -> frozenset[str]:
    """Returns the tables that are all that some writing call changes: no log of what else was done."""
    alone = [
        {path[0] for path in step} for op, step in zip(ops, steps, strict=False) if step and act.writes_by_name(op)
    ]
    return frozenset(name for names_ in alone if len(names_) == 1 for name in names_)


def _kept(ops: Sequence[Op], steps: Sequence[_Changes], final: _Changes, *, contents: frozenset[str]) -> _Changes:
    """Returns the changes that are no bookkeeping, and not of a kind that a mere look makes."""
    pairs = list(zip(ops, steps, strict=False))
    books = {
        act.pattern(path) for op, step in pairs if act.reads_by_name(op) and not act.does_wait(op) for path in step
    }

    calls = [op for op in ops if op.do == "call"]

    def is_work(path: act.Path) -> bool:
        """True for no bookkeeping, or if a call sets the field under its own name: that does not count changes."""
        is_set = len(path) > 1 and any(op.value.get(path[-1], act.MISSING) == final[path][1] for op in calls)
        return is_set or not act.is_bookkeeping(path, contents)

    return {path: pair for path, pair in final.items() if act.pattern(path) not in books and is_work(path)}
