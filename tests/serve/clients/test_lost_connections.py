"""Real clients over connections that break at chosen places: they come again, and nothing is done twice."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Sequence

import pytest

from tests.serve.clients.venvs import OPENREWARD, ORS, Venv
from tests.serve.serving import Served

pytestmark = pytest.mark.slow

Install = Callable[[Sequence[Sequence[str]]], Venv]
KEY = b"event: task_id\r\n"


class Breaking:
    """Stands before a server, and breaks the answers to its first tool calls off.

    Args:
        port: Of the server.
        cuts: For each request of a call, after how many bytes behind its key; None lets it pass.
    """

    def __init__(self, port: int, cuts: Sequence[int | None]) -> None:
        self._port = port
        self._cuts: Iterator[int | None] = iter(cuts)
        self.broken = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def run(self) -> None:
        with contextlib.suppress(OSError):  # Closed: the test is over.
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
                calls = threading.Semaphore(0)
                threading.Thread(target=self._ask, args=(near, far, calls), daemon=True).start()
                threading.Thread(target=self._answer, args=(near, far, calls), daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _ask(self, near: socket.socket, far: socket.socket, calls: threading.Semaphore) -> None:
        with contextlib.suppress(OSError):
            while piece := near.recv(65_536):
                if b"/call HTTP" in piece:
                    calls.release()
                far.sendall(piece)
            far.shutdown(socket.SHUT_WR)

    def _answer(self, near: socket.socket, far: socket.socket, calls: threading.Semaphore) -> None:
        with contextlib.suppress(OSError), near, far:
            while piece := far.recv(65_536):
                if calls.acquire(blocking=False) and (cut := next(self._cuts, None)) is not None:
                    self.broken += 1
                    near.sendall(self._part(piece, far, cut))
                    break
                near.sendall(piece)
            for side in (near, far):  # To close what another thread still reads would not end it.
                side.shutdown(socket.SHUT_RDWR)

    def _part(self, received: bytes, far: socket.socket, cut: int) -> bytes:
        """Returns the bytes of an answer that pass before it is broken off."""
        while KEY not in received:
            received += far.recv(65_536)
        stop = received.index(KEY) + 80 + cut
        while len(received) < stop and (piece := far.recv(65_536)):
            received += piece
        return received[:stop]


@contextlib.contextmanager
def breaking(port: int, cuts: Sequence[int | None]) -> Generator[Breaking]:
    proxy = Breaking(port, cuts)
    thread = threading.Thread(target=proxy.run, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join()


@pytest.mark.parametrize(("steps", "sdk"), [(ORS, "ors"), (OPENREWARD, "openreward")])
@pytest.mark.parametrize("cuts", [(0, 0, 10, None, 0, 40_000, 400_000, None, 0), (None, 5_000, 0, None, 0, 0)])
def test_calls_lost_after_their_key_are_made_once(
    installed: Install, served: Served, steps: Sequence[Sequence[str]], sdk: str, cuts: Sequence[int | None]
) -> None:
    with breaking(served.port, cuts) as proxy:
        seen = installed(steps).facts("lossy.py", sdk, proxy.url)
        assert proxy.broken >= 3
    assert seen["added"]["text"] == "The count is 3."
    assert seen["large"] == hashlib.sha256(b"0123456789 " * 50_000).hexdigest()
    assert (seen["last"]["reward"], seen["last"]["finished"]) == (1.0, True)
    assert seen["last"]["metadata"]["dev.quintain/seq"] == 2
