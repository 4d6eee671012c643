"""Labels of programs: JSON lines with `task`, `member` and `attempt`, in `RUN/labels.jsonl` and `RUN/labels/*.jsonl`.

`quintain triage --jsonl` writes such a file, and any judge or script may. Fields `owner`, `why` and `event` are shown.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
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
    """Lines of a file: owner, place and size of each by the episode, and the number of those that cannot be read."""

    stamp: tuple[int, int]
    lines: dict[Key, tuple[str, int, int]]
    broken: int = 0


_decoder = msgspec.json.Decoder(_LabelRow)


class Labels:
    """Labels in a run folder; the last line of a file about an episode counts. Threads may share them."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._files: dict[Path, _LabelFile] = {}

    def owners(self) -> dict[Key, str]:
        """Returns the owner of each labeled episode; of several files the last one's."""
        return {key: owner for _, file in self._read() for key, (owner, _, _) in file.lines.items() if owner}

    def of(self, key: Key) -> list[dict[str, Any]]:
        """Returns all labels of an episode, each with the name of its file."""
        found = list[dict[str, Any]]()
        for path, file in self._read():
            if key in file.lines:
                _, place, size = file.lines[key]
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
            for path in (self._run / "labels.jsonl", *sorted((self._run / "labels").glob("*.jsonl"))):
                if path.is_file():
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
                row = _decoder.decode(line)
                found.lines[row.task, row.member, row.attempt] = (row.owner, place, len(line))
            except (msgspec.DecodeError, RecursionError):
                found.broken += 1
            place += len(line)
    return found
