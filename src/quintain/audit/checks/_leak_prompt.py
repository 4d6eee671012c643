"""Checks prompts for an example that is the answer: the only JSON object in it, handed in, is paid in full."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Probe, Record, answer, number, reset, score
from quintain.audit.kernel.registry import relation

TASKS = 4
"""Tasks of which each, and two at least, has its answer in its prompt."""


@relation
def hands_back(records: Sequence[Record], evidence: Evidence) -> bool:
    """Each answer of the first half stands in its task's prompt and is paid; those of other tasks are paid less."""
    half = len(evidence.data)
    said = [next(str(op.value) for op in record.ops if op.do == "answer") for record in records]
    stands = [text in str(record.at("prompt").value) for text, record in zip(said, records, strict=True)]
    least = [*evidence.data, *evidence.data]
    paid = [(number(r.at("score")) or 0.0) >= full - 1e-9 for r, full in zip(records, least, strict=True)]
    return half >= 2 and all(stands[:half]) and all(paid[:half]) and not any(paid[half:])


@check("x.examples_are_no_answers", "leak", needs=("oracle", "answer", "tasks"), value=84)
def example(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the example in a prompt, handed in as it is, is not paid in full."""
    held: dict[str, str] = {}
    full: list[float] = []
    for task in ctx.sample_tasks(TASKS):
        paid = ctx.solution_score(task)
        blocks = _blocks(str(ctx.play(reset(task, mark="prompt")).at("prompt").value))
        if paid and len(blocks) == 1:
            held[task] = blocks[0]
            full.append(paid)
        elif paid:
            return  # Of several objects the right one may be asked for.
    ctx.count_comparisons(len(held))
    texts = list(held.values())
    pairs = [*held.items(), *zip(held, [*texts[1:], *texts[:1]], strict=True)]
    probes = [Probe((reset(task, mark="prompt"), answer(text), score())) for task, text in pairs]
    if len(held) >= 2 and hands_back(ctx.play_all(probes), Evidence("", data=full)):
        yield ctx.finding(
            "the example in the prompt is the answer",
            *probes,
            relation=f"{__name__}:hands_back",
            marks=("score",),
            data=full,
            minimise=0,
            part="T",
            expected="an example with values of its own",
            observed=probes[0].ops[1].value,
            teaches="to copy the example",
        )


def _blocks(text: str) -> list[str]:
    """Returns the JSON objects with several fields in a text, with the fence around them."""
    found: list[str] = []
    end = 0
    for start in (place for place, sign in enumerate(text) if sign == "{"):
        try:
            value, stop = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            continue
        if start >= end and is_dict(value) and len(value) >= 2:
            end = stop
            found.append(_fenced(text, start, stop))
    return found


def _fenced(text: str, start: int, stop: int) -> str:
    before, after = text.rfind("```", 0, start), text.find("```", stop)
    is_fenced = before >= 0 and after >= 0 and not text[before:start].partition("\n")[2].strip()
    return text[before : after + 3] if is_fenced and not text[stop:after].strip() else text[start:stop]
