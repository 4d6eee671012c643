"""Part b: episodes that dense and sparse rewards need to the same sparse score.

The long desk, the same learner, tasks and seeds. Dense rewards stand beside the score: five phases and a step penalty.
What is measured is the sparse score, the mean of the last 8 updates. The advantages have no division by the std.
"""

from __future__ import annotations

import asyncio
from collections import deque

from proof import desk
from proof.learn import GROUP, GROUPS, Player, Table, mean, train, turn_mean
from proof.rows import Row, by_seed, listed, main, row
from quintain.train.curriculum import Sampler

SEEDS, LEVELS, LIMIT, ORDERS, WINDOW, RATE = 5, (0.1, 0.2, 0.3, 0.4), 40_000, (3, 5), 8, 0.1


def episodes_to(dense: bool, seed: int, limit: int) -> dict[float, int]:  # noqa: FBT001 (of a process)
    """Returns the episodes after which the sparse score first reached each level."""

    async def run() -> dict[float, int]:
        env, table = desk.environment(dense=dense, orders=ORDERS, long=True), Table(desk.DeskReader.acts)
        player, sampler = Player(desk.DeskReader, table.acts, table.choose), Sampler(env.tasks("train"), seed=seed)
        scores, reached = deque[float](maxlen=WINDOW), dict[float, int]()
        async for traces in train(env, player, table, sampler, advantages=turn_mean, rate=RATE):
            scores.append(mean([trace.score for trace in traces]))
            played = table.version * GROUP * GROUPS
            for level in LEVELS:
                if level not in reached and len(scores) == WINDOW and sum(scores) / WINDOW >= level:
                    reached[level] = played
            if len(reached) == len(LEVELS) or played >= limit:
                break
        return reached

    return asyncio.run(run())


def measure(quick: bool) -> list[Row]:  # noqa: FBT001
    """Returns the rows; a seed that sparse rewards never brought to a level counts with the limit."""
    seeds, limit = (1, GROUP * GROUPS) if quick else (SEEDS, LIMIT)
    found = by_seed(episodes_to, [(way, seed, limit) for way in (False, True) for seed in range(seeds)])
    rows: list[Row] = []
    for level in LEVELS:
        sparse, dense = ([one.get(level) for one in half] for half in (found[:seeds], found[seeds:]))
        ratios = [(s or limit) / d if d else 0.0 for s, d in zip(sparse, dense, strict=True)]
        name = f"b: episodes to {level}, sparse / dense, least of {seeds} seeds"
        text = f"{listed(ratios)} (dense {listed(dense)}; sparse {listed(sparse)})"
        rows.append(row(name, min(ratios), "x", least=4.0 if level == LEVELS[-1] else None, beside=(text, None)))
    return rows


if __name__ == "__main__":
    main("b: dense against sparse rewards", measure)
