"""Data of observations, and a task's own tools, over every protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import mcp_types as types
import pytest
from mcp import Client

import quintain as qn
from quintain.serve import secret
from quintain.serve.episodes.host import Host
from quintain.serve.http.app import build
from quintain.serve.http.auth import NoAuth
from quintain.trace import Observation
from tests.audit.subjects.serving import serving
from tests.serve.mcp.episodes import served
from tests.serve.openenv.frames import opened
from tests.serve.ors.wire import PREFIX, Ors

KEY = "dev.quintain/"
EVERY = ["search", "open_vault", "burn", "answer"]
FOUND = {"rows": [{"id": 7}], "truncated": False}


class Library(qn.State):
    """A catalogue."""

    @qn.tool
    def search(self, word: str) -> Observation:
        """Search the catalogue.

        Args:
            word: What to look for.
        """
        return Observation(f"1 book about {word}", FOUND)

    @qn.tool
    def open_vault(self) -> Observation:
        """Open the vault."""
        return Observation("It is open.", {"with": [secret("KEY")]})

    @qn.tool
    def burn(self) -> str:
        """Burn the catalogue."""
        return "Burnt."


@qn.reward
def fine(outcome: qn.EpisodeView[Library]) -> float:
    return 1.0


def tasks(split: str) -> list[qn.Task[Library]]:
    return [
        qn.Task(id="read", prompt="Find a book.", start=Library(), tools=("search",)),
        qn.Task(id="all", prompt="Do what you like.", start=Library()),
        qn.Task(id="wrong", prompt="Borrow a book.", start=Library(), tools=("search", "borrow")),
    ]


library = qn.Environment("library", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(fine), state=Library)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    host = Host([library])
    with serving(build(host, NoAuth())) as url:
        yield url
    host.executor.close()


def test_mcp_has_the_data_as_structured_content_and_lists_the_tools_of_the_task() -> None:
    async def play() -> None:
        async with served(library) as here:
            live, address = await here.open("read")
            async with Client(address) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "answer"]
                found = await client.call_tool("search", {"word": "owls"})
                assert found.structured_content == FOUND
                assert found.content == [types.TextContent(text="1 book about owls")]
                refused = await client.call_tool("burn", {})
                assert refused.is_error
                assert "no tool 'burn'" in str(refused.content)
                assert refused.structured_content is None
            assert [step.data for turn in live.trace.turns for step in turn.steps] == [FOUND, {}]

    asyncio.run(play())


def test_ors_has_the_data_as_metadata_and_lists_the_tools_of_the_task(url: str) -> None:
    ors = Ors(url)
    with ors.http:
        assert names(ors.get("/library/tools").json()["tools"]) == EVERY
        sid = ors.open("library", split="train", index=0)
        assert names(ors.get("/library/task_tools", sid).json()["tools"]) == ["search", "answer"]
        found = ors.call(sid, "search", env="library", word="owls")["output"]
        assert {name: value for name, value in found["metadata"].items() if not name.startswith(PREFIX)} == FOUND
        assert [block["text"] for block in found["blocks"]] == ["1 book about owls"]
        assert ors.call(sid, "burn", env="library")["reason"] == "not_found"


def test_openenv_has_the_data_as_metadata_and_lists_the_tools_of_the_task(url: str) -> None:
    with opened(url, "library") as wire:
        assert names(wire.ask("step", type="list_tools")["observation"]["tools"]) == [
            "search",
            "open_vault",
            "burn",
            "answer",
        ]
        wire.ask("reset", split="train", index=0)
        assert names(wire.ask("step", type="list_tools")["observation"]["tools"]) == ["search", "answer"]
        found = wire.call("search", word="owls")
        for metadata in (found["metadata"], found["observation"]["metadata"]):
            assert {name: value for name, value in metadata.items() if not name.startswith(KEY)} == FOUND
        assert found["observation"]["result"] == "1 book about owls"
        assert wire.call("burn")["observation"]["error"]["error_type"] == "tool_not_found"
    with httpx.Client(base_url=f"{url}/openenv/library") as client:
        session = rpc(client, "openenv/session/create", split="train", task="read")["session_id"]
        assert names(rpc(client, "tools/list", session_id=session)["tools"]) == ["search", "answer"]
        assert names(rpc(client, "tools/list")["tools"]) == EVERY


def test_the_control_plane_has_the_data_in_steps_and_the_tools_of_the_task_in_questions(url: str) -> None:
    with httpx.Client(base_url=url) as api:
        episode = api.post("/v1/episodes", json={"environment": "library", "split": "train", "index": 0}).json()
        assert episode["question"]["tools"] == ["search"]
        calls = f"/v1/episodes/{episode['id']}/calls"
        (turn,) = api.post(calls, json={"name": "search", "arguments": {"word": "owls"}}).json()["turns"]
        assert turn["steps"][0]["data"] == FOUND
        refused = api.post(calls, json={"name": "burn", "arguments": {}}).json()
        assert refused["is_error"]
        assert refused["observation"].endswith("no tool 'burn'")
        assert "data" not in refused["turns"][0]["steps"][0]


def test_an_unknown_tool_of_a_task_is_named_when_its_episode_begins(url: str) -> None:
    with httpx.Client(base_url=url) as api:
        answer = api.post("/v1/episodes", json={"environment": "library", "split": "train", "index": 2})
        assert "task 'wrong' offers ['borrow']; library has only search, open_vault, burn" in answer.text


def test_a_secret_in_the_data_ends_the_episode_as_a_failure(url: str) -> None:
    with httpx.Client(base_url=url) as api:
        begun = {"environment": "library", "split": "train", "index": 1, "secrets": {"KEY": "swordfish-42"}}
        episode = api.post("/v1/episodes", json=begun).json()
        answer = api.post(f"/v1/episodes/{episode['id']}/calls", json={"name": "open_vault", "arguments": {}})
        standing = api.get(f"/v1/episodes/{episode['id']}")
        assert standing.json()["failure"]["kind"] == "quintain:tool_bug"
        assert "swordfish-42" not in answer.text + standing.text


def names(tools: list[dict[str, Any]]) -> list[str]:
    return [tool["name"] for tool in tools]


def rpc(client: httpx.Client, method: str, **params: Any) -> Any:
    return client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).json()["result"]
