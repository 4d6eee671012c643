"""Output of all commands: plain text with colour on a terminal, and JSON alone on stdout."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import math
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import click
import msgspec

from quintain import codec
from quintain.errors import UsageError

from . import exits

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

log = logging.getLogger("quintain")
"""Steps of a command, which --verbose shows."""
PROGRESS_FD = "QUINTAIN_PROGRESS_FD"
"""Environment variable of a fresh process: the descriptor to which it writes one byte per step of its progress."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LEVELS = ("easy", "medium", "hard")
_PAGE = 120
"""Columns of a page."""
_PIPED = 10_000
"""Columns where stdout is not a terminal: nothing is wrapped or cut."""
_PIECES = tuple(map(re.compile, (r".+?(?:\s+|(?<!\d),(?=\S)|,(?=[^\d\s])|$)", r".+?(?:[^\w.:+@\"-]+|:(?=[\"\[{])|$)")))
"""Parts of a line that stay together: words and entries of JSON; of a longer one, its names, numbers and dates."""


def difficulty(value: str) -> tuple[int, str]:
    """Returns the sort key of a tag's value: levels by difficulty, then other values by name."""
    return (_LEVELS.index(value) if value in _LEVELS else len(_LEVELS), value)


def stdout() -> Console:
    """Returns the console for results; it wraps to the terminal or to $COLUMNS, and not at all into a pipe."""
    from rich.console import Console  # Most commands print no table; rich takes a tenth of the time of a start.

    out = Console(highlight=False, markup=False)
    if not (out.is_terminal or "COLUMNS" in os.environ):
        out.width = _PIPED
    return out


def stderr() -> Console:
    """Returns the console for progress and hints."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False)


class Invocation(NamedTuple):
    """Arguments and standard output that the program was started with."""

    arguments: list[str]
    stdout: TextIO
    """The original stream: while a command answers in JSON, `sys.stdout` goes to stderr."""


def set_output(ctx: click.Context, name: str) -> None:
    """Makes the program "quiet" or "verbose" for one command."""
    ctx.meta[f"quintain.{name}"] = True
    if name == "verbose":
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
        level = log.level
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        ctx.call_on_close(functools.partial(log.removeHandler, handler))
        ctx.call_on_close(functools.partial(log.setLevel, level))


def _is(name: str) -> bool:
    ctx = click.get_current_context(silent=True)
    return ctx is not None and f"quintain.{name}" in ctx.meta


def hint(text: str) -> None:
    """Prints advice on stderr, unless the program is quiet."""
    if not _is("quiet"):
        click.echo(text, err=True)


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


def page(show: Callable[[Console], object], file: Path) -> None:
    """Writes what `show` prints as one HTML file with all texts escaped.

    Raises:
        UsageError: The file is not writable.
    """
    from rich.console import Console

    out = Console(file=io.StringIO(), width=_PAGE, record=True, no_color=False, highlight=False, markup=False)
    show(out)
    try:
        file.write_text(out.export_html(inline_styles=True), "utf-8", "backslashreplace")
    except OSError as error:
        raise UsageError(f"cannot write the page {str(file)!r}: {error.strerror}") from error


def browse(file: Path) -> None:
    """Opens a page in the web browser."""
    import webbrowser

    if not webbrowser.open(file.absolute().as_uri()):
        click.echo(f"found no web browser; open {file} yourself", err=True)


def grid(*columns: str, rows: Iterable[Iterable[object]] = ()) -> Grid:
    """Returns a table without vertical lines, whose widest columns of text are wrapped first, and no word is broken.

    A column whose name begins with ">" is aligned right; one that begins with "?" is left out where the table would be
    wider than the output.
    """
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.table import Table as Grid
    from rich.text import Text

    cells = [[cell if isinstance(cell, Text) else Text(str(cell)) for cell in row] for row in rows]
    names = [column.lstrip("?>") for column in columns]
    texts = [[name, *(row[place].plain for row in cells)] for place, name in enumerate(names)]
    widths = [max(map(cell_len, column)) for column in texts]
    least = [
        widths[place]
        if ">" in columns[place]
        else max(cell_len(word) for text in column for word in [*text.split(), ""])
        for place, column in enumerate(texts)
    ]
    kept = list(range(len(columns)))
    room = stdout().width - 3 * (len(kept) - 1)
    for place in reversed(kept.copy()):
        if columns[place].startswith("?") and sum(least[n] for n in kept) > room:
            kept.remove(place)
            room += 3
    for place in sorted(kept, key=widths.__getitem__, reverse=True):
        widths[place] = max(least[place], widths[place] - max(0, sum(widths[n] for n in kept) - room))
    table = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for place in kept:
        right = ">" in columns[place]
        is_fit = sum(widths[n] for n in kept) <= room
        width = widths[place] if is_fit else None
        table.add_column(names[place], justify="right" if right else "left", width=width, no_wrap=right)
    for row in cells:
        table.add_row(*(row[place] for place in kept))
    return table


def wrapped(text: Text, width: int) -> Iterator[Text]:
    """Yields lines of at most `width` columns; words, dates and entries of JSON are broken only if longer than that."""
    from rich.cells import cell_len

    for line in text.split("\n", allow_blank=True):
        line.expand_tabs(8)
        cuts: list[int] = []
        place = used = 0
        for piece in _pieces(line.plain, width, _PIECES):
            if used and used + cell_len(piece.rstrip()) > width:
                cuts.append(place)
                used = 0
            place += len(piece)
            used += cell_len(piece)
        for part in line.divide(cuts):
            part.rstrip()
            yield part


def _pieces(text: str, width: int, patterns: Sequence[re.Pattern[str]]) -> Iterator[str]:
    from rich.cells import cell_len, chop_cells

    for found in patterns[0].finditer(text):
        if cell_len(found[0].rstrip()) <= width:
            yield found[0]
        elif patterns[1:]:
            yield from _pieces(found[0], width, patterns[1:])
        else:
            yield from chop_cells(found[0], width)


def print_wrapped(out: Console, text: Text, *, margin: int, label: str = "") -> None:
    """Prints a text to the right of a margin of so many columns; the label stands in the margin of its first line."""
    from rich.text import Text

    for line in wrapped(text, max(20, out.width - margin)):
        out.print(Text().append(f"{label:<{margin}}", style="dim").append_text(line), soft_wrap=True)
        label = ""


@contextlib.contextmanager
def progress(
    title: str, total: int | None, *texts: str, shows_elapsed: bool = False, **fields: Any
) -> Generator[Callable[..., object]]:
    """Shows a progress bar on stderr, if stderr is a terminal and no option forbids it; yields a function to update it.

    A process that another one started with `PROGRESS_FD` shows none, and writes one byte per step to that descriptor.

    Args:
        title: Description of the task.
        total: Number of steps; None if it is not known.
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

    # A process that this one starts does not have the descriptor.
    if descriptor := os.environ.pop(PROGRESS_FD, ""):
        yield functools.partial(_report, int(descriptor))
        return
    if not (console := stderr()).is_terminal or _is("quiet") or _is("verbose"):
        yield dict  # Takes any fields, and does nothing with them.
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=None), MofNCompleteColumn())
    time = TimeElapsedColumn() if shows_elapsed else TimeRemainingColumn(compact=True)
    with Progress(*columns, *map(TextColumn, texts), time, console=console, transient=True) as bar:
        yield functools.partial(bar.update, bar.add_task(title, total=total, **fields))


def _report(descriptor: int, *, advance: int = 0, **_fields: object) -> None:
    os.write(descriptor, b"." * advance)


def number(value: float | None, digits: int = 3) -> str:
    """Formats a number as "0.983" or "1", and None as "-"."""
    if value is None:
        return "-"
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds(value: float, digits: int = 2) -> str:
    """Formats a duration as "0.42 s", "12 s", "3 min 20 s" or "2 h 5 min"; `digits` are those below 10 s."""
    if value < 10:
        return f"{value:.{digits}f} s"
    if value < 60:
        return f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def split_seconds(total: float, parts: Mapping[str, float]) -> tuple[str, dict[str, str]]:
    """Formats a duration and its parts in one unit, rounded down; "other" is the rest, so that they add up."""
    unit, digits = (0.01, 2) if total < 10 else (1, 0) if total < 3600 else (60, 0)
    whole, *counts = (math.floor(value / unit + 1e-6) for value in (total, *parts.values()))
    counted = dict(zip(parts, counts, strict=True)) | {"other": max(0, whole - sum(counts))}
    return seconds(whole * unit, digits), {name: seconds(count * unit, digits) for name, count in counted.items()}


def safe(text: str) -> str:
    """Escapes control characters, so that text of a model or a world cannot control the terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def clipped(text: str, limit: int) -> str:
    """Returns at most `limit` characters; a shortened text ends with its original length."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def excerpts(one: str, other: str, limit: int = 120) -> tuple[str, str]:
    """Cuts both texts to `limit` characters around the first that differs, unless both are that short."""
    pairs = enumerate(zip(one, other, strict=False))
    same = next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
    start = max(0, same - limit // 2) if max(len(one), len(other)) > limit else 0

    def cut(text: str) -> str:
        return ("…" if start else "") + text[start : start + limit] + ("…" if start + limit < len(text) else "")

    return cut(one), cut(other)


def plural(count: int, noun: str, many: str = "") -> str:
    """Formats a count with its noun, as "1 episode" or "2 episodes"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {many or noun + 's'}"
