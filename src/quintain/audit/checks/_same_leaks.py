"""Findings for scripts whose surroundings change their results, with the fewest ops, and a pause if time matters.

On a busy machine an episode may be delayed so long that background work of another one ends during it. That shows once
and not again, so a difference that is not proven must not hide one that would be; and where calls only let time pass, a
pause does so however fast they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe

from ._same_scripts import op_label
from ._same_splits import Split, differing, pair, split

TEACHES = "behavior that fails in the next episode: the same actions have other results"
MAX_FINDINGS = 2
"""Findings of one check: more of them say no more."""
TRIES, TRIES_IN_ALL = 3, 12
"""Times that one difference, and that any, may turn out to be an accident."""
PAUSE = Op("wait", value=0.3, mark="step pause")
"""Real seconds in which what an episode before began in the background may end."""


class ReportedDifferences:
    """Differences that a check has reported, and the number of those that could not be reproduced."""

    def __init__(self) -> None:
        self._reported: set[str] = set()
        self._accidents: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._reported)

    def wants(self, key: str, *, patient: bool = False) -> bool:
        """True if a difference is worth proving; one that was seen after a pause (`patient`) is not an accident."""
        if len(self._reported) >= MAX_FINDINGS or key in self._reported:
            return False
        return patient or (self._accidents[key] < TRIES and self._accidents.total() < TRIES_IN_ALL)

    def tried(self, key: str, finding: Finding | None) -> Finding | None:
        """Keep what became of it."""
        if finding is None:
            self._accidents[key] += 1
        else:
            self._reported.add(key)
        return finding


def first_unlike(
    ctx: AuditContext, task: str, own_ops: Sequence[Op], *, ways: Iterable[tuple[str, tuple[Op, ...]]],
    found: ReportedDifferences,
) -> Iterator[Finding | None]:  # fmt: skip
    """Yields findings for the surroundings that change a script."""
    every = list(ways)
    clean, *records = ctx.play_all([Probe(tuple(own_ops)), *(Probe(ops) for _, ops in every)])
    for (after, ops), record in zip(every, records, strict=True):
        ctx.count_comparisons()
        gap = split(clean, record, [op.mark for op in own_ops], volatile=ctx.volatile)
        if gap is not None and found.wants(gap.key, patient=PAUSE in ops):
            yield found.tried(gap.key, _leak(ctx, task, ops, gap=gap, after=after))


def _leak(ctx: AuditContext, task: str, ops: Sequence[Op], *, gap: Split, after: str) -> Finding | None:
    """The finding that a marked op sees something else among these ops than in the script alone; None by accident."""
    best: Finding | None = None
    for probes, moment in _proofs(ctx, ops, gap.op.mark):
        title = f"{what(gap)} is another one {moment}{after}"
        finding = differing(ctx, title, probes, gap=gap, tasks=(task,), teaches=TEACHES)
        if finding is not None and finding.confidence == "proven":
            return finding
        best = best or finding
    return best


def _proofs(ctx: AuditContext, ops: Sequence[Op], target: str) -> Iterator[tuple[Sequence[Probe], str]]:
    """Ways to prove it, with what is said of when it shows; the best first."""
    keep = ("kept", "back", PAUSE.mark)  # What was kept and gone back to stays in the proof.
    probes = pair(ctx, ops, target, keep=keep)
    if probes is None:
        return
    least = probes[0].ops
    if PAUSE in least:
        yield probes, "a moment "
        return
    calm = _calm(least)
    if len(calm) > len(least):
        yield probes, ""
    # What the script did before may only have let time pass, and chance decides how much.
    paused = pair(ctx, calm, target, keep=keep)
    if paused is not None:
        yield paused, "a moment "
    if len(calm) <= len(least):
        yield probes, ""


def _calm(ops: Sequence[Op]) -> tuple[Op, ...]:
    """The same with a pause before the last op, in place of what the script did since its reset."""
    *before, last = ops
    begun = max((place for place, op in enumerate(before) if op.mark and op.do == "reset"), default=-1)
    kept = [op for place, op in enumerate(before) if place <= begun or not op.mark.startswith("step ")]
    return (*kept, PAUSE, last)


def what(gap: Split) -> str:
    """Returns a description of a difference: "get_order: lines[0].price"."""
    where = f"{op_label(gap.op)}: {gap.path}" if gap.path else f"what {op_label(gap.op)} gives"
    return f"the order in {where}" if gap.kind == "order" else where
