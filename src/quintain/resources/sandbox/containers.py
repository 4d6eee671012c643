"""One container from its beginning to its end: the other way to isolate a program, behind the same contract.

The engine is asked for as little as possible. Its command stays in the foreground and says only why it could not start
a container. The files are a copy, bound at `/workspace`. What the program reads and writes goes through `fifo_io.py`.
Real time, CPU, and what is added to the folder are watched from here, and who has too much of them is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from quintain.errors import EpisodeError, UsageError
from quintain.resources.workspace import FileChange, QuotaExceeded, Workspace
from quintain.resources.workspace.staging import Stage, stage

from . import policy
from .engine import Engine
from .fifo_io import INSIDE, WORD, Fifos
from .output import Output, readable
from .policy import Limits, Policy, Promise, SandboxUnavailable
from .running import ProgramRequest, Running, elsewhere
from .supervisor import cgroups, kernel
from .supervisor.roots import HOME, UID

_TICK, _RARELY, _PATIENCE = 0.02, 0.25, 120.0
"""Seconds: between two looks at time and CPU, at least between two at the folder, and for an engine to start."""
_KILLED = 128 + 9
_LONGEST = 4095 - 256
"""Bytes of a path that the kernel takes, with a name at its end."""
_MOST_MEMORY, _MOST_PROCESSES = 2**50, 2**22
_OF_ONE_USER = 2**14
"""Processes of all containers with one user, and no bound of any: what engines ask for by themselves may be refused."""


def command(engine: Engine, name: str, *, rules: Policy, limits: Limits, request: ProgramRequest) -> list[str]:
    """Returns the engine's arguments, without the folders and those after the image."""
    cpu, memory = math.ceil(limits.cpu_seconds), min(limits.memory_bytes, _MOST_MEMORY)
    ulimits = {
        "nofile": (_at_most(resource.RLIMIT_NOFILE, limits.open_files),) * 2,
        "nproc": (_at_most(resource.RLIMIT_NPROC, _OF_ONE_USER),) * 2,
        "fsize": (limits.disk_bytes,) * 2,
        "cpu": (cpu, cpu + 1),
        "core": (0, 0),
        "msgqueue": (0, 0),
    }
    words = ["run", "--name", name, "--label", engine.label, "--pull=never", "--log-driver=none", "--sig-proxy=false"]
    words += ["--network=none", "--hostname=sandbox", "--cap-drop=all", "--security-opt=no-new-privileges"]
    words += ["--stop-signal=KILL", "--stop-timeout=0", "--read-only", *_user(engine)]
    words += ["--read-only-tmpfs=false"] if engine.kind == "podman" else []
    fresh = ",notmpcopyup" if engine.kind == "podman" else ""  # else it has a copy of the image's
    words += [f"--memory={memory}b", f"--memory-swap={memory}b"]
    words += [f"--pids-limit={_processes(limits)}", f"--shm-size={limits.disk_bytes}b"]
    words += ["--tmpfs", f"/tmp:rw,exec,mode=1777,size={limits.disk_bytes}{fresh}"]  # noqa: S108  # the sandbox's own
    for kind, (soft, hard) in ulimits.items():
        words += ["--ulimit", f"{kind}={soft}:{hard}"]
    for path in rules.readable:
        words += ["--volume", f"{path}:{path}:ro"]
    for variable, value in policy.environment(rules, request.env).items():
        words += ["--env", f"{variable}={value}"]
    return [*words, "--workdir", HOME, "--entrypoint", "/bin/sh"]


def _processes(limits: Limits) -> int:
    return min(limits.processes + 1, _MOST_PROCESSES)  # process 1


def _at_most(kind: int, wanted: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _user(engine: Engine) -> list[str]:
    """Returns the arguments that set the program's user, whose files this process can read and remove."""
    if os.geteuid() == 0:
        return [f"--user={UID}:{UID}"]
    if engine.kind == "podman":
        return [f"--userns=keep-id:uid={UID},gid={UID}", f"--user={UID}:{UID}"]
    return [f"--user={os.geteuid()}:{os.getegid()}"]


def _lay_out(files: Workspace, folder: Path) -> Stage:
    staged = stage(files, folder, overlay=False)
    _own(staged)
    return staged


def _own(staged: Stage) -> None:
    """Lets the files be the program's."""
    if os.geteuid() == 0:
        kernel.own(str(staged.upper), UID)


class Contained(Running):
    """A container with a workspace laid out and a program in it."""

    def __init__(
        self,
        engine: Engine,
        client: subprocess.Popen[bytes],
        name: str,
        *,
        staged: Stage,
        fifos: Fifos,
        limits: Limits,
    ) -> None:
        output = Output(limits.output_bytes, full=lambda: self.kill("output"), pipes=fifos.pipes)
        super().__init__(engine, staged, output, channel=fifos.channel)
        self._engine = engine
        self._client, self._pidfd = client, os.pidfd_open(client.pid)
        self._name, self._fifos, self._limits = name, fifos, limits
        self._reason, self._code, self._said = "", -1, b""
        self._is_removed = self._is_closed = self._is_frozen = False
        self._guard: asyncio.Task[None] | None = None
        self._group = cgroups.Group({}, is_v2=False)
        self._most: tuple[float, float] = (math.inf, math.inf)
        size, count = self._held()
        self._most = size + limits.disk_bytes, count + limits.files
        self._look_again = 0.0

    @classmethod
    async def begin(
        cls,
        engine: Engine,
        files: Workspace,
        request: ProgramRequest,
        *,
        rules: Policy,
        limits: Limits,
        has_channel: bool = False,
    ) -> Contained:
        """Starts a program on the files of a workspace; the arguments are those of `Live.begin`.

        Raises:
            SandboxUnavailable: The engine could not start it; in its own words.
        """
        words = command(engine, name := engine.name(), rules=rules, limits=limits, request=request)
        argv = policy.command(rules, request.argv, request.code)
        try:
            " ".join([*words, *argv]).encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"containers take words that are text: {error}") from error
        folder = engine.home / name
        folder.mkdir()
        try:
            staged = await elsewhere(lambda: _lay_out(files, folder / "stage"), files=files)
            fifos = Fifos(folder / "fifos", request, has_channel=has_channel)
        except BaseException:
            shutil.rmtree(folder)
            raise
        bound = ["--volume", f"{staged.upper}:{HOME}", "--volume", f"{fifos.folder}:{INSIDE}:ro"]
        bound += ["--pidfile", str(folder / "pid")] if engine.kind == "podman" else []
        image = ["--rootfs", f"{rules.image}:O"] if rules.image.startswith("/") else [rules.image]
        try:
            client = engine.start([*words, *bound, *image, "-c", fifos.first(), "sh", *argv], folder)
        except BaseException:
            fifos.close()
            fifos.close_pipes()
            shutil.rmtree(folder)
            raise
        made = cls(engine, client, name, staged=staged, fifos=fifos, limits=limits)
        try:
            await made._begun()
        except BaseException:
            made.close()
            raise
        return made

    async def _begun(self) -> None:
        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while not self._said and self._client.poll() is None and asyncio.get_running_loop().time() < deadline:
            await readable(self._fifos.state, self._pidfd, seconds=1)
            self._hear()
        if not self._said:
            raise SandboxUnavailable(f"{self._engine.kind} could not start a container: {self._words()}")
        self._fifos.begun()
        if self._engine.kind == "podman":
            pid = (self._folder / "pid").read_text()
        else:
            pid = (await self._engine.call("inspect", "--format", "{{.State.Pid}}", self._name))[1]
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # Its limits hold all the same.
            self._group = cgroups.of(int(pid))
        self._start_guard(self._limits.seconds)

    @property
    def _folder(self) -> Path:
        return self._engine.home / self._name

    def _words(self) -> str:
        """Returns the engine's last error messages."""
        said = (self._folder / "words").read_text(errors="replace").strip()
        return said[-2000:] or f"it ended with status {self._client.poll()} and no word why"

    def bounds(self) -> set[Promise]:
        """Returns the limits that the engine's control groups enforce now."""
        most = min(self._limits.memory_bytes, _MOST_MEMORY), _processes(self._limits)
        names: dict[str, Promise] = {"memory": "memory", "pids": "processes", "cpuacct": "cpu"}
        return {names[kind] for kind in self._group.bounds(*most)}

    # -- while it runs

    def _start_guard(self, seconds: float) -> None:
        self._guard = asyncio.ensure_future(self._watch(asyncio.get_running_loop().time() + seconds))

    async def _watch(self, deadline: float) -> None:
        """Until the program has ended, or has met a limit, and its container is gone."""
        while not self._reason and self._code < 0:
            await readable(self._fifos.state, self._pidfd, seconds=_TICK)
            self._look(deadline)
        try:
            await self._remove()
        except EpisodeError:
            self._fifos.wake()
            raise
        if not self._reason and self._is_too_much():
            self._reason = "disk"

    def _look(self, deadline: float) -> None:
        now = asyncio.get_running_loop().time()
        self._hear()
        word = self._said.removeprefix(b"+")
        if b"\n" in word or len(word) >= WORD:
            word = word.removesuffix(b"\n")
            self._code = int(word) if word.isdigit() and int(word) < 256 else _KILLED
        elif self._client.poll() is not None:
            raise EpisodeError(f"a container is gone: {self._words()}", component="S", kind="session_lost")
        with contextlib.suppress(OSError):  # The group of a container that dies is gone before its engine says so.
            if self._group.was_refused("memory"):
                self.kill("memory")
            elif self._code == 128 + signal.SIGXCPU or self._group.cpu() > self._limits.cpu_seconds:
                self.kill("cpu")
            elif self._code > 0 and self._group.was_refused("pids"):
                self.kill("processes")
        if self._code < 0 and now >= deadline:
            self.kill("time")
        if self._code < 0 and now >= self._look_again:
            if self._is_too_much():
                self.kill("disk")
            took = asyncio.get_running_loop().time() - now
            self._look_again = now + max(_RARELY, 20 * took)

    def _hear(self) -> None:
        """Handles the messages of process 1: the start, and later an exit status."""
        with contextlib.suppress(BlockingIOError):
            self._said += os.read(self._fifos.state, WORD)

    def _held(self) -> tuple[int, int]:
        """Returns bytes and files in the folder; who has too many, or too long a path, is looked at no further."""
        size = count = 0
        pending = [str(self._stage.upper)]
        while pending:
            folder = pending.pop()
            if len(os.fsencode(folder)) > _LONGEST:
                return sys.maxsize, sys.maxsize
            # Programs move on while they are looked at, may put a link where a folder was, or forbid to look.
            with (
                contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError),
                os.scandir(folder) as entries,
            ):
                for entry in entries:
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        with contextlib.suppress(FileNotFoundError):
                            size += entry.stat(follow_symlinks=False).st_size
                    if size > self._most[0] or count > self._most[1]:
                        return size, count
        return size, count

    def _is_too_much(self) -> bool:
        size, count = self._held()
        return size > self._most[0] or count > self._most[1]

    async def _remove(self) -> None:
        """Ends every process, and removes the container from the engine."""
        code, out, err = await self._engine.call("rm", "-f", self._name)
        if code:
            raise EpisodeError(f"a container does not end: {err or out}", component="S", kind="session_lost")
        await asyncio.to_thread(self._client.wait)
        self._is_removed = True

    # -- what any program at work can do

    async def ended(self) -> tuple[int, str]:
        assert self._guard is not None
        await self._guard
        end = (_KILLED if self._code < 0 else self._code), self._reason
        self.output.drain()
        return end

    async def thaw(self, seconds: float) -> None:
        if self._guard and self._guard.done() and self._is_removed:
            return  # The next word to it says that it is gone.
        await self._pause()
        if self._is_frozen:
            await self._told("unpause")
            self._is_frozen = False
        self._start_guard(seconds)

    async def freeze(self) -> None:
        await self._pause()
        if not self._is_removed:
            await self._told("pause")
            self._is_frozen = True
            if self._is_too_much():
                self._reason = "disk"

    async def _pause(self) -> None:
        """Stops watching, after ending a program that has exceeded a limit."""
        if self._guard and (self._reason or self._code >= 0):
            await self._guard
        elif self._guard:
            self._guard.cancel()
            await asyncio.wait([self._guard])
            if not self._guard.cancelled():
                await self._guard  # It found that the container is gone.
            self._guard = None

    async def _told(self, what: str) -> None:
        code, out, err = await self._engine.call(what, self._name)
        if code:
            raise EpisodeError(
                f"{self._engine.kind} could not {what} a session: {err or out}", component="S", kind="session_lost"
            )

    def kill(self, reason: str) -> None:
        self._reason = self._reason or reason

    async def _show(self) -> None:
        await elsewhere(lambda: _own(self._stage))

    def _collect(self, files: Workspace) -> list[FileChange]:
        if self._reason == "disk":
            raise QuotaExceeded(f"more than {self._limits.disk_bytes} bytes or {self._limits.files} files were added")
        return super()._collect(files)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._guard and not self._guard.get_loop().is_closed():
            self._guard.cancel()
        os.close(self._pidfd)
        if self._engine.owner == os.getpid():  # Else it is the business of the process that this one was forked from.
            self._engine.discard(self._name, self._client, is_removed=self._is_removed)
        self._fifos.close()
        self.output.close()

    async def finish(self) -> None:
        guard = self._guard
        self.close()
        if guard:
            await asyncio.wait([guard])
