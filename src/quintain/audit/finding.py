"""What the audit says: findings with all that is needed to see them again, and the report that holds them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from quintain.errors import UsageError

from .loader import Component, Subject
from .probe import OpResult, Probe, Record

CLASSES = {
    "stale_cache": "stale cache",
    "reward_hack": "reward hack",
    "false_resolution": "false resolution",
    "silent_default": "silent default",
    "reset_leak": "reset leak and nondeterminism",
    "reward_clipping": "rounding and clipping",
    "data_realism": "data unlike production's",
    "action_drift": "action-space drift",
    "races": "races, tracebacks, load",
    "judge": "judge",
    "leak": "leak and contamination",
    "unsolvable": "unsolvable or trivial",
    "flaky_verifier": "flaky verifier",
}
"""The thirteen classes in their order, with what a person calls them."""

Severity = Literal["error", "warning", "note"]
Confidence = Literal["proven", "likely", "hint"]


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """The claim that probes support: a relation, and what it is about.

    Attributes:
        relation: Name of a function in `quintain.audit.relations`, or "module:function"; it takes the probes' records
            and this evidence and says whether the claim holds.
        marks: Ops that it looks at.
        data: What else it must know; plain data.
        volatile: Fields that do not count.
        tries: A claim about chance or threads holds when it does in one of so many plays.
    """

    relation: str
    marks: tuple[str, ...] = ()
    data: Any = None
    volatile: tuple[str, ...] = ()
    tries: int = 1


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename={"class_": "class"}):
    """One thing that is wrong.

    Attributes:
        check: Id of the check.
        class_: Slug of one of `CLASSES`.
        part: The letter to blame.
        confidence: "proven": the claim held again in two fresh processes; "likely": the evidence is strong, but was
            not or could not be played twice; "hint": a person should look.
        title: The claim in one sentence.
        tasks: Where it was seen.
        trajectory: The ops of the first probe, each with what it gave.
        beside: The same for the other probes, each with its context.
        expected, observed: In words or values, side by side.
        teaches: What a model would learn from it.
        where: File and line, when it was read or raised there.
        seed: Of the audit.
        digest: Of the subject.
        probes, evidence: What plays it again; empty for what was only read.
        subject: What to open.
        replay: The command that does.
        details: What each op of the first probe changed, and why the reward is what it is: see `details.details`.
    """

    check: str
    class_: str
    part: Component
    severity: Severity
    confidence: Confidence
    title: str
    tasks: tuple[str, ...] = ()
    trajectory: list[dict[str, Any]] = []
    beside: list[dict[str, Any]] = []
    expected: Any = None
    observed: Any = None
    teaches: str = ""
    where: str = ""
    seed: int = 0
    digest: str = ""
    probes: tuple[Probe, ...] = ()
    evidence: Evidence | None = None
    subject: Subject | None = None
    replay: str = ""
    details: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.class_ not in CLASSES:
            raise UsageError(f"a finding is of one of the classes {', '.join(CLASSES)}, got {self.class_!r}")

    @property
    def stops(self) -> bool:
        """Whether an environment that has this must not be trained on."""
        return self.severity == "error" and self.confidence == "proven"

    @property
    def key(self) -> str:
        """What is the same for the same fault in two audits: baselines are compared by it."""
        return f"{self.check}/{self.class_}/{self.part}/{self.title}"


class CheckResult(msgspec.Struct, frozen=True, kw_only=True, rename={"class_": "class"}):
    """What became of one check.

    Attributes:
        status: "checked"; "partly": the budget ended it, or some of what it needs is missing; "not_checked".
        reason: Why it was not, or not wholly.
        probes: How many it played.
        looked: How many comparisons it made.
    """

    check: str
    class_: str
    status: Literal["checked", "partly", "not_checked"]
    reason: str = ""
    about: str = ""
    probes: int = 0
    looked: int = 0
    findings: int = 0
    seconds: float = 0.0


def trajectory(record: Record) -> list[dict[str, Any]]:
    """Ops beside what they gave, for people and for JSON."""
    lines: list[dict[str, Any]] = []
    for place, op in enumerate(record.ops):
        seen = record.seen[place] if place < len(record.seen) else OpResult(how="hung", raised=record.died)
        line: dict[str, Any] = {"do": op.do} | ({"on": op.on} if op.on != "a" else {})
        line |= {"name": op.name} if op.name else {}
        line |= {"arguments": op.value} if op.do == "call" else {"value": op.value} if op.value is not None else {}
        line |= {"lanes": [[one.name or one.do for one in lane] for lane in op.lanes]} if op.lanes else {}
        line |= {"observed": shortened(seen.value)} if seen.fine else {seen.how: seen.raised}
        lines.append(line | ({"where": seen.where} if seen.how == "crashed" else {}))
    return lines


def shortened(value: Any, limit: int = 1500) -> Any:
    """A value as it is, or its beginning where it is long."""
    told = str(value)
    return value if len(told) <= limit else f"{told[:limit]}... ({len(told):,} characters)"
