"""Profile of a task set and its runs: distributions, difficulty with intervals, and tasks that deserve a look."""

from __future__ import annotations

import asyncio
import bisect
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from quintain import codec
from quintain.environment import Environment
from quintain.gate import wilson
from quintain.task import Task
from quintain.trace import SOLVED, plain

from .folders import Run

MOST_TASKS = 5000
"""Tasks of a split that are looked at; the profile says how many there are."""
BASELINES = ("noop", "random", "oracle")
"""Agents whose scores are no measure of difficulty."""
_calls = msgspec.json.Decoder(dict[str, tuple[int, int]])
_triples = msgspec.json.Decoder(list[tuple[str, str, int]])
_BINS = 12
_RESPONDENTS = 3
"""A correlation needs so many runs or members."""

_NUMBERS = ("turns", "calls", "tools", "tokens", "seconds", "moved")
_QUERY = """
SELECT task, member, agent, tags, score, turns, steps, tools, prompt + completion, total_s, moved, follows
FROM episode LEFT JOIN timing USING (task, member, attempt) ORDER BY n
"""


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Distribution of some numbers.

    Attributes:
        quantiles: Minimum, quartiles and maximum.
        bins: Counts in intervals of one width, from the minimum to the maximum.
    """

    count: int
    mean: float
    quantiles: tuple[float, float, float, float, float]
    bins: tuple[int, ...]

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Distribution | None:
        """Returns the distribution of the values that are not None; None without any."""
        found = sorted(value for value in values if value is not None)
        if not found:
            return None
        least, most, last = found[0], found[-1], len(found) - 1
        count = min(_BINS, int(most - least) + 1) if all(value == int(value) for value in (least, most)) else _BINS
        edges = [least + (most - least) * n / count for n in range(1, count)]
        bins = (
            Counter(bisect.bisect_right(edges, value) for value in found) if most > least else Counter({0: len(found)})
        )
        quartiles = tuple(found[round(last * n / 4)] for n in range(5))
        return cls(
            count=len(found),
            mean=math.fsum(found) / len(found),
            quantiles=(quartiles[0], quartiles[1], quartiles[2], quartiles[3], quartiles[4]),
            bins=tuple(bins[n] for n in range(max(bins) + 1 if most == least else count)),
        )


class _PlayedTask(msgspec.Struct):
    """Episodes of one task or one value of a tag."""

    scores: list[float] = []
    failed: int = 0
    turns: list[int] = []
    solved_by: set[str] = set()
    scored_by: set[str] = set()

    def row(self) -> dict[str, Any]:
        """Returns counts, and difficulty with its 95 % Wilson interval, in which a score counts as a share of 1."""
        count = len(self.scores)
        lost = math.fsum(1 - min(1.0, max(0.0, score)) for score in self.scores)
        interval = wilson(lost, count) if count else None  # type: ignore[arg-type]  # a share of an episode
        return {
            "episodes": count + self.failed,
            "failed": self.failed,
            "difficulty": lost / count if count else None,
            "interval": interval,
            "turns": math.fsum(self.turns) / len(self.turns) if self.turns else None,
        }


class _ToolCounts:
    """Calls of tools, and which of them follow which."""

    def __init__(self) -> None:
        self._calls, self._errors, self._used = Counter[str](), Counter[str](), Counter[str]()
        self._follows = Counter[tuple[str, str]]()

    def add(self, tools: str, follows: str) -> int:
        """Adds an episode, as the index has it, and returns its number of tools."""
        names = _calls.decode(tools)
        for name, (count, refused) in names.items():
            self._calls[name] += count
            self._errors[name] += refused
            self._used[name] += 1
        for before, name, times in _triples.decode(follows):
            self._follows[before, name] += times
        return len(names)

    def tools(self) -> list[dict[str, Any]]:
        return [
            {"tool": name, "calls": count, "refused": self._errors[name], "episodes": self._used[name]}
            for name, count in self._calls.most_common()
        ]

    def follows(self) -> list[dict[str, Any]]:
        """Returns what follows each tool, the most frequent first; None is the beginning or the end of an episode."""
        totals = Counter[str]()
        for (before, _), times in self._follows.items():
            totals[before] += times
        pairs = sorted(self._follows.items(), key=lambda item: (-totals[item[0][0]], -item[1], item[0]))
        return [
            {"tool": before or None, "next": after or None, "times": times, "share": times / totals[before]}
            for (before, after), times in pairs
        ]


def profile_of_runs(runs: Sequence[Run]) -> dict[str, Any]:
    """Returns the profile of the episodes of some runs, as JSON types.

    Difficulty is 1 - mean score over all agents but the baselines, if there are others.
    """
    numbers: dict[str, list[float | None]] = {name: [] for name in _NUMBERS}
    counted = _ToolCounts()
    tasks, tags = defaultdict[str, _PlayedTask](_PlayedTask), defaultdict[str, _PlayedTask](_PlayedTask)
    answers = defaultdict[tuple[str, str, int], dict[str, float]](dict)
    agents = defaultdict[str, _PlayedTask](_PlayedTask)
    rows = list(_rows(runs))
    measured = {row[3] for row in rows} - {*BASELINES} or {row[3] for row in rows}
    for run, task, member, agent, marks, score, turns, steps, tools, tokens, seconds, moved, after in rows:
        several = counted.add(tools, after)
        for name, value in zip(_NUMBERS, (turns, steps, several, tokens, seconds, moved), strict=True):
            numbers[name].append(value)
        labels = [f"{name}: {value}" for name, value in msgspec.json.decode(marks).items()]
        for place in [tasks[task], agents[agent], *(tags[label] for label in labels)]:
            if score is not None:  # An invalid episode says nothing of its task.
                place.scored_by.add(agent)
                place.solved_by |= {agent} if score >= SOLVED else set()
            if agent not in measured and place is not agents[agent]:
                continue
            place.turns.append(turns)
            if score is None:
                place.failed += 1
            else:
                place.scores.append(score)
        if score is not None and agent in measured:
            answers[run, agent, member][task] = score
    discrimination = _discrimination(answers)
    found: dict[str, Any] = {
        "episodes": len(rows),
        "measured": sorted(measured),
        "agents": {name: one.row() for name, one in sorted(agents.items())},
        "distributions": {name: Distribution.of(values) for name, values in numbers.items()},
        "tools": counted.tools(),
        "follows": counted.follows(),
        "tags": {name: one.row() for name, one in sorted(tags.items())},
        "tasks": {name: one.row() | {"discrimination": discrimination.get(name)} for name, one in tasks.items()},
        "flags": list(_flags(tasks)),
    }
    plain_: dict[str, Any] = msgspec.to_builtins(found)
    return plain_


def _rows(runs: Sequence[Run]) -> Iterator[tuple[Any, ...]]:
    for run in runs:
        run.index.update()
        with run.index.lock:
            found = run.index.database.execute(_QUERY).fetchall()
        for row in found:
            yield run.name, *row


def _flags(tasks: Mapping[str, _PlayedTask]) -> Iterator[dict[str, Any]]:
    kinds = {
        "noop_solves": "an agent that does nothing solves it",
        "random_solves": "random calls solve it",
        "solution_fails": "the task's own solution does not solve it",
        "unsolved": "no agent that played it solves it",
    }
    found: dict[str, list[str]] = {kind: [] for kind in kinds}
    for name, one in sorted(tasks.items()):
        for agent in ("noop", "random"):
            if agent in one.solved_by:
                found[f"{agent}_solves"].append(name)
        if "oracle" in one.scored_by - one.solved_by:
            found["solution_fails"].append(name)
        if one.scored_by - {"noop", "random"} and not one.solved_by:
            found["unsolved"].append(name)
    for kind, names in found.items():
        if names:
            yield {"flag": kind, "means": kinds[kind], "tasks": names}


def _discrimination(answers: Mapping[Any, Mapping[str, float]]) -> dict[str, float]:
    """Returns, by task, the correlation of its score with the mean of the others, over runs and members."""
    found: dict[str, float] = {}
    totals = {who: (math.fsum(given.values()), len(given)) for who, given in answers.items()}
    for task in {task for given in answers.values() for task in given}:
        pairs = [
            (given[task], (totals[who][0] - given[task]) / (totals[who][1] - 1))
            for who, given in answers.items()
            if task in given and totals[who][1] > 1
        ]
        if len(pairs) >= _RESPONDENTS and (value := _correlation(pairs)) is not None:
            found[task] = value
    return found


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    xs, ys = zip(*pairs, strict=True)
    mean_x, mean_y = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    spread = math.sqrt(math.fsum((x - mean_x) ** 2 for x in xs) * math.fsum((y - mean_y) ** 2 for y in ys))
    return math.fsum((x - mean_x) * (y - mean_y) for x, y in pairs) / spread if spread > 1e-12 else None


def profile_of_tasks(env: Environment[Any]) -> dict[str, Any]:
    """Returns the profile of an environment's task set, as JSON types."""
    splits, contents = dict[str, Any](), dict[str, dict[str, list[Task[Any]]]]()
    for split in env.splits:
        everything = env.tasks(split)
        tasks = list(itertools.islice(everything, MOST_TASKS))
        tags = Counter(f"{name}: {value}" for task in tasks for name, value in task.tags.items())
        splits[split] = {
            "tasks": len(everything),
            "read": len(tasks),
            "tags": dict(sorted(tags.items())),
            "prompt": Distribution.of(len(plain(task.prompt)) for task in tasks),
            "solution": Distribution.of(None if task.solution is None else len(task.solution) for task in tasks),
        }
        for task in tasks:
            contents.setdefault(_content(task), {}).setdefault(split, []).append(task)
    shared = list(asyncio.run(_overlaps(contents)))
    found = {"environment": env.name, "tools": len(env.tools), "splits": splits, "overlaps": shared}
    plain_: dict[str, Any] = msgspec.to_builtins(found)
    return plain_


def _content(task: Task[Any]) -> str:
    return codec.digest(codec.dumps((task.prompt, task.truth, task.solution, task.answer, task.roles)))


async def _overlaps(contents: Mapping[str, Mapping[str, Sequence[Task[Any]]]]) -> list[dict[str, Any]]:
    """Returns the tasks of two splits that are equal in all but their ids, the start state included."""
    found = defaultdict[tuple[str, str], list[tuple[str, str]]](list)
    for by_split in contents.values():
        for one, other in itertools.combinations(by_split, 2):
            for a, b in itertools.product(by_split[one], by_split[other]):
                if await _digest(a) == await _digest(b):
                    found[one, other].append((a.id, b.id))
    return [{"splits": splits, "tasks": pairs} for splits, pairs in found.items()]


async def _digest(task: Task[Any]) -> str:
    return await msgspec.structs.replace(task, id="", tags={}).digest(task.world())
