"""Installation of clients: a client that cannot be installed is a failure, unless there is no network."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.serve.clients.venvs import install

REFUSED = ("sh", "-c", "echo no such version >&2; exit 1")


@pytest.fixture
def registry() -> Iterator[str]:
    """Serves a registry that answers every request with 404."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        serving.join()


@pytest.fixture
def nowhere() -> Iterator[str]:
    """Returns a port that is taken, and on which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"


def test_a_package_that_the_registry_refuses_is_a_failure(registry: str) -> None:
    with pytest.raises(pytest.fail.Exception, match="no such version"):
        install(REFUSED, registry)


def test_without_a_network_the_test_is_skipped(nowhere: str) -> None:
    with pytest.raises(pytest.skip.Exception, match="does not answer"):
        install(REFUSED, nowhere)


def test_a_second_install_of_a_package_needs_no_registry(nowhere: str) -> None:
    install(("true",), nowhere)
