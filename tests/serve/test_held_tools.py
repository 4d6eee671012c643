"""Tools that a harness holds, over the protocols of a server, and beside an agent program."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

import quintain as qn
from quintain.errors import UsageError
from quintain.models import Cast, Scripted
from quintain.serve.model import CommandHarness
from quintain.trace import Message, Reply
from tests.serve.held import env
from tests.serve.openenv.frames import Wire
from tests.serve.ors.wire import Ors, result, text
from tests.serve.serving import Served, serve, until

mcp = pytest.importorskip("mcp")

ADD = ("mcp", {"server": "notes", "name": "add", "arguments": {"one": 2, "two": 3}})
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("note", {"text": "a"}), ("open", {}), ADD, ADD, ("notes_read", {}), ("ask_user", {"question": "Why?"}),
]  # fmt: skip
RESULTS = ["note 1 kept", "opened", '{\n  "sum": 5\n}', '{\n  "sum": 5\n}', "1. a", "the user said nothing"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    file = Path(__file__).with_name("held.py")
    with serve("env", folder=tmp_path_factory.mktemp("held"), file=file, options=("--user", "noop")) as served:
        yield served


def children(server: Served) -> list[str]:
    """Returns the processes of MCP servers that the server has started."""
    found = [path.read_text() for path in Path(f"/proc/{server.process.pid}/task").glob("*/children")]
    return " ".join(found).split()


def test_held_tools_work_at_the_server_as_they_do_here(server: Served) -> None:
    async def traces() -> list[qn.Trace]:
        found = []
        async with qn.connect(server.url) as connected:
            both: list[qn.Environment[Any]] = [env, await connected.environment("held")]
            for one in both:
                agent = Scripted.calls([*CALLS, ("answer", {"text": "done"})])
                cast = Cast(agent=agent, user=Scripted([Reply(Message("assistant"))]))
                found.append((await qn.rollout(one, one.tasks("test")[0], cast)).trace)
        return found

    for trace in asyncio.run(traces()):
        assert (trace.score, trace.reason) == (1.0, "the agent answered"), trace.failure
        read = [one.text for turn in trace.turns for one in turn.added if one.role == "tool"]
        assert read == [text for text in RESULTS if text != "opened"]
    until(lambda: not children(server))


def test_held_tools_are_listed_and_called_over_mcp(server: Served) -> None:
    async def play(url: str) -> list[str]:
        async with mcp.Client(url, mode="legacy") as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            assert {"open", "note", "mcp", "ask_user", "answer", "final_answer"} <= listed
            read = [(await client.call_tool(name, arguments)).content[0].text for name, arguments in CALLS]
            ended = await client.call_tool("answer", {"text": "done"})
            assert ended.meta["dev.quintain/reward"] == 1.0
            return read

    opened = httpx.post(f"{server.url}/v1/episodes", json={"environment": "held"}, timeout=60).json()
    assert asyncio.run(play(opened["mcp_url"])) == RESULTS
    until(lambda: not children(server))


def test_held_tools_are_listed_and_called_over_ors(server: Served) -> None:
    client = Ors(server.url)
    with client.http:
        assert {"note", "mcp", "final_answer"} <= {one["name"] for one in client.get("/held/tools").json()["tools"]}
        sid = client.open("held")
        calls = [*CALLS, ("answer", {"text": "done"})]
        done = [
            result(client.post("/held/call", {"name": name, "input": arguments}, sid).content)
            for name, arguments in calls
        ]
    assert [text(one) for one in done[:-1]] == RESULTS
    assert done[-1]["output"]["reward"] == 1.0
    until(lambda: not children(server))


def test_held_tools_are_listed_and_called_over_openenv(server: Served) -> None:
    url = f"{server.url.replace('http', 'ws')}/openenv/held/ws"
    with connect(url) as connection:
        wire = Wire(connection)
        wire.ask("reset")
        listed = wire.ask("step", type="list_tools")["observation"]["tools"]
        assert {"note", "mcp", "final_answer"} <= {one["name"] for one in listed}
        assert [wire.read(name, **arguments) for name, arguments in CALLS] == RESULTS
        assert wire.call("answer", text="done")["reward"] == 1.0
    until(lambda: not children(server))


def test_session_with_an_mcp_server_ends_with_an_episode_that_is_closed(server: Served) -> None:
    path = f"{server.url}/v1/episodes"
    opened = httpx.post(path, json={"environment": "held"}, timeout=60).json()
    answer = httpx.post(f"{path}/{opened['id']}/calls", json={"name": "mcp", "arguments": ADD[1]}, timeout=60)
    assert answer.json()["observation"] == RESULTS[2]
    assert children(server)
    httpx.delete(f"{path}/{opened['id']}")
    until(lambda: not children(server))


def test_program_beside_a_harness_that_holds_tools_is_refused() -> None:
    words = (
        "the environment's harness AgentLoop holds todo_write, .*, answer, .* outside of the world, and "
        "the program 'agent' calls tools of the world alone: hold them in the state, or replace the harness"
    )
    with pytest.raises(UsageError, match=words):
        CommandHarness("agent --fast", own=env.harness)
    CommandHarness("agent --fast", own=qn.ToolLoop())
