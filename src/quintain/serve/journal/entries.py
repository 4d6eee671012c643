"""Journal entries: what is written of an episode before it is done, and after; it is replayed from them."""

from __future__ import annotations

import msgspec

from quintain import codec
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
