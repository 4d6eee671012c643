"""File of accepted findings: known bugs that do not fail an audit, each with a reason and a date.

[[accepted]]
finding = "x.read_your_writes-1f0c92ab"
reason = "production has the same cache"
date = 2026-11-26
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from quintain.audit.auditor import Report
from quintain.errors import UsageError


class Acceptance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Row of the file; `finding` is the name of a finding."""

    finding: str
    reason: Annotated[str, msgspec.Meta(min_length=1)]
    date: dt.date


class AcceptedFile(NamedTuple):
    """Path and rows of a file that was read."""

    path: Path
    rows: list[Acceptance]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    accepted: list[Acceptance] = []


def read(path: Path) -> list[Acceptance]:
    """Returns the rows of a file.

    Raises:
        UsageError: The file is unreadable, or a row lacks a name, a reason or a date.
    """
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_File).accepted
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} must have rows [[accepted]] with finding, reason and date: {error}") from error


def find(path: Path | None) -> AcceptedFile | None:
    """Returns the file with its rows; None without a path. Raises as `read`."""
    return None if path is None else AcceptedFile(path, read(path))


def accept(report: Report, rows: Sequence[Acceptance]) -> Report:
    """Returns the report with the reason and date of each accepted finding."""
    said = {row.finding: f"{row.reason} ({row.date})" for row in rows}
    findings = [msgspec.structs.replace(one, accepted=said.get(one.name, "")) for one in report.findings]
    return msgspec.structs.replace(report, findings=tuple(findings))


def unmatched(report: Report, rows: Sequence[Acceptance]) -> list[str]:
    """Returns the names that match no finding, although their check was finished or does not exist."""
    names = {one.name for one in report.findings} | set(report.known)
    unfinished = {one.check for one in report.checks if one.status != "checked"}
    return [row.finding for row in rows if row.finding not in names and row.finding[:-9] not in unfinished]
