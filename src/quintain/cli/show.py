"""`quintain show`: one trace as text, with its turns, changes and rewards."""

from __future__ import annotations

import asyncio
import functools
import itertools
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import console, options

if TYPE_CHECKING:
    from rich.console import Console

    from quintain.studio.watch import StepChanges
    from quintain.trace import Trace


@click.command(short_help="Show a trace: turns, calls, changes, rewards.")
@options.path
@click.option("--index", type=int, help="Index of the trace; negative values count from the end.  [default: 0]")
@click.option("--task", help="The first trace of the task with this id.")
@click.option("--list", "as_list", is_flag=True, help="List the traces, one per line.")
@click.option("--where", default="", metavar="TERMS", help="List those that a filter of the studio chooses.")
@options.env
@click.option("--full", is_flag=True, help="Show long texts in full.")
@click.option("--html", type=options.PATH, metavar="FILE", help="Write one HTML file instead of the text.")
@options.opens
@options.json
def show(
    *,
    path: Path,
    index: int | None,
    task: str | None,
    as_list: bool,
    where: str,
    env: str | None,
    full: bool,
    html: Path | None,
    opens: bool,
    as_json: bool,
) -> None:
    """Show a trace of PATH, a run folder or a file: turns, calls, observations, what each step changed, rewards.

    What a step changed is found by playing the trace once more, so it needs the environment. --open without --html
    writes a temporary file.
    """
    from .folders import frames_by_episode
    from .transcript import print_transcript

    if as_list or where:
        _print_list(path, where, as_json=as_json)
        return
    place, trace = _pick(path, index, task)
    watched, reason = _watch(path, env, trace)
    frames = frames_by_episode(path).get((trace.task, trace.member, trace.attempt), ())
    if as_json:
        console.print_json(_to_dict(trace, place, watched, reason=reason) | {"frames": frames})
        return
    draw = functools.partial(print_transcript, trace=trace, watched=watched, reason=reason, frames=frames, full=full)
    if html is not None or opens:
        _write_page(draw, html, opens=opens)
    else:
        draw(console.stdout())
    if index is None and task is None:
        console.hint("This is the first trace; choose another with --index or --task, see all with --list.")


def _write_page(draw: Callable[[Console], object], html: Path | None, *, opens: bool) -> None:
    file = html or Path(tempfile.mkdtemp(prefix="quintain-")) / "trace.html"
    console.page(draw, file)
    click.echo(file)
    if opens:
        console.browse(file)


def _pick(path: Path, index: int | None, task: str | None) -> tuple[int, Trace]:
    """Returns the chosen trace and its index."""
    from quintain.errors import UsageError
    from quintain.record import read_traces

    if index is not None and task is not None:
        raise UsageError("give --index or --task, not both")
    traces = enumerate(read_traces(path))  # one by one, for a run may be larger than memory
    found: Iterator[tuple[int, Trace]]
    if task is not None:
        what, found = f"no trace of task {task!r}", (one for one in traces if one[1].task == task)
    elif index is None or index >= 0:
        what, found = f"no trace {index or 0}", itertools.islice(traces, index or 0, None)
    else:
        last = deque(traces, maxlen=-index)
        what, found = f"no trace {index}", iter(last if len(last) == -index else ())
    chosen = next(found, None)
    if chosen is None:
        raise UsageError(f"{path} has {what}; `quintain show {path} --list` names those it has")
    return chosen


def _watch(path: Path, spec: str | None, trace: Trace) -> tuple[StepChanges | None, str]:
    """Returns what each step changed; or None and the reason why the trace cannot be played again."""
    from quintain.errors import QuintainError
    from quintain.studio.watch import task_of, watch

    from .folders import environment_of

    try:
        env = environment_of(path, spec)
        return asyncio.run(watch(env, task_of(env, trace), trace)), ""
    except QuintainError as error:
        return None, str(error)


def _to_dict(trace: Trace, place: int, watched: StepChanges | None, *, reason: str) -> dict[str, Any]:
    import msgspec

    changes = watched and [
        {"turn": turn, "step": step, "changes": [one.to_dict() for one in found]}
        for (turn, step), found in watched.steps.items()
    ]
    return {
        "index": place,
        "trace": msgspec.json.decode(msgspec.json.encode(trace)),
        "state_diff": _plain(changes),
        "state_diff_missing": reason or None,
        "state_diff_diverged_at_turn": watched.diverged if watched else None,
    }


def _plain(value: Any) -> Any:
    """Converts a value to JSON types; a value that JSON cannot hold becomes its repr."""
    import msgspec

    return msgspec.to_builtins(value, enc_hook=repr)


def _print_list(path: Path, where: str, *, as_json: bool) -> None:
    from quintain.record import read_traces

    from .where import rows_where
    from .whole_run import table_of

    rows: list[tuple[Any, ...]]
    if where:
        facts = ("n", "task", "member", "attempt", "turns", "score")
        with table_of(path, "--where") as table:
            rows = [(*map(row.get, facts), console.safe(row["reason"])) for row in rows_where(table, where)]
    else:
        traces = enumerate(read_traces(path))
        rows = [(n, t.task, t.member, t.attempt, len(t.turns), t.score, console.safe(t.reason)) for n, t in traces]
    columns = (">index", "task", "?>member", "?>attempt", ">turns", ">score", "reason")
    if as_json:
        names = [column.lstrip("?>") for column in columns]
        console.print_json({"traces": [dict(zip(names, row, strict=True)) for row in rows]})
    else:
        cells = [(*row[:5], console.number(row[5]), row[6]) for row in rows]
        console.stdout().print(console.grid(*columns, rows=cells))
