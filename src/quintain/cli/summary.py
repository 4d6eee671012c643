"""Summary of a run as tables and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from quintain.record import EpisodeRecord
from quintain.report import Slice, Summary

from . import hints
from .console import difficulty, grid, number, plural, safe, seconds, split_seconds

FAILED_TASKS = 5
"""Tasks with failures that are shown."""
TAG_VALUES = 12
"""A tag with more values names single tasks, and its table would say nothing."""


def print_summary(console: Console, summary: Summary) -> None:
    """Prints the summary of a run, most important facts first."""
    for block in _blocks(summary):
        console.print(block)
        console.print()


def to_dict(summary: Summary) -> dict[str, Any]:
    """Returns the summary as plain data for `--json`."""
    short, long = summary.failure_by_length
    return {
        "episodes": summary.all.episodes,
        "scored": summary.all.scored,
        "mean_reward": summary.all.mean,
        "standard_error": summary.standard_error,
        "mean_reward_bounds": summary.interval,
        "pass_at_1": summary.pass_hat_k.get(1),
        "pass_hat_k": {str(k): value for k, value in summary.pass_hat_k.items()},
        "failed": summary.failed,
        "failures": {part: dict(kinds) for part, kinds in sorted(summary.failures.items())},
        "failure_examples": [
            {"component": part, "kind": kind, "text": one.failure_text, "hint": hints.of_record(one) or None}
            for (part, kind), one in summary.examples.items()
        ],
        "failure_rate_short": short,
        "failure_rate_long": long,
        "failed_tasks": {
            task: {
                "episodes": s.episodes,
                "failed": s.failed,
                "mean_reward": s.mean,
                "mean_reward_bounds": summary.bounds(s),
            }
            for task, s in sorted(summary.failed_tasks.items())
        },
        "dropped_groups": summary.dropped,
        "turns": summary.turns,
        "tool_calls": summary.calls,
        "tokens": summary.tokens,
        "seconds": dict(summary.seconds) | {"other": _other_s(summary)},
        "by": {
            tag: {
                value: {"episodes": s.episodes, "failed": s.failed, "mean_reward": s.mean}
                for value, s in sorted(values.items())
            }
            for tag, values in sorted(summary.by_tag.items())
        },
    }


def _blocks(summary: Summary) -> Iterator[RenderableType]:
    yield _facts(summary)
    for tag, values in sorted(summary.by_tag.items()):
        if 1 < len(values) <= TAG_VALUES:
            yield _by(tag, values)
    if summary.failed:
        rows = [(part, kind, n) for part, kinds in sorted(summary.failures.items()) for kind, n in kinds.most_common()]
        yield grid("component", "failure", ">episodes", rows=rows)
        for (_, kind), one in summary.examples.items():
            yield Text(f"first {kind}: {safe(one.failure_text)}").append(_hint(one), style="yellow")
        yield _by_failed_task(summary)


def _hint(record: EpisodeRecord) -> str:
    text = hints.of_record(record)
    return f"\nHint: {text}" if text else ""


def _facts(summary: Summary) -> Grid:
    """Returns scores and efforts as a table without a head."""
    facts = Grid.grid(padding=(0, 3, 0, 0))
    facts.add_column(no_wrap=True, style="dim")
    facts.add_column()
    for name, value in (*_scores(summary), *_efforts(summary)):
        facts.add_row(name, value)
    return facts


def _scores(summary: Summary) -> Iterator[tuple[str, Text]]:
    every = summary.all
    mean = Text(number(every.mean), style="bold")
    if summary.standard_error is not None:
        mean.append(f" ± {number(summary.standard_error)}", style="not bold")
    scored = f"   {every.scored:,} of {plural(every.episodes, 'episode')} scored"
    yield "mean reward", mean.append(scored, style="not bold dim")
    if summary.failed and summary.interval is not None:
        low, high = (number(bound) for bound in summary.interval)
        least, most = number(summary.low), number(summary.high)
        yield "", Text(f"between {low} and {high}, counting each failed episode as {least} or as {most}")
    for k, value in summary.pass_hat_k.items():
        if k in {1, 2, 4, 8, 16, 32, 64} or k == max(summary.pass_hat_k):
            yield "pass@1" if k == 1 else f"pass^{k}", Text(number(value))
    if summary.failed:
        rate = f"{summary.failed / every.episodes:.1%}"
        yield "failed", Text(f"{plural(summary.failed, 'episode')} ({rate}), without a reward", style="red")
        short, long = summary.failure_by_length
        if short is not None and long is not None:
            yield "", Text(f"P(failed) {short:.1%} in the shorter half of the episodes, {long:.1%} in the longer")
    if summary.dropped:
        yield "dropped", Text(f"{plural(summary.dropped, 'group')} with too few valid episodes", style="red")


def _efforts(summary: Summary) -> Iterator[tuple[str, Text]]:
    n = max(1, summary.all.episodes)
    for name, total in (("turns", summary.turns), ("tool calls", summary.calls), ("tokens", summary.tokens)):
        if total or name != "tokens":
            yield name, Text(f"{total:,}").append(f"   {number(total / n, 1)} per episode", style="dim")
    spent = summary.seconds
    if spent["total"]:
        whole, parts = split_seconds(spent["total"], {part: spent[part] for part in ("model", "tool", "verifier")})
        split = ", ".join(f"{part} {value}" for part, value in parts.items())
        yield "time", Text(whole).append(f"   {split}", style="dim")
        yield "queue", Text(seconds(spent["queue"])).append("   before the episodes", style="dim")


def _other_s(summary: Summary) -> float:
    """Returns the seconds of the episodes that went neither to the model nor to tools nor to the verifier."""
    spent = summary.seconds
    return max(0.0, spent["total"] - spent["model"] - spent["tool"] - spent["verifier"])


def _by_failed_task(summary: Summary) -> Grid:
    """Returns the tasks with the most failures, with bounds of their mean."""
    worst = sorted(summary.failed_tasks.items(), key=lambda item: (item[1].scored - item[1].episodes, item[0]))
    rows = [
        (task, one.episodes, one.failed, number(one.mean), *map(number, summary.bounds(one) or ()))
        for task, one in worst[:FAILED_TASKS]
    ]
    return grid("task", ">episodes", ">failed", ">mean", ">at least", ">at most", rows=rows)


def _by(tag: str, values: dict[str, Slice]) -> Grid:
    ordered = sorted(values.items(), key=lambda item: difficulty(item[0]))
    rows = [(value, one.episodes, one.failed, number(one.mean)) for value, one in ordered]
    return grid(tag, ">episodes", ">failed", ">mean", rows=rows)
