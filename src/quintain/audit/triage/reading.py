"""Reading of a folder as episodes, with a place and a reason for all that is unreadable.

Nothing is left out silently: a failure rate whose denominator lacks the worst episodes looks fine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import msgspec

from quintain.errors import TraceError, UsageError
from quintain.trace import Trace

from .episode_log import EpisodeLog, mapping, of_row, of_trace, sequence

TRACES, TIMINGS = "traces.jsonl", "timings.jsonl"
_LINES = (".jsonl", ".ndjson")
_BOOKKEEPING = {"run.json", "run.lock", TIMINGS}


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """Place without a readable episode; one that was expected there counts as failed."""

    place: str
    reason: str
    episode: bool


class Reading(msgspec.Struct, kw_only=True):
    """Episodes in the order of files and lines, and files that are not expected to hold any."""

    played: list[EpisodeLog] = []
    unreadable: list[Unreadable] = []
    ignored: list[str] = []

    def lose(self, place: object, reason: str, *, episode: bool = True) -> None:
        """Notes a place without a readable episode."""
        self.unreadable.append(Unreadable(place=str(place), reason=reason, episode=episode))


def read(path: str | Path) -> Reading:
    """Reads a run folder, a file of episodes, or a folder of such files; raises UsageError if the path is missing."""
    path = Path(path)
    if not path.exists():
        raise UsageError(f"{str(path)!r} does not exist; give a run folder, a file of traces, or a folder of them")
    reading = Reading()
    if (path / TRACES).is_file():
        _read_file(reading, path / TRACES, is_run=True)
        _add_seconds(reading, path / TIMINGS)
        return reading
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        is_known = file.suffix.lower() in (*_LINES, ".json") and file.name not in _BOOKKEEPING
        if file.is_file() and (is_known or file == path):
            _read_file(reading, file)
        elif file.is_file():
            reading.ignored.append(str(file))
    return reading


def _read_file(reading: Reading, file: Path, *, is_run: bool = False) -> None:
    """Reads one JSON document, or one episode per line; the unfinished last line of a run folder does not count."""
    try:
        if file.suffix.lower() == ".json" and file.name not in _BOOKKEEPING:
            _read_document(reading, file)
            return
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                place = f"{file}:{number}"
                if is_run and not line.endswith(b"\n"):
                    reason = "unfinished: it was being written when the run was stopped, and never counted"
                    reading.lose(place, reason, episode=False)
                elif line.strip():
                    _add(reading, line, place)
    except OSError as error:
        reading.lose(file, f"cannot be opened: {error.strerror}")


def _add(reading: Reading, line: bytes | object, place: str) -> None:
    index = len(reading.played)
    try:
        value = _object(_json(line) if isinstance(line, bytes) else line)
        if isinstance(line, bytes) and {"digest", "trace"} <= value.keys():
            reading.played.append(of_trace(Trace.from_json(line), place=place, index=index))
        else:
            reading.played.append(of_row(value, place=place, index=index))
    except TraceError as error:
        reading.lose(place, str(error))


def _object(value: object) -> dict[str, Any]:
    found = mapping(value)
    if found is None:
        raise TraceError(f"an episode is a JSON object, this is a {type(value).__name__}")
    return found


def _json(text: bytes) -> object:
    try:
        return cast(object, json.loads(text))
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise TraceError(f"no JSON, or truncated: {error}") from error


def _read_document(reading: Reading, file: Path) -> None:
    """Reads a file that is one JSON document: an episode, a list of them, or a log of Inspect."""
    try:
        value = _json(file.read_bytes())
    except TraceError as error:
        reading.lose(file, str(error))
        return
    log = mapping(value) or {}
    samples = sequence(log.get("samples"))
    if samples is not None:
        rows = [(f"{file}, sample {n}", row) for n, row in enumerate(samples)]
    elif "messages" in log or "completion" in log:
        rows = [(str(file), log)]
    else:
        rows = [(f"{file}, item {n}", row) for n, row in enumerate(sequence(value) or ())]
    if not rows:
        reading.lose(file, "no episode, no list of episodes, and no log with samples", episode=False)
    for place, row in rows:
        _add(reading, row, place)


def _add_seconds(reading: Reading, file: Path) -> None:
    spent: dict[tuple[str, int, int], dict[str, float]] = {}
    for number, line in enumerate(file.read_bytes().splitlines() if file.is_file() else (), 1):
        try:
            row = _object(_json(line))
            key = (str(row["task"]), int(row["member"]), int(row["attempt"]))
            spent[key] = {name: float(value) for name, value in row.items() if name.endswith("_s")}
        except (TraceError, KeyError, TypeError, ValueError) as error:
            reading.lose(f"{file}:{number}", f"no timing: {error}", episode=False)
    for one in reading.played:
        one.seconds = spent.get((one.task, one.member, one.attempt), one.seconds)
