"""What a handshake or a request brings in X-Secrets is read by the episodes of its session alone."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

pytest.importorskip("websockets", reason="pip install 'quintain[serve]'")

from websockets.exceptions import InvalidStatus

from quintain.serve.episodes.secrets import packed
from tests.serve.leaks import places
from tests.serve.openenv.conftest import client_of
from tests.serve.openenv.frames import opened
from tests.serve.openenv.test_rpc import Rpc
from tests.serve.operation.again import mortal
from tests.serve.ors.confiding import named
from tests.serve.ors.test_secrets import ENV
from tests.serve.serving import Served, serve

STEP = {"action": {"tool_name": "read", "arguments": {"of": "KEY"}}}


@pytest.fixture(scope="module")
def confided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("confided")
    with serve("env", folder=folder, file=ENV, options=("--journal", str(folder / "journal"))) as server:
        yield server


@pytest.fixture
def client(confided: Served) -> Iterator[httpx.Client]:
    with client_of(confided, "confiding") as client:
        yield client


def header(value: str) -> dict[str, str]:
    return {"X-Secrets": packed({"KEY": value})}


def begun(client: httpx.Client, headers: dict[str, str]) -> dict[str, str]:
    """The header that names the session of a new episode."""
    answer = client.post("/reset", json={"split": "train"}, headers=headers)
    assert answer.status_code == 200, answer.text
    return {"X-Session-ID": answer.headers["x-session-id"]}


def read(client: httpx.Client, headers: dict[str, str]) -> str:
    answer = client.post("/step", json=STEP, headers=headers)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["observation"]["result"])


def test_a_socket_brings_them_for_all_its_episodes(confided: Served) -> None:
    value = f"sk-{uuid.uuid4().hex}"
    with (
        opened(confided.url, "confiding", headers=header(value)) as wire,
        opened(confided.url, "confiding") as other,
    ):
        for _ in range(2):
            for one, expected in ((wire, named(value)), (other, "none")):
                one.ask("reset", split="train")
                assert one.read("read", of="KEY") == expected
        told = wire.refused("step", type="call_tool", tool_name="tell", arguments={"of": "KEY"})
        assert told["metadata"]["dev.quintain/failure"]["part"] == "S"
        assert value not in str(told)
        assert not places(confided, value)


def test_a_request_brings_them_for_its_session(confided: Served, client: httpx.Client) -> None:
    value, other = f"sk-{uuid.uuid4().hex}", f"sk-{uuid.uuid4().hex}"
    session = begun(client, header(value))
    assert read(client, session) == named(value)
    begun(client, session)
    assert read(client, session) == named(value)  # It is the session that has them, as a socket's has.
    begun(client, session | header(other))
    assert read(client, session) == named(other)
    assert read(client, begun(client, {})) == "none"
    assert not [*places(confided, value), *places(confided, other)]


def test_json_rpc_brings_them_too(confided: Served, client: httpx.Client) -> None:
    rpc = Rpc(client)
    client.headers.update(header("one"))
    session = rpc.create()
    assert rpc.call(session, "read", of="KEY")["result"] == named("one")
    assert rpc.call(rpc.create(split="train"), "read", of="KEY")["result"] == named("one")
    with opened(confided.url, "confiding", session=session, headers=header("two")) as wire:
        wire.ask("reset", split="train")
        assert wire.read("read", of="KEY") == named("two")


def test_unreadable_secrets_are_refused_without_their_values(confided: Served, client: httpx.Client) -> None:
    for sent, status in (("sk-0123456789", 400), (packed({"KEY": "x" * 20_000}), 400)):
        answers = [client.post("/reset", json={}, headers={"X-Secrets": sent})]
        with pytest.raises(InvalidStatus) as refusal, opened(confided.url, "confiding", headers={"X-Secrets": sent}):
            pass
        assert refusal.value.response.status_code == status
        assert [one.status_code for one in answers] == [400]
        ask = {"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"}
        answers.append(client.post("/mcp", json=ask, headers={"X-Secrets": sent}))
        assert answers[-1].json()["error"]["code"] == -32600
        said = [*(one.text for one in answers), str(refusal.value.response)]
        assert all("ecrets" in one for one in said[:2]), said
        assert not [one for one in said if "0123456789" in one or "x" * 20 in one]


@pytest.mark.slow
def test_secrets_are_lost_on_restart_and_may_be_sent_again(tmp_path: Path) -> None:
    with mortal(tmp_path, f"{ENV}:env") as server:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}/openenv/confiding") as client:
            session = begun(client, header("one"))
        server.again()
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}/openenv/confiding") as client:
            lost = client.post("/step", json=STEP, headers=session)
            assert lost.json()["metadata"]["dev.quintain/failure"]["kind"] == "session_lost", lost.text
        server.again()
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}/openenv/confiding") as client:
            begun(client, session)  # The session had one, and its next episode must not find that there was none.
            lost = client.post("/step", json=STEP, headers=session)
            assert lost.json()["metadata"]["dev.quintain/failure"]["kind"] == "session_lost", lost.text
            begun(client, session | header("one"))
            assert read(client, session) == named("one")
