"""Owners of connections."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from quintain.serve.model.peers import Address, Guard

CONNECT = """
import socket, sys
line = socket.socket(getattr(socket, sys.argv[2]))
line.connect((sys.argv[3], int(sys.argv[1])))
sys.stdin.read()
"""


class Line:
    """A connection that a process of its own, the leader of its session, has open."""

    def __init__(self, listening: socket.socket, family: str = "AF_INET", host: str = "127.0.0.1") -> None:
        port = listening.getsockname()[1]
        self.process = subprocess.Popen(
            [sys.executable, "-c", CONNECT, str(port), family, host], stdin=subprocess.PIPE, start_new_session=True
        )
        self._accepted, client = listening.accept()
        self.client: Address = client[:2]
        self.server: Address = self._accepted.getsockname()[:2]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self._accepted.close()


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


@pytest.mark.parametrize(("family", "host"), [("AF_INET", "127.0.0.1"), ("AF_INET6", "::ffff:127.0.0.1")])
def test_the_first_of_the_session_is_bound(listening: socket.socket, family: str, host: str) -> None:
    line, other = Line(listening, family, host), Line(listening)
    try:
        guard = Guard()
        guard.session = line.process.pid
        assert not guard.admits(other.client, other.server), "it leads another session"
        assert guard.admits(line.client, line.server)
        assert guard.admits(line.client, line.server)
        guard.session = other.process.pid
        assert not guard.admits(other.client, other.server), "one is bound already"
    finally:
        line.close()
        other.close()


def test_process_started_after_the_first_reply_is_refused(listening: socket.socket) -> None:
    guard = Guard()
    guard.spoken()
    line = Line(listening)
    try:
        guard.session = line.process.pid
        assert not guard.admits(line.client, line.server)
    finally:
        line.close()


def test_process_started_before_the_first_reply_may_connect_late(listening: socket.socket) -> None:
    guard = Guard()
    line = Line(listening)  # An interpreter takes longer to start than a tick.
    try:
        guard.session = line.process.pid
        guard.spoken()
        guard.spoken()
        assert guard.admits(line.client, line.server)
    finally:
        line.close()


def test_a_connection_that_is_not_there_is_nobodys(listening: socket.socket) -> None:
    guard = Guard()
    guard.session = os.getsid(0)
    assert not guard.admits(("127.0.0.1", 1), listening.getsockname())
