"""From where a server may be asked, how much at a time, and how long it waits for the rest: mostly bare sockets."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from quintain.errors import UsageError
from quintain.serve.errors import Denied
from quintain.serve.http.asgi import Event, HttpRequest
from quintain.serve.http.auth import HostCheck, is_loopback
from tests.serve.operation.raw import ask, dial
from tests.serve.serving import Served, serve


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("door")
    options = ("--name", "lab.example", "--origin", "https://pages.example/", "--body", "4096")
    with serve("counter", folder=folder, options=options) as server:
        yield server


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def spoken(port: int, text: bytes) -> int:
    with dial(port) as line:
        line.sendall(text)
        return status(line.recv(65536))


# --- names and pages


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:{port}", "localhost:{port}", "LOCALHOST", "[::1]:1", "127.8.9.10", "Lab.Example:80"],
)
def test_a_server_answers_to_its_names(served: Served, host: str) -> None:
    name = host.format(port=served.port)
    assert spoken(served.port, f"GET /health HTTP/1.1\r\nhost: {name}\r\n\r\n".encode()) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1", "[::2]", "a:b:c", "[", "@"],
)
@pytest.mark.parametrize("path", ["/health", "/create_session", "/e/x/mcp", "/v1/environments", "/openenv/counter/ws"])
def test_a_name_that_somebody_lets_point_here_is_refused(served: Served, host: str, path: str) -> None:
    assert spoken(served.port, f"POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n".encode()) == 403


def test_a_program_that_names_no_host_is_no_browser(served: Served) -> None:
    assert spoken(served.port, b"GET /health HTTP/1.0\r\n\r\n") == 200


@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "http://127.0.0.1", "https://pages.example", "HTTP://[::1]:9"]
)
def test_pages_of_this_machine_and_of_friends_may_ask(served: Served, origin: str) -> None:
    assert ask(served.port, "GET", "/list_environments", headers={"origin": origin})[0] == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://pages.example", "https://pages.example.evil", "file://", "x", "http://["],
)
@pytest.mark.parametrize("path", ["/list_environments", "/openenv/counter/health", "/v1/environments", "/e/x/mcp"])
def test_pages_of_other_origins_are_refused(served: Served, origin: str, path: str) -> None:
    assert ask(served.port, "GET", path, headers={"origin": origin})[0] == 403


def test_websockets_of_other_origins_are_refused(served: Served) -> None:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect
    from websockets.typing import Origin

    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{served.port}/openenv/counter/ws", origin=Origin("http://evil.example"))
    assert refused.value.response.status_code == 403


LOCAL = ("127.0.0.1", "::1", "[::1]", "localhost", "LocalHost.")
FOREIGN = ("0.0.0.0", "::", "10.0.0.1", "example.com", "", "127.1")


@pytest.mark.parametrize(("name", "local"), [*((name, True) for name in LOCAL), *((name, False) for name in FOREIGN)])
def test_loopback_is_this_machine(name: str, local: bool) -> None:
    assert is_loopback(name) is local


def asked(**headers: str) -> HttpRequest:
    async def receive() -> Event:
        return {"type": "http.request"}

    async def send(event: Event) -> None:
        raise AssertionError(event)

    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    return HttpRequest({"type": "http", "path": "/", "headers": given}, receive, send)


def test_a_server_of_the_world_answers_to_the_names_that_it_was_given() -> None:
    named = HostCheck("0.0.0.0", names=["lab.example"])
    named.check(asked(host="lab.example:8080"))
    for host in ("evil.example", "127.0.0.1", "10.0.0.1:8080"):
        with pytest.raises(Denied, match="is not called"):
            named.check(asked(host=host))
    HostCheck("0.0.0.0").check(asked(host="any.example"))


def test_a_page_without_an_origin_is_not_the_servers_own_where_no_host_is_named() -> None:
    with pytest.raises(Denied, match="may not ask"):
        HostCheck("0.0.0.0").check(asked(origin="null"))


@pytest.mark.parametrize("name", ["https://lab.example", "lab.example:80", "lab.example/x", "", "a b@c", "["])
def test_a_name_that_no_request_could_bear_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is no name of a host"):
        HostCheck("0.0.0.0", names=[name])


@pytest.mark.parametrize("origin", ["lab.example", "https://lab.example/page", "https://", "null", "*"])
def test_an_origin_that_no_page_could_have_is_refused(origin: str) -> None:
    with pytest.raises(UsageError, match="is no origin"):
        HostCheck("0.0.0.0", origins=[origin])


# --- how much


def test_a_long_body_is_refused(served: Served) -> None:
    body = json.dumps({"split": "x" * 5000}).encode()
    for path in ("/counter/tasks", "/create_session", "/openenv/counter/reset", "/v1/episodes"):
        answer, _, said = ask(served.port, "POST", path, body=body)
        assert answer == 413, (path, said)


def test_a_body_that_lies_about_its_length_is_refused(served: Served) -> None:
    chunks = b"1000\r\n" + b" " * 4096 + b"\r\n"
    head = b"POST /counter/tasks HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    assert spoken(served.port, head + 3 * chunks) == 413


# --- how often


def test_a_caller_over_the_rate_gets_retry_after(served: Served, tmp_path_factory: pytest.TempPathFactory) -> None:
    with serve("counter", folder=tmp_path_factory.mktemp("pace"), options=("--rate", "2")) as slow:
        answers = [ask(slow.port, "GET", "/list_environments") for _ in range(8)]
        assert [one[0] for one in answers[:4]] == [200] * 4
        refused = [headers for number, headers, _ in answers if number == 429]
        assert refused
        assert all(int(headers["retry-after"]) >= 1 for headers in refused)
        assert ask(slow.port, "GET", "/healthz")[0] == 200
        assert ask(slow.port, "POST", "/e/nobody/mcp")[0] == 404  # An address of nobody's costs nobody anything.


def test_requests_to_a_secret_address_count_for_its_owner(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serve("counter", folder=tmp_path_factory.mktemp("pace"), options=("--rate", "2")) as slow:
        said = ask(slow.port, "POST", "/v1/episodes", body={"environment": "counter"})[2]
        path = "/e/" + json.loads(said)["mcp_url"].partition("/e/")[2]
        answers = [ask(slow.port, "GET", path)[0] for _ in range(8)]
        assert answers[:3] == [405] * 3
        assert 429 in answers
        assert ask(slow.port, "GET", "/list_environments")[0] == 429


def test_messages_that_come_too_fast_wait(tmp_path_factory: pytest.TempPathFactory) -> None:
    from websockets.sync.client import connect

    with (
        serve("counter", folder=tmp_path_factory.mktemp("pace"), options=("--rate", "20")) as slow,
        connect(f"ws://127.0.0.1:{slow.port}/openenv/counter/ws") as socket_,
    ):
        started = time.monotonic()
        for _ in range(60):
            socket_.send(json.dumps({"type": "state"}))
            socket_.recv()
        assert time.monotonic() - started > 0.8  # 60 messages, of which 40 are saved up, at 20 a second


def test_each_has_so_many_episodes(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serve("counter", folder=tmp_path_factory.mktemp("few"), options=("--episodes", "2")) as few:
        made = [
            ask(few.port, "POST", "/create", body={"split": "train", "index": 0}, headers={"X-Session-ID": str(n)})
            for n in range(3)
        ]
        assert [one[0] for one in made] == [200, 200, 429]
        assert int(made[2][1]["retry-after"]) >= 1
