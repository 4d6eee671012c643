"""Provenance: what a solution names must be there to be found: in the prompt, a schema, or something that was read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain import codec
from quintain.audit.check import check
from quintain.audit.finding import Finding
from quintain.audit.generate import valid
from quintain.audit.lab import Lab
from quintain.audit.probe import Op, Probe, call, reset

from ._reward_acts import reads_by_name, scalars
from ._reward_runs import Solved, solve

_NAME = re.compile(r"(?=.*\d)[\w.+:/#-]{4,}|[\w.+-]+@[\w-]+\.[\w.]+")
"""Ids, and addresses: what nobody makes up. Plain numbers and dates can be worked out."""
_DATE = re.compile(r"\d{1,4}[-/.:]\d{1,2}([-/.:T].*)?|\d+([.,]\d+)?%?")


@check("x.provenance", "unsolvable", needs=("oracle", "tasks", "tools"), value=58, severity="warning")
def provenance(lab: Lab) -> Iterator[Finding | None]:
    """Each id that the solution uses can be found by the agent before it is used."""
    gone: dict[tuple[str, str], list[tuple[Solved, Any]]] = {}
    for one in solve(lab, lab.some(5)):
        missing = list(_unseen(one, _given(lab, one)))
        lab.looking()
        if not missing:
            continue
        more = _looked_up(lab, one)
        for op, key, value in missing:
            if _plain(value) not in more:
                gone.setdefault((op.name, key), []).append((one, value))
    for (tool, key), found in gone.items():
        one, value = found[0]
        yield lab.finding(
            f"{tool} is given a {key} that the agent has no way to know",
            part="T",
            at_most="likely",
            tasks=[solved.task for solved, _ in found],
            expected="every id stands in the prompt or in an observation before its first use",
            observed=f"{key} = {value!r} stands in neither, nor in what any reading tool was seen to tell",
            teaches="to guess",
        )


def _given(lab: Lab, one: Solved) -> str:
    prompts = [one.first, [(tool.description, tool.parameters) for tool in lab.about.tools]]
    if "prompt" in lab.offers:
        prompts.append(lab.play(Op("prompt", name=one.task, mark="prompt")).at("prompt").value)
    return _plain(prompts)


def _unseen(one: Solved, text: str) -> Iterator[tuple[Op, str, Any]]:
    """Names in arguments that neither the prompt nor an earlier observation holds."""
    for op, seen in zip(one.ops, one.said, strict=True):
        for key, given in op.value.items() if op.do == "call" else ():
            for value in scalars(given):
                is_name = isinstance(value, str) and _NAME.fullmatch(value) and not _DATE.fullmatch(value)
                if is_name and _plain(value) not in text:
                    yield op, key, value
        text += " " + _plain([seen.value, seen.raised])


def _plain(value: Any) -> str:
    told = value if isinstance(value, str) else codec.dumps(value, repr, canonical=False).decode(errors="replace")
    return re.sub(r"[^\w@.+]+", "", told).lower()


def _looked_up(lab: Lab, one: Solved) -> str:
    """What reading tools tell when they are asked about everything that was seen."""
    reads = [tool for tool in lab.about.tools if reads_by_name(Op("call", name=tool.name))]
    known = [op for op in one.ops if reads_by_name(op)]
    asked: Sequence[Op] = [
        *known,
        *(other.op for other in lab.survey.reads() if other.task == one.task),
        *(call(tool.name, valid(tool, lab.survey.values, lab.rng, optional=0.1)) for tool in reads for _ in range(8)),
    ]
    probe = Probe((reset(one.task), *asked[:120]))
    record = lab.play_probe(probe)
    return "".join(_plain(seen.value) for seen in record.seen if seen.fine)
