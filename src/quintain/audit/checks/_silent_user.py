"""Checks a failing simulated-user model: the episode must not continue with made-up user text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record
from quintain.audit.kernel.registry import relation

SAYS = "Yes, please go on. (zq7)"
"""A text that no harness says by itself."""


@check("x.user_faults", "silent_default", needs=("user", "tasks"), value=89)
def user_faults(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an episode breaks, and does not go on, when the simulated user's model fails."""
    for task in ctx.sample_tasks(3):
        if not _speaks(ctx, task):
            continue
        for said in ("Hello. What can I do for you?", "I have done it."):
            ctx.count_comparisons()
            op = Op("user", name=task, value={"said": said, "raises": "timed out"}, mark="user")
            probe = Probe((op,))
            record = ctx.play_probe(probe)
            if made_up([record], Evidence("", ("user",))):
                yield ctx.finding(
                    "the user goes on speaking though his model never answered",
                    probe,
                    relation=f"{__name__}:made_up",
                    marks=("user",),
                    part="H",
                    tasks=[task],
                    expected="no words: None, or an exception, and an episode that does not count",
                    observed=_words(record),
                    teaches="to talk to a user who is not there",
                )
                return


def _speaks(ctx: AuditContext, task: str) -> bool:
    """True if a simulated user takes its words from a model."""
    seen = ctx.play(Op("user", name=task, value={"said": "Hello.", "says": SAYS}, mark="user")).at("user")
    return seen.fine and is_dict(seen.value) and bool(seen.value["asked"])


@relation
def made_up(records: Sequence[Record], evidence: Evidence) -> bool:
    """The model was asked and raised, and there are words of the user all the same."""
    seen = records[0].at(evidence.marks[0])
    return seen.fine and is_dict(seen.value) and bool(seen.value["asked"]) and bool(_words(records[0]))


def _words(record: Record) -> Any:
    value = record.at("user").value
    return value.get("replied") if is_dict(value) else None
