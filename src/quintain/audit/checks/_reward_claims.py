"""Relations of the reward checks on records: each relation states the fault itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, is_number, parsed
from quintain.audit.kernel.finding import Evidence
from quintain.audit.kernel.probe import Record, number, same
from quintain.audit.kernel.registry import relation

from ._reward_acts import at

PAID = "quintain.audit.checks._reward_claims:paid_anyway"
ODD = "quintain.audit.checks._reward_claims:malformed"
GROWS = "quintain.audit.checks._reward_claims:grows"
LOSES = "quintain.audit.checks._reward_claims:loses"
LONGER = "quintain.audit.checks._reward_claims:longer_than_allowed"
CONTRADICTS = "quintain.audit.checks._reward_claims:contradicts"
SILENT = "quintain.audit.checks._reward_claims:says_nothing"


@relation
def paid_anyway(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe is paid `full` at "score", though something that the task needs is not so.

    Data:
        full: The pay.
        lacks: [[path, value], ...]: what the state at "state", or what a tool shows of it there, does not hold; one of
            them at least.
        has: [[path, value], ...]: what it does hold, all of it.
        done: Marks of ops that must have worked.
    """
    wanted: dict[str, Any] = evidence.data
    record = records[0]
    got = number(record.at("score"))
    if got is None or not got >= wanted["full"] - 1e-9:
        return False
    if any(record.at(mark).is_error for mark in wanted.get("done", ())):
        return False
    lacks, has = wanted.get("lacks", ()), wanted.get("has", ())
    if not lacks and not has:
        return True
    end = record.at("state")
    world = parsed(end.value)
    missing = not lacks or any(at(world, path) != value for path, value in lacks)
    return end.fine and missing and all(at(world, path) == value for path, value in has)


@relation
def malformed(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the first probe's score is not a finite number, or is above `data`."""
    seen = records[0].at("score")
    value: Any = seen.value.get("score") if is_dict(seen.value) else seen.value
    if not seen.fine or value is None:
        return False
    return not is_number(value) or not math.isfinite(value) or value > float(evidence.data) + 1e-9


@relation
def grows(records: Sequence[Record], evidence: Evidence) -> bool:
    """Scores that were asked for several times in a row, nothing done between, go up."""
    values: list[Any] = records[0].at(evidence.marks[0]).value or []
    scores = [value.get("score") if is_dict(value) else value for value in values]
    numbers = [item for item in scores if is_number(item)]
    return len(numbers) == len(scores) and any(after > before + 1e-9 for before, after in itertools.pairwise(numbers))


@relation
def loses(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe, in which no call failed, is paid less than `data`; the second, which does the same, is not."""
    first, second = number(records[0].at("score")), number(records[1].at("score"))
    full = float(evidence.data)
    worked = all(
        not seen.is_error
        for record in records
        for op, seen in zip(record.ops, record.seen, strict=False)
        if op.do in ("call", "answer")
    )
    return worked and first is not None and second is not None and first < full - 1e-9 and second >= full - 1e-9


@relation
def contradicts(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a solution reads the same in both tasks and is paid only in its own."""
    abroad, home, other_record = records
    mark, *said = evidence.marks
    alike = all(same(abroad.at(text), home.at(text), evidence.volatile) for text in said)
    lost, paid, right = (number(record.at(mark)) for record in (abroad, home, other_record))
    worked = not any(seen.is_error for seen in abroad.seen[1:-1])
    return (
        worked
        and alike
        and lost is not None
        and paid is not None
        and right is not None
        and lost < min(paid, right) - 1e-9
    )


@relation
def longer_than_allowed(records: Sequence[Record], evidence: Evidence) -> bool:
    """The oracle at the mark has more calls than `data`."""
    ops: Any = records[0].at(evidence.marks[0]).value
    return is_list(ops) and sum(1 for op in ops if is_dict(op) and op.get("do") == "call") > int(evidence.data)


@relation
def says_nothing(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the op at each mark gave an empty result."""
    seen = [records[0].at(mark) for mark in evidence.marks]
    return all(
        result.fine and (result.value is None or not str(result.value).strip() or result.value in ({}, []))
        for result in seen
    )


@relation
def loses_by_seed(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe, a solution under another seed, is paid less than `data` or nothing; the second is paid that."""
    first, second = (number(record.at("score")) for record in records)
    full = float(evidence.data)
    return (first is None or first < full - 1e-9) and second is not None and second >= full - 1e-9


@relation
def pays_by_seed(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe, nothing under another seed, is paid `data` or more; the second is paid less."""
    first, second = (number(record.at("score")) for record in records)
    full = float(evidence.data)
    return first is not None and first >= full - 1e-9 and second is not None and second < full - 1e-9
