"""Journal entries: what is written of an episode before it is done, and after; it is replayed from them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec

from quintain import codec
from quintain.errors import EpisodeError
from quintain.harness import Model, Request
from quintain.serve.errors import Unavailable
from quintain.serve.http.keys import Caller
from quintain.trace import Reply, Trace


class Created(msgspec.Struct, frozen=True, tag="created"):
    """An episode is about to be opened.

    Attributes:
        id: Its name, which all of its entries have.
        token: Its secret name.
        owner: The caller that it belongs to.
        fingerprint: Of the environment that plays it.
        wanted: Canonical bytes of a EpisodeSpec with all defaults filled in.
    """

    id: str
    token: str
    owner: Caller
    fingerprint: str
    wanted: bytes


class Acted(msgspec.Struct, frozen=True, tag="acted"):
    """A reply is about to be played.

    Attributes:
        key: Idempotency key under which its answer can be read again; empty for none.
        reply: Canonical bytes of a Reply, or of a Move where `led`.
    """

    id: str
    key: str
    reply: bytes
    led: bool = False


class Said(msgspec.Struct, frozen=True, tag="said"):
    """The model of another role has replied."""

    id: str
    role: str
    reply: Reply


class Done(msgspec.Struct, frozen=True, tag="done"):
    """A reply was played and is about to be answered; the digest names the task and its turns."""

    id: str
    digest: str


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The episode is about to be ended by the rules of the game."""

    id: str
    reason: str


class Settled(msgspec.Struct, frozen=True, tag="settled"):
    """The episode has ended and is scored: the canonical bytes of its record, which is not scored again."""

    id: str
    trace: bytes


class Closed(msgspec.Struct, frozen=True, tag="closed"):
    """The episode is gone, and with it all of its entries."""

    id: str


Entry = Created | Acted | Said | Done | Ended | Settled | Closed


class Log:
    """Log of a server whose episodes end with it: it keeps nothing. A Journal keeps all."""

    keeps = False
    """True if entries outlive the process."""

    def write(self, entry: Entry) -> None:
        """Commits an entry, from any thread; raises Unavailable, so that what it announces must not be done."""

    async def append(self, entry: Entry) -> None:
        """Commits an entry together with all others of this pass of the event loop; raises Unavailable."""

    def room(self, size: int) -> None:
        """Raises Unavailable if an entry of so many bytes cannot be kept."""


FORGETFUL = Log()


def digest(trace: Trace, since: int) -> str:
    """Returns a digest of the task of an episode and of its turns from `since` on."""
    return codec.digest(codec.dumps((trace.task_digest, trace.turns[since:])))


class UserModelLog:
    """Model of the other roles in one episode, whose replies are logged, so that recovery never asks it twice.

    It may reply differently each time. So an episode that is replayed in the next process gets the logged replies, and
    the model is asked only after them.
    """

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
