"""Labels of programs: JSON lines with `task`, `member` and `attempt`, in `RUN/labels.jsonl` and `RUN/labels/*.jsonl`.

`quintain triage --jsonl` writes such a file, and any judge or script may. Fields `owner`, `why` and `event` are shown;
other fields with a number or a text are columns.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintain.record import Key


class _LabelRow(msgspec.Struct):
    task: str
    member: int = 0
    attempt: int = 0
    owner: str = ""


class _LabelFile(msgspec.Struct):
    """Lines of a file: owner, place, size and columns of each by the episode, and the number of unreadable lines."""

    stamp: tuple[int, int]
    lines: dict[Key, tuple[str, int, int, dict[str, float | str]]]
    broken: int = 0


_SHOWN = frozenset({"task", "member", "attempt", "owner", "why", "event"})
_decoder = msgspec.json.Decoder(dict[str, Any])


class Labels:
    """Labels of a run; the last line of a file about an episode counts. Threads may share them.

    Args:
        run: The run folder.
        files: Files elsewhere with labels of the run.
    """

    def __init__(self, run: Path, files: Sequence[Path] = ()) -> None:
        self._run, self._named = run, files
        self._lock = threading.Lock()
        self._files: dict[Path, _LabelFile] = {}

    def files(self) -> list[Path]:
        paths = (self._run / "labels.jsonl", *sorted((self._run / "labels").glob("*.jsonl")), *self._named)
        return [path for path in paths if path.is_file()]

    def owners(self) -> dict[Key, str]:
        """Returns the owner of each labeled episode; of several files the last one's."""
        return {key: owner for _, file in self._read() for key, (owner, *_) in file.lines.items() if owner}

    def columns(self) -> dict[str, dict[Key, float] | dict[Key, str]]:
        """Returns the fields with a number or a text as columns, `label.FILE.FIELD`: values by episode.

        A field that has a text in one line is text in all.
        """
        found: dict[str, dict[Key, float | str]] = {}
        for path, file in self._read():
            for key, (*_, fields) in file.lines.items():
                for name, value in fields.items():
                    found.setdefault(f"label.{path.stem}.{name}", {})[key] = value
        return {name: _of_one_type(values) for name, values in found.items()}

    def of(self, key: Key) -> list[dict[str, Any]]:
        """Returns all labels of an episode, each with the name of its file."""
        found = list[dict[str, Any]]()
        for path, file in self._read():
            if key in file.lines:
                _, place, size, _ = file.lines[key]
                with path.open("rb") as lines:
                    row = msgspec.json.decode(os.pread(lines.fileno(), size, place), type=dict[str, Any])
                found.append(
                    {"file": path.stem} | {name: row.get(name) for name in ("owner", "why", "event", "confidence")}
                )
        return found

    def warnings(self) -> list[str]:
        return [f"{file.broken} lines of {path.name} are not labels" for path, file in self._read() if file.broken]

    def _read(self) -> Iterator[tuple[Path, _LabelFile]]:
        with self._lock:
            for path in self.files():
                status = path.stat()
                stamp = (status.st_size, status.st_mtime_ns)
                if path not in self._files or self._files[path].stamp != stamp:
                    self._files[path] = _parsed(path, stamp)
                yield path, self._files[path]


def _parsed(path: Path, stamp: tuple[int, int]) -> _LabelFile:
    found, place = _LabelFile(stamp, {}), 0
    with path.open("rb") as lines:
        for line in lines:
            try:
                fields = _decoder.decode(line)
                row = msgspec.convert(fields, _LabelRow)
                more = {
                    name: value if isinstance(value, str) else float(value)
                    for name, value in fields.items()
                    if name not in _SHOWN and isinstance(value, (str, int, float))
                }
                found.lines[row.task, row.member, row.attempt] = (row.owner, place, len(line), more)
            except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, OverflowError):
                found.broken += 1
            place += len(line)
    return found


def _of_one_type(values: dict[Key, float | str]) -> dict[Key, float] | dict[Key, str]:
    numbers = {key: value for key, value in values.items() if isinstance(value, float)}
    return numbers if len(numbers) == len(values) else {key: f"{value}" for key, value in values.items()}
