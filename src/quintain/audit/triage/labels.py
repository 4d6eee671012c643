"""Labels of an episode: the owner of a fault, its visibility, and the consequence for training.

The owner must fix the fault; the visibility says whether the record alone shows it. The first proven label wins, else
the first likely one; a hint decides nothing but is shown to reviewers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

Owner = Literal["policy", "env", "verifier", "task", "simulator", "infra", "trainer", "unknown"]
OWNERS: tuple[Owner, ...] = ("policy", "env", "verifier", "task", "simulator", "infra", "trainer", "unknown")

Visibility = Literal["loud", "silent"]
""""loud": the record itself shows the fault; "silent": only a probe, a replay or a comparison does."""

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
"""The thirteen classes of bugs. A fault of the infrastructure or the trainer may belong to none."""


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one rule for one episode.

    Attributes:
        rule: Number of the rule, 1 to 11.
        owner: Party that must fix the fault.
        classes: Some of `CLASSES`.
        why: One sentence.
        turn, step: First decisive event; None for the episode as a whole, or the whole turn.
    """

    rule: int
    owner: Owner
    classes: tuple[str, ...] = ()
    visibility: Visibility = "silent"
    confidence: Confidence = "proven"
    why: str
    turn: int | None = None
    step: int | None = None


class LabeledEpisode(msgspec.Struct, kw_only=True):
    """One episode with all its labels.

    Attributes:
        place, index, task, member, attempt: Identity of the episode.
        reward: ReplayModel reward, or None.
        label: The label that wins.
        labels: All labels in the order of the rules, the winner included.
        not_checked: Reasons by number of the rules that could not be applied.
        verdict: Recommendation to the trainer.
        provoked: The agent can probably cause the failure, so excluding it would pay.
        score_as: "recorded", "none" (never 0, because a verdict is missing) or "model_failure" (it was provoked).
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
        """True if the winning label blames a party other than the policy."""
        return self.label.owner != "policy"

    @property
    def score_as(self) -> Literal["recorded", "none", "model_failure"]:
        if self.provoked:
            return "model_failure"
        return "none" if self.failed else "recorded"

    def row(self) -> dict[str, object]:
        """Returns one line for a trainer: plain data with the same keys for every episode."""
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
    """Returns the first proven label, else the first likely one; None if there are only hints."""
    found = list(labels)
    for confidence in ("proven", "likely"):
        for label in found:
            if label.confidence == confidence:
                return label
    return None
