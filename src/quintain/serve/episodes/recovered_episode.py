"""Episodes that outlive their process: at the first use each is played again from what was written down of it.

What is told of an episode is told for good. So what comes of its calls must be what came of them before, or the episode
has failed; and the verdict of one that had ended stands, whatever its judges would say today.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any

from quintain import codec
from quintain.episode import BROKEN, Episode
from quintain.errors import EpisodeError
from quintain.serve.errors import Finished, Gone, Void
from quintain.serve.journal.database import Past
from quintain.serve.journal.entries import Acted, Done, Ended, Entry, Met, Missed, Said, Settled, digest
from quintain.serve.journal.user_model_log import Kept, diverged
from quintain.trace import Reply, Trace

from .actions import Change, Move, Stop, Terminate, cut
from .live import Live
from .undelivered import deadline
from .views import Answer

_log = logging.getLogger(__name__)


class Returned(Live):
    """An episode that was open when a process ended.

    Args:
        past: What was written down of it.
        lost: Why it cannot go on, where that is known already.
        rest: As for a Live.
    """

    def __init__(self, *rest: Any, past: Past, lost: EpisodeError | None = None, **named: Any) -> None:
        super().__init__(*rest, **named)
        self._past = past
        self.is_new = past.is_new
        self._requests: dict[str, str] = {}
        self._waking: asyncio.Task[None] | None = None
        self._entries: Sequence[Entry] | None = None
        self._is_behind = self._is_due = False
        self._settled = None if past.settled is None else codec.loads(past.settled, Trace)
        if self._settled is not None:
            self.trace = self._settled
        elif lost is not None:
            self._fail(lost, component="C", kind="session_lost", stage="admission")
            self._log.write(Settled(self.id, self.trace.to_bytes()))
        if lost is not None:
            self.status = "ended"
            self._started.set()

    async def change(self, changes: tuple[Change, ...], *, key: str = "") -> int:
        """As for a Live; from then on the episode is not new."""
        self.is_new = False
        return await super().change(changes, key=key)

    async def end(self, reason: str) -> None:
        """As for a Live; from then on the episode is not new."""
        self.is_new = False
        await super().end(reason)

    async def _once(self, reply: Reply, key: str) -> list[Answer]:
        self.is_new = False
        return await super()._once(reply, key)

    async def ready(self, seconds: float | None = None) -> Episode[Any]:
        """The episode, once it is where it was.

        Args:
            seconds: How long to wait; None means without end.

        Raises:
            Starting, Gone, Void: As for a Live.
            Finished: It had ended, and its world cannot be built again.
        """
        if self._waking is None and not self._started.is_set():
            self._waking = asyncio.create_task(self.begin())
        try:
            return await super().ready(seconds)
        except Gone:
            if self.status == "ended":
                raise Finished(f"the episode has ended: {self.trace.reason}; its world is not there any more") from None
            raise

    async def woken(self, seconds: float) -> None:
        """Wait until it is where it was, whatever comes of it.

        Raises:
            Starting: It takes longer.
        """
        with contextlib.suppress(Void, Gone, Finished):
            await self.ready(seconds)

    def gave(self, key: str) -> bool:
        """Whether a process gave this key to a call, and was killed before it began with it."""
        return key[:16] in self._log.marks

    def clashes(self, key: str) -> bool:
        """Whether a process that is gone did something under this key, but for its last word: another request."""
        name, _, request = key.rpartition(" ")
        return self._requests.get(name, request) != request

    def recall(self) -> None:
        """Have at hand what was written of it, which the journal is about to let go: its record may need it."""
        is_over = self._settled is not None or self._started.is_set()
        if self._entries is None and self._counts.keeps and not (is_over or self.is_new):
            self._entries = self._past.entries()

    async def unwind(self, why: Stop) -> None:
        """As for a Live. Where its record is kept, and nobody has asked for it since, it is played again first."""
        if self._waking is None and self._entries:
            await self.begin()
        await super().unwind(why)

    async def begin(self) -> None:
        """Play it again; where that does not lead to where it was, it has failed."""
        entries = self._past.entries() if self._entries is None else self._entries
        self._entries = ()
        if isinstance(self._others, Kept):
            said = [entry for entry in entries if isinstance(entry, Said)]
            self._others.remember(said, is_over=self._settled is not None)
        async with self._lock:
            await self._replay(entries)
            if self._is_due:
                await self._verify()
            if self.status == "starting":
                self.status = "ended" if self.trace.end is not None else "open"
        self.lost.update(dict.fromkeys(_unheard(entries), deadline()))  # Up to now its clients were told to wait.
        self._begun()

    async def _replay(self, entries: Sequence[Entry]) -> None:
        self._is_behind = True
        try:
            self._place.off_loop = True  # A copy runs up to where it was made, and there is no second one.
            await self._crew.run(self._place, (self.env.name, "again"), self._begin)
            self._place.off_loop = self.led
            if self.trace.end is not None and self.trace.score is None:  # It ended before anything was asked.
                self._over()
                await self._verify()
            await self._follow(entries)
        except BROKEN as error:
            if self._settled is None:
                self._fail(error, component="S", kind="quintain:replay_diverged")
                await self._verify()
            else:
                self._lose(str(error))
        self._is_behind = False

    async def _follow(self, entries: Sequence[Entry]) -> None:
        index = 0
        for entry in entries:
            match entry:
                case Acted():
                    index = len(self.trace.turns)
                    await self._repeat(entry, index)
                    await asyncio.sleep(0)  # There may be many, and others go on meanwhile.
                case Done() if self._settled is None and digest(self.trace, index) != entry.digest:
                    raise diverged(f"turn {index} is not what it was")
                case Ended() if self._episode is not None:
                    cut(self._episode, Terminate(entry.reason))
                    await self._finish()
                case Settled():
                    self._adopt()
                case _:
                    continue

    async def _repeat(self, entry: Acted, index: int) -> None:
        """Play a reply again; of one over which the episode broke there is no turn."""
        reply = codec.loads(entry.reply, Move) if entry.led else codec.loads(entry.reply, Reply)
        is_change = isinstance(reply, Move) and not reply.plays
        if entry.key:
            name, _, request = entry.key.rpartition(" ")
            self._requests[name] = request
            self._turns[entry.key] = len(self._episode.sessions) if is_change and self._episode else index
        if self._settled is not None and index >= len(self._settled.turns) and not is_change:
            return
        if self.trace.end is not None and not entry.led:
            raise diverged(f"the episode ends after {index} turns, and went on before")
        await self._play(reply)
        if self.trace.failure is not None:
            self.broken = entry.key

    def _adopt(self) -> None:
        """The record is the one that was told; the world must be the one that it speaks of."""
        if self._settled is None or self._episode is None:
            return
        if codec.dumps(self._episode.trace.turns) != codec.dumps(self._settled.turns):
            self._lose("its turns are not what they were")
            return
        self._episode.trace = self.trace = self._settled
        self._settled = None
        self._is_due = False
        self._over()
        if self._driven is not None:
            self._driven.close()
        self._driven = None

    def _lose(self, why: str) -> None:
        _log.warning("the world of episode %s cannot be built again, but its verdict stands: %s", self.id, why)
        if self._settled is not None:
            self.trace = self._settled
        self._episode = None
        self._over()

    async def _verify(self) -> None:
        """Judge it; while it is played again only note that, for what follows may say that it went another way."""
        self._is_due = self._is_behind
        if self._settled is None and not self._is_behind:
            await super()._verify()


def _unheard(entries: Sequence[Entry]) -> set[str]:
    """Keys of the calls whose answers nobody got, or over which a process was killed before it could tell them."""
    found: set[str] = set()
    acted = ""
    for entry in entries:
        match entry:
            case Acted():
                found.add(acted)
                acted = entry.key
            case Done():
                found.add(entry.key)
                acted = ""
            case Missed():
                found.add(entry.key)
            case Met():
                found.discard(entry.key)
                acted = "" if acted == entry.key else acted
            case _:
                continue
    return {*found, acted} - {""}
