"""Checks right answers against what the solution has read: siblings show the rule behind an answer.

Tasks of the same wording that are solved by the same calls follow one rule ("the answer is what the last computation
gave"). Where nearly all do, one that does not holds the answer of another task, or of an older world; and where a
tool's result is the answer less some digits, the tool loses what the answer needs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_number, parsed
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Record
from quintain.audit.kernel.registry import relation

from ._drift_words import show
from ._reward_acts import giving, only_reads, replaced, spec_of, submits
from ._reward_runs import PAID_AS, paid_so
from ._unsolv_runs import SolutionRun, decimal, kinds, leaves, plain


@check("x.refused_look", "unsolvable", needs=("oracle", "tasks", "tools"), value=80)
def refused_look(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each read of the solution works, as in sibling tasks."""
    for family in kinds(ctx):
        ctx.count_comparisons(len(family) if len(family) > _LEAST else 0)
        works = [walked for walked in family if not any(result.is_error for result in walked.said)]
        for place, op in enumerate(family[0].ops) if len(works) >= _LEAST else ():
            refused = [walked for walked in family if walked.said[place].is_error]
            if only_reads(ctx, op) and refused and len(works) >= 3 * len(refused):
                # An answer in the form of its siblings' answers does not report an absence.
                form = _form(refused[0])
                if form and {form} == set(map(_form, works)) and _matters(refused[0], place):
                    yield _missing(ctx, refused, works, place=place, is_soft=form == "acts")
                    return


def _form(walked: SolutionRun) -> str:
    """Returns the form of the solution's final answer; empty where it might as well be "none"."""
    last = walked.ops[-1]
    if last.do != "answer" and not submits(last):
        return "acts"
    values = [last.value] if last.do == "answer" else list(last.value.values())
    if len(values) != 1 or not isinstance(values[0], str | int | float):
        return ""
    as_number = decimal(values[0])
    if as_number is not None:
        return "number" if as_number else ""
    parts = re.split(r"[,;>]", str(values[0]))
    return f"{len(parts)} parts" if len(parts) > 1 else ""


def _matters(walked: SolutionRun, place: int) -> bool:
    """True if no other action of the solution on the same thing works; else the read was redundant."""
    asked = set(map(str, walked.ops[place].value.values()))
    calls = [op for at, op in enumerate(walked.ops) if op.do == "call" and not walked.said[at].is_error and at != place]
    return not any(asked & set(map(str, op.value.values())) for op in calls)


def _missing(
    ctx: AuditContext, refused: Sequence[SolutionRun], works: Sequence[SolutionRun], *, place: int, is_soft: bool
) -> Finding | None:
    walked, op = refused[0], refused[0].ops[place]
    plays = [(each.task, replaced(each.ops, place, each.ops[place].marked("look"))) for each in (walked, *works[:3])]
    return show(
        ctx, f"what the solution reads by {op.name} is not there, and its answer is paid all the same", is_missing,
        *(solves(task, ops) for task, ops in plays), marks=("look", "score"), data=walked.full, part="T",
        severity="warning" if is_soft else "error", at_most="likely" if is_soft else "proven",
        tasks=[each.task for each in refused],
        expected=f"{op.name}({op.value}) works, as in {len(works)} other tasks of this kind",
        observed=walked.said[place].raised or walked.said[place].value, teaches="to guess",
    )  # fmt: skip


@relation
def is_missing(records: Sequence[Record], evidence: Evidence) -> bool:
    """The look is refused in the first task, and works in the others; the solutions of all are paid."""
    looks = [record.at("look").is_error for record in records]
    is_paid = all(paid_so(record, "some", 0.0) for record in records[1:])
    return looks[0] and not any(looks[1:]) and is_paid and paid_so(records[0], "full", float(evidence.data))


_LEAST = 4
"""Siblings that must follow a rule."""
_TEACHES = "answers without support in the world"


@check("x.gold_rule", "unsolvable", needs=("oracle", "tasks", "tools"), value=81)
def gold_rule(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the paid answer is the one that the solution's calls have shown, as in sibling tasks."""
    for family in kinds(ctx):
        if len(family) < 3 or _said(family[0]) is None:
            continue
        ctx.count_comparisons(len(family))
        yield from _against_rule(ctx, family)
        yield from _lost_digits(ctx, family)


def _against_rule(ctx: AuditContext, family: Sequence[SolutionRun]) -> Iterator[Finding | None]:
    for place, path in _sources(family[0]):
        known = [(each, item) for each in family if (item := _at(each, place, path)) is not None]
        against = [(each, item) for each, item in known if not _alike(item, _answer(each))]
        follow = [each for each, item in known if _alike(item, _answer(each))]
        distinct = len({plain(str(_answer(each))) for each in follow})
        if not against or len(follow) < max(_LEAST, 3 * len(against)) or distinct < 3:
            continue
        walked, item = against[0]
        is_last = place == _look(walked) and _computes(ctx, walked.ops[place])
        yield ctx.finding(
            f"the {'.'.join(path) or 'result'} of {walked.ops[place].name} is the answer of all tasks of a kind but "
            "for some",
            solves(walked.task, _saying(walked, item)),
            *(solves(each.task, each.ops) for each in (walked, *follow[:3])), relation=PAID_AS, marks=("score",),
            data={"full": walked.full, "paid": ["less", "full", *["some"] * 3], "works": True}, minimise=0, part="T",
            severity="error" if is_last else "warning", at_most="proven" if is_last else "likely",
            tasks=[each.task for each, _ in against],
            expected=f"{item!r}, which the solution's own call gave, as in {len(follow)} other tasks of this kind",
            observed=f"{_answer(walked)!r} is paid in its place", teaches=_TEACHES,
        )  # fmt: skip
        return


def _lost_digits(ctx: AuditContext, family: Sequence[SolutionRun]) -> Iterator[Finding | None]:
    """Results that are the answer rounded to fewer digits, in all tasks of a kind, and are not paid."""
    place = _look(family[0])
    for path in [path for at, path in _sources(family[0]) if at == place]:
        pairs = [(each, decimal(_at(each, place, path)), decimal(_answer(each))) for each in family]
        known = [(each, number, own) for each, number, own in pairs if number is not None and own is not None]
        digits = max((_places(number) for _, number, _ in known), default=0)
        finer = [(each, number, own) for each, number, own in known if number != own]
        if len(known) < len(family) or len(finer) < max(3, 0.75 * len(known)):
            continue
        step = Decimal(1).scaleb(-digits)
        if any(abs(number - own) > step / 2 or _places(own) <= digits for _, number, own in finer):
            continue
        walked, _, own = finer[0]
        shown = _at(walked, place, path)
        yield ctx.finding(
            f"{walked.ops[place].name} rounds off digits that the answer needs",
            solves(walked.task, _saying(walked, shown)), solves(walked.task, walked.ops), relation=PAID_AS,
            marks=("score",), data={"full": walked.full, "paid": ["less", "full"], "works": True}, minimise=0, part="S",
            tasks=[each.task for each, _, _ in finer],
            expected=f"an answer that the tools can show, or {shown!r} to be right",
            observed=f"{own} is wanted, and {walked.ops[place].name} gives {shown!r}",
            teaches="to make up values that the tools do not give",
        )  # fmt: skip
        return


def _said(walked: SolutionRun) -> str | None:
    """Returns the argument that holds the answer, "" for an answer in words; None unless there is exactly one."""
    op = walked.ops[-1]
    given = op.value.items() if submits(op) else ()
    texts = [name for name, argument in given if isinstance(argument, str) or is_number(argument)]
    return "" if op.do == "answer" else texts[0] if len(texts) == 1 else None


def _answer(walked: SolutionRun) -> Any:
    name = _said(walked)
    return walked.ops[-1].value[name] if name else walked.ops[-1].value


def _saying(walked: SolutionRun, value: Any) -> tuple[Op, ...]:
    """The solution with another answer, in the type of its own."""
    name, op, number = _said(walked), walked.ops[-1], decimal(value)
    if isinstance(_answer(walked), str):
        is_whole = number is not None and number == number.to_integral()
        text = format(number.normalize() if is_whole else number, "f") if number is not None else str(value)
        value = text if is_number(value) else str(value)
    return (*walked.ops[:-1], giving(op, **{name: value}) if name else msgspec.structs.replace(op, value=value))


def _look(walked: SolutionRun) -> int:
    """The last call before the answer."""
    return len(walked.ops) - 2


def _sources(walked: SolutionRun) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Every value that was read before the answer, the last call's first."""
    for place in reversed(range(len(walked.ops) - 1)):
        yield from ((place, path) for path, _ in itertools.islice(leaves(parsed(walked.said[place].value)), 40))


def _at(walked: SolutionRun, place: int, path: tuple[str, ...]) -> Any:
    return dict(leaves(parsed(walked.said[place].value))).get(path)


def _alike(first: Any, second: Any) -> bool:
    left, right = decimal(first), decimal(second)
    if left is not None and right is not None:
        return left == right
    return plain(str(first)) == plain(str(second))


def _places(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _computes(ctx: AuditContext, op: Op) -> bool:
    """True if a tool computes a result from its numeric arguments."""
    spec = spec_of(ctx, op)
    types = [schema.get("type") for schema in spec.properties.values() if is_dict(schema)] if spec else []
    return "number" in types or types.count("integer") >= 2
