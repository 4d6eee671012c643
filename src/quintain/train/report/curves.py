"""Report of several runs: curves of all numbers, intervals over the runs, bounds for invalid episodes, warnings."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev

import msgspec

from quintain.gate import wilson

from .counts import Counts, EpisodeSums, added
from .log import Update

_HALVINGS = 60
"""Bisections of an angle; the remainder is below the precision of a float."""


class Curve(msgspec.Struct):
    """Number over the steps.

    Attributes:
        steps: Numbers of the updates.
        runs: By run, one value per step; None where the run has none.
        mean: Mean over the runs.
        low, high: Its 95 % t interval over the runs; None where fewer than two have a value.
    """

    steps: list[int]
    runs: list[list[float | None]]
    mean: list[float]
    low: list[float | None]
    high: list[float | None]


class Rate(msgspec.Struct):
    """Share of invalid episodes, with its 95 % Wilson interval."""

    failed: int
    episodes: int
    rate: float | None
    low: float
    high: float

    @classmethod
    def of(cls, failed: int, episodes: int) -> Rate:
        """Returns the rate of two numbers of episodes."""
        return cls(failed, episodes, failed / episodes if episodes else None, *wilson(failed, episodes))


class Improvement(msgspec.Struct):
    """Mean score in the last tenth of the updates less that in the first tenth.

    Attributes:
        first, last: Means over the runs.
        difference: Last less first.
        interval: 95 % t interval of the difference over the runs; None below two runs.
        hidden: Width of the wider identification interval of both tenths.
    """

    first: float
    last: float
    difference: float
    interval: tuple[float, float] | None
    hidden: float


class TrainingReport(msgspec.Struct, kw_only=True):
    """Report of several runs.

    Attributes:
        runs: By name of the run: seed, number of updates, last step and seconds.
        curves: By name, such as "score/mean".
        counts: Sums over all updates of all runs.
        mean: Mean score of all valid episodes.
        bounds: Identification interval: the mean with each invalid episode at the lowest and at the highest score.
        invalid, invalid_short, invalid_long: Rates of all episodes, and of the shorter and longer half by turns.
        improvement: None without two updates in each run.
        weights: Tasks by tenths of the sampler's weight, at the last update of the runs that have one.
        warnings: Sentences for the reader.
    """

    runs: dict[str, dict[str, float]]
    curves: dict[str, Curve]
    counts: Counts
    mean: float | None
    bounds: tuple[float, float] | None
    invalid: Rate
    invalid_short: Rate
    invalid_long: Rate
    improvement: Improvement | None
    weights: list[int]
    warnings: list[str] = []

    def family(self, prefix: str) -> dict[str, Curve]:
        """Returns the curves whose names begin with the prefix, by the rest of their names."""
        return {name.removeprefix(prefix): curve for name, curve in self.curves.items() if name.startswith(prefix)}


def t_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Returns the 95 % interval of Student's t for the mean of independent values; None below two."""
    if len(values) < 2:
        return None
    half = t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


@functools.cache
def t_quantile(degrees: int) -> float:
    """Returns the t that |T| stays below with probability 0.95, for whole degrees of freedom.

    By bisection of the finite series for P(|T| < t) (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4).
    """
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        angle = (low + high) / 2
        odd, cosine = degrees % 2, math.cos(angle)
        term = total = 0.0 if degrees == 1 else cosine if odd else 1.0
        for place in range(1 + odd, degrees - 1, 2):
            term *= place / (place + 1) * cosine * cosine
            total += term
        inside = math.sin(angle) * total
        if (2 / math.pi * (angle + inside) if odd else inside) < 0.95:
            low = angle
        else:
            high = angle
    return math.sqrt(degrees) * math.tan(low)


def scalars(update: Update) -> dict[str, float]:
    """Returns the numbers of an update by name, such as "score/mean", "invalid/S", "lag/max" and "metrics/loss"."""
    counts, whole = update.counts, update.counts.whole
    trained, groups = counts.parts.get("trained", EpisodeSums()), whole.groups
    bounds = whole.bounds(update.scores) or (None, None)
    found: dict[str, float | None] = {"score/mean": whole.mean, "bounds/lowest": bounds[0], "bounds/highest": bounds[1]}
    found |= {"score/trained": trained.mean, "score/solved": whole.solved / whole.scored if whole.scored else None}
    if whole.episodes:
        found["invalid/all"] = 1 - whole.scored / whole.episodes
        found |= {f"invalid/{part}": sum(kinds.values()) / whole.episodes for part, kinds in counts.failures.items()}
        found["episode/turns"], found["episode/tokens"] = whole.turns / whole.episodes, whole.tokens / whole.episodes
        found["episode/breaks"] = whole.breaks / whole.episodes
    if groups:
        parts = {name: counts.parts.get(name, EpisodeSums()) for name in ("dropped", "stale")}
        found |= {f"groups/{name}": part.groups / groups for name, part in parts.items()}
        found["groups/mixed"] = counts.mixed / groups
    if tokens := sum(counts.lags.values()):
        mean = sum(lag * number for lag, number in counts.lags.items()) / tokens
        found |= {"lag/min": min(counts.lags), "lag/mean": mean, "lag/max": max(counts.lags)}
    found |= {f"level/{name}": part.mean for name, part in counts.levels.items()}
    for level, names in counts.rewards.items():
        found |= {f"reward/{level}/{name}": sums.total / sums.count for name, sums in names.items()}
    if update.sampler is not None:
        found |= {"sampler/unsolved": update.sampler.unsolved, "sampler/stage": update.sampler.stage}
    found |= {f"seconds/{name}": value for name, value in counts.seconds.items()} | {"seconds/wall": update.wall_s}
    found |= {f"metrics/{name}": value for name, value in update.metrics.items()}
    return {name: float(value) for name, value in found.items() if value is not None}


def report(runs: Mapping[str, Sequence[Update]], *, most: int | None = None) -> TrainingReport:
    """Returns the report of runs.

    Args:
        runs: Updates by name of the run.
        most: Most points of a curve: neighbouring steps are averaged; by default every step is a point.
    """
    every = [update for run in runs.values() for update in run]
    counts: Counts = added(Counts(), *(update.counts for update in every))
    scores, whole = _scores(every), counts.whole
    short, long = (Rate.of(failed, episodes) for failed, episodes in _halves(counts))
    last = [run[-1].sampler for run in runs.values() if run]
    made = TrainingReport(
        runs={name: _facts(run) for name, run in runs.items()},
        curves=_curves(list(runs.values()), most),
        counts=counts,
        mean=whole.mean,
        bounds=whole.bounds(scores),
        invalid=Rate.of(whole.episodes - whole.scored, whole.episodes),
        invalid_short=short,
        invalid_long=long,
        improvement=_improvement(list(runs.values()), scores),
        weights=[sum(tenth) for tenth in zip(*(one.weights for one in last if one and one.weights), strict=True)],
    )
    made.warnings = list(_warnings(made))
    return made


def _facts(run: Sequence[Update]) -> dict[str, float]:
    if not run:
        return {"updates": 0}
    return {"seed": run[0].seed, "updates": len(run), "step": run[-1].step, "seconds": sum(one.wall_s for one in run)}


def _scores(updates: Sequence[Update]) -> tuple[float, float]:
    return min((one.scores[0] for one in updates), default=0.0), max((one.scores[1] for one in updates), default=1.0)


def _curves(runs: Sequence[Sequence[Update]], most: int | None) -> dict[str, Curve]:
    steps = sorted({update.step for run in runs for update in run})
    size = 1 if most is None else max(1, -(-len(steps) // most))
    bucket = {step: steps[min(len(steps) - 1, place // size * size + size - 1)] for place, step in enumerate(steps)}
    values: dict[str, dict[int, list[list[float]]]] = {}
    components = {f"invalid/{part}": 0.0 for run in runs for update in run for part in update.counts.failures}
    for place, run in enumerate(runs):
        for update in run:
            found = scalars(update)
            for name, value in ((components if "invalid/all" in found else {}) | found).items():
                points = values.setdefault(name, {})
                points.setdefault(bucket[update.step], [[] for _ in runs])[place].append(value)
    return {name: _curve(dict(sorted(values[name].items()))) for name in sorted(values)}


def _curve(points: Mapping[int, list[list[float]]]) -> Curve:
    means = [[fmean(values) if values else None for values in point] for point in points.values()]
    there = [[value for value in point if value is not None] for point in means]
    bands = [t_interval(values) or (None, None) for values in there]
    return Curve(
        steps=list(points),
        runs=[list(run) for run in zip(*means, strict=True)],
        mean=[fmean(values) for values in there],
        low=[low for low, _ in bands],
        high=[high for _, high in bands],
    )


def _halves(counts: Counts) -> list[tuple[int, int]]:
    """Returns failed and all episodes of the shorter and of the longer half, as `quintain.report` halves them."""
    half, seen = sum(counts.lengths.values()) / 2, 0
    halves = [[0, 0], [0, 0]]
    for length, episodes in sorted(counts.lengths.items()):
        side = halves[seen >= half]
        side[0] += counts.failed_lengths.get(length, 0)
        side[1] += episodes
        seen += episodes
    return [(failed, episodes) for failed, episodes in halves]


def _improvement(runs: Sequence[Sequence[Update]], scores: tuple[float, float]) -> Improvement | None:
    ends = [(run[: (len(run) + 9) // 10], run[len(run) - (len(run) + 9) // 10 :]) for run in runs if len(run) > 1]
    sums: list[list[EpisodeSums]] = [
        [added(EpisodeSums(), *(update.counts.whole for update in tenth)) for tenth in end] for end in ends
    ]
    means = [(first.mean, last.mean) for first, last in sums]
    there = [(first, last) for first, last in means if first is not None and last is not None]
    if not there or len(there) < len(runs):
        return None
    differences = [last - first for first, last in there]
    bounds = [added(*tenth).bounds(scores) or scores for tenth in zip(*sums, strict=True)]
    return Improvement(
        first=fmean(first for first, _ in there),
        last=fmean(last for _, last in there),
        difference=fmean(differences),
        interval=t_interval(differences),
        hidden=max(high - low for low, high in bounds),
    )


def _warnings(made: TrainingReport) -> Iterator[str]:
    improvement, short, long = made.improvement, made.invalid_short, made.invalid_long
    if improvement is not None and improvement.hidden > abs(improvement.difference):
        yield (
            f"the score changed by {improvement.difference:+.3f}, less than what invalid episodes leave open "
            f"({improvement.hidden:.3f}): repair the failures before claiming it"
        )
    if improvement is not None and improvement.interval is not None:
        low, high = improvement.interval
        if low <= 0 <= high:
            yield f"the change of the score may be 0: its interval over the runs is {low:+.3f} to {high:+.3f}"
    if long.low > short.high or short.low > long.high:
        which = "long" if long.low > short.high else "short"
        yield (
            f"{which} episodes fail more often: {long.rate or 0:.1%} of the longer half, {short.rate or 0:.1%} of the "
            "shorter half; the valid episodes are a biased sample"
        )
    seeds = Counter(int(facts["seed"]) for facts in made.runs.values() if "seed" in facts)
    for seed, number in seeds.items():
        if number > 1:
            yield f"{number} runs have seed {seed}, so intervals over runs treat repetitions as independent"
