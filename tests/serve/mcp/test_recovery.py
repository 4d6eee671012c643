"""A call whose server was killed is known to the next one by its Idempotency-Key."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from tests.serve.mcp.episodes import Wire, until
from tests.serve.operation.again import mortal

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "stateless"])
def test_call_with_a_key_is_one_call_when_its_server_is_killed(*, modern: bool, tmp_path: Path) -> None:
    with mortal(tmp_path, "gated") as server:
        body = {"environment": "gated", "split": "train", "index": 0}
        status, _, said = server.ask("POST", "/v1/episodes", body=body)
        assert status == 201
        url = json.loads(said)["mcp_url"].replace("localhost", "127.0.0.1")
        url = f"http://127.0.0.1:{server.port}{httpx.URL(url).path}"

        async def play() -> None:
            async with Wire(url, modern=modern) as wire:
                wire.http.headers["idempotency-key"] = "first"
                asking = asyncio.create_task(wire.call(1, "hold", {"gate": "g"}))
                await until(lambda: server.gates.entered("g"))
                server.kill()
                with pytest.raises(httpx.HTTPError):
                    await asking
            server.gates.open("g")
            server.start()
            async with Wire(url, modern=modern) as wire:
                wire.http.headers["idempotency-key"] = "first"
                told = [await wire.call(1, "hold", {"gate": "g"})]
                wire.http.headers["idempotency-key"] = "second"
                told.append(await wire.call(2, "mark", {"label": "m"}))
            assert [one["result"]["content"][0]["text"] for one in told] == ["Through g.", "Marked 2."]

        asyncio.run(play())
