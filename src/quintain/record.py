"""A run on disk: a folder that survives `kill -9` at any moment and is continued under the same configuration only.

* `run.json`      what is being run; a run is continued only if this is identical
* `traces.jsonl`  one finished episode a line, written and synced before its result counts
* `timings.jsonl` where its seconds went, line by line beside it
* `failures.jsonl` lines of the author's code that led to each failure; made by the first one
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from . import codec
from .errors import Frame, QuintainError, TraceError, UsageError, describe
from .trace import Timing, Trace

Key = tuple[str, int, int]
"""Task id, member, attempt."""


class EpisodeRecord(msgspec.Struct, frozen=True):
    """A finished episode: its record, its seconds, and where its failure arose; only the record is reproducible.

    Attributes:
        trace: The record.
        timing: Where the seconds went.
        frames: Lines of the author's code that led to the failure, outermost first; empty if there are none.
    """

    trace: Trace
    timing: Timing
    frames: tuple[Frame, ...] = ()

    @property
    def key(self) -> Key:
        return self.trace.task, self.trace.member, self.trace.attempt

    @property
    def failure_text(self) -> str:
        """Type, message and place of the failure, such as "KeyError: 'x', in lend (a.py, line 3)"; empty if none."""
        failure = self.trace.failure
        return describe(f"{failure.type}: {failure.message[:300]}", self.frames) if failure else ""


class PersistenceError(QuintainError):
    """A finished episode could not be written; everything before it is safe."""


class RunFolder(contextlib.AbstractContextManager["RunFolder"]):
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
        self._places: dict[Key, tuple[int, int]] = {}
        with contextlib.ExitStack() as held:  # What is refused must leave no lock behind.
            self.path.mkdir(parents=True, exist_ok=True)
            held.callback(os.close, self._claim())
            self._agree(manifest, resume=resume)
            self._traces = held.enter_context(_Lines(self.path / "traces.jsonl", self._index))
            self._timings = held.enter_context(_Lines(self.path / "timings.jsonl"))
            _sync(self.path)
            self._held = held.pop_all()

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._places)

    def find(self, key: Key) -> Trace | None:
        """The record of an episode that is finished already."""
        place = self._places.get(key)
        return None if place is None else Trace.from_json(self._traces.read(*place))

    def add(self, rollout: EpisodeRecord) -> None:
        """Write a finished episode; when this returns it is on disk.

        Raises:
            UsageError: It is there already.
            PersistenceError: The disk is full or broken.
        """
        task, member, attempt = rollout.key
        if rollout.key in self._places:
            raise UsageError(f"{self.path} holds member {member}, attempt {attempt} of task {task!r} already")
        names = {"task": task, "member": member, "attempt": attempt}
        row = names | msgspec.structs.asdict(rollout.timing)
        try:
            self._places[rollout.key] = self._traces.append(rollout.trace.to_json() + b"\n")
            self._timings.append(codec.json(row) + b"\n")
            if rollout.frames:
                with _Lines(self.path / "failures.jsonl") as failures:
                    failures.append(codec.json(names | {"frames": rollout.frames}) + b"\n")
        except OSError as error:
            advice = f"{len(self)} finished episodes are safe there; make room and continue with --resume"
            raise PersistenceError(f"cannot write to {self.path}: {error.strerror}. {advice}") from error

    def close(self) -> None:
        """Let another process continue."""
        self._held.close()

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
            if (self.path / "traces.jsonl").exists():
                raise UsageError(f"{self.path} holds traces, but no {path.name} that says what run they are of")
            temporary = path.with_suffix(".new")
            temporary.write_bytes(msgspec.json.format(codec.json(ours), indent=2) + b"\n")
            _sync(temporary)
            temporary.replace(path)
            return
        if not resume:
            raise UsageError(f"{self.path} holds a run already; continue it with --resume or choose another folder")
        try:
            theirs = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise TraceError(f"{path} does not say what run this is: {error}") from error
        old, new = dict(_flat(theirs)), dict(_flat(ours))
        differ = [
            f"  {name}: the folder has {old.get(name)!r}, this run has {new.get(name)!r}"
            for name in sorted(old.keys() | new.keys())
            if old.get(name) != new.get(name)
        ]
        if differ:
            head = f"{self.path} holds another run and cannot be continued by this one; choose another folder:"
            raise UsageError("\n".join([head, *differ]))

    def _index(self, number: int, place: int, line: bytes) -> None:
        trace = _parse(line, self.path / "traces.jsonl", number)
        self._places[trace.task, trace.member, trace.attempt] = (place, len(line))


class _Lines(contextlib.AbstractContextManager["_Lines"]):
    """A file that only ever ends in a whole line: what a crash or a full disk tore off is cut.

    Args:
        path: The file; made if it doesn't exist.
        see: Called with number, place and text of each line that is there.
    """

    def __init__(self, path: Path, see: Callable[[int, int, bytes], None] | None = None) -> None:
        path.touch()
        self._end = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    if see is not None:
                        see(number, self._end, line)
                    self._end += len(line)
        self._descriptor = os.open(path, os.O_RDWR)
        os.ftruncate(self._descriptor, self._end)

    def __exit__(self, *exc_info: object) -> None:
        os.close(self._descriptor)

    def read(self, place: int, size: int) -> bytes:
        return os.pread(self._descriptor, size, place)

    def append(self, line: bytes) -> tuple[int, int]:
        """Write and sync; returns place and size."""
        place = self._end
        try:
            while self._end < place + len(line):
                self._end += os.pwrite(self._descriptor, line[self._end - place :], self._end)
            os.fdatasync(self._descriptor)
        except BaseException:
            self._end = place
            with contextlib.suppress(OSError):  # Then it is cut when the folder is opened again.
                os.ftruncate(self._descriptor, place)
            raise
        return place, len(line)


def read_traces(path: str | Path) -> Iterator[Trace]:
    """The traces of a run folder or of one file, in the order in which they were written.

    An unfinished last line of a run folder was never acknowledged and is not a record.

    Raises:
        UsageError: The file or folder does not exist.
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


def _flat(fields: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested fields by dotted names, so that a difference is named where it is."""
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _flat(cast(dict[str, Any], value), f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
