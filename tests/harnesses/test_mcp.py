"""Tools of MCP servers, held by a harness: a real server answers, refuses, ends and lacks what was promised."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.harnesses import AgentLoop
from quintain.harnesses.mcp import Mcp
from quintain.models.scripted import Scripted
from tests.audit.subjects.serving import serving

pytest.importorskip("mcp")

SERVER = Path(__file__).parents[1] / "audit" / "subjects" / "mcp_server.py"
NOTES = {"notes": f"stdio:{sys.executable} {SERVER}"}
CHANGING = {"notes": f"stdio:{sys.executable} {Path(__file__).with_name('changing_server.py')}"}


@pytest.fixture(scope="module")
def notes() -> Generator[str]:
    """URL of the server in a thread, which need not import the SDK anew."""
    from tests.audit.subjects import mcp_server

    with serving(mcp_server.server.streamable_http_app()) as url:
        yield f"{url}/mcp"


class Empty(qn.State):
    pass


@qn.reward
def answered(view: qn.EpisodeView[Empty]) -> float:
    return 1.0


def play(tools: Mcp, *calls: tuple[str, dict[str, Any]], **config: Any) -> tuple[qn.Trace, list[str]]:
    """Returns the trace and what the agent read after each call."""
    env = qn.Environment(
        "empty",
        tasks=lambda split: [qn.Task(id="t", prompt="Go.", start=Empty())],
        harness=AgentLoop(tools=[tools]),
        verifier=qn.Verifier(answered),
        state=Empty,
        config=qn.Config().override(config),
    )
    trace = asyncio.run(qn.rollout(env, env.tasks("train")[0], Scripted.calls(calls))).trace
    return trace, [one.text for turn in trace.turns for one in turn.added if one.role == "tool"]


def use(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "mcp", {"server": "notes", "name": name, "arguments": arguments}


def test_an_agent_lists_and_calls_tools_in_one_session() -> None:
    trace, seen = play(
        Mcp(servers=NOTES), ("mcp_list", {"server": "notes"}), use("add", one=2, two=3), *[use("words")] * 2
    )
    assert trace.score == 1.0, trace.failure
    offered = json.loads(seen[0])
    assert {"add", "count", "words"} <= {one["name"] for one in offered["tools"]}
    assert json.loads(seen[1]) == {"sum": 5}
    assert seen[2] == "a\nb"


def test_a_wrong_call_is_an_observation(notes: str) -> None:
    trace, seen = play(
        Mcp(servers={"notes": notes}, only={"notes": ["add"]}),
        use("words"), use("add", one="x"), ("mcp", {"server": "x", "name": "add", "arguments": {}}),
    )  # fmt: skip
    assert trace.score == 1.0, trace.failure
    assert seen[0] == "error: notes has no tool 'words'; it has add"
    assert seen[1].startswith("error:")
    assert seen[2] == "no server is named 'x'; known: notes"


UNREACHABLE = ("cannot be reached", "transport_unreachable")


@pytest.mark.parametrize(
    ("where", "call", "expected"),
    [
        (NOTES["notes"], use("leave"), ("did not answer", "session_lost")),
        pytest.param(NOTES["notes"] + " --broken", use("add", one=1), UNREACHABLE, marks=pytest.mark.slow),
        ("stdio:no-such-command", use("add", one=1), UNREACHABLE),
        ("http://127.0.0.1:9/mcp", use("add", one=1), UNREACHABLE),
    ],
)
def test_a_broken_server_is_a_failure_of_the_harness(
    where: str, call: tuple[str, dict[str, Any]], expected: tuple[str, str]
) -> None:
    trace, _ = play(Mcp(servers={"notes": where}), call)
    words, kind = expected
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("H", kind)
    assert words in trace.failure.message


def test_a_server_without_a_chosen_tool_is_a_failure_of_the_harness(notes: str) -> None:
    trace, _ = play(Mcp(servers={"notes": notes}, only={"notes": ["subtract"]}), use("add", one=1))
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("H", "session_lost")
    assert "has no tool 'subtract'" in trace.failure.message


def test_resource_is_listed_and_read() -> None:
    trace, seen = play(
        Mcp(servers=CHANGING), ("mcp_list", {"server": "notes"}),
        *[("mcp_read", {"server": "notes", "uri": uri}) for uri in ("notes://today", "notes://x")],
    )  # fmt: skip
    assert trace.score == 1.0, trace.failure
    assert [one["uri"] for one in json.loads(seen[0])["resources"]] == ["notes://today"]
    assert seen[1] == "buy milk"
    assert seen[2].startswith("error: ")


def test_tool_that_changes_its_arguments_is_an_error_that_the_agent_reads() -> None:
    trace, seen = play(
        Mcp(servers=CHANGING), use("add", one=2, two=3), use("change"), use("add", one=2, two=3),
        use("add", numbers=[2, 3]),
    )  # fmt: skip
    assert trace.score == 1.0, trace.failure
    assert (seen[0], seen[1], seen[3]) == ("5", "changed", "5")
    assert seen[2].startswith("error: ")


def test_tool_that_a_server_takes_away_is_a_failure_of_the_harness() -> None:
    trace, seen = play(Mcp(servers=CHANGING), use("lose"), use("add", one=2, two=3))
    assert seen == ["lost"]
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("H", "session_lost")
    assert trace.failure.message == "the MCP server 'notes' took its tool 'add' away"


@pytest.mark.slow
def test_late_server_is_a_failure_of_the_harness() -> None:
    trace, _ = play(Mcp(servers=CHANGING), use("sleep"), tool_timeout_s=10.0)
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("H", "transport_timeout")
    assert "the MCP server 'notes' did not answer" in trace.failure.message


def test_tools_of_an_unknown_server_are_refused() -> None:
    with pytest.raises(qn.DefinitionError, match="tools are chosen of 'x'; the servers are notes"):
        Mcp(servers=NOTES, only={"x": ["add"]})
