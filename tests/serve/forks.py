"""Servers as forks of a template, a process that has imported all that a server needs.

A new server takes 0.3 s of CPU, most of it for imports. A template is started with the variables of its servers, but
for those of a test, so that hash seed, time zone and clock are those of a new process. `test_examples.py` and the pages
in `docs` start servers as a user does.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

TEMPLATE = """
import gc, importlib, json, os, select, socket, sys

# Not websockets, which reads a variable that the server sets before it imports them.
needed = ("quintain.cli.serve", "quintain.serve.http.app", "quintain.serve.http.server", "prometheus_client",
          "uvicorn.lifespan.off", "uvicorn.loops.uvloop", "uvicorn.protocols.http.httptools_impl", "encodings.idna")
for name in (*needed, *sys.argv[2:]):
    importlib.import_module(name)
link = int(sys.argv[1])
gc.collect()
gc.freeze()
ends = {}  # pidfd: process, and the pipe for its status
while True:
    ready = select.select([link, *ends], [], [])[0]
    for ended in [fd for fd in ready if fd != link]:
        pid, pipe = ends.pop(ended)
        os.write(pipe, os.waitpid(pid, 0)[1].to_bytes(4, "big"))
        os.close(pipe)
        os.close(ended)
    if link not in ready:
        continue
    borrowed = socket.socket(fileno=link)
    message, fds, _, _ = socket.recv_fds(borrowed, 1 << 20, 4)
    if not message:
        sys.exit()
    pid = os.fork()
    if pid:
        ended = os.pidfd_open(pid)
        socket.send_fds(borrowed, [str(pid).encode()], [ended])
        borrowed.detach()
        ends[ended] = pid, fds.pop()
        for fd in fds:
            os.close(fd)
        continue
    borrowed.detach()
    for stream in range(3):
        os.dup2(fds[stream], stream)
    os.closerange(3, 1024)
    folder, variables, before, sys.argv = json.loads(message)
    os.chdir(folder)
    os.environ.update(variables)
    break

exec(before)
from quintain.cli import main

main()
"""
FOLDER = "QUINTAIN_TEST_FOLDER"
OWN = {FOLDER, "PYTEST_CURRENT_TEST"}
"""Variables that differ from test to test, and that a server gets when it is forked."""


class Fork:
    """A server's process, with the attributes of a `Popen` that the tests use.

    Args:
        arguments: Those of `quintain`.
        env: Its variables.
        cwd: Its folder.
        stderr: File of its error stream.
        before: Python that it runs first.
        modules: What its template has imported, beside what every server needs.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stderr: IO[str],
        before: str = "",
        modules: Sequence[str] = (),
    ) -> None:
        its_in, into = os.pipe()
        out, its_out = os.pipe()
        self._status, its_status = os.pipe()
        link = _template({name: value for name, value in env.items() if name not in OWN}, modules)
        own = {name: value for name, value in env.items() if name in OWN}
        message = json.dumps([str(cwd), own, before, ["quintain", *arguments]]).encode()
        socket.send_fds(link, [message], [its_in, its_out, stderr.fileno(), its_status])
        pid, (self._pidfd,), _, _ = socket.recv_fds(link, 16, 1)
        for fd in (its_in, its_out, its_status):
            os.close(fd)
        self.pid = int(pid)
        self.stdin = os.fdopen(into, "w", buffering=1)
        self.stdout = os.fdopen(out)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Returns its status, negative for a signal; None while it runs."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Returns its status when it has ended."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("a server", timeout or 0.0)
        return status

    def communicate(self, timeout: float | None = None) -> None:
        """Returns when it has ended, and closes its streams."""
        self.wait(timeout)
        self.stdin.close()
        self.stdout.close()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._pidfd, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = os.waitstatus_to_exitcode(int.from_bytes(os.read(self._status, 4), "big"))
            os.close(self._status)
            os.close(self._pidfd)
        return self.returncode


_TEMPLATES: dict[str, tuple[subprocess.Popen[bytes], socket.socket]] = {}


def _template(env: Mapping[str, str], modules: Sequence[str]) -> socket.socket:
    """Returns the socket of the template with these variables and modules."""
    key = json.dumps([env, modules], sort_keys=True)
    if key not in _TEMPLATES:
        ours, its = socket.socketpair()
        with its:
            command = [sys.executable, "-c", TEMPLATE, str(its.fileno()), *modules]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=env, pass_fds=(its.fileno(),))
        _TEMPLATES[key] = process, ours
    return _TEMPLATES[key][1]


@atexit.register
def _close() -> None:
    for process, link in _TEMPLATES.values():
        link.shutdown(socket.SHUT_RDWR)  # a fork of this process may hold it as well
        link.close()
        process.wait()
