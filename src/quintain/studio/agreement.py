"""Agreement of reviewers: Cohen's kappa, Krippendorff's alpha, and each reviewer against the labels of programs.

The unit is an episode that several people judged without seeing each other's verdicts. Intervals come from a bootstrap
over tasks, because episodes of one task resemble each other.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from quintain.record import Key

from .folders import Run
from .reviews import Review, current
from .taxonomy import Taxonomy

FEW = 30
"""Below so many shared episodes an interval is too wide for a conclusion."""
DRAWS = 2000
_SIDE = 0.025
"""Probability on each side of a 95 % interval."""

Table = Mapping[tuple[str, str], float]
"""Counts of pairs of labels."""


class Estimate(msgspec.Struct, frozen=True):
    """Value with its 95 % interval; None where it is undefined, as kappa is if all labels are one."""

    value: float | None
    low: float | None
    high: float | None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Agreement on one question.

    Attributes:
        statistic: "kappa" for two reviewers, "alpha" for more.
        agreed: Share of pairs of verdicts that are equal.
        labels: Number of times that each label was given.
        confusion: Counts of (first reviewer's label, second reviewer's label); empty for more than two reviewers.
    """

    statistic: str
    estimate: Estimate
    agreed: float | None
    labels: dict[str, int]
    confusion: tuple[tuple[str, str, int], ...]


def cohen_kappa(table: Table) -> float | None:
    """Returns Cohen's kappa (1960) of two reviewers; None for an empty table, or if chance alone gives agreement."""
    total = sum(table.values())
    rows, columns = defaultdict[str, float](float), defaultdict[str, float](float)
    for (a, b), count in table.items():
        rows[a] += count
        columns[b] += count
    if not total:
        return None
    expected = sum(count * columns[label] for label, count in rows.items()) / total**2
    observed = sum(count for (a, b), count in table.items() if a == b) / total
    return (observed - expected) / (1 - expected) if expected < 1 else None


def coincidences(labels: Sequence[str]) -> dict[tuple[str, str], float]:
    """Returns what one unit adds to the table of coincidences; a unit with fewer than two labels adds nothing."""
    found = defaultdict[tuple[str, str], float](float)
    for pair in itertools.permutations(labels, 2):
        found[pair] += 1 / (len(labels) - 1)
    return found


def krippendorff_alpha(table: Table) -> float | None:
    """Returns Krippendorff's alpha for nominal data, from a table of coincidences; None if all labels are one."""
    sums = defaultdict[str, float](float)
    for (a, _), count in table.items():
        sums[a] += count
    total = sum(sums.values())
    expected = total**2 - sum(one**2 for one in sums.values())
    if not total or expected <= 1e-9:
        return None
    differing = sum(count for (a, b), count in table.items() if a != b)
    return 1 - (total - 1) * differing / expected


Statistic = Callable[[Table], float | None]


def bootstrap(clusters: Sequence[Table], statistic: Statistic, *, seed: int = 0) -> Estimate:
    """Returns a statistic of the sum of some tables, with the interval of `DRAWS` draws of clusters."""
    rng = random.Random(seed)  # noqa: S311  # it draws a sample, not a secret
    found = list[float]()
    for _ in range(DRAWS if len(clusters) > 1 else 0):
        value = statistic(_sum(rng.choices(clusters, k=len(clusters))))
        if value is not None:
            found.append(value)
    found.sort()
    ends = (found[int(_SIDE * len(found))], found[math.ceil((1 - _SIDE) * len(found)) - 1]) if found else (None, None)
    return Estimate(statistic(_sum(clusters)), *ends)


def _sum(tables: Iterable[Table]) -> dict[tuple[str, str], float]:
    total = defaultdict[tuple[str, str], float](float)
    for table in tables:
        for pair, count in table.items():
            total[pair] += count
    return total


def clopper_pearson(hits: int, count: int) -> tuple[float, float]:
    """Returns the exact 95 % bounds of a share (Clopper and Pearson 1934)."""

    def tail(p: float, least: int) -> float:
        """Returns the probability of `least` or more hits."""
        return math.fsum(math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(least, count + 1))

    def solve(grows: Callable[[float], float], goal: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if grows(middle) < goal else (low, middle)
        return low

    low = solve(lambda p: tail(p, hits), _SIDE) if hits else 0.0
    return low, solve(lambda p: tail(p, hits + 1), 1 - _SIDE) if hits < count else 1.0


def agreement(
    reviews: Iterable[Review], taxonomy: Taxonomy, programs: Mapping[Key, str], *, of: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns how far reviewers agree, as JSON types.

    Args:
        reviews: Reviews that count and whose episode is the one that was reviewed.
        taxonomy: Merged modes count as the mode that they were merged into.
        programs: Owner that programs name, by episode.
        of: Reviewers; empty for all that judged blindly.
    """
    given = [one for one in reviews if not of or one.reviewer in of]
    read = [one for one in given if one.kind == "verdict" and one.owner is not None]
    blind = [one for one in read if "reviewers" in one.blind]
    names, shared = list(of) or sorted({one.reviewer for one in blind}), _shared(blind)
    decided = {one.target.key for one in reviews if one.kind == "decided"}
    owners = {key: {name: one.owner or "" for name, one in judged.items()} for key, judged in shared.items()}
    modes = {key: {name: _mode(one, taxonomy) for name, one in judged.items()} for key, judged in shared.items()}
    said: dict[str, Any] = {
        "of": names,
        "episodes": len(shared),
        "few": len(shared) < FEW,
        "not_blind": len(read) - len(blind),
        "first": _first(shared.values()),
        "disagreements": [
            {"key": key, "decided": key in decided, "ids": [one.id for one in shared[key].values()], "owners": found}
            for key, found in owners.items()
            if len(set(found.values())) > 1
        ],
        "programs": {name: _against(blind, programs, name) for name in names} if programs else {},
    }
    questions = {"owner": _question(owners, names), "mode": _question(modes, names)}
    plain: dict[str, Any] = msgspec.to_builtins(said | questions)
    return plain


def _shared(blind: Iterable[Review]) -> dict[Key, dict[str, Review]]:
    """Returns the verdicts by reviewer on each episode that several judged."""
    units: dict[Key, dict[str, Review]] = {}
    for one in blind:
        units.setdefault(one.target.key, {})[one.reviewer] = one
    return {key: judged for key, judged in sorted(units.items()) if len(judged) > 1}


def labels_of_run(run: Run) -> dict[str, Any]:
    """Returns the number of episodes that people labelled, and kappa of two blind reviewers on the owner."""
    found = [one for one in _valid(run)[0] if one.owner is not None]
    blind = [one for one in found if one.kind == "verdict" and "reviewers" in one.blind]
    names = sorted({one.reviewer for one in blind})
    pairs = Counter(tuple(judged[name].owner or "" for name in names) for judged in _shared(blind).values())
    kappa = cohen_kappa({(a, b): count for (a, b), count in pairs.items()}) if len(names) == 2 else None
    return {"labels": len({one.target.key for one in found}), "kappa": kappa}


def _valid(run: Run) -> tuple[list[Review], dict[Key, tuple[int, str]], int]:
    """Returns the counting reviews of episodes that the run has, its rows, and the number of others."""
    counting = current(run.reviews.all()[0])
    rows = run.rows({one.target.task for one in counting})
    valid = [one for one in counting if rows.get(one.target.key, (0, ""))[1] == one.target.digest]
    return valid, rows, len(counting) - len(valid)


def of_run(run: Run, taxonomy: Taxonomy, *, of: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the agreement on a run's episodes, each with its row, and the number of reviews that are stale."""
    run.index.update()
    valid, rows, stale = _valid(run)
    found = agreement(valid, taxonomy, run.labels.owners(), of=of)
    for one in found["disagreements"]:
        one["n"] = rows[tuple(one["key"])][0]
    return found | {"stale": stale}


def _mode(review: Review, taxonomy: Taxonomy) -> str:
    return (taxonomy.resolve(review.modes[0]) or "") if review.modes else f"{review.owner}, no mode"


def _question(units: Mapping[Key, Mapping[str, str]], names: Sequence[str]) -> Question:
    is_pair = len(names) == 2
    clusters: dict[str, list[Table]] = {}
    for (task, _, _), labels in units.items():
        pair = {(labels[names[0]], labels[names[1]]): 1.0} if is_pair else coincidences([*labels.values()])
        clusters.setdefault(task, []).append(pair)
    tables = [_sum(found) for found in clusters.values()]
    whole = _sum(tables)
    total = sum(whole.values())
    return Question(
        statistic="kappa" if is_pair else "alpha",
        estimate=bootstrap(tables, cohen_kappa if is_pair else krippendorff_alpha),
        agreed=sum(count for (a, b), count in whole.items() if a == b) / total if total else None,
        labels=dict(Counter(label for labels in units.values() for label in labels.values()).most_common()),
        confusion=tuple((a, b, round(count)) for (a, b), count in sorted(whole.items())) if is_pair else (),
    )


def _first(shared: Iterable[Mapping[str, Review]]) -> dict[str, int]:
    """Returns in how many pairs of verdicts the first wrong turn was marked twice, is equal, or within one turn."""
    apart = [
        abs(a.first.turn - b.first.turn)
        for judged in shared
        for a, b in itertools.combinations(judged.values(), 2)
        if a.first is not None and b.first is not None
    ]
    return {"both": len(apart), "equal": apart.count(0), "within_one": sum(one <= 1 for one in apart)}


def _against(reviews: Iterable[Review], programs: Mapping[Key, str], name: str) -> dict[str, Any]:
    """Returns precision and recall of programs in naming another party than the policy, if this reviewer is right."""
    pairs = [
        (programs[one.target.key] != "policy", one.owner != "policy")
        for one in reviews
        if one.reviewer == name and one.target.key in programs
    ]
    both = sum(a and b for a, b in pairs)
    counts = {"precision": sum(a for a, _ in pairs), "recall": sum(b for _, b in pairs)}
    shares = {what: [both / count, *clopper_pearson(both, count)] if count else None for what, count in counts.items()}
    return {"episodes": len(pairs)} | shares
