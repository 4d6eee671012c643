"""Claims about what probes saw: each takes the probes' records and the evidence, and says whether the claim holds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quintain.audit.facts.data import is_list
from quintain.audit.kernel.registry import relation

from .finding import Evidence
from .probe import OVERDUE, OpResult, Record, number, same


@relation
def shows(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the first probe's results at the marks equal those in `data`."""
    expected = {mark: msgspec.convert(seen, OpResult) for mark, seen in evidence.data.items()}
    return all(same(records[0].at(mark), expected[mark], evidence.volatile) for mark in evidence.marks)


@relation
def differs(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the probes' results differ at some mark."""
    pairs = [(records[0].at(mark), other.at(mark)) for other in records[1:] for mark in evidence.marks]
    return any(not same(*pair, evidence.volatile) for pair in pairs)


@relation
def varies(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if an op that was repeated gave more than one value."""
    values = [record.at(mark).value for record in records for mark in evidence.marks]
    pairs = [(OpResult(one), OpResult(value[0])) for value in values if is_list(value) for one in value]
    return any(not same(*pair, evidence.volatile) for pair in pairs)


@relation
def breaks(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the first probe crashes or hangs at the mark as `data` says ("crashed: KeyError", "hung")."""
    seen = records[0].at(evidence.marks[0])
    return bool(breakage(seen) == evidence.data)


def breakage(seen: OpResult) -> str:
    """Returns how an op broke ("crashed: KeyError", "hung"); empty if it did not."""
    broke = f"crashed: {seen.raised.partition(':')[0]}" if seen.how == "crashed" else ""
    return "hung" if seen.how == "hung" else broke


def way_of(seen: OpResult) -> str:
    """Returns a phrase for an op without an answer: it breaks, never returns or ends the process."""
    if seen.how == "crashed":
        return "breaks"
    return "never comes back" if not seen.raised or seen.raised.startswith(OVERDUE) else "takes the process with it"


@relation
def pays(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if every probe scores at least `data` (a number) at the mark."""
    scores = [number(record.at(mark)) for record in records for mark in evidence.marks]
    return all(score is not None and score >= float(evidence.data) - 1e-9 for score in scores)


@relation
def pays_less(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the first probe scores less than `data` (a number) or has no score."""
    score = number(records[0].at(evidence.marks[0]))
    return score is None or score < float(evidence.data) - 1e-9
