"""Checks reports of "Key: value" lines: contradicted, empty or truncated ones are paid less than a right one.

A grader that looks for facts in a report is satisfied too soon: by a right line among wrong ones, or by a line that
says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Record, number
from quintain.audit.kernel.registry import relation

from ._drift_words import show
from ._reward_acts import reads_by_name
from ._reward_runs import Solution, paid, pays, runs

TASKS = 3
"""Tasks whose reports are changed."""
_LINE = re.compile(r"\s*(?P<key>[^\W\d_][\w /-]{0,40}?)\s*[:=]\s+(?P<value>\S.*?)\s*")
_LEAST = 4
"""Number of wrong values listed besides a right one."""
_DIGITS = "0123456789"
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
        value = op.value | {self.argument: text} if self.argument else text
        changed = msgspec.structs.replace(op, value=value, mark="report")
        return (*self.solution.ops[: self.place], changed, *self.solution.ops[self.place + 1 :])


def saying(text: str, between: str, given: Mapping[str, Sequence[str]]) -> str:
    """Returns a text with other lines in place of those with these keys."""
    lines: list[str] = []
    for line in text.split(between):
        found = _LINE.fullmatch(line)
        own = given.get(found["key"]) if found else None
        start = line[: found.start("value")] if found else ""
        lines += [line] if own is None else [f"{start}{said}" if said else start.rstrip() for said in own]
    return between.join(lines)


def facts_in(text: str, between: str = "\n") -> dict[str, str]:
    """Returns the values of a text's lines by their keys; nothing for fewer than two, or if two have one key."""
    lines = [found for line in text.split(between) if (found := _LINE.fullmatch(line))]
    facts = {line["key"]: line["value"] for line in lines}
    return facts if len(facts) >= 2 and len(facts) == len(lines) else {}


def reports(solved: Sequence[Solution]) -> Iterator[LineReport]:
    """The last text of lines, each with a key of its own, of each solution."""
    for solution in solved:
        found = (report for place in reversed(range(len(solution.ops))) for report in _reports(solution, place))
        if (last := next(found, None)) is not None:
            yield last


def _reports(solution: Solution, place: int) -> Iterator[LineReport]:
    op = solution.ops[place]
    if place in solution.errors or reads_by_name(op):
        return
    texts = {"": op.value} if op.do == "answer" else op.value if op.do == "call" else {}
    for argument, text in texts.items():
        for between in ("\n", "; ") if isinstance(text, str) else ():
            if facts := facts_in(text, between):
                yield LineReport(solution, place, argument, text, between, facts)
                break


def wrong(value: str, other_values: Sequence[str]) -> list[str]:
    """Other things that might be said in place of one, those first that are said elsewhere; none holds it."""
    turned = ["".join(str((int(sign) + by) % 10) if sign in _DIGITS else sign for sign in value) for by in (1, 2, 3, 7)]
    made = [value[::-1], *(f"{word}{value[: -len(word)]}" for word in (value[-1:], value[-2:], value[-3:]))]
    known, low = dict.fromkeys([*other_values, *turned, *made]), value.casefold()
    return [text for text in known if text.casefold() not in low and low not in text.casefold()][:_LEAST]


# --- the check ---


@check("x.report_lines", "judge", needs=("oracle", "tasks"), value=90)
def report_lines(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a report with contradictory, empty or missing lines is not paid like a right one."""
    solved = paid(ctx, TASKS + 5)
    known = list(reports(solved))
    if not known:
        raise ctx.not_checked("no solution hands in a report of lines with keys")
    reported: set[str] = set()
    for report in known[:TASKS]:
        said: dict[str, list[str]] = {}
        for key, value in report.facts.items():
            said[key] = wrong(value, [other_report.facts[key] for other_report in known if key in other_report.facts])
        yield from _judged(ctx, report, {key: values for key, values in said.items() if values}, reported=reported)


def _judged(
    ctx: AuditContext, report: LineReport, said: dict[str, list[str]], *, reported: set[str]
) -> Iterator[Finding | None]:
    """Yields findings for the graded keys only: keys for which a wrong value costs something."""
    falsified = [report.saying({key: values[:1]}) for key, values in said.items()]
    full, tried = report.solution.full or 0.0, runs(ctx, report.solution, falsified)
    bad = [report.place not in run.errors and run.score is not None and run.score < full - 1e-9 for run in tried]
    said = {key: said[key] for key, costs in zip(said, bad, strict=True) if costs}
    ways = list(_ways(report, said))
    ctx.count_comparisons(len(ways))
    for (manner, way, false), run in zip(ways, runs(ctx, report.solution, [way for _, way, _ in ways]), strict=True):
        if manner in reported or not pays(report.solution, run) or report.place in run.errors:
            continue
        found = _finding(ctx, report, (manner, way, false))
        if found is not None:
            reported.add(manner)
            yield found


def _ways(report: LineReport, said: dict[str, list[str]]) -> Iterator[Way]:
    all_false = report.saying({key: values[:1] for key, values in said.items()})
    half, full = _LEAST // 2, {key: values for key, values in said.items() if len(values) == _LEAST}
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


def _finding(ctx: AuditContext, report: LineReport, what: Way) -> Finding | None:
    manner, way, false = what
    full, task = report.solution.full or 0.0, report.solution.task
    shown = way[report.place].value
    return show(
        ctx, _MANNERS[manner], paid_as_right, solves(task, way), solves(task, false), marks=("score", "report"),
        data=full, part="V", class_="judge" if "judge" in ctx.offers else "reward_hack",
        expected=f"less than {full:g}, as for a report that is wrong there",
        observed=(shown[report.argument] if report.argument else shown)[:400], teaches="to say everything, or nothing",
    )  # fmt: skip


@relation
def paid_as_right(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first report is paid `data`, the second, which is wrong in the same points, is paid less."""
    odd, false = (number(record.at("score")) for record in records)
    taken, full = not any(record.at("report").is_error for record in records), float(evidence.data) - 1e-9
    return taken and odd is not None and odd >= full and false is not None and false < full
