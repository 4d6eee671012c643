"""Checks that a call that is refused has not done a part of its work, by what reads show.

The solution without one of its writes is played, and that write with another argument in its place: then the rows that
it is refused for are there. What the refused call brought must also be what the right call brings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, leaves, parsed
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_words import show, text_of
from ._leak_reading import COMMANDS
from ._same_scripts import bare, in_turn, marked, other_values, seems_to_read
from ._same_walks import kinds, reads_about

TASKS, READS, MAX_CALLS = 4, 4, 12
_TELLS = re.compile(X)
"""Words of an error that tells of a part that was done."""


@relation
def does_a_part(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first call is refused, and reads change as by the good call; another refused call and a read change nothing.

    The records are those of the refused call, the good call, the other refused call and the read.
    """
    refused, good, other, passing = (record.at("call") for record in records)
    if good.is_error or not (refused.is_error and other.is_error) or {refused.how, other.how} - {"", "refused"}:
        return False
    done, right, *nothing = (_brought(record, evidence.data) for record in records)
    is_part = bool(done) and all(right.get(path) == value for path, value in done.items())
    return is_part and not passing.is_error and not any(nothing) and not _TELLS.search(text_of(refused))


def _brought(record: Record, count: int) -> dict[str, str]:
    """Returns the leaves that reads show otherwise after the call, by read and path."""
    was, now = (
        {
            f"{place} {'/'.join(path)}": repr(leaf)
            for place in range(count)
            for path, leaf in leaves(parsed(record.at(f"{word} {place}").value), places=True)
        }
        for word in ("was", "now")
    )
    return {path: leaf for path, leaf in now.items() if was.get(path) != leaf}


@check("x.refused_and_half_done", "races", needs=("oracle", "tools", "tasks"), value=47)
def refused_and_half_done(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a refused call has not done a part of its work."""
    tried, reported = 0, set[str]()
    for task in kinds(ctx, TASKS):
        oracle = tuple(bare(op) for op in ctx.oracle(task) or () if op.do == "call")
        for place, op in enumerate(oracle):
            if op.name in reported or seems_to_read(ctx, op.name) or not is_dict(op.value):
                continue
            tried += 1
            start = (reset(task), *oracle[:place], *oracle[place + 1 :])
            looks = reads_about(ctx, task, start[1:], steps=(op,))[:READS]
            others = list(_others(ctx, op)) if looks else []

            def probe(act: Op, start: Sequence[Op] = start, looks: Sequence[Op] = looks) -> Probe:
                was, now = marked(looks, tag="was "), marked(looks, tag="now ")
                return Probe((*start, *was, act.marked("call"), *now))

            plain = [probe(act) for act in (op, call(op.name), looks[0])] if others else []
            rest = ctx.play_all(plain) if others else []
            ctx.count_comparisons(len(others))
            for other, record in zip(others, ctx.play_all([probe(act) for act in others]), strict=True):
                if does_a_part([record, *rest], Evidence("", data=len(looks))):
                    reported.add(op.name)
                    yield show(
                        ctx, f"{op.name} refuses a call and has done a part of it", does_a_part, probe(other), *plain,
                        data=len(looks), marks=("call",), expected="an error, and everything as it was",
                        observed=text_of(record.at("call"))[:300], teaches="that an error is not an error",
                    )  # fmt: skip
                    break
    if not tried:
        raise NotChecked("no solution writes")


def _others(ctx: AuditContext, op: Op) -> Iterator[Op]:
    """Yields the call with one argument changed; tools that run code may stop anywhere."""
    tool = next((tool for tool in ctx.about.tools if tool.name == op.name), None)
    given: dict[str, Any] = op.value
    if tool is None or any(map(COMMANDS.search, given)):
        return
    found = [(name, one) for name, value in given.items() for one in other_values(ctx, tool, name, value=value)]
    yield from (call(op.name, {**given, name: one}) for name, one in in_turn(found, lambda pair: pair[0])[:MAX_CALLS])
