"""`quintain triage`: attribute each episode to a component."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import console, exits, options

if TYPE_CHECKING:
    from rich.console import Console

    from quintain.audit.triage import AuditFinding, LabeledEpisode, Reading, RunReport
    from quintain.audit.triage.evidence import ReplayEvidence
    from quintain.environment import Environment

_QUEUE = 600
"""Most entries of a queue that a person will ever read."""
_UNREAD = 10
"""So many unreadable places are shown; the others are counted."""


@click.command(short_help="Attribute each episode to a component and mark what to train on.")
@options.path
@options.env
@click.option("--audit", type=options.PATH, metavar="FILE", help="Report of `quintain audit --json`.")
@click.option("--traces-only", is_flag=True, help="Read the records only, without replay and regrading.")
@click.option(
    "--regrade",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="Number of times each final state is graded.",
)
@click.option(
    "--processes",
    type=click.IntRange(0, 16),
    default=1,
    show_default=True,
    help="Number of additional processes to replay in, last episode first, each with another PYTHONHASHSEED.",
)
@click.option(
    "--queue",
    "length",
    type=click.IntRange(0, _QUEUE),
    default=20,
    show_default=True,
    help="Maximum length of the reading list.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the blind sample and the permutations.")
@click.option(
    "--jsonl",
    type=options.PATH,
    metavar="FILE",
    help="Write one label per episode as JSON lines, for trainers.",
)
@click.option("--evidence", is_flag=True, hidden=True, help="Print the evidence of replays, for another process.")
@options.json
def triage(*, path: Path, audit: Path | None, jsonl: Path | None, as_json: bool, evidence: bool, **asked: Any) -> None:
    """Attribute each episode of PATH to the component that caused its result.

    PATH is a run folder, a file of traces, or a folder of other tools' logs. Eleven ordered rules read the record,
    replay it in a fresh world, and grade it again. The exit status is 1 when so many episodes
    failed that the run should have been stopped.
    """
    from quintain.audit.triage import read

    findings = None if audit is None else _findings(audit)
    reading = read(path)
    env = "left out by --traces-only" if asked["traces_only"] else _environment(path, asked["env"], reading)
    if evidence:
        from quintain.audit.triage.report import gather
        from quintain.audit.triage.siblings import Run

        with console.progress("triage", len(reading.played)) as update:
            gathering = gather(
                Run(reading.played), env, times=asked["regrade"], back=True, watch=lambda n: update(advance=n)
            )
            console.print_json(asyncio.run(gathering))
        return
    report = _report(path, reading, env, findings=findings, **asked)
    if jsonl is not None:
        _write(jsonl, report)
    if as_json:
        console.print_json(report.to_dict())
    else:
        print_report(console.stdout(), report)
    if report.verdict == "stop_run":
        raise click.exceptions.Exit(exits.FAILED)


def _environment(path: Path, spec: str | None, reading: Reading) -> Environment[Any] | str:
    """Returns the environment that made the traces, or the reason why it is missing.

    Raises:
        UsageError: The environment was named explicitly and cannot be loaded.
    """
    from quintain.errors import QuintainError

    from .folders import environment_of

    if not any(one.trace is not None for one in reading.played) and spec is None:
        return "the logs are another tool's, and no environment was named"
    try:
        return environment_of(path, spec)
    except QuintainError as error:
        if spec is not None:
            raise
        return str(error)


def _findings(file: Path) -> list[AuditFinding]:
    """Returns the findings of an audit report.

    Raises:
        UsageError: The file does not exist or is not an audit report.
    """
    import msgspec

    from quintain.audit.triage.evidence import AuditReport
    from quintain.errors import UsageError

    try:
        return msgspec.json.decode(file.read_bytes(), type=AuditReport).findings
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{str(file)!r} is not a report of `quintain audit --json`: {error}") from error


def _report(
    path: Path, reading: Reading, environment: Environment[Any] | str, *, findings: Any, **asked: Any
) -> RunReport:
    """Labels the episodes by evidence gathered here and in other processes."""
    from quintain.audit.triage import triage as judge
    from quintain.audit.triage.report import gather, merged
    from quintain.audit.triage.siblings import Run

    has_environment = not isinstance(environment, str)
    total = len(reading.played) * (1 + asked["processes"] * has_environment)
    with ThreadPoolExecutor(1) as pool, console.progress("triage", total) as update:

        def watch(episodes: int) -> None:
            update(advance=episodes)

        elsewhere = pool.submit(_elsewhere, path, asked, watch) if has_environment else None
        known = asyncio.run(gather(Run(reading.played), environment, times=asked["regrade"], watch=watch))
        for other in elsewhere.result() if elsewhere is not None else ():
            known = merged(known, other)
    chosen: dict[str, Any] = {name: asked[name] for name in ("seed", "length")}
    return asyncio.run(judge(reading, environment, findings=findings, evidence=known, **chosen))


def _elsewhere(path: Path, asked: dict[str, Any], watch: Callable[[int], object]) -> list[list[ReplayEvidence]]:
    """Gathers evidence in fresh processes; a failed one raises, as an empty result would pass for agreement.

    Raises:
        UsageError: A process failed.
    """
    import msgspec

    from quintain.audit.triage.evidence import ReplayEvidence
    from quintain.errors import UsageError

    from .replay import in_processes

    command = ["triage", "--evidence", "--regrade", str(asked["regrade"])]
    found: list[list[ReplayEvidence]] = []
    for process in in_processes(command, [path], env=asked["env"], count=asked["processes"], watch=watch):
        if process.returncode != 0:
            said = process.stderr.strip()[-500:]
            raise UsageError(f"a fresh process could not replay {path}: exit status {process.returncode}: {said}")
        found.append(msgspec.json.decode(process.stdout, type=list[ReplayEvidence]))
    return found


def _write(file: Path, report: RunReport) -> None:
    from quintain import codec
    from quintain.errors import UsageError

    try:
        file.write_bytes(b"".join(codec.json(one.row()) + b"\n" for one in report.judged))
    except OSError as error:
        raise UsageError(f"cannot write labels to {str(file)!r}: {error.strerror}") from error


_VERDICTS = {
    "stop_run": ("The run should have been stopped: surely more than {limit:.0%} failed.", "bold red"),
    "certified": ("Surely fewer than {limit:.0%} failed.", "bold green"),
    "undecided": ("Whether more or fewer than {limit:.0%} fail is undecided; more episodes would tell.", "bold yellow"),
}
_WHY = 110
_LONG = 400
"""Characters of a reason."""


def print_report(out: Console, report: RunReport) -> None:
    """Prints the report without the labels of single episodes, which `--json` and `--jsonl` hold."""
    from rich.text import Text

    lost = sum(one.episode for one in report.unreadable)
    unread = f", of which {lost:,} could not be read" if lost else ""
    out.print(f"{console.plural(report.episodes, 'episode')}{unread}\n")
    rows = [
        (owner, rate.episodes, f"{rate.rate:.1%}", f"{rate.low:.1%}", f"{rate.high:.1%}")
        for owner, rate in [*report.by_owner.items(), ("not the policy", report.failures)]
        if rate.episodes or owner in ("policy", "not the policy")
    ]
    out.print(console.grid("owner", ">episodes", ">rate", ">at least", ">at most", rows=rows))
    words, style = _VERDICTS[report.verdict]
    bounds = f" (one-sided 95 %: from {report.low:.1%}, to {report.high:.1%})"
    out.print(Text("\n" + words.format(limit=report.limit), style=style).append(bounds, style="not bold default"))
    _print_decisions(out, report)
    _print_failed(out, report)
    _print_warnings(out, report)
    _print_queue(out, report)
    _print_gaps(out, report)


def _print_decisions(out: Console, report: RunReport) -> None:
    counts = Counter[str](one.verdict for one in report.judged)
    words = {"train": "to train on", "exclude": "to leave out", "exclude_group": "to leave out with their group"}
    out.print("Episodes: " + ", ".join(f"{counts[name]:,} {said}" for name, said in words.items() if counts[name]))
    provoked = sum(one.provoked for one in report.judged)
    if provoked:
        out.print(f"{provoked:,} of those to train on failed as the agent may have wanted: score them as its failures.")
    if report.by_class:
        out.print("Classes: " + ", ".join(f"{name} {count:,}" for name, count in report.by_class.items()))


def _print_failed(out: Console, report: RunReport) -> None:
    """Prints each kind of failure, with the first episode that shows it."""
    from rich.padding import Padding
    from rich.text import Text

    kinds: dict[tuple[object, ...], list[LabeledEpisode]] = {}
    for one in report.judged:
        if one.failed:
            label = one.label
            kinds.setdefault((label.owner, label.classes, label.rule, label.confidence, label.visibility), []).append(
                one
            )
    for found in sorted(kinds.values(), key=len, reverse=True):
        label = found[0].label
        classes = f" ({', '.join(label.classes)})" if label.classes else ""
        line = Text(f"\n{len(found):,} of {label.owner}{classes}", style="bold")
        line.append(f", rule {label.rule}, {label.confidence}, first in {_where(found[0])}", style="not bold")
        out.print(line)
        out.print(Padding(Text(console.safe(console.clipped(label.why, _LONG))), (0, 0, 0, 2), expand=False))


def _print_warnings(out: Console, report: RunReport) -> None:
    from rich.text import Text

    for sign in report.warnings:
        line = Text(f"\nwarning, {sign.class_}: ", style="yellow")
        out.print(line.append(console.safe(sign.why), style="default"))


def _print_queue(out: Console, report: RunReport) -> None:
    if report.queue:
        out.print("\nRead these first:\n")
        rows = [(console.safe(one.place), console.safe(one.task), _cut("; ".join(one.reasons))) for one in report.queue]
        out.print(console.grid("episode", "task", "why", rows=rows))


def _print_gaps(out: Console, report: RunReport) -> None:
    """Prints which rules were not applied and why."""
    from rich.text import Text

    from quintain.audit.triage.rules import NAMES

    for rule, reasons in report.not_checked.items():
        for reason, count in reasons.items():
            what = f"\nnot checked: rule {rule} ({NAMES[rule - 1]}) on {console.plural(count, 'episode')}: "
            out.print(Text(what, style="yellow").append(console.safe(console.clipped(reason, 200)), style="default"))
    for one in report.unreadable[:_UNREAD]:
        out.print(Text(f"\nunreadable: {console.safe(one.place)}: {console.safe(console.clipped(one.reason, 200))}"))
    if len(report.unreadable) > _UNREAD:
        out.print(f"and {len(report.unreadable) - _UNREAD:,} more unreadable places; --json names them")


def _where(one: LabeledEpisode) -> str:
    event = one.label
    step = "" if event.step is None else f", step {event.step}"
    return console.safe(one.place) + ("" if event.turn is None else f", turn {event.turn}{step}")


def _cut(text: str) -> str:
    return console.safe(console.clipped(text, _WHY))
