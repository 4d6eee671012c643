"""`quintain studio`: runs in the browser."""

from __future__ import annotations

import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quintain.errors import UsageError

from . import completion, options

if TYPE_CHECKING:
    from quintain.studio.access import OwnerOf


@click.command(short_help="Read runs in the browser.")
@click.argument("runs", nargs=-1, required=True, type=options.PATH, metavar="RUNS...", shell_complete=completion.runs)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=7414, show_default=True, help="TCP port; 0 for any free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; another needs --keys.")
@click.option(
    "--keys",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File of keys, one of which the browser must present as the password; see `quintain keys`.",
)
@click.option(
    "--name",
    "names",
    metavar="HOST[:PORT]",
    multiple=True,
    help="Additional name, such as that of a proxy; repeatable.",
)
@click.option(
    "--env",
    metavar="ENV",
    shell_complete=completion.environments,
    help="Environment to replay episodes with; its code is imported.  [default: what run.json names, if installed]",
)
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    multiple=True,
    help="JSON lines with task, member and attempt, whose other fields become columns of the run; repeatable.",
)
@click.option(
    "--tokenizer",
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="A tokenizer.json, or a folder with one: the page shows the text of each token.",
)
@click.option("--reviewer", metavar="NAME", help="Name in your reviews.  [default: git's user.name, else the login]")
@click.option("--read-only", is_flag=True, help="Refuse reviews: write nothing.")
@options.opens
def studio(
    *,
    runs: tuple[Path, ...],
    host: str,
    keys: Path | None,
    names: tuple[str, ...],
    reviewer: str | None,
    read_only: bool,
    opens: bool,
    **more: Any,
) -> None:
    """Show RUNS, run folders or folders of them, in the browser: all episodes as a table, each as a page.

    RUNS may also be logs of verifiers, Inspect (.json, .eval) or OpenAI messages (.jsonl), which are read into a run
    folder beside them.

    Prints its address, which works on this machine only unless --host names another, and ends with Ctrl-C. It writes
    nothing but reviews, to the folder `reviews` of a run, and imports no code that a run names. What a step changed is
    found by a replay in a child process, which needs the environment.
    """
    if missing := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise UsageError(f"the studio needs {' and '.join(missing)}: pip install 'quintain[studio]'")
    from quintain.studio.reviews import reviewer_name
    from quintain.studio.server import serve

    owner_of = _owner_of(host, keys, reviewer)
    if host in {"0.0.0.0", "::"} and not names:  # noqa: S104  # Nothing listens here.
        raise UsageError(f"no browser asks for {host}, which is each address of this machine: add its --name HOST:PORT")
    places = [_run(path) for path in runs]

    def ready(address: str) -> None:
        click.echo(f"studio: {address}")
        if opens:
            webbrowser.open(address)

    name = None if read_only else reviewer_name(reviewer)
    serve(places, host=host, names=names, owner_of=owner_of, reviewer=name, ready=ready, **more)


def _owner_of(host: str, keys: Path | None, reviewer: str | None) -> OwnerOf | None:
    """Returns the check of keys: those of role admin give access, for the studio shows episodes of all keys.

    Raises:
        UsageError: The address can be reached from outside and there are no keys, or they cannot be used.
    """
    from quintain.serve.http.auth import is_loopback
    from quintain.serve.http.keys import Keys
    from quintain.studio.reviews import reviewer_name

    if keys is None:
        if not is_loopback(host):
            raise UsageError(f"--host {host} can be reached from outside: name the accepted keys with --keys FILE")
        return None
    if reviewer is not None:
        raise UsageError("with --keys the name of a key is that of the reviewer, so leave out --reviewer")
    known = Keys(keys)

    def owner(key: str) -> str | None:
        caller = known.caller(key)
        return reviewer_name(caller.name) if caller is not None and caller.role == "admin" else None

    return owner


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
