"""Which of several processes behind one port has which episode: its name says so, to each of them.

Names that the server gives are chosen so that they belong to who gives them. Names of the client's belong to whom they
fall; requests find the way by the name that they bear.
"""

from __future__ import annotations

import re
import secrets
import urllib.parse
import zlib
from collections.abc import Iterable

import msgspec

_OF_SESSION = re.compile("([0-9a-f]{32})-[0-9]+")

ELSEWHERE = "quintain.elsewhere"
"""In the state of a request that another process should have: which."""


class Shard(msgspec.Struct, frozen=True):
    """One process among `count`, from 0 up."""

    number: int = 0
    count: int = 1

    def owns(self, id: str) -> bool:
        """Whether an episode of this id is here."""
        return self.of(id) == self.number

    def of(self, name: str) -> int:
        """Whose what has this name is."""
        return _number(name) % self.count

    def session_of(self, name: str) -> int | None:
        """Whose the session is that has an episode of this name; None where the name was not given here."""
        return self.of(name) if _OF_SESSION.fullmatch(name) else None

    def new_id(self) -> str:
        """A name for an episode that nobody can guess, and that is here."""
        while not self.owns(name := secrets.token_hex(16)):
            pass
        return name

    def new_token(self, id: str) -> str:
        """A secret name for an episode, which leads where its id does."""
        return f"{secrets.token_urlsafe(24)}{_number(id):08x}"

    def owner(self, path: str, query: bytes, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
        """Whose a request is; None where anybody may answer.

        Args:
            path: Decoded, as its protocol reads it.
            query: As it came.
            headers: With lower-case names.
        """
        match [part for part in path.split("/") if part][:3]:
            case ["e" | "m", token, *_]:
                return self._of_token(token)
            case ["v1", "episodes", id, *_] if id != "restore":
                return self.of(id)
            case ["v1", "episodes", *_]:
                key = _header(headers, b"idempotency-key")
                return self.of(key) if key else None
            case _:
                session = _header(headers, b"x-session-id") or _session(query.decode("latin-1"))
                return self.of(session) if session else None

    def _of_token(self, token: str) -> int:
        """Of what is no token of ours, anybody can say so."""
        try:
            return int(token[-8:], 16) % self.count
        except ValueError:
            return self.number


def _number(name: str) -> int:
    """Of what a name says where it is. The episodes of a session that was named here are where the session is."""
    ours = _OF_SESSION.fullmatch(name)
    return zlib.crc32((ours[1] if ours else name).encode())


def _session(query: str) -> str:
    """The session that a query names; others are named in bodies, which come too late to decide by."""
    return urllib.parse.parse_qs(query).get("session_id", [""])[0] if "session_id=" in query else ""


def _header(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> str:
    """The first header of a name, which is the one that `Request.header` reads; empty where there is none."""
    return next((value.decode("latin-1").strip() for name, value in headers if name == wanted), "")
