"""Checks by reads that a refused call does nothing, and that a paid write has an effect.

The solution without one of its writes is played, and that write with another argument in its place. What a refused call
brought must also be what the right call brings; what a paid write does not move, a smaller number must move.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.acts import is_bookkeeping
from quintain.audit.facts.data import is_dict, is_number, leaves, parsed
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, number, reset, score, text_of
from quintain.audit.kernel.registry import relation

from ._drift_words import show
from ._leak_reading import COMMANDS
from ._same_scripts import bare, in_turn, marked, other_values, seems_to_read
from ._same_walks import kinds, reads_about

TASKS, READS, MAX_CALLS, SMALL = 4, 4, 12, 3
_TELLS = re.compile(r"partial|so far|stopp|abort|skipp|\bof \d|already (done|sent|made)|\brest\b", re.IGNORECASE)
"""Words of an error that tells of a part that was done."""


def _leaves(record: Record, word: str, count: int) -> dict[str, Any]:
    """Returns the leaves that the reads before ("was") or after ("now") a call show, by read and path."""
    every = ((place, leaves(parsed(record.at(f"{word} {place}").value), places=True)) for place in range(count))
    return {f"{place} {'/'.join(path)}": leaf for place, found in every for path, leaf in found}


def _around(start: Sequence[Op], act: Op, looks: Sequence[Op]) -> Probe:
    """Returns a probe of a call between reads."""
    return Probe((*start, *marked(looks, tag="was "), act.marked("call"), *marked(looks, tag="now "), score()))


@relation
def does_a_part(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first call is refused, and reads change as by the good call; another refused call and a read change nothing.

    The records are those of the refused call, the good call, the other refused call and the read.
    """
    refused, good, other, passing = (record.at("call") for record in records)
    if good.is_error or not (refused.is_error and other.is_error) or {refused.how, other.how} - {"", "refused"}:
        return False
    done, right, *nothing = (_brought(record, evidence.data) for record in records)
    was = _leaves(records[0], "was", evidence.data)
    filled = [path for path in done if was.get(path) in ("", None)]  # What moves until it is stopped fills nothing.
    is_part = len(filled) > 1 and all(right.get(path) == value for path, value in done.items())
    return is_part and not passing.is_error and not any(nothing) and not _TELLS.search(text_of(refused))


def _brought(record: Record, count: int) -> dict[str, str]:
    """Returns the leaves that reads show otherwise after the call."""
    was, now = (_leaves(record, word, count) for word in ("was", "now"))
    return {path: repr(leaf) for path, leaf in now.items() if repr(was.get(path)) != repr(leaf)}


@relation
def stands_still(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first write is paid and moves nothing of what the second moves, with the same answer.

    The third record is the solution without the write, which is paid less.
    """
    paid, small, without = records
    count, name, full = evidence.data
    scores = [number(record.at("score")) or 0.0 for record in (paid, without)]
    by = next(op.value[name] for op in small.ops if op.mark == "call")
    here, there = ([_leaves(record, word, count) for word in ("was", "now")] for record in (paid, small))
    moved = [path for path, old in there[0].items() if _is_apart(old, there[1].get(path), by)]
    still = all(path in here[0] and repr(here[0][path]) == repr(here[1].get(path)) for path in moved)
    is_done = not paid.at("call").is_error and paid.at("call").value == small.at("call").value
    return bool(moved) and still and is_done and scores[0] >= full - 1e-9 > scores[1]


def _is_apart(old: Any, new: Any, by: float) -> bool:
    return is_number(old) and is_number(new) and abs(abs(new - old) - by) <= 1e-9 * max(1, by)


@check("x.refused_and_half_done", "races", needs=("oracle", "tools", "tasks"), value=47)
def refused_and_half_done(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a refused call has not done a part of its work."""
    reported = set[str]()
    for task in kinds(ctx, TASKS):
        oracle = tuple(bare(op) for op in ctx.oracle(task) or () if op.do == "call")
        for place, op in enumerate(oracle):
            if op.name in reported or seems_to_read(ctx, op.name) or not is_dict(op.value):
                continue
            start = (reset(task), *oracle[:place], *oracle[place + 1 :])
            # A log of attempts holds refused ones, too.
            every = reads_about(ctx, task, start[1:], steps=(op,))
            looks = [one for one in every if not is_bookkeeping((one.name,))][:READS]
            others = list(_others(ctx, op)) if looks else []
            plain = [_around(start, act, looks) for act in (op, call(op.name), looks[0])] if others else []
            probes, rest = [_around(start, act, looks) for act in others], ctx.play_all(plain)
            ctx.count_comparisons(len(others))
            for probe, record in zip(probes, ctx.play_all(probes), strict=True):
                if does_a_part([record, *rest], Evidence("", data=len(looks))):
                    reported.add(op.name)
                    yield show(
                        ctx, f"{op.name} refuses a call and has done a part of it", does_a_part, probe, *plain,
                        data=len(looks), expected="an error, and everything as it was",
                        observed=text_of(record.at("call"))[:300], teaches="that an error is not an error",
                    )  # fmt: skip
                    break


@check("x.paid_and_not_moved", "false_resolution", needs=("oracle", "tools", "tasks"), value=48)
def paid_and_not_moved(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a write that is paid for moves what the same write moves with a smaller number."""
    for task in ctx.sample_tasks(TASKS):
        oracle, full = tuple(map(bare, ctx.oracle(task) or ())), ctx.solution_score(task)
        numbers = [(place, name, value) for place, name, value in _numbers(oracle) if full]
        for place, name, value in [row for row in numbers if not seems_to_read(ctx, oracle[row[0]].name)]:
            op, start = oracle[place], (reset(task), *oracle[:place])
            small = call(op.name, {**op.value, name: type(value)(SMALL)})
            looks = reads_about(ctx, task, start[1:], steps=(small,))[:READS]
            rest, probes = oracle[place + 1 :], [_around(start, act, looks) for act in (op, small)]
            first, without = (Probe((*ops, *rest, score())) for ops in (probes[0].ops[:-1], start))
            probes, data = [first, probes[1], without], [len(looks), name, full]
            ctx.count_comparisons()
            if looks and stands_still(ctx.play_all(probes), Evidence("", data=data)):
                yield show(
                    ctx, f"{op.name} says that it is done and is paid for, but moves nothing", stands_still, *probes,
                    data=data, marks=("call", "score"), expected=f"what {name}={SMALL} moves, moved by {value}",
                    observed="the same answer, and everything as it was", teaches="to do what has no effect",
                )  # fmt: skip
                return


def _numbers(oracle: Sequence[Op]) -> Iterator[tuple[int, str, Any]]:
    calls = ((place, op.value) for place, op in enumerate(oracle) if op.do == "call" and is_dict(op.value))
    for place, given in calls:
        yield from ((place, name, value) for name, value in given.items() if is_number(value) and value > SMALL)


def _others(ctx: AuditContext, op: Op) -> Iterator[Op]:
    """Yields the call with one argument changed; tools that run code may stop anywhere."""
    tool = next((tool for tool in ctx.about.tools if tool.name == op.name), None)
    given: dict[str, Any] = op.value
    if tool is None or any(COMMANDS.search(name) for name in given if name != "source"):  # Money has a source, too.
        return
    found = [(name, one) for name, value in given.items() for one in other_values(ctx, tool, name, value=value)]
    yield from (call(op.name, {**given, name: one}) for name, one in in_turn(found, lambda pair: pair[0])[:MAX_CALLS])
