"""Helpers of the check tests: findings of some checks in a subject of a file."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pytest

from quintain.audit.auditor import BROKE, TASKS, Report, audit
from quintain.audit.kernel.check import Check, registered
from quintain.audit.kernel.finding import Confidence, Finding
from quintain.audit.kernel.loader import Subject


def audited(file: Path, name: str, checks: Sequence[Check], *, tasks: int = TASKS) -> Report:
    """The report of checks, none of which broke."""
    report = audit(Subject(f"{file}:{name}"), checks, tasks=tasks)
    assert not [one.reason for one in report.checks if one.reason.startswith(BROKE)]
    return report


def once(folders: pytest.TempPathFactory, name: str, make: Callable[[Path], Report]) -> Report:
    """Returns the report that the first worker to need it has made in a folder of that name; the others wait for it.

    Workers share the tests of a file, and a fixture of the file would audit again in each of them.
    """
    base = folders.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = folder / "report"
        if not file.exists():
            file.write_bytes(pickle.dumps(make(folder)))
        return cast(Report, pickle.loads(file.read_bytes()))


def found(file: Path, name: str, checks: Sequence[Check], *, tasks: int = TASKS) -> list[Finding]:
    """Returns the findings of the checks in a subject."""
    return list(audited(file, name, checks, tasks=tasks).findings)


def firm(findings: Sequence[Finding]) -> list[Finding]:
    """Findings that are more than hints."""
    return [one for one in findings if one.confidence != "hint"]


def highest(finding: Finding) -> Confidence:
    """Returns the highest confidence that the finding's check may have."""
    return next(one.at_most for one in registered() if one.id == finding.check)
