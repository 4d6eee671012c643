"""Checks prompts for an example that is the answer, or another task with its answer."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterator, Sequence

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.siblings import solution_runs
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Probe, Record, answer, ask, number, reset, score
from quintain.audit.kernel.registry import probe_function, relation

from ._drift_words import show
from ._leak_splits import CONTENTS

TASKS = 4
"""Tasks of which each, and two at least, has its answer in its prompt."""
ALIKE = 0.6
"""Likeness of two lines that may be drafts of one text."""
LONG = 60
"""Characters of a text that no other text repeats by chance."""
_LESSONS, _KNOWN = 200, 0.7
"""Prompts of the training split that are read, and the share of an answer's words that its own prompt has."""


@relation
def hands_back(records: Sequence[Record], evidence: Evidence) -> bool:
    """Each answer of the first half stands in its task's prompt and is paid; those of other tasks are paid less."""
    half = len(evidence.data)
    said = [next(str(op.value) for op in record.ops if op.do == "answer") for record in records]
    stands = [text in str(record.at("prompt").value) for text, record in zip(said, records, strict=True)]
    least = [*evidence.data, *evidence.data]
    paid = [(number(r.at("score")) or 0.0) >= full - 1e-9 for r, full in zip(records, least, strict=True)]
    return half >= 2 and all(stands[:half]) and all(paid[:half]) and not any(paid[half:])


@check("x.examples_are_no_answers", "leak", needs=("oracle", "answer", "tasks"), value=89)
def example(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the example in a prompt, handed in as it is, is not paid in full."""
    yield _another(ctx)
    yield _foretold(ctx)
    held: dict[str, str] = {}
    full: list[float] = []
    for task in ctx.sample_tasks(TASKS):
        paid = ctx.solution_score(task)
        prompt, ops = str(ctx.play(reset(task, mark="prompt")).at("prompt").value), ctx.oracle(task) or ()
        blocks = _blocks(prompt) or [op.value for op in ops[-1:] if op.do == "answer" and _is_told(prompt, op.value)]
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
            "the example in the prompt is the answer", *probes, relation=f"{__name__}:hands_back", marks=("score",),
            data=full, minimise=0, part="T", expected="an example with values of its own",
            observed=probes[0].ops[1].value, teaches="to copy the example",
        )  # fmt: skip


def _is_told(prompt: str, said: str) -> bool:
    """True if a long answer stands in the prompt beside the facts that it is made of: it is not to be found there.

    Where a line of the rest is like one of the answer, the task may be to choose one of several texts.
    """
    start = prompt.find(said) if len(said) >= LONG else -1
    rest = prompt[:start] + prompt[start + len(said) :]
    facts = {word for word in re.findall(r"\w[\w-]*", said) if len(word) > 1 and re.search(r"\d", word)}
    own, lines = ([line for line in text.splitlines() if len(line) >= LONG // 2] for text in (said, rest))
    is_choice = any(difflib.SequenceMatcher(None, one, line).ratio() > ALIKE for one in own for line in lines)
    return start >= 0 and len(facts) >= 2 and all(fact in rest for fact in facts) and not is_choice


@relation
def hands_over(records: Sequence[Record], evidence: Evidence) -> bool:
    """Text and answer of the first task stand in the other prompts, whose tasks do not pay for it."""
    text, full = evidence.data
    said, shown = str(records[0].ops[1].value), [str(record.at("prompt").value) for record in records]
    own, *rest = [(number(record.at("score")) or 0.0) >= full - 1e-9 for record in records]
    is_there = text in shown[0] and all(text in prompt and said in prompt for prompt in shown[1:])
    return is_there and own and not any(rest)


def _another(ctx: AuditContext) -> Finding | None:
    """Returns a finding for a task that the prompts of all tasks show with its answer."""
    known = [run for run in solution_runs(ctx) if run.ops[-1].do == "answer"]
    common = os.path.commonprefix([run.prompt for run in known])  # noqa: RUF071 (texts, not paths)
    ctx.count_comparisons(len(known))
    own = {run.task: run.prompt[len(common) :].strip() for run in known}
    shown = [run for run in known if len(own[run.task]) >= LONG and own[run.task] in common]
    others = [run.task for run in known if run not in shown][:2]
    for run in shown if 5 * len(shown) <= len(known) else ():  # Else the prompt holds what all tasks are about.
        for text in (*_blocks(common), str(run.ops[-1].value)):
            probes = [Probe((reset(one, mark="prompt"), answer(text), score())) for one in (run.task, *others)]
            data = [own[run.task], run.full]
            if text in common and hands_over(ctx.play_all(probes), Evidence("", data=data)):
                splits = ctx.play_probe(Probe((ask(CONTENTS, mark="contents"),))).at("contents").value
                is_sure = not next(iter(splits or ()), "train").startswith("train")
                return show(
                    ctx, "the prompt shows a task of the audited split with its answer", hands_over, *probes,
                    marks=("prompt", "score"), data=data, part="T", tasks=(run.task,), observed=text,
                    at_most="proven" if is_sure else "likely", expected="an example that is not in this split",
                    teaches="to copy the answer of this task",
                )  # fmt: skip
    return None


@probe_function
def lessons(player: Player, on: str, _value: object) -> list[str]:
    """Returns the prompts of the training split, where that is another one than the audited split."""
    read = getattr(player.adapter(on).subject, "lessons", None)
    return [] if read is None else read(_LESSONS)


@relation
def foretells(records: Sequence[Record], _evidence: Evidence) -> bool:
    """Training prompts show the answer of each task of the first half, which is paid in its own task alone.

    The task's own prompt does not show the answer, but its words: nobody has to learn the answer by heart.
    """
    shown, own = "\n".join(records[0].at("lessons").value), records[1:]
    half, paid = len(own) // 2, [number(record.at("score")) or 0.0 for record in own]
    is_less = all(less < full - 1e-9 for full, less in zip(paid[:half], paid[half:], strict=True))
    return half >= 2 and is_less and all(_is_foretold(record, shown) for record in own[:half])


def _is_foretold(record: Record, shown: str) -> bool:
    prompt, said = str(record.at("prompt").value), str(record.ops[1].value)
    words = set(re.findall(r"\w{4,}", said.casefold()))
    known = words & set(re.findall(r"\w{4,}", prompt.casefold()))
    return len(said) >= LONG and said in shown and said not in prompt and len(known) >= _KNOWN * len(words)


def _foretold(ctx: AuditContext) -> Finding | None:
    """Returns a finding for answers of this split that the prompts of the training split show."""
    asking = Probe((ask(f"{__name__}:lessons", mark="lessons"),))
    runs = [run for run in solution_runs(ctx) if [op.do for op in run.ops] == ["answer"]]
    shown = "\n".join(ctx.play_probe(asking).at("lessons").value) if runs else ""
    runs = [run for run in runs if str(run.ops[0].value) in shown][:TASKS]
    pairs = [*zip(runs, runs, strict=True), *zip(runs, [*runs[1:], *runs[:1]], strict=True)]
    probes = [Probe((reset(one.task, mark="prompt"), answer(other.ops[0].value), score())) for one, other in pairs]
    ctx.count_comparisons(len(runs))
    return show(
        ctx, "prompts of the training split show answers of this split", foretells, asking, *probes,
        marks=("prompt", "score"), part="T", tasks=[run.task for run in runs], observed=runs[0].ops[0].value,
        expected="examples that are the answer of no task in this split", teaches="answers by heart",
    ) if len(runs) >= 2 else None  # fmt: skip


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
