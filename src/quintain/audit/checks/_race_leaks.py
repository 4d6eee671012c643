"""Checks what episodes leave in the process: threads, files, children and memory."""

from __future__ import annotations

import contextlib
import gc
import itertools
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.load import script
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, Record, ask, reset
from quintain.audit.kernel.registry import probe_function, relation

from ._drift_words import show
from ._same_scripts import bare

WARM, EACH, ROUNDS = 6, 8, 3
"""Episodes before the first look, and between two looks; so many looks after the first."""
HALF = 0.5
"""Leak per episode that counts; a smaller one may be chance."""
TEACHES = "nothing; the run runs out of resources"


@relation
def grows(records: Sequence[Record], evidence: Evidence) -> bool:
    """From each look to the next the process holds more by at least so much per episode."""
    steps = growth(records[0], evidence.data)
    return len(steps) == ROUNDS and all(step >= HALF * EACH for step in steps)


def growth(record: Record, what: str) -> list[int]:
    """Returns the growth of a process resource between successive looks."""
    looks = [seen.value for op, seen in zip(record.ops, record.seen, strict=False) if op.do == "resources"]
    held = [look[what] for look in looks if is_dict(look)]
    return [after - before for before, after in itertools.pairwise(held)]


@relation
def leaves(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if processes remain after the subject has closed."""
    return records[0].left > 0


@check("x.resources", "races", needs=("tasks",), value=54)
def resources(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that tens of episodes leave no thread, file or process behind."""
    ways = {"in one session": _episodes(ctx, again=True)}
    if "close" in ctx.offers:
        ways["in sessions that were closed"] = _episodes(ctx, again=False)
    reported: set[str] = set()
    for (words, probe), record in zip(ways.items(), ctx.play_all(list(ways.values())), strict=True):
        for what in ("threads", "files", "processes"):
            ctx.count_comparisons()
            if what in reported or not grows([record], Evidence("", data=what)):
                continue
            reported.add(what)
            yield show(
                ctx, f"each episode leaves {what} behind, {words}", grows, probe, marks=(), data=what,
                expected="as many after the episode as before it",
                observed={f"{what} per episode": round(sum(growth(record, what)) / (EACH * ROUNDS), 1)},
                teaches=TEACHES,
            )  # fmt: skip
        if record.left and not reported & {"left", "processes"}:
            reported.add("left")
            yield show(
                ctx, f"processes are left behind, {words}", leaves, probe, marks=(), expected="none",
                observed={"processes": record.left}, teaches="nothing; the machine fills up",
            )  # fmt: skip


def _episodes(ctx: AuditContext, *, again: bool) -> Probe:
    """Episodes with a look every few; `again`: on one instance, else each on its own, closed at its end."""
    scripts = episodes(ctx)
    ops: list[Op] = []
    for number in range(WARM + EACH * ROUNDS):
        if number >= WARM and (number - WARM) % EACH == 0:
            ops.append(Op("resources"))
        on = "a" if again else f"s{number}"
        ops += [op.moved(on) for op in scripts[number % len(scripts)]]
        if not again:
            ops.append(Op("close", on))
    last = () if not again or "close" not in ctx.offers else (Op("close"),)
    return Probe((*ops, Op("resources"), *last))


# --- memory ---
#
# The allocator's own count (`tracemalloc`, PEP 454) is exact where the size of the process is not: a world that forgets
# what is over holds as much after the tenth play of an episode as after the third, to the byte or nearly.

TASKS, LATER = 2, 2
"""Episodes of a round of `x.memory`, and rounds before its first look."""
PER_CALL, PER_EPISODE = 2000, 12_000
"""Bytes that stay behind, on average; less may be a log of what was done."""
TOURED = 10
"""Tools of which each episode makes a call besides those that solve it."""


def episodes(ctx: AuditContext) -> list[list[Op]]:
    """Episodes of a few tasks: a known call of each tool that they do not need, in turns, and what they ask for."""
    found: list[list[Op]] = []
    scripts = [script(ctx, task) for task in ctx.sample_tasks(TASKS)]
    used = {op.name for ops in scripts for op in ops}
    further = list({call.op.name: bare(call.op) for call in ctx.discovery.calls if call.op.name not in used}.values())
    for place, (begun, *rest) in enumerate(scripts):
        found.append([begun, *further[place :: len(scripts)][:TOURED], *rest])
    return found


@probe_function
def held(player: Player, on: str, value: Any) -> dict[str, Any]:
    """Play the episodes in rounds; bytes that Python holds after each of the later rounds.

    Args:
        player: Makes the sessions.
        on: The session, or the begin of their names.
        value: {"episodes": lists of ops, "again": on one session, or each on its own, which is closed and dropped}.
    """
    scripts = [[msgspec.convert(op, Op) for op in item] for item in value["episodes"]]
    looks: list[int] = []
    for number in range(LATER + ROUNDS):
        if number == LATER - 1:
            gc.collect()
            tracemalloc.start(1)
        for place, ops in enumerate(scripts):
            name = on if value["again"] else f"{on} {number} {place}"
            for op in ops:
                player.do(op.moved(name))
            if not value["again"]:
                adapter = player.adapters.pop(name)
                if "close" in adapter.offers:
                    with contextlib.suppress(Exception):  # Another check says so.
                        adapter.subject.close()
                del adapter
        if number >= LATER - 1:
            gc.collect()
            looks.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return {"bytes": looks, "calls": sum(map(len, scripts)), "episodes": len(scripts)}


@relation
def keeps(records: Sequence[Record], _evidence: Evidence) -> bool:
    """After each round Python holds more than after the one before, by so much per call and per episode."""
    return kept(records[0].at("held").value) > 0


def kept(value: Any) -> int:
    """Bytes that every episode leaves at least; 0 when that is little."""
    if not is_dict(value) or not is_list(value.get("bytes")):
        return 0
    least = min((after - before for before, after in itertools.pairwise(value["bytes"][1:])), default=0)
    is_much = least >= PER_CALL * value["calls"] and least >= PER_EPISODE * value["episodes"]
    return int(least // value["episodes"]) if is_much else 0


@check("x.memory", "races", needs=("tasks",), value=32)
def memory(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that repeated episodes leave nothing in memory."""
    scripts = msgspec.to_builtins(episodes(ctx))
    ways = {"in one session": True, "in sessions that are over": False}
    asked = [ask(f"{__name__}:held", {"episodes": scripts, "again": again}, mark="held") for again in ways.values()]
    probes = [Probe((reset(ctx.tasks[0], on="warm"), op)) for op in asked]
    for words, probe, record in zip(ways, probes, ctx.play_all(probes), strict=True):
        value: Any = record.at("held").value
        ctx.count_comparisons(ROUNDS)
        if kept(value):
            yield show(
                ctx, f"each episode leaves memory behind, {words}", keeps, probe, marks=("held",),
                expected="as much after the episode as before it",
                observed={"bytes per episode": kept(value), "held after each round": value["bytes"]}, teaches=TEACHES,
            )  # fmt: skip
            return
