"""`quintain replay`: replay traces in processes with different hash seeds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from . import completion, console, exits, options

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from quintain.chain import TaskChain
    from quintain.errors import ReplayDivergence
    from quintain.task import Task
    from quintain.trace import Trace

NAMED = 3
"""So many divergences are shown; the others are counted."""


class DivergenceExcerpt(msgspec.Struct, kw_only=True):
    """First difference between a trace and its replay, with both values."""

    path: str
    task: str
    member: int
    attempt: int
    turn: int | None
    step: int | None
    field: str
    trace: str
    replay: str
    same_code: bool = True
    """True if the environment has the fingerprint of the trace."""

    @property
    def place(self) -> str:
        """Place as text, such as "turn 3, step 0, observation"."""
        counted = (("turn", self.turn), ("step", self.step))
        return ", ".join([*(f"{name} {n}" for name, n in counted if n is not None), self.field])


class ReplayResult(msgspec.Struct, kw_only=True):
    """Result of the replays in one process."""

    hash_seed: str
    """PYTHONHASHSEED of the process."""
    episodes: int = 0
    turns: int = 0
    diverged: int = 0
    from_record: int = 0
    """Verdicts of judges and groups, which a replay takes from the record."""
    first: list[DivergenceExcerpt] = []
    wall_s: float = 0.0
    """Seconds of the replays alone, without the imports and the construction of environments and tasks."""


@click.command(short_help="Replay recorded traces and compare them byte by byte.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=options.PATH, shell_complete=completion.runs)
@options.env
@options.processes
@click.option("--here", is_flag=True, help="Replay in this process only; misses differences between hash seeds.")
@options.json
def replay(*, paths: Sequence[Path], env: str | None, processes: int, here: bool, as_json: bool) -> None:
    """Play the traces of each PATH, a run folder or a file, again: the same replies must give the same bytes.

    Ends with status 1 when a replay diverged, and names the first turn, step and field that differ.
    """
    verdicts = [asyncio.run(replay_here(paths, env))] if here else replay_in_processes(paths, env, processes)
    if as_json:
        same = not any(verdict.diverged for verdict in verdicts)
        console.print_json({"episodes": verdicts[0].episodes, "agree": same, "processes": verdicts})
    else:
        print_verdicts(verdicts)
    if any(verdict.diverged for verdict in verdicts):
        raise click.exceptions.Exit(exits.FAILED)


def replay_in_processes(paths: Sequence[Path], env: str | None, processes: int) -> list[ReplayResult]:
    """Replays in fresh processes with different hash seeds; exits if one of them fails."""
    title = f"replaying in {console.plural(processes, 'process', 'processes')}"
    with console.progress(title, count_episodes(paths) * processes) as update:
        done = in_processes(["replay", "--here"], paths, env=env, count=processes, watch=lambda n: update(advance=n))
    verdicts: list[ReplayResult] = []
    for process in done:
        if process.returncode not in (0, exits.FAILED) or not process.stdout:
            click.echo(process.stderr.rstrip(), err=True)
            raise click.exceptions.Exit(process.returncode or exits.FAILED)
        verdicts += msgspec.json.decode(process.stdout, type=_ReplayDocument).processes
    return verdicts


def count_episodes(paths: Sequence[Path]) -> int:
    """Returns the number of episodes in run folders and files, as far as they can be read."""
    count = 0
    for path in paths:
        with contextlib.suppress(OSError), (path / "traces.jsonl" if path.is_dir() else path).open("rb") as lines:
            count += sum(1 for _ in lines)
    return count


def in_processes(
    command: Sequence[str], paths: Sequence[Path], *, env: str | None, count: int, watch: Callable[[int], object]
) -> Iterable[CompletedProcess[str]]:
    """Runs a command of this program with --json in fresh processes whose hash seeds all differ from this one's.

    `watch` receives the number of further episodes that the processes are done with; another thread calls it.
    """
    from quintain.testing.elsewhere import fresh_processes

    own = os.environ.get("PYTHONHASHSEED")
    seeds = [seed for seed in range(1, count + 2) if str(seed) != own][:count]
    named = ["--env", env] if env is not None else []
    program = [sys.executable, "-m", "quintain", *command, "--json", *named, "--", *map(str, paths)]
    receiver, sender = os.pipe()
    watching = threading.Thread(target=_watch, args=(receiver, watch))
    watching.start()
    try:
        return fresh_processes(program, seeds, variables={console.PROGRESS_FD: str(sender)}, pass_fds=[sender])
    finally:
        os.close(sender)
        watching.join()


def _watch(receiver: int, watch: Callable[[int], object]) -> None:
    with open(receiver, "rb", buffering=0) as pipe:
        while steps := pipe.read(4096):
            watch(len(steps))


class _ReplayDocument(msgspec.Struct):
    processes: list[ReplayResult]


async def replay_here(paths: Sequence[Path], spec: str | None) -> ReplayResult:
    """Replays all traces in this process.

    Raises:
        UsageError, DefinitionError: The traces or their environment cannot be loaded, or there are no traces.
        TraceError: A trace cannot be decoded.
    """
    from quintain.chain import TaskChain
    from quintain.errors import UsageError
    from quintain.record import read_traces
    from quintain.studio.watch import task_of
    from quintain.trace import Level

    from .folders import environment_of

    verdict = ReplayResult(hash_seed=os.environ.get("PYTHONHASHSEED", "random"))
    with console.progress("replaying", count_episodes(paths)) as update:
        for path in paths:
            env = environment_of(path, spec)
            days = TaskChain(env)
            outside = {one.name for one in env.verifier.criteria if one.external or one.level is Level.GROUP}
            for trace in read_traces(path):
                task = task_of(env, trace)
                verdict.episodes += 1
                verdict.turns += len(trace.turns)
                verdict.from_record += sum(given.name in outside for given in trace.every_reward())
                started = time.perf_counter()
                diverged = await _replay(days, task, trace)
                verdict.wall_s += time.perf_counter() - started
                update(advance=1)
                console.log.info("%s, member %d: %s", trace.task, trace.member, "diverged" if diverged else "equal")
                if diverged is not None:
                    verdict.diverged += 1
                    if len(verdict.first) < NAMED:
                        is_same = trace.fingerprint == env.fingerprint
                        verdict.first.append(_named(path, trace, diverged, same_code=is_same))
    if not verdict.episodes:
        raise UsageError(f"found no episode to replay in {', '.join(map(str, paths))}")
    return verdict


async def _replay(days: TaskChain[Any], task: Task[Any], trace: Trace) -> ReplayDivergence | None:
    from quintain.errors import ReplayDivergence

    try:
        await days.replay(task, trace)
    except ReplayDivergence as error:
        return error
    return None


def _named(path: Path, trace: Trace, diverged: ReplayDivergence, *, same_code: bool) -> DivergenceExcerpt:
    expected, found = console.excerpts(_text(diverged.expected), _text(diverged.found))
    return DivergenceExcerpt(
        path=str(path),
        task=trace.task,
        member=trace.member,
        attempt=trace.attempt,
        turn=diverged.turn,
        step=diverged.step,
        field=diverged.field,
        trace=expected,
        replay=found,
        same_code=same_code,
    )


def _text(value: Any) -> str:
    from quintain.changes import shown

    return value if isinstance(value, str) else shown(value)


def print_verdicts(verdicts: Sequence[ReplayResult]) -> None:
    """Prints one line per process, and each of the first divergences once."""
    from rich.padding import Padding
    from rich.text import Text

    out = console.stdout()
    rows = [
        (v.hash_seed, v.episodes, v.turns, _result(v), console.seconds(v.wall_s), console.number(_rate(v), 0))
        for v in verdicts
    ]
    out.print(console.grid("hash seed", ">episodes", ">turns", "result", ">time", ">episodes/s", rows=rows))
    if count := verdicts[0].from_record:
        out.print(f"{console.plural(count, 'verdict')} of judges and groups taken from the record, not asked for again")
    named: dict[bytes, DivergenceExcerpt] = {}
    for verdict in verdicts:
        for one in verdict.first:
            named.setdefault(msgspec.json.encode((one.path, one.task, one.member, one.attempt)), one)
    for one in named.values():
        out.print()
        who = f"{one.task}, member {one.member}, attempt {one.attempt}, of {one.path}"
        out.print(Text(f"{who}: {one.place}", style="bold"))
        for name, side in (("trace", one.trace), ("replay", one.replay)):
            text = Text().append(f"{name:<7} ", style="dim").append(console.safe(side))
            out.print(Padding(text, (0, 0, 0, 2), expand=False))
    if not all(one.same_code for one in named.values()):
        out.print("\nThe environment's code has changed since these traces were made.")


def _result(verdict: ReplayResult) -> str:
    return f"{verdict.diverged:,} diverged" if verdict.diverged else "equal to the byte"


def _rate(verdict: ReplayResult) -> float:
    return verdict.episodes / verdict.wall_s if verdict.wall_s else 0.0
