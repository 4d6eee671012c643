"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from quintain.errors import UsageError

from . import completion

json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else there.")

opens = click.option("--open", "opens", is_flag=True, help="Open the result as a page in the web browser.")

data = click.option(
    "--data", metavar="PATH", help="Data folder of the environment, needed by tau2:DOMAIN and multihop:NAME."
)

nl_assertions = click.option(
    "--nl-assertions",
    metavar="HOW",
    help='How tau2 treats assertions that need a judge; "assume-true" counts them as held, and the trace says so.',
)

twin = click.option(
    "--twin",
    metavar="CLASS",
    shell_complete=completion.twins,
    help=f"Plant a bug of this class: {', '.join(completion.TWINS[:-1])} or {completion.TWINS[-1]}; "
    "coding, helpdesk and sales have one of each.",
)

processes = click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=3,
    show_default=True,
    help="Number of fresh processes to replay in, each with another PYTHONHASHSEED.",
)

PATH = click.Path(path_type=Path)

path = click.argument("path", type=PATH, shell_complete=completion.runs)
"""A run folder, or a file of traces; the commands that read it report what is wrong with it."""

env = click.option(
    "--env",
    metavar="ENV",
    shell_complete=completion.environments,
    help="Environment; needed if no run.json is next to the traces.",
)

split = click.option(
    "--split", shell_complete=completion.splits, help='Split of the tasks.  [default: "test", else the last split]'
)

world_seed = click.option("--seed", type=int, default=0, show_default=True, help="Seed of the worlds.")


made_with = click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Other option of the environment, such as is_slippery=false of gymnasium:FrozenLake-v1.",
)


def environment_options(further: Iterable[str], *, data: str | None = None, **named: str | None) -> dict[str, str]:
    """Returns the options to make an environment with, those in `named` that are not None; `data` becomes absolute.

    Raises:
        UsageError: An option has no value.
    """
    where = str(Path(data).absolute()) if data is not None else None
    given = {"data": where, **named}
    return {name: value for name, value in given.items() if value is not None} | pairs("--option", further)


def pairs(option: str, texts: Iterable[str], known: str = "") -> dict[str, str]:
    """Returns the values of texts like "name=value", by name.

    Raises:
        UsageError: One has no value.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{option} takes name=value, got {text!r}{known}")
        found[name.strip()] = value.strip()
    return found
