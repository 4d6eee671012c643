"""`quintain conform`: compare an adapter with its reference implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quintain.errors import UsageError

from . import console, exits, options

if TYPE_CHECKING:
    from quintain.adapters.tau2 import Report


@click.command(short_help="Compare an adapter with its reference implementation.")
@click.argument("env", metavar="tau2:DOMAIN")
@click.option("--data", required=True, metavar="PATH", help="Folder of tau2-bench's data.")
@click.option("--cases", required=True, metavar="FILE", help="Stored cases as JSON lines, plain or gzipped.")
@click.option(
    "--live", type=click.IntRange(min=1), default=1, show_default=True, help="Number of concurrent conversations."
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the random order in which they take steps."
)
@options.json
def conform(*, env: str, data: str, cases: str, live: int, seed: int, as_json: bool) -> None:
    """Play the stored cases of a domain and compare every answer, digest and reward with the reference's.

    Assertions in natural language are assumed true, as they were when the cases were made. Ends with status 1 when a
    case disagrees.
    """
    adapter, _, domain = env.partition(":")
    if adapter != "tau2" or not domain:
        raise UsageError(f"conform knows tau2:DOMAIN, such as tau2:retail, got {env!r}")
    from quintain.adapters.tau2 import conform as play

    report = play(domain, data, cases, live=live, seed=seed)
    if as_json:
        console.print_json(report)
    else:
        _print(env, report)
    if report.agree < report.cases:
        raise click.exceptions.Exit(exits.FAILED)


def _print(env: str, report: Report) -> None:
    out = console.stdout()
    out.print(f"{env}: {report.agree:,} of {console.plural(report.cases, 'case')} agree in everything, ", end="")
    out.print(console.plural(report.steps, "step"))
    if not report.mismatches:
        return
    out.print()
    rows = [
        (
            field if n == 0 else "",
            console.number(count.count) if n == 0 else "",
            f"{one.task} {one.variant}" + ("" if one.step is None else f", step {one.step}"),
            console.clipped(console.safe(str(one.expected)), 200),
            console.clipped(console.safe(str(one.found)), 200),
        )
        for field, count in report.mismatches.items()
        for n, one in enumerate(count.first)
    ]
    out.print(console.grid("field", ">differ", "case", "reference", "here", rows=rows))
