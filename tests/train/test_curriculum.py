"""Samplers: fair, exact and repeatable; failed episodes teach them nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.errors import UsageError
from quintain.harness import Request
from quintain.record import EpisodeRecord
from quintain.rollouts import Draw, Group
from quintain.trace import Reply, Timing, Trace
from quintain.train import curriculum
from tests.worlds import Yard, environment, fine, says


def tasks(count: int) -> list[qn.Task[Yard]]:
    return [qn.Task(id=f"t{n}", prompt=f"{n}", start=Yard(), tags={"level": str(n % 3)}) for n in range(count)]


async def noop(request: Request) -> Reply:
    return msgspec.structs.replace(says(), policy_version=7)


def played() -> Trace:
    async def one() -> Trace:
        async for group in qn.rollouts(environment(fine), noop, tasks(1)):
            return group.traces[0]
        raise AssertionError("no group came")

    return asyncio.run(one())


TRACE = played()


def group(task: str, scores: Sequence[float | None], version: int = 0) -> Group:
    tags = {"level": str(int(task[1:]) % 3)}

    def trace(score: float | None) -> Trace:
        reply = msgspec.structs.replace(TRACE.turns[0].reply, policy_version=version)
        turns = [msgspec.structs.replace(TRACE.turns[0], reply=reply)]
        return msgspec.structs.replace(TRACE, task=task, tags=tags, score=score, turns=turns)

    return Group(index=0, task=task, rollouts=tuple(EpisodeRecord(trace(s), Timing()) for s in scores), kept=True)


@given(st.integers(1, 200), st.text(max_size=3))
def test_permutation_visits_each_place_once(count: int, key: str) -> None:
    assert sorted(curriculum.permuted(place, count, key) for place in range(count)) == list(range(count))


def test_passes_of_a_sampler_have_each_task_once_in_another_order() -> None:
    sampler = curriculum.Sampler(tasks(50), seed=1)
    first, second = ([sampler.draw() for _ in range(50)] for _ in range(2))
    names = [[draw.task.id for draw in turn] for turn in (first, second)]
    assert sorted(names[0]) == sorted(names[1]) == sorted(task.id for task in tasks(50))
    assert names[0] != names[1]
    assert len({draw.seed for draw in (*first, *second)}) == 100


def test_million_tasks_are_sampled_without_reading_them() -> None:
    class Lazy(Sequence[qn.Task[Yard]]):
        read = 0

        def __len__(self) -> int:
            return 1_000_000

        def __getitem__(self, place: Any) -> Any:
            self.read += 1
            return qn.Task(id=f"t{place}", prompt="", start=Yard())

    lazy = Lazy()
    sampler = curriculum.Sampler(lazy)
    assert len({sampler.draw().task.id for _ in range(1000)}) == 1000
    assert lazy.read == 1000


@given(st.lists(st.booleans(), max_size=12), st.integers(2, 6))
def test_weight_is_the_expected_chance_of_a_mixed_group(outcomes: list[bool], size: int) -> None:
    sampler = curriculum.AdaptiveSampler(tasks(1), group=size)
    sampler.observe(group("t0", [float(one) for one in outcomes]))
    a, b = 1 + sum(outcomes), 1 + len(outcomes) - sum(outcomes)
    steps = [(n + 0.5) / 4000 for n in range(4000)]
    density = [p ** (a - 1) * (1 - p) ** (b - 1) for p in steps]
    mixed = [1 - p**size - (1 - p) ** size for p in steps]
    expected = sum(d * m for d, m in zip(density, mixed, strict=True)) / sum(density)
    floor = curriculum.UNSOLVED_FLOOR if outcomes and not any(outcomes) else curriculum.SOLVED_FLOOR
    assert sampler.weight(tasks(1)[0]) == pytest.approx(max(expected, floor), abs=1e-4)


def test_adaptive_sampler_draws_by_weight() -> None:
    sampler = curriculum.AdaptiveSampler(tasks(3), group=4)
    sampler.observe(group("t0", [1.0] * 60))
    sampler.observe(group("t1", [0.0] * 60))
    sampler.observe(group("t2", [1.0, 0.0] * 30))
    weights = [sampler.weight(task) for task in tasks(3)]
    drawn = Counter(sampler.draw().task.id for _ in range(4000))
    for n, weight in enumerate(weights):
        assert drawn[f"t{n}"] / 4000 == pytest.approx(weight / sum(weights), abs=0.03)
    assert weights[2] > 0.8
    assert weights[0] < 0.15


def test_failed_episodes_teach_a_sampler_nothing() -> None:
    sampler = curriculum.AdaptiveSampler(tasks(2))
    before = sampler.save()
    sampler.observe(group("t0", [None, None]))
    assert sampler.save() == before
    sampler.observe(group("t0", [None, 1.0]))
    other = curriculum.AdaptiveSampler(tasks(2))
    other.observe(group("t0", [1.0]))
    assert sampler.weight(tasks(1)[0]) == other.weight(tasks(1)[0])


def test_tasks_of_a_level_share_what_was_learned() -> None:
    alone, shared = curriculum.AdaptiveSampler(tasks(6)), curriculum.AdaptiveSampler(tasks(6), tag="level")
    for sampler in (alone, shared):
        for _ in range(50):
            sampler.observe(group("t0", [0.0] * 8))
    same, other = tasks(6)[3], tasks(6)[4]
    assert alone.weight(same) == alone.weight(other) == shared.weight(other)
    mixed = 1 - prod((33 + n) / (34 + n) for n in range(8)) - prod((1 + n) / (34 + n) for n in range(8))
    assert shared.weight(same) == pytest.approx(mixed)
    shared.observe(group("t3", [1.0, 0.0] * 4))
    assert shared.weight(same) > 3 * mixed


def test_outcomes_of_old_policies_count_less() -> None:
    sampler = curriculum.AdaptiveSampler(tasks(2), half_life=10)
    sampler.observe(group("t0", [0.0] * 8))
    old = sampler.weight(tasks(1)[0])
    sampler.observe(group("t1", [1.0], version=30))
    assert sampler.weight(tasks(1)[0]) > old
    assert sampler.version == 30


def test_tasks_that_nobody_solves_are_listed_for_the_audit() -> None:
    sampler = curriculum.AdaptiveSampler(tasks(3))
    for _ in range(2):
        sampler.observe(group("t0", [0.0] * 8))
        sampler.observe(group("t1", [0.0] * 7 + [1.0]))
        sampler.observe(group("t2", [None] * 8))
    assert sampler.unsolved() == ["t0"]


def kinds() -> list[curriculum.Sampler[Yard]]:
    some = tasks(9)
    return [
        curriculum.Sampler(some, seed=3),
        curriculum.AdaptiveSampler(some, seed=3, tag="level"),
        curriculum.LevelSampler(some, {"0": 1, "2": 3}, seed=3),
        curriculum.StageSampler([curriculum.Sampler(some[:3]), curriculum.AdaptiveSampler(some)], until=0.5, window=2),
    ]


@pytest.mark.parametrize("place", range(4))
def test_loaded_sampler_goes_on_as_the_saved_one(place: int) -> None:
    sampler, other = kinds()[place], kinds()[place]
    for n in range(7):
        name = sampler.draw().task.id
        sampler.observe(group(name, [float(n % 2), 1.0], version=n))
    other.load(sampler.save())
    draws = [[(draw.task.id, draw.seed) for draw in (one.draw() for _ in range(20))] for one in (sampler, other)]
    assert draws[0] == draws[1]


def test_levels_are_drawn_by_weight() -> None:
    sampler = curriculum.LevelSampler(tasks(9), {"0": 1, "2": 3})
    drawn = Counter(sampler.draw().task.tags["level"] for _ in range(2000))
    assert set(drawn) == {"0", "2"}
    assert drawn["2"] / 2000 == pytest.approx(0.75, abs=0.04)


def test_stage_ends_when_its_last_groups_are_good_enough() -> None:
    easy, hard = tasks(2), tasks(9)[5:]
    sampler = curriculum.StageSampler([curriculum.Sampler(easy), curriculum.Sampler(hard)], until=0.75, window=2)
    for scores, stage in (([1.0], 0), ([0.0], 0), ([None], 0), ([1.0], 0), ([0.5, 0.5], 1), ([1.0], 1)):
        sampler.observe(group("t0", scores))
        assert sampler.stage == stage
    assert sampler.draw().task.id in {task.id for task in hard}


def test_schedule_holds_each_value_for_its_steps() -> None:
    assert [curriculum.scheduled(step, [5, 8, 10], 100) for step in (0, 99, 100, 250, 9999)] == [5, 5, 8, 10, 10]


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "no tasks": (lambda: curriculum.Sampler([]), "at least one task"),
    "group of one": (lambda: curriculum.AdaptiveSampler(tasks(1), group=1), "group must be >= 2"),
    "no half-life": (lambda: curriculum.AdaptiveSampler(tasks(1), half_life=0), "half_life must be above 0"),
    "unknown level": (lambda: curriculum.LevelSampler(tasks(3), {"9": 1}), "levels that exist (0, 1, 2)"),
    "no stages": (lambda: curriculum.StageSampler([], until=1), "stages need a sampler"),
    "saved junk": (lambda: curriculum.Sampler(tasks(1)).load(b"[]"), "not the saved state"),
    "no schedule": (lambda: curriculum.scheduled(0, [], 1), "a schedule needs values"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_of_samplers_says_what_was_given(name: str) -> None:
    use, said = WRONG[name]
    with pytest.raises(UsageError) as raised:
        use()
    assert said in str(raised.value)


def test_rollouts_play_draws_under_their_seeds_and_tell_the_sampler() -> None:
    seen: list[str] = []

    class Watched(curriculum.Sampler[Yard]):
        def observe(self, group: Group) -> None:
            seen.append(group.task)

    async def run() -> list[Group]:
        found: list[Group] = []
        async for one in qn.rollouts(environment(fine), noop, Watched(tasks(2)), group=2, seed=100, ahead=4):
            found.append(one)
            if len(found) == 6:
                break
        return found

    groups = asyncio.run(run())
    assert {trace.seed for one in groups for trace in one.traces} == {*range(100, 106)}
    assert [one.task for one in groups] == seen[: len(groups)]
    assert Counter(one.task for one in groups) == {"t0": 3, "t1": 3}


@given(st.integers(1, 9), st.integers(1, 4))
def test_episodes_ahead_of_the_consumer_never_exceed_the_bound(ahead: int, size: int) -> None:
    begun = taken = most = 0

    def counted() -> Any:
        nonlocal begun
        for task in tasks(12):
            begun += size
            yield Draw(task)

    async def run() -> None:
        nonlocal taken, most
        async for _ in qn.rollouts(environment(fine, concurrency=3), noop, counted(), group=size, ahead=ahead):
            most = max(most, begun - taken)
            taken += size
            await asyncio.sleep(0)

    asyncio.run(run())
    assert most <= max(size, ahead)
    assert taken == 12 * size
