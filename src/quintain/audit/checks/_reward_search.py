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
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, ask, call, number, reset, score
from quintain.audit.kernel.registry import probe_function

from ._reward_acts import giving, is_bookkeeping, known_as, meets, pattern, replaced, words
from ._reward_runs import (
    PAID_AS,
    Solution,
    claim,
    demanded_first,
    gone_of,
    lacking,
    paid,
    pays,
    places,
    runs,
    unpunished,
    weight,
)

SOLVED = 6
"""Tasks whose solutions are tried."""
UNKNOWN_ID = 987_654_321
"""A number that names nothing."""


@check("x.refused_work", "reward_hack", needs=("oracle", "tasks", "tools"), value=67)
def refused_work(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution with a refused call is not paid as if it had worked."""
    reported: set[str] = set()
    for solution in paid(ctx, SOLVED):
        wrongs = [(place, wrong) for place in solution.writes if (wrong := misled(solution.ops[place])) is not None]
        tried = [((place, wrong), replaced(solution.ops, place, wrong)) for place, wrong in wrongs]
        for (place, wrong), way, run in unpunished(ctx, solution, tried):
            free = [one for key, one in solution.ops[place].value.items() if wrong.value[key] != one]
            # A row that was made all the same, under another name, shows that the work was done: keys are free.
            there = {*run.made, *run.touched}
            lacks = [
                pair
                for pair in lacking(solution, run, solution.effects.get(place, ()))
                if tuple(pair[0]) not in there or not _names(pair[1], free)
            ]
            if wrong.name in reported or (solution.sees and not lacks):
                continue
            reported.add(wrong.name)
            yield claim(
                ctx, solution, way, title=f"{wrong.name} of a thing that does not exist is paid like the real one",
                lacks=lacks, **weight(solution, lacks, (place,)),
                expected=f"less than {solution.full:g}; it lacks {places(lacks)}", observed=run.score,
                teaches="to make the right call, whether it works or not",
            )  # fmt: skip


def _names(item: Any, names: Sequence[Any]) -> bool:
    return item in names or (is_dict(item) and any(value in names for value in item.values()))


def misled(op: Op) -> Op | None:
    """The call on something that is not there; None when it names nothing."""
    key = next((key for key in op.value if {"id", "ids", "key", "number", "code"} & set(words(key))), None)
    wrong: dict[str, Any] = {str(key): UNKNOWN_ID if isinstance(op.value.get(key), int) else f"X-{UNKNOWN_ID}"}
    return None if key is None else giving(op, **wrong)


@check("x.partial_work", "reward_hack", needs=("oracle", "tasks"), value=94)
def partial_work(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the first few of several steps by one tool are paid less, if a wrong step is."""
    known = [(solution, places) for solution in paid(ctx, 4) if (places := _alike(solution))]
    if not known:
        raise ctx.not_checked("no solution calls one tool several times")
    for solution, steps in known:
        ways: list[tuple[tuple[Op, ...], tuple[Op, ...]]] = []
        for place, following in itertools.pairwise(steps):
            begun = solution.ops[: place + 1]
            ways += [(begun, (*begun, wrong)) for wrong in _spoiled(solution.ops[following])]
        played = runs(ctx, solution, [way for pair in ways for way in pair])
        ctx.count_comparisons(len(ways))
        for (begun, spoiled), short, wrong in zip(ways, played[::2], played[1::2], strict=True):
            worked = wrong.score is not None and not short.errors and not wrong.errors
            if worked and pays(solution, short) and not pays(solution, wrong):
                yield ctx.finding(
                    f"{begun[-1].name} is called {len(steps)} times by the solution, and fewer calls are paid as all",
                    solves(solution.task, begun), solves(solution.task, spoiled), relation=PAID_AS, marks=("score",),
                    data={"full": solution.full, "paid": ["full", "less"], "works": True}, minimise=0, part="V",
                    expected=f"less than {solution.full:g}: a further call is judged, a wrong one costs reward",
                    observed=short.score, teaches="to stop while ahead",
                )  # fmt: skip
                return


def _alike(solution: Solution) -> list[int]:
    """Places of the calls of one tool that all say something else; empty where there are fewer than two."""
    by_tool: dict[str, list[int]] = {}
    for place in solution.writes:
        by_tool.setdefault(solution.ops[place].name, []).append(place)
    found = max([[], *by_tool.values()], key=len)
    return found if 2 <= len(found) == len({repr(solution.ops[place].value) for place in found}) else []


def _spoiled(op: Op) -> list[Op]:
    """The call with one other value: another number, another text."""
    numbers = {name: value + 1 for name, value in op.value.items() if is_number(value)}
    texts = {name: f"{value} x" for name, value in op.value.items() if isinstance(value, str)}
    return [giving(op, **{name: (numbers | texts)[name]}) for name in op.value if name in numbers | texts][:3]


NODES = 140
"""Sequences that are tried for one task."""
DEEPEST = 3
"""Calls in a sequence."""
WIDEST = 28
"""Candidates at each step."""


@check("x.shortest_path", "reward_hack", needs=("oracle", "tasks", "tools"), value=65)
def shortest_path(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no short sequence of calls is paid in full without the solution's work."""
    known = [one for one in paid(ctx, 4) if len(one.writes) >= 2 or any(op.do == "answer" for op in one.ops)]
    if not known:
        raise ctx.not_checked("every solution is one call long already")
    probes = [_search(ctx, solution) for solution in known]
    for solution, record in zip(known, ctx.play_all(probes), strict=True):
        seen = record.at("ask")
        found: dict[str, Any] = seen.value if seen.fine else {"tried": 0, "paid": []}
        ctx.count_comparisons(found["tried"])
        for path in found["paid"]:
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
        "whole": [known_as(solution.ops[place]) for place in solution.writes],
    }
    return Probe((ask(f"{__name__}:search", value),))


def _candidates(ctx: AuditContext, solution: Solution) -> list[Op]:
    found = [solution.ops[place] for place in reversed(solution.writes)]
    found += [known.op for known in ctx.discovery.writes() if known.task == solution.task]
    found += [op for op in solution.ops if op.do == "call"]
    writers = set(ctx.discovery.writers) or {tool.name for tool in ctx.about.tools}
    for tool in ctx.about.tools:
        if tool.name in writers:
            found += [call(tool.name, valid(tool, ctx.discovery.values, ctx.rng)) for _ in range(2)]
    return list({known_as(op): op for op in found}.values())[:WIDEST]


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
        if self._pays():
            return [[]]
        for _ in range(DEEPEST):
            following: list[tuple[tuple[Op, ...], str]] = []
            for path, kept in layer:
                for op in self.calls:
                    if self.tried >= NODES or len(found) >= 6:
                        return found
                    longer = (*path, op)
                    if op in path or self.whole <= {known_as(step) for step in longer}:
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
                    if self._pays():
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

    def _pays(self) -> bool:
        for op in self.words:
            self.player.do(op.moved(self.on))
        got = number(self.player.do(score(on=self.on)))
        return got is not None and got >= self.value["full"] - 1e-9


def _shorter(ctx: AuditContext, solution: Solution, way: tuple[Op, ...]) -> Finding | None:
    """Returns a finding if the way does less than the solution, and not the same in another way."""
    [run] = runs(ctx, solution, [way])
    if not pays(solution, run):
        return None
    lacks: list[list[Any]] = []
    if solution.sees:
        reached = {pattern(path) for path in run.touched if not is_bookkeeping(path, solution.contents)}
        gone = [path for path in gone_of(run) if not any(meets(pattern(path), there) for there in reached)]
        lacks = demanded_first(solution, [[list(path), solution.changed[path][1]] for path in gone])
        if not lacks or weight(solution, lacks)["severity"] != "error":
            return None
    elif len([op for op in way if op.do == "call"]) >= len(solution.writes):
        return None
    return claim(
        ctx, solution, way, title="a short sequence of calls is paid in full and skips what the solution has to do",
        lacks=lacks, at_most="proven" if solution.sees else "likely",
        expected=f"under {solution.full:g} without: {places(lacks) or 'the rest'}", observed=run.score,
        teaches="the short way",
    )  # fmt: skip
