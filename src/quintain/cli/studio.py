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
@options.opens
def studio(*, runs: tuple[Path, ...], port: int, env: str | None, opens: bool) -> None:
    """Show RUNS, run folders or folders of them, in the browser: all episodes as a table, each as a page.

    Prints its address, which works on this machine only, and ends with Ctrl-C. It only reads the runs, and imports no
    code that they name. What a step changed is found by a replay in a child process, which needs the environment.
    """
    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise UsageError(f"the studio needs {' and '.join(missing)}: pip install 'quintain[studio]'")
    from quintain.studio.server import serve

    def ready(address: str) -> None:
        click.echo(f"studio: {address}")
        if opens:
            webbrowser.open(address)

    serve(runs, port=port, env=env, ready=ready)
