"""Logs the simulated user's replies, so that recovery never asks the user model twice.

The model of another role may reply differently each time. So an episode that is replayed in the next process gets the
logged replies, and the model is asked only after them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from quintain.errors import EpisodeError
from quintain.harness import Model, Request
from quintain.serve.errors import Unavailable
from quintain.trace import Reply

from .entries import FORGETFUL, Log, Said


class UserModelLog:
    """Model of the other roles in one episode, whose replies are logged."""

    def __init__(self, model: Model, id: str, log: Log) -> None:
        self._model = model
        self._id = id
        self._log = log
        self._guard = threading.Lock()
        self._replies: list[Said] = []
        self._is_over = False

    def replay(self, replies: Sequence[Said], *, is_over: bool) -> None:
        """Returns these logged replies first, oldest first; then fails if the episode is over."""
        self._replies = list(replies)[::-1]
        self._is_over = is_over

    def close(self) -> None:
        """Logs nothing any more: the name of the episode is free, while a thread may still ask the model."""
        with self._guard:
            self._log = FORGETFUL

    async def __call__(self, request: Request) -> Reply:
        """Returns the next logged reply, or asks the model and logs its reply; raises whatever the model raises.

        Raises:
            EpisodeError: It cannot be logged; the log has a reply of another role; or the episode is over.
        """
        if self._replies:
            said = self._replies.pop()
            if said.role != request.role:
                raise diverged(f"{request.role!r} is asked, where {said.role!r} was")
            return said.reply
        if self._is_over:
            raise EpisodeError(f"{request.role!r} had failed", component="C", kind="session_lost")
        reply = await self._model(request)
        try:
            with self._guard:
                self._log.write(Said(self._id, request.role, reply))
        except Unavailable as error:
            raise EpisodeError(str(error), component="C", kind="persistence_failed") from error
        return reply


def diverged(words: str) -> EpisodeError:
    """Returns the failure of an episode whose replay in the next process went another way."""
    return EpisodeError(f"played again, {words}", component="S", kind="quintain:replay_diverged")
