"""Output of all commands: plain text with colour on a terminal, and JSON alone on stdout."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple, TextIO

import click
import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from quintain import codec

from . import exits

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LEVELS = ("easy", "medium", "hard")


def difficulty(value: str) -> tuple[int, str]:
    """Returns the sort key of a tag's value: levels by difficulty, then other values by name."""
    return (_LEVELS.index(value) if value in _LEVELS else len(_LEVELS), value)


def stdout() -> Console:
    """Returns the console for results."""
    return Console(highlight=False, markup=False)


def stderr() -> Console:
    """Returns the console for progress and hints."""
    return Console(stderr=True, highlight=False, markup=False)


class Invocation(NamedTuple):
    """Arguments and standard output that the program was started with."""

    arguments: list[str]
    stdout: TextIO
    """The original stream: while a command answers in JSON, `sys.stdout` goes to stderr."""


def print_json(value: Any) -> None:
    """Prints one indented JSON document on stdout."""
    write([msgspec.json.format(codec.json(value), indent=2).decode() + "\n"])


def write(texts: Iterable[str]) -> None:
    """Writes texts to the standard output that the program was started with."""
    stdout = click.get_current_context().ensure_object(Invocation).stdout
    try:
        for text in texts:
            stdout.write(text)
        stdout.flush()
    except BrokenPipeError:
        # Whoever reads has gone. Nor may the interpreter find the pipe broken when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        raise click.exceptions.Exit(exits.FAILED) from None


def grid(*columns: str, rows: Iterable[Iterable[object]] = ()) -> Grid:
    """Returns a table without vertical lines; a column whose name begins with ">" is aligned right."""
    table = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in columns:
        right = name.startswith(">")
        table.add_column(name.removeprefix(">"), justify="right" if right else "left", no_wrap=right)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    return table


@contextlib.contextmanager
def progress(
    title: str, total: int, *texts: str, shows_elapsed: bool = False, **fields: Any
) -> Generator[Callable[..., object]]:
    """Shows a progress bar on stderr, if stderr is a terminal; yields a function that updates it.

    Args:
        title: Description of the task.
        total: Number of steps.
        texts: Templates of further columns, such as "mean {task.fields[mean]}".
        shows_elapsed: True for the elapsed time instead of the remaining time.
        fields: Initial values of the fields in `texts`.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    if not (console := stderr()).is_terminal:
        yield dict  # Takes any fields, and does nothing with them.
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=None), MofNCompleteColumn())
    time = TimeElapsedColumn() if shows_elapsed else TimeRemainingColumn(compact=True)
    with Progress(*columns, *map(TextColumn, texts), time, console=console, transient=True) as bar:
        yield functools.partial(bar.update, bar.add_task(title, total=total, **fields))


def number(value: float | None, digits: int = 3) -> str:
    """Formats a number as "0.983" or "1", and None as "-"."""
    if value is None:
        return "-"
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds(value: float) -> str:
    """Formats a duration as "0.42 s", "12 s", "3 min 20 s" or "2 h 5 min"."""
    if value < 10:
        return f"{value:.2f} s"
    if value < 60:
        return f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def safe(text: str) -> str:
    """Escapes control characters, so that text of a model or a world cannot control the terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def clipped(text: str, limit: int) -> str:
    """Returns at most `limit` characters; a shortened text ends with its original length."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def plural(count: int, noun: str, many: str = "") -> str:
    """Formats a count with its noun, as "1 episode" or "2 episodes"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {many or noun + 's'}"
