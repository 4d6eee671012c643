"""A container engine, podman or docker, by its command line, and a watchdog that leaves nothing behind.

Everything that this process makes has a name and a label that begin with the process: its namespace of process numbers,
its number, and when it started. The watchdog is a small shell that holds one end of a pipe. It removes the containers
that are named to it, and when the pipe closes, in whatever way this process ended, all that have the label. What a
watchdog could not remove, for it was killed too, the next process removes when it starts.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .policy import Backend, Promise, SandboxUnavailable
from .supervisor.kernel import is_alive

LABEL = "quintain"
_FOUND_BY = ("HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TMPDIR", "CONTAINERS_CONF",
             "CONTAINERS_STORAGE_CONF", "CONTAINER_HOST", "DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT")  # fmt: skip
"""Variables by which an engine finds its configuration, its storage and its daemon."""
_WATCHDOG = r"""
trap '' INT TERM HUP
lives() {
    case "$(cat "/proc/$1/stat")" in "" | *") Z "*) return 1 ;; esac
}
end() {
    waited=0
    until [ -s "$3/cid" ] || [ $waited = 600 ] || ! lives "$(cat "$3/client")"; do
        sleep 0.05
        waited=$((waited + 1))
    done
    "$1" rm -f "$2"
    rm -rf "$3"
}
while read -r name is_removed && [ "$name" != . ]; do
    if [ -n "$is_removed" ]; then rm -rf "$2/$name"; else end "$1" "$name" "$2/$name"; fi
done
for folder in "$2"/*/; do
    [ ! -d "$folder" ] || end "$1" "$(basename "$folder")" "$folder"
done
left=$("$1" ps -aq --filter "label=$3")
[ -z "$left" ] || "$1" rm -f $left
rm -rf "$2"
"""
"""A container that is being made can't be removed, nor may its engine be interrupted: that leaves half of it. So it
waits until there is one, or will be none, but no longer than half a minute."""


def _started(pid: int) -> str:
    """Returns the start of a process in ticks since boot; with its number, it is unique."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def _everybody() -> str:
    """Returns the prefix of the names of all processes of this pid namespace."""
    return f"quintain-{Path('/proc/self/ns/pid').readlink().name.strip('pid:[]')}-"


def environment() -> dict[str, str]:
    """Returns all variables of an engine's command."""
    path = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    return {"PATH": path, **{name: os.environ[name] for name in _FOUND_BY if name in os.environ}}


class Engine:
    """Client of a container engine, for this process.

    Attributes:
        kind: "podman" or "docker".
        home: A folder with one for each container, readable by this user alone.
        watchdog: The process that removes the containers of this process.
        proven: For each image that was tried, the guarantees of its containers beyond isolation.
    """

    def __init__(self, kind: Backend) -> None:
        found = shutil.which(kind)
        if found is None:
            raise SandboxUnavailable(f"{kind} is not installed, or not in PATH")
        self.kind, self.program, self.owner = kind, found, os.getpid()
        self.proven: dict[str, set[Promise]] = {}
        self._prefix = f"{_everybody()}{self.owner}-{_started(self.owner)}"
        self._numbers = itertools.count(1)
        self._leaving: list[subprocess.Popen[bytes]] = []
        self._is_stopped = False
        self.home = Path(tempfile.mkdtemp(prefix=f"{self._prefix}-"))
        self.watchdog = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG, "sh", found, str(self.home), self.label],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
            cwd="/",
            process_group=0,
        )
        assert self.watchdog.stdin is not None
        self._line = self.watchdog.stdin.fileno()
        atexit.register(self.stop)

    @property
    def label(self) -> str:
        """Returns the label of all containers of this process."""
        return f"{LABEL}={self._prefix}"

    @property
    def is_alive(self) -> bool:
        """True if the watchdog runs, and belongs to this process, not to the one that it was forked from."""
        return self.owner == os.getpid() and self.watchdog.poll() is None

    def name(self) -> str:
        """Returns a new name for a container, and for its folder."""
        return f"{self._prefix}-{self.kind}-{next(self._numbers)}"

    async def call(self, *words: str) -> tuple[int, str, str]:
        """Runs one command of the engine; returns its exit status and its output."""
        process = await asyncio.create_subprocess_exec(
            self.program,
            *words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            cwd="/",
            process_group=self.watchdog.pid,
        )
        try:
            out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return process.returncode, out.decode(errors="replace").strip(), err.decode(errors="replace").strip()

    def start(self, words: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
        """Starts a command that lives as long as the container of this folder. Its output goes to a file there.

        It is not an asyncio process, since a session may outlive the loop that began it.
        """
        with (folder / "words").open("wb") as said:
            client = subprocess.Popen(
                [self.program, words[0], "--cidfile", str(folder / "cid"), *words[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=environment(),
                cwd="/",
                process_group=self.watchdog.pid,
            )
        (folder / "client").write_text(str(client.pid))
        self._leaving = [one for one in self._leaving if one.poll() is None]
        return client

    def discard(self, name: str, client: subprocess.Popen[bytes], *, is_removed: bool) -> None:
        """Schedules the removal of a container and its folder; its command ends with it."""
        if self._is_stopped:
            client.wait()
            return
        self._leaving.append(client)
        with contextlib.suppress(BrokenPipeError):  # Without a watchdog it is left to who starts next.
            os.write(self._line, f"{name} {is_removed or ''}\n".encode())

    async def sweep(self) -> None:
        """Removes the leftovers of dead processes.

        Raises:
            SandboxUnavailable: The engine does not answer.
        """
        code, out, err = await self.call("ps", "-a", "--filter", f"label={LABEL}", "--format", "{{.Names}}")
        if code:
            raise SandboxUnavailable(f"{self.kind} does not work here: {err or out}")
        left = [name for name in out.split() if _is_left(name)]
        if left:
            await self.call("rm", "-f", *left)
        await asyncio.to_thread(_sweep_folders)

    def stop(self) -> None:
        """Ends every container; returns when nothing is left."""
        if self.owner == os.getpid() and not self._is_stopped:
            self._is_stopped = True
            with contextlib.suppress(BrokenPipeError):
                os.write(self._line, b".\n")  # A forked process may hold the pipe too.
            self.watchdog.communicate()
            for client in self._leaving:
                client.wait()
            atexit.unregister(self.stop)


def _is_left(name: str) -> bool:
    """True if a container or folder of this name belongs to a dead process."""
    pid, _, rest = name.removeprefix(_everybody()).partition("-")
    if not name.startswith(_everybody()) or not pid.isdigit():
        return False
    try:
        return not is_alive(int(pid)) or _started(int(pid)) != rest.partition("-")[0]
    except (FileNotFoundError, ProcessLookupError):
        return True


def _sweep_folders() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_everybody()}*"):
        if _is_left(folder.name):
            subprocess.run(["/bin/rm", "-rf", "--", folder], env={}, check=False)  # however deep a program made it


_running: dict[Backend, Engine] = {}


async def engine(kind: Backend) -> Engine:
    """Returns the engine of this process, made at the first call.

    Raises:
        SandboxUnavailable: There is none, or it does not answer.
    """
    known = _running.get(kind)
    if known is not None and known.is_alive:
        return known
    made = _running[kind] = Engine(kind)
    try:
        await made.sweep()
    except BaseException:
        del _running[kind]
        await asyncio.to_thread(made.stop)
        raise
    return made
