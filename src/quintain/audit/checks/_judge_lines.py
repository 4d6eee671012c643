"""Checks reports of "Key: value" lines, and fields of answers: odd ones are paid less than right ones.

A grader that looks for facts in a report is satisfied too soon: by a right line among wrong ones, by a line that says
nothing, or by a field that says anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from quintain.audit.facts import acts as act
from quintain.audit.facts.fields import LEAST, SPARE, Fields, facts_in, fields_of, saying, wrong
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Record, answer, number
from quintain.audit.kernel.registry import relation

from ._drift_words import show
from ._reward_runs import Solution, paid, paid_so, paid_unlike, pays, runs

TASKS = 3
"""Tasks whose reports are changed."""
_FREE = re.compile(rf"(?!any order){SPARE.pattern}|\bnot (be )?(graded|scored|checked)|\bfree(ly| text)", re.IGNORECASE)
"""Words by which a task may leave a field to whoever answers."""
_MANNERS = {
    "contradicted": "a report that says several things of each point, the right one among them, is paid in full",
    "listed": "a report that lists several things for each point, the right one among them, is paid in full",
    "empty": "a report that says nothing behind its keys is paid in full",
    "cut": "a report that says one letter of each thing is paid in full",
    "dropped": "a line of the report that is asked for is left out, and paid as if it were right",
}


Way = tuple[str, tuple[Op, ...], tuple[Op, ...]]
"""A manner, the solution with a changed report, and with one that is wrong in the same points."""


class LineReport(NamedTuple):
    """A text of lines that an op of a solution hands in, with its facts by key.

    `argument` is empty for an answer.
    """

    solution: Solution
    place: int
    argument: str
    text: str
    between: str
    facts: dict[str, str]

    def saying(self, given: Mapping[str, Sequence[str]]) -> tuple[Op, ...]:
        """The solution with other lines in place of those with these keys."""
        op, text = self.solution.ops[self.place], saying(self.text, self.between, given)
        changed = act.giving(op, **{self.argument: text}).marked("report")
        return act.replaced(self.solution.ops, self.place, changed)


def reports(solved: Sequence[Solution]) -> Iterator[LineReport]:
    """The last text of lines, each with a key of its own, of each solution."""
    for solution in solved:
        found = (report for place in reversed(range(len(solution.ops))) for report in _reports(solution, place))
        if (last := next(found, None)) is not None:
            yield last


def _reports(solution: Solution, place: int) -> Iterator[LineReport]:
    op = solution.ops[place]
    if place in solution.errors or act.reads_by_name(op):
        return
    texts = {"": op.value} if op.do == "answer" else op.value if op.do == "call" else {}
    for argument, text in texts.items():
        for between in ("\n", "; ") if isinstance(text, str) else ():
            if facts := facts_in(text, between):
                yield LineReport(solution, place, argument, text, between, facts)
                break


# --- the check ---


@check("x.report_lines", "judge", needs=("oracle", "tasks"), value=90)
def report_lines(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a report with contradictory, empty or missing lines, or any words, is not paid like a right one."""
    solved = paid(ctx, TASKS + 5)
    known = list(reports(solved))
    answered = [(one, fields) for one in solved if (fields := fields_of(one.ops)) is not None]
    if not known and not answered:
        raise ctx.not_checked("no solution hands in a report of lines with keys, or answers with fields")
    yield from _unread(ctx, answered)
    reported: set[str] = set()
    for report in known[:TASKS]:
        solution, others = report.solution, {key: [one.facts.get(key, "") for one in known] for key in report.facts}
        said = {key: values for key, fact in report.facts.items() if (values := wrong(fact, others[key]))}
        tried = runs(ctx, solution, [report.saying({key: values[:1]}) for key, values in said.items()])
        # Only keys are graded for which a wrong value costs something.
        costs = [report.place not in run.errors and run.score is not None and not pays(solution, run) for run in tried]
        ways = list(_ways(report, {key: said[key] for key, is_graded in zip(said, costs, strict=True) if is_graded}))
        ctx.count_comparisons(len(ways))
        for (manner, way, false), run in zip(ways, runs(ctx, solution, [way for _, way, _ in ways]), strict=True):
            if manner not in reported and pays(solution, run) and report.place not in run.errors:
                found = show(
                    ctx, _MANNERS[manner], paid_as_right, *(solves(solution.task, ops) for ops in (way, false)),
                    class_="judge" if "judge" in ctx.offers else "reward_hack", marks=("score", "report"), part="V",
                    data=solution.full, expected=f"less than {solution.full:g}, as for a report that is wrong there",
                    observed=act.said_in(way[report.place], report.argument)[:400], teaches="to say all, or nothing",
                )  # fmt: skip
                reported |= {manner} if found is not None else set()
                yield found


def _ways(report: LineReport, said: dict[str, list[str]]) -> Iterator[Way]:
    all_false = report.saying({key: values[:1] for key, values in said.items()})
    half, full = LEAST // 2, {key: values for key, values in said.items() if len(values) == LEAST}
    rich = {key: [*values[:half], report.facts[key], *values[half:]] for key, values in full.items()}
    if rich:
        false = report.saying({key: said[key][:1] for key in rich})
        yield "contradicted", report.saying(rich), false
        yield "listed", report.saying({key: [", ".join(values)] for key, values in rich.items()}), false
    asked = [key for key in said if key.casefold() in report.solution.prompt.casefold()]
    if len(asked) >= 2:
        cut = {key: [report.facts[key][:1]] for key in asked if len(report.facts[key]) >= 4}
        for manner, given in (("empty", {key: [""] for key in asked}), ("cut", cut)):
            if given:
                yield manner, report.saying(given), all_false
    for key in asked:
        yield "dropped", report.saying({key: []}), report.saying({key: said[key][:1]})


def _unread(ctx: AuditContext, answered: Sequence[tuple[Solution, Fields]]) -> Iterator[Finding | None]:
    """Yields findings for fields that must be filled, and are then paid whatever they say of what a task tells."""
    for key in answered[0][1].value if answered else ():
        full, held = answered[0][0].full, [(one, fields, str(fields.value.get(key))) for one, fields in answered]
        told = [each for each in held if key in each[0].prompt and each[2] in each[0].before(-1) and len(each[2]) > 3]
        if len(values := list(dict.fromkeys(value for *_, value in told))) < TASKS:
            continue
        said = [(one, f, text) for one, f, value in told[:TASKS] for text in ("", *wrong(value, values))]
        probes = [solves(one.task, (*one.acts, answer(f.saying(f.value | {key: text})))) for one, f, text in said]
        how = ["full" if text else "less" for *_, text in said]
        ctx.count_comparisons(len(probes))
        if all(paid_so(record, each, full) for record, each in zip(ctx.play_all(probes), how, strict=True)):
            is_free = any(_FREE.search(one.prompt) for one, *_ in told)
            yield paid_unlike(
                ctx, f"{key} is paid whatever it says, and not if it is empty", *probes, paid=how, full=full,
                class_="judge" if "judge" in ctx.offers else "false_resolution", expected="less for a wrong value",
                observed=probes[1].ops[-2].value, teaches="to make it up", works=False,
                at_most="likely" if is_free else "proven",
            )  # fmt: skip


@relation
def paid_as_right(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first report is paid `data`, the second, which is wrong in the same points, is paid less."""
    odd, false = (number(record.at("score")) for record in records)
    taken, full = not any(record.at("report").is_error for record in records), float(evidence.data) - 1e-9
    return taken and odd is not None and odd >= full and false is not None and false < full
