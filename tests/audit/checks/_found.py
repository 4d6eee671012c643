"""Helpers of the check tests: findings of some checks in a subject of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quintain.audit.auditor import BROKE, TASKS, Report, audit
from quintain.audit.kernel.check import Check, registered
from quintain.audit.kernel.finding import Confidence, Finding
from quintain.audit.kernel.loader import Subject


def audited(file: Path, name: str, checks: Sequence[Check], *, tasks: int = TASKS) -> Report:
    """The report of checks, none of which broke."""
    report = audit(Subject(f"{file}:{name}"), checks, tasks=tasks)
    assert not [one.reason for one in report.checks if one.reason.startswith(BROKE)]
    return report


def found(file: Path, name: str, checks: Sequence[Check], *, tasks: int = TASKS) -> list[Finding]:
    """Returns the findings of the checks in a subject."""
    return list(audited(file, name, checks, tasks=tasks).findings)


def firm(findings: Sequence[Finding]) -> list[Finding]:
    """Findings that are more than hints."""
    return [one for one in findings if one.confidence != "hint"]


def highest(finding: Finding) -> Confidence:
    """Returns the highest confidence that the finding's check may have."""
    return next(one.at_most for one in registered() if one.id == finding.check)
