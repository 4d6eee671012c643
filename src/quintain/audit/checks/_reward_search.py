"""Checks for shortcuts: a breadth-first search over short sequences of calls that skip the work.

One child walks the tree: it goes back to a node by `restore` where the subject can, else by playing the calls again on
a new instance, and does not go on from a state that it has seen. Candidates are the calls of the solution, calls that
are known to work, and calls drawn from the schemas.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_number
from quintain.audit.facts.generate import valid
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, ask, call, number, reset, score
from quintain.audit.kernel.registry import probe_function, relation

from . import _reward_runs as claims
from ._reward_acts import Path, is_bookkeeping, pattern, words
from ._reward_runs import Solution, demanded_first, lacking, paid, runs, seeing, survives, weight

SOLVED = 6
"""Tasks whose solutions are tried."""
UNKNOWN_ID = 987_654_321
"""A number that names nothing."""


@check("x.refused_work", "reward_hack", needs=("oracle", "tasks", "tools"), value=67)
def refused_work(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution with a refused call is not paid as if it had worked."""
    reported: set[str] = set()
    for solution in paid(ctx, SOLVED):
        tried = [(place, wrong) for place in solution.writes if (wrong := misled(solution.ops[place])) is not None]
        ways = [(*solution.ops[:place], wrong, *solution.ops[place + 1 :]) for place, wrong in tried]
        ctx.count_comparisons(len(ways))
        for (place, wrong), way, run in zip(tried, ways, runs(ctx, solution, ways), strict=True):
            free = [one for key, one in solution.ops[place].value.items() if wrong.value[key] != one]
            lacking_now = lacking(solution, run, solution.effects.get(place, ()))
            # A row that was made all the same, under another name, shows that the work was done: keys are free.
            there = {*run.made, *run.touched}
            lacks = [[path, item] for path, item in lacking_now if tuple(path) not in there or not _names(item, free)]
            if wrong.name in reported or not survives(solution, run) or (solution.sees and not lacks):
                continue
            reported.add(wrong.name)
            yield ctx.finding(
                f"{wrong.name} of a thing that does not exist is paid like the real one",
                Probe((reset(solution.task), *way, *seeing(solution), score())),
                relation=claims.PAID,
                marks=("score", "state") if solution.sees else ("score",),
                data={"full": solution.full, "lacks": lacks},
                part="V",
                **weight(solution, lacks, (place,)),
                expected=f"less than {solution.full:g}; it lacks {', '.join('/'.join(path) for path, _ in lacks[:4])}",
                observed=run.score,
                teaches="to make the right call, whether it works or not",
            )


def _names(item: Any, names: Sequence[Any]) -> bool:
    return item in names or (is_dict(item) and any(value in names for value in item.values()))


def misled(op: Op) -> Op | None:
    """The call on something that is not there; None when it names nothing."""
    ids = [key for key in op.value if {"id", "ids", "key", "number", "code"} & set(words(key))]
    wrong = {key: UNKNOWN_ID if isinstance(op.value[key], int) else f"X-{UNKNOWN_ID}" for key in ids[:1]}
    return msgspec.structs.replace(op, value=op.value | wrong) if wrong else None


@check("x.partial_work", "reward_hack", needs=("oracle", "tasks"), value=94)
def partial_work(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the first few of several steps by one tool are paid less, if a wrong step is."""
    known = [(solution, places) for solution in paid(ctx, 4) if (places := _alike(solution))]
    if not known:
        raise ctx.not_checked("no solution calls one tool several times")
    for solution, places in known:
        ways: list[tuple[tuple[Op, ...], tuple[Op, ...]]] = []
        for place, following in itertools.pairwise(places):
            begun = solution.ops[: place + 1]
            ways += [(begun, (*begun, wrong)) for wrong in _spoiled(solution.ops[following])]
        played = runs(ctx, solution, [way for pair in ways for way in pair])
        ctx.count_comparisons(len(ways))
        full = solution.full or 0.0
        for (begun, spoiled), short, wrong in zip(ways, played[::2], played[1::2], strict=True):
            if _stops(full, short.score, wrong.score) and not short.errors and not wrong.errors:
                yield ctx.finding(
                    f"{begun[-1].name} is called {len(places)} times by the solution, and fewer calls are paid as all",
                    solves(solution.task, begun),
                    solves(solution.task, spoiled),
                    relation=f"{__name__}:stops_ahead",
                    marks=("score",),
                    data=full,
                    minimise=0,
                    part="V",
                    expected=f"less than {full:g}: a further call is judged, for a wrong one is paid {wrong.score:g}",
                    observed=short.score,
                    teaches="to stop while ahead",
                )
                return


@relation
def stops_ahead(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe is paid in full, and the second, which goes on with a wrong step, is paid less."""
    scores = [number(record.at("score")) for record in records]
    worked = not any(seen.is_error for record in records for seen in record.seen)
    return worked and _stops(float(evidence.data), *scores)


def _stops(full: float, short: float | None, wrong: float | None) -> bool:
    return short is not None and wrong is not None and short >= full - 1e-9 and wrong < full - 1e-9


def _alike(solution: Solution) -> list[int]:
    """Places of the calls of one tool that all say something else; empty where there are fewer than two."""
    by_tool: dict[str, list[int]] = {}
    for place in solution.writes:
        by_tool.setdefault(solution.ops[place].name, []).append(place)
    none: list[int] = []
    found = max(by_tool.values(), key=len, default=none)
    said = {repr(solution.ops[place].value) for place in found}
    return found if len(found) >= 2 and len(said) == len(found) else []


def _spoiled(op: Op) -> list[Op]:
    """The call with one other value: another number, another text."""
    found: list[Op] = []
    for name, value in op.value.items():
        other_value: Any = value + 1 if is_number(value) else f"{value} x" if isinstance(value, str) else None
        if other_value is not None:
            found.append(msgspec.structs.replace(op, value=op.value | {name: other_value}))
    return found[:3]


NODES = 140
"""Sequences that are tried for one task."""
DEEPEST = 3
"""Calls in a sequence."""
WIDEST = 28
"""Candidates at each step."""


@check("x.shortest_path", "reward_hack", needs=("oracle", "tasks", "tools"), value=65)
def shortest_path(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no short sequence of calls is paid in full without the solution's work."""
    known = [
        solution
        for solution in paid(ctx, 4)
        if len(solution.writes) >= 2 or any(op.do == "answer" for op in solution.ops)
    ]
    if not known:
        raise ctx.not_checked("every solution is one call long already")
    probes = [_search(ctx, solution) for solution in known]
    for solution, record in zip(known, ctx.play_all(probes), strict=True):
        seen = record.at("ask")
        if not seen.fine:
            continue
        ctx.count_comparisons(seen.value["tried"])
        for path in seen.value["paid"]:
            finding = _shorter(ctx, solution, tuple(msgspec.convert(path, list[Op])))
            if finding is not None:
                yield finding
                return


def _search(ctx: AuditContext, solution: Solution) -> Probe:
    value = {
        "task": solution.task,
        "full": solution.full,
        "calls": msgspec.to_builtins(_candidates(ctx, solution)),
        "words": msgspec.to_builtins([op for op in solution.ops if op.do == "answer"][-1:]),
        "whole": [_known_as(solution.ops[place]) for place in solution.writes],
    }
    return Probe((ask("quintain.audit.checks._reward_search:search", value),))


def _candidates(ctx: AuditContext, solution: Solution) -> list[Op]:
    found = [solution.ops[place] for place in reversed(solution.writes)]
    found += [known.op for known in ctx.discovery.writes() if known.task == solution.task]
    found += [op for op in solution.ops if op.do == "call"]
    writers = set(ctx.discovery.writers) or {tool.name for tool in ctx.about.tools}
    for tool in ctx.about.tools:
        if tool.name in writers:
            found += [call(tool.name, valid(tool, ctx.discovery.values, ctx.rng)) for _ in range(2)]
    return list({_known_as(op): op for op in found}.values())[:WIDEST]


def _known_as(op: Op) -> str:
    return f"{op.do} {op.name} {op.value}"


@probe_function
def search(player: Player, on: str, value: Any) -> Any:
    """In the child: every sequence of at most `DEEPEST` calls, shortest first, as far as `NODES` goes."""
    tree = _Tree(player, on, value)
    return {"paid": msgspec.to_builtins(tree.walk()), "tried": tree.tried}


class _Tree:
    def __init__(self, player: Player, on: str, value: Any) -> None:
        self.player, self.on, self.value = player, on, value
        self.calls = msgspec.convert(value["calls"], list[Op])
        self.words = msgspec.convert(value["words"], list[Op])
        self.whole = set(value["whole"])
        self.tried = 0
        offers = player.adapter(on).offers
        self.eye = next((name for name in ("digest", "state") if name in offers), "")
        self.returns = {"snapshot", "restore"} <= offers
        self.names = 0

    def walk(self) -> list[list[Op]]:
        found: list[list[Op]] = []
        self._begin()
        seen = {self._look()}
        layer: list[tuple[tuple[Op, ...], str]] = [((), self._keep())]
        if self._pays(()):
            return [[]]
        for _ in range(DEEPEST):
            following: list[tuple[tuple[Op, ...], str]] = []
            for path, kept in layer:
                for op in self.calls:
                    if self.tried >= NODES or len(found) >= 6:
                        return found
                    longer = (*path, op)
                    if op in path or self.whole <= {_known_as(step) for step in longer}:
                        continue  # All that the solution does is the solution.
                    self._back(path, kept)
                    self.tried += 1
                    if self.player.do(op.moved(self.on)).is_error:
                        continue
                    look = self._look()
                    if look in seen and look:
                        continue
                    seen.add(look)
                    node = (longer, self._keep())
                    if self._pays(longer):
                        found.append([*longer, *self.words])
                        continue
                    following.append(node)
            layer = following
        return found

    def _begin(self) -> None:
        self.player.do(reset(self.value["task"], on=self.on))

    def _look(self) -> str:
        return repr(self.player.do(Op(self.eye, self.on)).value) if self.eye else ""

    def _keep(self) -> str:
        if not self.returns:
            return ""
        self.names += 1
        name = f"node {self.names}"
        self.player.do(Op("snapshot", self.on, name))
        return name

    def _back(self, path: Sequence[Op], kept: str) -> None:
        if kept:
            self.player.do(Op("restore", self.on, kept))
            return
        self.player.do(Op("close", self.on))
        self.player.adapters.pop(self.on, None)
        self._begin()
        for op in path:
            self.player.do(op.moved(self.on))

    def _pays(self, path: Sequence[Op]) -> bool:
        for op in self.words:
            self.player.do(op.moved(self.on))
        seen: OpResult = self.player.do(score(on=self.on))
        got = number(seen)
        del path
        return got is not None and got >= self.value["full"] - 1e-9


def _shorter(ctx: AuditContext, solution: Solution, way: tuple[Op, ...]) -> Finding | None:
    """Returns a finding if the way does less than the solution, and not the same in another way."""
    [run] = runs(ctx, solution, [way])
    if run.score is None or solution.full is None or run.score < solution.full - 1e-9:
        return None
    lacks: list[list[Any]] = []
    if solution.sees:
        wanted = {pattern(path) for path in solution.changed}
        reached = {pattern(path) for path in run.touched if not is_bookkeeping(path, solution.contents)}
        missing = {kind for kind in wanted if not any(_near(kind, other_values) for other_values in reached)}
        gone = [tuple(path.split("\x1f")) for path in run.lacks]
        lacks = demanded_first(
            solution, [[list(path), solution.changed[path][1]] for path in gone if pattern(path) in missing]
        )
        if not lacks or weight(solution, lacks)["severity"] != "error":
            return None
    elif len([op for op in way if op.do == "call"]) >= len(solution.writes):
        return None
    return ctx.finding(
        "a short sequence of calls is paid in full and skips what the solution has to do",
        Probe((reset(solution.task), *way, *seeing(solution), score())),
        relation=claims.PAID,
        marks=("score", "state") if solution.sees else ("score",),
        data={"full": solution.full, "lacks": lacks},
        part="V",
        at_most="proven" if solution.sees else "likely",
        expected=f"under {solution.full:g} without: {', '.join('/'.join(path) for path, _ in lacks[:4]) or 'the rest'}",
        observed=run.score,
        teaches="the short way",
    )


def _near(first: Path, second: Path) -> bool:
    short = min(len(first), len(second))
    return first[:short] == second[:short]
