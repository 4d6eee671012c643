"""Unusual requests to an episode's address, word by word over a raw connection."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from quintain.serve.http.keys import ANYONE
from quintain.serve.http.limits import Limits
from tests.serve.environments import Gates, counter, gated
from tests.serve.mcp.episodes import Wire, parsed, served, until

PREFIX = "dev.quintain/"
eras = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "stateless"])


@eras
def test_a_call_that_has_a_name_is_one_call_whatever_brings_it(*, modern: bool) -> None:
    async def play() -> None:
        async with served(counter) as here:
            live, url = await here.open("train-5")
            for name, count in (("a", 1), ("a", 1), ("b", 2), ("a", 1), ("", 3)):
                async with Wire(url, modern=modern) as wire:
                    wire.http.headers["idempotency-key"] = name
                    told = await wire.call(1, "add")
                    assert told["result"]["content"][0]["text"] == f"The count is {count}."
            assert len(live.trace.turns) == 3

    asyncio.run(play())


@eras
@pytest.mark.parametrize("tool", ["hold", "hold_awaiting"])
def test_call_whose_client_left_goes_on_and_is_answered_by_its_key(
    tool: str, *, modern: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUINTAIN_TEST_FOLDER", str(tmp_path))

    async def play() -> None:
        async with served(gated) as here:
            live, url = await here.open("at once")
            key = {"idempotency-key": "first"}
            async with Wire(url, modern=modern) as wire:
                wire.http.headers.update(key)
                waiting = asyncio.create_task(wire.call(1, tool, {"gate": "a"}))
                await until(lambda: Gates().entered("a"))
                waiting.cancel()
            async with Wire(url, modern=modern) as wire:
                wire.http.headers.update(key)
                again = asyncio.create_task(wire.call(1, tool, {"gate": "a"}))
                Gates().open("a")
                result = (await again)["result"]
                assert result["content"][0]["text"] == "Through a."
                assert Gates().entered("a") == 1
                assert len(live.trace.turns) == 1
                del wire.http.headers["idempotency-key"]
                await wire.call(1, tool, {"gate": "a"})  # Without a key it is another call.
            assert Gates().entered("a") == 2

    asyncio.run(play())


# --- what clients may not do ---


@eras
def test_no_client_can_end_an_episode_by_leaving(*, modern: bool) -> None:
    async def play() -> None:
        async with served(counter) as here:
            live, url = await here.open("train-5")
            async with Wire(url, modern=modern) as wire:
                for method in ("DELETE", "GET", "PUT"):
                    answer = await wire.http.request(method, url, headers=wire.headers())
                    assert answer.status_code == 405
                    assert answer.headers["allow"] == "POST"
                assert "result" in await wire.call(1, "add")
            assert live.status == "open"

    asyncio.run(play())


def test_an_address_that_is_not_there_looks_the_same_whatever_was_there() -> None:
    async def play() -> None:
        async with served(counter) as here:
            live, url = await here.open("train-1")
            await here.host.close(live.id, ANYONE)
            async with httpx.AsyncClient() as client:
                answers = [
                    await client.request(method, where, content=b"{")
                    for where in (url, here.url("x" * 32), here.url("%2e%2e"), f"{url}/more", url.removesuffix("/mcp"))
                    for method in ("POST", "GET", "DELETE")
                ]
            assert {(one.status_code, one.text) for one in answers} == {(404, answers[0].text)}

    asyncio.run(play())


@eras
def test_a_page_of_another_site_is_kept_out(*, modern: bool) -> None:
    async def play() -> None:
        async with served(counter) as here:
            live, url = await here.open("train-1")
            async with Wire(url, modern=modern) as wire:
                asked = wire.request(1, "tools/call", name="add", arguments={})
                for foreign in (
                    {"host": "evil.example.com"},
                    {"host": f"evil.example.com:{here.port}"},
                    {"origin": "http://evil.example.com"},
                    {"origin": "null"},
                ):
                    headers = {**wire.headers(name="add"), **foreign}
                    assert (await wire.http.post(url, json=asked, headers=headers)).status_code == 403
                headers = {**wire.headers(name="add"), "origin": f"http://127.0.0.1:{here.port}"}
                assert "result" in parsed(await wire.http.post(url, json=asked, headers=headers))
            assert len(live.trace.turns) == 1

    asyncio.run(play())


DEEP = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"by":' + b"[" * 9000
MALFORMED: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", -32700),
    "half": (b'{"jsonrpc": "2.0", "id": 1', -32700),
    "no UTF-8": (b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}', -32700),
    "deep": (DEEP, -32700),
    "deep and whole": (DEEP + b"]" * 9000 + b"}}}", -32700),
}


@eras
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_json_is_a_parse_error(name: str, *, modern: bool) -> None:
    async def play() -> None:
        async with served(counter) as here:
            _, url = await here.open("train-1")
            async with Wire(url, modern=modern) as wire:
                body, code = MALFORMED[name]
                answer = await wire.http.post(url, content=body, headers=wire.headers(name="add"))
                assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)

    asyncio.run(play())


ODD: list[Any] = [
    [],
    [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
    1,
    None,
    {},
    {"id": 1, "method": "tools/call"},
    {"jsonrpc": "1.0", "id": 1, "method": "tools/call"},
    {"jsonrpc": "2.0", "id": None, "method": "tools/call"},
    {"jsonrpc": "2.0", "id": [1], "method": "tools/call"},
    {"jsonrpc": "2.0", "id": 1, "method": 7},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 7}},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": "by"}},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "_meta": 3}},
    {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "file:///etc/passwd"}},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/cull", "params": {}},
    {"jsonrpc": "2.0", "id": 1, "result": {}},
]


@eras
def test_odd_messages_get_the_protocols_errors_and_move_nothing(*, modern: bool) -> None:
    async def play() -> None:
        async with served(counter) as here:
            live, url = await here.open("train-1")
            async with Wire(url, modern=modern) as wire:
                envelope = wire.request(1, "x")["params"]
                for bare in ODD:
                    odd = bare
                    if isinstance(bare, dict) and isinstance(bare.get("params"), dict):
                        odd = {**bare, "params": {**envelope, **bare["params"]}}
                    method = odd.get("method") if isinstance(odd, dict) else "tools/call"
                    headers = wire.headers(str(method), name="add")
                    answer = await wire.http.post(url, json=odd, headers=headers)
                    assert answer.status_code < 500, odd
                    if answer.status_code != 202:  # A posted answer is nobody's, and ignored.
                        assert parsed(answer)["error"]["code"] <= -32000, odd
                assert not live.trace.turns
                assert "result" in await wire.call(1, "add")

    asyncio.run(play())


@eras
def test_odd_arguments_are_the_models_mistake(*, modern: bool) -> None:
    async def play() -> None:
        async with served(counter) as here:
            _, url = await here.open("train-1")
            async with Wire(url, modern=modern) as wire:
                for odd in (b"NaN", b"1e999", b"-" + b"9" * 4000, b'"\\ud800"', b'{"a": 1}', b"[" * 90 + b"]" * 90):
                    asked = wire.request(1, "tools/call", name="add", arguments={"by": 0})
                    body = httpx.Request("POST", url, json=asked).content.replace(b'"by":0', b'"by":' + odd)
                    answer = await wire.http.post(url, content=body, headers=wire.headers(name="add"))
                    assert answer.status_code in (200, 400), odd
                    said = parsed(answer)
                    assert said["result"]["isError"] if answer.status_code == 200 else said["error"], odd

    asyncio.run(play())


@eras
def test_long_or_unacceptable_requests_are_refused(*, modern: bool) -> None:
    async def play() -> None:
        async with served(counter, limits=Limits(body_bytes=10_000)) as here:
            live, url = await here.open("train-1")
            async with Wire(url, modern=modern) as wire:
                headers = wire.headers(name="echo")
                asked = wire.request(1, "tools/call", name="echo", arguments={"text": "x" * 10_000})
                assert (await wire.http.post(url, json=asked, headers=headers)).status_code == 413
                asked = wire.request(1, "tools/call", name="echo", arguments={"text": "x"})
                for name, value, status in (
                    ("accept", "text/html", 406),
                    ("accept", "", 406),
                    ("content-type", "text/plain", 400),
                    ("mcp-protocol-version", "1999-01-01", 400),
                ):
                    answer = await wire.http.post(url, json=asked, headers={**headers, name: value})
                    assert answer.status_code == status, (name, value)
            assert not live.trace.turns

    asyncio.run(play())
