"""Memory of a server with many sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import count

from _serve_drive import Lane, connect, get, post, quantile
from _serve_server import Server
from _table import Row, row

LANES = 16
TASKS = 64
"""Different tasks of the sessions at rest, as in a batch of groups."""
IDLE_GOAL_MB, CHURN_GOAL_US = 200.0, 1e6 / 1500
RATE, SESSIONS, EPISODE = 200, 40, 20
"""Calls a second, by so many sessions at once, each of which makes so many calls."""
WARM_S, SETTLE_S = 2.0, 0.2
GROWTH_GOAL_MB, SLOWER_GOAL = 5.0, 1.5


async def idle(server: Server, *, sessions: int) -> list[Row]:
    """Memory in MB of idle sessions of `sales`, and their creation and deletion rate."""
    lanes = [await connect(server.port, Lane) for _ in range(LANES)]
    numbers = count()

    async def each(total: int, *requests: str) -> float:
        """Seconds that these requests took for so many sessions."""
        names = iter([next(numbers) for _ in range(total)])

        async def work(lane: Lane) -> None:
            for name in names:
                for request in requests:
                    await lane.ask(_request(request, name))

        started = time.perf_counter()
        await asyncio.gather(*map(work, lanes))
        return time.perf_counter() - started

    await each(LANES * 16, "create", "prompt", "delete")
    empty = server.resident()
    began = await each(sessions, "create", "prompt")
    held = server.resident() - empty
    gone = await each(sessions, "create", "delete")
    for lane in lanes:
        lane.transport.close()
    return [
        row(
            f"{sessions:,} idle sessions of {TASKS} tasks of sales: resident, above the empty server",
            held,
            "MB",
            goal=IDLE_GOAL_MB,
        ),
        row("create a session of sales, until its prompt can be read", began / sessions * 1e6, "us"),
        row("create a session of sales and delete it", gone / sessions * 1e6, "us", goal=CHURN_GOAL_US),
    ]


def _request(what: str, number: int) -> bytes:
    name = f"idle-{number}"
    if what == "prompt":
        return get("/sales/prompt", name)
    body = {"env_name": "sales", "split": "train", "index": number % TASKS}
    return post("/create", body, name) if what == "create" else post("/delete", None, name)


async def soak(server: Server, seconds: float) -> list[Row]:
    """Measures growth while sessions come and go."""
    await _fifth(server, WARM_S)
    fifths: list[tuple[Sequence[float], float, int]] = []
    started, calls = time.perf_counter(), 0
    for _ in range(5):
        took = await _fifth(server, seconds / 5)
        calls += len(took)
        await asyncio.sleep(SETTLE_S)
        fifths.append((took, server.resident(), server.descriptors()))
    rate = calls / (time.perf_counter() - started)
    (_, memory, descriptors), (_, memory_late, descriptors_late) = fifths[0], fifths[-1]
    slow = [quantile(took, 0.99) for took, _, _ in fifths]
    early, late = min(slow[:2]), min(slow[-2:])  # A hiccup of the machine is in one of them.
    at = f"{seconds:g} s at {RATE} calls a second"
    return [
        row(f"{at}: calls a second", rate, "/s"),
        row(f"{at}: resident, last fifth above the first", memory_late - memory, "MB", goal=GROWTH_GOAL_MB),
        row(f"{at}: descriptors, last fifth above the first", descriptors_late - descriptors, "", goal=0),
        row(f"{at}: p99 of the first two fifths, the lower one", early, "ms"),
        row(f"{at}: p99 of the last two, as a multiple", late / early, "x", goal=SLOWER_GOAL),
    ]


_names = count()


async def _fifth(server: Server, seconds: float) -> list[float]:
    """Seconds that each call took; at the end all sessions are gone."""
    took: list[float] = []
    until = time.perf_counter() + seconds

    async def session(number: int) -> None:
        lane = await connect(server.port, Lane)
        due = time.perf_counter() + number / RATE
        while due < until:
            name = f"soak-{next(_names)}"
            await lane.ask(post("/create", {"env_name": "counter", "split": "train", "index": number}, name))
            await lane.ask(get("/counter/prompt", name))
            call = post("/counter/call", {"name": "add", "input": {}}, name)
            for _ in range(EPISODE):
                if due >= until:
                    break
                await asyncio.sleep(due - time.perf_counter())
                due += SESSIONS / RATE
                await lane.ask(call)
                took.append(lane.took[-1])
            await lane.ask(post("/delete", None, name))
        lane.transport.close()

    await asyncio.gather(*map(session, range(SESSIONS)))
    return took
