"""The audit itself: checks in the order of their worth, a few at a time, until all are done or the budget is spent."""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import msgspec

from quintain import codec

from .check import Check, NotChecked
from .child import Child, SubjectBroken
from .context import AuditContext, OutOfTime
from .details import detailed
from .failure_rate import Rate, measure
from .finding import CLASSES, CheckResult, Finding
from .loader import About, Subject
from .pool import WORKERS, Pool
from .probe import Context, reset

TASKS = 100
"""Tasks that are looked at when nobody says how many."""
LIMIT_S = 30.0
"""Seconds that one probe may take."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit found, what it looked at, and what it did not.

    Attributes:
        digest: Of the subject: its fingerprint, or of its sources and tools.
        checks: One entry for each check that was asked for.
        tasks: How many were looked at, of how many there are.
        failures: How often its episodes broke.
        seconds: Wall time.
    """

    subject: Subject
    kind: str
    digest: str
    about: About
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    tasks: tuple[int, int]
    failures: Rate
    seed: int
    seconds: float

    @property
    def coverage(self) -> dict[str, str]:
        """By class "checked", or "not_checked: " and why."""
        return {class_: _covered([one for one in self.checks if one.class_ == class_]) for class_ in CLASSES}

    @property
    def stops(self) -> bool:
        """Whether there is a proven error."""
        return any(one.stops for one in self.findings)


BROKE = "the check itself broke:"
"""How the reason of a check begins that raised what it should not."""

Watch = Callable[[Check, int, int], None]
"""(check, its place, how many there are), when a check begins."""


def audit(
    subject: Subject,
    checks: Sequence[Check],
    *,
    tasks: int = TASKS,
    seed: int = 0,
    budget: float | None = None,
    limit: float = LIMIT_S,
    watch: Watch = lambda check, place, count: None,
) -> Report:
    """Ask all checks about a subject.

    Args:
        subject: What to open.
        checks: In the order in which they run.
        tasks: So many of its tasks, spread evenly.
        seed: Of everything that is drawn.
        budget: Seconds for all of it; checks that do not fit are `not_checked`.
        limit: Seconds for one probe.
        watch: Told of each check that begins.

    Raises:
        UsageError: There is no such subject.
        SubjectBroken: It does not load.
    """
    started = time.monotonic()
    until = None if budget is None else started + budget
    about, _ = digest_of(subject)
    pool = Pool(msgspec.structs.replace(subject, names=about.tasks) if about.kind == "environment" else subject)
    try:
        ctx = AuditContext(pool, about, _spread(about.tasks, tasks), seed=seed, until=until, limit=limit)
        ctx.digest = about.fingerprint or _digest(about)
        _begins(ctx)
        done, found = _all(checks, ctx, watch)
        failures = measure(ctx)
        findings = detailed(_distinct(found, ctx), ctx)
    finally:
        pool.close()
    return Report(
        subject=subject,
        kind=about.kind,
        digest=ctx.digest,
        about=about,
        checks=tuple(done),
        findings=tuple(findings),
        tasks=(len(ctx.tasks), len(about.tasks)),
        failures=failures,
        seed=seed,
        seconds=time.monotonic() - started,
    )


def _all(checks: Sequence[Check], ctx: AuditContext, watch: Watch) -> tuple[list[CheckResult], list[Finding]]:
    """As many at a time as there are cores, those that want the machine for themselves alone; results in order."""

    def one(placed: tuple[int, Check]) -> tuple[CheckResult, list[Finding]]:
        place, check = placed
        watch(check, place, len(checks))
        return _run(check, ctx.derive(check.id, check))

    results: list[tuple[CheckResult, list[Finding]]] = []
    with ThreadPoolExecutor(WORKERS) as executor:
        try:
            for is_alone, group in itertools.groupby(enumerate(checks), lambda placed: placed[1].alone):
                some = list(group)
                results += map(one, some) if is_alone else executor.map(one, some)
        except BaseException:  # Ctrl-C, mostly: nobody waits for checks that are still at work.
            ctx.stop()
            raise
    return [checked for checked, _ in results], [finding for _, found in results for finding in found]


def _run(check: Check, ctx: AuditContext) -> tuple[CheckResult, list[Finding]]:
    """One check. One that breaks is a bug of the check, not of the subject: it is said, and the others go on."""
    started = time.monotonic()
    found: list[Finding] = []
    status: Literal["checked", "partly", "not_checked"] = "checked"
    reason = ""
    if missing := check.missing(ctx.offers):
        status, reason = "not_checked", f"the subject has no {', no '.join(missing)}"
    elif ctx.seconds_left() <= 0:
        status, reason = "not_checked", "the budget was spent before it"
    else:
        try:
            found.extend(one for one in check.run(ctx) if one is not None)  # What is found before it ends, counts.
        except NotChecked as why:
            status, reason = "not_checked", str(why)
        except OutOfTime:
            status, reason = ("partly" if ctx.comparisons else "not_checked"), "the budget was spent on the way"
        except SubjectBroken as error:
            status, reason = ("partly" if ctx.comparisons else "not_checked"), f"the subject broke: {error}"
        except Exception as error:  # noqa: BLE001 (somebody's plugin; the report names it)
            place = traceback.extract_tb(error.__traceback__)[-1]
            told = f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
            status, reason = "not_checked", f"{BROKE} {told}"
        if status == "checked" and not ctx.comparisons:
            status, reason = "not_checked", "there was nothing to compare"
    checked = CheckResult(
        check=check.id,
        class_=check.class_,
        status=status,
        reason=reason,
        about=check.about,
        probes=ctx.probes,
        looked=ctx.comparisons,
        findings=len(found),
        seconds=time.monotonic() - started,
    )
    return checked, found


def _begins(ctx: AuditContext) -> None:
    """Whether any task can be begun at all, as far as the budget goes.

    Raises:
        SubjectBroken: None of three can.
    """
    broken = ""
    for task in ctx.sample_tasks(3):
        try:
            record = ctx.play(reset(task, mark="begin"))
        except OutOfTime:
            return
        seen = record.at("begin")
        if seen.how in ("", "refused") and not record.died:
            return
        broken = f"task {task!r}: {record.died or seen.raised} {seen.where}".rstrip()
    if broken:
        raise SubjectBroken(f"no task can be begun; {broken}")


def digest_of(subject: Subject) -> tuple[About, str]:
    """What a subject says of itself, and its digest.

    Raises:
        UsageError: There is no such subject.
        SubjectBroken: It does not load.
    """
    with Child(subject, Context()) as child:
        return child.about, child.about.fingerprint or _digest(child.about)


def _spread(tasks: Sequence[str], count: int) -> tuple[str, ...]:
    if count >= len(tasks):
        return tuple(tasks)
    return tuple(tasks[round(place * (len(tasks) - 1) / max(1, count - 1))] for place in range(count))


def _distinct(found: Sequence[Finding], ctx: AuditContext) -> list[Finding]:
    """The worst first; what one check says in one sentence is one finding, with every task that it was seen in."""
    kept: dict[str, Finding] = {}
    for one in found:
        kept.setdefault(one.key, one)
    whole = [_in_all(one, ctx) for one in kept.values()]
    severities, confidences = ("error", "warning", "note"), ("proven", "likely", "hint")
    return sorted(whole, key=lambda one: (severities.index(one.severity), confidences.index(one.confidence)))


def _in_all(one: Finding, ctx: AuditContext) -> Finding:
    further = ctx.seen_in.get((one.check, one.title), {})
    tasks = tuple(dict.fromkeys((*one.tasks, *(task for task in further if task))))
    return msgspec.structs.replace(one, tasks=tasks)


def _digest(about: About) -> str:
    """Names a subject that has no fingerprint: what it advertises, and the text of its sources."""
    texts = [codec.digest(Path(source.path).read_bytes()) for source in about.sources]
    return codec.digest(codec.dumps((about.kind, about.tasks, about.tools, sorted(about.offers), texts)))


def _covered(checks: Sequence[CheckResult]) -> str:
    if any(one.status in ("checked", "partly") for one in checks):
        return "checked"
    reasons = sorted({one.reason for one in checks})
    return f"not_checked: {'; '.join(reasons) or 'no check of this class was asked for'}"
