"""Checks that a reward is finite, bounded, and the same at a second request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, answer, number, reset, score

from . import _reward_claims as claims
from ._reward_acts import writes_by_name
from ._reward_facts import facts


@check("runtime.reward_well_formed", "reward_hack", needs=("tasks",), value=44)
def reward_well_formed(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the reward is a finite number not above the best, for any text or action."""
    top = 1.0
    texts = ("nan", "inf", "-inf", "1e999", "", "0", "9" * 400, "-1") if "answer" in ctx.offers else ()
    for task in ctx.sample_tasks(3):
        ops = ctx.oracle(task) or ()
        ways: list[tuple[Op, ...]] = [(), ops, (*ops, *ops), *((answer(text),) for text in texts)]
        ways += [(op,) * 6 for op in ops if op.do == "call" and writes_by_name(op)][:3]
        ways += list(_numbers(ops))
        best = facts(ctx)[task].full or 0.0
        top = max(top, best)
        if best > 1.0:
            top = float("inf")
        records = ctx.play_all([solves(task, way) for way in ways])
        for way, record in zip(ways, records, strict=True):
            ctx.count_comparisons()
            if not claims.malformed([record], Evidence(claims.ODD, ("score",), top)):
                continue
            value = record.at("score").value
            yield ctx.finding(
                "the reward is not a finite number" if not _above(record) else "the reward is above the best there is",
                solves(task, way),
                relation=claims.ODD,
                marks=("score",),
                data=top,
                part="V",
                expected=f"a finite number of at most {top:g}",
                observed=value,
                teaches="inputs that break the arithmetic",
            )
            break


def _above(record: Any) -> bool:
    got = number(record.at("score"))
    return got is not None and 1.0 < got < float("inf")


def _numbers(ops: Sequence[Op]) -> Iterator[tuple[Op, ...]]:
    """The solution with a number of its last call made impossible."""
    for place in reversed(range(len(ops))):
        op = ops[place]
        keys = [key for key, value in op.value.items() if is_number(value)] if op.do == "call" else []
        if keys:
            for value in (float("nan"), float("inf"), -1e308):
                changed = msgspec.structs.replace(op, value=op.value | {keys[0]: value})
                yield (*ops[:place], changed, *ops[place + 1 :])
            return


@check("x.score_asked_twice", "reward_hack", needs=("tasks",), value=90)
def score_asked_twice(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a second score request does not raise the score."""
    for task in ctx.sample_tasks(3):
        for ops in ((), (ctx.oracle(task) or ())[:1], ctx.oracle(task) or ()):
            ctx.count_comparisons()
            probe = Probe((reset(task), *ops, score(times=4)))
            if claims.grows([ctx.play_probe(probe)], Evidence(claims.GROWS, ("score",))):
                yield ctx.finding(
                    "the score rises when it is asked for again",
                    probe,
                    relation=claims.GROWS,
                    marks=("score",),
                    part="V",
                    expected="the same score each time",
                    observed=ctx.play_probe(probe).at("score").value,
                    teaches="to request its score often",
                )
                return
