"""What is written down of an episode before it is done, and after; from this it can be played again."""

from __future__ import annotations

import functools
import os
import secrets
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Protocol

import msgspec

from quintain import codec
from quintain.serve.keys import Caller
from quintain.trace import Reply, Trace


@functools.cache
def mark() -> str:
    """What keys that this process gives to calls begin with."""
    return secrets.token_hex(8)


os.register_at_fork(after_in_child=mark.cache_clear)


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """A process begins to write; its id is its mark."""

    id: str


class Created(msgspec.Struct, frozen=True, tag="created"):
    """An episode is about to be opened.

    Attributes:
        id: Its name, which all that is written of it has.
        token: Its secret name.
        owner: Whose it is.
        fingerprint: Of the environment that plays it.
        wanted: Canonical bytes of a Wanted, with all that it leaves out filled in.
    """

    id: str
    token: str
    owner: Caller
    fingerprint: str
    wanted: bytes


class Acted(msgspec.Struct, frozen=True, tag="acted"):
    """A reply is about to be played.

    Attributes:
        key: Under which its answer can be asked for again; empty for none.
        reply: Canonical bytes of a Reply, or of a Move where `led`.
    """

    id: str
    key: str
    reply: bytes
    led: bool = False


class Said(msgspec.Struct, frozen=True, tag="said"):
    """Somebody who plays another role has replied."""

    id: str
    role: str
    reply: Reply


class Done(msgspec.Struct, frozen=True, tag="done", omit_defaults=True):
    """What was acted was played, and is about to be told; the digest names the task and the turns that came of it.

    Attributes:
        key: Its key, where whoever asked does not know that: until it is `Met`, nobody may have got the answer.
    """

    id: str
    digest: str
    key: str = ""


class Missed(msgspec.Struct, frozen=True, tag="missed"):
    """The answer to a call found nobody: the same request, sent again without its key, is that one."""

    id: str
    key: str


class Met(msgspec.Struct, frozen=True, tag="met"):
    """An answer that nobody had got was told after all, or not asked for in time: the same request is another one."""

    id: str
    key: str


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The episode is about to be ended by the rules of the game."""

    id: str
    reason: str


class Settled(msgspec.Struct, frozen=True, tag="settled"):
    """The episode has ended and is judged: the canonical bytes of its record, which is not judged again."""

    id: str
    trace: bytes


class Closed(msgspec.Struct, frozen=True, tag="closed"):
    """Nobody may ask for the episode any more."""

    id: str


class Passed(msgspec.Struct, frozen=True, tag="passed"):
    """Another process is about to make the episode that would have this name here.

    Attributes:
        request: Digest of the request by whose key it would.
    """

    id: str
    request: str


Entry = Opened | Created | Acted | Said | Done | Missed | Met | Ended | Settled | Closed | Passed


class Log(Protocol):
    """Keeps entries beyond the end of the process."""

    @property
    def keeps(self) -> bool:
        """Whether it does."""
        ...

    @property
    def marks(self) -> Collection[str]:
        """Of the processes that wrote it before."""
        ...

    @property
    def passed(self) -> Mapping[str, str]:
        """Digests of the requests that they passed on to others, by what these would have made here, oldest first."""
        ...

    def write(self, entry: Entry) -> None:
        """Keep an entry.

        Raises:
            Unavailable: It cannot be kept, so what it announces must not be done.
        """
        ...

    def room(self, size: int) -> None:
        """Make sure that an entry of so many bytes can be kept.

        Raises:
            Unavailable: It cannot.
        """
        ...


class Forgetful:
    """The log of a server whose episodes end with it."""

    keeps = False
    marks = frozenset[str]()
    passed = MappingProxyType[str, str]({})

    def write(self, entry: Entry) -> None:
        """Forget it."""

    def room(self, size: int) -> None:
        """There is always room."""


FORGETFUL = Forgetful()


def digest(trace: Trace, since: int) -> str:
    """Names the task of an episode and its turns from one on."""
    return codec.digest(codec.dumps((trace.task_digest, trace.turns[since:])))
