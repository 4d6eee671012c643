"""SQLite index of a run: one row an episode, filled in one pass over `traces.jsonl`.

It is a cache: deleting it costs a rebuild. It lies outside of the run folder, so that a folder from elsewhere cannot
bring an index that shows other scores than its traces.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import os
import sqlite3
import threading
import time
from collections.abc import Collection, Generator, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec

from quintain import codec
from quintain.errors import UsageError
from quintain.trace import SCHEMA, SOLVED

from .description import best_values
from .search import matches, patterns
from .shapes import shape

VERSION = 5
"""Version of the tables; raised with each change, so that an older index is made anew."""

MOST_TOKENS = 2**32 - 1
"""Largest sum of tokens that is counted."""

_BATCH = 1000
"""Lines of a transaction."""

_BUFFER = 1 << 17
"""Bytes that indexing reads at once. The default, 8 KB, doubles what reading costs."""

_TABLES = """
CREATE TABLE source (epoch INTEGER, traces INTEGER, timings INTEGER);
CREATE TABLE episode (
    n INTEGER PRIMARY KEY, place INTEGER, size INTEGER, digest TEXT,
    task TEXT, member INTEGER, attempt INTEGER, split TEXT, agent TEXT, seed INTEGER, tags TEXT,
    end TEXT, reason TEXT, component TEXT, kind TEXT, score REAL,
    turns INTEGER, steps INTEGER, errors INTEGER, faults INTEGER, moved INTEGER, branches INTEGER, threads INTEGER,
    prompt INTEGER, completion INTEGER, version INTEGER, last_version INTEGER, logprob REAL,
    rewards TEXT, tools TEXT, shape TEXT, follows TEXT
);
CREATE TABLE timing (
    task TEXT, member INTEGER, attempt INTEGER,
    model_s REAL, tool_s REAL, verifier_s REAL, queue_s REAL, total_s REAL, began REAL, by_turn TEXT,
    PRIMARY KEY (task, member, attempt)
) WITHOUT ROWID;
CREATE TABLE broken (place INTEGER PRIMARY KEY, reason TEXT);
"""
_INSERT = f"INSERT INTO episode VALUES ({', '.join('?' * 32)})"  # noqa: S608  # no text of others in it

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
_Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Line(msgspec.Struct, gc=False):
    digest: str
    trace: msgspec.Raw


class _Call(msgspec.Struct, gc=False):
    name: str


class _StepFacts(msgspec.Struct, gc=False):
    call: _Call
    observation: msgspec.Raw
    is_error: bool = False
    fault: str | None = None


class _TokensFacts(msgspec.Struct, gc=False):
    logprobs: list[float] = []
    versions: list[tuple[int, _Long]] = []


class _UsageFacts(msgspec.Struct, frozen=True, gc=False):
    prompt: _Count = 0
    completion: _Count = 0


class _ReplyFacts(msgspec.Struct, gc=False):
    usage: _UsageFacts = _UsageFacts()
    tokens: _TokensFacts | None = None
    policy_version: _Long | None = None


class _RewardFacts(msgspec.Struct, gc=False):
    name: str
    level: str
    value: float | None
    reason: str = ""


class _TurnFacts(msgspec.Struct, gc=False):
    reply: _ReplyFacts
    thread: int = 0
    branch: int = 0
    steps: list[_StepFacts] = []
    rewards: list[_RewardFacts] = []
    state_digest: str = ""


class _FailureFacts(msgspec.Struct, gc=False):
    component: str = msgspec.field(name="part")
    kind: str
    message: str = ""


class _TraceFacts(msgspec.Struct, gc=False):
    """Fields of a trace that the index needs; msgspec skips the others."""

    version: int
    task: str
    seed: _Long
    split: str = ""
    tags: dict[str, str] = {}
    member: _Count = 0
    attempt: _Count = 0
    agent: str = ""
    turns: list[_TurnFacts] = []
    end: str | None = None
    reason: str = ""
    failure: _FailureFacts | None = None
    rewards: list[_RewardFacts] = []
    score: float | None = None


class _TimingFacts(msgspec.Struct, gc=False):
    task: str
    member: _Count
    attempt: _Count
    model_s: float
    tool_s: float
    verifier_s: float
    queue_s: float
    total_s: float
    began: float | None = None
    turns: list[tuple[float, float, float]] = []


_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)
_line = msgspec.json.Decoder(_Line)
_trace = msgspec.json.Decoder(_TraceFacts)
_timing = msgspec.json.Decoder(_TimingFacts)
_json = msgspec.json.Encoder()
_string = msgspec.json.Decoder(str)


class Index:
    """Index of one run. Threads may share it.

    Args:
        run: The run folder; it is only read.
        file: The database; made, or made anew, where it doesn't fit the run.

    Raises:
        UsageError: The folder has no traces.

    Attributes:
        database: The connection, for queries of one thread.
        lock: Held by whoever uses `database`.
    """

    def __init__(self, run: str | Path, file: str | Path) -> None:
        self.run = Path(run)
        self.file = Path(file)
        self.traces, self.timings = self.run / "traces.jsonl", self.run / "timings.jsonl"
        if not self.traces.is_file():
            raise UsageError(f"{str(run)!r} is not a run folder: it has no traces.jsonl")
        self.lock = threading.RLock()
        self._best = best_values(self.run)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.database = self._opened()

    def update(self, seconds: float = float("inf")) -> bool:
        """Indexes what the files have beyond the last update, for about so many seconds.

        Returns:
            True if nothing is left; a last line without a line break is not there yet.

        Raises:
            UsageError: The run is gone, or the index cannot be written, as on a full disk; what it has stays.
        """
        until = time.monotonic() + seconds
        with self.lock:
            try:
                if self._differs():
                    self._clear()
                return self._read(self.traces, "traces", until) and self._read(self.timings, "timings", until)
            except (OSError, sqlite3.Error) as error:
                raise UsageError(f"cannot continue the index of {self.run}, {str(self.file)!r}: {error}") from error

    def line(self, n: int) -> bytes:
        """Returns the line of an episode as it is on disk, with its digest.

        Raises:
            UsageError: The index has no such episode, or the file has changed since.
        """
        query = "SELECT place, size, digest FROM episode WHERE n = ?"
        with self.lock:
            row = self.database.execute(query, (n,)).fetchone()
            if row is None:
                self.update()
                row = self.database.execute(query, (n,)).fetchone()
        if row is None:
            raise UsageError(f"{self.run} has no episode {n}")
        with self.traces.open("rb") as file:
            file.seek(row[0])
            found = file.read(row[1])
        if not found.startswith(_head(row[2])):
            raise UsageError(f"{self.traces} has changed since it was indexed; load the page again")
        return found

    def seconds(self, n: int) -> list[tuple[float, float, float]]:
        """Returns the (model, tool, verifier) seconds of each turn of an episode; empty if they were not measured."""
        query = "SELECT by_turn FROM episode JOIN timing USING (task, member, attempt) WHERE n = ?"
        with self.lock:
            row = self.database.execute(query, (n,)).fetchone()
        return msgspec.json.decode(row[0], type=list[tuple[float, float, float]]) if row else []

    def search(self, text: str, start: int = 0) -> tuple[list[int], int]:
        """Returns the episodes from `start` on whose line holds a text, and the number of episodes by now."""
        with self.lock:
            (rows,) = self.database.execute("SELECT coalesce(max(n) + 1, 0) FROM episode").fetchone()
        return list(self.rows_with(patterns(text), start)), rows

    def rows_with(self, wanted: Collection[bytes], start: int = 0, *, fold: bool = False) -> Iterator[int]:
        """Yields the episodes from `start` on whose line holds any of some bytes.

        Args:
            wanted: Bytes as they stand in a line.
            start: Number of the first episode.
            fold: A letter from A to Z is the same in both cases.
        """
        with self.lock:
            rows = self.database.execute("SELECT place FROM episode WHERE n >= ? ORDER BY n", (start,)).fetchall()
            (end,) = self.database.execute("SELECT traces FROM source").fetchone()
        places, last = [place for (place,) in rows], -1
        if wanted and places:
            with self.traces.open("rb") as file:
                file.seek(places[0])
                for place in matches(file, end, wanted, fold=fold):
                    n = start + bisect.bisect_right(places, place) - 1
                    if n > last:
                        yield n
                    last = n

    def progress(self) -> dict[str, int]:
        """Returns the bytes of traces that are indexed and that there are, the unreadable lines, and the epoch.

        The epoch is another number after the index was made anew.
        """
        query = "SELECT epoch, traces AS indexed, (SELECT count(*) FROM broken) AS broken FROM source"
        with self.lock:
            found = self.database.execute(query).fetchone()
        return dict(zip(("epoch", "indexed", "broken"), found, strict=True)) | {"bytes": self.traces.stat().st_size}

    def close(self) -> None:
        """Closes the database."""
        with self.lock:
            self.database.close()

    def _opened(self) -> sqlite3.Connection:
        """Returns the database; one of another version, or a damaged one, is made anew.

        Raises:
            UsageError: The file cannot be used.
        """
        try:
            with contextlib.suppress(_Unusable):
                return self._connected()
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self.file}{suffix}").unlink(missing_ok=True)
            return self._connected()
        except (sqlite3.Error, OSError, _Unusable) as error:
            raise UsageError(f"cannot use {str(self.file)!r} as the index of {self.run}: {error}") from error

    def _connected(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.file, check_same_thread=False, isolation_level=None, timeout=60)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            with _transaction(database):
                (version,) = database.execute("PRAGMA user_version").fetchone()
                if version == 0:
                    for statement in _TABLES.strip().split(";\n"):
                        database.execute(statement.rstrip(";"))
                    database.execute("INSERT INTO source VALUES (?, 0, 0)", (time.time_ns(),))
                    database.execute(f"PRAGMA user_version = {VERSION}")
            if version in {0, VERSION} and database.execute("SELECT count(*) FROM source").fetchone() == (1,):
                return database
        except sqlite3.OperationalError:
            database.close()
            raise
        except sqlite3.DatabaseError as error:
            database.close()
            raise _Unusable(str(error)) from error
        database.close()
        raise _Unusable(f"version {version}")

    def _differs(self) -> bool:
        """True if the traces became shorter, or hold other episodes than the index where its first and last are."""
        (end,) = self.database.execute("SELECT traces FROM source").fetchone()
        ends = self.database.execute(
            "SELECT place, digest FROM episode WHERE n IN ((SELECT min(n) FROM episode), (SELECT max(n) FROM episode))"
        ).fetchall()
        with self.traces.open("rb") as file:
            if os.fstat(file.fileno()).st_size < end:
                return True
            return any(os.pread(file.fileno(), 64, place)[: len(_head(d))] != _head(d) for place, d in ends)

    def _clear(self) -> None:
        with _transaction(self.database):
            for table in ("episode", "timing", "broken"):
                self.database.execute(f"DELETE FROM {table}")  # noqa: S608  # names of our own
            self.database.execute("UPDATE source SET epoch = ?, traces = 0, timings = 0", (time.time_ns(),))

    def _read(self, path: Path, name: str, until: float) -> bool:
        """Reads the lines of a file from where the index ends; returns True if it came to the end."""
        if not path.is_file():
            return True
        while True:
            with path.open("rb", buffering=_BUFFER) as file, _transaction(self.database):
                (place,) = self.database.execute(f"SELECT {name} FROM source").fetchone()  # noqa: S608
                file.seek(place)
                ends = [place]
                (self._add_traces if name == "traces" else self._add_timings)(_whole_lines(file, ends))
                self.database.execute(f"UPDATE source SET {name} = ?", (ends[-1],))  # noqa: S608
            if len(ends) <= _BATCH:
                return True
            if time.monotonic() > until:
                return False

    def _add_traces(self, lines: Iterator[tuple[int, bytes]]) -> None:
        (n,) = self.database.execute("SELECT coalesce(max(n) + 1, 0) FROM episode").fetchone()
        rows = list[tuple[Any, ...]]()
        for place, line in lines:
            try:
                rows.append((n + len(rows), place, len(line), *_row(line, self._best)))
            except _UNREADABLE as error:
                self.database.execute("INSERT INTO broken VALUES (?, ?)", (place, str(error)[:500]))
        self.database.executemany(_INSERT, rows)

    def _add_timings(self, lines: Iterator[tuple[int, bytes]]) -> None:
        rows = list[tuple[Any, ...]]()
        for _, line in lines:
            with contextlib.suppress(*_UNREADABLE):  # Unreadable seconds count as not measured.
                *plain, turns = msgspec.structs.astuple(_timing.decode(line))
                rows.append((*plain, codec.text(turns)))
        self.database.executemany("INSERT OR REPLACE INTO timing VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


class _Unusable(Exception):
    """A database of another version, or one that is damaged."""


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection) -> Generator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if database.in_transaction:  # A full disk has ended it.
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _head(digest: str) -> bytes:
    return b'{"digest":"%s"' % digest.encode()


def _whole_lines(file: BinaryIO, ends: list[int]) -> Iterator[tuple[int, bytes]]:
    """Yields place and bytes of up to `_BATCH` lines that end in a line break.

    It adds the place after each line to `ends`. A line that waits for others would leave the processor's cache.
    """
    while len(ends) <= _BATCH and (line := file.readline()).endswith(b"\n"):
        yield ends[-1], line
        ends.append(ends[-1] + len(line))


def _row(line: bytes, best: Mapping[str, float]) -> tuple[Any, ...]:
    """Returns the columns of one episode, from its digest on.

    Raises:
        ValueError: The line is not a trace of this version, or was changed after it was written.
    """
    digest, raw = line[11:43].decode(errors="replace"), memoryview(line)[53:-2]
    if line[43:53] != b'","trace":' or line[-2:] != b"}\n":  # Not as `Trace.to_json` writes it.
        envelope = _line.decode(line)
        digest, raw = envelope.digest, memoryview(envelope.trace)
    trace = _trace.decode(raw)
    if trace.version != SCHEMA:
        raise ValueError(f"schema version {trace.version}, this program reads version {SCHEMA}")
    if codec.digest(raw) != digest or not line.startswith(_head(digest)):
        raise ValueError("the digest does not fit: the line was changed after it was written")
    failure = trace.failure
    numbers, rewards, tools, refused = _facts(trace)
    return (
        digest,
        trace.task,
        trace.member,
        trace.attempt,
        trace.split,
        trace.agent,
        trace.seed,
        _text(trace.tags),
        trace.end or "",
        trace.reason,
        failure.component if failure else "",
        failure.kind if failure else "",
        trace.score,
        *numbers,
        rewards,
        tools,
        _shape(trace, refused, best),
        _follows(trace),
    )


def _follows(trace: _TraceFacts) -> str:
    """Returns how often a call followed another one, as [[tool, next tool, times]]; "" is the beginning or the end."""
    names = [step.call.name for turn in trace.turns for step in turn.steps]
    pairs: dict[tuple[str, str], int] = {}  # A Counter costs twice as much.
    for pair in itertools.pairwise(["", *names, ""]) if names else ():
        pairs[pair] = pairs.get(pair, 0) + 1
    return _text([(*pair, times) for pair, times in pairs.items()])


def _facts(trace: _TraceFacts) -> tuple[tuple[Any, ...], str, str, _StepFacts | None]:
    """Returns the numbers of an episode, its rewards and tools as text, and its first refused step.

    The numbers are those from its turns to its mean logprob. A loop for each of them would take 1.5 times as long.
    """
    steps = errors = faults = moved = prompt = completion = drawn = 0
    logprob, before, refused = 0.0, "", None
    first = last = None
    branches: set[tuple[int, int]] = set()  # A call of `set[...]` costs as much as a turn.
    tools: dict[str, list[int]] = {}
    rewards: list[_RewardFacts] = []
    for turn in trace.turns:
        if (digest := turn.state_digest) != before:
            moved += before != ""  # The record doesn't name the world before the first turn.
            before = digest
        branches.add((turn.thread, turn.branch))
        rewards += turn.rewards
        reply = turn.reply
        usage = reply.usage
        prompt += usage.prompt
        completion += usage.completion
        if (sampled := reply.tokens) is not None:
            drawn, logprob = drawn + len(sampled.logprobs), logprob + sum(sampled.logprobs)
            for _, last in sampled.versions:
                first = last if first is None else first
        if (version := reply.policy_version) is not None:
            last = version
            first = last if first is None else first
        for step in turn.steps:
            steps += 1
            name = step.call.name
            if (used := tools.get(name)) is None:
                used = tools[name] = [0, 0]
            used[0] += 1
            if step.is_error:
                errors += 1
                used[1] += 1
                refused = refused or step
            if step.fault is not None:
                faults += 1
    threads = 1 if len(branches) == 1 else len({thread for thread, _ in branches})
    tokens = (min(prompt, MOST_TOKENS), min(completion, MOST_TOKENS))
    counts = (len(trace.turns), steps, errors, faults, moved, len(branches), threads)
    numbers = (*counts, *tokens, first, last, logprob / drawn if drawn else None)
    return numbers, _totals(rewards + trace.rewards), _text(tools), refused


def _totals(rewards: list[_RewardFacts]) -> str:
    """Returns the rewards of an episode, as {name: [level, sum, least]}."""
    found: dict[str, list[Any]] = {}
    for reward in rewards:
        if (value := reward.value) is None:
            continue
        if (known := found.get(reward.name)) is None:
            found[reward.name] = [reward.level, value, value]
        else:
            known[1] += value
            if value < known[2]:  # noqa: PLR1730  # A call of `min` takes three times as long.
                known[2] = value
    return _text(found)


def _text(value: dict[str, Any] | list[Any]) -> str:
    """Returns JSON text with keys in their own order, which costs half as much as sorted ones."""
    encoded = _json.encode(value)
    return codec.text(value) if b"null" in encoded else encoded.decode()  # Null may be an infinite sum.


def _shape(trace: _TraceFacts, step: _StepFacts | None, best: Mapping[str, float]) -> str:
    """Returns the shape of the failure; empty if the episode was solved, or has no score and no failure."""
    failure = trace.failure
    if failure is None and (trace.score is None or trace.score >= SOLVED):
        return ""
    if failure is not None:
        failed = [(f"failure of {failure.component}", f"{failure.kind}: {failure.message}")]
    else:
        failed = [
            (one.name, one.reason)
            for one in trace.rewards
            if (value := one.value) is not None
            and value < best.get(one.name, 1.0)
            and one.level in {"trajectory", "group"}
        ]
    refused = None if step is None else (step.call.name, _words(step.observation))
    return shape(failed, refused, f"{trace.end}: {trace.reason}" if trace.reason else f"{trace.end}")


def _words(observation: msgspec.Raw) -> str:
    """Returns the text of an observation, or its JSON if it has several parts."""
    try:
        return _string.decode(observation)
    except msgspec.DecodeError:
        return bytes(observation[:1000]).decode("utf-8", "replace")
