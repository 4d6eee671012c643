"""Everything that a rule may look at when it judges one episode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from quintain.task import Task

from .evidence import Evidence
from .labels import Label
from .played import Played
from .probe import Probe
from .siblings import Run


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit has found about the environment; the fields of its report that matter here."""

    check: str = ""
    class_: str = msgspec.field(default="", name="class")
    part: str = ""
    severity: str = ""
    confidence: str = ""
    tasks: tuple[str, ...] = ()


class Audited(msgspec.Struct):
    """The part of an audit's report that is read."""

    findings: list[Finding]


class Case(NamedTuple):
    """One episode, and what is known beside it.

    Attributes:
        evidence: What the environment said when it was asked again.
        probe: What the task's own solution, and doing nothing, are worth.
        findings: Of an audit report, about this task; None where no report was given.
        known_tools: Schemas of the advertised tools; None where nobody says.
        solvable: Whether an episode earned the whole reward of this task, and nothing speaks against that reward.
        solutions: Share of the probed tasks whose own solution earns the whole reward; 0 where none was probed.
        freebies: Share of the probed tasks that pay the whole reward for nothing; 0 where none was probed.
    """

    played: Played
    run: Run
    evidence: Evidence
    probe: Probe
    findings: tuple[Finding, ...] | None = None
    known_tools: dict[str, dict[str, Any]] | None = None
    task: Task[Any] | None = None
    solvable: bool = False
    solutions: float = 0.0
    freebies: float = 0.0

    @property
    def lenient(self) -> bool:
        """Whether the configuration lets arguments be converted, so that the schema is no law."""
        trace = self.played.trace
        return trace is not None and trace.config.arguments == "lenient"


Found = list[Label] | str
"""What a rule says: labels, or why it could not look."""
Rule = Callable[[Case], Found]
