"""Checks logs for future knowledge: a row dated after the solution's own row that states the same content.

Worlds are made from dumps, and a dump is made when everything is over. All other rows of a log lie in the past, so a
row that is later than the one that the solution adds, and states the same, was written by an earlier solver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_list, is_number, parsed
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, reset
from quintain.audit.kernel.registry import relation

from ._data_tables import ROWS, STAMP, Row, Tables, is_id, tables
from ._leak_reading import unique
from ._same_scripts import bare, reads, seems_to_read
from ._same_walks import kinds

KINDS, READS = 4, 8
"""Kinds of tasks that are looked at; reads in each."""
PAST = 4
"""Rows of the past that make a log, for each that is later."""
MAX_KIND_VALUES = 3
"""Most values of a column that tells kinds of rows apart, such as a status."""
TIMES = ("at", "time", "timestamp", "ts", "date", "when", "day")
"""Last words of names of columns that hold a time as a number."""


@relation
def foretold(records: Sequence[Record], evidence: Evidence) -> bool:
    """The log holds what is said later than all else but the like; what the solution adds says it, and is earlier."""
    want: dict[str, Any] = evidence.data
    before, after = (_logs(records[0].at(mark)).get(want["table"], []) for mark in ("before", "after"))
    return any(found == (want["time"], want["says"], want["text"]) for found in _repeated(before, after))


def future(ctx: AuditContext) -> Iterator[Finding | None]:
    """In tasks of each kind, reads before and after the solution."""
    for task in kinds(ctx, KINDS):
        doing = [bare(op) for op in ctx.oracle(task) or ()]
        own = [op for op in doing if op.do == "call" and seems_to_read(ctx, op.name)]
        asked = unique([*own, *reads(ctx, task, READS)])[:READS]
        if not doing or not asked:
            continue
        record = ctx.play(reset(task), *asked, *doing, *asked)
        known = repr([record.seen[0].value, *(op.value for op in doing)])
        ctx.count_comparisons(len(asked))
        for place, op in enumerate(asked if len(record.seen) == len(record.ops) else ()):
            first, last = (_logs(record.seen[at]) for at in (1 + place, len(record.seen) - len(asked) + place))
            for table, rows in last.items():
                for time, says, text in _repeated(first.get(table, []), rows, said=known):
                    if text not in known:
                        data = {"table": table, "time": time, "says": says, "text": text}
                        yield _finding(ctx, op, (reset(task), *doing), data=data)


def _finding(ctx: AuditContext, op: Op, played: Sequence[Op], *, data: dict[str, str]) -> Finding | None:
    start, *doing = played
    return ctx.finding(
        f"{op.name} shows in {data['table']} what the solution will do, dated after it",
        Probe((start, op.marked("before"), *doing, op.marked("after"))), relation=f"{__name__}:foretold",
        marks=("before", "after"), data=data, minimise=0,
        expected="nothing that is later than the moment at which the task begins", observed=data["text"],
        teaches="to read the solution in the log's future",
    )  # fmt: skip


def _logs(seen: OpResult) -> Tables:
    """The tables in an answer that are shown whole."""
    value = parsed(seen.value)
    found = tables({"the answer": value} if is_list(value) else value)
    return {name: rows for name, rows in found.items() if len(rows) < ROWS}


def _repeated(before: Sequence[Row], after: Sequence[Row], *, said: str = "") -> Iterator[tuple[str, str, str]]:
    """Yields (time column, column, text) of earlier content that a new row with an earlier time repeats.

    A time that stands in the prompt and in the agent's calls (`said`) was asked for, and is not a log's.
    """
    known = {repr(row) for row in before}
    for new in (row for row in after if repr(row) not in known):
        for time, moment in new.items():
            later = [row for row in before if _is_time(time, moment) and _is_later(row.get(time), moment)]
            if not later or len(before) < len(later) * (1 + PAST) or str(moment) in said:
                continue
            for says, text in new.items():
                same = [row for row in before if row.get(says) == text]
                if _is_text(says, text) and same and all(row in later and _is_like(row, new, before) for row in same):
                    yield time, says, text


def _is_like(old: Row, new: Row, rows: Sequence[Row]) -> bool:
    """True if two rows differ only in name, time and author, as planned rows do."""
    other_values = [name for name in new if old.get(name) != new[name] and not is_id(name, [])]
    other_values = [name for name in other_values if not _is_time(name, new[name])]
    return len(other_values) <= 1 and all(
        len({repr(row.get(name)) for row in rows}) > MAX_KIND_VALUES for name in other_values
    )


def _is_text(name: str, value: Any) -> bool:
    """True if the value is a text long enough not to recur by accident."""
    return isinstance(value, str) and len(value) >= 8 and not is_id(name, []) and not STAMP.match(value)


def _is_time(name: str, value: Any) -> bool:
    if isinstance(value, str):
        return bool(STAMP.match(value))
    return is_number(value) and name.lower().split("_")[-1] in TIMES


def _is_later(value: Any, moment: Any) -> bool:
    """True if one time is after another of the same format."""
    if isinstance(moment, str):
        return isinstance(value, str) and len(value) == len(moment) and bool(STAMP.match(value)) and value > moment
    return bool(is_number(value) and value > moment)
