"""Connections that processes hand each other: each arrives with what was read of it, or is lost alone."""

from __future__ import annotations

import os
import resource
import socket

import pytest

from quintain.serve.mail import Mail


@pytest.mark.parametrize("size", [0, 10, 59_999, 60_001, 400_000])
def test_a_connection_goes_by_mail_with_what_was_read_of_it(size: int) -> None:
    mail = Mail(2)
    one, other = socket.socketpair()
    data = os.urandom(size)
    assert mail.read(1) is None
    assert mail.send(1, one.fileno(), data)
    one.close()
    found = mail.read(1)
    assert found is not None
    connection, brought, is_inner = found
    assert (brought, is_inner) == (data, False)
    assert not os.get_inheritable(connection.fileno())
    other.sendall(b"still the same")
    connection.settimeout(5)
    assert connection.recv(100) == b"still the same"
    connection.close()
    other.close()
    mail.close()


def test_a_connection_for_which_there_is_no_descriptor_is_lost_alone(caplog: pytest.LogCaptureFixture) -> None:
    mail = Mail(1)
    one, other = socket.socketpair()
    for data in (b"first", b"x" * 70_000, b"last"):
        assert mail.send(0, one.fileno(), data)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(one.fileno())
    os.close(free)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
        assert mail.read(0) is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(caplog.records) == 3
    assert mail.send(0, one.fileno(), b"next")
    found = mail.read(0)
    assert found is not None
    assert found.data == b"next"
    for end in (found.connection, one, other):
        end.close()
    mail.close()


def test_of_two_descriptors_for_which_there_is_no_room_none_stays_open() -> None:
    mail = Mail(1)
    one, other = socket.socketpair()
    assert mail.send(0, one.fileno(), b"x" * 70_000)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(one.fileno())
    os.close(free)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, before[1]))
        assert mail.read(0) is None
        assert os.dup(one.fileno()) == free
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    os.close(free)
    for end in (one, other):
        end.close()
    mail.close()


def test_a_full_box_says_so() -> None:
    mail = Mail(1)
    one, other = socket.socketpair()
    sent = 0
    while mail.send(0, one.fileno(), b"x" * 50_000):
        sent += 1
        assert sent < 10_000
    while (found := mail.read(0)) is not None:
        found[0].close()
        sent -= 1
    assert not sent
    mail.close()
    one.close()
    other.close()
