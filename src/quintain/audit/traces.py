"""Audit of a folder of traces, without the environment that made them.

Nothing can be played, so nothing is proven: facts of records are likely, patterns over the whole run are hints. The
labels are those of triage.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quintain import codec
from quintain.audit.facts.bounds import bounds
from quintain.audit.facts.failure_rate import Rate
from quintain.audit.kernel.check import Check, check
from quintain.audit.kernel.finding import CheckResult, Finding
from quintain.audit.kernel.loader import About, Component, Subject
from quintain.errors import UsageError

from .auditor import Report
from .triage import read, triage
from .triage import report as triaged
from .triage.labels import LabeledEpisode

SHOWN: dict[str, str] = {
    "stale_cache": "a read that gave what an acknowledged write had replaced",
    "reward_hack": "success without work, hands on the verifier, failures that the agent can bring about",
    "false_resolution": "a claim of success without a write",
    "silent_default": "one answer to unrelated questions, durations at a limit, rewards without a record",
    "reset_leak": "equal beginnings with different first observations",
    "reward_clipping": "groups without variance, and rewards that pile up at a bound",
    "action_drift": "calls that schema and environment judge differently, tools unknown or never used",
    "races": "tracebacks that reached the agent",
    "leak": "gold texts in the agent's words before it could have seen them",
    "unsolvable": "many different ends that agree against the gold, tasks that all fail",
    "flaky_verifier": "equal ends with different rewards",
}
"""Evidence that records alone can give, by class."""
_NOT = "records alone do not show it"
_PART: dict[str, Component] = {"env": "S", "verifier": "V", "task": "T", "simulator": "H", "trainer": "C"}


def audit_traces(path: Path, checks: Sequence[Check], *, seed: int = 0) -> Report:
    """Audits the records in a folder or file, with some of `checks_of_traces`; raises UsageError without any."""
    started = time.monotonic()
    reading = read(path)
    if not reading.played:
        why = "; ".join(str(one.reason) for one in reading.unreadable[:3]) or "no traces"
        raise UsageError(f"nothing in {path} can be read: {why}")
    report = asyncio.run(triage(reading, _NOT, seed=seed))
    classes = {one.class_ for one in checks}
    subject, count = Subject(str(path)), len(report.judged)
    digest = codec.digest(codec.dumps([one.row() for one in report.judged]))
    found = [one for one in _findings(report, subject, digest) if one.class_ in classes]
    tasks = tuple(dict.fromkeys(one.task for one in report.judged))
    failures = round(report.failures.rate * report.episodes)
    return Report(
        subject=subject,
        kind="traces",
        digest=digest,
        about=About("traces", tasks, len(tasks), (), frozenset({"traces"}), {}, ()),
        checks=tuple(
            CheckResult(
                check=one.id,
                class_=one.class_,
                status="checked",
                about=one.about,
                looked=count,
                findings=sum(finding.check == one.id for finding in found),
            )
            for one in checks
        ),
        findings=tuple(found),
        tasks=(len(tasks), len(tasks)),
        failures=Rate(failures, report.episodes, *bounds(failures, report.episodes, one_sided=True)),
        seed=seed,
        seconds=time.monotonic() - started,
    )


def checks_of_traces() -> list[Check]:
    def nothing(_ctx: object) -> tuple[()]:
        return ()

    made: list[Check] = []
    for class_, what in SHOWN.items():
        nothing.__doc__ = what
        made.append(check(f"x.traces_{class_}", class_, level="trace", needs=("traces",))(nothing))
    return made


def _findings(report: triaged.RunReport, subject: Subject, digest: str) -> list[Finding]:
    def made(class_: str, **fields: Any) -> Finding:
        return Finding(check=f"x.traces_{class_}", class_=class_, digest=digest, subject=subject, **fields)

    found: list[Finding] = []
    for sign in report.warnings:
        observed = {"what": sign.what, "episodes": list(sign.episodes)}
        more = {"title": sign.why, "observed": observed}
        found.append(made(sign.class_, part="S", severity="warning", confidence="hint", **more))
    groups: dict[tuple[str, int, str], list[LabeledEpisode]] = defaultdict(list)
    for judged, label in ((one, label) for one in report.judged for label in one.labels):
        for class_ in label.classes if label.owner != "policy" else ():
            groups[class_, label.rule, label.owner].append(judged)
    for (class_, rule, owner), episodes in groups.items():
        label = next(one for one in episodes[0].labels if one.rule == rule and class_ in one.classes)
        fields = {
            "title": f"{label.why} (rule {rule}, {len(episodes)} of {len(report.judged)} episodes)",
            "tasks": tuple(dict.fromkeys(one.task for one in episodes))[:20],
            "where": f"{episodes[0].place}, turn {label.turn}, step {label.step}",
            "observed": [one.place for one in episodes[:5]],
            "confidence": "hint" if label.confidence == "hint" else "likely",
        }
        found.append(made(class_, part=_PART.get(owner, "S"), severity="error", **fields))
    return found
