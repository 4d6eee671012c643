"""Servers to measure, each a process of its own: ours, the bare handler's, and the protocols' own where installed.

Where there are two cores, servers have the first to themselves and the driver the second.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
from _table import note

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

from bench.audit import _peer_install as install  # noqa: E402

CORES: Sequence[int] = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
READY = "listening on http://127.0.0.1:"


class Server:
    """A process that serves, and what it uses."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.port = port
        self._process = process
        self._seen = psutil.Process(process.pid)

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        times = self._seen.cpu_times()
        return float(times.user + times.system)

    def resident(self) -> float:
        """Megabytes."""
        return float(self._seen.memory_info().rss) / 1e6

    def threads(self) -> int:
        return int(self._seen.num_threads())

    def descriptors(self) -> int:
        return int(self._seen.num_fds())


@contextlib.contextmanager
def running(command: Sequence[str], *, port: int = 0) -> Iterator[Server]:
    """A server, until the block ends.

    Args:
        command: What starts it; what it writes is lost, but for its last words when it fails to start.
        port: Where it will listen; 0 where it says so itself, in our words.

    Raises:
        RuntimeError: It ended before it was ready.
    """
    quiet = subprocess.DEVNULL if port else subprocess.PIPE
    process = subprocess.Popen(command, stdout=quiet, stderr=subprocess.DEVNULL if port else None, text=True)
    try:
        if len(CORES) > 1:
            os.sched_setaffinity(process.pid, {CORES[0]})
        if process.stdout is not None:
            port = _announced(process.stdout.readline())
        yield Server(process, port)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _announced(line: str) -> int:
    if not line.startswith(READY):
        raise RuntimeError(f"the server said {line!r} instead of {READY!r}")
    return int(line.removeprefix(READY))


def step_aside() -> None:
    """Keep this process off the servers' core."""
    if len(CORES) > 1:
        os.sched_setaffinity(0, {CORES[1]})


def ours(*environments: str) -> contextlib.AbstractContextManager[Server]:
    """Starts this project's server from the command line."""
    return running([sys.executable, "-m", "quintain", "serve", *environments, "--port", "0"])


def bare(frames: Sequence[str], *, loop: str, http: str) -> contextlib.AbstractContextManager[Server]:
    """A handler that does nothing but send frames, below uvicorn with this event loop and these connections."""
    port = free()
    return running([sys.executable, str(HERE / "_serve_bare.py"), str(port), json.dumps(frames), loop, http], port=port)


def peer(python: str, script: str) -> contextlib.AbstractContextManager[Server]:
    """A protocol's own server, by a script beside this one."""
    port = free()
    return running([python, str(HERE / script), str(port)], port=port)


def interpreter(tool: str, *, download: bool) -> str | None:
    """The interpreter that has a peer, and None where there is none; `download` installs it below the cache."""
    if not download and not (install.place(tool) / "installed").is_file():
        note(f"{install.needs(tool)[0]} is not installed (--peers installs it below {install.place(tool).parent})")
        return None
    try:
        return str(install.python(tool))
    except install.Impossible as error:
        note(str(error))
        return None


def free() -> int:
    """A port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
