"""Terminal view of an audit report: findings, then coverage, then what was not checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from . import console

if TYPE_CHECKING:
    from rich.console import Console

    from quintain.audit.auditor import Report
    from quintain.audit.kernel.finding import Finding

_STYLE = {"error": "bold red", "warning": "yellow", "note": "dim"}
_VALUE = 160
"""Characters of a value that are shown."""


def print_report(out: Console, report: Report, folder: Path) -> None:
    """Prints findings with their trajectories, then the coverage by class, then the verdict."""
    title = Text(report.subject.spec, style="bold")
    looked = f"{report.tasks[0]:,} of {console.plural(report.tasks[1], 'task')}"
    out.print(title.append(f"   {looked} in {console.seconds(report.seconds)}", style="not bold dim"))
    out.print()
    for number, finding in enumerate(report.findings, 1):
        print_finding(out, number, finding)
    out.print(console.grid("class", ">checks", ">probes", ">found", "", rows=_rows(report)))
    out.print()
    rate = report.failures
    if rate.episodes:
        broke = f"{rate.failures} of {rate.episodes} episodes broke"
        out.print(f"{broke}; the failure rate is between {rate.low:.1%} and {rate.high:.1%} (95 %, each side).")
    out.print(_verdict(report), style="bold")
    out.print(f"Report, findings and certificate are in {folder}.", soft_wrap=True)


def print_finding(out: Console, number: int, finding: Finding) -> None:
    """Prints one finding with its trajectory, values and command to replay it."""
    head = Text(f"{number}. ").append(f"{finding.severity}, {finding.confidence}", style=_STYLE[finding.severity])
    out.print(head.append(f"   {finding.class_}, {finding.part}, {finding.check}", style="dim"))
    out.print(f"   {console.safe(finding.title)}", style="bold", soft_wrap=True)
    print_trajectory(out, finding.trajectory)
    for name in ("expected", "observed"):
        value = getattr(finding, name)
        if value is not None:
            out.print(f"   {name}: {_shown(value)}", soft_wrap=True)
    if finding.where:
        out.print(f"   at {finding.where}", style="dim", soft_wrap=True)
    if finding.replay:
        out.print(f"   {finding.replay}", style="cyan", soft_wrap=True)
    out.print()


def print_trajectory(out: Console, trajectory: list[dict[str, Any]]) -> None:
    """Prints the ops of a trajectory with their results, one per line."""
    for line in trajectory:
        on = f"{line['on']}: " if "on" in line else ""
        asked = line.get("arguments", line.get("value"))
        words = f"{line['do']} {line.get('name', '')}".strip() + (
            f" {_shown(asked)}" if asked not in (None, {}) else ""
        )
        gave = next((f"{how}: {line[how]}" for how in ("refused", "crashed", "hung", "absent") if how in line), None)
        answer = gave if gave is not None else _shown(line.get("observed"))
        out.print(Text(f"     {on}{console.safe(words)}").append(f"  → {answer}", style="dim"), soft_wrap=True)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return console.clipped(console.safe(text.replace("\n", "\\n")), _VALUE)


def _rows(report: Report) -> list[tuple[object, ...]]:
    from quintain.audit.kernel.finding import CLASSES

    rows: list[tuple[object, ...]] = []
    for class_, covered in report.coverage.items():
        checks = [one for one in report.checks if one.class_ == class_]
        if not checks:
            continue
        done = [one for one in checks if one.status != "not_checked"]
        found = sum(finding.class_ == class_ for finding in report.findings)
        skipped = sorted({one.reason for one in checks if one.status == "not_checked"})
        why = "; ".join(skipped) if done else covered
        probes = sum(one.probes for one in checks)
        style = "bold red" if found else ""
        cells = (f"{len(done)}/{len(checks)}", f"{probes:,}", Text(str(found or "-"), style=style))
        rows.append((CLASSES[class_], *cells, Text(console.clipped(why, 90), style="dim")))
    return rows


def _verdict(report: Report) -> str:
    proven = sum(one.stops for one in report.findings)
    if proven:
        return f"{console.plural(proven, 'proven error')}: do not train on this."
    others = len(report.findings)
    rest = f", {console.plural(others, 'further remark')}" if others else ""
    return f"No proven error in what was checked{rest}."
