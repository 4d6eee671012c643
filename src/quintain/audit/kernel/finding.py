"""Findings with all data that replaying them needs, and results of checks."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from quintain import codec
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
"""The thirteen classes in order, with their names for people."""

MENDS = {
    "stale_cache": "Read from the state that the write changed, or drop the cached value at each write.",
    "reward_hack": "Score the state that the task asks for, not the act; keep these steps as a test with score 0.",
    "false_resolution": "Score the state at the end, so that a claim without the requested write gets nothing.",
    "silent_default": "Return an error that names the wrong or missing value, instead of a default.",
    "reset_leak": "Make all state in reset, from task and seed; keep none in classes, modules, files or sets' order.",
    "reward_clipping": "Compute the score without a rounding or a bound that makes different results equal.",
    "data_realism": "Generate data with the spread, the gaps and the relations of production's data.",
    "action_drift": "Make the tool's schema, description and behaviour agree with each other and with production's.",
    "races": "Guard shared state by a lock or a transaction; turn exceptions into errors that the agent can read.",
    "judge": "Give the judge facts and the agent's words as separate, marked data; keep this reply as a test.",
    "leak": "Remove the answer from all that the agent can read: prompts, results, names, order, error messages.",
    "unsolvable": "Make the task solvable by the tools and facts that the agent gets, and keep a solution as a test.",
    "flaky_verifier": "Score the final state alone, without clock, random draws or the order of sets.",
}
"""Advice on how to fix a bug of each class; a check can give a finding its own advice."""

Severity = Literal["error", "warning", "note"]
Confidence = Literal["proven", "likely", "hint"]
Status = Literal["checked", "partly", "not_checked"]
SEVERITIES, CONFIDENCES = ("error", "warning", "note"), ("proven", "likely", "hint")  # both in order, the worst first


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """Claim that probes support: a registered relation, which maps their records and this evidence to True or False.

    Attributes:
        marks: Ops that the relation reads.
        volatile: Fields that comparisons ignore.
        tries: Number of plays of which one must show a claim about chance or threads.
    """

    relation: str
    marks: tuple[str, ...] = ()
    data: Any = None
    volatile: tuple[str, ...] = ()
    tries: int = 1


class Symptom(msgspec.Struct, frozen=True, rename={"class_": "class"}):
    """Further finding of the same cause, in short."""

    name: str
    check: str
    class_: str
    severity: Severity
    confidence: Confidence
    title: str


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename={"class_": "class"}):
    """One bug of the subject.

    Attributes:
        check: Id of the check.
        class_: Slug of one of `CLASSES`.
        part: Component to blame.
        confidence: "proven": the claim held again in two fresh processes; "likely": the evidence is strong but was not
            or could not be played twice; "hint": a person should look.
        title: The claim in one sentence.
        tasks: Tasks in which it was seen.
        trajectory: Ops of the first probe, each with its result.
        beside: Trajectories of the other probes, each with its context.
        expected, observed: Words or values, side by side.
        teaches: What a model would learn from the bug.
        mend: One line on how to mend it; by default that of the class.
        where: File and line of the bug, or of the tool or scoring function that shows it.
        seed: Seed of the audit.
        digest: Digest of the subject.
        probes, evidence: Data for a replay; empty for static findings.
        subject: Subject to load.
        replay: Command that replays the finding.
        details: State changes per op and reasons of the score; see `details.details`.
        accepted: Reason and date, if the author has accepted the finding.
        symptoms: Further findings of the same cause, where findings are grouped.
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
    mend: str = ""
    where: str = ""
    seed: int = 0
    digest: str = ""
    probes: tuple[Probe, ...] = ()
    evidence: Evidence | None = None
    subject: Subject | None = None
    replay: str = ""
    details: dict[str, Any] = {}
    accepted: str = ""
    symptoms: tuple[Symptom, ...] = ()

    def __post_init__(self) -> None:
        if self.class_ not in CLASSES:
            raise UsageError(f"a finding is of one of the classes {', '.join(CLASSES)}, got {self.class_!r}")
        if not self.mend:
            msgspec.structs.force_setattr(self, "mend", MENDS[self.class_])

    @property
    def stops(self) -> bool:
        """True if the finding is a proven error that nobody accepted: the environment must not be trained on."""
        return self.severity == "error" and self.confidence == "proven" and not self.accepted

    @property
    def name(self) -> str:
        """Returns the name of the bug across audits: its check, and a digest of its claim without numbers."""
        words = re.sub(r"0x[0-9a-f]+|(?<![\w.])\d[\d.,]*", "#", self.title)
        relation = self.evidence.relation if self.evidence is not None else ""
        return f"{self.check}-{codec.digest(codec.dumps((self.class_, words, relation)))[:8]}"

    @property
    def key(self) -> str:
        """Returns the identity of the bug within one audit."""
        return f"{self.check}/{self.class_}/{self.part}/{self.title}"


class CheckResult(msgspec.Struct, frozen=True, kw_only=True, rename={"class_": "class"}):
    """Result of one check."""

    check: str
    class_: str
    status: Status  # "partly": it ended early, but found something or compared something
    reason: str = ""  # why the check is not, or only partly, done
    unfinished: bool = False  # true if the budget, a broken subject or an error of the check ended it, or left it out
    about: str = ""
    probes: int = 0  # number of probes played, without those that checks share
    looked: int = 0  # number of comparisons
    findings: int = 0
    seconds: float = 0.0


def trajectory(record: Record) -> list[dict[str, Any]]:
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
    """Returns a value, or the beginning of its text if that is long."""
    text = str(value)
    return value if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters)"
