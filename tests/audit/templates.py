"""Worker processes of the audit as forks of a template, a process that has imported the package.

A new worker takes 0.1 s of CPU for the import. `PreparedWorkers` stands for the module `subprocess` in
`quintain.audit.kernel.child`. A template is started with the variables of its workers, so that hash seed, locale, time
zone and clock are those of a new process.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

TEMPLATE = """
import atexit, gc, os, socket, sys

import msgspec

from quintain.audit.kernel.worker import main

link = socket.socket(fileno=int(sys.argv[1]))
gc.collect()
gc.freeze()
while True:
    message, fds, _, _ = socket.recv_fds(link, 65536, 3)
    if not message:
        break
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass  # all have been waited for
    pid = os.fork()
    if pid:
        ended = os.pidfd_open(pid)
        socket.send_fds(link, [str(pid).encode()], [ended])
        for fd in (*fds, ended):
            os.close(fd)
        continue
    os.setsid()
    link.close()
    os.environ["TMPDIR"], folder = msgspec.json.decode(message)
    os.chdir(folder)
    sys.path[0] = folder
    read, write, out = fds
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)
    main(read, write)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(0)  # taking the interpreter apart would copy its memory
"""
MOST = 8
"""Number of templates that are kept, each for other variables."""


class PreparedWorkers:
    """Starts workers as forks of templates, with the names of `subprocess` that the audit uses."""

    DEVNULL, PIPE, STDOUT = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._templates: dict[bytes, tuple[subprocess.Popen[bytes], socket.socket]] = {}

    def Popen(  # noqa: N802 (the name in `subprocess`)
        self, command: object, *, pass_fds: tuple[int, int], env: Mapping[str, str], **options: object
    ) -> Any:
        """Returns a fork of the template with these variables."""
        variables = {name: value for name, value in env.items() if name != "TMPDIR"}
        read, write = os.pipe()
        with self._lock:  # the audit plays several probes at once
            link = self._template(variables)[1]
            socket.send_fds(link, [msgspec.json.encode([env["TMPDIR"], str(Path.cwd())])], [*pass_fds, write])
            pid, fds, _, _ = socket.recv_fds(link, 16, 1)
        os.close(write)
        return _Worker(int(pid), fds[0], read)

    def _template(self, env: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
        key = msgspec.json.encode(env, order="sorted")
        found = self._templates.pop(key, None)
        if found is None:
            if len(self._templates) == MOST:
                self._close(next(iter(self._templates)))
            ours, its = socket.socketpair()
            with its:
                command = [sys.executable, "-c", TEMPLATE, str(its.fileno())]
                found = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=env, pass_fds=(its.fileno(),)), ours
        self._templates[key] = found  # the latest is the last
        return found

    def _close(self, key: bytes) -> None:
        process, link = self._templates.pop(key)
        link.shutdown(socket.SHUT_RDWR)  # a fork of this process may hold it as well
        link.close()
        process.wait()

    def close(self) -> None:
        """Ends all templates."""
        for key in [*self._templates]:
            self._close(key)


class _Worker:
    """A process with the attributes of a `Popen` that the audit uses."""

    def __init__(self, pid: int, ended: int, out: int) -> None:
        self.pid = pid
        self.stdout = os.fdopen(out, "rb", buffering=0)
        self._ended = ended

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the process has ended."""
        if self._ended < 0:
            return
        if not select.select([self._ended], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("a worker", timeout or 0.0)
        os.close(self._ended)
        self._ended = -1
