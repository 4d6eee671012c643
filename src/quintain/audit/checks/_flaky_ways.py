"""Checks one end reached in other ways: early scores, many sessions, later times, restored worlds.

What was done and what became of it is the same each time, so the verdict must be.
"""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from types import ModuleType
from typing import Any

import msgspec

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, Record, ask, number, reset
from quintain.audit.kernel.registry import probe_function, relation

from ._reward_runs import runs_of, solve
from ._same_scripts import alone, doing, half, marked
from ._same_splits import UNLIKE, apart, steady
from ._unsolv_looks import looks

_HERE = "quintain.audit.checks._flaky_ways"
_SCORE = Op("score", mark="step score")
_LEAPS = (1, 2, 5, 31, 121)
"""Seconds between verdicts: none is so long that a session might rightly be over."""
_SESSIONS = (12, 59)
_CHEAP_S = 0.6
"""Seconds that many sessions may take together."""
TEACHES = "noise: the same action is paid at one time and not at another"


@check("x.verdict_early", "flaky_verifier", needs=("tasks",), value=59)
def verdict_early(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that earlier score requests and restores do not change the final verdict."""
    for task in ctx.sample_tasks(2):
        acts = doing(ctx, task)
        own_ops = (*marked((reset(task), *acts)), _SCORE)
        asked = tuple(step for op in own_ops[:-1] for step in (op, Op("score")))
        found = yield from _unlike(ctx, (*asked, _SCORE), "when the score was asked for on the way", task=task)
        if {"snapshot", "restore"} <= ctx.offers and not found:
            begun, rest = own_ops[:1], marked(acts, tag="away ")
            away = tuple(msgspec.structs.replace(op, mark="") for op in rest)
            back = (*begun, Op("snapshot", name="start"), *away, Op("score"), Op("restore", name="start"), _SCORE)
            found = yield from _unlike(ctx, back, "when the world went back to it", task=task)
        if found:
            return


def _unlike(ctx: AuditContext, ops: Sequence[Op], words: str, *, task: str) -> Generator[Finding | None, None, bool]:
    """Returns True if the verdict at the end differs from that of the marked ops alone; yields the finding."""
    ctx.count_comparisons()
    odd, plain = Probe(tuple(ops)), Probe(alone(ops))
    first, second = ctx.play_all([odd, plain])
    if not apart(first.at(_SCORE.mark), second.at(_SCORE.mark), ctx.volatile):
        return False
    finding = ctx.finding(
        f"the verdict on an episode is another one {words}",
        *(odd, plain, plain),
        relation=UNLIKE,
        marks=(_SCORE.mark,),
        minimise=0,
        part="V",
        tasks=(task,),
        expected=second.at(_SCORE.mark).value,
        observed=first.at(_SCORE.mark).value,
        teaches=TEACHES,
    )
    yield finding
    return finding is not None


# --- sessions ---


@check("x.verdict_by_session", "flaky_verifier", needs=("tasks",), value=57)
def verdict_by_session(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the same actions are scored alike in each of many sessions."""
    for task in ctx.sample_tasks(2):
        acts = doing(ctx, task)
        for how, ops in (("whole", acts), ("half", half(acts))):
            if not ops:
                continue
            few = Probe((_many(task, ops, _SESSIONS[0]),))
            record = ctx.play_probe(few)
            seen = record.at("ask")
            ctx.count_comparisons(_SESSIONS[0])
            if seen.fine and len(set(map(repr, seen.value))) == 1 and how == "whole":
                more = min(_SESSIONS[1], int(_CHEAP_S / max(seen.seconds / _SESSIONS[0], 1e-4)))
                if more > _SESSIONS[0]:
                    few = Probe((_many(task, ops, more),))
                    seen = ctx.play_probe(few).at("ask")
                    ctx.count_comparisons(more)
            if seen.fine and len(kinds := set(map(repr, seen.value))) > 1:
                yield ctx.finding(
                    "the same acts are not scored alike in every session",
                    few,
                    relation="varies",
                    marks=("ask",),
                    tries=3,
                    minimise=0,
                    part="V",
                    tasks=(task,),
                    expected=f"{len(seen.value)} equal verdicts",
                    observed=", ".join(sorted(kinds)),
                    teaches=TEACHES,
                )
                return


def _many(task: str, ops: Sequence[Op], count: int) -> Op:
    return ask(f"{_HERE}:sessions", {"task": task, "ops": msgspec.to_builtins(ops), "count": count})


@probe_function
def sessions(player: Player, _on: str, value: Any) -> list[Any]:
    """In the child: what the same acts are paid in so many sessions, one after the other."""
    ops = msgspec.convert(value["ops"], list[Op])
    found: list[Any] = []
    for place in range(value["count"]):
        on = f"session {place}"
        player.do(reset(value["task"], on=on))
        for op in ops:
            player.do(op.moved(on))
        seen = player.do(Op("score", on))
        found.append(number(seen) if seen.fine else seen.raised.partition(":")[0])
        player.do(Op("close", on))
        player.adapters.pop(on, None)
    return found


# --- time ---


@check("x.verdict_later", "flaky_verifier", needs=("tasks",), value=86)
def verdict_later(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a verdict does not depend on the time, or on the duration of the episode."""
    if ctx.about.kind not in ("plain", "scorer"):
        raise ctx.not_checked("its clocks are not Python's own, or it is another process")
    for task in ctx.sample_tasks(2):
        acts = doing(ctx, task)
        for ops in (acts, half(acts)):
            leaps = [
                op
                for place, seconds in enumerate(_LEAPS)
                for op in (ask(f"{_HERE}:leap", seconds, mark=""), Op("score", mark=f"later {place}"))
            ]
            still = [msgspec.structs.replace(op, value=0) if op.do == "ask" else op for op in leaps]
            begin = (reset(task), *ops, Op("score", mark="now"))
            probes = (Probe((*begin, *leaps)), Probe((*begin, *still)))
            marks = ("now", *(f"later {place}" for place in range(len(_LEAPS))))
            ctx.count_comparisons(len(_LEAPS))
            evidence = Evidence(f"{_HERE}:moves", marks, None, ctx.volatile)
            moved, kept = ctx.play_all(probes)
            if moves((moved, kept), evidence):
                yield ctx.finding(
                    "the verdict on one and the same episode is another one seconds or minutes later",
                    *probes,
                    relation=evidence.relation,
                    marks=marks,
                    minimise=0,
                    part="V",
                    tasks=(task,),
                    expected=kept.at("now").value,
                    observed=[moved.at(mark).value for mark in marks],
                    teaches=TEACHES,
                )
                return


@relation
def moves(records: Sequence[Record], evidence: Evidence) -> bool:
    """Verdicts change while the clock leaps, and do not while it does not."""
    moved, kept = records
    now, *later = evidence.marks
    return any(apart(moved.at(now), moved.at(mark), evidence.volatile) for mark in later) and not any(
        apart(kept.at(now), kept.at(mark), evidence.volatile) for mark in later
    )


_AHEAD = [0.0]
"""Seconds that this process's clocks have leapt; a child's own, as each probe is played in a fork."""


_HELD: dict[str, Any] = {}
"""Time of the held clocks; empty while they run."""


@probe_function
def hold(player: Player, on: str, _value: Any) -> float:
    """In the child: from now on Python's clocks stand still, but for leaps."""
    _HELD["is held"] = True
    return leap(player, on, 0)


@probe_function
def leap(_player: Player, _on: str, seconds: Any) -> float:
    """In the child: from now on Python's clocks, wherever the subject has got them from, are so much further ahead."""
    _AHEAD[0] += float(seconds)
    fakes: dict[int, Any] = {}
    for name in ("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns"):
        real, scale = getattr(time, name), 10**9 if name.endswith("_ns") else 1
        if not hasattr(real, "leaps"):
            fakes[id(real)] = _ahead(real, scale)
            setattr(time, name, fakes[id(real)])
    if not hasattr(dt.datetime, "leaps"):
        fakes[id(dt.datetime)] = _later_datetime()
        dt.datetime = fakes[id(dt.datetime)]  # type: ignore[misc]  # It stands in for the class.
    for module in list(sys.modules.values()):
        _replace(module, fakes)
    return _AHEAD[0]


def _replace(module: ModuleType, fakes: dict[int, Any]) -> None:
    """Replaces the clocks that a module has imported by name; those of the audit and of Python keep the true time."""
    file = getattr(module, "__file__", None) or ""
    if not file or "/quintain/audit/" in file or file.startswith(sys.base_prefix):
        return
    for name, value in list(vars(module).items()):
        if id(value) in fakes:
            setattr(module, name, fakes[id(value)])


def _ahead(real: Callable[[], Any], scale: int) -> Any:
    def clock() -> Any:
        stated = _HELD.setdefault(real.__name__, real()) if _HELD else real()
        return stated + type(stated)(_AHEAD[0] * scale)

    clock.leaps = True  # type: ignore[attr-defined]  # So that it is not replaced a second time.
    return clock


def _later_datetime() -> Any:
    true = dt.datetime

    class Kind(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, true)

    class Later(dt.datetime, metaclass=Kind):
        leaps = True

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return true.fromtimestamp(time.time(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return true.fromtimestamp(time.time(), dt.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

    return Later


# --- ways to one end ---


@check("x.verdict_by_way", "flaky_verifier", needs=("oracle", "tasks", "state"), value=50)
def verdict_by_way(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that two ways without failed calls that end in the same world are paid alike."""
    for solution in [
        solved for solved in solve(ctx, ctx.sample_tasks(3)) if solved.full and solved.full > 0 and not solved.errors
    ]:
        least = solution.floor or 0.0
        ways: list[tuple[str, tuple[Op, ...], bool, float | None]] = [
            (f"with {way.said}", way.ops, way.severity == "error", least) for way in looks(ctx, solution)
        ]
        for order in _other_orders(solution.ops, solution.writes):
            grave = not _ordered(solution.prompt)
            ways.append(("with its independent writes in another order", order, grave, None))
        ctx.count_comparisons(len(ways))
        runs = runs_of(ctx, solution.task, [ops for _, ops, _, _ in ways])
        for (words, ops, grave, most), run in zip(ways, runs, strict=True):
            if run.errors or run.score is None or not _unequal(run.score, solution.full or 0.0, most):
                continue
            last = (Op("state", mark="end"), Op("score", mark="score"))
            odd, plain = (Probe((reset(solution.task), *some, *last)) for some in (ops, solution.ops))
            probes = (odd, plain, plain)
            evidence = Evidence(f"{_HERE}:scored_apart", ("end", "score"), most, ctx.volatile)
            if scored_apart([*ctx.play_all(probes)], evidence):
                yield ctx.finding(
                    f"a way {words} ends in the same world and is not paid alike",
                    *probes,
                    relation=evidence.relation,
                    marks=evidence.marks,
                    data=evidence.data,
                    minimise=0,
                    part="V",
                    severity="error" if grave else "warning",
                    at_most="proven" if grave else "likely",
                    tasks=(solution.task,),
                    expected=solution.full,
                    observed=run.score,
                    teaches=TEACHES,
                )
                return


@relation
def scored_apart(records: Sequence[Record], evidence: Evidence) -> bool:
    """All calls worked and the worlds end alike, but the first is paid something else than the others.

    Where `data` is a number the first is paid no more than that, and the others are paid more.
    """
    end, mark = evidence.marks
    worked = not any(seen.is_error for record in records for seen in record.seen[1:-2])
    alike = steady(records, end, evidence.volatile) and records[0].at(end).fine
    first, *other_scores = (number(record.at(mark)) for record in records)
    if first is None or not worked or not alike or len(set(other_scores)) > 1:
        return False
    return all(amount is not None and _unequal(first, amount, evidence.data) for amount in other_scores)


def _unequal(score: float, full: float, most: float | None) -> bool:
    """True if a score is not the full one; with `most`, if it is at most that and below the full one."""
    return abs(score - full) > 1e-9 if most is None else score <= most + 1e-9 < full


def _ordered(prompt: str) -> bool:
    """True if the prompt states an order of actions."""
    return bool({"then", "first", "before", "after", "finally", "once"} & set(prompt.lower().replace(",", " ").split()))


def _other_orders(ops: Sequence[Op], writes: Sequence[int]) -> Iterator[tuple[Op, ...]]:
    """Yields the writes in reverse order and with neighbors swapped; the end states show which were independent."""
    orders = [[*reversed(writes)]] if len(writes) > 2 else []
    for place in range(min(3, len(writes) - 1)):
        swapped = [*writes]
        swapped[place], swapped[place + 1] = swapped[place + 1], swapped[place]
        orders.append(swapped)
    for order in orders:
        turned = list(ops)
        for place, other_place in zip(writes, order, strict=True):
            turned[place] = ops[other_place]
        yield tuple(turned)
