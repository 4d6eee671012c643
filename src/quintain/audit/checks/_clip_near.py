"""Checks answers that are numbers: tolerance for near values, and independence of the spelling."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, answer, call, number, reset, score
from quintain.audit.kernel.registry import relation

from ._clip_numbers import APPROXIMATE, PRECISE, numeric, spelled, wrong
from ._clip_states import EPSILON

_FIELD = re.compile(r'"\w+"\s*:\s*(-?\d+(?:\.\d+)?)(?=\s*[,}])')
_BOUND = re.compile(rf"{APPROXIMATE.pattern}|\bbound|budget|limit|maxim|minim|\bmax\b|\bmin\b")
"""Words of a prompt after which a number on one side of another may be right."""
STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Distances from a right number at which both sides are tried."""
ANSWERS = frozenset(
    {"answer", "value", "result", "response", "solution", "guess", "final", "prediction", "final_answer"}
)
"""Names of an argument that is the answer."""


@relation
def pays_wrong(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The wrong answer is paid as much as the right one, and a far wrong one less."""
    right, near, far = (number(record.at("score")) for record in records)
    return right is not None and near is not None and far is not None and near >= right - EPSILON and far < right - 1e-6


class _Number(NamedTuple):
    """Number that a solution says last, alone or as a field of a JSON object among other words."""

    task: str
    ops: tuple[Op, ...]
    text: str
    value: float
    before: str = ""
    after: str = ""

    def says(self, text: str) -> Probe:
        """Returns the solution with other words in place of the number."""
        last = self.ops[-1]
        whole = f"{self.before}{text}{self.after}"
        if last.do == "answer":
            said = answer(whole)
        else:
            given = {name: whole if name.lower() in ANSWERS else item for name, item in last.value.items()}
            said = call(last.name, given)
        return Probe((reset(self.task), *self.ops[:-1], said, score()))


def _numeric(ctx: AuditContext) -> Iterator[_Number]:
    """Solutions that say a number, and nothing else."""
    for task in ctx.sample_tasks(12):
        ops = ctx.oracle(task) or ()
        text = _said(ops[-1]) if ops else ""
        value = numeric(text) if text else None
        if value is not None and ctx.solution_score(task):
            yield _Number(task, ops, text, value)


def _fields(ctx: AuditContext) -> Iterator[_Number]:
    """Numbers in the JSON objects that solutions say."""
    for task in ctx.sample_tasks(4):
        ops = ctx.oracle(task) or ()
        text = _said(ops[-1]) if ops else ""
        for found in itertools.islice(_FIELD.finditer(text), 3):
            value = numeric(found[1])
            if value is not None and ctx.solution_score(task):
                yield _Number(task, ops, found[1], value, text[: found.start(1)], text[found.end(1) :])


def _said(op: Op) -> str:
    """Returns the text of an answer, or of a call with a single text argument named like an answer."""
    if op.do == "answer":
        return op.value if isinstance(op.value, str) else ""
    words = [argument for name, argument in op.value.items() if name.lower() in ANSWERS] if op.do == "call" else []
    return words[0] if len(words) == 1 and isinstance(words[0], str) else ""


@check("x.near_numbers", "reward_clipping", needs=("oracle", "tasks"), value=81)
def near(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a number is right within a small tolerance, and never with another sign or magnitude."""
    reported: set[str] = set()
    for said in (*_numeric(ctx), *_fields(ctx)):
        task, text, value = said.task, said.text, said.value
        ends = [said.says(spelled(end, text)) for end in (value * 37 + 1009, -value * 37 - 1009, 0.0)]
        tried = [neighbor for neighbor in wrong(value, text) if numeric(spelled(neighbor.value, text)) != value]
        records = ctx.play_all([*ends, *(said.says(spelled(neighbor.value, text)) for neighbor in tried)])
        solved = ctx.solution_score(task) or 0.0
        paid_less = [paid is not None and paid < solved - 1e-6 for paid in (number(r.at("score")) for r in records[:3])]
        ctx.count_comparisons(len(tried))
        if not any(paid_less):
            continue  # Any number is paid: that is another class's finding.
        far = ends[paid_less.index(True)]
        words = _prompt(ctx, task).lower()
        vague, precise = bool(APPROXIMATE.search(words)), bool(PRECISE.search(words))
        for neighbor, record in zip(tried, records[len(ends) :], strict=True):
            paid = number(record.at("score"))
            is_plain = neighbor.is_plain or (precise and neighbor.how.startswith("four units"))
            if (
                paid is not None
                and paid >= solved - EPSILON
                and neighbor.how not in reported
                and not reported & {"any"}
            ):
                reported |= {neighbor.how, "any"}
                is_tolerance = _is_tolerance(ctx, said, near=neighbor.value, full=solved)
                uneven = _uneven(ctx, said, full=solved) if is_tolerance else None
                wrong_value, how = neighbor.value, neighbor.how
                if uneven is not None:
                    is_tolerance, (wrong_value, nearer) = False, uneven
                    far, how = said.says(spelled(nearer, text)), f"{wrong_value:g}, while {nearer:g} is not"
                yield ctx.finding(
                    f"a wrong number is paid in full: {how}",
                    said.says(text),
                    said.says(spelled(wrong_value, text)),
                    far,
                    relation=f"{__name__}:pays_wrong",
                    marks=("score",),
                    minimise=0,
                    part="V",
                    expected=f"less for {spelled(wrong_value, text)} than for {text}",
                    observed=paid,
                    teaches="that a nearly right value is enough"
                    if abs(wrong_value - value) < abs(value)
                    else "that magnitude does not matter",
                    at_most="hint" if vague or not is_plain else "likely" if is_tolerance else "proven",
                    severity="error" if is_plain and not is_tolerance else "warning",
                )


def _is_tolerance(ctx: AuditContext, said: _Number, *, near: float, full: float) -> bool:
    """True if a near number is paid on both sides: a grader may be coded to take a tenth more or less."""
    if abs(near - said.value) > 0.101 * abs(said.value):
        return False
    other_side = number(ctx.play_probe(said.says(spelled(2 * said.value - near, said.text))).at("score"))
    return other_side is not None and other_side >= full - EPSILON


def _uneven(ctx: AuditContext, said: _Number, *, full: float) -> tuple[float, float] | None:
    """Returns a number that is paid, and one on the other side, half as far, that is not: no tolerance is so."""
    if not said.value.is_integer():
        return None
    steps = [step for step in STEPS if step <= 0.101 * abs(said.value)]
    values = [said.value + sign * step for step in steps for sign in (1, -1)]
    records = ctx.play_all([said.says(spelled(value, said.text)) for value in values])
    paid = [value for value, seen in zip(values, records, strict=True) if (number(seen.at("score")) or 0.0) >= full]
    lost = [value for value in values if value not in paid]
    pairs = [(far, near) for far in paid for near in lost if (far - said.value) * (near - said.value) < 0]
    wide = [(far, near) for far, near in pairs if 2 * abs(near - said.value) <= abs(far - said.value)]
    return wide[0] if wide else None


@check("x.far_fields", "false_resolution", needs=("oracle", "tasks"), value=85)
def far_fields(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a number far above, or far below, the right one in a field is not paid in full."""
    for said in _fields(ctx):
        ends = [said.says(spelled(sign * (abs(said.value) * 37 + 1009), said.text)) for sign in (1, -1)]
        pair = ends if _is_paid(ctx, ends[0], said) else ends[::-1]
        ctx.count_comparisons()
        if _BOUND.search(_prompt(ctx, said.task).lower()) or not _is_paid(ctx, pair[0], said):
            continue
        found = ctx.finding(
            "a number far from the right one is paid in full in a field of the answer",
            said.says(said.text),
            *pair,
            relation=f"{__name__}:pays_wrong",
            marks=("score",),
            minimise=0,
            part="V",
            expected=f"less for it than for {said.text}, as for one far on the other side",
            observed=str(pair[0].ops[-2].value)[-300:],
            teaches="that any large, or any small, number is right",
        )
        if found is not None:
            yield found
            return


def _is_paid(ctx: AuditContext, probe: Probe, said: _Number) -> bool:
    paid, full = number(ctx.play_probe(probe).at("score")), ctx.solution_score(said.task)
    return paid is not None and full is not None and paid >= full - EPSILON


def _prompt(ctx: AuditContext, task: str) -> str:
    seen = ctx.play(reset(task, mark="reset")).at("reset")
    return str(seen.value)
