"""Episodes that outlive their process: each is replayed from the journal when it is first used.

Clients have read the results of its calls and its verdict. So the replay must give the same results, or the episode
fails; and a verdict stands, whatever the scoring functions would say now.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quintain import codec
from quintain.episode import Episode
from quintain.errors import BROKEN, EpisodeError
from quintain.serve.errors import Finished, Gone, Void
from quintain.serve.journal.database import Past
from quintain.serve.journal.entries import Acted, Done, Ended, Entry, Said, Settled, digest, diverged
from quintain.trace import Reply, Trace

from .actions import Move, Stop, Terminate, cut
from .live import Live
from .secrets import Secrets

if TYPE_CHECKING:
    from .host import EpisodeSpec, Host

_log = logging.getLogger(__name__)


class RecoveredEpisode(Live):
    """Episode that was open when a process ended; `past` is its journal."""

    def __init__(self, host: Host, spec: EpisodeSpec, past: Past, **more: Any) -> None:
        begun, lost = past.created, Secrets(lost=spec.secrets)
        super().__init__(host, spec, token=begun.token, owner=begun.owner, secrets=lost, **more)
        self._past = past
        self.is_new = past.is_new
        self._requests: dict[str, str] = {}
        self._waking: asyncio.Task[None] | None = None
        self._entries: Sequence[Entry] | None = None
        self._is_behind = self._is_due = False
        self._settled = None if past.settled is None else codec.loads(past.settled, Trace)
        if self._settled is not None:
            self.trace = self._settled
        if (now := host.environment(spec.environment).fingerprint) != (before := begun.fingerprint):
            if self._settled is None:
                words = f"the environment is of another version now: {now}, not {before}"
                error = EpisodeError(words, component="C", kind="session_lost")
                self._fail(error, component="C", kind="session_lost", stage="admission")
                self._log.write(Settled(self.id, self.trace.to_bytes()))
                host.counts.end(self.id, self.trace)
            self.status = "ended"
            self._started.set()

    async def ready(self, seconds: float | None = None) -> Episode[Any]:
        """Returns the episode once it stands where it stood. Raises as a Live does.

        Raises:
            Finished: It had ended, and its world cannot be built again.
        """
        if self._waking is None and not self._started.is_set():
            self._waking = asyncio.create_task(self.begin())
        return await super().ready(seconds)

    async def woken(self, seconds: float) -> None:
        """Waits until it stands where it stood, or has failed; raises Starting if that takes longer."""
        with contextlib.suppress(Void, Gone, Finished):
            await self.ready(seconds)

    def clashes(self, key: str) -> bool:
        """True if an earlier process used this key, except for its last word, for another request."""
        name, _, request = key.rpartition(" ")
        return self._requests.get(name, request) != request

    def close(self) -> None:
        """Refuses everything from now on; first reads its journal if its record is to be archived."""
        is_over = self._settled is not None or self._started.is_set()
        if self._entries is None and self._host.counts.keeps and not (is_over or self.is_new):
            self._entries = self._past.entries()
        super().close()

    async def unwind(self, why: Stop) -> None:
        """Drops the world as a Live does; first replays an episode whose record is archived."""
        if self._waking is None and self._entries:
            await self.begin()
        await super().unwind(why)

    async def _start(self) -> None:
        """Replays the episode; it fails if that does not lead to where it stood."""
        entries = self._past.entries() if self._entries is None else self._entries
        self._entries = ()
        if self._others is not None:
            said = [entry for entry in entries if isinstance(entry, Said)]
            self._others.replay(said, is_over=self._settled is not None)
        self._is_behind = True
        try:
            await self._host.executor.run(self._affinity, (self.env.name, "replay"), self._begin)
            await self._verify_start()
            await self._follow(entries)
        except BROKEN as error:
            if self._settled is None:
                self._fail(error, component="S", kind="quintain:replay_diverged")
                await self._verify()
            else:
                self._adopt(self._settled, lost=str(error))
        self._is_behind = False
        if self._is_due:
            await self._verify()

    async def _follow(self, entries: Sequence[Entry]) -> None:
        index = 0
        steps = [entry for entry in entries if not isinstance(entry, Said)]
        for entry in steps:
            match entry:
                case Acted():
                    if self.secrets.names and entry is steps[-1]:
                        raise EpisodeError(
                            "a call was running when the server ended, and is not repeated: with the secrets of the "
                            "caller its tool may have acted outside of the world",
                            component="C",
                            kind="session_lost",
                        )
                    index = len(self.trace.turns)
                    await self._repeat(entry, index)
                    await asyncio.sleep(0)  # There may be many, and others go on meanwhile.
                case Done() if self._settled is None and digest(self.trace, index) != entry.digest:
                    raise diverged(f"turn {index} is not what it was")
                case Ended() if self._episode is not None:
                    cut(self._episode, Terminate(entry.reason))
                    await self._finish()
                case Settled() if self._settled is not None and self._episode is not None:
                    same = codec.dumps(self._episode.trace.turns) == codec.dumps(self._settled.turns)
                    self._adopt(self._settled, lost="" if same else "its turns are not what they were")
                case _:
                    continue

    async def _repeat(self, entry: Acted, index: int) -> None:
        """Replays one call; a call over which the episode broke left no turn."""
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

    def _adopt(self, settled: Trace, *, lost: str) -> None:
        """Takes the scored record over, with the replayed world unless it is `lost`."""
        self.trace = settled
        self._mark_ended()
        self._close_run()
        if lost:
            _log.warning("the world of episode %s cannot be built again, but its verdict stands: %s", self.id, lost)
            self._episode = None
        elif self._episode is not None:
            self._episode.trace = settled
            self._settled = None
            self._is_due = False

    async def _verify(self) -> None:
        """Scores it after the replay, because what follows may show that the replay went another way."""
        self._is_due = self._is_behind
        if self._settled is None and not self._is_behind:
            await super()._verify()
