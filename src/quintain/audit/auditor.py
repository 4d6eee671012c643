"""Auditor: runs checks by descending value, several at a time, until all are done or the budget is spent."""

from __future__ import annotations

import contextlib
import math
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintain import codec
from quintain.audit.facts.failure_rate import ENOUGH, Rate, measure
from quintain.audit.kernel.check import Check, NotChecked
from quintain.audit.kernel.child import WORKERS, Child, SubjectBroken, WorkerPool
from quintain.audit.kernel.context import AuditContext, OutOfTime
from quintain.audit.kernel.finding import CLASSES, CONFIDENCES, SEVERITIES, CheckResult, Finding, Status
from quintain.audit.kernel.loader import About, Made, Subject, spread
from quintain.audit.kernel.probe import reset
from quintain.audit.report.details import detailed

TASKS = 100  # default number of tasks to audit
LIMIT_S = 30.0  # default time limit of one probe, in seconds
LATE = "the budget was spent"  # beginning of the reason of a check that did not fit into the budget
_FOR_TASKS = 0.025  # part of the budget for making the tasks of an environment
_FOR_CHECKS = 0.9  # part of the budget for checks and the failure rate; the rest is for the details of findings
_RUNNING = WORKERS + 1  # number of checks at a time; some of them wait
_FIRST_S = 8.0  # seconds in which checks have the machine to themselves, if there is a budget
_GRACE_S = 3.0  # seconds after the budget in which a running check may end by itself; then the audit goes on without it


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an audit: findings, coverage and failure rate."""

    subject: Subject
    kind: str
    digest: str  # fingerprint of the subject, or digest of its sources and tools
    about: About
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    tasks: tuple[int, int]  # number of audited tasks, and number of tasks of the subject
    failures: Rate
    seed: int
    seconds: float
    heavy: int = 0  # number of tasks that were left out because they take too long to make or to read
    shared_probes: int = 0  # number of probes that several checks share
    known: tuple[str, ...] = ()  # names of findings that are left out because a baseline has them
    advisor: dict[str, Any] = {}  # record of the model that advised; empty without one

    @property
    def coverage(self) -> dict[str, str]:
        """Returns "checked", or "not_checked: " and the reason, by class."""
        found: dict[str, str] = {}
        for class_ in CLASSES:
            checks = [one for one in self.checks if one.class_ == class_]
            reasons = "; ".join(sorted({one.reason for one in checks})) or "no check of this class was asked for"
            is_checked = any(one.status in ("checked", "partly") for one in checks)
            found[class_] = "checked" if is_checked else f"not_checked: {reasons}"
        return found

    @property
    def stops(self) -> bool:
        return any(one.stops for one in self.findings)

    @property
    def unfinished(self) -> tuple[CheckResult, ...]:
        """Returns the checks that could have judged the subject but were left out or ended early."""
        return tuple(one for one in self.checks if one.unfinished)

    @property
    def too_little(self) -> str:
        """Returns why a report without proven errors says too little; empty if it says enough.

        Enough is a finished check, no more unfinished ones than finished, and an episode that reached a verdict.
        """
        finished = sum(one.status == "checked" and one.class_ in CLASSES for one in self.checks)
        if not finished or finished < len(self.unfinished):
            return f"{finished} of {finished + len(self.unfinished)} applicable checks were finished"
        if self.failures.failures == self.failures.episodes:
            return f"none of {self.failures.episodes} episodes reached a verdict"
        return ""


BROKE = "the check itself broke:"  # prefix of the reason of a check that raised an unexpected exception

Watch = Callable[[Check, int, int], None]  # callback (check, index, number of checks) at the start of each check


def audit(
    subject: Subject,
    checks: Sequence[Check],
    *,
    tasks: int = TASKS,
    seed: int = 0,
    budget: float | None = None,
    limit: float = LIMIT_S,
    watch: Watch = lambda check, place, count: None,
    saw: Callable[[Finding], None] = lambda finding: None,
    stage: Check | None = None,
) -> Report:
    """Runs checks on a subject.

    Args:
        subject: Subject to load.
        checks: Checks in the order in which they run.
        tasks: Number of tasks to audit, spread evenly over all.
        seed: Seed of all draws.
        budget: Seconds for the whole audit; checks that do not fit are `not_checked`. None: as long as it takes.
        limit: Seconds for one probe.
        watch: Called at the start of each check.
        saw: Called with each finding as soon as it is made; the report merges those of one cause later.
        stage: Check that runs after all others, in its own time, and changes none of their results.
    """
    started = time.monotonic()
    with contextlib.closing(WorkerPool(msgspec.structs.replace(subject, index={}))) as pool:
        ctx = _context(pool, tasks, budget, seed=seed, limit=limit)
        ctx.saw = saw
        done, found, failures = _all(checks, ctx, watch)
        extra = 0.0 if stage is None else _after(stage, ctx, watch, done=done, found=found)
        ctx.until = None if budget is None else started + budget + extra
        findings = tuple(detailed(_distinct(found, ctx), ctx))
    return Report(
        subject=subject,
        kind=ctx.about.kind,
        digest=ctx.digest,
        about=ctx.about,
        checks=tuple(done),
        findings=findings,
        tasks=(len(ctx.tasks), ctx.about.count),
        failures=failures,
        heavy=ctx.heavy,
        shared_probes=ctx.shared_probes,
        seed=seed,
        seconds=time.monotonic() - started,
    )


def _context(pool: WorkerPool, tasks: int, budget: float | None, *, seed: int, limit: float) -> AuditContext:
    """Describes the subject and returns the first context; a budget leaves out tasks that take long."""
    started = time.monotonic()
    about = pool.describe(tasks, math.inf if budget is None else budget * _FOR_TASKS)
    pool.subject.index.update(zip(about.tasks, about.indices, strict=bool(about.indices)))
    chosen = spread(about.tasks if budget is None else about.light, tasks)
    until = None if budget is None else started + _FOR_CHECKS * budget
    ctx = AuditContext(pool, about, chosen, seed=seed, until=until, limit=limit)
    ctx.heavy = min(tasks, about.count) - len(chosen)
    ctx.digest = about.fingerprint or _digest(about)
    return ctx


def _all(checks: Sequence[Check], ctx: AuditContext, watch: Watch) -> tuple[list[CheckResult], list[Finding], Rate]:
    """Runs checks on all cores and returns results in order.

    The failure rate is measured meanwhile, from _FIRST_S on. A check that still computes after the budget and _GRACE_S
    is left to its thread.
    """
    _begins(ctx)
    contexts = [ctx.derive(check.id, check) for check in checks]
    for place, own in enumerate(contexts):
        own.rank = place
    found: list[list[Finding]] = [[] for _ in checks]
    results: dict[int, CheckResult] = {}
    begun: set[int] = set()
    rates: list[Rate] = []
    waiting, is_free = iter(list(enumerate(checks))), threading.Event()

    def run() -> None:
        for place, check in waiting:
            begun.add(place)
            watch(check, place, len(checks))
            results[place] = _run(check, contexts[place], found[place])
        is_free.set()

    def measures() -> None:
        """Leaves the machine to the first checks, because their errors are told at once."""
        with contextlib.suppress(OutOfTime):
            ctx.walk()
        is_free.wait(0.0 if ctx.until is None else min(_FIRST_S, ctx.seconds_left() / 6))
        rates.append(_rate(ctx))

    _join([threading.Thread(target=work, daemon=True) for work in (*[run] * _RUNNING, measures)], ctx)
    for place, check in enumerate(checks):
        late: Status = "partly" if found[place] else "not_checked"
        reason = f"{LATE} {'on the way' if place in begun else 'before it'}"
        results.setdefault(place, _result(check, contexts[place], found[place], status=late, reason=reason))
    done = [results[place] for place in range(len(checks))]
    return done, [one for some in found for one in some], rates[0] if rates else _rate(ctx)


def _rate(ctx: AuditContext) -> Rate:
    own = ctx.derive("failures")
    own.tasks = ctx.tasks if ctx.until is None else ctx.sample_tasks(ENOUGH)  # More would take the time of checks.
    return measure(own)


def _join(threads: Sequence[threading.Thread], ctx: AuditContext) -> None:
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(None if ctx.until is None else ctx.seconds_left() + _GRACE_S)
    except BaseException:  # Ctrl-C, mostly: running checks must not delay the exit.
        ctx.stop()
        for thread in threads:
            thread.join()
        raise


def _run(check: Check, ctx: AuditContext, found: list[Finding]) -> CheckResult:
    """Runs one check; an exception in it is reported as a bug of the check, and the audit goes on."""
    started = time.monotonic()
    status: Status = "not_checked"
    reason, unfinished = "", True
    if missing := check.missing(ctx.offers):
        reason, unfinished = f"the subject has no {', no '.join(missing)}", False
    elif ctx.seconds_left() <= 0:
        reason = f"{LATE} before it"
    else:
        try:
            for one in filter(None, check.run(ctx)):
                found.append(one)  # What is found before it ends, counts.
                ctx.saw(one)
            unfinished = False
            status, reason = ("checked", "") if ctx.comparisons else ("not_checked", "there was nothing to compare")
        except NotChecked as why:
            reason, unfinished = str(why), False
        except OutOfTime:
            status, reason = ("partly" if found else "not_checked"), f"{LATE} on the way"
        except SubjectBroken as error:
            status, reason = ("partly" if ctx.comparisons else "not_checked"), f"the subject broke: {error}"
        except Exception as error:  # noqa: BLE001 (somebody's plugin; the report names it)
            place = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{BROKE} {type(error).__name__}: {error} ({place.filename}:{place.lineno})"
    seconds = time.monotonic() - started
    return _result(check, ctx, found, status=status, reason=reason, unfinished=unfinished, seconds=seconds)


def _after(stage: Check, ctx: AuditContext, watch: Watch, *, done: list[CheckResult], found: list[Finding]) -> float:
    watch(stage, len(done), len(done) + 1)
    own, more = ctx.derive(stage.id, stage), list[Finding]()
    own.until = None
    result = _run(stage, own, more)
    done.append(msgspec.structs.replace(result, unfinished=False))  # An audit is as finished as without it.
    found += more
    return result.seconds


def _result(check: Check, ctx: AuditContext, found: Sequence[Finding], **fields: Any) -> CheckResult:
    given: dict[str, Any] = {"unfinished": True, "about": check.about, "probes": ctx.probes} | fields
    return CheckResult(check=check.id, class_=check.class_, looked=ctx.comparisons, findings=len(found), **given)


def _begins(ctx: AuditContext) -> None:
    """Raises SubjectBroken if none of three tasks can be reset within the budget."""
    broken = ""
    with contextlib.suppress(OutOfTime):
        for task in ctx.sample_tasks(3):
            record = ctx.play(reset(task, mark="begin"))
            seen = record.at("begin")
            if seen.how in ("", "refused") and not record.died:
                return
            broken = f"task {task!r}: {record.died or seen.raised} {seen.where}".rstrip()
        if broken:
            raise SubjectBroken(f"no task can be begun; {broken}")


def digest_of(subject: Subject, tasks: Sequence[int]) -> tuple[About, str]:
    """Returns the subject's description, with the tasks of an environment at these indices, and its digest."""
    with Child(subject, made=Made(tuple(tasks))) as child:
        return child.about, child.about.fingerprint or _digest(child.about)


def _distinct(found: Sequence[Finding], ctx: AuditContext) -> list[Finding]:
    """Merges findings of one check with one title over their tasks, and returns the worst first."""
    kept: dict[str, Finding] = {}
    for one in found:
        if one.key not in kept:
            further = [task for task in ctx.seen_in.get((one.check, one.title), {}) if task]
            kept[one.key] = msgspec.structs.replace(one, tasks=tuple(dict.fromkeys((*one.tasks, *further))))
    worst = {name: place for place, name in enumerate((*SEVERITIES, *CONFIDENCES))}
    return sorted(kept.values(), key=lambda one: (worst[one.severity], worst[one.confidence]))


def _digest(about: About) -> str:
    """Returns the digest of a subject without a fingerprint: of its tools, tasks and source texts."""
    texts = [codec.digest(Path(source.path).read_bytes()) for source in about.sources]
    return codec.digest(codec.dumps((about.kind, about.tasks, about.tools, sorted(about.offers), texts)))
