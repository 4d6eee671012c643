"""Any message to an episode's address gets the protocol's answer: never a 500, never a traceback."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.serve.mcp.episodes import META
from tests.serve.serving import Served, serve

MODERN = {
    f"{META}protocolVersion": "2026-07-28",
    f"{META}clientInfo": {"name": "fuzz", "version": "1"},
    f"{META}clientCapabilities": {},
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}
METHODS: dict[str, dict[str, Any]] = {
    "tools/call": {"name": "add", "arguments": {"by": 1}},
    "tools/list": {"cursor": None},
    "prompts/get": {"name": "task", "arguments": {}},
    "prompts/list": {},
    "server/discover": {},
    "initialize": HELLO,
    "ping": {},
    "notifications/initialized": {},
    "notifications/cancelled": {"requestId": 1, "reason": "x"},
}
ODD: list[Any] = [None, True, -1, 1.5, 10**400, "", "\ud800", "\x00", "add", [], [[]], {}, {"a": {}}, "[" * 500, "é🜁"]
PIECES = [b'"', b"{", b"}", b"[", b"]", b":", b",", b"null", b"1e999", b"NaN", b"\\ud800", b"\x00", b"\xff", b"\r\n"]
VALUES = ["", "x", "tools/call", "2026-07-28", "2025-11-25", "1999-01-01", "*/*", "text/html", "é", "=?base64?eA==?="]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key in a message."""
    keys: Any = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def spoilt(dice: random.Random, message: Any) -> bytes:
    """A message with something else in some places, or its bytes with something else in some places."""
    message = copy.deepcopy(message)
    for _ in range(dice.randrange(3)):
        where, key = dice.choice(list(places(message)) or [({}, "x")])
        where[key] = copy.deepcopy(dice.choice(ODD))
    data = bytearray(json.dumps(message).encode())
    for _ in range(dice.randrange(3)):
        start = dice.randrange(len(data) + 1)
        data[start : start + dice.randrange(3)] = dice.choice(PIECES)
    return bytes(data)


def headers(dice: random.Random, method: str, *, modern: bool) -> dict[bytes, bytes]:
    version = "2026-07-28" if modern else "2025-11-25"
    said = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    said |= {"mcp-protocol-version": version, **({"mcp-method": method, "mcp-name": "add"} if modern else {})}
    if not dice.randrange(4):
        said[dice.choice([*said, "mcp-session-id", "last-event-id", "mcp-method"])] = dice.choice(VALUES)
    return {name.encode(): value.encode() for name, value in said.items()}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve("counter", folder=tmp_path_factory.mktemp("fuzzed")) as server:
        yield server


@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "stateless"])
def test_fuzzed_messages_are_somebodys_mistake(served: Served, *, modern: bool) -> None:
    dice = random.Random(5)
    with httpx.Client(timeout=30, trust_env=False) as http:
        wish = {"environment": "counter", "split": "train", "index": 4}
        url = http.post(f"{served.url}/v1/episodes", json=wish).raise_for_status().json()["mcp_url"]
        seen = set[int]()
        for number in range(150):
            method = dice.choice(list(METHODS))
            params = {**METHODS[method], **({"_meta": MODERN} if modern else {})}
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            sent = spoilt(dice, message)
            answer = http.post(url, content=sent, headers=headers(dice, method, modern=modern))
            assert answer.status_code < 500, (sent, answer.text)
            assert "Traceback" not in answer.text
            assert 'File "' not in answer.text
            seen.add(answer.status_code)
        assert seen >= {200, 400}
        params = {"name": "submit", "arguments": {"answer": 5}, **({"_meta": MODERN} if modern else {})}
        call = {"jsonrpc": "2.0", "id": "last", "method": "tools/call", "params": params}
        last = {**headers(random.Random(1), "tools/call", modern=modern), b"mcp-name": b"submit"}
        assert "dev.quintain/reward" in http.post(url, json=call, headers=last).text
