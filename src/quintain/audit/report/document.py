"""Report as one JSON object in a stable form (docs/reference/audit-report.md), without loss."""

from __future__ import annotations

import base64
import math
import shlex
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from quintain import codec
from quintain.audit.auditor import Report
from quintain.audit.facts.data import is_dict, is_list, is_tuple
from quintain.audit.kernel.finding import Finding
from quintain.errors import UsageError

from .page import page

T = TypeVar("T")
SCHEMA = 1  # version of the form; a new field does not change it


def document(report: Report) -> dict[str, Any]:
    """Returns the report as plain data.

    `coverage` has "checked", or "not_checked: " and the reason, by class. `properties` repeats the findings under the
    names of OpenEnv's RFC 008: check id, status ("pass", "fail", "skip"), severity, evidence.
    """
    names = ("kind", "digest", "coverage", "too_little", "known", "checks", "shared_probes", "seed")
    return {
        "schema": SCHEMA,
        "subject": report.subject.spec,
        "options": report.subject.options,
        **{name: msgspec.to_builtins(getattr(report, name)) for name in names},
        "findings": [_plain(one) for one in report.findings],
        "tasks": dict(zip(("looked_at", "there_are", "left_out"), (*report.tasks, report.heavy), strict=True)),
        "failure_rate": msgspec.to_builtins(report.failures),
        "properties": _properties(report),
        "seconds": round(report.seconds, 3),
    } | ({"advisor": report.advisor} if report.advisor else {})


def _properties(report: Report) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    for one in report.checks:
        names = [(finding, {finding.check, *(also.check for also in finding.symptoms)}) for finding in report.findings]
        of_it = [finding for finding, checks in names if one.check in checks]
        status = "fail" if of_it else "skip" if one.status == "not_checked" else "pass"
        severity, message = (of_it[0].severity, of_it[0].title) if of_it else (None, one.reason)
        replays = [finding.replay for finding in of_it if finding.replay]
        said.append({"id": one.check, "status": status, "severity": severity, "message": message, "evidence": replays})
    return said


def save(report: Report, folder: Path) -> Report:
    """Writes one file per finding, and the whole report to report.json and report.html.

    Returns the report with the replay command of each finding; raises UsageError if the folder is not writable.
    """
    named: list[Finding] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for place, one in enumerate(report.findings, 1):
            file = folder / f"finding-{place}.json"
            spec = one.subject.spec if one.subject is not None else "ENV"
            again = ["replay-finding", str(file)] if one.probes else ["audit", spec, "--check", one.check]
            replay = one.replay if one.replay and not one.probes else shlex.join(["quintain", *again])
            named.append(msgspec.structs.replace(one, replay=replay))
            file.write_bytes(indented(_plain(named[-1])))
        report = msgspec.structs.replace(report, findings=tuple(named))
        whole = document(report)
        (folder / "report.json").write_bytes(indented(whole))
        (folder / "report.html").write_text(page(whole), "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write the report into {str(folder)!r}: {error.strerror}") from error
    return report


def _plain(one: Finding) -> Any:
    return {"name": one.name} | exact(msgspec.to_builtins(one, builtin_types=(bytes,)))


def indented(value: Any) -> bytes:
    return msgspec.json.format(codec.json(value), indent=2) + b"\n"


def load(path: Path, number: int | None = None) -> Finding:
    """Reads a finding from its own file, or finding `number` of a report; raises UsageError without one."""
    whole = read(path, dict[str, Any], "a JSON object")
    if "findings" in whole:
        findings = whole["findings"]
        if number is None or not 1 <= number <= len(findings):
            raise UsageError(f"{path} is a report with findings 1 to {len(findings)}; say which: --number N")
        whole = findings[number - 1]
    return _findings([whole], path, "finding")[0]


def known_before(path: Path) -> set[str]:
    """Returns the names of the findings in an earlier report, and of those that its own baseline had."""
    whole = read(path, dict[str, Any], "a JSON object")
    if "findings" not in whole:
        raise UsageError(f"{path} is not a report of an audit: it has no findings")
    found = _findings(whole["findings"], path, "report")
    symptoms = {symptom.name for one in found for symptom in one.symptoms}
    return {one.name for one in found} | symptoms | set(whole.get("known", []))


def _findings(plain: list[Any], path: Path, what: str) -> list[Finding]:
    try:
        return [msgspec.convert(restored(one), Finding) for one in plain]
    except msgspec.ValidationError as error:
        raise UsageError(f"{path} holds no {what} of this version: {error}") from error


def read(path: Path, kind: type[T], what: str) -> T:
    """Returns a JSON file as a value of a type; raises UsageError, which describes the type as `what`, if it is not."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is not {what}: {error}") from error


# --- values without a JSON form ---


def exact(value: Any) -> Any:
    """Returns the value with all encoded that JSON would change, because a call with NaN must be replayed as one.

    It becomes an object with one key: "$float", "$bytes", or "$map" for a dict whose keys are not all text. A dict that
    looks like one of these is written as "$map", too.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if is_list(value) or is_tuple(value):
        return [exact(one) for one in value]
    if is_dict(value):
        keys: list[Any] = list(value)
        if all(isinstance(key, str) for key in keys) and not (len(keys) == 1 and keys[0].startswith("$")):
            return {key: exact(one) for key, one in value.items()}
        return {"$map": [[exact(key), exact(one)] for key, one in value.items()]}
    return value


def restored(value: Any) -> Any:
    """Returns the value that `exact` encoded; tuples come back as lists."""
    if is_list(value):
        return [restored(one) for one in value]
    if not is_dict(value):
        return value
    match list(value.items()):
        case [("$float", number)]:
            return float(number)
        case [("$bytes", data)]:
            return base64.b64decode(data)
        case [("$map", rows)]:
            pairs = [(restored(key), restored(one)) for key, one in rows]
            return {tuple(key) if is_list(key) else key: one for key, one in pairs}
        case items:
            return {key: restored(one) for key, one in items}
