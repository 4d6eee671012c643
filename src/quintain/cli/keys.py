"""`quintain keys`: the API keys of a server."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(short_help="Create, list and remove the keys of a server.")
def keys() -> None:
    """Make, list and remove the keys in FILE, which `quintain serve --keys FILE` asks for.

    The file holds digests, not keys. A running server notices a change within a second or so.
    """


@keys.command()
@click.argument("file", type=FILE)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["agent", "trainer", "admin"]),
    required=True,
    help="agent: plays its own episodes; trainer: also reads their records and worlds; admin: all episodes.",
)
def add(file: Path, name: str, role: Literal["agent", "trainer", "admin"]) -> None:
    """Create a key called NAME and print it. The key is shown only once; the file holds its hash."""
    from quintain.serve.http import keys as made

    click.echo(made.add(file, name, role))


@keys.command("list")
@click.argument("file", type=FILE)
def list_(file: Path) -> None:
    """List the keys of FILE by name and role."""
    from quintain.serve.http import keys as made

    for line in made.read(file):
        click.echo(f"{line.name}\t{line.role}\tqn_{line.number}")


@keys.command()
@click.argument("file", type=FILE)
@click.argument("name")
def remove(file: Path, name: str) -> None:
    """Remove the key called NAME."""
    from quintain.serve.http import keys as made

    made.remove(file, name)
