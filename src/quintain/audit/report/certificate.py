"""Certificate that an audit found no proven error in one exact version of an environment.

It holds the digests of the environment, lists checked and unchecked classes, and bounds the failure rate. Any
differing digest voids it: another version, another set of tools, or another Quintain.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from quintain import __version__, codec
from quintain.audit.auditor import Report
from quintain.audit.facts.failure_rate import Rate
from quintain.audit.kernel.loader import About

from .document import indented, read


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a certificate file.

    It holds if the audit proved no error that the author does not accept, and the failure rate is below 5 %.
    """

    subject: str
    options: dict[str, str]
    holds: bool
    why_not: list[str]
    digests: dict[str, str]
    checked: list[str]
    not_checked: dict[str, str]
    failure_rate: Rate
    tasks: int
    indices: tuple[int, ...]  # of the tasks in its digest, if it is an environment
    seed: int
    accepted: list[str] = []


def digests(about: About, digest: str) -> dict[str, str]:
    parts = {"tools": about.tools, "tasks": (about.tasks, about.count)}
    own = {name: codec.digest(codec.dumps(part)) for name, part in parts.items()}
    files = {source.path: codec.digest(Path(source.path).read_bytes()) for source in about.sources}
    return {"subject": digest, **own, "quintain": __version__, **files}


def certificate(report: Report) -> Certificate:
    rate = report.failures
    why_not = [f"proven: {one.title}" for one in report.findings if one.stops]
    risk = f"{rate.failures} of {rate.episodes} episodes failed: the rate may be {rate.high:.1%}"
    why_not += [] if rate.is_low else [risk]
    why_not += [f"too little was checked: {report.too_little}"] if report.too_little else []
    return Certificate(
        subject=report.subject.spec,
        options=report.subject.options,
        holds=not why_not,
        why_not=why_not,
        digests=digests(report.about, report.digest),
        checked=[one.check for one in report.checks if one.status == "checked"],
        not_checked={one.check: one.reason for one in report.checks if one.status != "checked"},
        failure_rate=rate,
        tasks=report.tasks[0],
        indices=report.about.indices,
        seed=report.seed,
        accepted=[f"{one.title}: {one.accepted}" for one in report.findings if one.accepted],
    )


def save(one: Certificate, path: Path) -> None:
    path.write_bytes(indented(one))


def load(path: Path) -> Certificate:
    return read(path, Certificate, "a certificate")


def void(one: Certificate, now: dict[str, str]) -> list[str]:
    """Returns one line per digest that differs from the certified one; empty while the certificate is valid."""
    pairs = {name: (one.digests.get(name), now.get(name)) for name in sorted({*one.digests, *now})}
    return [
        f"{name}: it was made for {old or 'nothing of that name'}, now {new or 'it is gone'}"
        for name, (old, new) in pairs.items()
        if old != new
    ]
