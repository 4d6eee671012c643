"""Samplers: endless iterators of tasks that learn from the outcome of each group.

Give one to `quintain.rollouts` instead of the tasks. Draws depend only on the seed and on the groups that were
observed. Episodes that failed teach a sampler nothing.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, Self

import msgspec

from quintain.errors import UsageError
from quintain.rollouts import Draw, Group
from quintain.state import S
from quintain.task import Task
from quintain.trace import Trace

SOLVED_FLOOR = 0.02
"""Least weight of a task, so that solved ones are still played now and then."""
UNSOLVED_FLOOR = 0.05
"""Least weight of a task that was never solved."""


SHARED = 32
"""Most episodes of its level that count for a task as if they were its own."""
_Outcomes = tuple[float, float, int, int]


class _SavedSampler(msgspec.Struct):
    """Saved state of a sampler.

    Attributes:
        drawn: Number of draws.
        known: Outcomes by task: successes and failures, both discounted, the version of the last group, episodes.
        levels: The same by level.
    """

    drawn: int = 0
    known: dict[str, _Outcomes] = {}
    levels: dict[str, _Outcomes] = {}


class Sampler(Generic[S]):
    """Sampler that draws all tasks equally often: each pass is another permutation of them.

    Args:
        tasks: Tasks of a split. One task at a time is read, so a million of them need no memory.
        seed: Seed of the draws.
    """

    def __init__(self, tasks: Sequence[Task[S]], *, seed: int = 0) -> None:
        if not tasks:
            raise UsageError("a sampler needs at least one task, got none")
        self.tasks, self.seed = tasks, seed
        self._progress = _SavedSampler()

    def __iter__(self) -> Iterator[Draw[S]]:
        while True:
            yield self.draw()

    def draw(self) -> Draw[S]:
        """Returns the next task and its seed."""
        turn = self._progress.drawn
        self._progress.drawn += 1
        return Draw(self.tasks[self._place(turn)], turn)

    def _place(self, turn: int) -> int:
        turns, place = divmod(turn, len(self.tasks))
        return permuted(place, len(self.tasks), f"{self.seed}/{turns}")

    def observe(self, group: Group) -> None:
        """Learns from a complete group; `rollouts` calls it."""

    def save(self) -> bytes:
        """Returns the state for `load`, as JSON."""
        return msgspec.json.encode(self._progress)

    def load(self, data: bytes) -> Self:
        """Goes on where the saved sampler was, with the same tasks and seed; returns the sampler.

        Raises:
            UsageError: The bytes are no saved state.
        """
        try:
            self._progress = msgspec.json.decode(data, type=_SavedSampler)
        except msgspec.DecodeError as error:
            raise UsageError(f"this is not the saved state of a sampler: {error}") from error
        return self


def permuted(place: int, count: int, key: str) -> int:
    """Returns where a keyed permutation of `range(count)` puts a place, in constant memory.

    A Feistel network of four rounds over the next power of four permutes; numbers beyond `count` are permuted again
    (cycle walking; Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
    """
    half = max(1, (count - 1).bit_length() + 1 >> 1)
    mask = (1 << half) - 1
    while True:
        left, right = place >> half, place & mask
        for turn in range(4):
            drawn = hashlib.blake2b(f"{key}/{turn}/{right}".encode(), digest_size=8).digest()
            left, right = right, left ^ int.from_bytes(drawn, "big") & mask
        place = left << half | right
        if place < count:
            return place


class AdaptiveSampler(Sampler[S]):
    """Sampler that prefers tasks whose next group probably has good and bad episodes, because only those teach.

    The belief about the success rate p of a task is Beta(1 + successes, 1 + failures); a score in [0, 1] counts as a
    part of a success. Outcomes are discounted by half for each `half_life` policy versions. The weight of a task is
    the expected probability that a group of n is mixed, 1 - E[p^n] - E[(1 - p)^n], and at least a floor. A new task
    has nearly the highest weight, so exploration needs no bonus. Drawing is by rejection, exact and in constant time.

    A task that is played a few times in a whole training tells little of itself. With `tag`, the outcomes of all tasks
    of its level count for it, too, scaled to at most `SHARED` episodes.

    Args:
        tasks: Tasks of a split.
        seed: Seed of the draws.
        group: Episodes of a group, at least 2.
        half_life: Policy versions after which an outcome counts half.
        tag: Tag of a task that names its level; empty if tasks share nothing.
    """

    def __init__(
        self,
        tasks: Sequence[Task[S]],
        *,
        seed: int = 0,
        group: int = 8,
        half_life: float = 50.0,
        tag: str = "",
    ) -> None:
        super().__init__(tasks, seed=seed)
        if group < 2:
            raise UsageError(f"group must be >= 2 to have a baseline, got {group}")
        if half_life <= 0:
            raise UsageError(f"half_life must be above 0 policy versions, got {half_life}")
        self.group, self.half_life, self.tag = group, half_life, tag
        self.version = 0

    def _place(self, turn: int) -> int:
        rng = random.Random(f"{self.seed}/{turn}")  # noqa: S311 (draws of tasks, no secrets)
        while True:
            place = rng.randrange(len(self.tasks))
            if rng.random() < self.weight(self.tasks[place]):
                return place

    def weight(self, task: Task[S]) -> float:
        """Returns the weight of a task, in (0, 1]."""
        good, bad, _, played = self._now(self._progress.known, task.id)
        all_good, all_bad, _, _ = self._now(self._progress.levels, task.tags.get(self.tag, ""))
        part = min(1.0, SHARED / max(1.0, all_good + all_bad))
        a, b = 1 + good + part * all_good, 1 + bad + part * all_bad
        mixed = 1 - _power(a, b, self.group) - _power(b, a, self.group)
        return max(mixed, UNSOLVED_FLOOR if played and not good else SOLVED_FLOOR)

    def observe(self, group: Group) -> None:
        """Learns the scores of the valid episodes of a group, and the policy version that played them."""
        scores = [trace.score for trace in group.traces if trace.score is not None]
        if not scores:
            return
        self.version = max(self.version, *(_version(trace) for trace in group.traces))
        won = sum(min(1.0, max(0.0, score)) for score in scores)
        shared = [(self._progress.levels, level) for level in (group.traces[0].tags.get(self.tag),) if level]
        for table, name in [(self._progress.known, group.task), *shared]:
            good, bad, _, played = self._now(table, name)
            table[name] = (good + won, bad + len(scores) - won, self.version, played + len(scores))

    def _now(self, table: Mapping[str, _Outcomes], name: str) -> _Outcomes:
        good, bad, version, played = table.get(name, (0.0, 0.0, self.version, 0))
        part = 0.5 ** ((self.version - version) / self.half_life)
        return good * part, bad * part, version, played

    def unsolved(self, least: int = 16) -> list[str]:
        """Returns the tasks that no episode solved in part, of at least `least` valid ones: audit them first."""
        return [task for task, (good, _, _, played) in self._progress.known.items() if played >= least and not good]

    def load(self, data: bytes) -> Self:
        super().load(data)
        self.version = max((version for _, _, version, _ in self._progress.known.values()), default=0)
        return self


def _power(a: float, b: float, n: int) -> float:
    """Returns E[p^n] for p of Beta(a, b)."""
    found = 1.0
    for i in range(n):
        found *= (a + i) / (a + b + i)
    return found


def _version(trace: Trace) -> int:
    return max((turn.reply.policy_version or 0 for turn in trace.turns), default=0)


class LevelSampler(Sampler[S]):
    """Sampler that draws a level by weight, then a task of it, each pass of a level in another order.

    Args:
        tasks: Tasks of a split, all of which are read once.
        weights: Relative weight by level; levels that it lacks are not drawn.
        level: Returns the level of a task.
        seed: Seed of the draws.
    """

    def __init__(
        self,
        tasks: Sequence[Task[S]],
        weights: Mapping[str, float],
        *,
        level: Callable[[Task[S]], str] = lambda task: task.tags.get("level", ""),
        seed: int = 0,
    ) -> None:
        super().__init__(tasks, seed=seed)
        places: dict[str, list[int]] = {}
        for place, task in enumerate(tasks):
            places.setdefault(level(task), []).append(place)
        missing = [name for name, weight in weights.items() if weight > 0 and name not in places]
        if missing or not any(weight > 0 for weight in weights.values()) or min(weights.values()) < 0:
            raise UsageError(
                f"weights must be >= 0, at least one above 0, for levels that exist ({', '.join(sorted(places))}); "
                f"got {dict(weights)}"
            )
        self.weights, self._places = dict(weights), places

    def _place(self, turn: int) -> int:
        rng = random.Random(f"{self.seed}/{turn}")  # noqa: S311 (draws of tasks, no secrets)
        (name,) = rng.choices(list(self.weights), list(self.weights.values()))
        return rng.choice(self._places[name])


class StageSampler(Sampler[S]):
    """Sampler of stages: the next one begins when the mean score of the last groups of a stage is high enough.

    Args:
        stages: Samplers in order.
        until: Mean score, over valid episodes of the last `window` groups, that ends a stage.
        window: Number of groups.
    """

    def __init__(self, stages: Sequence[Sampler[S]], *, until: float, window: int = 20) -> None:
        if not stages or window < 1:
            raise UsageError(f"stages need a sampler each and window >= 1, got {len(stages)} stages, window {window}")
        super().__init__(stages[0].tasks)
        self.stages, self.until, self.window = stages, until, window
        self.stage = 0
        self._means: list[float] = []

    def draw(self) -> Draw[S]:
        self._progress.drawn += 1
        return Draw(self.stages[self.stage].draw().task, self._progress.drawn)

    def observe(self, group: Group) -> None:
        self.stages[self.stage].observe(group)
        scores = [trace.score for trace in group.traces if trace.score is not None]
        if not scores:
            return
        self._means = [*self._means, sum(scores) / len(scores)][-self.window :]
        is_over = len(self._means) == self.window and sum(self._means) / self.window >= self.until
        if is_over and self.stage + 1 < len(self.stages):
            self.stage, self._means = self.stage + 1, []

    def save(self) -> bytes:
        saved = [stage.save().decode() for stage in self.stages]
        return msgspec.json.encode((self.stage, self._means, self._progress.drawn, saved))

    def load(self, data: bytes) -> Self:
        try:
            found = msgspec.json.decode(data, type=tuple[int, list[float], int, list[str]])
        except msgspec.DecodeError as error:
            raise UsageError(f"this is not the saved state of stages: {error}") from error
        self.stage, self._means, self._progress.drawn, saved = found
        if len(saved) != len(self.stages):
            raise UsageError(f"the saved state has {len(saved)} stages, the sampler {len(self.stages)}")
        for stage, own in zip(self.stages, saved, strict=True):
            stage.load(own.encode())
        return self


def scheduled(step: int, values: Sequence[float], every: int) -> float:
    """Returns the value of a dial at a training step: each value holds for `every` steps, the last one for ever.

    For a turn limit that grows, as in ScalingInter-RL (AgentGym-RL, 2509.08755): `scheduled(step, [5, 8, 10], 100)`.

    Raises:
        UsageError: There are no values, `every` is below 1, or `step` below 0.
    """
    if not values or every < 1 or step < 0:
        raise UsageError(f"a schedule needs values, every >= 1 and step >= 0, got {list(values)}, {every}, {step}")
    return values[min(step // every, len(values) - 1)]
