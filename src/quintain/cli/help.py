"""Groups and examples of the program's help, and the options that every command has."""

from __future__ import annotations

import click

from . import console

EXAMPLES: dict[str, dict[str, tuple[str, str]]] = {
    "Play": {
        "list": ("quintain list", "quintain list --json"),
        "run": (
            "quintain run sales --agent openai:gpt-4.1 --tasks 20",
            "quintain run path/to/library.py:env --agent random --group 4 --out here",
        ),
        "demo": ("quintain demo", "quintain demo ops --tasks 10"),
        "new": ("quintain new library", "quintain new library --template qa"),
    },
    "Look": {
        "show": ("quintain show runs/sales-oracle-1 --list", "quintain show runs/sales-oracle-1 --index -1 --open"),
        "studio": ("quintain studio runs --open", "quintain studio runs/sales-oracle-1 runs/sales-random-1 --port 0"),
        "reviews": ("quintain reviews runs/sales-oracle-1", "quintain reviews runs/sales-oracle-1 --of ada,ben --json"),
        "profile": ("quintain profile sales", "quintain profile sales --runs runs --json"),
        "triage": ("quintain triage runs/sales-random-1", "quintain triage runs/sales-random-1 --json"),
        "training": (
            "quintain training logs/seed-0 logs/seed-1 logs/seed-2 --html report.html",
            "quintain training logs/seed-0 --html report.html --follow",
        ),
        "export": (
            "quintain export runs/sales-oracle-1 --format sft",
            "quintain export runs/sales-oracle-1 --format chat --out rows.jsonl",
        ),
    },
    "Check": {
        "audit": (
            "quintain audit path/to/library.py:env --thorough",
            "quintain audit sales --class reward_hack --open",
        ),
        "replay": ("quintain replay runs/sales-oracle-1", "quintain replay runs/sales-oracle-1 --processes 1"),
        "rescore": (
            "quintain rescore runs/sales-oracle-1",
            "quintain rescore runs/library-oracle-1 --verifier path/to/library.py:stricter --out rescored",
        ),
        "replay-finding": (
            "quintain replay-finding audits/sales-1/finding-1.json",
            "quintain replay-finding audits/sales-1/report.json --number 2",
        ),
        "conform": (
            "quintain conform tau2:retail --data tau2-bench/data --cases cases.jsonl.gz",
            "quintain conform tau2:airline --data tau2-bench/data --cases cases.jsonl.gz --json",
        ),
    },
    "Serve": {
        "serve": ("quintain serve sales ops", "quintain serve path/to/library.py:env --port 9000 --out served"),
        "product": ("quintain product zendesk", "quintain product zendesk --port 8080 --tickets 1000 --json"),
        "keys": ("quintain keys add keys.json ann --role trainer", "quintain keys list keys.json"),
    },
}
"""Two examples of each command, by the group and name of the command, in the order of the help."""


class CommandGroup(click.Group):
    """Group of all commands, whose help lists them by what they are for."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Adds a command with its examples and the options that every command has."""
        super().add_command(cmd, name)
        examples = next(group[cmd.name] for group in EXAMPLES.values() if cmd.name in group)
        cmd.epilog = "\b\n" + "\n".join(("Examples:", *(f"  {example}" for example in examples)))
        if not isinstance(cmd, click.Group):
            words = "Log each step on stderr, and show the traceback of an error."
            cmd.params += [_option("quiet", "Show no progress and no hints."), _option("verbose", words)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes a section for each group of commands."""
        for title, names in EXAMPLES.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(limit=100)) for name in names])


def _option(name: str, words: str) -> click.Option:
    def store(ctx: click.Context, _parameter: click.Parameter, value: object) -> None:
        if value:
            console.set_output(ctx, name)

    return click.Option([f"-{name[0]}", f"--{name}"], is_flag=True, expose_value=False, callback=store, help=words)
