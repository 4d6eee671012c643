"""The two axes on which an episode is filed, and what follows for training.

Who must fix it (the owner), and whether anybody could have seen it without looking (the visibility). The first label
that is proven wins; where none is, the first that is likely; a hint decides nothing, but a reviewer sees it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

Owner = Literal["policy", "env", "verifier", "task", "simulator", "infra", "trainer", "unknown"]
OWNERS: tuple[Owner, ...] = ("policy", "env", "verifier", "task", "simulator", "infra", "trainer", "unknown")

Visibility = Literal["loud", "silent"]
"""Loud: the record itself says that something broke. Silent: only a probe, a replay or a comparison shows it."""

Confidence = Literal["proven", "likely", "hint"]

Decision = Literal["train", "exclude", "exclude_group"]

CLASSES = (
    "stale_cache",
    "reward_hack",
    "false_resolution",
    "silent_default",
    "reset_leak",
    "reward_clipping",
    "data_realism",
    "action_drift",
    "races",
    "judge",
    "leak",
    "unsolvable",
    "flaky_verifier",
)
"""The thirteen ways of being wrong. A fault of the infrastructure or the trainer may belong to none."""


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule says about one episode.

    Attributes:
        rule: Its number, 1 to 11.
        owner: Who must fix it.
        classes: Of `CLASSES`.
        why: One sentence.
        turn, step: The first event that decided it; None where that is the episode as a whole, or the whole turn.
    """

    rule: int
    owner: Owner
    classes: tuple[str, ...] = ()
    visibility: Visibility = "silent"
    confidence: Confidence = "proven"
    why: str
    turn: int | None = None
    step: int | None = None


class Judged(msgspec.Struct, kw_only=True):
    """One episode with everything that is known against it.

    Attributes:
        place, index, task, member, attempt: Which episode.
        reward: As recorded; None where there is none.
        label: The one that wins.
        labels: All of them, in the order of the rules; the winner is among them.
        not_checked: Numbers of rules to why they could not be applied.
        verdict: What a trainer should do with it.
        provoked: Whether the failure looks like one that the agent can bring about, so that leaving it out would pay.
        score_as: "recorded", "none" (never 0: there is no verdict) or "model_failure" (it was provoked).
    """

    place: str
    index: int
    task: str
    group: str
    member: int
    attempt: int
    reward: float | None
    label: Label
    labels: list[Label]
    not_checked: dict[int, str] = {}
    verdict: Decision = "train"
    provoked: bool = False

    @property
    def owner(self) -> Owner:
        return self.label.owner

    @property
    def failed(self) -> bool:
        """Whether somebody other than the policy is to blame."""
        return self.label.owner != "policy"

    @property
    def score_as(self) -> Literal["recorded", "none", "model_failure"]:
        if self.provoked:
            return "model_failure"
        return "none" if self.failed else "recorded"

    def row(self) -> dict[str, object]:
        """One line for a trainer; plain data, with the same keys for every episode."""
        one = self.label
        return {
            "place": self.place,
            "index": self.index,
            "task": self.task,
            "member": self.member,
            "attempt": self.attempt,
            "reward": self.reward,
            "owner": one.owner,
            "classes": list(one.classes),
            "visibility": one.visibility,
            "rule": one.rule,
            "confidence": one.confidence,
            "why": one.why,
            "event": {"turn": one.turn, "step": one.step},
            "verdict": self.verdict,
            "score_as": self.score_as,
            "provoked": self.provoked,
            "labels": [msgspec.to_builtins(label) for label in self.labels],
            "not_checked": {str(rule): reason for rule, reason in self.not_checked.items()},
        }


def winner(labels: Iterable[Label]) -> Label | None:
    """The first label that is proven, else the first that is likely; None when there are only hints."""
    found = list(labels)
    for confidence in ("proven", "likely"):
        for label in found:
            if label.confidence == confidence:
                return label
    return None
