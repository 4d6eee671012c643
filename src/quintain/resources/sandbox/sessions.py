"""Programs that live on between requests: a shell, an interpreter.

What a session *is* is its history: the files at its beginning, what it was asked, and a digest of each answer. The
living process is a cache of that. A fork, or a copy in another process, has the history alone; its next request plays
that again in a new process, on the files of then, and compares every answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from quintain import codec
from quintain.errors import EpisodeError
from quintain.resources.workspace import Workspace

from . import inside
from .policy import Limits, Result
from .running import ProgramRequest, Running

Kind = Literal["shell", "python"]
Begin = Callable[[Workspace, ProgramRequest], Awaitable[Running]]
"""Starts a program that can be asked."""

_LONGEST = 16
"""Bytes of an answer: an exit status and NUL."""


class StoredEntry(msgspec.Struct, frozen=True, array_like=True):
    """One request of a history, as bytes; see `HistoryEntry`."""

    before: bytes | None
    at: float
    text: str
    digest: str


class HistoryEntry(msgspec.Struct, frozen=True):
    """One request of a history.

    Attributes:
        before: The files, if they were not as the request before left them. This workspace is never changed.
        at: The world's time, which the files that it wrote got.
        text: The command or the code.
        digest: Digest of the answer and of the changes.
    """

    before: Workspace | None
    at: float
    text: str
    digest: str


class _SessionMark:
    """A world whose clock stands still."""

    def __init__(self, now: float) -> None:
        self.now = now

    @property
    def clock(self) -> _SessionMark:
        return self


class History:
    """A session as plain data.

    Attributes:
        kind: What answers.
        entries: What it was asked; empty for one that begins with the next request.
        left: Digest of the files as the last request left them.
    """

    def __init__(self, kind: Kind, entries: tuple[HistoryEntry, ...] = (), left: str = "") -> None:
        self.kind: Kind = kind
        self.entries = entries
        self.left = left

    def fork(self) -> History:
        """Returns the same history; entries never change."""
        return History(self.kind, self.entries, self.left)

    def dump(self) -> tuple[Kind, str, list[StoredEntry]]:
        """Everything, as plain data."""
        stored = [
            StoredEntry(None if one.before is None else one.before.dump(), one.at, one.text, one.digest)
            for one in self.entries
        ]
        return self.kind, self.left, stored

    def name(self) -> tuple[str, str, list[tuple[str, float, str, str]]]:
        """Returns the content of the digest."""
        entries = [(one.before.digest() if one.before else "", one.at, one.text, one.digest) for one in self.entries]
        return self.kind, self.left, entries

    @classmethod
    def load(cls, kind: Kind, left: str, stored: list[StoredEntry]) -> History:
        """Loads a dump."""
        entries = [
            HistoryEntry(None if one.before is None else Workspace.load(one.before), one.at, one.text, one.digest)
            for one in stored
        ]
        return cls(kind, tuple(entries), left)


class SandboxSession:
    """A history, and the process that has lived it, where there is one."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._live: Running | None = None

    async def ask(self, files: Workspace, text: str, *, home: object, begin: Begin, limits: Limits) -> Result:
        """One request.

        Args:
            files: As for `Sandbox.shell`.
            text: The command or the code.
            home: What starts programs now; a process that something else started is given up.
            begin: Starts one.
            limits: What it may use.

        Raises:
            EpisodeError: Its history could not be lived again: an answer was another one.
        """
        try:
            if self._live is None or self._live.home is not home:
                self.close()
                await self._revive(files, begin, limits)
            live = self._live
            assert live is not None
            await live.renew(files)
            known = self.history.entries
            before = files.fork() if not known or files.digest() != self.history.left else None
            at = float(files.now())
            result = await self._one(files, text, limits)
        except BaseException:
            self.close()  # Whatever state it is in, it is none that the history tells of.
            raise
        if result.reason or self._live is None:
            self.history = History(self.history.kind)
            self.close()
        else:
            entry = HistoryEntry(before, at, text, _digest(result))
            self.history = History(self.history.kind, (*known, entry), files.digest())
        return result

    async def _revive(self, files: Workspace, begin: Begin, limits: Limits) -> None:
        entries = self.history.entries
        own = files
        if entries:
            assert entries[0].before is not None
            own = entries[0].before.fork()
        request = ProgramRequest(argv=("/bin/bash", "--norc", "--noprofile", "-c", inside.SHELL))
        if self.history.kind == "python":
            request = ProgramRequest(code=inside.PYTHON)
        self._live = await begin(own, request)
        for number, entry in enumerate(entries):
            own = entry.before.fork() if entry.before else own
            own.bind(_SessionMark(entry.at))
            await self._live.renew(own)
            result = await self._one(own, entry.text, limits)
            if _digest(result) != entry.digest:
                raise EpisodeError(
                    f"request {number} of a session, {entry.text[:200]!r}, now has another answer: {_told(result)}",
                    component="S",
                    kind="quintain:replay_diverged",
                )

    async def _one(self, files: Workspace, text: str, limits: Limits) -> Result:
        live = self._live
        assert live is not None
        live.output.renew()
        live.output.listen()
        try:
            await live.thaw(limits.seconds)
            status = await _answer(live, text)
            reason = ""
            if status is None:
                status, reason = await live.ended()
                reason = reason or "ended"
            else:
                await live.freeze()
        finally:
            live.output.mute()
        live.output.drain()
        result = await live.settle(files, status, reason)
        if reason:
            self.close()
        return result

    def close(self) -> None:
        """Ends the process; the history stays."""
        if self._live is not None:
            self._live.close()
        self._live = None


async def _answer(live: Running, text: str) -> int | None:
    """Returns the exit status; None when there is none, for the program is gone or talks nonsense."""
    assert live.channel is not None
    said = b""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        await live.channel.send(text.encode("utf-8", "surrogateescape") + b"\0")
        while not said.endswith(b"\0") and len(said) < _LONGEST:
            data = await live.channel.receive(_LONGEST)
            if not data:
                return None
            said += data
    number = said.removesuffix(b"\0")
    if said.endswith(b"\0") and number.isdigit() and int(number) < 256:
        return int(number)
    live.kill("ended")
    return None


def _digest(result: Result) -> str:
    """Names an answer, but for the times of files: those are the world's."""
    changes = [
        (one.path, one.after and (one.after.kind, one.after.mode, one.after.size, one.after.target, one.after.digest))
        for one in result.changes
    ]
    return codec.digest(codec.dumps((result.status, result.out, result.err, result.is_cut, result.reason, changes)))


def _told(result: Result) -> str:
    return f"status {result.status}, {result.out[-200:]!r}, {result.err[-200:]!r}, {len(result.changes)} files changed"
