"""Command line of Quintain, with one file per command.

Exit status: 0 success; 1 a replay diverged, a check failed, or the disk is full; 2 wrong usage; 3 the failure gate
stopped the run; 4 the subject of an audit could not run; 5 an audit checked too little; 130 interrupted (Ctrl-C), 143
terminated (SIGTERM). An unexpected exception keeps its traceback.

Commands, one module each (`quintain replay-finding` is replay_finding):

audit, conform, demo, export, keys, new, product     the command of that name
profile, replay, replay_finding, rescore, reviews    the command of that name
run, serve, show, studio, training, triage           the command of that name
listing        `quintain list`

Parts of the commands:

plan, selection, play, programs, oracle    a run from its options to its summary
stdio, operation           serving over standard streams; options of a server
audit_table, summary, transcript           terminal views of an audit, a run, a trace
audit_accepted             findings that the author of an environment accepts
audit_advisor              language model that proposes probes to an audit
audit_causes               findings of one cause as one finding
training_rows, parquet, whole_run          contents of exported files
where                      filters of episodes, as the page of the studio reads them
training_page              page of a training report
logs                       logs of other tools as run folders
folders                    run folders, and the environment of traces
options, completion, help  options, shell completion and help of all commands
console, exits             output and exit statuses
hints, interruption        advice after an error; Ctrl-C and the debugger
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import traceback
from collections.abc import Generator, Sequence
from types import FrameType

import click

from quintain import __version__
from quintain.errors import QuintainError

from . import console, exits
from .audit import audit
from .conform import conform
from .demo import demo
from .export import export
from .help import CommandGroup
from .keys import keys
from .listing import list_
from .new import new
from .product import product
from .profile import profile
from .replay import replay
from .replay_finding import replay_finding
from .rescore import rescore
from .reviews import reviews
from .run import run
from .serve import serve
from .show import show
from .studio import studio
from .training import training
from .triage import triage

__framework__ = True


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="quintain")
def program() -> None:
    """Training and evaluation environments for language agents: E = {T, H, V, S, C}."""


for command in (
    list_,
    run,
    serve,
    keys,
    show,
    studio,
    reviews,
    profile,
    product,
    export,
    replay,
    audit,
    replay_finding,
    rescore,
    triage,
    training,
    new,
    conform,
    demo,
):
    program.add_command(command)


@contextlib.contextmanager
def _termination(came: list[int]) -> Generator[None]:
    """Handles SIGTERM like Ctrl-C, so that processes and folders are cleaned up; appends the signal to `came`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        if not callable(signal.getsignal(signal.SIGINT)):  # Shells have what runs in the background ignore Ctrl-C.
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits with its status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    invocation = console.Invocation(given, sys.stdout)
    terminated: list[int] = []
    others = contextlib.redirect_stdout(sys.stderr) if "--json" in given else contextlib.nullcontext()
    try:
        with others, _termination(terminated):
            status = program.main(given, prog_name="quintain", standalone_mode=False, obj=invocation)
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except click.Abort:
        status = exits.INTERRUPTED
    except QuintainError as error:
        if {"-v", "--verbose"} & {*given}:
            traceback.print_exc()
        from .hints import of_error

        click.echo(f"Error: {error}", err=True)
        if hint := of_error(error):
            click.echo(f"Hint: {hint}", err=True)
        status = exits.status(error)
    sys.exit(exits.TERMINATED if terminated and status == exits.INTERRUPTED else status)
