"""Reports of other programs in a run folder: findings of audits, and numbers of trainers.

`quintain audit ENV --out RUN/audit` writes findings. `TrainingLog`, a trainer of Hugging Face, or any script that
writes lines such as `{"step": 1, "loss": 0.5}` writes numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

_NUMBERS = (int, float)
UNREADABLE = (OSError, ValueError, msgspec.DecodeError, RecursionError)


class _Op(msgspec.Struct):
    do: str = ""
    name: str = ""
    mark: str = ""


class _Probe(msgspec.Struct):
    ops: list[_Op] = []


class _Evidence(msgspec.Struct):
    marks: tuple[str, ...] = ()


class ReportedFinding(msgspec.Struct, rename={"class_": "class"}):
    """Finding of an audit, as its report says it.

    Attributes:
        tasks: Tasks in which it was seen; empty if it concerns all.
    """

    name: str
    title: str
    class_: str = ""
    part: str = ""
    severity: str = ""
    confidence: str = ""
    teaches: str = ""
    mend: str = ""
    replay: str = ""
    tasks: list[str] = []
    trajectory: list[_Op] = []
    probes: list[_Probe] = []
    evidence: _Evidence | None = None

    def tools(self) -> list[str]:
        """Returns the tools whose calls show the finding; all that its first probe calls, if none is marked."""
        marks = self.evidence.marks if self.evidence else ()
        marked = [op for probe in self.probes for op in probe.ops if op.mark in marks]
        calls = [op.name for op in marked if op.do == "call"] or [op.name for op in self.trajectory if op.do == "call"]
        return list(dict.fromkeys(calls))


class _Report(msgspec.Struct):
    digest: str
    findings: list[ReportedFinding]


def reports(folder: Path) -> list[Path]:
    """Returns the reports of audits in a run folder."""
    return sorted((*folder.glob("report.json"), *folder.glob("audit*/report.json")))


def findings(folder: Path, fingerprints: Collection[str]) -> tuple[list[dict[str, Any]] | None, list[str]]:
    """Returns the findings about a run's environment, and a warning for each report that is about another version.

    Args:
        folder: Run folder, with `report.json` or `audit*/report.json`.
        fingerprints: Fingerprints of the environment that the run names.

    Returns:
        Findings; None if no report is about this version of the environment.
    """
    found: list[dict[str, Any]] | None = None
    warnings = list[str]()
    for path in reports(folder):
        name = path.relative_to(folder)
        try:
            report = msgspec.json.decode(path.read_bytes(), type=_Report)
        except UNREADABLE as error:
            warnings.append(f"{name} is not the report of an audit: {error}")
            continue
        if report.digest not in fingerprints:
            warnings.append(f"{name} is about another version of the environment: {report.digest}")
            continue
        found = found or []
        for one in report.findings:
            said: dict[str, Any] = msgspec.to_builtins(one)
            hidden = ("trajectory", "probes", "evidence")
            found.append({key: value for key, value in said.items() if key not in hidden} | {"tools": one.tools()})
    return found, warnings


def metrics(folder: Path) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Returns the numbers of trainers by file and name, each as pairs of step and value; the last of a step counts.

    Args:
        folder: Run folder, with `training.jsonl`, `metrics.jsonl` or `trainer_state.json`.
    """
    found: dict[str, dict[str, dict[float, float]]] = {}
    for name in ("training.jsonl", "metrics.jsonl", "trainer_state.json"):
        for row in _rows(folder / name):
            step = row.pop("step", None)
            own = name == "training.jsonl"
            numbers: dict[str, Any] = {"seconds": row.get("wall_s"), **row.get("metrics", {})} if own else row
            for key, value in numbers.items():
                if step is not None and type(step) in _NUMBERS and type(value) in _NUMBERS and math.isfinite(value):
                    found.setdefault(name, {}).setdefault(key, {})[step] = value
    return {file: {key: sorted(of.items()) for key, of in names.items()} for file, names in found.items()}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of a file; lines that cannot be read are left out, such as the last one of a trainer at work."""
    if not path.is_file():
        return
    lines = [path.read_bytes()] if path.suffix == ".json" else path.read_bytes().splitlines()
    for line in lines:
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
        except UNREADABLE:
            continue
        yield from row.get("log_history", []) if path.suffix == ".json" else [row]
