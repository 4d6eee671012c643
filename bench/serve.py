"""Rates of served environments: this project, the protocols' own servers, and a bare handler.

    python bench/serve.py [--peers] [--minutes N]

Every server is a process with a core to itself; this one drives it from another, over kept-alive connections, one per
session, each with one call on its way. Servers take turns, several rounds long, and the best of each counts. Peers are
measured where they are installed; `--peers` installs them. What a server holds is seen in 2,000 sessions at rest, and
in some that come and go at 200 calls a second, for a minute or for `--minutes`.
"""

from __future__ import annotations

import contextlib
import re
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count
from typing import NamedTuple

import _serve_server as servers
import uvloop
from _serve_drive import BrokenError, Lane, Pace, Socket, best, connect, everyone, frame, get, pace, post, upgrade
from _serve_hold import idle, soak
from _serve_server import Server
from _table import Row, arguments, note, put, row

TITLE = "Environments served"
ENV = "counter"
COUNTER = f"{servers.HERE / '_serve_counter.py'}:{ENV}"
LEVELS, ROUNDS, PATIENCE_S = (1, 16, 64, 200), 5, 30.0
"""Rounds that begin later are left out: a machine so slow has other things to do."""
OURS, ORS, OPENENV = "ours", "ors-sdk 0.1.0", "openenv 0.10.0"
BARE, FAST = "bare handler", "bare handler on uvloop and httptools"
BELOW = {BARE: ("asyncio", "h11"), FAST: ("uvloop", "httptools")}
"""Event loop and HTTP parser of a handler that only sends frames: those of ors-sdk's own server, then ours."""
MANY, FEW, LONGEST = 6000, 800, 1500
"""Calls per round of a fast server, of one that is ten times slower, and most of one session."""
OF_ORS, OF_BARE, OF_P99, OF_OPENENV = 1 / 8, 1 / 0.6, 1 / 5, 1.0
"""The most that our time may be, as a multiple of theirs."""

Sessions = AbstractAsyncContextManager[tuple[Sequence[Lane], Sequence[bytes]]]
Paces = dict[tuple[str, int], Pace]
NUMBERS = count()


class Side(NamedTuple):
    """A server in a contest: how sessions of it are opened, each with what it asks, and how many calls are a round."""

    name: str
    server: Server
    sessions: Callable[[Server, int], Sessions]
    calls: int
    counts: bool = True


@contextlib.asynccontextmanager
async def ors(server: Server, number: int) -> AsyncIterator[tuple[Sequence[Lane], Sequence[bytes]]]:
    """Sessions of the Open Reward Standard."""
    names = [f"session-{next(NUMBERS)}" for _ in range(number)]
    body = {"env_name": ENV, "split": "train", "index": 0}
    async with bare(server, number) as (lanes, _):
        await everyone(lanes, [post("/create", body, name) for name in names])
        await everyone(lanes, [get(f"/{ENV}/prompt", name) for name in names])
        yield lanes, [post(f"/{ENV}/call", {"name": "add", "input": {}}, name) for name in names]
        await everyone(lanes, [post("/delete", None, name) for name in names])


@contextlib.asynccontextmanager
async def bare(server: Server, number: int) -> AsyncIterator[tuple[Sequence[Lane], Sequence[bytes]]]:
    """The same calls on a handler without sessions."""
    lanes = [await connect(server.port, Lane) for _ in range(number)]
    try:
        yield lanes, [post(f"/{ENV}/call", {"name": "add", "input": {}}, f"session-{n}") for n in range(number)]
    finally:
        for lane in lanes:
            lane.transport.close()


def openenv(path: str) -> Callable[[Server, int], Sessions]:
    """Sessions of OpenEnv, each a WebSocket."""

    @contextlib.asynccontextmanager
    async def sockets(server: Server, number: int) -> AsyncIterator[tuple[Sequence[Lane], Sequence[bytes]]]:
        lanes = [await connect(server.port, Socket) for _ in range(number)]
        try:
            await everyone(lanes, [upgrade(path)] * number)
            await everyone(lanes, [frame({"type": "reset", "data": {}})] * number)
            step = {"type": "call_tool", "tool_name": "add", "arguments": {}}
            yield lanes, [frame({"type": "step", "data": step})] * number
        finally:
            for lane in lanes:
                lane.transport.close()

    return sockets


async def contest(sides: Sequence[Side], *, quick: bool) -> tuple[Paces, dict[str, tuple[float, int]]]:
    """The best of each side at each level; and megabytes and threads of each server at the highest."""
    found: dict[tuple[str, int], list[Pace]] = {}
    held: dict[str, tuple[float, int]] = {}
    until = time.monotonic() + PATIENCE_S
    for number in range(1 if quick else ROUNDS):
        if number > 1 and time.monotonic() > until:
            break
        for level in LEVELS[:2] if quick else LEVELS:
            for side in sides if number % 2 else reversed(sides):  # Nobody is always first.
                times = max(3, min(side.calls // level, LONGEST)) if not quick else 3
                async with side.sessions(side.server, level) as (lanes, requests):
                    measured = await pace(lanes, requests, times, side.server.cpu)
                    held[side.name] = side.server.resident(), side.server.threads()
                    if side.counts:
                        counted(lanes, times)
                found.setdefault((side.name, level), []).append(measured)
    return {key: best(rounds) for key, rounds in found.items()}, held


def counted(lanes: Sequence[Lane], times: int) -> None:
    """See that each session counted each call, once.

    Raises:
        BrokenError: One did not.
    """
    right = re.compile(rb'"(?:text|result)":"?%d\b' % times)
    for lane in lanes:
        if not right.search(lane.answer):
            raise BrokenError(f"after {times} calls a session said {lane.answer[-400:]!r}")


async def frames(server: Server) -> list[str]:
    """Returns the chunks of the response body for a call."""
    async with ors(server, 1) as (lanes, requests):
        body = (await lanes[0].ask(requests[0])).partition(b"\r\n\r\n")[2]
    found: list[str] = []
    while not body.startswith(b"0\r\n"):
        size, _, rest = body.partition(b"\r\n")
        found.append(rest[: int(size, 16)].decode())
        body = rest[int(size, 16) + 2 :]
    return found


def sessions(level: int) -> str:
    return f"{level} session{'s' if level > 1 else ''}"


def speeds(what: str, found: Paces, beside: str) -> Iterator[Row]:
    """Rows of the rate at each level, with a peer's rate if it was measured."""
    for name, level in found:
        if name != OURS:
            continue
        its = found.get((beside, level))
        at = f"{what}, {sessions(level)}"
        one = found[OURS, level]
        peer = beside if its else None
        yield row(f"{at}: calls a second", one.rate, "/s", peer=peer, peer_value=its and its.rate)
        yield row(f"{at}: p50", one.p50_ms, "ms", peer=peer, peer_value=its and its.p50_ms)
        yield row(f"{at}: p99", one.p99_ms, "ms", peer=peer, peer_value=its and its.p99_ms)


def ratio(name: str, ours: float | None, theirs: float | None, goal: float) -> Row:
    """Our time as a multiple of theirs, where both were measured."""
    return row(name, ours / theirs if ours and theirs else None, "x", goal=goal)


async def calls(server: Server, options: Namespace) -> AsyncIterator[Row]:
    """Tool calls over the Open Reward Standard."""
    async with contextlib.AsyncExitStack() as stack:
        sides = [Side(OURS, server, ors, MANY)]
        sent = await frames(server)
        for name, (loop, http) in BELOW.items():
            below = stack.enter_context(servers.bare(sent, loop=loop, http=http))
            sides.append(Side(name, below, bare, MANY, counts=False))
        python = servers.interpreter("ors", download=options.peers)
        if python:
            its = stack.enter_context(servers.peer(python, "_peer_ors_server.py"))
            sides.append(Side(ORS, its, ors, FEW))
        found, _ = await contest(sides, quick=options.quick)
    for one in speeds("ORS", found, ORS):
        yield one
    for level in sorted({level for _, level in found}):
        one, other, peer = found[OURS, level], found[BARE, level], found.get((ORS, level))
        at = sessions(level)
        yield row(f"{BARE}, {at}: calls a second", other.rate, "/s", peer=peer and ORS, peer_value=peer and peer.rate)
        yield row(f"ORS, {at}: CPU of a call", one.server_us, "us", peer=BARE, peer_value=other.server_us)
        yield ratio(f"ORS, {at}: time over the bare handler's", other.rate, one.rate, OF_BARE)
        fast = found[FAST, level]
        yield row(f"{FAST}, {at}: calls a second", fast.rate, "/s", peer=OURS, peer_value=one.rate)
        if fast.driver_us > fast.server_us and not options.quick:
            note(f"at {at} the driver is the limit of the {FAST}, not the handler")
        if level >= 64 or options.quick:
            yield ratio(f"ORS, {at}: time over the reference's", peer and peer.rate, one.rate, OF_ORS)
        if level == 200 or options.quick:
            yield ratio(f"ORS, {at}: p99 over the reference's", one.p99_ms, peer and peer.p99_ms, OF_P99)


async def steps(server: Server, options: Namespace) -> AsyncIterator[Row]:
    """Steps over OpenEnv's WebSockets."""
    async with contextlib.AsyncExitStack() as stack:
        sides = [Side(OURS, server, openenv(f"/openenv/{ENV}/ws"), MANY)]
        python = servers.interpreter("openenv", download=options.peers)
        if python:
            its = stack.enter_context(servers.peer(python, "_peer_openenv_server.py"))
            sides.append(Side(OPENENV, its, openenv("/ws"), MANY))
        found, held = await contest(sides, quick=options.quick)
    for one in speeds("OpenEnv", found, OPENENV):
        yield one
    for level in sorted({level for _, level in found}):
        peer = found.get((OPENENV, level))
        at = sessions(level)
        yield ratio(
            f"OpenEnv, {at}: time over the reference's", peer and peer.rate, found[OURS, level].rate, OF_OPENENV
        )
    (memory, threads), its_hold = held[OURS], held.get(OPENENV)
    name = its_hold and OPENENV
    yield row("OpenEnv, most sessions: resident", memory, "MB", peer=name, peer_value=its_hold and its_hold[0])
    yield row("OpenEnv, most sessions: threads", threads, "", peer=name, peer_value=its_hold and its_hold[1])


async def measure(options: Namespace) -> list[Row]:
    with servers.ours(COUNTER) as server:
        rows = [one async for one in calls(server, options)]
        rows += [one async for one in steps(server, options)]
    with servers.ours("sales") as server:
        rows += await idle(server, sessions=20 if options.quick else 2000)
    with servers.ours(COUNTER) as server:
        rows += await soak(server, 2.0 if options.quick else 60 * options.minutes)
    return rows


def main() -> None:
    parser = arguments(TITLE)
    parser.add_argument("--peers", action="store_true", help="install what is measured beside ours, below the cache")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long sessions come and go (default: 1)")
    options = parser.parse_args()
    servers.step_aside()
    put(TITLE, uvloop.run(measure(options)), as_json=options.json)


if __name__ == "__main__":
    main()
