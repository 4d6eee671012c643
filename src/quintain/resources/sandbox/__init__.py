"""Programs as part of a world: they work on a Workspace, isolated, and within limits.

    policy     what a program may do and use, and what came of it
    supervisor/    a small clean process that starts sandboxes and leaves nothing behind
    link       this side of the supervisor
    running    one sandbox from its beginning to its end
    engine     the other way: a container engine, podman or docker
    containers, fifo_io    one container from its beginning to its end, its input and output
    machine, seccomp       capabilities of this machine, and the system calls that programs may not make
    inside, output         servers that run inside a sandbox, and output within limits
    proxy, forward, hosts  the way out of a sandbox to a list of hosts
    sessions   shells and interpreters that live on; their state is their history

A limit that a program meets is part of its Result: the model's mistake, which it may read. A machine that cannot
isolate raises SandboxUnavailable; nothing is ever run without isolation. A supervisor that dies breaks the world: an
EpisodeError, blamed on S.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Self

import msgspec

from quintain import codec
from quintain.errors import UsageError
from quintain.resources.workspace import Workspace

from . import link, machine
from . import policy as policies
from .policy import Limits, Policy, Promise, Result, SandboxUnavailable
from .proxy import Contact
from .running import ProgramRequest, Running
from .sessions import History, Kind, SandboxSession, StoredEntry

__all__ = ["Chunk", "Contact", "Limits", "Policy", "Promise", "Result", "Sandbox", "SandboxUnavailable", "settled"]

_FORMAT = "quintain sandbox 1"
_LONGEST = 120_000
"""Bytes of one argument; the kernel takes 128 KiB."""

settled = link.settled


class Chunk(msgspec.Struct, frozen=True):
    """Some of what a program wrote, in order for each of the two, as bytes."""

    out: bytes
    err: bytes


class _StoredSandbox(msgspec.Struct, array_like=True):
    format: str
    policy: Policy
    limits: Limits
    sessions: dict[str, tuple[Kind, str, list[StoredEntry]]]


class Sandbox:
    """Runs programs on the files of a workspace.

    It holds no files itself: each call names the workspace, which afterwards holds what the program left. Its state is
    its policy, its limits, and the histories of its sessions.

    Args:
        policy: How programs are isolated.
        limits: What they may use, where a call says nothing else.

    Raises:
        UsageError: The policy contradicts itself, or an entry of `policy.network` cannot be read.
    """

    def __init__(self, policy: Policy | None = None, *, limits: Limits | None = None) -> None:
        self.policy, self.limits = policy or Policy(), limits or Limits()
        policies.check(self.policy)  # What is wrong in it is the author's mistake, and known now.
        self._sessions: dict[str, SandboxSession] = {}
        self._world: Any = None
        weakref.finalize(self, _close, self._sessions)

    def bind(self, world: Any) -> None:
        """Takes the time from this world, where the policy requires "clock". A State does this for its fields."""
        self._world = world

    # -- one program

    async def run(
        self,
        files: Workspace,
        argv: Sequence[str] = (),
        *,
        shell: str | None = None,
        python: str | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> Result:
        """Runs a program to its end; the workspace then holds what it left.

        Args:
            files: What it finds in `/workspace`, where it begins.
            argv: The program and its arguments; this, or one of the next two.
            shell: A command for `/bin/sh`.
            python: Code for the policy's interpreter.
            stdin: What it can read.
            env: Variables of its own.
            limits: What it may use; those of the sandbox when None.

        Raises:
            SandboxUnavailable: This machine cannot isolate it, or not guarantee what the policy requires.
            EpisodeError: The supervisor is gone.
        """
        live = await self._begin(
            files, _request(argv, shell=shell, python=python, stdin=stdin, env=env), limits or self.limits
        )
        try:
            live.output.listen()
            status, reason = await live.ended()
            return await live.settle(files, status, reason)
        finally:
            await live.finish()
            machine.refill(live.home, self.policy)

    async def stream(
        self,
        files: Workspace,
        argv: Sequence[str] = (),
        *,
        shell: str | None = None,
        python: str | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> AsyncGenerator[Chunk | Result, None]:
        """Runs a program and yields its output as it comes, and at the end its Result, without `out` and `err`.

        Nothing is read while the caller uses a chunk, so a program that writes faster has to wait. Leaving the loop
        early ends the program, and the workspace stays as it was. Arguments and errors as for `run`.
        """
        live = await self._begin(
            files, _request(argv, shell=shell, python=python, stdin=stdin, env=env), limits or self.limits
        )
        end = asyncio.ensure_future(live.ended())
        try:
            while not end.done():
                live.output.listen(once=True)
                arrival = asyncio.ensure_future(live.output.arrived())
                try:
                    await asyncio.wait({end, arrival}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    arrival.cancel()
                    live.output.mute()
                chunk = Chunk(*live.output.take())
                if chunk.out or chunk.err:
                    yield chunk
            status, reason = await end
            rest = Chunk(*live.output.take())
            if rest.out or rest.err:
                yield rest
            yield await live.settle(files, status, reason)
        finally:
            end.cancel()
            await asyncio.wait([end])  # It has a reader in the loop, which would be taken for that of the next socket.
            await live.finish()
            machine.refill(live.home, self.policy)

    # -- programs that live on

    async def shell(self, files: Workspace, command: str, *, session: str = "") -> Result:
        """One command for a bash that lives on, with its variables, functions and folder.

        Every process stands still between two commands. A shell that exits, or meets a limit, begins anew with the next
        command; `Result.reason` says so.

        Args:
            files: As for `run`. What Python changed in it between two commands, the shell sees.
            command: For bash.
            session: Which of several shells.

        Raises:
            EpisodeError: It had to live its history again, and an answer was another one.
        """
        return await self._ask("shell", session, files=files, text=command)

    async def python(self, files: Workspace, code: str, *, session: str = "") -> Result:
        """Code for an interpreter that lives on, with its variables. An exception is a traceback in `Result.err`.

        Arguments, limits and errors as for `shell`; shells and interpreters have names of their own.
        """
        return await self._ask("python", session, files=files, text=code)

    async def _ask(self, kind: Kind, name: str, *, files: Workspace, text: str) -> Result:
        if "\0" in text:
            raise UsageError("a request to a session is text without NUL")
        if self.policy.network:
            raise UsageError("a session is its history, and what a network answered can't be replayed: use run()")
        home = await machine.home(self.policy)
        key = f"{kind}:{name}"
        session = self._sessions.setdefault(key, SandboxSession(History(kind)))

        async def begin(own: Workspace, request: ProgramRequest) -> Running:
            return await machine.begin(home, own, request, rules=self.policy, limits=self.limits, is_session=True)

        try:
            return await session.ask(files, text, home=home, begin=begin, limits=self.limits)
        finally:
            if not session.history.entries:
                del self._sessions[key]
            machine.refill(home, self.policy)

    async def _begin(self, files: Workspace, request: ProgramRequest, limits: Limits) -> Running:
        home = await machine.home(self.policy)
        if "clock" in self.policy.require:
            now = self._world.clock.now if self._world is not None else 0.0
            request = msgspec.structs.replace(request, env={**machine.faked(now), **request.env})
        return await machine.begin(home, files, request, rules=self.policy, limits=limits)

    # -- the machine

    async def ready(self) -> None:
        """Starts the supervisor or tries the engine, and starts the sandboxes that the policy keeps ready.

        Raises:
            SandboxUnavailable: This machine cannot isolate, or not guarantee what the policy requires.
        """
        machine.refill(await machine.home(self.policy), self.policy)

    async def guarantees(self) -> dict[Promise, bool]:
        """Returns the guarantees of this machine for this policy; all False if it cannot isolate at all."""
        return await machine.guarantees(self.policy)

    def close(self) -> None:
        """Ends the processes of all sessions. Their histories stay, so the next request starts them again."""
        for session in self._sessions.values():
            session.close()

    # -- a Resource

    def fork(self) -> Self:
        """Returns an independent twin. Its sessions have the histories of these; processes are started when asked."""
        twin = type(self)(self.policy, limits=self.limits)
        twin._sessions |= {key: SandboxSession(session.history.fork()) for key, session in self._sessions.items()}
        twin._world = self._world
        return twin

    def dump(self) -> bytes:
        """Policy, limits and histories, with the files at the beginning of each session."""
        sessions = {key: session.history.dump() for key, session in self._sessions.items()}
        return codec.dumps(_StoredSandbox(_FORMAT, self.policy, self.limits, sessions))

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Loads a dump.

        Raises:
            msgspec.DecodeError: The bytes are not a dump of a sandbox.
        """
        stored = codec.loads(data, _StoredSandbox)
        if stored.format != _FORMAT:
            raise msgspec.DecodeError(f"no dump of a sandbox: a {stored.format!r}")
        made = cls(stored.policy, limits=stored.limits)
        made._sessions |= {key: SandboxSession(History.load(*one)) for key, one in stored.sessions.items()}
        return made

    def contents(self) -> dict[str, list[str]]:
        """Returns the requests of each session, for comparison by people: "shell:main" -> the commands in order."""
        return {key: [one.text for one in session.history.entries] for key, session in self._sessions.items()}

    def digest(self) -> str:
        """Names policy, limits and histories: 32 hex digits."""
        sessions = {key: session.history.name() for key, session in self._sessions.items()}
        return codec.digest(codec.dumps((_FORMAT, self.policy, self.limits, sessions)))

    def __repr__(self) -> str:
        return f"Sandbox({len(self._sessions)} sessions)"


def _close(sessions: dict[str, SandboxSession]) -> None:
    for session in sessions.values():
        session.close()


def _request(
    argv: Sequence[str], *, shell: str | None, python: str | None, stdin: bytes, env: Mapping[str, str] | None
) -> ProgramRequest:
    if (bool(argv), shell is not None, python is not None).count(True) != 1 or isinstance(argv, str):
        raise UsageError("run() takes one of argv, a sequence of words, shell=... and python=...")
    words = ("/bin/sh", "-c", shell) if shell is not None else tuple(argv)
    for text in (*words, python or "", *(env or {}), *(env or {}).values()):
        if "\0" in text or len(text.encode("utf-8", "surrogateescape")) > _LONGEST:
            raise UsageError(
                f"an argument has a NUL or more than {_LONGEST:,} bytes; write it into a file: {text[:80]!r}"
            )
    return ProgramRequest(argv=words, code=python or "", stdin=stdin, env=env or {})
