"""Seconds that `quintain audit` takes by default, and until it proves the first error.

Wall time is what a user waits for, so the figures hold for a quiet machine of two cores; CPU time is given beside it.
The desk has the size of a first environment of one's own: 10 tools, 20 tasks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from _table import Row, main, row

from quintain.audit.auditor import audit
from quintain.audit.kernel.check import Check, ordered, registered
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Subject

BUDGET_S = 60.0
DESK = Path(__file__).parent / "audit/sound/crm_desk.py"
WORLDS = (
    ("helpdesk", Subject("helpdesk"), 100, 60),
    ("enterprise", Subject("enterprise"), 100, 60),
    ("desk with 10 tools", Subject(f"{DESK}:env"), 20, 15),
)


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    """Yields time and extent of audits, and the time to the first error in a poisoned world."""
    checks = ordered(registered())
    for name, subject, tasks, goal in WORLDS:
        before = sum(os.times()[:4])
        report = audit(subject, checks[:1] if quick else checks, tasks=3 if quick else tasks, budget=BUDGET_S)
        finished = sum(one.status == "checked" for one in report.checks)
        yield row(f"audit of {name}", round(report.seconds, 1), "s", goal=goal)
        yield row(f"{name}: CPU time", round(sum(os.times()[:4]) - before, 1), "s")
        yield row(f"{name}: checks finished", finished, "checks")
        yield row(f"{name}: checks applicable", finished + len(report.unfinished), "checks")
    for name in ("sales", "helpdesk"):
        seconds = _first_error(Subject(name, {"twin": "stale_cache"}), checks[:1] if quick else checks)
        yield row(f"first error in {name} with a stale cache", seconds, "s", goal=5)


def _first_error(subject: Subject, checks: Sequence[Check]) -> float | None:
    """Returns the seconds until an audit proves an error; None if it proves none."""
    begun, proven = time.monotonic(), list[float]()

    def saw(finding: Finding) -> None:
        if finding.stops:
            proven.append(time.monotonic() - begun)

    audit(subject, checks, budget=BUDGET_S, saw=saw)
    return min(proven, default=None)


if __name__ == "__main__":
    main("Time of an audit", measure)
