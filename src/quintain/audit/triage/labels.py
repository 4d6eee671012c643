"""Labels of an episode: the owner of a fault, its visibility, and the consequence for training.

The owner must fix the fault; the visibility says whether the record alone shows it. The first proven label wins, else
the first likely one; a hint decides nothing but is shown to reviewers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

from quintain.audit.kernel import finding
from quintain.audit.kernel.finding import Confidence

Owner = Literal["policy", "env", "verifier", "task", "simulator", "infra", "trainer", "unknown"]
OWNERS: tuple[Owner, ...] = get_args(Owner)

Visibility = Literal["loud", "silent"]
""""loud": the record itself shows the fault; "silent": only a probe, a replay or a comparison does."""

Decision = Literal["train", "exclude", "exclude_group"]

CLASSES = tuple(finding.CLASSES)
"""The thirteen classes of bugs. A fault of the infrastructure or the trainer may belong to none."""


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one rule for one episode: the party that must fix the fault, and one sentence.

    `turn` and `step` name the first decisive event; None for the episode as a whole, or the whole turn.
    """

    rule: int = 11
    owner: Owner
    classes: tuple[str, ...] = ()
    visibility: Visibility = "silent"
    confidence: Confidence = "proven"
    why: str
    turn: int | None = None
    step: int | None = None


class LabeledEpisode(msgspec.Struct, kw_only=True):
    """One episode with all its labels in the order of the rules, and the one that wins."""

    place: str
    index: int
    task: str
    group: str
    member: int
    attempt: int
    reward: float | None
    label: Label
    labels: list[Label]
    not_checked: dict[int, str] = {}  # reasons by number of the rules that could not be applied
    verdict: Decision = "train"  # recommendation to the trainer
    provoked: bool = False  # the agent can probably cause the failure, so excluding it would pay

    @property
    def owner(self) -> Owner:
        return self.label.owner

    @property
    def failed(self) -> bool:
        return self.label.owner != "policy"

    @property
    def score_as(self) -> Literal["recorded", "none", "model_failure"]:
        return "model_failure" if self.provoked else "none" if self.failed else "recorded"

    def row(self) -> dict[str, object]:
        """Returns one line for a trainer: plain data with the same keys for every episode."""
        own, said = ("place", "index", "task", "member", "attempt", "reward"), self.label
        named = ("owner", "classes", "visibility", "rule", "confidence", "why")
        found: dict[str, object] = msgspec.to_builtins(
            {name: getattr(self, name) for name in own}
            | {name: getattr(said, name) for name in named}
            | {"event": {"turn": said.turn, "step": said.step}}
            | {name: getattr(self, name) for name in ("verdict", "score_as", "provoked", "labels", "not_checked")},
            str_keys=True,
        )
        return found


def winner(labels: Iterable[Label]) -> Label | None:
    """Returns the first proven label, else the first likely one; None if there are only hints."""
    found = sorted(labels, key=lambda label: label.confidence != "proven")
    return next((label for label in found if label.confidence != "hint"), None)
