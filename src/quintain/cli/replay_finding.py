"""`quintain replay-finding`: reproduce a finding of an audit."""

from __future__ import annotations

from pathlib import Path

import click

from . import console, exits, options


@click.command(name="replay-finding", short_help="Reproduce a finding of an audit.")
@click.argument("path", type=options.PATH)
@click.option(
    "--number", type=click.IntRange(min=1), metavar="N", help="Number of the finding if PATH is a report.json."
)
@options.json
def replay_finding(*, path: Path, number: int | None, as_json: bool) -> None:
    """Play the finding in PATH again, in two fresh processes, and say whether it still holds.

    Ends with status 1 when it does: the bug is still there. 0: it is gone. 4: the subject could not be run.
    """
    from msgspec.structs import asdict

    from quintain.audit.kernel import replay
    from quintain.audit.kernel.child import SubjectBroken
    from quintain.audit.report.document import load

    from .audit_table import print_trajectory

    finding = load(path, number)
    try:
        replayed = replay.replay_finding(finding)
    except SubjectBroken as error:
        click.echo(f"Error: the subject could not be run: {error}", err=True)
        raise click.exceptions.Exit(exits.SUBJECT) from None
    if as_json:
        console.print_json({"title": finding.title, "holds": replayed.held > 0, **asdict(replayed)})
    else:
        out = console.stdout()
        out.print(f"{finding.title}\n", style="bold", soft_wrap=True)
        for place, trajectory in enumerate(replayed.trajectories):
            if place:
                out.print("beside it:", style="dim")
            print_trajectory(out, trajectory)
        verdict = "It is still there" if replayed.held else "It is gone"
        out.print(f"\n{verdict}: shown in {replayed.held} of {replayed.plays} fresh plays.")
    if replayed.held:
        raise click.exceptions.Exit(exits.FAILED)
