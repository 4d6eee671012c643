"""Which of several processes behind one port has which episode: its name says so, to each of them.

Names that the server gives are chosen so that they belong to who gives them. Names of the client's belong to whom they
fall; requests find the way by the name that they bear.
"""

from __future__ import annotations

import secrets
import urllib.parse
import zlib
from collections.abc import Iterable

import msgspec

ELSEWHERE = "quintain.elsewhere"
"""In the state of a request that another process should have."""


class Shard(msgspec.Struct, frozen=True):
    """One process among `count`, from 0 up."""

    number: int = 0
    count: int = 1

    def owns(self, id: str) -> bool:
        """Whether an episode of this id is here."""
        return zlib.crc32(id.encode()) % self.count == self.number

    def new_id(self) -> str:
        """A name for an episode that nobody can guess, and that is here."""
        while not self.owns(name := secrets.token_hex(16)):
            pass
        return name

    def new_token(self, id: str) -> str:
        """A secret name for an episode, which leads where its id does."""
        return f"{secrets.token_urlsafe(24)}{zlib.crc32(id.encode()):08x}"

    def owner(self, url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
        """Whose a request is; None where anybody may answer.

        Args:
            url: Its target, with the query.
            headers: With lower-case names.
        """
        path, _, query = url.decode("latin-1").partition("?")
        match path.split("/")[1:4]:
            case ["e" | "m", token, *_]:
                return self._of_token(token)
            case ["v1", "episodes", id, *_] if id != "restore":
                return self._of(urllib.parse.unquote(id))
            case ["v1", "episodes", *_]:
                key = _header(headers, b"idempotency-key")
                return self._of(key) if key else None
            case ["openenv", *_]:
                return self._of_openenv(headers, query)
            case _:
                session = _header(headers, b"x-session-id")
                return self._of(session) if session else None

    def _of(self, name: str) -> int:
        return zlib.crc32(name.encode()) % self.count

    def _of_token(self, token: str) -> int:
        """Of what is no token of ours, anybody can say so."""
        try:
            return int(token[-8:], 16) % self.count
        except ValueError:
            return self.number

    def _of_openenv(self, headers: Iterable[tuple[bytes, bytes]], query: str) -> int | None:
        """Whose a request of OpenEnv is.

        A WebSocket is its own episode. Sessions are named in bodies, too, which come too late to decide by: all of them
        are the first process's.
        """
        is_socket = any(name == b"upgrade" for name, _ in headers)
        return None if is_socket and "session_id=" not in query else 0


def _header(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> str:
    """The last header of a name, as it is read elsewhere; empty where there is none."""
    found = b""
    for name, value in headers:
        if name == wanted:
            found = value
    return found.decode("latin-1").strip()
