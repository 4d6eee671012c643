"""Exports of the episodes of a run, failed ones included, in all formats that the studio has."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import re
import shutil
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from quintain.errors import UsageError

from . import console
from .where import rows_where

if TYPE_CHECKING:
    from quintain.studio.episodes import EpisodeTable
    from quintain.studio.folders import Run

KINDS = ("table", "run", "otlp", "html", "inspect", "atif", "site")
_DIGEST = re.compile(rb'\{"digest":"([0-9a-f]+)"')


class RunExport(NamedTuple):
    """Episodes to write, their format and the file.

    Attributes:
        kind: One of `KINDS`.
        path: The run folder.
        out: File or folder to write; None for stdout.
        where: Filter that chooses episodes.
        env: html and site: environment to replay the episodes with. None: for html the installed one that the run
            names, for site no replay.
        without: html: parts to leave out, with commas.
        canary: html: line for collectors of training data.
    """

    kind: str
    path: Path
    out: Path | None
    where: str
    env: str | None
    without: str
    canary: str


def write_run(wish: RunExport) -> int:
    """Writes a run, or the episodes that a filter chooses, to a file or to stdout; returns the number of episodes.

    Raises:
        UsageError: The path is not a run folder, the filter is wrong, or the file cannot be written.
    """
    out, folder = wish.out, _folder(wish.path)
    with table_of(wish.path, f"--format {wish.kind}") as table:
        try:
            if wish.kind == "site":
                return _write_site(table.run, wish)
            if wish.kind == "otlp":
                return _write(_requests(folder), out)
            rows = rows_where(table, wish.where)
            if wish.kind in {"html", "inspect", "atif"}:
                write = _write_html if wish.kind == "html" else _write_traces
                return write(table.run, [row["n"] for row in rows], wish)
            if wish.kind == "run":
                assert out is not None
                return _write_folder(folder, rows, out)
            if out is not None and out.suffix == ".parquet":
                return _write_parquet(table, rows, out)
            return _write(_lines_of(table, rows), out) - 1
        except OSError as error:
            raise UsageError(f"cannot write {str(out)!r}: {error.strerror}") from error


@contextlib.contextmanager
def table_of(path: Path, asked: str) -> Generator[EpisodeTable]:
    """Yields the table of a run; raises UsageError, with what was asked, if the path is not a run folder."""
    from quintain.studio.episodes import EpisodeTable
    from quintain.studio.folders import Run
    from quintain.studio.places import indexes

    folder = _folder(path)
    if not (folder / "traces.jsonl").is_file():
        raise UsageError(f"{asked} needs a run folder, got {str(path)!r}, which has no traces.jsonl")
    run = Run(folder.name, folder, indexes())
    try:
        yield EpisodeTable(run)
    finally:
        run.close()


def _folder(path: Path) -> Path:
    return path.parent if path.name == "traces.jsonl" else path


def _write_folder(folder: Path, rows: Iterable[dict[str, Any]], out: Path) -> int:
    """Writes chosen lines of a run to a new folder, unchanged, with what describes the run; returns their number."""
    if out.exists():
        raise UsageError(f"{out} exists; name a folder that does not")
    digests = {row["digest"] for row in rows}
    out.mkdir(parents=True)
    for name in ("run.json", "environment.json"):
        if (folder / name).is_file():
            shutil.copy(folder / name, out / name)
    with (folder / "traces.jsonl").open("rb") as lines, (out / "traces.jsonl").open("wb") as chosen:
        for line in lines:
            begins = _DIGEST.match(line)  # A broken line is none of the chosen ones.
            if line.endswith(b"\n") and begins is not None and begins[1].decode() in digests:
                chosen.write(line)
    return len(digests)


def _write_traces(run: Run, numbers: list[int], wish: RunExport) -> int:
    """Writes episodes in the form of another tool.

    Raises:
        UsageError: There is none to write.
    """
    from quintain import codec
    from quintain.studio.atif import trajectory
    from quintain.studio.inspect_log import document
    from quintain.trace import Trace

    if not numbers:
        raise UsageError(f"{wish.path} has no such episode")
    traces = (Trace.from_json(run.index.line(n)) for n in numbers)
    if wish.kind == "inspect":
        created = run.index.traces.stat().st_mtime
        _write(document(traces, name=run.name, created=created), wish.out)
        return len(numbers)
    return _write((codec.json(trajectory(trace)).decode() + "\n" for trace in traces), wish.out)


def _write_html(run: Run, numbers: list[int], wish: RunExport) -> int:
    from quintain.studio.replays import Replays
    from quintain.studio.sent import saved

    parts = [part for part in wish.without.split(",") if part]
    with contextlib.closing(Replays(wish.env)) as replays:
        made = saved(run, numbers, replays, without=parts, canary=wish.canary)
    assert wish.out is not None
    part = wish.out.with_name(f"{wish.out.name}.part")
    part.write_bytes(made)
    part.replace(wish.out)
    return len(numbers)


def _write_site(run: Run, wish: RunExport) -> int:
    from quintain.studio.replays import Replays
    from quintain.studio.site import write_site

    assert wish.out is not None
    if wish.env is None:  # Replays of a whole run take hours, so they are asked for.
        return write_site(run, wish.out)
    with contextlib.closing(Replays(wish.env)) as replays:
        return write_site(run, wish.out, replays)


def _requests(folder: Path) -> Iterator[str]:
    from quintain import codec
    from quintain.studio.spans import requests

    return (codec.json(request).decode() + "\n" for request in requests(folder))


def _lines_of(table: EpisodeTable, rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yields the CSV text of the head and of each row."""
    text = io.StringIO()
    writer = csv.DictWriter(text, table.columns, lineterminator="\n")
    writer.writeheader()
    yield text.getvalue()
    for row in rows:
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


def _write_parquet(table: EpisodeTable, rows: Iterable[dict[str, Any]], out: Path) -> int:
    from quintain.plugins import package

    pa = package("pyarrow", extra="parquet")
    whole = list(rows)
    arrays = {}
    for name in table.columns:
        values = [row[name] for row in whole]
        # A column without a value has no type of its own.
        arrays[name] = pa.array(values, None if any(one is not None for one in values) else pa.string())
    part = out.with_name(f"{out.name}.part")
    package("pyarrow.parquet", extra="parquet").write_table(pa.table(arrays), part)
    part.replace(out)
    return len(whole)
