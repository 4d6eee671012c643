"""An answer is told when it was sent to a client who was there, and no earlier: by then the call is another one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from quintain.serve.asgi import Event, Request, Scope
from quintain.serve.episodes import undelivered as unheard
from quintain.serve.episodes.host import Host, Wanted
from quintain.serve.keys import ANYONE
from quintain.serve.mcp.http import Address
from tests.serve.environments import counter
from tests.serve.mcp.episodes import Wire
from tests.serve.operation.again import mortal

DYING = """
import os, signal
from pathlib import Path
from quintain.serve.mcp import wire

wish = Path(os.environ["QUINTAIN_TEST_FOLDER"], "wish")
result = wire.result

def dying(answer):
    if wish.exists():
        wish.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return result(answer)

wire.result = dying
"""
"""Of a server that dies, when it is wished, after a call was played and before the SDK has its answer."""


@pytest.mark.slow
def test_a_call_whose_answer_its_server_did_not_live_to_send_is_the_one_that_comes_again(tmp_path: Path) -> None:
    with mortal(tmp_path, "counter", before=DYING) as server:
        begun = json.loads(server.ask("POST", "/v1/episodes", body={"environment": "counter"})[2])
        url = f"http://127.0.0.1:{server.port}{httpx.URL(begun['mcp_url']).path}"

        async def add() -> str:
            async with Wire(url, modern=True) as wire:
                told = await wire.call(1, "add", {})
                return str(told["result"]["content"][0]["text"])

        assert asyncio.run(add()) == "The count is 1."
        server.again()
        assert asyncio.run(add()) == "The count is 2."  # The first one's answer was sent.
        server.wish("")
        with pytest.raises(httpx.HTTPError):
            asyncio.run(add())
        server.start()
        assert [asyncio.run(add()) for _ in range(2)] == ["The count is 3.", "The count is 4."]
        server.again()
        assert asyncio.run(add()) == "The count is 5."


def test_a_client_that_leaves_while_it_is_answered_may_ask_again() -> None:
    body = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "add", "arguments": {}}}
    headers = ((b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream"))

    async def play() -> None:
        host = Host([counter])
        live = await host.create(Wanted(task=0), ANYONE)
        address = Address(1 << 20)

        async def ask(number: int, *, leaves: bool, reads: bool) -> str:
            gone, sent = False, b""
            parts = iter([json.dumps({**body, "id": number}).encode()])

            async def receive() -> Event:
                if (part := next(parts, None)) is not None:
                    return {"type": "http.request", "body": part, "more_body": False}
                if not gone:
                    await asyncio.Event().wait()
                return {"type": "http.disconnect"}

            async def send(event: Event) -> None:
                nonlocal gone, sent
                part = event.get("body", b"")
                gone = leaves and event["type"] == "http.response.body" and not (reads and part)
                sent += b"" if gone else part

            scope: Scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "http_version": "1.1"}
            scope["headers"], scope["client"] = list(headers), ("127.0.0.1", 1)
            await address.handle(Request(scope, receive, send), live)
            return sent.decode()

        for number, (leaves, reads, count) in enumerate(
            ((False, True, 1), (True, False, 0), (False, True, 2), (True, True, 3), (False, True, 4))
        ):
            said = await ask(number, leaves=leaves, reads=reads)
            assert (f"The count is {count}." in said) == reads, said
            waiting = [until for _, _, until in live.asked.values()]
            assert len(waiting) == (not reads), "who has read it may leave before the stream is at its end"
            assert unheard.FOREVER not in waiting
        host.crew.close()

    asyncio.run(play())
