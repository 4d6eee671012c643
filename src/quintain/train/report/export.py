"""Files for TensorBoard and Weights & Biases, written by their own libraries."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quintain.errors import UsageError

from .curves import scalars
from .log import Update

Write = Callable[[Update], object]


class Exporter(contextlib.ExitStack):
    """Writer of the numbers of runs, each update once.

    Args:
        begin: Opens the file of a run with this name and first update, and returns its writer; `self` closes it.
    """

    def __init__(self, begin: Callable[[Exporter, str, Update], Write]) -> None:
        super().__init__()
        self._begin = begin
        self._runs: dict[str, tuple[Write, int]] = {}

    def add(self, runs: Mapping[str, Sequence[Update]]) -> None:
        """Writes the updates that are later than those written before."""
        for name, updates in runs.items():
            for update in updates:
                write, last = self._runs.get(name) or (self._begin(self, name, update), -1)
                if update.step > last:
                    write(update)
                    last = update.step
                self._runs[name] = write, last


def tensorboard(folder: Path) -> Exporter:
    """Returns an exporter that writes event files, one folder per run.

    Raises:
        UsageError: Neither tensorboardX, nor torch with tensorboard, is installed.
    """
    make = _tensorboard_writer()

    def begin(exporter: Exporter, name: str, _first: Update) -> Write:
        writer = make(str(folder / name))
        exporter.callback(writer.close)

        def write(update: Update) -> None:
            for tag, value in scalars(update).items():
                writer.add_scalar(tag, value, update.step, update.time)
            writer.flush()

        return write

    return Exporter(begin)


def _tensorboard_writer() -> Any:
    for module in ("tensorboardX", "torch.utils.tensorboard"):
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(module).SummaryWriter
    raise UsageError("TensorBoard files need a writer, and none is installed: pip install tensorboardX")


def wandb(folder: Path) -> Exporter:
    """Returns an exporter that writes offline runs, which `wandb sync` uploads.

    Raises:
        UsageError: wandb is not installed.
    """
    try:
        library: Any = importlib.import_module("wandb")
    except ModuleNotFoundError as error:
        raise UsageError(f"Weights & Biases files need {error.name}: pip install wandb") from error
    folder.mkdir(parents=True, exist_ok=True)

    def begin(exporter: Exporter, name: str, first: Update) -> Write:
        quiet = library.Settings(silent=True, console="off")
        facts: dict[str, Any] = {"project": "quintain", "name": name, "config": {"seed": first.seed}}
        run = library.init(mode="offline", dir=str(folder), reinit="create_new", settings=quiet, **facts)
        exporter.callback(run.finish)
        return lambda update: run.log(scalars(update), step=update.step)

    return Exporter(begin)
