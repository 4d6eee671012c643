"""Case: all data that a rule may read about one episode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from quintain.task import Task

from .baselines import Baselines
from .episode_log import EpisodeLog
from .evidence import ReplayEvidence
from .labels import Label
from .siblings import Run


class AuditFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Finding of an audit report, reduced to the fields that triage reads."""

    check: str = ""
    class_: str = msgspec.field(default="", name="class")
    part: str = ""
    severity: str = ""
    confidence: str = ""
    tasks: tuple[str, ...] = ()


class AuditReport(msgspec.Struct):
    """Audit report, reduced to its findings."""

    findings: list[AuditFinding]


class Case(NamedTuple):
    """One episode and its context.

    Attributes:
        evidence: Result of replaying and regrading the episode.
        baselines: Scores of the task's own solution and of doing nothing.
        findings: Findings of an audit report about this task; None without a report.
        known_tools: Schemas of the advertised tools; None if unknown.
        solvable: An episode earned the whole reward of this task, and nothing contradicts that reward.
        solutions: Share of the probed tasks whose own solution earns the whole reward; 0 without probes.
        freebies: Share of the probed tasks that pay the whole reward for nothing; 0 without probes.
    """

    played: EpisodeLog
    run: Run
    evidence: ReplayEvidence
    baselines: Baselines
    findings: tuple[AuditFinding, ...] | None = None
    known_tools: dict[str, dict[str, Any]] | None = None
    task: Task[Any] | None = None
    solvable: bool = False
    solutions: float = 0.0
    freebies: float = 0.0

    @property
    def lenient(self) -> bool:
        """True if the configuration converts arguments, so that the schema is not binding."""
        trace = self.played.trace
        return trace is not None and trace.config.arguments == "lenient"


RuleResult = list[Label] | str
"""Result of a rule: labels, or the reason why the rule does not apply."""
Rule = Callable[[Case], RuleResult]
