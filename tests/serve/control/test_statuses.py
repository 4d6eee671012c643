"""The document lists each status that is really sent, in the form in which it is sent."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import quintain as qn
from quintain.serve.episodes.host import Host
from quintain.serve.errors import Unavailable
from quintain.serve.http.app import build
from quintain.serve.http.auth import NoAuth
from quintain.serve.http.limits import Limits
from quintain.serve.journal.database import Journal
from tests.serve.serving import Served

jsonschema = pytest.importorskip("jsonschema", reason="comes with mcp")


class Sealed:
    """What cannot be written down."""

    def fork(self) -> Sealed:
        return self

    def dump(self) -> bytes:
        raise RuntimeError("it is sealed")

    def digest(self) -> str:
        return "sealed"

    @classmethod
    def load(cls, _data: bytes) -> Sealed:
        return cls()


class Box(qn.State):
    """World with a resource that cannot be dumped."""

    sealed: Sealed


@qn.reward(low=-5)
def lost(_: qn.EpisodeView[Box]) -> float:
    return -3.0


ENV = qn.Environment(
    "box",
    tasks=lambda _split: [qn.Task(id="one", prompt="Leave it alone.", start=Box(sealed=Sealed()))],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(lost),
    state=Box,
)


def asked(host: Host, ask: Callable[[httpx.AsyncClient], Coroutine[Any, Any, Any]]) -> Any:
    """What comes of requests to a host of this process."""

    async def play() -> Any:
        transport = httpx.ASGITransport(app=build(host, NoAuth()))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            try:
                return await ask(http)
            finally:
                host.executor.close()

    return asyncio.run(play())


def documented(document: dict[str, Any], answer: httpx.Response, path: str) -> None:
    """Nothing, if the document says that this may be the answer."""
    operation = document["paths"][path][answer.request.method.lower()]
    content = operation["responses"][str(answer.status_code)]["content"]
    schema = content[answer.headers["content-type"]]["schema"]
    jsonschema.Draft202012Validator({**document, **schema}).validate(answer.json())


def test_each_status_that_is_sent_is_in_the_document() -> None:
    host = Host([ENV], limits=Limits(body_bytes=100))

    async def ask(http: httpx.AsyncClient) -> list[tuple[int, str, httpx.Response]]:
        one = "/v1/episodes/{id}"
        path = one.format(id=(await http.post("/v1/episodes", json={})).json()["id"])
        named = {"Idempotency-Key": "one"}
        found = [
            (422, "/healthz", await http.get("/healthz?why=not")),
            (422, "/v1/environments", await http.get("/v1/environments?all=1")),
            (413, f"{one}/fork", await http.post(f"{path}/fork", content=bytes(200), headers=named)),
            (403, "/healthz", await http.get("/healthz", headers={"Host": "elsewhere.example"})),
            (403, one, await http.get(path, headers={"Origin": "https://elsewhere.example"})),
            (500, f"{one}/snapshot", await http.post(f"{path}/snapshot")),
        ]
        host.draining = True
        found.append((503, "/readyz", await http.get("/readyz")))
        document = (await http.get("/v1/openapi.json")).json()
        for _, there, answer in found:
            documented(document, answer, there)
        return found

    for status, path, answer in asked(host, ask):
        assert answer.status_code == status, path
        assert answer.headers["content-type"] == "application/problem+json", path


def test_a_request_that_cannot_be_read_is_refused_as_documented(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as line:
        line.sendall(b"GET /healthz nonsense\r\n\r\n")
        head, _, body = line.makefile("rb").read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    document = httpx.get(f"{served.url}/v1/openapi.json").json()
    content = document["paths"]["/healthz"]["get"]["responses"]["400"]["content"]
    assert content["text/plain"]["schema"] == {"type": "string"}
    assert body


def test_a_server_whose_journal_cannot_be_written_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path)

    def full(_journal: Journal, _size: int) -> None:
        raise Unavailable("the journal cannot be written: No space left on device")

    async def ask(http: httpx.AsyncClient) -> list[int]:
        found = [(await http.get("/readyz")).status_code]
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "room", full)
            found += [(await http.get(path)).status_code for path in ("/readyz", "/healthz")]
        return [*found, (await http.get("/readyz")).status_code]

    assert asked(Host([ENV], log=journal), ask) == [200, 503, 200, 200]
    journal.close()


def test_a_sum_that_may_fall_is_no_counter() -> None:
    async def ask(http: httpx.AsyncClient) -> str:
        episode = (await http.post("/v1/episodes", json={})).json()
        path = f"/v1/episodes/{episode['id']}/answer"
        assert (await http.post(path, json={"text": "Done."})).json()["reward"] == -3
        return (await http.get("/metrics")).text

    families = list(text_string_to_metric_families(asked(Host([ENV]), ask)))
    assert len(families) >= 10
    assert {one.type for one in families} == {"gauge", "counter"}
    assert all(sample.value >= 0 for one in families for sample in one.samples if one.type == "counter")
    assert [one.samples[0].value for one in families if one.name == "quintain_scores"] == [-3]


def test_a_server_that_has_lost_many_threads_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(http: httpx.AsyncClient) -> list[tuple[int, str]]:
        found = [await http.get("/readyz")]
        monkeypatch.setattr(type(host.executor), "abandoned", property(lambda _: 1000))
        found.append(await http.get("/readyz"))
        return [(answer.status_code, answer.text) for answer in found]

    host = Host([ENV])
    (ready, _), (exhausted, words) = asked(host, ask)
    assert (ready, exhausted) == (200, 503)
    assert "1000 threads hang in tools" in words
