"""One sandbox from its beginning to its end: lay out the files, start the program, take over what it changed."""

from __future__ import annotations

import abc
import asyncio
import contextlib
import fcntl
import marshal
import os
import resource
import shutil
import socket
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from quintain.errors import EpisodeError
from quintain.resources.workspace import FileChange, QuotaExceeded, Workspace
from quintain.resources.workspace.staging import Stage, collect, restage, stage

from . import forward, inside, policy
from .link import Line, Supervisor
from .output import Channel, Output
from .policy import Limits, Policy, Result, SandboxUnavailable
from .proxy import Contact, Proxy, allow
from .supervisor.roots import HOME

T = TypeVar("T")

PRLIMIT = "/usr/bin/prlimit"
"""Bounds the processes of one user where control groups cannot."""
_FEW = 300
"""Files that are laid out or looked at in a millisecond or two."""
_KILLED, _NOT_FOUND = 128 + 9, 127
_ANY = Limits(cpu_seconds=2**40, memory_bytes=2**60, processes=2**20, open_files=2**20)
"""Limits of an idle sandbox; those of its program must not be greater."""
_MISSING = b"bwrap: execvp "


class ProgramRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Program to run.

    Attributes:
        argv: The program and its arguments; empty for `code`.
        code: Python, for the interpreter of the policy.
        stdin: Bytes of its standard input.
        env: Variables of its own.
    """

    argv: tuple[str, ...] = ()
    code: str = ""
    stdin: bytes = b""
    env: Mapping[str, str] = {}


async def elsewhere(work: Callable[[], T], *, files: Workspace | None = None) -> T:
    """Runs work in another thread, unless it is on so few files that handing it over takes longer.

    A cancelled call still waits for the work, since it changes state that others use.
    """
    if files is not None and files.image.count <= _FEW:
        return work()
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _start(supervisor: Supervisor, rules: Policy, limits: Limits, *, argv: Sequence[str], env: Any) -> dict[str, Any]:
    """Returns the message to the supervisor that starts a program."""
    if "pids" not in supervisor.kinds and Path(PRLIMIT).exists():
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        most = limits.processes if hard == resource.RLIM_INFINITY else min(limits.processes, hard)
        argv = [PRLIMIT, f"--nproc={most}", "--", *argv]
    return {
        "bwrap": policy.arguments(rules, program=supervisor.program, env=env),
        "places": policy.places(rules),
        "argv": list(argv),
        "rlimits": policy.rlimits(limits, has_groups="memory" in supervisor.kinds),
        "program": supervisor.program,
    }


class Ready:
    """A sandbox that waits for its program: bubblewrap has done its work, and an interpreter runs in it.

    Attributes:
        control: The line to the interpreter: first comes the program, and then one byte when it may begin.
    """

    def __init__(self, supervisor: Supervisor, rules: Policy) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, Path(os.devnull).open("r+b", buffering=0) as nothing:
            null = nothing.fileno()
            argv = (rules.python, "-c", inside.WAITING)
            self.line = supervisor.open()
            words = _start(supervisor, rules, _ANY, argv=argv, env={})
            self.line.tell("start", [null, null, null, theirs.fileno()], is_held=False, **words)
        self._has_groups = "memory" in supervisor.kinds
        self._has_pids = "pids" in supervisor.kinds

    def send(self, request: ProgramRequest, fds: Sequence[int], *, rules: Policy, limits: Limits) -> None:
        """Sends the program to the waiting sandbox; `fds` become its descriptors 0, 1, 2, 3..."""
        bounds = policy.rlimits(limits, has_groups=self._has_groups)
        bounds |= {} if self._has_pids else {"RLIMIT_NPROC": (limits.processes, limits.processes)}
        words = {
            "argv": list(request.argv) or ([rules.python, "-c", request.code] if request.env else []),
            "code": request.code,
            "env": policy.environment(rules, request.env),
            "folder": HOME,
            "rlimits": [(getattr(resource, name), value) for name, value in bounds.items()],
        }
        try:
            with _memory(marshal.dumps(words, 2)) as payload:
                socket.send_fds(self.control, [b"+"], [payload, *fds])
        except BrokenPipeError as error:
            gone = f"a sandbox that was kept ready is gone; does {rules.python} run there?"
            raise EpisodeError(gone, component="S", kind="transport_local_resource") from error

    def close(self) -> None:
        """Ends the unused sandbox."""
        self.control.close()
        self.line.close()


@contextlib.contextmanager
def _memory(data: bytes) -> Any:
    fd = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(fd, 0, os.SEEK_SET)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
        yield fd
    finally:
        os.close(fd)


class Running(abc.ABC):
    """A program at work on the files of a workspace, whatever isolates it.

    Attributes:
        home: What started it.
        output: What it writes.
        channel: To ask it, where that was wanted.
    """

    def __init__(self, home: object, staged: Stage, output: Output, *, channel: Channel | None) -> None:
        self.home, self.output, self.channel = home, output, channel
        self._stage = staged

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """Returns the requests to the network."""
        return ()

    @abc.abstractmethod
    async def ended(self) -> tuple[int, str]:
        """Exit status and reason, once every process is gone.

        Raises:
            SandboxUnavailable: The program never started, for it could not be isolated.
            EpisodeError: What kept it is gone.
        """

    @abc.abstractmethod
    async def thaw(self, seconds: float) -> None:
        """Lets the processes continue, for so many seconds."""

    @abc.abstractmethod
    async def freeze(self) -> None:
        """Stops every process."""

    @abc.abstractmethod
    def kill(self, reason: str) -> None:
        """Ends the program soon. The first reason counts."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the program, if it has not ended, and releases its sandbox."""

    @abc.abstractmethod
    async def finish(self) -> None:
        """Closes, and waits for parts that close asynchronously."""

    @abc.abstractmethod
    async def _show(self) -> None:
        """Makes the files that were just pushed into the folder usable for the program."""

    def _collect(self, files: Workspace) -> list[FileChange]:
        return collect(files, self._stage)

    async def settle(self, files: Workspace, status: int, reason: str) -> Result:
        """Collects the folder into the workspace, and returns the result of the program."""
        out, err = (data.decode(errors="replace") for data in self.output.take())
        changes: list[FileChange] = []
        try:
            changes = await elsewhere(lambda: self._collect(files), files=files)
        except QuotaExceeded as error:
            reason, err = reason or "disk", f"{err}{error}\n"
        return Result(
            status=status,
            out=out,
            err=err,
            is_cut=self.output.is_cut,
            reason=reason,
            changes=tuple(changes),
            contacts=self.contacts,
        )

    async def renew(self, files: Workspace) -> None:
        """Pushes the changes that Python made to the workspace since. The files must be a copy."""
        await elsewhere(lambda: restage(files, self._stage), files=files)
        await self._show()


class Live(Running):
    """A sandbox of a supervisor.

    Attributes:
        line: To the supervisor.
    """

    def __init__(
        self,
        line: Line,
        staged: Stage,
        output: Output,
        *,
        has_to_renew: bool,
        proxy: Proxy | None = None,
        channel: Channel | None = None,
    ) -> None:
        super().__init__(line.supervisor, staged, output, channel=channel)
        self.line, self._has_to_renew, self._proxy = line, has_to_renew, proxy

    @classmethod
    async def begin(
        cls,
        supervisor: Supervisor,
        files: Workspace,
        request: ProgramRequest,
        *,
        rules: Policy,
        limits: Limits,
        overlay: bool,
        ready: Ready | None = None,
        has_channel: bool = False,
    ) -> Live:
        """Starts a program on the files of a workspace.

        Args:
            supervisor: Whose sandbox.
            files: What the program finds.
            request: The program.
            rules: How it is isolated.
            limits: What it may use.
            overlay: Whether the files may be layers, else they are copied.
            ready: A sandbox that waits for it.
            has_channel: Whether it is asked, by its descriptor 3, and answers, by 4.
        """
        line = ready.line if ready else supervisor.open()
        output = Output(limits.output_bytes, full=lambda: line.tell("kill", reason="output"))
        proxy: Proxy | None = None
        with _asked(has_channel) as (channel, control):
            try:
                proxy = await _way_out(line, rules) if rules.network else None
                with _memory(request.stdin) as stdin:
                    fds = [stdin, *output.ends, *control]
                    if ready:
                        ready.send(request, fds, rules=rules, limits=limits)
                    else:  # While bubblewrap works the files are laid out.
                        argv = policy.command(rules, request.argv, request.code)
                        words = _start(supervisor, rules, limits, argv=argv, env=request.env)
                        line.tell("start", fds, is_held=True, **words)
                output.started()
                staged, has_to_renew = await _lay_out(line, files, limits, overlay=overlay, ready=ready)
            except BaseException:
                if proxy:
                    await proxy.close()
                if ready:
                    ready.close()
                line.close()
                output.close()
                raise
        return cls(line, staged, output, has_to_renew=has_to_renew, proxy=proxy, channel=channel)

    @property
    def contacts(self) -> tuple[Contact, ...]:
        return self._proxy.log if self._proxy else ()

    async def ended(self) -> tuple[int, str]:
        end = await self.line.ended()
        self.output.drain()
        if end["exit"] is not None or end["reason"]:
            return (_KILLED if end["exit"] is None else end["exit"]), end["reason"]
        out, err = self.output.take()
        if err.startswith(_MISSING):
            self.output.put_back(out, err.removeprefix(_MISSING))
            return _NOT_FOUND, ""
        raise SandboxUnavailable(f"bubblewrap could not isolate: {err.decode(errors='replace').strip()}")

    async def thaw(self, seconds: float) -> None:
        await self.line.ask("thaw", seconds=seconds)

    async def freeze(self) -> None:
        await self.line.ask("freeze")

    def kill(self, reason: str) -> None:
        self.line.tell("kill", reason=reason)

    async def _show(self) -> None:
        if self._has_to_renew:
            await self.line.ask("own")

    def close(self) -> None:
        self.line.close()
        self.output.close()
        if self.channel:
            self.channel.close()

    async def finish(self) -> None:
        try:
            if self._proxy:
                await self._proxy.close()
        finally:
            self.close()


@contextlib.contextmanager
def _asked(has_channel: bool) -> Generator[tuple[Channel | None, list[int]]]:  # noqa: FBT001  # its only parameter
    """A channel, where one is wanted, and the program's end of it: once to be asked, once to answer."""
    if not has_channel:
        yield None, []
        return
    mine, theirs = socket.socketpair()
    channel = Channel(*[mine.detach()] * 2)
    with theirs:
        try:
            yield channel, [theirs.fileno()] * 2
        except BaseException:
            channel.close()
            raise


async def _way_out(line: Line, rules: Policy) -> Proxy:
    """Returns the open proxy of a sandbox."""
    await line.opened()
    shutil.copyfile(forward.__file__, line.folder / policy.FORWARD)
    proxy = Proxy(allow(rules.network), line.folder / policy.SOCKET)
    await proxy.start()
    if line.supervisor.uid:  # Who connects must own it.
        os.chown(line.folder / policy.SOCKET, line.supervisor.uid, -1)
    return proxy


async def _lay_out(
    line: Line, files: Workspace, limits: Limits, *, overlay: bool, ready: Ready | None
) -> tuple[Stage, bool]:
    """Writes the files where the program finds them. The supervisor signals a waiting sandbox when they are there."""
    supervisor = line.supervisor
    await line.opened()
    waiting = [ready.control.fileno()] if ready else []
    for is_layered in (True, False):
        if is_layered and not (overlay and supervisor.can_overlay):
            continue
        folder = line.folder / "stage" / ("overlay" if is_layered else "copy")
        staged = await elsewhere(
            lambda: stage(files, folder, overlay=is_layered, userxattr=supervisor.is_nested),  # noqa: B023
            files=files,
        )
        where: dict[str, Any] = {"lower": staged.lower and str(staged.lower)}
        for name, path in (("upper", staged.upper), ("work", staged.work)):
            where[name] = path and str(path.relative_to(line.folder / "stage"))
        await line.started()
        try:
            mounted = await line.ask("mount", waiting, **where, **policy.mounting(limits))
        except EpisodeError:
            if not is_layered:
                raise
            supervisor.can_overlay = False  # The kernel, or the file system of the base, has none.
        else:
            if ready:
                ready.control.close()
            return staged, mounted["has_to_renew"]
    raise AssertionError("a copy is always tried")
