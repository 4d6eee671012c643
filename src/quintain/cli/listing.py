"""`quintain list`: the environments, agents and adapters that are installed."""

from __future__ import annotations

import click

from . import console, options

GROUPS = {"environments": "environments", "agents": "models", "adapters": "adapters"}
"""Field of `--json` to the group of entry points it lists."""
_FORMS = {
    "agents": {"openai": "openai:NAME"},
    "adapters": {
        "code": "code:PATH",
        "gymnasium": "gymnasium:ID",
        "inspect": "inspect:TASK",
        "reasoning-gym": "reasoning-gym:NAME",
        "multihop": "multihop:NAME",
        "tau2": "tau2:DOMAIN",
        "verifiers": "verifiers:MODULE",
    },
}


@click.command("list", short_help="List installed environments, agents and adapters.")
@options.json
def list_(*, as_json: bool) -> None:
    """Name the environments, agents and adapters that are installed, and the packages they come from."""
    found = {title: _entries(group) for title, group in GROUPS.items()}
    if as_json:
        console.print_json(found)
        return
    rows = [
        (title.removesuffix("s") if n == 0 else "", _FORMS.get(title, {}).get(one["name"], one["name"]), one["package"])
        for title, entries in found.items()
        for n, one in enumerate(entries)
    ]
    out = console.stdout()
    out.print(console.grid("", "name", "package", rows=rows))
    out.print("\nEnvironments and agents can also be named package.module:attr or path/to/file.py:attr.")


def _entries(group: str) -> list[dict[str, str]]:
    from importlib.metadata import entry_points

    entries = sorted(entry_points(group=f"quintain.{group}"), key=lambda entry: entry.name)
    return [
        {"name": entry.name, "value": entry.value, "package": entry.dist.name if entry.dist is not None else ""}
        for entry in entries
    ]
