"""`quintain profile`: distributions of a task set and its runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completion, console, options

if TYPE_CHECKING:
    from rich.console import Console

    from quintain.studio.folders import Runs

_BARS = " ▁▂▃▄▅▆▇█"
_TASKS = 10
"""Tasks of a list that are printed; --json has all."""
_FOLLOWING = 4
"""Tools that are printed after another."""


@click.command(short_help="Distributions of a task set and its runs.")
@click.argument("env", shell_complete=completion.environments)
@click.option("--runs", type=options.PATH, metavar="DIR", help="Run folder, or folder of them, of this environment.")
@options.json
def profile(*, env: str, runs: Path | None, as_json: bool) -> None:
    """Show what the tasks of ENV are like: prompts, solutions, tags, and tasks that two splits share.

    With --runs, also turns, calls, tools, which of them follow which, tokens and seconds of their episodes, difficulty
    with its interval, and the tasks that an agent solves that does nothing (`noop`) or acts at random, and those that
    no agent solves.
    """
    from quintain import plugins
    from quintain.studio.profile import profile_of_runs, profile_of_tasks

    made = plugins.environment(env)
    found: dict[str, Any] = {"tasks": profile_of_tasks(made), "runs": None}
    if runs is not None:
        opened = _opened(runs)
        own = [run for run in opened.all().values() if run.summary()["environment"] == made.name]
        found["runs"] = profile_of_runs(own)
        opened.close()
    if as_json:
        console.print_json(found)
        return
    out = console.stdout()
    _print_tasks(out, found["tasks"])
    if found["runs"] is not None:
        _print_runs(out, found["runs"])
    else:
        console.hint(f"Tasks that need no skill show in a run: quintain run {env} --agent noop; then give --runs runs.")


def _opened(place: Path) -> Runs:
    from quintain.studio.folders import Runs
    from quintain.studio.places import indexes

    return Runs([place], indexes())


def _print_tasks(out: Console, found: dict[str, Any]) -> None:
    out.print(f"{found['environment']}: {console.plural(found['tools'], 'tool')}\n")
    rows = [
        (
            split,
            f"{one['tasks']:,}" + ("" if one["read"] == one["tasks"] else f", {one['read']:,} read"),
            what,
            *_cells(one[key]),
        )
        for split, one in found["splits"].items()
        for what, key in (("characters of the prompt", "prompt"), ("calls of the solution", "solution"))
    ]
    out.print(console.grid("split", ">tasks", "of a task", *_COLUMNS, rows=rows))
    for one in found["overlaps"]:
        pairs = [a if a == b else f"{a} = {b}" for a, b in one["tasks"]]
        _flag(out, f"splits {' and '.join(one['splits'])} share tasks", pairs)


_COLUMNS = (">least", ">median", ">most", ">mean", "distribution")


def _cells(one: dict[str, Any] | None) -> tuple[str, ...]:
    if one is None:
        return ("-",) * len(_COLUMNS)
    least, _, median, _, most = one["quantiles"]
    top = max(one["bins"])
    bars = "".join(_BARS[-(-count * 8 // top)] for count in one["bins"])
    return (*(console.number(value, 1) for value in (least, median, most, one["mean"])), bars)


def _print_runs(out: Console, found: dict[str, Any]) -> None:
    agents = ", ".join(f"{name} {one['episodes']:,}" for name, one in found["agents"].items())
    out.print(f"\n{console.plural(found['episodes'], 'episode')}: {agents}\n")
    rows = [(name, *_cells(one)) for name, one in found["distributions"].items()]
    out.print(console.grid("of an episode", *_COLUMNS, rows=rows))
    total = sum(one["calls"] for one in found["tools"]) or 1
    shares = [
        (
            one["tool"],
            one["calls"],
            f"{one['calls'] / total:.0%}",
            f"{one['refused'] / one['calls']:.0%}",
            one["episodes"],
        )
        for one in found["tools"]
    ]
    out.print(console.grid("tool", ">calls", ">share", ">refused", ">episodes", rows=shares))
    out.print(console.grid("tool", "what follows, of its calls", rows=_follows(found["follows"])))
    out.print(f"Difficulty is 1 - mean score of {', '.join(found['measured'])}.\n")
    out.print(
        console.grid("tag", *_DIFFICULTY, rows=[(name, *_difficulty(one)) for name, one in found["tags"].items()])
    )
    tasks = sorted(found["tasks"].items(), key=lambda item: -(item[1]["difficulty"] or 0.0))
    out.print(
        console.grid("hardest tasks", *_DIFFICULTY, rows=[(name, *_difficulty(one)) for name, one in tasks[:_TASKS]])
    )
    for one in found["flags"]:
        _flag(out, one["means"], one["tasks"])


def _follows(pairs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Returns the most frequent tools after each; an episode begins and ends, too."""
    found: dict[str, list[str]] = {}
    for one in pairs:
        words = f"{one['next'] or 'the end'} {one['share']:.0%}"
        found.setdefault(one["tool"] or "the beginning", []).append(words)
    return [
        (tool, ", ".join(words[:_FOLLOWING]) + (f", {more} more" if (more := len(words) - _FOLLOWING) > 0 else ""))
        for tool, words in found.items()
    ]


_DIFFICULTY = (">episodes", ">failed", ">difficulty", "95 % interval", "from 0 to 1")


def _difficulty(one: dict[str, Any]) -> tuple[str, ...]:
    counts = (f"{one['episodes']:,}", f"{one['failed']:,}", console.number(one["difficulty"], 2))
    if one["difficulty"] is None:
        return (*counts, "", "")
    low, high = one["interval"]
    bar = "".join(
        "█" if n == round(19 * one["difficulty"]) else "─" if low <= n / 19 <= high else "·" for n in range(20)
    )
    return (*counts, f"{low:.2f} … {high:.2f}", bar)


def _flag(out: Console, words: str, tasks: list[str]) -> None:
    from rich.text import Text

    more = f" and {len(tasks) - _TASKS:,} more" if len(tasks) > _TASKS else ""
    names = console.safe(", ".join(tasks[:_TASKS]))
    out.print(
        Text(f"\n{console.plural(len(tasks), 'task')}: {words}: ", style="yellow").append(names + more, style="default")
    )
