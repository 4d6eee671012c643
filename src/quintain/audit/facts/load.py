"""Open-loop load: calls arrive at random times, whether or not earlier ones have been answered.

Arrivals are a Poisson process of a target rate, and latency counts from a call's due time, not from when a thread was
free; otherwise a stall would hide the calls that it delayed ("coordinated omission", G. Tene 2013). Every answer is
compared with the same session's answer in a serial run.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import msgspec

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, Probe, ask, reset, same, score
from quintain.audit.kernel.registry import probe_function

SESSIONS, THREADS = 64, 32
PATIENCE_S = 20.0  # seconds after the last arrival in which all calls must have been answered


def probe(ctx: AuditContext, rate: float, seconds: float) -> Probe:
    """Returns a probe that puts load of this rate (calls per second) on sessions of a few tasks."""
    tasks = ctx.sample_tasks(8)
    scripts = [msgspec.to_builtins(script(ctx, task)) for task in tasks]
    asked = {"rate": rate, "seconds": seconds, "seed": ctx.seed, "volatile": list(ctx.volatile), "scripts": scripts}
    return Probe((*(reset(task, on="warm") for task in tasks), ask(f"{__name__}:poisson", asked, mark="load")))


def script(ctx: AuditContext, task: str) -> list[Op]:
    """Returns an episode: the oracle's solution or known calls, then the score."""
    ops = ctx.oracle(task)
    if ops is None:
        ops = tuple(one.op for one in ctx.discovery.calls if one.task == task and not one.before)[:12]
    return [reset(task), *ops, score(mark="")]


@probe_function
def poisson(player: Player, _on: str, value: Any) -> dict[str, Any]:
    """Plays episodes in many sessions at a target rate of calls, in this process.

    The result holds latencies from the due time, "errors" (calls that crashed or never came back), "wrong" (answers
    that differ from the serial run), and "unsteady" (steps that differ between two serial runs and are not compared).
    """
    scripts = [[msgspec.convert(op, Op) for op in one] for one in value["scripts"]]
    volatile = tuple(value.get("volatile", ()))
    serial, again = (
        [[player.do(op.moved(f"{name} {place}")) for op in one] for place, one in enumerate(scripts)]
        for name in ("serial", "again")
    )
    steady = [[same(*both, volatile) for both in zip(*pair, strict=True)] for pair in zip(serial, again, strict=True)]
    sessions = [
        _Session(player, f"load {n}", scripts[n % len(scripts)], number=n % len(scripts)) for n in range(SESSIONS)
    ]
    rng = random.Random(value["seed"])  # noqa: S311 (draws of arrivals, no secrets)
    due = arrivals(rng, float(value["rate"]), float(value["seconds"]))
    who = [rng.randrange(len(sessions)) for _ in due]
    before = time.process_time()
    steps = _offered(sessions, due, who)
    summary = _summary(steps, len(due), {"serial": serial, "steady": steady, "volatile": volatile})
    return {"rate": value["rate"], **summary, "cpu_s": round(time.process_time() - before, 4)}


class _Step(NamedTuple):
    """Call that was answered `latency` seconds after it was due, `ended` seconds after the start."""

    script: int
    place: int
    op: Op
    seen: OpResult
    latency: float
    ended: float


class _Session:
    """Session that repeats its script, one step at a time."""

    def __init__(self, player: Player, on: str, ops: Sequence[Op], *, number: int) -> None:
        self._player, self._ops, self._script = player, [op.moved(on) for op in ops], number
        self._lock = threading.Lock()
        self._place = 0

    def step(self, start: float, due: float) -> _Step:
        with self._lock:
            place = self._place
            self._place = (place + 1) % len(self._ops)
            seen = self._player.do(self._ops[place])
        ended = time.monotonic() - start
        return _Step(self._script, place, self._ops[place], seen, ended - due, ended)


def arrivals(rng: random.Random, rate: float, seconds: float) -> list[float]:
    """Returns the due times of a Poisson process; at least one."""
    due = [rng.expovariate(rate)]
    while (following := due[-1] + rng.expovariate(rate)) < seconds:
        due.append(following)
    return due


def _offered(sessions: Sequence[_Session], due: Sequence[float], who: Sequence[int]) -> list[_Step]:
    """Submits each call at its due time and returns those answered in time."""
    executor = ThreadPoolExecutor(THREADS)
    start = time.monotonic()
    futures: list[Any] = []
    for moment, number in zip(due, who, strict=True):
        time.sleep(max(0.0, start + moment - time.monotonic()))
        futures.append(executor.submit(sessions[number].step, start, moment))
    done, _ = wait(futures, PATIENCE_S)
    executor.shutdown(wait=False, cancel_futures=True)
    return [future.result() for future in futures if future in done]


def _summary(steps: Sequence[_Step], offered: int, serial: dict[str, Any]) -> dict[str, Any]:
    steady, expected = serial["steady"], serial["serial"]
    compared = [one for one in steps if steady[one.script][one.place]]
    wrong = [one for one in compared if not same(one.seen, expected[one.script][one.place], serial["volatile"])]
    example: dict[str, Any] | None = None
    for one in wrong[:1]:
        sides = {"expected": expected[one.script][one.place], "observed": one.seen}
        said = {name: seen.value if seen.fine else seen.raised for name, seen in sides.items()}
        example = {"do": one.op.do, "name": one.op.name, "arguments": one.op.value, **said}
    latencies = sorted(one.latency * 1000 for one in steps)
    last = max((one.ended for one in steps), default=0.0)
    return {
        "achieved": round(len(steps) / last, 2) if last else 0.0,
        "calls": offered,
        **{f"p{share}_ms": percentile(latencies, share) for share in (50, 95, 99)},
        "max_ms": percentile(latencies, 100),
        "errors": sum(one.seen.how == "crashed" for one in wrong) + offered - len(steps),
        "compared": len(compared),
        "wrong": len(wrong),
        "unsteady": sum(not is_steady for one in steady for is_steady in one),
        "first_wrong": example,
    }


def percentile(ordered: Sequence[float], share: float) -> float:
    """Returns the nearest-rank percentile of sorted values; 0 without values."""
    place = max(0, math.ceil(share / 100 * len(ordered)) - 1)
    return round(ordered[place], 3) if ordered else 0.0
