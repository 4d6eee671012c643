"""Checks of `quintain audit --mutate`: which changes leave every score the same?

A survivor is an unchecked requirement, or one that needs no check. So each is a warning, never proven, and is shown
with the state that it changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintain.audit.kernel.check import Check, check
from quintain.audit.kernel.context import AuditContext, OutOfTime
from quintain.audit.kernel.finding import Evidence, Finding, trajectory
from quintain.audit.kernel.probe import Op, number, same

from . import battery, judging
from .judging import Verdict
from .operators import Part
from .reach import reach

REPORTED = 20  # most findings of one check
_JUDGING = "quintain.audit.mutants.judging"


@check("x.mutant_tool", "false_resolution", needs=("oracle", "state", "sources", "tasks"), value=3, severity="warning")
def mutant_tool(ctx: AuditContext) -> Iterator[Finding | None]:
    """Does the verifier notice a tool that skips a write, writes another value or accepts a wrong call?"""
    groups, counted = _survivors(ctx, "S", _ORDER_OF_TOOLS)
    for group in groups:
        first = group[0]
        change = first.change
        guard = change.operator == "drop guard"
        assert first.episode is not None
        yield _finding(
            ctx,
            group,
            counted,
            title=f"{change.owner}: {change.description}, and {first.episode.description} is paid in full all the same",
            class_="reward_hack" if guard else "false_resolution",
            part="V",
            severity="warning" if change.operator in _ORDER_OF_TOOLS[:2] else "note",
            relation=f"{_JUDGING}:still_paid",
            knows={"sound": first.sound, "differs": list(first.differs)[:20]},
            teaches="that this effect need not happen" if not guard else "that this rule need not be kept",
        )
    _in_time(ctx)


@check("x.mutant_verifier", "reward_hack", needs=("oracle", "sources", "tasks"), value=2, severity="warning")
def mutant_verifier(ctx: AuditContext) -> Iterator[Finding | None]:
    """Does each condition and each number of the verifier decide some score?"""
    groups, counted = _survivors(ctx, "V", ())
    for group in groups:
        first = group[0]
        assert first.episode is not None
        yield _finding(
            ctx,
            group,
            counted,
            title=f"{first.change.owner}: {first.change.description}, and no episode that was played is paid otherwise",
            part="V",
            severity="note",
            at_most="hint",  # What this line checks may be what no episode of the battery does.
            relation=f"{_JUDGING}:still_masked",
            teaches="nothing, but this line may not check what it is meant to check",
        )
    _in_time(ctx)


@check("x.mutant_oracle", "reward_hack", needs=("oracle", "state", "tasks"), value=4, severity="warning")
def mutant_oracle(ctx: AuditContext) -> Iterator[Finding | None]:
    """Does a solution with a missing step, another order or another argument score less?"""
    found = list(_solutions(ctx))
    for description, one, sound, differs in found[:REPORTED]:
        yield ctx.finding(
            f"a solution with {description} is paid in full, and leaves another world behind",
            battery.probe([one], [Op("changes")]),
            relation=f"{_JUDGING}:still_paid",
            marks=("0 score", "0 changes"),
            data={"paid": ctx.solution_score(one.task), "sound": sound, "differs": list(differs)[:20]},
            minimise=0,
            part="V",
            at_most="likely",
            expected="less pay than for the whole solution, or the same world",
            observed={"state, as it should be and as it is": dict(itertools.islice(differs.items(), 5))},
            teaches="that this part of the task need not be done",
        )


CHECKS: tuple[Check, ...] = (mutant_oracle, mutant_tool, mutant_verifier)  # checks that `--mutate` adds


def _survivors(ctx: AuditContext, part: Part, order: Sequence[str]) -> tuple[list[list[Verdict]], str]:
    """Judges mutants of a part; returns survivors by line, the worst kind first, and all numbers in words."""
    tried = battery.deeds(ctx) if part == "S" else battery.verdicts(ctx)
    reached = reach(ctx, tried)
    wanted = judging.candidates(reached.tools if part == "S" else reached.verifier, part)
    if not wanted:
        raise ctx.not_checked(f"no line that only {'tools run' if part == 'S' else 'the verifier runs'} can be mutated")
    verdicts = judging.Judge(ctx, tried, reached, part=part).each(judging.drawn(ctx, wanted))
    groups: dict[str, list[Verdict]] = {}
    ranks = {name: place for place, name in enumerate([*order, "swap arguments"])}
    survivors = [one for one in verdicts if one.status == "survived"]
    for one in sorted(survivors, key=lambda one: (ranks.get(one.change.operator, len(ranks)), one.where)):
        groups.setdefault(one.where, []).append(one)
    return list(groups.values())[:REPORTED], judging.tally(verdicts, len(wanted))


def _in_time(ctx: AuditContext) -> None:
    """Raises OutOfTime if the budget is spent, because there may be further survivors."""
    if ctx.seconds_left() <= 0:
        raise OutOfTime("the budget is spent")


_ORDER_OF_TOOLS = ("skip write", "drop guard", "write another word", "write another truth", "change number")


def _finding(
    ctx: AuditContext, group: Sequence[Verdict], counted: str, *, title: str, relation: str, **more: Any
) -> Finding | None:
    first, knows = group[0], more.pop("knows", {})
    assert first.record is not None
    assert first.probe is not None
    paid = number(first.record.at("0 score"))
    observed = {
        "score": paid,
        "as it should be and as it is": dict(itertools.islice(first.differs.items(), 5)),
        "mutants": [f"{Path(one.path).name}:{one.change.lines[0]} {one.change.description}" for one in group[:5]],
        "of all mutants": counted,
    }
    expected = "another score, as another thing happened"
    found = ctx.finding(title, where=first.where, expected=expected, observed=observed, **more)
    return found and msgspec.structs.replace(
        found,
        tasks=(first.episode.task,) if first.episode else (),
        trajectory=trajectory(first.record),
        probes=(first.probe,),
        evidence=Evidence(relation, ("0 score",), {"paid": paid, **knows}, ctx.volatile),
        subject=first.subject,
    )


# --- mutants of solutions ---

_Solution = tuple[str, battery.EpisodeScript, dict[str, Any], dict[str, list[Any]]]


def _solutions(ctx: AuditContext) -> Iterator[_Solution]:
    """Yields altered solutions that score fully and leave another state, one of each kind."""
    known: set[Any] = set()
    for task in battery.solved(ctx):
        full = ctx.solution_score(task)
        if not full:
            continue
        ways = list(_ways(ctx, task))
        ways = ways if len(ways) <= judging.MAX_MUTANTS // 3 else ctx.rng.sample(ways, judging.MAX_MUTANTS // 3)
        whole = battery.EpisodeScript(task, "the solution", ctx.oracle(task) or (), is_solution=True)
        paid = _paid(ctx, [whole, *(way for _, way in ways)], full)
        kept = [(kind, one) for place, (kind, one) in enumerate(ways, 1) if place in paid]
        records = ctx.play_all([battery.probe([one], [Op("changes")]) for one in (whole, *(way for _, way in kept))])
        sound = records[0].at("0 changes").value
        for (kind, one), record in zip(kept, records[1:], strict=True):
            differs = judging.differing(ctx, sound, record.at("0 changes").value)
            key = (kind, frozenset(map(judging.kind, differs)))
            if differs and key not in known:
                known.add(key)
                yield one.description, one, {path: pair[1] for path, pair in sound.items()}, differs


def _paid(ctx: AuditContext, episodes: Sequence[battery.EpisodeScript], full: float) -> set[int]:
    """Returns the places of episodes that score fully and, by their digest, leave another state than the first."""
    look = [Op("digest")] if "digest" in ctx.offers else []
    records = ctx.play_all([battery.probe([one], look) for one in episodes])
    ctx.count_comparisons(len(episodes) - 1)
    paid = {n for n, one in enumerate(records) if (number(one.at("0 score")) or -math.inf) >= full - 1e-9}
    return {n for n in paid if not (look and same(records[n].at("0 digest"), records[0].at("0 digest")))}


def _ways(ctx: AuditContext, task: str) -> Iterator[tuple[tuple[str, ...], battery.EpisodeScript]]:
    ops = ctx.oracle(task) or ()
    for place, op in enumerate(ops):
        name = battery.named(op)
        yield ("drop", name), battery.EpisodeScript(task, f"{name} left out", (*ops[:place], *ops[place + 1 :]))
        if op.do == "call":
            for description, other in battery.alterations(ctx, op):
                altered = next(key for key, value in other.value.items() if value != op.value[key])
                if any(" " in str(one.value[altered]) for one in (op, other)):
                    continue  # Any words may do.
                way = (*ops[:place], other, *ops[place + 1 :])
                yield ("alter", name, altered), battery.EpisodeScript(task, description, way)
    for place, (one, other) in enumerate(itertools.pairwise(ops)):
        if one.do == other.do == "call":
            swapped = (*ops[:place], other, one, *ops[place + 2 :])
            yield (
                ("swap", one.name, other.name),
                battery.EpisodeScript(task, f"{other.name} before {one.name}", swapped),
            )
