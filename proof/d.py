"""Part d: asynchronous against synchronous training, in three processes, with tools of heavy-tailed times.

One process serves the policy, one plays (`quintain.train.queue.Producer` around `quintain.train.pipeline`), this one
updates. The policy is a table, because the proof is about waiting, not about the model: a reply is a message to the
server and back over TCP. Each episode's tool takes a Pareto time (exponent 1.3, cut at 40 times the shortest).
Synchronous is the lag bound 0: a batch begins when the update before it is over. Both have the same learner, batch,
tasks and processes.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import quintain as qn
from proof import ladder
from proof.e import solves
from proof.learn import GROUP, Choice, Player, Table
from proof.rows import Row, listed, main, row
from quintain.train.advantages import group_mean
from quintain.train.curriculum import Sampler
from quintain.train.pipeline import AsyncBatches, pipeline
from quintain.train.queue import Producer

SEEDS, BATCH, BOUND, IN_PLAY, TOOL_S, TARGET, LIMIT = 3, 4, 4, 64, 0.1, 0.9, 200
"""A batch has 4 groups of 8. `TARGET` is how often level 3 has to be solved, `LIMIT` the most updates."""
POOL = {1: 16, 2: 16, 3: 32}


class Run(NamedTuple):
    """One training: seconds, episodes and updates to the target, lag of the tokens, dropped groups."""

    seconds: float
    episodes: int
    updates: int
    lag_max: int
    lag_mean: float
    dropped: int


def _table() -> Table:
    """Returns a table that knows all states, so that all processes name them alike."""
    table = Table(ladder.ACTS)
    solves(table, len(ladder.STEPS))
    return table


def serve(connection: Any) -> None:
    """Serves a table over TCP by JSON lines: key and seed draw an act, logits and version replace the weights."""

    async def run() -> None:
        table = _table()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                asked = json.loads(line)
                if "key" in asked:
                    given: Any = await table.choose(asked["key"], asked["seed"])
                else:
                    table.logits = {int(state): logits for state, logits in asked["logits"].items()}
                    table.version = given = asked["version"]
                writer.write(json.dumps(given).encode() + b"\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        connection.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


class Served:
    """Client of a served table."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def choose(self, key: str, seed: int) -> Choice:
        """Draws an act at the server."""
        async with self._lock:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = self._streams
            writer.write(json.dumps({"key": key, "seed": seed}).encode() + b"\n")
            return Choice(*json.loads(await reader.readline()))


def make(port: int, *, bound: int, seed: int, tool_s: float) -> AsyncBatches[Any]:
    """Returns the pipeline, in the process that plays."""
    env = ladder.environment(POOL, tool_s=tool_s)
    env = env.replace(config=qn.Config(max_turns=len(ladder.STEPS) + 1, concurrency=IN_PLAY))
    player, sampler = (
        Player(ladder.LadderReader, ladder.ACTS, Served(port).choose),
        Sampler(env.tasks("train"), seed=seed),
    )
    return pipeline(env, player, sampler, batch_groups=BATCH, group=GROUP, bound=bound, seed=seed)


def run(bound: int, seed: int, *, tool_s: float, limit: int) -> Run:
    """Trains until the target or the limit is reached; the clock begins when the first batch is asked for."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    port = ours.recv()
    table, ledgers = _table(), list[Any]()
    try:
        made = partial(make, port, bound=bound, seed=seed, tool_s=tool_s)
        with (
            Producer(made) as batches,
            socket.create_connection(("127.0.0.1", port)) as line,
            line.makefile("rb") as read,
        ):
            started = time.perf_counter()
            for batch in batches:
                ledgers.append(batch.ledger)
                table.learn(batch.rows, group_mean(batch.rows))
                given = {"logits": table.logits, "version": table.version}
                line.sendall(json.dumps(given).encode() + b"\n")
                read.readline()
                batches.advance(table.version)
                if solves(table, 3) >= TARGET or table.version >= limit:
                    break
            seconds = time.perf_counter() - started
    finally:
        server.kill()
    tokens = sum(one.tokens for one in ledgers)
    return Run(
        seconds,
        sum(one.episodes for one in ledgers),
        len(ledgers),
        max(one.lag_max for one in ledgers),
        sum(one.lag_mean * one.tokens for one in ledgers) / tokens,
        sum(len(one.dropped) for one in ledgers),
    )


def measure(quick: bool) -> list[Row]:  # noqa: FBT001
    """Returns the rows; the synchronous seeds, which mostly sleep, run side by side, the asynchronous ones alone."""
    seeds, limit, tool_s = (1, 2, 0.001) if quick else (SEEDS, LIMIT, TOOL_S)
    with ThreadPoolExecutor(seeds) as pool:
        sync = list(pool.map(partial(run, 0, tool_s=tool_s, limit=limit), range(seeds)))
    fast = [run(BOUND, seed, tool_s=tool_s, limit=limit) for seed in range(seeds)]
    ratios = [s.seconds / a.seconds for s, a in zip(sync, fast, strict=True)]
    rates = sum(a.episodes for a in fast) / sum(a.seconds for a in fast)
    rate = sum(s.episodes for s in sync) / sum(s.seconds for s in sync)
    seconds = f"async {listed(a.seconds for a in fast)} s; sync {listed(s.seconds for s in sync)} s"
    episodes = f"async {listed(a.episodes for a in fast)}; sync {listed(s.episodes for s in sync)}"
    more = sum(a.episodes for a in fast) / sum(s.episodes for s in sync)
    dropped = f"mean lag {listed(a.lag_mean for a in fast)}; dropped groups {listed(a.dropped for a in fast)}"
    return [
        row(
            f"d: time to the same score, sync / async, least of {seeds} seeds",
            min(ratios),
            "x",
            least=4,
            beside=(seconds, None),
        ),
        row("d: episodes per second, async / sync", rates / rate, "x"),
        row("d: episodes to the same score, async / sync", more, "x", beside=(episodes, None)),
        row(
            "d: largest lag of a token, async",
            max(a.lag_max for a in fast),
            "versions",
            most=BOUND,
            beside=(dropped, None),
        ),
        row("d: largest lag of a token, sync", max(s.lag_max for s in sync), "versions", most=0),
    ]


if __name__ == "__main__":
    main("d: asynchronous training", measure)
