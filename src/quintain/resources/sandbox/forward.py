"""Inner end of the way out of a sandbox: `python3 -I -S forward.py SOCKET PROGRAM [ARGUMENTS...]`.

It listens on 127.0.0.1:3128 of the sandbox's own network, sets the variables by which programs find a proxy there, and
becomes PROGRAM: the same process, the same descriptors, the same exit status. It leaves behind one process that carries
every connection to the unix socket SOCKET, byte by byte, and ends when PROGRAM does. That process is not a child of
PROGRAM, which so never waits for it, and holds none of its descriptors. It makes no decision: the other end does, so a
program that connects to SOCKET itself, or kills this process, gains nothing.

At most 64 connections are carried at once, fewer if fewer descriptors are allowed; the next one waits until one ends.
Each buffers at most 64 KiB in each direction. Only the standard library is used, of Python 3.9 or newer, and of that
nothing that takes long to import (`typing`, `re`), for this runs before every program.

Exits with 125 when it cannot listen, 126 when PROGRAM cannot be run, 127 when PROGRAM does not exist.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import selectors
import signal
import socket
import sys

PORT = 3128
URL = f"http://127.0.0.1:{PORT}"
_CONNECTIONS = 64
_CHUNK = 2**16
_SPARE = 16
"""Descriptors that are not connections."""
_HIGHEST = 2**16
"""Descriptors above are not looked for: some machines allow a billion."""


class Connection:
    """A client, the socket that it is carried to, and what is on its way to either of them.

    Attributes:
        is_over: Whether both sides have said all, or one has gone.
    """

    def __init__(self, client: socket.socket, door: socket.socket, selector: selectors.BaseSelector) -> None:
        self._other = {client: door, door: client}
        self._waiting = {client: b"", door: b""}  # for this one
        self._silent: set[socket.socket] = set()  # has sent all, and the other end is shut down
        self._selector = selector
        self.is_over = False
        self._watch()

    def move(self, side: socket.socket, events: int) -> None:
        """Does what a socket is ready for."""
        try:
            with contextlib.suppress(BlockingIOError):  # It was ready, but no longer.
                if events & selectors.EVENT_WRITE and self._waiting[side]:
                    self._waiting[side] = self._waiting[side][side.send(self._waiting[side]) :]
                if events & selectors.EVENT_READ and self._is_heard(side):
                    self._hear(side)
        except OSError:
            self.is_over = True
        self._watch()

    def _is_heard(self, side: socket.socket) -> bool:
        return side not in self._silent and not self._waiting[self._other[side]]

    def _hear(self, side: socket.socket) -> None:
        other = self._other[side]
        data = side.recv(_CHUNK)
        if data:
            self._waiting[other] = data
        else:
            self._silent.add(side)
            other.shutdown(socket.SHUT_WR)
        self.is_over = len(self._silent) == 2

    def _watch(self) -> None:
        for side in self._other:
            reads = selectors.EVENT_READ if self._is_heard(side) else 0
            events = 0 if self.is_over else reads | (selectors.EVENT_WRITE if self._waiting[side] else 0)
            known = self._selector.get_map().get(side)
            if known is None and events:
                self._selector.register(side, events, self)
            elif known is not None and not events:
                self._selector.unregister(side)
            elif known is not None and known.events != events:
                self._selector.modify(side, events, self)
            if self.is_over:
                side.close()


def carry(listener: socket.socket, path: str, life: int) -> None:
    """Carries connections until the descriptor `life` can be read."""
    most = max(1, min(_CONNECTIONS, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _SPARE) // 2))
    carried: set[Connection] = set()
    with selectors.DefaultSelector() as selector:
        selector.register(life, selectors.EVENT_READ)
        selector.register(listener, selectors.EVENT_READ)
        while True:
            for key, events in selector.select():
                if key.fileobj == life:
                    return
                if isinstance(key.data, Connection):
                    side = key.fileobj
                    assert isinstance(side, socket.socket)
                    if not key.data.is_over:
                        key.data.move(side, events)
                    if key.data.is_over:
                        carried.discard(key.data)
                elif (begun := _begin(listener, path, selector)) is not None:
                    carried.add(begun)
            is_open = listener in selector.get_map()
            if is_open and len(carried) >= most:
                selector.unregister(listener)
            elif not is_open and len(carried) < most:
                selector.register(listener, selectors.EVENT_READ)


def _begin(listener: socket.socket, path: str, selector: selectors.BaseSelector) -> Connection | None:
    try:
        client, _ = listener.accept()
    except OSError:  # It went away meanwhile.
        return None
    client.settimeout(0)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        door.connect(path)
    except OSError:  # The proxy is gone, or too many wait. The client sees its connection end.
        client.close()
        door.close()
        return None
    return Connection(client, door, selector)


def detach(listener: socket.socket, path: str) -> None:
    """Leaves a process behind that carries connections as long as this one lives, whatever it becomes.

    Raises:
        OSError: There may be no more processes.
    """
    life = os.pidfd_open(os.getpid())
    between = os.fork()
    if between:
        _, status = os.waitpid(between, 0)
        os.close(life)
        if status:
            raise OSError(errno.EAGAIN, "no process can be left behind")
        return
    status = 1
    try:
        if os.fork() == 0:
            os.setsid()
            _keep(listener.fileno(), life)
            carry(listener, path, life)
        status = 0
    finally:
        os._exit(status)  # This is a copy of what becomes the program, and must not become it too.


def _keep(*kept: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    low = 3
    for number in (*sorted(kept), min(_HIGHEST, resource.getrlimit(resource.RLIMIT_NOFILE)[0])):
        os.closerange(low, number)
        low = number + 1


def become(program: list[str]) -> int:
    """Replaces this process by the program, with the proxy in its environment; returns a status if that fails."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        os.environ[name] = URL
    for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        os.environ.pop(name, None)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what is ignored stays so.
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)  # noqa: S606  # that is what it is for
    except OSError as error:
        sys.stderr.write(f"forward: {program[0]}: {error.strerror}\n")
        return 127 if isinstance(error, FileNotFoundError) else 126


def main() -> int:
    """Listen, detach, become; the status when that fails."""
    path, *program = sys.argv[1:]
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        listener.bind(("127.0.0.1", PORT))
        listener.listen(_CONNECTIONS)
        detach(listener, path)
    except OSError as error:
        sys.stderr.write(f"forward: 127.0.0.1:{PORT}: {error.strerror}\n")
        return 125
    return become(program)


if __name__ == "__main__":
    sys.exit(main())
