"""Flight recorder of a run: `live.jsonl` says what is in play, and `timings.jsonl` gets the seconds of each turn.

`live.jsonl` has a line when an episode begins, after each turn, and when it ends. Lines are on their way to the disk
within `DELAY_S` and not synced. The file is emptied when the run ends well; after a kill it says what was in play.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable
from typing import Any

import msgspec

from quintain import codec
from quintain.environment import Environment
from quintain.episode import ActorSession, Episode
from quintain.harness import Harness, Model, Replayable, Request, Session
from quintain.record import RunFolder
from quintain.state import S
from quintain.trace import Reply, Timing, Trace, Turn

FILE = "live.jsonl"
DELAY_S = 0.05
"""Seconds that a line waits for others: a write to disk costs as much as all the rest."""
MOST_BYTES = 64 << 20
"""Size at which the file is written anew with the episodes in play only."""


class TurnTiming(Timing):
    """Seconds of an episode, and of each of its turns.

    Attributes:
        began: Start of the episode, in Unix seconds.
        turns: (model, tools, verifier) by turn. What the verifier takes after the last turn is in `verifier_s` only.
    """

    began: float = 0.0
    turns: list[tuple[float, float, float]] = []


class Recorder(contextlib.AbstractContextManager["Recorder"]):
    """Recorder of one run.

    Args:
        folder: The run folder.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._path = folder.path / FILE
        self._flights: dict[bytes, EpisodeInPlay] = {}
        self._followed: dict[int, EpisodeInPlay] = {}
        self._open()

    def watch(self, env: Environment[S]) -> Environment[S]:
        """Returns the environment with a harness that tells the recorder what it plays.

        The fingerprint stays, because the harness drives episodes as before.
        """
        twin = env.replace()
        kind = _ReplayableHarness if isinstance(env.harness, Replayable) else _RecordedHarness
        twin.harness = kind(env.harness, self)
        return twin

    def follow(self, episode: Episode[Any], *, gone: bool) -> None:
        """Writes what an episode has played since the last call, for a server, whose clients may play themselves.

        Args:
            episode: The episode, with the same identity in each call. Forks, which share a key, are left out.
            gone: True for an episode that is closed; one that has ended is the same.
        """
        if episode.trace.forked:
            return
        if (flight := self._followed.get(id(episode))) is None:
            if gone or episode.ended:
                return
            flight = self._followed[id(episode)] = EpisodeInPlay(episode)
            self.began(flight)
        for turn in flight.new_turns():
            self.turned(flight, turn)
        if gone or episode.ended:
            del self._followed[id(episode)]
            self.ended(flight)

    def __exit__(self, kind: object, *_: object) -> None:
        self._flush()
        if kind is None:
            os.ftruncate(self._file, 0)
        os.close(self._file)

    def knows(self, trace: Trace) -> bool:
        """True if the folder holds the episode already: it is played again for the world that it left."""
        return self._folder.find((trace.task, trace.member, trace.attempt)) is not None

    def began(self, flight: EpisodeInPlay) -> None:
        """Writes the first line of an episode."""
        self._flights[flight.key] = flight
        self._write(flight.first)

    def turned(self, flight: EpisodeInPlay, turn: Turn) -> None:
        """Writes the line of a turn."""
        self._write(flight.line(turn))

    def ended(self, flight: EpisodeInPlay) -> None:
        """Writes the last line of an episode."""
        self._flights.pop(flight.key, None)
        self._write(b'{"ended":%s}\n' % flight.key)

    def _open(self) -> None:
        self._size, self._lines = 0, list[bytes]()
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)

    def _write(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) == 1:
            asyncio.get_running_loop().call_later(DELAY_S, self._flush)

    def _flush(self) -> None:
        lines, self._lines = b"".join(self._lines), []
        # The run matters more than its recorder: of a full disk the run folder speaks.
        with contextlib.suppress(OSError):
            self._size += os.write(self._file, lines)
        if self._size > MOST_BYTES:
            self._compact()

    def _compact(self) -> None:
        # Readers keep the old file until they look again, and then see that it is another one.
        os.close(self._file)
        self._path.unlink(missing_ok=True)
        self._open()
        for flight in self._flights.values():
            lines = (flight.first, *map(flight.line, flight.episode.trace.turns[: flight.turns]))
            self._size += os.write(self._file, b"".join(lines))


class _TurnLine(msgspec.Struct, gc=False):
    key: msgspec.Raw
    at: float
    turn: Turn


class EpisodeInPlay:
    """One episode in play."""

    def __init__(self, episode: Episode[Any]) -> None:
        trace = episode.trace
        self.episode, self.turns = episode, 0
        self.timing = episode.timing = TurnTiming(began=time.time())
        self.key = codec.json((trace.task, trace.member, trace.attempt))
        head = codec.json(msgspec.structs.replace(trace, turns=[]))
        self.first = b'{"began":%s,"at":%.3f,"head":%s}\n' % (self.key, self.timing.began, head)
        self._raw = msgspec.Raw(self.key)
        self._spent = (0.0, 0.0, 0.0)

    def line(self, turn: Turn) -> bytes:
        """Returns the line of a turn that ends now."""
        return codec.json(_TurnLine(self._raw, time.time(), turn)) + b"\n"

    def new_turns(self) -> list[Turn]:
        """Returns the turns since the last call, and notes their seconds."""
        found = self.episode.trace.turns[self.turns :]
        for _ in found:
            model, tool, verifier = self._spent
            self._spent = now = (self.timing.model_s, self.timing.tool_s, self.timing.verifier_s)
            self.timing.turns.append((now[0] - model, now[1] - tool, now[2] - verifier))
        self.turns += len(found)
        return found


class _RecordedHarness:
    """Harness of an environment whose episodes are recorded while they are played."""

    def __init__(self, own: Harness, recorder: Recorder) -> None:
        self._own, self._recorder = own, recorder

    async def play(self, session: Session, model: Model) -> None:
        """Drives one episode as the own harness does."""
        if not isinstance(session, ActorSession) or self._recorder.knows(session.episode.trace):
            await self._own.play(session, model)
            return
        flight, recorder = EpisodeInPlay(session.episode), self._recorder

        def flush() -> None:
            for turn in flight.new_turns():
                recorder.turned(flight, turn)

        def ask(request: Request) -> Awaitable[Reply]:  # Without a coroutine of its own, which each turn would pay.
            flush()
            return model(request)

        recorder.began(flight)
        try:
            await self._own.play(session, ask)
        finally:
            flush()
            recorder.ended(flight)


class _ReplayableHarness(_RecordedHarness):
    """The same for a harness that needs another one to replay its traces."""

    def replay_harness(self, trace: Trace) -> Harness:
        """Returns the harness that plays this record again."""
        assert isinstance(self._own, Replayable)
        return self._own.replay_harness(trace)
