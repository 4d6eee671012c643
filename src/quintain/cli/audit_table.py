"""Terminal view of an audit report: findings, then coverage, then what was not checked."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from . import console

if TYPE_CHECKING:
    from rich.console import Console

    from quintain.audit.auditor import Report
    from quintain.audit.kernel.finding import Finding

_STYLE = {"error": "bold red", "warning": "yellow", "note": "dim"}
_VALUE = 160
"""Characters of a value that are shown."""
_LATE = 12
"""Most checks that are named of those that did not fit into the time."""
_BESIDE = 2
"""Most further trajectories of a finding whose differing ops are shown."""
_DIFFERING = 4
"""Most differing ops of a further trajectory."""
_PARTS = 3
"""Most differing parts of a value, and most changes of an op, that are shown."""


def print_report(out: Console, report: Report, folder: Path) -> None:
    """Prints findings with their trajectories, then the coverage by class, then the verdict."""
    from quintain.audit.auditor import LATE

    title = Text(report.subject.spec, style="bold")
    looked = f"{report.tasks[0]:,} of {console.plural(report.tasks[1], 'task')}"
    out.print(title.append(f"   {looked} in {console.seconds(report.seconds)}", style="not bold dim"))
    out.print()
    for number, finding in enumerate(report.findings, 1):
        if not finding.accepted:
            print_finding(out, number, finding)
    if accepted := [one for one in report.findings if one.accepted]:
        out.print(f"{len(accepted):,} accepted:", style="bold")
        for one in accepted:
            words = f"{one.name}, {one.severity}, {one.confidence}: {one.title}\naccepted: {one.accepted}"
            console.print_wrapped(out, Text(console.safe(words)), margin=5, label="   -")
        out.print()
    out.print(console.grid("class", ">checks", ">probes", ">found", "", rows=_rows(report)))
    out.print()
    if report.heavy:
        words = "with worlds that are large, or slow to make, did not fit; --thorough takes all"
        console.print_wrapped(out, Text(f"{console.plural(report.heavy, 'task')} {words}."), margin=0)
    if late := [one.check for one in report.unfinished if one.reason.startswith(LATE)]:
        more = f" and {len(late) - _LATE} more (report.json names them)" if len(late) > _LATE else ""
        left = f"{console.plural(len(late), 'check')} did not fit into the time: {', '.join(late[:_LATE])}{more}."
        command = shlex.join(["quintain", "audit", report.subject.spec, "--thorough"])
        console.print_wrapped(out, Text(left), margin=0)
        out.print(f"To run all, or some: {command}, or --budget SECONDS, or --check ID.\n", soft_wrap=True)
    if report.advisor:
        words = f"Advisor {report.advisor['model']}: {report.checks[-1].reason}."
        console.print_wrapped(out, Text(console.safe(words)), margin=0)
    rate = report.failures
    if rate.episodes:
        broke = f"{rate.failures} of {rate.episodes} episodes broke"
        bounds = f"between {rate.low:.1%} and {rate.high:.1%} (95 %, each side)"
        console.print_wrapped(out, Text(f"{broke}; the failure rate is {bounds}."), margin=0)
    out.print(_verdict(report), style="bold")
    out.print(f"Report, findings and certificate are in {folder}.", soft_wrap=True)


def print_finding(out: Console, number: int, finding: Finding) -> None:
    """Prints one finding: claim, difference, trajectory with the changes of each op, place, lesson, mend and replay."""
    head = Text(f"{number}. ").append(f"{finding.severity}, {finding.confidence}", style=_STYLE[finding.severity])
    out.print(head.append(f"   {finding.class_}, {finding.part}, {finding.name}", style="dim"))
    console.print_wrapped(out, Text(console.safe(finding.title), style="bold"), margin=3)
    for also in finding.symptoms:
        console.print_wrapped(out, Text(console.safe(f"also: {also.title} ({also.name})"), style="dim"), margin=3)
    for name, value in _sides(finding.expected, finding.observed):
        console.print_wrapped(out, Text(f"{name}: {value}"), margin=3)
    others = [line for one in finding.beside for line in one["trajectory"]]
    print_trajectory(out, finding.trajectory, finding.details.get("changes") or [], others=others)
    printed: list[str] = []
    for one in finding.beside:
        steps = " > ".join(line["name"] if line["do"] == "call" else line["do"] for line in one["trajectory"])
        context = ", ".join(("", *(f"{name} {value}" for name, value in one["context"].items())))
        differing = [line for line in one["trajectory"] if not any(_equal(line, other) for other in finding.trajectory)]
        if differing and steps + context not in printed and len(printed) < _BESIDE:
            printed.append(steps + context)
            words = f"beside it, {console.safe(console.clipped(steps, _VALUE) + context)}:"
            console.print_wrapped(out, Text(words, style="dim"), margin=3)
            print_trajectory(out, differing[:_DIFFERING], others=finding.trajectory)
    if finding.where:
        out.print(f"   at {_relative(finding.where)}", style="dim", soft_wrap=True)
    if finding.teaches:
        console.print_wrapped(out, Text(f"A model would learn {console.safe(finding.teaches)}."), margin=3)
    console.print_wrapped(out, Text(f"To mend it: {console.safe(finding.mend)}"), margin=3)
    if finding.replay:
        out.print(f"   {finding.replay}", style="cyan", soft_wrap=True)
    out.print()


def _sides(expected: Any, observed: Any) -> Iterator[tuple[str, str]]:
    """Yields ("expected", text) and ("observed", text): of two similar values only the parts that differ."""
    from quintain.changes import plain_changes, shown

    given = [("expected", expected), ("observed", observed)]
    present = [(name, value) for name, value in given if value is not None]
    if len(present) < 2:
        yield from ((name, _shown(value)) for name, value in present)
        return
    found = plain_changes(*map(_parsed, (expected, observed)))
    if not (found and all(one.path for one in found)):
        one, other = map(_text, (expected, observed))
        yield from zip(("expected", "observed"), _cut(one, other), strict=True)
        return
    for change in found[:_PARTS]:
        for (name, _), side in zip(given, _cut(shown(change.before), shown(change.after)), strict=True):
            yield name, f"{console.safe(change.path)}: {side}"
    if len(found) > _PARTS:
        yield "and", console.plural(len(found) - _PARTS, "further difference")


def print_trajectory(
    out: Console,
    trajectory: list[dict[str, Any]],
    changes: Sequence[Any] = (),
    *,
    others: Sequence[dict[str, Any]] = (),
) -> None:
    """Prints the ops of a trajectory with their results and, where known, the state paths that they changed.

    Args:
        out: Where to print.
        trajectory: Ops with their results.
        changes: Changes of the state by op.
        others: Ops of other trajectories; a long result is cut around its difference from theirs.
    """
    from quintain.changes import shown

    every = [*trajectory, *others]
    for place, line in enumerate(trajectory):
        on = f"{line['on']}: " if "on" in line else ""
        asked = line.get("arguments", line.get("value"))
        words = f"{on}{line['do']} {line.get('name', '')}".strip()
        words += f" {_shown(asked)}" if asked not in (None, {}) else ""
        text = Text(console.safe(words)).append(f" → {_answer(line, trajectory[:place], every)}", style="dim")
        console.print_wrapped(out, text, margin=7, label="     -")
        found: dict[str, list[Any]] = (changes[place] if place < len(changes) else None) or {}
        for path in sorted(found, key=lambda path: path.startswith("shared/"))[:_PARTS]:
            one, other = _cut(*map(shown, found[path]))
            console.print_wrapped(out, Text(f"{console.safe(path)}: {one} → {other}", style="dim"), margin=9)
        if len(found) > _PARTS:
            rest = console.plural(len(found) - _PARTS, "further change")
            console.print_wrapped(out, Text(f"and {rest}", style="dim"), margin=9)


def _answer(line: dict[str, Any], before: Sequence[dict[str, Any]], every: Sequence[dict[str, Any]]) -> str:
    """Returns the result of an op; of a long one what surrounds its first difference from another op's alike."""
    gave = next((f"{how}: {line[how]}" for how in ("refused", "crashed", "hung", "absent") if how in line), None)
    if gave is not None:
        return console.safe(gave)
    if line["do"] == "state":
        return "the whole state"
    text = _text(line.get("observed"))
    if len(text) <= _VALUE:
        return text
    if any(_asked(one) == _asked(line) and _text(one.get("observed")) == text for one in before):
        return "the same as before"
    alike = [_text(one["observed"]) for one in every if "observed" in one and _asked(one) == _asked(line)]
    other = next((one for one in alike if one != text), None)
    return console.clipped(text, _VALUE) if other is None else _cut(other, text)[1]


def _asked(line: dict[str, Any]) -> str:
    return json.dumps([line.get(name) for name in ("do", "name", "arguments", "value")], default=str)


def _equal(line: dict[str, Any], other: dict[str, Any]) -> bool:
    return {**line, "on": "", "where": ""} == {**other, "on": "", "where": ""}


def _relative(where: str) -> str:
    """Returns "file:line" with the file relative to the current folder, else to a folder that Python imports from."""
    for folder in (str(Path.cwd()), *sorted(sys.path, key=len, reverse=True)):
        if folder and Path(where).is_relative_to(folder):
            return str(Path(where).relative_to(folder))
    return where


def _parsed(value: Any) -> Any:
    """Returns the value of a text that is a JSON object or array; any other value as it is."""
    try:
        return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value
    except ValueError:
        return value


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return console.safe(text.replace("\n", "\\n"))


def _cut(one: str, other: str) -> tuple[str, str]:
    """Returns both texts without control characters; of a long one only what surrounds the first difference."""
    return console.excerpts(console.safe(one), console.safe(other), _VALUE)


def _shown(value: Any) -> str:
    return console.clipped(_text(value), _VALUE)


def _rows(report: Report) -> list[tuple[object, ...]]:
    from quintain.audit.kernel.finding import CLASSES

    rows: list[tuple[object, ...]] = []
    for class_, covered in report.coverage.items():
        checks = [one for one in report.checks if one.class_ == class_]
        if not checks:
            continue
        done = [one for one in checks if one.status != "not_checked"]
        every = [(finding.class_, *(one.class_ for one in finding.symptoms)) for finding in report.findings]
        found = sum(classes.count(class_) for classes in every)
        skipped = sorted({one.reason for one in checks if one.status == "not_checked"})
        why = "; ".join(skipped) if done else covered
        probes = sum(one.probes for one in checks)
        style = "bold red" if found else ""
        cells = (f"{len(done)}/{len(checks)}", f"{probes:,}", Text(str(found or "-"), style=style))
        rows.append((CLASSES[class_], *cells, Text(console.clipped(why, 90), style="dim")))
    return rows


def _verdict(report: Report) -> str:
    accepted = sum(bool(one.accepted) for one in report.findings)
    proven = sum(one.stops for one in report.findings)
    if proven:
        rest = f" ({accepted} accepted)" if accepted else ""
        return f"{console.plural(proven, 'proven error')}{rest}: do not train on this."
    others = len(report.findings) - accepted
    rest = f", {console.plural(others, 'further remark')}" if others else ""
    rest += f", {accepted} accepted" if accepted else ""
    if report.too_little:
        return f"Nothing is proven, but too little was checked: {report.too_little}{rest}."
    return f"No proven error in what was checked{rest}."
