"""Comparison of two plays of one script: the first difference, its kind, and the fewest ops that show it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from quintain import codec
from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import HOME, Op, OpResult, Probe, ProcessContext, Record, masked, same
from quintain.audit.kernel.registry import relation

from ._same_scripts import alone, misses_locale, op_label, parts

UNLIKE = "quintain.audit.checks._same_splits:unlike"
TRIALS = 60
_SPENT = re.compile(r"(elapsed|duration|latency|took|runtime|wall|_ms$|_seconds$|_secs$)", re.IGNORECASE)


class Split(msgspec.Struct, frozen=True):
    """The first place where two plays differ.

    Attributes:
        op: At which.
        path: In its value, such as "rows[2].name"; empty for all of it.
        expected, observed: Values of the first and the second play.
        kind: "order" (of lists only), "duration" (a field that says how long something took), "error", or "content".
    """

    op: Op
    path: str
    expected: Any
    observed: Any
    kind: str

    @property
    def key(self) -> str:
        """Returns the place of the difference, without its values."""
        return f"{op_label(self.op)} {self.path}"


@relation
def unlike(records: Sequence[Record], evidence: Evidence) -> bool:
    """At a mark the first probe came to see something else than the others, which agree with each other."""
    first, *clean = records
    return any(
        apart(first.at(mark), clean[0].at(mark), evidence.volatile) and steady(clean, mark, evidence.volatile)
        for mark in evidence.marks
    )


def steady(records: Sequence[Record], mark: str, volatile: Sequence[str]) -> bool:
    """Equal probes have seen the same at a mark: what differs from them does not differ by chance."""
    return not any(apart(records[0].at(mark), record.at(mark), volatile) for record in records[1:])


def apart(first: OpResult, second: OpResult, volatile: Sequence[str]) -> bool:
    """Both were seen, and they are not the same."""
    return seen(first) and seen(second) and not same(first, second, volatile)


def seen(result: OpResult) -> bool:
    """True if an op ran to an end and was available."""
    return result.how not in ("hung", "absent")


def split(first: Record, second: Record, marks: Sequence[str], *, volatile: Sequence[str] = ()) -> Split | None:
    """The first of these marks at which two records differ; None when they agree."""
    ops = {op.mark: op for op in first.ops if op.mark}
    for mark in marks:
        left, right = first.at(mark), second.at(mark)
        if apart(left, right, volatile):
            return _apart(ops[mark], left, right, volatile=volatile)
    return None


def _apart(op: Op, first: OpResult, second: OpResult, *, volatile: Sequence[str]) -> Split:
    if first.how != second.how:
        return Split(op, "", first.raised or first.value, second.raised or second.value, "error")
    left, right = (read(masked(each.value if each.fine else each.raised, volatile)) for each in (first, second))
    path, here, there = _differ(left, right, "")
    if codec.dumps(_sorted(left), repr) == codec.dumps(_sorted(right), repr):
        return Split(op, path, here, there, "order")
    spent = is_number(here) and is_number(there) and bool(_SPENT.search(path))
    return Split(op, path, here, there, "duration" if spent else "content")


def read(value: Any) -> Any:
    """JSON that an observation holds as text, as the data that it is."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value
    return value


def _differ(first: Any, second: Any, path: str) -> tuple[str, Any, Any]:
    if is_dict(first) and is_dict(second):
        for key in [*first, *(key for key in second if key not in first)]:
            if key not in first or key not in second or _unequal(first[key], second[key]):
                return _differ(first.get(key), second.get(key), f"{path}.{key}" if path else key)
    if is_list(first) and is_list(second):
        for place, (here, there) in enumerate(zip(first, second, strict=False)):
            if _unequal(here, there):
                return _differ(here, there, f"{path}[{place}]")
    return path, first, second


def _unequal(first: Any, second: Any) -> bool:
    return codec.dumps(first, repr) != codec.dumps(second, repr)


def _sorted(value: Any) -> Any:
    if is_dict(value):
        return {key: _sorted(item) for key, item in value.items()}
    if is_list(value):
        return sorted(map(_sorted, value), key=lambda value: codec.dumps(value, repr))
    return value


# --- smaller ---


def fewest(
    ctx: AuditContext, ops: Sequence[Op], keep: Sequence[str], *, holds: Callable[[tuple[Op, ...]], bool],
    trials: int = TRIALS,
) -> tuple[Op, ...]:  # fmt: skip
    """The fewest ops for which a claim holds (ddmin); marks to keep, and resets of the script, stay."""
    kept = tuple(ops)
    size = max(1, len(kept))
    while trials > 0:
        places = [place for place in range(len(kept)) if not _stays(kept, place, keep)]
        chunks = [places[start : start + size] for start in range(0, len(places), size)]
        for chunk in reversed(chunks):
            trials -= 1
            candidate = tuple(op for place, op in enumerate(kept) if place not in set(chunk))
            if trials >= 0 and ctx.seconds_left() > 0 and holds(candidate):
                kept = candidate
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return kept


def _stays(ops: Sequence[Op], place: int, keep: Sequence[str]) -> bool:
    """True if an op is to be kept, or is a reset that starts a later op of its session."""
    op = ops[place]
    following = next((step for step in ops[place + 1 :] if step.on == op.on), None)
    return op.mark in keep or (op.do == "reset" and following is not None and following.do != "reset")


def through(ops: Sequence[Op], target: str) -> tuple[Op, ...]:
    """The ops up to the one with this mark."""
    return tuple(ops[: next(place for place, op in enumerate(ops) if op.mark == target) + 1])


def pair(
    ctx: AuditContext, ops: Sequence[Op], target: str, *, context: ProcessContext = HOME, keep: Sequence[str] = ()
) -> tuple[Probe, Probe, Probe] | None:
    """A small probe that differs at the target from the script alone, which is played twice; None when none does.

    The first has what surrounds the script, and is played in that context; of this the marks `keep` stay.
    """

    def probes(candidate: tuple[Op, ...]) -> tuple[Probe, Probe]:
        return Probe(candidate, context), Probe(alone(candidate))

    evidence, whole = Evidence(UNLIKE, (target,), None, ctx.volatile), through(ops, target)
    first, clean = probes(whole)
    if not ctx.holds((first, clean, clean), evidence):  # Alone it varies, too, or it was an accident.
        return None
    first, clean = probes(fewest(ctx, whole, (target, *keep), holds=lambda some: ctx.holds(probes(some), evidence)))
    return first, clean, clean


def least(
    ctx: AuditContext, ops: Sequence[Op], keep: Sequence[str], *,
    probes: Callable[[tuple[Op, ...]], tuple[Probe, Probe]], evidence: Evidence,
) -> tuple[Probe, Probe] | None:  # fmt: skip
    """The two smallest probes, made of the same ops, for which a claim holds; None when it does not hold."""

    def holds(candidate: tuple[Op, ...]) -> bool:
        return ctx.holds(probes(candidate), evidence)

    whole = tuple(ops)
    return probes(fewest(ctx, whole, keep, holds=holds)) if holds(whole) else None


def differing(ctx: AuditContext, title: str, probes: Sequence[Probe], *, gap: Split, **fields: Any) -> Finding | None:
    """Returns a finding for a result of the first probe that differs from that of the others."""
    given: dict[str, Any] = {"minimise": 0, "expected": gap.expected, "observed": gap.observed} | fields
    return ctx.finding(title, *probes, relation=UNLIKE, marks=(gap.op.mark,), **given)


def by_cause(
    ctx: AuditContext, title: str, script: Sequence[Op], *, gap: Split, context: ProcessContext, **fields: Any
) -> Finding | None:
    """Returns a finding for a result that depends on the process, with the one difference that causes it."""
    if misses_locale(context, gap.expected, gap.observed):
        return None
    for words, part in (*parts(context), ("the process", context)):
        if probes := pair(ctx, script, gap.op.mark, context=part):
            return differing(ctx, f"{title} depends on {words}", probes, gap=gap, **fields)
    return None


def wavers(ctx: AuditContext, ops: Sequence[Op], target: str) -> bool:
    """True if a script gives different results in equal processes."""
    probe = Probe(tuple(ops))
    evidence = Evidence(UNLIKE, (target,), None, ctx.volatile)
    return ctx.holds((probe, probe), evidence) or ctx.holds((probe, probe), evidence, fresh=True)
