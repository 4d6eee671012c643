"""The episode's tools over MCP, as a program may call them and none should."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.serve.mcp.episodes import Wire, parsed
from tests.serve.model.bell import Model, says, talking


@pytest.mark.parametrize("odd", ['"\\ud800"', "NaN", "1e999", "[" * 900 + "]" * 900])
def test_odd_arguments_are_the_programs_mistake_and_break_nothing(odd: str) -> None:
    async def play() -> None:
        async with talking(Model(says("Hello.")), listed=True) as talk:
            url = str(talk.client.base_url).replace("/m/", "/e/") + "mcp"
            wire = Wire(url, modern=True)
            asked = json.dumps(wire.request(1, "tools/call", name="ring", arguments={"times": 0}))
            body = asked.replace('"times": 0', f'"times": {odd}')
            answer = await talk.client.post(url, content=body, headers=wire.headers(name="ring"))
            assert parsed(answer)["result"]["isError"]
            assert (await talk.act("ring"))["content"][0]["text"] == "ding 1"
            trace = await talk.end()
        assert trace.failure is None

    asyncio.run(play())


def test_pictures_reach_the_program() -> None:
    async def play() -> None:
        async with talking(Model(says("", ("look", {}))), listed=True) as talk:
            await talk.chat({"role": "user", "content": "Look."}, tools=["look"])
            (block,) = (await talk.act("look"))["content"]
            assert (block["type"], block["mimeType"]) == ("image", "image/png")
            await talk.end()

    asyncio.run(play())
