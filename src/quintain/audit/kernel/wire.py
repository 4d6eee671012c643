"""Frames between the auditor and its worker: four bytes of length, then MessagePack.

A state of megabytes changes by a few rows in an episode. The worker reads the start state of a task once; the forks of
its process know each unchanged row and table by identity. So a state is sent as references to the start state, and the
auditor rebuilds it from one copy, which it gets once for each content.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from quintain import codec
from quintain.audit.facts.data import is_dict, is_list

from .probe import Op, Probe


class LoadFrame(msgspec.Struct, tag=True):
    """First frame of the worker: the subject's description or the error of loading it."""

    about: Any = None
    error: str = ""
    usage: bool = False


class PlayFrame(msgspec.Struct):
    """Frame to the worker, with the digests of the start states and the indices of tasks that the auditor knows.

    Several probes are played in one fork, one after another. A probe that `stays` is played in the worker itself, and
    only the last frame is sent.
    """

    probes: list[Probe]
    known: list[str] = []
    index: dict[str, int] = {}
    stays: bool = False


class StartStateFrame(msgspec.Struct, tag=True):
    """Frame with the start state of a task, or with its difference from the one whose digest is `near`."""

    digest: str
    view: dict[str, Any]
    near: str = ""


class StartFrame(msgspec.Struct, tag=True):
    """Frame at the start of a fork, with the id of its process."""

    pid: int


class ResultFrame(msgspec.Struct, tag=True):
    """Frame with the result of one op; a state is its difference from the one whose digest is `start`."""

    seen: Any
    start: str = ""


class EndFrame(msgspec.Struct, tag=True):
    """Frame at the end of a fork: its exit status from `waitpid`, and how many processes it left."""

    status: int
    left: int = 0


Frame = LoadFrame | StartStateFrame | StartFrame | ResultFrame | EndFrame


def send(fd: int, message: Any) -> None:
    """Writes one whole frame."""
    body = codec.dumps(message, canonical=False)
    view = memoryview(len(body).to_bytes(4, "little") + body)
    while view:
        view = view[os.write(fd, view) :]


class Receiver:
    """Reader of frames from a pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = bytearray()

    def receive(self, type_: Any, until: float | None = None) -> Any:
        """Returns the next frame; raises TimeoutError if none came `until` then, EOFError if the pipe was closed."""
        size = int.from_bytes(self._exactly(4, until), "little")
        return codec.loads(bytes(self._exactly(size, until)), type_)

    def _exactly(self, count: int, until: float | None) -> bytearray:
        while len(self._buffer) < count:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._fd], [], [], left)[0]:
                raise TimeoutError("nothing came in time")
            chunk = os.read(self._fd, 1 << 20)
            if not chunk:
                raise EOFError("the other side is gone")
            self._buffer += chunk
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found


# --- states as differences from the start state of their task ---

KEPT = 16  # number of start states that a worker keeps
_KEPT_BY_AUDITOR = 24
_READS = {"state", "changes", "glance", "ask"}  # ops that read the whole state, or may do so

View = dict[str, Any]  # state as plain data: content by table or field


def reads_state(ops: Sequence[Op]) -> bool:
    """True if an op reads the whole state or may do so."""
    return any(op.do in _READS or reads_state(lane) for op in ops for lane in (op.lanes or ((),)))


class StartStates:
    """Start states of a worker by task, the last `KEPT` ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[View, str]] = OrderedDict()
        self._digests: dict[int, tuple[Any, str]] = {}  # of parts by identity, with the part, which it keeps alive

    def add(self, task: str, view: View) -> None:
        for part in view.values():  # Most parts are those of the state of another task.
            if id(part) not in self._digests:
                self._digests[id(part)] = (part, codec.digest(codec.dumps(part)))
        digests = {name: self._digests[id(part)][1] for name, part in view.items()}
        self._known[task] = (view, codec.digest(codec.dumps(digests)))
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
            kept = {id(part) for view, _ in self._known.values() for part in view.values()}
            self._digests = {key: one for key, one in self._digests.items() if key in kept}

    def find(self, task: str) -> tuple[View, str] | None:
        if task in self._known:
            self._known.move_to_end(task)
        return self._known.get(task)

    def frame(self, task: str, known: Collection[str]) -> StartStateFrame | None:
        """Returns the frame that tells the auditor a task's start state; None if it knows it."""
        view, digest = self.find(task) or ({}, "")
        if not digest or digest in known:
            return None
        near, near_digest = next((one for one in reversed(self._known.values()) if one[1] in known), (View(), ""))
        return StartStateFrame(digest, packed(view, near) if near_digest else view, near_digest)


class StartStore:
    """Start states of the auditor by digest. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, View] = OrderedDict()

    def add(self, digest: str, view: View) -> None:
        with self._lock:
            self._known[digest] = view
            while len(self._known) > _KEPT_BY_AUDITOR:
                self._known.popitem(last=False)

    def known(self) -> dict[str, View]:
        """Returns a copy, so that no view vanishes while a probe is played."""
        with self._lock:
            return dict(self._known)


def packed(view: View, start: View) -> View:
    """Returns each part of a state as its difference from the start state; `unpacked` reverses it.

    A part is [] if it is that of the start state, [rows] or [rows, keys] if it is a list or a dict of rows, where a
    row is its place in the start state or the row itself, and {"value": ...} otherwise.
    """

    def part_of(part: Any, start: Any) -> Any:
        if part is start and part is not None:
            return []
        before, rows = _rows(start), _rows(part)
        if before is None or rows is None or is_dict(part) != is_dict(start):
            return {"value": part}
        places = {id(row): place for place, row in enumerate(before)}
        found = [places.get(id(row), row) for row in rows]
        return [found, list(part)] if is_dict(part) else [found]

    return {name: part_of(part, start.get(name)) for name, part in view.items()}


def _rows(part: Any) -> list[Any] | None:
    """Returns the rows of a table; None for anything else, because a number would be taken for a place."""
    rows: list[Any] | None = list(part.values()) if is_dict(part) else part if is_list(part) else None
    return rows if rows is not None and all(map(is_dict, rows)) else None


def unpacked(view: View, start: View) -> View:
    """Returns the state that was packed; unchanged parts and rows are the objects of the start state."""

    def part_of(part: Any, start: Any) -> Any:
        if is_dict(part) or not part:
            return part["value"] if part else start
        before: list[Any] = list(start.values()) if is_dict(start) else start
        rows = [before[row] if isinstance(row, int) else row for row in part[0]]
        return dict(zip(part[1], rows, strict=True)) if len(part) > 1 else rows

    return {name: part_of(part, start.get(name)) for name, part in view.items()}
