"""Claims about reads around a write: old, late, of another order, or of another call."""

from __future__ import annotations

from collections.abc import Sequence

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.finding import Evidence
from quintain.audit.kernel.probe import Op, OpResult, Record
from quintain.audit.kernel.registry import relation

from ._same_splits import apart, seen, steady

HERE = f"{__name__}:"
"""Module prefix of the relations below."""


@relation
def stale(records: Sequence[Record], evidence: Evidence) -> bool:
    """With a read before the write, the read after it gives what it gave before; without, it gives something else.

    Marks: the read before, the write, the read after. The second probe has no read before. Both writes worked.
    """
    warm, cold = records[:2]
    before, write, after = evidence.marks
    if not steady(records[1:], after, evidence.volatile) or any(record.at(write).is_error for record in records):
        return False
    old, new = warm.at(before), warm.at(after)
    if not tells(next(op for op in warm.ops if op.mark == after), new):
        return False
    return seen(old) and not apart(old, new, evidence.volatile) and apart(new, cold.at(after), evidence.volatile)


@relation
def moved(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if reads before and after a write, in either order, end in one world and two answers.

    Marks: the write, the read that differs, the state at the end.
    """
    warm, control = records[:2]
    write, after, world = evidence.marks
    if not steady(records[1:], after, evidence.volatile) or any(
        record.at(write).is_error or not record.at(world).fine for record in records
    ):
        return False
    if any(apart(warm.at(mark), control.at(mark), evidence.volatile) for mark in (write, world)):
        return False
    return apart(warm.at(after), control.at(after), evidence.volatile)


@relation
def kept_old(records: Sequence[Record], evidence: Evidence) -> bool:
    """A read after a write gives what it gives without the write, and something else once the state was restored."""
    restored, soon, old = (record.at(evidence.marks[0]) for record in records)
    is_old = seen(old) and not apart(soon, old, evidence.volatile) and not soon.is_error
    return is_old and not restored.is_error and apart(restored, soon, evidence.volatile)


@relation
def late(records: Sequence[Record], evidence: Evidence) -> bool:
    """A read gives the old answer right after a write, and another one when only time has passed.

    Marks: the answer without the write, the write, the read right after it, the read later. The second probe is the
    same without the waiting, and its later read still gives the old answer: it is time that counts, not the reads.
    """
    waited, hurried = records
    before, write, soon, later = evidence.marks
    if any(record.at(write).is_error for record in records):
        return False
    old = waited.at(before)
    still = (waited.at(soon), hurried.at(later))
    return (
        seen(old)
        and all(not apart(old, result, evidence.volatile) for result in still)
        and apart(old, waited.at(later), evidence.volatile)
    )


@relation
def mistaken(records: Sequence[Record], evidence: Evidence) -> bool:
    """A read gives what another read gave before it, and not what it gives by itself; the worlds are the same.

    Marks: the other read (in the first probe alone), the read, and where there is one the state at the end.
    """
    mixed, alone = records[:2]
    first, second, *world = evidence.marks
    if not steady(records[1:], second, evidence.volatile) or any(
        apart(mixed.at(mark), alone.at(mark), evidence.volatile) for mark in world
    ):
        return False
    right, left = mixed.at(first), mixed.at(second)
    if any(not each.fine or each.is_error for each in (right, left)):
        return False
    return not apart(right, left, evidence.volatile) and apart(left, alone.at(second), evidence.volatile)


def tells(op: Op, answer: OpResult) -> bool:
    """True if an op answers, or refuses because of its arguments; an ended episode refuses everything."""
    words = [str(argument) for argument in op.value.values() if argument not in ("", None)] if is_dict(op.value) else []
    return not answer.is_error or any(word in f"{answer.value} {answer.raised}" for word in words)
