"""Part e: curricula on the ladder.

Adaptive against uniform sampling, in pairs of equal seeds: episodes until level 6 is solved in half of the cases. And
two orders of stages with equal episodes: fundamentals (levels 1-3) then domain (4-6), and the reverse.
"""

from __future__ import annotations

import asyncio
from math import comb, prod
from statistics import median

from proof import ladder
from proof.learn import GROUP, GROUPS, Player, Table, train
from proof.rows import Row, by_seed, listed, main, row
from quintain.train.curriculum import AdaptiveSampler, LevelSampler, Sampler

SEEDS, LIMIT, LEVEL, STAGE, ORDERS = 10, 20_000, 0.5, 6_144, 5
BATCH, RATE, HALF_LIFE = 4, 0.05, 20
"""Of the pairs: groups of an update, after each of which the level is measured, step size, and half-life in updates. A
training has 180 to 340 of them: in a shorter one, what a sampler knows of the tasks comes too late."""
FIRST, LAST = {"1": 1.0, "2": 1.0, "3": 1.0}, {"4": 1.0, "5": 1.0, "6": 1.0}


def solves(table: Table, level: int) -> float:
    """Returns the exact probability that the policy solves a level."""
    return float(prod(table.chances(table.state(str(done)))[done] for done in range(level)))


def episodes_to(adaptive: bool, seed: int, limit: int) -> int:  # noqa: FBT001 (an argument of a process)
    """Returns the episodes until level 6 is solved in half of the cases, at most the limit."""
    env, table = ladder.environment(), Table(ladder.ACTS)
    tasks = env.tasks("train")
    sampler = Sampler(tasks, seed=seed)
    if adaptive:
        sampler = AdaptiveSampler(tasks, seed=seed, group=GROUP, half_life=HALF_LIFE, tag="level")

    async def run() -> int:
        player = Player(ladder.LadderReader, table.acts, table.choose)
        async for _ in train(env, player, table, sampler, groups=BATCH, rate=RATE):
            if table.version * GROUP * BATCH >= limit or solves(table, 6) >= LEVEL:
                break
        return table.version * GROUP * BATCH

    return asyncio.run(run())


def staged(reverse: bool, seed: int, stage: int) -> tuple[float, float]:  # noqa: FBT001 (an argument of a process)
    """Returns how often levels 6 and 3 are solved after two stages of so many episodes."""
    env, table = ladder.environment(), Table(ladder.ACTS)

    async def run() -> None:
        player = Player(ladder.LadderReader, table.acts, table.choose)
        for number, weights in enumerate((LAST, FIRST) if reverse else (FIRST, LAST), 1):
            sampler = LevelSampler(env.tasks("train"), weights, seed=seed)
            async for _ in train(env, player, table, sampler):
                if table.version * GROUP * GROUPS >= stage * number:
                    break

    asyncio.run(run())
    return solves(table, 6), solves(table, 3)


def sign_test(wins: int, pairs: int) -> float:
    """Returns the two-sided p value of so many wins in pairs without a tie (Dixon and Mood, JASA 1946)."""
    tail = sum(comb(pairs, k) for k in range(max(wins, pairs - wins), pairs + 1))
    return min(1.0, 2.0 * tail / float(2**pairs))


def measure(quick: bool) -> list[Row]:  # noqa: FBT001
    """Returns the rows."""
    seeds, orders, limit = (2, 1, GROUP * GROUPS) if quick else (SEEDS, ORDERS, LIMIT)
    pairs = by_seed(episodes_to, [(way, seed, limit) for way in (True, False) for seed in range(seeds)])
    adaptive, uniform = pairs[:seeds], pairs[seeds:]
    wins = sum(a < u for a, u in zip(adaptive, uniform, strict=True))
    decided = sum(a != u for a, u in zip(adaptive, uniform, strict=True))
    ratio = median(u / a for a, u in zip(adaptive, uniform, strict=True))
    stage = limit if quick else STAGE
    ends = by_seed(staged, [(way, seed, stage) for way in (False, True) for seed in range(orders)])
    up, down = ends[:orders], ends[orders:]
    by = f"adaptive {listed(adaptive)}; uniform {listed(uniform)}"
    return [
        row(f"e: pairs in which adaptive is first, of {seeds}", wins, "pairs", least=seeds, beside=(by, None)),
        row("e: sign test", sign_test(wins, decided), "p", most=0.01),
        row("e: episodes, uniform / adaptive, median", ratio, "x"),
        row(
            f"e: level 6 solved, fundamentals then domain, least of {orders} seeds",
            min(six for six, _ in up),
            "share",
            least=0.9,
            beside=(listed(six for six, _ in up), None),
        ),
        row(
            f"e: level 6 solved, domain then fundamentals, most of {orders} seeds",
            max(six for six, _ in down),
            "share",
            most=0.1,
            beside=(f"{listed(six for six, _ in down)}; level 3: {listed(three for _, three in down)}", None),
        ),
    ]


if __name__ == "__main__":
    main("e: curricula", measure)
