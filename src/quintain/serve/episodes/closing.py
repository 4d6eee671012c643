"""Closing of episodes: running work ends, and the record is kept."""

from __future__ import annotations

import asyncio

from quintain.serve.episodes.actions import Stop
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.recovered_episode import RecoveredEpisode
from quintain.serve.journal.entries import Closed, Log

PATIENCE_S = 10.0
"""Seconds that a request to close waits for the verdict and the record."""


class Closing:
    """Closes episodes.

    Args:
        log: Where it is written down.

    Attributes:
        tasks: By which this is done.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self.tasks: set[asyncio.Task[None]] = set()

    async def close(self, live: Live, why: Stop) -> None:
        """Closes an episode, which ends all waiting requests; running work is not awaited.

        Args:
            live: The episode.
            why: End for the record, if the episode goes on.
        """
        if isinstance(live, RecoveredEpisode):
            live.recall()
        self._log.write(Closed(live.id))
        live.close()
        is_busy = live.is_busy
        task = asyncio.create_task(live.unwind(why))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        if not is_busy:
            await asyncio.wait({task}, timeout=PATIENCE_S)

    async def end(self) -> None:
        """Wait for what is still being closed, but not for ever."""
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=PATIENCE_S)
