"""`quintain studio`: runs in the browser."""

from __future__ import annotations

import webbrowser
from importlib.util import find_spec
from pathlib import Path

import click

from quintain.errors import UsageError

from . import completion, options


@click.command(short_help="Read runs in the browser.")
@click.argument("runs", nargs=-1, required=True, type=options.PATH, metavar="RUNS...", shell_complete=completion.runs)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=7414, show_default=True, help="TCP port; 0 for any free one."
)
@click.option(
    "--env",
    metavar="ENV",
    shell_complete=completion.environments,
    help="Environment to replay episodes with; its code is imported.  [default: what run.json names, if installed]",
)
@click.option("--reviewer", metavar="NAME", help="Name in your reviews.  [default: git's user.name, else the login]")
@click.option("--read-only", is_flag=True, help="Refuse reviews: write nothing.")
@options.opens
def studio(
    *, runs: tuple[Path, ...], port: int, env: str | None, reviewer: str | None, read_only: bool, opens: bool
) -> None:
    """Show RUNS, run folders or folders of them, in the browser: all episodes as a table, each as a page.

    RUNS may also be logs of verifiers, Inspect (.json, .eval) or OpenAI messages (.jsonl), which are read into a run
    folder beside them.

    Prints its address, which works on this machine only, and ends with Ctrl-C. It writes nothing but reviews, to the
    folder `reviews` of a run, and imports no code that a run names. What a step changed is found by a replay in a child
    process, which needs the environment.
    """
    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise UsageError(f"the studio needs {' and '.join(missing)}: pip install 'quintain[studio]'")
    from quintain.studio.reviews import reviewer_name
    from quintain.studio.server import serve

    places = [_run(path) for path in runs]

    def ready(address: str) -> None:
        click.echo(f"studio: {address}")
        if opens:
            webbrowser.open(address)

    serve(places, port=port, env=env, reviewer=None if read_only else reviewer_name(reviewer), ready=ready)


def _run(path: Path) -> Path:
    """Returns the folder to show; the log of another tool becomes a run folder first."""
    from . import console, logs

    if path.name == "traces.jsonl":
        return path.parent
    if not path.exists() or logs.is_run(path):
        return path
    folder, words = logs.run_of(path)
    console.hint(words)
    return folder
