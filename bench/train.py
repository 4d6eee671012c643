"""Rows for trainers: rows per second through each converter, through the advantages and through a stream.

A row is one episode of 20 turns, each with 100 tokens of observation and 100 sampled ones; groups are of 8.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial

from _table import Row, cpu, main, row

import quintain as qn
from quintain.environments.sales import env as sales
from quintain.episode import blank
from quintain.trace import End, Level, Message, Reply, Reward, Tokens, Trace, Turn
from quintain.train import advantages
from quintain.train.convert import convert
from quintain.train.stream import read_rows, write_rows

TURNS, SIZE, GROUP = 20, 100, 8
TRAINERS = ("trl", "trl_async", "prime_rl", "verl", "skyrl", "slime", "openrlhf", "nemo_rl")
ADVANTAGES: tuple[Callable[[list[qn.Trajectory]], object], ...] = (
    advantages.group_mean,
    advantages.leave_one_out,
    advantages.group_standardised,
    advantages.turn_return,
    advantages.batch_return,
)


def traces(seed: int) -> list[Trace]:
    """Returns a group of finished episodes; each turn has a reward and a weight swap in its middle."""
    task = next(iter(sales.tasks(sales.splits[0])))
    found: list[Trace] = []
    for member in range(GROUP):
        one = blank(sales, task, member=member, seed=seed)
        one.end, one.score = End.TERMINATED, member / GROUP
        for index in range(TURNS):
            versions = [(0, index), (SIZE // 2, index + 1)]
            tokens = Tokens(list(range(SIZE)), list(range(SIZE)), [-0.5] * SIZE, versions)
            reward = Reward(name="r", level=Level.TURN, raw=0.5, value=0.5)
            one.turns.append(Turn(index=index, reply=Reply(Message("assistant"), tokens), rewards=(reward,)))
        found.append(one)
    return found


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    groups = [traces(seed) for seed in range(1 if quick else 16)]
    rows = [one for group in groups for one in qn.trajectories(group)]

    def timed(name: str, work: Callable[..., object], *arguments: object) -> Row:
        seconds = cpu(partial(work, *arguments), repeats=1 if quick else 5)
        return row(name, len(rows) / seconds, "rows/s")

    yield timed("trajectories", lambda: [qn.trajectories(group) for group in groups])
    for function in ADVANTAGES:
        yield timed(f"advantages.{function.__name__}", function, rows)
    yield timed("advantages.hybrid", partial(advantages.hybrid, weight=0.5), rows)
    for trainer in TRAINERS:
        yield timed(f"convert to {trainer}", convert, rows, trainer)
    for name, packed in (("JSON lines", False), ("MessagePack", True)):
        file = io.BytesIO()
        write_rows(file, rows, packed=packed)
        yield timed(f"write {name}", partial(write_rows, packed=packed), io.BytesIO(), rows)
        yield timed(f"read {name}", read_all, file.getvalue())


def read_all(data: bytes) -> list[qn.Trajectory]:
    return list(read_rows(io.BytesIO(data)))


if __name__ == "__main__":
    main("Rows for trainers", measure)
