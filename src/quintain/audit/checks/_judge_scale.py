"""Checks judges whose model states a number: the grades must rise with the number."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

import msgspec

from quintain.audit.facts.data import leaves
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, reset
from quintain.audit.kernel.registry import relation

from ._drift_words import show
from ._judge_claims import EPSILON, NEEDS, asked, grade, judged
from ._judge_replies import forms

_HEADS = ("Score", "Grade", "Rating", "Points", "Total", "Final score", "Verdict", "Result", "Answer", "Marks")
FORMS = (
    "{}", "{}/10", "{}/5", "{}/100", *(f"{head}: {{}}" for word in _HEADS for head in (word, word.upper())),
    "score: {}", "grade: {}", "[[{}]]", "Rating: [[{}]]", "<score>{}</score>", "<grade>{}</grade>",
    "<rating>{}</rating>", '{{"score": {}}}', '{{"grade": {}}}', '{{"rating": {}}}', '{{"points": {}}}',
)  # fmt: skip
"""Forms in which a model states a number."""
NUMBERS = (*range(11), *range(20, 101, 10))
BEYOND = (11, 12, 101, 1000)
"""Numbers of no scale: a judge that grades them, too, does not say where its own ends."""
_PROBED = (0, 1, 3, 4, 5, 10)
"""Numbers of which every scale has several."""
_LEAST = 5
"""Numbers that a scale has at the least."""
_FLAT = 3
"""Numbers at one end of it that are worth the same, where it counts."""
_THRESHOLD = re.compile(
    r"\b(?:below|under|less than|fewer than|at least|or more|or fewer|or less|minimum|threshold|pass(?:es|ing|ed)?)\b",
    re.IGNORECASE,
)
"""Words stating that several numbers are worth the same."""
_STATED = re.compile(
    r"\b(?:scores?|grades?|rate|rating|points?|marks?)\b[^.\n\d]{0,40}"
    r"(\d+)(?: \([^)\n]*\))? ?(?:to|and|-|\u2013) ?(\d+)\b"
)
"""Words stating the lowest and the highest number of a scale."""


class Scale(msgspec.Struct, frozen=True):
    """A judge's grades by number, stated in a form; `ends` is True if the numbers of the scale end where they do."""

    form: str
    grades: dict[int, float]
    ends: bool

    @property
    def good(self) -> str:
        return self.form.format(max(self.grades, key=lambda number: self.grades[number]))

    @property
    def bad(self) -> str:
        return self.form.format(min(self.grades, key=lambda number: self.grades[number]))


def scale(ctx: AuditContext) -> Scale | None:
    """Returns the scale of the judge, or None for a judge that does not read numbers."""
    return ctx.once(("judge's scale",), _scale)


def _scale(ctx: AuditContext) -> Scale | None:
    question = "\n".join(asked(ctx.play(*judged(ctx.tasks[0], "yes")).at("judge")))
    described = forms(question)[0]
    known = (*described, *FORMS)
    probed = ctx.play_probe(_saying(ctx, known, _PROBED))
    for form in known:
        worths = {*_graded(probed, form, _PROBED).values()}
        if len(worths) < 2 and (not worths or form not in described):
            continue
        record = ctx.play_probe(_saying(ctx, [form], (*NUMBERS, *BEYOND)))
        grades = _graded(record, form, NUMBERS)
        if len(worths) < 2:  # It may remember its first verdict, so each is given in a session of its own.
            apart = ctx.play_all([_saying(ctx, [form], [number]) for number in NUMBERS])
            grades = {n: g for n, one in zip(NUMBERS, apart, strict=True) for g in _graded(one, form, [n]).values()}
        grades = {number: worth for number, worth in grades.items() if number in _stated(question)}
        if len(grades) >= _LEAST and len({*grades.values()}) > 1:
            return Scale(form, grades, ends=_ends(record, form))
    return None


def _stated(question: str) -> range:
    """Returns the numbers of the scale that a question states; without one, all numbers that are tried."""
    found = _STATED.findall(question)
    return range(int(found[-1][0]), int(found[-1][1]) + 1) if found else range(NUMBERS[-1] + 1)


def _ends(record: Record, form: str) -> bool:
    question = "\n".join(text for op in record.ops if op.do == "judge" for text in asked(record.at(op.mark)))
    return bool(_STATED.search(question)) or not _graded(record, form, BEYOND)


def _saying(ctx: AuditContext, forms: Sequence[str], numbers: Sequence[int]) -> Probe:
    task, says = ctx.tasks[0], [form.format(number) for form in forms for number in numbers]
    return Probe((reset(task, mark="reset"), *(judged(task, statement, mark=statement)[1] for statement in says)))


def _graded(record: Record, form: str, numbers: Sequence[int]) -> dict[int, float]:
    found = {number: grade(record.at(form.format(number))) for number in numbers}
    return {number: known for number, known in found.items() if known is not None}


# --- relations: each states the bug ---


@relation
def falls(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if one of the numbers in `data`, stated in its form, is graded lower than the previous number."""
    form, several = evidence.data
    return fallen(_graded(records[0], form, several)) is not None


def fallen(grades: dict[int, float]) -> int | None:
    """The number at which grades that went up go down; one more than what was graded last, as 10 is behind 9."""
    steps = [*itertools.pairwise(sorted(grades.items()))]
    for place, ((_, before), (number, after)) in enumerate(steps):
        risen = [more > less + EPSILON for (_, less), (_, more) in steps[max(0, place - 2) : place]]
        if after < before - EPSILON and len(risen) == 2 and all(risen):
            return number
    return None


@relation
def flat_end(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the numbers in `data` are graded alike at one end of the scale and differently elsewhere."""
    form, several = evidence.data
    return bool(flat(_graded(records[0], form, several))) and _ends(records[0], form)


def flat(grades: dict[int, float]) -> list[int]:
    """Returns the numbers at the lower or upper end of a scale that are worth the same, if others differ."""
    numbers = sorted(grades)
    for row in (numbers, numbers[::-1]):
        alike = [number for number in row if abs(grades[number] - grades[row[0]]) <= EPSILON]
        rest = row[len(alike) - 1 :]
        steps = [grades[second] - grades[first] for first, second in itertools.pairwise(rest)]
        turns = row[0] > row[-1]
        if len(alike) >= _FLAT and len(steps) >= 2 and all((-step if turns else step) > EPSILON for step in steps):
            return sorted(alike)
    return []


# --- the check ---


@check("x.judge_scale", "judge", needs=NEEDS, value=70)
def numbers(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a greater number of the judge's scale gets a better grade."""
    known = scale(ctx)
    if known is None:
        raise ctx.not_checked("the judge's model is asked for no number of a scale")
    ctx.count_comparisons(len(known.grades))
    low, high = min(known.grades), max(known.grades)
    number, alike = fallen(known.grades), flat(known.grades) if known.ends else []
    title = f"the judge grades {number} less than the number before it"
    if number is None and alike and not _has_threshold(ctx):
        title = f"of the judge's scale from {low} to {high}, {', '.join(map(str, alike))} are all worth the same"
    elif number is None:
        return
    said = (*known.grades, *BEYOND)
    yield show(
        ctx, title, flat_end if number is None else falls, _saying(ctx, [known.form], said), part="V",
        marks=[known.form.format(number) for number in said], data=[known.form, [*known.grades]],
        expected="more for each greater number", teaches="to be good rather than the best, or nothing for half of it",
        observed={known.form.format(number): found for number, found in known.grades.items()},
    )  # fmt: skip


def _has_threshold(ctx: AuditContext) -> bool:
    """True if the question, the prompt or the hidden data states that a part of the scale counts alike."""
    task = ctx.tasks[0]
    ops = [Op("hidden", name=task, mark="hidden")] if "hidden" in ctx.offers else []
    record = ctx.play(reset(task, mark="prompt"), *judged(task, "yes")[1:], *ops)
    texts = [*asked(record.at("judge")), str(record.at("prompt").value)]
    texts += [str(leaf) for _, leaf in leaves(record.at("hidden").value)] if ops else []
    return any(_THRESHOLD.search(text) for text in texts)
