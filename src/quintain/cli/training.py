"""`quintain training`: report of training runs, as a table, JSON, a page, or files of other tools."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quintain.errors import UsageError

from . import console, options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from quintain.train.report import TrainingReport, Update

_ROWS, _POINTS = 15, 200
"""Most steps of the table, and most points of a curve on the page."""
_REFRESH_S = 5
_COLUMNS = {
    ">invalid": "invalid/all", "?>dropped": "groups/dropped", "?>stale": "groups/stale", "?>mixed": "groups/mixed",
    "?>mean lag": "lag/mean", "?>max lag": "lag/max",
}  # fmt: skip
"""Curve of each column."""
_METRICS = 3
"""Most metrics of the trainer in the table."""


@click.command(short_help="Report on training runs: curves over seeds, failures, staleness.")
@click.argument("folders", nargs=-1, required=True, type=options.PATH, metavar="FOLDER...")
@click.option("--html", type=options.PATH, metavar="FILE", help="Write one HTML file.")
@click.option("--follow", is_flag=True, help=f"Report again every {_REFRESH_S} s while the runs go on, until Ctrl-C.")
@click.option(
    "--tensorboard", type=options.PATH, metavar="DIR", help="Write TensorBoard files with tensorboardX or torch."
)
@click.option("--wandb", type=options.PATH, metavar="DIR", help="Write offline runs of Weights & Biases with wandb.")
@options.json
def training(
    *,
    folders: tuple[Path, ...],
    html: Path | None,
    follow: bool,
    tensorboard: Path | None,
    wandb: Path | None,
    as_json: bool,
) -> None:
    """Report on training runs, one FOLDER per seed, each with the log of a `quintain.train.report.TrainingLog`.

    Curves have 95 % intervals over the runs. With --follow a browser that shows the page loads it again by itself.
    """
    from quintain.train.report import export

    if follow and as_json:
        raise UsageError("--follow reports again and again, --json prints one document; give one of them")
    made = [make(folder) for make, folder in ((export.tensorboard, tensorboard), (export.wandb, wandb)) if folder]
    with contextlib.ExitStack() as stack:
        exporters = [stack.enter_context(exporter) for exporter in made]
        shown: dict[str, list[Update]] = {}
        try:
            while True:
                if (runs := _read(folders)) != shown:
                    shown = runs
                    _show(runs, html, as_json=as_json, live=follow)
                    for exporter in exporters:
                        exporter.add(runs)
                if not follow:
                    return
                time.sleep(_REFRESH_S)
        finally:
            if follow and shown and html is not None:
                _write(html, shown, live=False)


def _read(folders: Sequence[Path]) -> dict[str, list[Update]]:
    """Returns the updates of each folder by its name, or by its number and name where several have one name."""
    from quintain.train.report import read_updates

    names = [folder.resolve().name for folder in folders]
    counts = Counter(names)
    unique = [name if counts[name] == 1 else f"{place}-{name}" for place, name in enumerate(names)]
    return {name: read_updates(folder) for name, folder in zip(unique, folders, strict=True)}


def _show(runs: dict[str, list[Update]], html: Path | None, *, as_json: bool, live: bool) -> None:
    import msgspec

    from quintain.train.report import report

    if as_json:
        console.print_json(msgspec.to_builtins(report(runs), str_keys=True))
    else:
        if live:
            click.clear()
        for block in _blocks(report(runs, most=_ROWS)):
            console.stdout().print(block)
    if html is not None:
        _write(html, runs, live=live)


def _write(file: Path, runs: dict[str, list[Update]], *, live: bool) -> None:
    from quintain.train.report import report

    from .training_page import page

    written = file.with_name(file.name + ".new")
    try:
        written.write_text(page(report(runs, most=_POINTS), refresh_s=_REFRESH_S if live else None), "utf-8")
        written.replace(file)  # A browser never reads half a page.
    except OSError as error:
        raise UsageError(f"cannot write the page {str(file)!r}: {error.strerror}") from error


def _blocks(report: TrainingReport) -> Iterator[RenderableType]:
    from rich.text import Text

    from .training_page import facts

    metrics = list(report.family("metrics/").items())[:_METRICS]
    curves = {name: report.curves[curve] for name, curve in _COLUMNS.items() if curve in report.curves}
    curves |= {f"?>{console.safe(name)}": curve for name, curve in metrics}
    if (score := report.curves.get("score/mean")) is not None:
        points = {step: f"{mean:.3f}" for step, mean in zip(score.steps, score.mean, strict=True)}
        bands = {
            step: "-" if low is None else f"{low:.3f} to {high:.3f}"
            for step, low, high in zip(score.steps, score.low, score.high, strict=True)
        }
        others = [
            {step: f"{mean:.4g}" for step, mean in zip(one.steps, one.mean, strict=True)} for one in curves.values()
        ]
        rows = [(step, *(cells.get(step, "-") for cells in (points, bands, *others))) for step in score.steps]
        yield console.grid(">step", ">score", "95 % over runs", *curves, rows=rows)
    yield Text("\n".join(f"{name}: {value}" for name, value in facts(report)))
    yield from (Text(f"warning: {words}", style="yellow") for words in report.warnings)
