"""Checks answers that are numbers: tolerance for near values, and independence of the spelling."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, answer, call, number, reset

from ._clip_states import EPSILON, paid_by

_NEGATIVE = re.compile(r"(?:\D*[^\w.-])?(-\d{1,15}(?:\.\d{1,12})?)(?:[^\w.]\D*)?")
"""Text with one number, which is negative."""
_FIELD = re.compile(r'"\w+"\s*:\s*(-?\d+(?:\.\d+)?)(?=\s*[,}])')
_LINE = re.compile(rf"{_FIELD.pattern}|^[^\W\d_][\w /-]*[:=][ \t]+(-?\d+(?:\.\d+)?)[ \t]*$", re.MULTILINE)
APPROXIMATE = re.compile(r"about|approx|within|tolerance|nearest|rough|estimat|±|\+/-|at least|at most|or so|around|%")
"""Words of a prompt after which a near number may be right."""
_UNSIGNED = re.compile(
    r"absolut|magnitude|\bhow (much|far|many)\b|differ|distance|chang|drop|fall|fell|below|minus|loss|debt|owe|deficit"
)
"""Words of a prompt after which a negative number may be said without its sign."""
_BOUND = re.compile(rf"{APPROXIMATE.pattern}|\bbound|budget|limit|maxim|minim|\bmax\b|\bmin\b")
"""Words of a prompt after which a number on one side of another may be right."""
PRECISE = re.compile(r"decimal|digit|exact|to the cent")
"""Words of a prompt that says how exact a number is to be."""
_PLACES = re.compile(r"\b0\.00\b|\b(?:two|three|2|3) (?:decimal|digits)|to the cent|\bexact (?:amount|price|sum)")
"""Words of a prompt that asks for each digit of a number, so that none of its neighbours is meant."""
WHOLE = 1e6
"""Whole numbers below it are counts: a neighbour is another count, and no rounding of it."""
STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Distances from a right number at which both sides are tried."""
ANSWERS = {"answer", "value", "result", "response", "solution", "guess", "final", "prediction", "final_answer"}
"""Names of an argument that is the answer."""


class _Number(NamedTuple):
    """Number that a solution says last, alone or as a field of a JSON object among other words."""

    task: str
    ops: tuple[Op, ...]
    full: float
    text: str
    value: float
    before: str = ""
    after: str = ""

    def says(self, text: str) -> Probe:
        """Returns the solution with other words in place of the number."""
        last, whole = self.ops[-1], f"{self.before}{text}{self.after}"
        if last.do == "answer":
            said = answer(whole)
        else:
            given = {name: whole if name.lower() in ANSWERS else item for name, item in last.value.items()}
            said = call(last.name, given)
        return solves(self.task, (*self.ops[:-1], said))

    def paid(self, ctx: AuditContext, *values: float) -> list[bool]:
        """Returns, by number said in place of the right one, True if it is paid in full."""
        records = ctx.play_all([self.says(spelled(value, self.text)) for value in values])
        scores = [number(record.at("score")) for record in records]
        return [score is not None and score >= self.full - EPSILON for score in scores]


def _numbers(ctx: AuditContext, field: re.Pattern[str] | None = None) -> Iterator[_Number]:
    """Numbers that solutions say: alone, or in the fields that a pattern finds."""
    for task in ctx.sample_tasks(4 if field else 12):
        ops = ctx.oracle(task) or ()
        text, full = _said(ops[-1]) if ops else "", ctx.solution_score(task) or 0.0
        value = numeric(text)
        if not field and full and value is not None:
            yield _Number(task, ops, full, text, value)
        labelled = _NEGATIVE.fullmatch(text) if value is None else None
        places = [labelled] if labelled else [*itertools.islice(field.finditer(text), 3)] if field else []
        for found in places if full and field else ():
            at = found.lastindex or 1
            if (value := numeric(found[at])) is not None:
                yield _Number(task, ops, full, found[at], value, text[: found.start(at)], text[found.end(at) :])


def _said(op: Op) -> str:
    """Returns the text of an answer, or of a call with a single text argument named like an answer."""
    if op.do == "answer":
        return op.value if isinstance(op.value, str) else ""
    words = [argument for name, argument in op.value.items() if name.lower() in ANSWERS] if op.do == "call" else []
    return words[0] if len(words) == 1 and isinstance(words[0], str) else ""


@check("x.near_numbers", "reward_clipping", needs=("oracle", "tasks"), value=76)
def near(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a number is right within a small tolerance, and never with another sign or magnitude."""
    for said in (*_numbers(ctx), *_numbers(ctx, _FIELD)):
        text, value = said.text, said.value
        ends = (value * 37 + 1009, -value * 37 - 1009, 0.0)
        tried = [item for item in wrong(value, text) if numeric(spelled(item[1], text)) != value]
        ctx.count_comparisons(len(tried))
        are_paid = said.paid(ctx, *ends, *(item[1] for item in tried))
        if all(are_paid[:3]):
            continue  # Any number is paid: that is another class's finding.
        kept = next((item for item, is_paid in zip(tried, are_paid[3:], strict=True) if is_paid), None)
        if kept is None:
            continue
        how, wrong_value, is_plain = kept
        far = ends[are_paid.index(False)]
        words = _prompt(ctx, said.task)
        is_plain = is_plain or bool(PRECISE.search(words) and how.startswith("four units"))
        is_plain = is_plain and not (how == "its negative" and value < 0 and _UNSIGNED.search(words))
        # A grader may be coded to take a tenth more or less.
        is_tolerance = abs(wrong_value - said.value) <= 0.101 * abs(said.value)
        is_tolerance = is_tolerance and said.paid(ctx, 2 * said.value - wrong_value)[0]
        uneven = _uneven(ctx, said) if is_tolerance else None
        if uneven is not None:
            is_tolerance, (wrong_value, far) = False, uneven
            how = f"{wrong_value:g}, while {far:g} is not"
        is_near = abs(wrong_value - value) < abs(value)
        yield paid_by(
            ctx, "pays_wrong", f"a wrong number is paid in full: {how}",
            *(said.says(one) for one in (text, spelled(wrong_value, text), spelled(far, text))),
            expected=f"less for {spelled(wrong_value, text)} than for {text}", observed=said.full,
            teaches="that a nearly right value is enough" if is_near else "that magnitude does not matter",
            at_most="hint" if APPROXIMATE.search(words) or not is_plain else "likely" if is_tolerance else "proven",
            severity="error" if is_plain and not is_tolerance else "warning",
        )  # fmt: skip
        return


def _uneven(ctx: AuditContext, said: _Number) -> tuple[float, float] | None:
    """Returns a number that is paid, and one on the other side, half as far, that is not: no tolerance is so."""
    if not said.value.is_integer():
        return None
    gaps = [sign * step for step in STEPS if step <= 0.101 * abs(said.value) for sign in (1, -1)]
    paid = dict(zip(gaps, said.paid(ctx, *(said.value + gap for gap in gaps)), strict=True))
    pairs = [(far, near) for far in gaps for near in gaps if paid[far] and not paid[near] and far * near < 0]
    wide = [pair for pair in pairs if 2 * abs(pair[1]) <= abs(pair[0])]
    return (said.value + wide[0][0], said.value + wide[0][1]) if wide else None


@check("x.far_fields", "false_resolution", needs=("oracle", "tasks"), value=55)
def far_fields(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a number of a field, far off or without its minus sign, is not paid in full."""
    for said in _numbers(ctx, _LINE):
        end = abs(said.value) * 37 + 1009
        decimals = len(said.text.partition(".")[2])
        ninth = round(abs(said.value) / 9, decimals)
        near = [said.value + ninth, said.value - ninth]
        above, below, unsigned, *both = said.paid(ctx, end, -end, abs(said.value), *near)
        ctx.count_comparisons()
        prompt, is_far = _prompt(ctx, said.task), above or below
        is_turned = unsigned and said.value < 0 and not is_far
        is_off = ninth >= 10 / 10**decimals and all(both) and not is_far and bool(_PLACES.search(prompt))
        is_free = (_UNSIGNED if is_turned else APPROXIMATE if is_off else _BOUND).search(prompt)
        if is_free or (above == below and not is_turned and not is_off):
            continue
        wrong_values = (abs(said.value), end) if is_turned else (near[0], end) if is_off else (end, -end)
        texts = [spelled(value, said.text) for value in (wrong_values[::-1] if below else wrong_values)]
        what = "without its minus sign" if is_turned else "a ninth too large" if is_off else "far from the right one"
        found = paid_by(
            ctx, "pays_wrong", f"a number {what} is paid in full in a field of the answer",
            *map(said.says, (said.text, *texts)), expected=f"less for it than for {said.text}, as for {texts[1]}",
            observed=f"{said.before}{texts[0]}{said.after}"[-300:],
            teaches="that the sign does not matter" if is_turned else "that any large, or any small, number is right",
        )  # fmt: skip
        if found is not None:
            yield found
            return


def _prompt(ctx: AuditContext, task: str) -> str:
    return str(ctx.play(reset(task, mark="reset")).at("reset").value).lower()


# --- wrong numbers near a right one ---


def numeric(text: str) -> float | None:
    """The number that a text is, with nothing around it; None when it is none."""
    bare = text.strip().replace(",", "")
    return float(bare) if re.fullmatch(r"[-+]?\d{1,15}(?:\.\d{1,12})?", bare) else None


def wrong(value: float, like: str = "") -> Iterator[tuple[str, float, bool]]:
    """Wrong numbers, the farthest first: how each differs, the number, and True if it is plainly not the right one.

    Args:
        value: The right number.
        like: Text of it.
    """
    if value:
        factors = {"a hundred times it": 100, "a hundredth of it": 0.01, "ten times it": 10, "its negative": -1,
                   "twice it": 2, "zero": 0, "10 % more": 1.1, "10 % less": 0.9}  # fmt: skip
        yield from ((how, value * factor, True) for how, factor in factors.items())
    if float(value).is_integer():
        for share in (1, 0.5, 0.1):
            if abs(step := round(value * share / 100)) > 1:
                yield f"{share} % more", value + step, True
                yield f"{share} % less", value - step, True
        whole = abs(value) < WHOLE
        yield "one more", value + 1, whole
        yield "one less", value - 1, whole
        if whole:
            yield "a half more", value + 0.5, True
            yield "0.4 more", value + 0.4, True
    elif value:
        yield "rounded to a whole number", float(round(value)), abs(round(value) - value) > 0.1 * abs(value)
        yield "1 % more", value * 1.01, False
        unit = 10.0 ** -len(like.strip().partition(".")[2])
        yield "four units of its last digit more", value + 4 * unit, False
        yield "four units of its last digit less", value - 4 * unit, False


def spelled(value: float, like: str) -> str:
    """A number as text, with as many decimals as the right one has, where that is enough."""
    decimals = len(like.strip().partition(".")[2])
    if float(value).is_integer() and not decimals:
        return str(int(value))
    short = f"{value:.{max(decimals, 1)}f}"
    return short if abs(float(short) - value) < 1e-9 * max(1.0, abs(value)) else f"{value:.6f}".rstrip("0")
