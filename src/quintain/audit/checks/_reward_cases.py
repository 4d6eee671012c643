"""Checks labelled cases of a scoring function: each gets the score that its author declares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quintain.audit.facts.data import is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Probe, answer, ask, number
from quintain.audit.kernel.registry import probe_function

_SLACK = 0.011
"""Expected scores are often written with two digits."""


@check("x.labelled_cases", "reward_hack", needs=("cases", "answer", "tasks"), value=100)
def labelled_cases(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that labelled cases get their scores: a wrong answer no more, and a right one no less."""
    seen = ctx.play_probe(Probe((ask("quintain.audit.checks._reward_cases:listed"),))).at("ask")
    cases: list[Any] = seen.value or []
    known = [case for case in cases if is_number(case["expected"]) and case["task"] in ctx.tasks]
    if not known:
        raise ctx.not_checked("no case says what its score should be")
    records = ctx.play_all([solves(item["task"], (answer(item["answer"]),)) for item in known])
    over: list[tuple[Any, float]] = []
    under: list[tuple[Any, float]] = []
    for item, record in zip(known, records, strict=True):
        ctx.count_comparisons()
        paid = number(record.at("score"))
        if paid is not None and abs(paid - item["expected"]) > _SLACK:
            (over if paid > item["expected"] else under).append((item, paid))
    yield _wrong(ctx, over, "a wrong answer is paid more than its case says", relation="pays") if over else None
    said = "a right answer is paid less than its case says"
    yield _wrong(ctx, under, said, relation="pays_less", class_="unsolvable") if under else None


def _wrong(ctx: AuditContext, found: list[tuple[Any, float]], title: str, **stated: Any) -> Finding | None:
    item, paid = found[0]
    return ctx.finding(
        title,
        solves(item["task"], (answer(item["answer"]).marked("said"),)),
        marks=("score",),
        data=paid if stated["relation"] == "pays" else item["expected"],
        minimise=0,
        part="V",
        tasks=[each["task"] for each, _ in found],
        expected=item["expected"],
        observed=paid,
        teaches="the scorer's habits in place of the answer",
        **stated,
    )


@probe_function
def listed(player: Player, on: str, _value: Any) -> Any:
    """In the child: the cases."""
    return player.adapter(on).subject.cases()
