"""A run on disk: a folder that survives `kill -9` at any moment and is continued under the same configuration only.

* `run.json`      what is being run; a run is continued only if this is identical
* `traces.jsonl`  one finished episode a line, written and synced before its result counts
* `timings.jsonl` where its seconds went, line by line beside it
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from . import codec
from .errors import QuintainError, TraceError, UsageError
from .trace import Timing, Trace

Key = tuple[str, int, int]
"""Task id, member, attempt."""


class Rollout(msgspec.Struct, frozen=True):
    """A finished episode: its record, and its seconds beside it."""

    trace: Trace
    timing: Timing

    @property
    def key(self) -> Key:
        return self.trace.task, self.trace.member, self.trace.attempt


class PersistenceError(QuintainError):
    """A finished episode could not be written; everything before it is safe."""


class RunFolder:
    """Finished episodes of one run, each exactly once. One process writes at a time.

    Args:
        path: The folder; made if it doesn't exist.
        manifest: What is being run; plain data.
        resume: Continue a run that is there, instead of refusing to.

    Raises:
        UsageError: A run is there already; or it is another one; or another process is writing.
        TraceError: A record in the middle is corrupted.
    """

    def __init__(self, path: str | Path, manifest: Mapping[str, Any], *, resume: bool = False) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = self._claim()
        self._agree(manifest, resume=resume)
        self._traces = os.open(self.path / "traces.jsonl", os.O_RDWR | os.O_CREAT, 0o644)
        self._timings = os.open(self.path / "timings.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._places: dict[Key, tuple[int, int]] = {}
        self._end = self._index()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._places)

    def find(self, key: Key) -> Trace | None:
        """The record of an episode that is finished already."""
        place = self._places.get(key)
        if place is None:
            return None
        return Trace.from_json(os.pread(self._traces, place[1], place[0]))

    def add(self, rollout: Rollout) -> None:
        """Write a finished episode; when this returns it is on disk.

        Raises:
            PersistenceError: The disk is full or broken.
        """
        line = rollout.trace.to_json() + b"\n"
        try:
            _write(self._traces, line, self._end)
            os.fdatasync(self._traces)
        except OSError as error:
            os.ftruncate(self._traces, self._end)  # Half a record would look like a crash; leave none.
            raise PersistenceError(
                f"cannot write to {self.path}: {error.strerror}. {len(self)} finished episodes are safe there; "
                "make room and continue with --resume"
            ) from error
        self._places[rollout.key] = (self._end, len(line))
        self._end += len(line)
        task, member, attempt = rollout.key
        row = {"task": task, "member": member, "attempt": attempt, **msgspec.structs.asdict(rollout.timing)}
        os.write(self._timings, codec.json(row) + b"\n")

    def close(self) -> None:
        """Let another process continue."""
        for descriptor in (self._traces, self._timings, self._lock):
            os.close(descriptor)

    def _claim(self) -> int:
        descriptor = os.open(self.path / "run.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise UsageError(f"another process is writing to {self.path}") from error
        return descriptor

    def _agree(self, manifest: Mapping[str, Any], *, resume: bool) -> None:
        path = self.path / "run.json"
        ours = msgspec.json.decode(codec.json(dict(manifest)))
        if not path.exists():
            temporary = path.with_suffix(".new")
            temporary.write_bytes(msgspec.json.format(codec.json(ours), indent=2) + b"\n")
            temporary.replace(path)
            return
        if not resume:
            raise UsageError(f"{self.path} holds a run already; continue it with --resume or choose another folder")
        theirs = msgspec.json.decode(path.read_bytes())
        differ = [
            f"  {name}: the folder has {theirs.get(name)!r}, this run has {ours.get(name)!r}"
            for name in sorted(ours.keys() | theirs.keys())
            if theirs.get(name) != ours.get(name)
        ]
        if differ:
            raise UsageError(
                f"{self.path} holds another run and cannot be continued by this one:\n" + "\n".join(differ)
            )

    def _index(self) -> int:
        """Note where each record lies; cut off a last line that a crash left unfinished."""
        end = 0
        with (self.path / "traces.jsonl").open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                trace = _parse(line, self.path / "traces.jsonl", number)
                self._places[(trace.task, trace.member, trace.attempt)] = (end, len(line))
                end += len(line)
        os.ftruncate(self._traces, end)
        return end


def read_traces(path: str | Path) -> Iterator[Trace]:
    """The traces of a run folder or of one file, in the order in which they were written.

    An unfinished last line of a run folder was never acknowledged and is no record.

    Raises:
        UsageError: There is no such file or folder.
        TraceError: A line is truncated, corrupted or of another version; the message names file and line.
    """
    path = Path(path)
    file = path / "traces.jsonl" if path.is_dir() else path
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if path.is_dir() and not line.endswith(b"\n"):
                    return
                yield _parse(line, file, number)
    except OSError as error:
        raise UsageError(f"cannot read traces from {str(path)!r}: {error.strerror}") from error


def _parse(line: bytes, file: Path, number: int) -> Trace:
    try:
        return Trace.from_json(line)
    except TraceError as error:
        raise TraceError(f"{file}, line {number}: {error}") from error


def _write(descriptor: int, data: bytes, offset: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, offset)
        data, offset = data[written:], offset + written
