"""Who plays another role than the agent's, and is not asked again for what he has said: it is written down.

Nobody knows whether he would say it again. So an episode that is played again, in the next process or because its
beginning or a call was interrupted, hears from him what he said before; and only then he is asked.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from quintain.errors import EpisodeError
from quintain.harness import Model, Request
from quintain.serve.errors import Unavailable
from quintain.trace import Reply

from .entries import FORGETFUL, Log, Said


class Kept:
    """He, in one episode.

    Args:
        model: Who is asked.
        id: The episode.
        log: Where his words are written down.
    """

    def __init__(self, model: Model, id: str, log: Log) -> None:
        self._model = model
        self._id = id
        self._log = log
        self._writing = threading.Lock()
        self._said: list[Said] = []
        self._next = 0
        self._before = 0
        self._is_over = False

    def remember(self, said: Sequence[Said], *, is_over: bool) -> None:
        """What he has said to a process that was killed.

        Args:
            said: It, oldest first.
            is_over: Whether the episode has ended, so that there is nothing more to ask.
        """
        self._said = list(said)
        self._is_over = is_over

    def rewind(self, known: int) -> None:
        """Go back to where the record has so many replies of others; those of the record that it began with count."""
        if not self._next:
            self._before = known
        self._next = known - self._before

    def close(self) -> None:
        """Write nothing more: he may be asked just now, in a thread, and the name of the episode is free."""
        with self._writing:
            self._log = FORGETFUL

    async def __call__(self, request: Request) -> Reply:
        """What he says.

        Raises:
            EpisodeError: It cannot be written down; another role was asked than before; or the episode is over.
            Exception: As he raises.
        """
        if self._next == len(self._said):
            if self._is_over:
                raise EpisodeError(f"{request.role!r} had failed", component="C", kind="session_lost")
            said = Said(self._id, request.role, await self._model(request))
            try:
                with self._writing:
                    self._log.write(said)
            except Unavailable as error:
                raise EpisodeError(str(error), component="C", kind="persistence_failed") from error
            self._said.append(said)
        said = self._said[self._next]
        if said.role != request.role:
            raise diverged(f"{request.role!r} is asked, where {said.role!r} was")
        self._next += 1
        return said.reply


def diverged(words: str) -> EpisodeError:
    """An episode that was played again went another way."""
    return EpisodeError(f"played again, {words}", component="S", kind="quintain:replay_diverged")
