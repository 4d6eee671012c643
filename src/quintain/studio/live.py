"""Episodes in play, as the flight recorder of a run writes them to `live.jsonl`."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from quintain.record import Key

from .recorder import FILE

_CHUNK = 16 << 20
"""Bytes that are read at once."""


class _CallName(msgspec.Struct):
    name: str


class _PlayedStep(msgspec.Struct):
    call: _CallName
    is_error: bool = False


class _PlayedTurn(msgspec.Struct):
    steps: list[_PlayedStep] = []


class _Event(msgspec.Struct):
    began: Key | None = None
    key: Key | None = None
    ended: Key | None = None
    at: float = 0.0
    head: msgspec.Raw = msgspec.Raw(b"null")
    turn: msgspec.Raw = msgspec.Raw(b"null")


class _InPlay(msgspec.Struct):
    """One episode in play."""

    head: msgspec.Raw
    began: float
    at: float
    turns: list[msgspec.Raw] = []
    call: str = ""
    errors: int = 0


_event = msgspec.json.Decoder(_Event)
_turn = msgspec.json.Decoder(_PlayedTurn)


class Live:
    """Episodes in play of one run. Threads may share it.

    Args:
        folder: The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._lock = threading.Lock()
        self._file, self._place, self._rest = 0, 0, b""
        self._playing: dict[Key, _InPlay] = {}
        self._lines = 0

    def playing(self) -> dict[str, Any]:
        """Returns a row for each episode in play, the one that waits longest first.

        `version` is another number when something has happened; `now` is the time of `at` and `began`, in seconds.
        """
        with self._lock:
            self._update()
            rows = [
                {"key": key, "turns": len(one.turns), "began": one.began, "at": one.at}
                | {"call": one.call, "errors": one.errors}
                for key, one in sorted(self._playing.items(), key=lambda item: item[1].at)
            ]
            return {"version": self._lines, "now": time.time(), "playing": rows}

    def turns(self, key: Key, start: int) -> dict[str, Any]:
        """Returns the record of an episode in play without its turns, and the turns from `start` on.

        The record is None if the episode is not in play, because it has ended or never began.
        """
        with self._lock:
            self._update()
            one = self._playing.get(key)
            return {"head": one and one.head, "turns": one.turns[start:] if one else []}

    def _update(self) -> None:
        """Reads what was written since; the recorder may have emptied the file, or made another one."""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            found = os.fstat(file.fileno())
            if found.st_ino != self._file or found.st_size < self._place:
                self._file, self._place, self._rest = found.st_ino, 0, b""
                self._lines += bool(self._playing)
                self._playing.clear()
            file.seek(self._place)
            while chunk := file.read(_CHUNK):
                self._place += len(chunk)
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                for line in lines:
                    with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):  # Torn, or forged.
                        self._add(_event.decode(line))

    def _add(self, event: _Event) -> None:
        self._lines += 1
        if event.began is not None:
            self._playing[event.began] = _InPlay(event.head.copy(), event.at, event.at)
        elif event.ended is not None:
            self._playing.pop(event.ended, None)
        elif event.key is not None and (one := self._playing.get(event.key)) is not None:
            played = _turn.decode(event.turn)
            one.turns.append(event.turn.copy())
            one.at = event.at
            one.call = played.steps[-1].call.name if played.steps else ""
            one.errors += sum(step.is_error for step in played.steps)
