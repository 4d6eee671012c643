"""kill -9, and sessions that go on in the next server."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("httpx", reason="pip install 'quintain[http]'")
pytest.importorskip("websockets", reason="pip install 'quintain[serve]'")

import httpx

from tests.serve.openenv.frames import opened
from tests.serve.operation.again import mortal

pytestmark = pytest.mark.slow

STEP = {"action": {"tool_name": "add", "arguments": {"by": 1}}}


def test_sessions_go_on_where_they_were(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter") as server:
        url = f"http://127.0.0.1:{server.port}"
        with httpx.Client(base_url=f"{url}/openenv/counter", timeout=30) as client:
            session = client.post("/reset", json={"split": "train", "index": 2}).headers["x-session-id"]
            mine = {"X-Session-ID": session}
            once = client.post("/step", json={**STEP, "request_id": "r"}, headers=mine).json()
        with opened(url, "counter") as lost:
            lost.ask("reset")
            server.again()
        with httpx.Client(base_url=f"{url}/openenv/counter", timeout=30) as client:
            assert client.get("/state", headers=mine).json()["step_count"] == 1
            assert client.post("/step", json={**STEP, "request_id": "r"}, headers=mine).json() == once
            assert client.post("/step", json=STEP, headers=mine).json()["observation"]["result"] == "The count is 2."
            call = {"name": "add", "session_id": session}
            ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            assert client.post("/mcp", json=ask).json()["result"]["result"] == "The count is 3."
            assert client.get("/state", headers=mine).json()["step_count"] == 3
        server.again()
        with opened(url, "counter", session=session) as wire:
            assert wire.call("submit", answer=3)["reward"] == 1.0
            assert wire.ask("state")["step_count"] == 4
        server.again()
        with opened(url, "counter", session=session) as wire:
            assert wire.ask("state")["done"]
            assert "ended" in wire.refused("step", tool_name="add")["message"]
            wire.ask("reset", split="train", index=0)
            assert wire.read("peek") == "0"
        # A socket's own episode ends with it: over the next one nothing was begun.
        with opened(url, "counter") as wire:
            assert "reset" in wire.refused("step", tool_name="add")["message"]
