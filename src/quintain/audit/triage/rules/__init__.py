"""The eleven rules in order. The first proven label wins; all labels are kept.

Rules 1 and 2 read the record alone; 3, 4 and 6 use the environment; 5, 7, 8, 9 and 10 compare. Episodes that no rule
claims are the policy's (11).
"""

from __future__ import annotations

from quintain.audit.triage.case import Case, Rule
from quintain.audit.triage.labels import Confidence, Label

from .r01_boundary import boundary
from .r02_reward import reward
from .r03_replay import replay
from .r04_regrade import regrade
from .r05_shadow import shadow
from .r06_task import task
from .r07_exploit import exploit
from .r08_simulator import simulator
from .r09_action import action
from .r10_trainer import trainer

RULES: tuple[Rule, ...] = (boundary, reward, replay, regrade, shadow, task, exploit, simulator, action, trainer)
"""Rules in order: rule n is at index n - 1."""

NAMES = (
    "boundary",
    "reward",
    "replay",
    "regrade",
    "shadow",
    "task",
    "exploit",
    "simulator",
    "action",
    "trainer",
    "policy",
)


def policy(case: Case, not_checked: dict[int, str]) -> Label:
    """Returns the label of rule 11: the policy's, with a confidence that depends on the rules that were applied."""
    one = case.played
    refused = next((call for call in one.calls if call.is_error and call.fault is None), None)
    last = one.said[-1].turn if one.said else None
    sure: Confidence = "hint" if {3, 4} & not_checked.keys() else "likely"
    solved = "earned its reward" if one.solved else "did not earn the whole reward"
    why = f"nothing speaks against the world, so the policy {solved}"
    turn, step = (refused.turn, refused.step) if refused is not None and not one.solved else (last, None)
    return Label(rule=11, owner="policy", visibility="loud", confidence=sure, why=why, turn=turn, step=step)
