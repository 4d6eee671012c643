"""Checks that memory does not grow with every episode: the same few episodes, repeated.

The allocator's own count (`tracemalloc`, PEP 454) is exact where the size of the process is not: a world that forgets
what is over holds as much after the tenth play of an episode as after the third, to the byte or nearly.
"""

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

from ._same_scripts import bare

HERE = f"{__name__}:"
TASKS, WARM, ROUNDS = 2, 2, 3
"""Episodes of a round; rounds before the first look; looks after it, one a round."""
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
    for number in range(WARM + ROUNDS):
        if number == WARM - 1:
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
        if number >= WARM - 1:
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


@check("x.memory", "races", needs=("tasks",), value=53)
def memory(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that repeated episodes leave nothing in memory."""
    scripts = msgspec.to_builtins(episodes(ctx))
    ways = {"in one session": True, "in sessions that are over": False}
    probes = [
        Probe(
            (
                reset(ctx.tasks[0], on="warm"),
                ask(f"{HERE}held", {"episodes": scripts, "again": again}, mark="held"),
            )
        )
        for again in ways.values()
    ]
    for words, probe, record in zip(ways, probes, ctx.play_all(probes), strict=True):
        value: Any = record.at("held").value
        ctx.count_comparisons(ROUNDS)
        if kept(value):
            yield ctx.finding(
                f"each episode leaves memory behind, {words}",
                probe,
                relation=f"{HERE}keeps",
                marks=("held",),
                minimise=0,
                expected="as much after the episode as before it",
                observed={"bytes per episode": kept(value), "held after each round": value["bytes"]},
                teaches="nothing; the run runs out of resources",
            )
            return
