"""Exports of all episodes of a run, failed ones included: the table of the studio, and OpenTelemetry spans."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from quintain.errors import UsageError

from . import console

if TYPE_CHECKING:
    from quintain.studio.episodes import EpisodeTable

KINDS = ("table", "otlp")


def write_run(kind: str, path: Path, out: Path | None) -> int:
    """Writes a run to a file, or to stdout, and returns the number of its episodes.

    Raises:
        UsageError: The path is not a run folder, or the file cannot be written.
    """
    from quintain.studio.episodes import EpisodeTable
    from quintain.studio.folders import Run
    from quintain.studio.places import indexes

    folder = path.parent if path.name == "traces.jsonl" else path
    if not (folder / "traces.jsonl").is_file():
        raise UsageError(f"--format {kind} needs a run folder, got {str(path)!r}, which has no traces.jsonl")
    run = Run(folder.name, folder, indexes())
    try:
        if kind == "otlp":
            return _write(_requests(folder), out)
        table = EpisodeTable(run)
        if out is not None and out.suffix == ".parquet":
            return _write_parquet(table, out)
        return _write(_lines_of(table), out) - 1
    except OSError as error:
        raise UsageError(f"cannot write {str(out)!r}: {error.strerror}") from error
    finally:
        run.close()


def _requests(folder: Path) -> Iterator[str]:
    from quintain import codec
    from quintain.studio.spans import requests

    return (codec.json(request).decode() + "\n" for request in requests(folder))


def _lines_of(table: EpisodeTable) -> Iterator[str]:
    """Yields the CSV text of the head and of each row."""
    text = io.StringIO()
    writer = csv.DictWriter(text, table.columns, lineterminator="\n")
    writer.writeheader()
    yield text.getvalue()
    for row in table.rows():
        text.seek(0)
        text.truncate()
        writer.writerow(row)
        yield text.getvalue()


def _write(texts: Iterator[str], out: Path | None) -> int:
    """Writes texts to a file, which is replaced only by a whole one, or to stdout; returns their number."""
    numbers = itertools.count()
    counted = (text for text, _ in zip(texts, numbers, strict=False))
    if out is None:
        console.write(counted)
    else:
        part = out.with_name(f"{out.name}.part")
        with part.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(counted)
        part.replace(out)
    return next(numbers)


def _write_parquet(table: EpisodeTable, out: Path) -> int:
    from quintain.plugins import package

    pa = package("pyarrow", extra="parquet")
    whole = list(table.rows())
    arrays = {}
    for name in table.columns:
        values = [row[name] for row in whole]
        # A column without a value has no type of its own.
        arrays[name] = pa.array(values, None if any(one is not None for one in values) else pa.string())
    part = out.with_name(f"{out.name}.part")
    package("pyarrow.parquet", extra="parquet").write_table(pa.table(arrays), part)
    part.replace(out)
    return len(whole)
