"""Reading order for reviewers: the most informative episodes, and a random control sample.

An episode is informative if two facts contradict each other (a reward and a world, a verdict and its repetition), if a
decision about it is not proven, or if it moves the policy most. The control sample shows the rate of faults that the
rules miss.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence

import msgspec

from quintain.state import Rng

from .case import Case
from .labels import LabeledEpisode
from .siblings import error_key

CONTROL = 0.01
"""Share of the episodes in the control sample; at least one episode."""
_RARE = 1


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """Episode to read.

    Attributes:
        weight: Expected information; only the order matters.
        control: The episode is part of the control sample.
    """

    place: str
    index: int
    task: str
    weight: float
    reasons: tuple[str, ...]
    control: bool = False


def queue(cases: Sequence[Case], judged: Sequence[LabeledEpisode], *, seed: int, length: int) -> list[Entry]:
    """Returns the first `length` entries by weight, then the control sample."""
    advantage = _advantages(cases)
    entries: list[Entry] = []
    for n, (case, one) in enumerate(zip(cases, judged, strict=True)):
        found = list(_reasons(case, one))
        if advantage[n] > 0:
            found.append((2 * advantage[n], "it moves the policy more than most"))
        if found:
            found.sort(key=lambda reason: -reason[0])
            weight, words = sum(weight for weight, _ in found), tuple(words for _, words in found)
            entries.append(Entry(place=one.place, index=n, task=one.task, weight=weight, reasons=words))
    entries.sort(key=lambda entry: (-entry.weight, entry.index))
    first = entries[:length]
    return [*first, *_control(judged, seed=seed, without={entry.index for entry in first})]


def _reasons(case: Case, one: LabeledEpisode) -> Iterator[tuple[float, str]]:
    played, run = case.played, case.run
    if played.solved and not case.evidence.missing and not case.evidence.moved:
        yield 5.0, "the whole reward, and the world did not change"
    elif played.solved and case.known_tools and all(call.is_error for call in played.calls):
        yield 3.0, "the whole reward, without a call that was carried out"
    if not played.solved and played.digests and played.digests[-1] in run.wins[played.task]:
        yield 5.0, "no reward for a world that earned the whole reward elsewhere"
    if any(label.rule == 4 for label in one.labels):
        yield 4.0, "graded again it gets another reward"
    if one.owner == "unknown":
        yield 4.0, "the owner of the fault is unknown"
    if one.provoked:
        yield 3.0, "the agent may have provoked the failure"
    if one.failed and one.label.confidence != "proven":
        yield 3.0, f"left out without a proof: {one.label.why}"
    hints = [label for label in one.labels if label.confidence == "hint" and label.owner != "policy"]
    if hints and not one.failed:
        yield 1.5 + 0.1 * len(hints), f"a hint: {hints[0].why}"
    news = [call for call in played.calls if call.is_error and run.errors[error_key(call)] <= _RARE]
    if news:
        yield 1.0, f"an error that no other episode saw: {news[0].observation[:80]}"


def _advantages(cases: Sequence[Case]) -> list[float]:
    """Returns |reward - mean of its group| as a share of the largest; 0 for a group of one."""
    found = [0.0] * len(cases)
    for members in cases[0].run.groups.values() if cases else ():
        rewards = {n: cases[n].played.reward for n in members}
        scored = {n: reward for n, reward in rewards.items() if reward is not None and math.isfinite(reward)}
        mean = math.fsum(scored.values()) / len(scored) if scored else 0.0
        for n, reward in scored.items():
            found[n] = abs(reward - mean)
    largest = max(found, default=0.0)
    return [value / largest if largest else 0.0 for value in found]


def _control(judged: Sequence[LabeledEpisode], *, seed: int, without: set[int]) -> list[Entry]:
    rng = Rng(key=hashlib.blake2b(f"control/{seed}".encode(), digest_size=16).digest())
    left = [one for one in judged if one.index not in without]
    drawn = rng.sample(left, min(len(left), math.ceil(CONTROL * len(judged))))
    reasons = ("drawn blindly",)
    return [
        Entry(place=one.place, index=one.index, task=one.task, weight=0.0, reasons=reasons, control=True)
        for one in sorted(drawn, key=lambda one: one.index)
    ]
