"""Client of the supervisor: one supervisor per process, one line per sandbox; closing a line ends its sandbox."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quintain.errors import EpisodeError

from . import supervisor as _supervisor
from .policy import SandboxUnavailable, filters
from .supervisor.cgroups import discard
from .supervisor.kernel import is_alive, is_ending

INSTALL = "apt-get install bubblewrap"
_BOOT = """import sys, types
package = sys.modules["supervisor"] = types.ModuleType("supervisor")
package.__path__ = [sys.argv[1]]
from supervisor.loop import main
main()
"""
_CODE = Path(str(_supervisor.__file__)).parent
_LONGEST = 2**16
_NAME = "quintain-sandbox-"
_FOREIGN = 1_900_000_000
_starting = threading.RLock()


def lost(why: str) -> EpisodeError:
    """Returns the error for a supervisor, or its files, that are gone."""
    return EpisodeError(f"the supervisor of the sandboxes is gone: {why}", component="S", kind="session_lost")


def other_user() -> int:
    """Returns a user who owns nothing on this machine and whom this process may become; 0 when there is none.

    Root in a user namespace of its own would still be root to `/proc/sys` and to every file it can reach.
    """
    if os.geteuid() != 0:
        return 0
    ranges = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    for first, _, count in ranges:
        if first <= _FOREIGN < first + count:
            return _FOREIGN + os.getpid() % 50_000
    return max((first + count - 2 for first, _, count in ranges if count > 2), default=0)


def _home() -> Path:
    """Returns a new folder that every user can reach."""
    for parent in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp")):  # noqa: S108  # made safely
        whole = Path(parent).resolve()
        if all(folder.stat().st_mode & 0o001 for folder in (whole, *whole.parents)):
            _sweep(whole)
            made = Path(tempfile.mkdtemp(prefix=f"{_NAME}{os.getpid()}-", dir=whole))
            made.chmod(0o711)
            return made
    raise SandboxUnavailable("no folder for temporary files that every user can reach: set TMPDIR")


def _sweep(parent: Path) -> None:
    """Removes the empty folders of processes that were killed together with their supervisor."""
    for left in parent.glob(f"{_NAME}*-*"):
        if not is_alive(int(left.name.removeprefix(_NAME).split("-")[0])):
            with contextlib.suppress(OSError):
                left.rmdir()


class Supervisor:
    """A running supervisor.

    Attributes:
        owner: The process that started it.
        program: Where bubblewrap is.
        kinds: What control groups can do here.
        is_nested: Whether it lives in a user namespace of its own, for it is not root.
        uid: The user that programs are to the kernel; 0 for the user of this process.
        can_overlay: Whether files may be layers; False once that failed.
        is_proven: Whether something ran in it.
        waiting: Sandboxes that are kept ready, by policy.
        root: The supervisor's folder, by a descriptor, since it is mounted in its own namespace only.
    """

    def __init__(self, groups: str = "auto") -> None:
        found = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")
        if found is None:
            raise SandboxUnavailable(f"programs are isolated by bubblewrap, which is not installed: {INSTALL}")
        rules = filters()
        self.program, self.uid = found, other_user()
        self.home = _home()
        self.can_overlay = True
        self.is_proven = False
        self._is_buried = False
        self.waiting: dict[str, list[Any]] = {}
        self._spare: Line | None = None
        self.owner = os.getpid()
        self._errors = os.memfd_create("quintain-supervisor")
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _BOOT, *map(str, (_CODE, number, self.home, groups, self.uid))],
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[number],
                start_new_session=True,
            )
        data, fds, _, _ = socket.recv_fds(self._line, _LONGEST, 1, socket.MSG_CMSG_CLOEXEC)
        if not data:
            self.process.wait()
            why = self.said()
            self.clear([])
            raise SandboxUnavailable(f"no mount namespace: {why.splitlines()[-1]}; allow user namespaces, or be root")
        hello = json.loads(data)
        self.kinds: tuple[str, ...] = tuple(hello["kinds"])
        self.is_nested: bool = hello["is_nested"]
        self.groups: list[str] = hello["groups"]
        self.root = Path(f"/proc/self/fd/{fds[0]}")
        self._root_fd = fds[0]
        (self.root / "filter").write_bytes(rules)
        atexit.register(self.stop)

    @property
    def is_alive(self) -> bool:
        """True if the supervisor runs, and belongs to this process, not to the one that it was forked from."""
        return self.owner == os.getpid() and self.process.poll() is None

    def said(self) -> str:
        """Returns the end of its error output."""
        if self._is_buried:
            return "it ended before"
        size = os.fstat(self._errors).st_size
        return os.pread(self._errors, 2000, max(0, size - 2000)).decode(errors="replace").strip() or "no word why"

    def open(self) -> Line:
        """Returns a new sandbox, empty.

        Raises:
            EpisodeError: The supervisor is gone.
        """
        line, self._spare = self._spare or self._order(), None
        return line

    def prepare(self) -> None:
        """Makes the supervisor prepare the next sandbox in advance."""
        self._spare = self._spare or self._order()

    def _order(self) -> Line:
        return Line(self, self.ask(b"+"))

    def ask(self, what: bytes) -> socket.socket:
        """Sends a word and one end of a new socket; returns the other.

        Raises:
            EpisodeError: The supervisor is gone.
        """
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mine.setblocking(False)  # noqa: FBT003  # its only parameter
        with theirs:
            try:
                socket.send_fds(self._line, [what], [theirs.fileno()])
            except OSError as error:
                mine.close()
                raise self.silent(self.said()) from error
        return mine

    def stop(self) -> None:
        """Ends it, and with it every sandbox; returns when nothing is left."""
        if self.owner != os.getpid() or self._is_buried:
            return
        self._line.shutdown(socket.SHUT_RDWR)
        self._line.close()
        self.process.wait()
        self.clear(self.groups)

    def clear(self, groups: Sequence[str]) -> None:
        """Cleans up as a supervisor does at its end, for one that could not."""
        self._is_buried = True
        for group in groups:
            discard(Path(group))
        with contextlib.suppress(FileNotFoundError):
            self.home.rmdir()
        for fd in (self._errors, getattr(self, "_root_fd", -1)):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._line.close()
        for ready in [ready for waiting in self.waiting.values() for ready in waiting]:
            ready.close()
        self.waiting = {}
        if self._spare:
            self._spare.close()
        self._spare = None
        atexit.unregister(self.stop)

    def silent(self, why: str) -> EpisodeError:
        """Returns the error for a supervisor that does not answer. One that is ending is replaced at the next use."""
        if is_ending(self.process.pid):
            self.bury()
        return lost(why)

    def bury(self) -> None:
        """Cleans up after a dead supervisor."""
        with _starting:
            self.process.wait()
            if not self._is_buried:
                self.clear(self.groups)


_running: dict[str, Supervisor] = {}


def running(groups: str) -> Supervisor | None:
    """Returns the supervisor of this process, if it is there."""
    known = _running.get(groups)
    return known if known is not None and known.is_alive else None


def supervisor(groups: str = "auto") -> Supervisor:
    """Returns the supervisor of this process, started at the first call.

    Args:
        groups: Which control groups may be used: "auto", "v1", "v2" or "none"; each has a supervisor of its own.

    Raises:
        SandboxUnavailable: This machine cannot isolate.
    """
    with _starting:
        if there := running(groups):
            return there
        known = _running.get(groups)
        if known is not None and known.owner == os.getpid():
            known.bury()
        _running[groups] = Supervisor(groups)
        return _running[groups]


class Line:
    """The line to one sandbox.

    Attributes:
        folder: Where its file system is for this process, once it is open; `inside` is where it is for the supervisor.
    """

    def __init__(self, supervisor: Supervisor, line: socket.socket) -> None:
        self.supervisor, self._line = supervisor, line
        self.folder = Path()
        self.inside = ""
        self._end: dict[str, Any] | None = None
        self._is_started = False

    async def opened(self) -> None:
        """Waits until the sandbox exists."""
        if self.inside:
            return
        while "box" not in (words := await self.heard()):
            pass
        number = words["box"]
        self.folder = self.supervisor.root / str(number)
        self.inside = f"{self.supervisor.home}/{number}"

    async def started(self) -> None:
        """Waits until bubblewrap is about to begin, after `start` was sent."""
        while not self._is_started:
            await self.heard()

    async def heard(self) -> dict[str, Any]:
        """Waits for the next message and returns it.

        Raises:
            EpisodeError: The supervisor is gone, or could not fulfil the request.
        """
        try:
            data = await asyncio.get_running_loop().sock_recv(self._line, _LONGEST)
        except OSError as error:
            raise self.supervisor.silent(str(error)) from error
        if not data:
            why = self.supervisor.said()
            self.supervisor.bury()
            raise lost(why)
        words: dict[str, Any] = json.loads(data)
        if "exit" in words:
            self._end = words
        self._is_started = self._is_started or words.get("done") == "start"
        if "error" in words:
            raise EpisodeError(f"the sandbox failed: {words['error']}", component="S", kind="transport_local_resource")
        return words

    async def ended(self) -> dict[str, Any]:
        """Returns the exit of the program, once every process in the sandbox is gone."""
        while self._end is None:
            await self.heard()
        return self._end

    def tell(self, do: str, fds: Sequence[int] = (), **words: Any) -> None:
        """Sends a request; the answer is the next message.

        Raises:
            EpisodeError: The supervisor is gone.
        """
        message = os.memfd_create("quintain")
        try:
            os.write(message, json.dumps({"do": do, **words}).encode())
            socket.send_fds(self._line, [b"+"], [message, *fds])
        except OSError as error:
            raise self.supervisor.silent(f"{error}; {self.supervisor.said()}") from error
        finally:
            os.close(message)

    async def ask(self, do: str, fds: Sequence[int] = (), **words: Any) -> dict[str, Any]:
        """Sends a request and awaits the answer."""
        self.tell(do, fds, **words)
        while (answer := await self.heard()).get("done") != do:
            pass
        return answer

    def close(self) -> None:
        """Ends the sandbox and all its processes; the supervisor does that by itself."""
        if self._line.fileno() >= 0:
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)  # A forked process may hold it too.
            self._line.close()


async def settled(groups: str = "auto") -> None:
    """Waits until nothing is left of the sandboxes that have been closed."""
    await asyncio.sleep(0)  # What is to be closed, or kept ready, "soon" is so now.
    with supervisor(groups).ask(b"?") as line:
        await asyncio.get_running_loop().sock_recv(line, 1)
