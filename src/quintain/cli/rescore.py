"""`quintain rescore`: recorded episodes under another verifier, with a table of what changed."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from quintain.errors import UsageError

from . import console, exits, options

if TYPE_CHECKING:
    from quintain.environment import Environment
    from quintain.rescore import Rescored
    from quintain.task import Task
    from quintain.trace import Trace

NAMED = 10
"""Episodes of which the table shows both scores."""


class CriterionChange(msgspec.Struct):
    """One criterion over all episodes that have its raw value before and after; means of those of either time."""

    before_mean: float | None = None
    after_mean: float | None = None
    changed: int = 0


class ScoreChange(msgspec.Struct):
    """An episode with another score or validity. A score is None where there is none."""

    task: str
    member: int
    attempt: int
    before: float | None
    after: float | None
    failure: str


class RescoreReport(msgspec.Struct, kw_only=True):
    """Result of `quintain rescore`."""

    out: str
    episodes: int = 0
    scored: int = 0
    changed: int = 0
    kept: dict[str, int] = {}
    """Number of episodes that were not scored again, by reason."""
    newly_valid: int = 0
    newly_invalid: int = 0
    score: CriterionChange = msgspec.field(default_factory=CriterionChange)
    criteria: dict[str, CriterionChange] = {}
    episodes_changed: list[ScoreChange] = []


@click.command(short_help="Score recorded traces again.")
@options.path
@click.option(
    "--verifier",
    metavar="SPEC",
    help="Verifier, as path/to/file.py:name or package.module:name.  [default: the environment's]",
)
@options.env
@click.option("--out", type=options.PATH, metavar="DIR", help="New run folder.  [default: runs/ENVIRONMENT-rescored-N]")
@options.json
def rescore(*, path: Path, verifier: str | None, env: str | None, out: Path | None, as_json: bool) -> None:
    """Score the traces of PATH, a run folder or a file, again, and write them to a new run folder.

    Each episode is replayed to its final world, where the verifier runs: no model plays again. A judge is asked again.
    An episode that failed elsewhere than in its verifier keeps its failure. The traces of PATH stay as they are.
    """
    with contextlib.redirect_stdout(sys.stderr):  # What the environment prints is not part of the document.
        report = _rescored(path, env, verifier=verifier, out=out)
    if as_json:
        console.print_json(report)
    else:
        print_report(report)
    if not report.scored:
        raise click.exceptions.Exit(exits.FAILED)


def _rescored(path: Path, spec: str | None, *, verifier: str | None, out: Path | None) -> RescoreReport:
    from quintain import rescore as library
    from quintain.gate import Gate

    from . import folders, selection

    env = folders.environment_of(path, spec, verifier)
    before = folders.Manifest.read(path)
    if before is None:
        assert spec is not None, "environment_of needs one of the two"
        before = folders.Manifest.of(env, spec, {})
    named = selection.anchored(verifier) if verifier else before.verifier
    manifest = msgspec.structs.replace(before, fingerprint=env.fingerprint, verifier=named)
    episodes = list(_episodes(path, env))
    if not episodes:
        raise UsageError(f"found no episode to score in {path}")
    place = out or folders.fresh(env.name, "rescored")
    report, tally, gate = RescoreReport(out=str(place)), _Changes(), Gate(env.config)

    async def go() -> None:
        with folders.opened(place, manifest) as folder, console.progress("scoring", len(episodes)) as update:
            async for one in library.rescore(env, episodes):
                folder.add(one.new)
                tally.count(report, one)
                if not one.kept:
                    gate.observe(one.new)
                    gate.observe_group([one.new.trace])
                update(advance=1)
        gate.close()

    asyncio.run(go())
    tally.finish(report)
    return report


def _episodes(path: Path, env: Environment[Any]) -> Iterator[tuple[Task[Any], Trace]]:
    """Yields tasks and traces as they were written; members of a group together if the verifier judges groups."""
    from quintain.record import read_traces
    from quintain.studio.watch import task_of
    from quintain.trace import Level

    traces = list(read_traces(path))
    if env.verifier.at(Level.GROUP):
        place = {key: n for n, key in reversed(list(enumerate((one.task, one.attempt) for one in traces)))}
        traces.sort(key=lambda one: (place[one.task, one.attempt], one.member))
    yield from ((task_of(env, trace), trace) for trace in traces)


class _Changes:
    """Sums behind the means of a report."""

    def __init__(self) -> None:
        self._before: dict[str, list[float]] = {}
        self._after: dict[str, list[float]] = {}
        self._kept: Counter[str] = Counter()

    def count(self, report: RescoreReport, one: Rescored) -> None:
        """Counts one episode."""
        old, new = one.old, one.new.trace
        report.episodes += 1
        if one.kept:
            self._kept[one.kept] += 1
            return
        report.scored += 1
        report.newly_valid += old.validity != "valid" and new.validity == "valid"
        report.newly_invalid += old.validity == "valid" and new.validity != "valid"
        before, after = _values(old), _values(new)
        for name in before.keys() | after.keys():
            change = report.criteria.setdefault(name, CriterionChange()) if name else report.score
            change.changed += before.get(name) != after.get(name)
            for sums, values in ((self._before, before), (self._after, after)):
                if name in values:
                    sums.setdefault(name, []).append(values[name])
        if (old.score, old.validity) != (new.score, new.validity):
            report.changed += 1
            if len(report.episodes_changed) < NAMED:
                failure = one.new.failure_text
                row = ScoreChange(new.task, new.member, new.attempt, old.score, new.score, failure)
                report.episodes_changed.append(row)

    def finish(self, report: RescoreReport) -> None:
        """Fills in means and reasons."""
        report.kept = dict(self._kept.most_common())
        report.criteria = dict(sorted(report.criteria.items()))
        for name, change in (("", report.score), *report.criteria.items()):
            for field, sums in (("before_mean", self._before), ("after_mean", self._after)):
                if values := sums.get(name):
                    setattr(change, field, sum(values) / len(values))


def _values(trace: Trace) -> dict[str, float]:
    """Returns the mean raw value of each criterion of an episode, and its score under the empty name."""
    given: dict[str, list[float]] = {"": []} if trace.score is None else {"": [trace.score]}
    for reward in trace.every_reward():
        given.setdefault(reward.name, []).extend(() if reward.raw is None else (reward.raw,))
    return {name: sum(values) / len(values) for name, values in given.items() if values}


def print_report(report: RescoreReport) -> None:
    """Prints what changed: by criterion, by episode, and what was not scored again."""
    out = console.stdout()
    facts = f"{report.changed:,} of {console.plural(report.scored, 'episode')} changed"
    for count, words in ((report.newly_valid, "newly valid"), (report.newly_invalid, "newly invalid")):
        facts += f", {count:,} {words}" if count else ""
    out.print(facts)
    for reason, count in report.kept.items():
        out.print(f"{console.plural(count, 'episode')} not scored again: {reason}")
    rows = [("score", report.score), *report.criteria.items()]
    table = [(name, one.changed, console.number(one.before_mean), console.number(one.after_mean)) for name, one in rows]
    out.print()
    out.print(console.grid("criterion", ">changed", ">mean before", ">mean after", rows=table))
    if report.episodes_changed:
        changed = [
            (
                one.task,
                one.member,
                console.number(one.before),
                console.number(one.after),
                console.clipped(one.failure, 60),
            )
            for one in report.episodes_changed
        ]
        out.print()
        out.print(console.grid("task", ">member", ">before", ">after", "failure", rows=changed))
        if report.changed > len(changed):
            out.print(f"... and {report.changed - len(changed):,} more")
    out.print(f"\nTraces are in {report.out}; show one with `quintain show {report.out}`.")
