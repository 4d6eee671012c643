"""`quintain run`: play the tasks of an environment and say how it went."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completion, console, exits, options

if TYPE_CHECKING:
    from .plan import Plan
    from .play import RunResult


@click.command(short_help="Play the tasks of an environment.")
@click.argument("env", default="sales", shell_complete=completion.environments)
@options.split
@click.option(
    "--agent",
    default="oracle",
    show_default=True,
    shell_complete=completion.agents,
    help="oracle, noop, random, openai:NAME, script:FILE (one list of calls per episode), or a plugin.",
)
@click.option("--base-url", metavar="URL", help="Endpoint of openai:NAME; the key comes from OPENAI_API_KEY.")
@click.option(
    "--user", metavar="AGENT", shell_complete=completion.agents, help="Model of the simulated user, named like --agent."
)
@click.option("--harness", metavar="command:CMD", help="Agent program to run as the harness; --agent is its model.")
@click.option(
    "--allow-tool",
    "allow_tools",
    multiple=True,
    metavar="NAME",
    help="Tool of the program that it may use; * allows all; repeatable.",
)
@click.option(
    "--pass-env", multiple=True, metavar="NAME", help="Environment variable to pass to the program; repeatable."
)
@click.option("--any-process", is_flag=True, help="Let child processes of the program call its model.")
@click.option("--tasks", metavar="N|A:B|IDS", help='The first N, a slice, or ids: "a,b", "7,".  [default: all]')
@click.option("--group", type=click.IntRange(min=1), default=1, show_default=True, help="Episodes per task.")
@options.world_seed
@click.option("--concurrency", type=int, help="Maximum concurrent episodes.")
@click.option("--config", type=options.PATH, metavar="FILE", help="TOML file with configuration.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="One configuration value; overrides --config; repeatable.",
)
@options.data
@options.nl_assertions
@options.twin
@click.option("--scorer", metavar="SCORER", help="Scorer of a data file: exact, numeric, or path/to/file.py:fn.")
@click.option("--prompt-column", metavar="NAME", help="Column with the prompt.  [default: prompt, question or input]")
@click.option("--answer-column", metavar="NAME", help="Column with the answer.  [default: answer or target]")
@options.made_with
@click.option("--out", type=options.PATH, metavar="DIR", help="Run folder.  [default: runs/ENV-AGENT-N]")
@click.option("--debug", is_flag=True, help="Open the first failure in pdb.")
@click.option("--allow-partial", is_flag=True, help="Accept solutions that do not reach full marks.")
@click.option("--resume", is_flag=True, help="Continue the run in --out, or the latest run of ENV and AGENT.")
@options.json
@click.pass_obj
def run(invocation: console.Invocation, /, **given: Any) -> None:
    """Play the tasks of ENV (sales, if left out) and say how it went.

    ENV is a registered name, package.module:attr, path/to/file.py:attr, ADAPTER:TEXT such as tau2:DOMAIN or
    gymnasium:ID (`quintain list` names the adapters), the URL of a served environment (http://HOST:PORT/NAME), or a
    JSONL, CSV or Parquet file, whose rows --scorer scores. Each finished episode is on disk before it counts: a run
    that was interrupted, or even killed, goes on with --resume.
    """
    from quintain.studio.watch import maxima

    from . import oracle
    from .plan import RunArguments, plan
    from .selection import ORACLE

    chosen = plan(RunArguments(**given))
    place = chosen.place()
    started = time.perf_counter()
    played, before = _play(chosen, place, invocation.arguments)
    unsolved = oracle.unsolved(place, maxima(chosen.env.verifier)) if chosen.wanted.agent == ORACLE else []
    facts = {
        "environment": chosen.env.name,
        "split": chosen.split,
        "agent": chosen.wanted.agent,
        "user": chosen.wanted.user,
        "group": chosen.wanted.group,
        "seed": chosen.wanted.seed,
        "fingerprint": chosen.env.fingerprint,
        "run_dir": str(place),
        "resumed_from": before,
        "wall_s": time.perf_counter() - started,
    }
    if chosen.wanted.as_json:
        from .summary import to_dict

        stopped = played.stopped and {"reason": str(played.stopped).partition("\n")[0], "report": played.stopped.report}
        console.print_json(facts | to_dict(played.summary) | {"unsolved": unsolved, "stopped": stopped})
    else:
        _print(played, facts)
    if played.stopped is not None:
        raise played.stopped
    if unsolved and not chosen.wanted.allow_partial:
        click.echo(oracle.explain(unsolved), err=True)
        raise click.exceptions.Exit(exits.FAILED)


def _play(chosen: Plan, place: Path, arguments: list[str]) -> tuple[RunResult, int]:
    """Plays the run and returns its result with the number of episodes that existed before."""
    from quintain.studio.description import Description
    from quintain.studio.recorder import Recorder

    from .folders import opened
    from .interruption import debugger, interruptible
    from .play import play, progress

    wanted = chosen.wanted
    with opened(place, chosen.manifest, resume=wanted.resume) as folder, Recorder(folder) as recorder:
        before = len(folder)
        Description.of(chosen.env).write(place)
        try:
            with progress(len(chosen.tasks) * wanted.group, f"{chosen.env.name}, {chosen.agent.name}") as watcher:
                names = {"group": wanted.group, "seed": wanted.seed, "split": chosen.split}
                env = recorder.watch(chosen.env)
                running = play(env, chosen.agent, chosen.tasks, folder=folder, watcher=watcher, **names)
                with debugger() if wanted.debug else contextlib.nullcontext():
                    return asyncio.run(interruptible(running)), before
        except KeyboardInterrupt:
            safe = console.plural(len(folder), "finished episode")
            click.echo(f"\nInterrupted. {safe} saved in {place}; continue with\n  {_again(arguments, place)}", err=True)
            raise click.exceptions.Exit(exits.INTERRUPTED) from None


def _again(arguments: list[str], place: Path) -> str:
    """Returns the command that continues this run."""
    further = [] if "--resume" in arguments else ["--resume"]
    if not any(word.partition("=")[0] == "--out" for word in arguments):
        further += ["--out", str(place)]
    return shlex.join(["quintain", *arguments, *further])


def _print(played: RunResult, facts: dict[str, Any]) -> None:
    from rich.text import Text

    from .summary import print_summary

    out = console.stdout()
    title = Text(f"{facts['environment']}, {facts['split']}, {facts['agent']}", style="bold")
    resumed = f", {facts['resumed_from']:,} of them from before" if facts["resumed_from"] else ""
    episodes = console.plural(played.summary.all.episodes, "episode")
    out.print(title.append(f"   {episodes}{resumed} in {console.seconds(facts['wall_s'])}", style="not bold dim"))
    out.print()
    print_summary(out, played.summary)
    out.print(f"Traces are in {facts['run_dir']}; show one with `quintain show {facts['run_dir']}`.", soft_wrap=True)
