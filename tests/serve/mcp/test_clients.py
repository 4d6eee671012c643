"""Clients that others wrote, each as it is published: an older Python SDK, the TypeScript Inspector, and the official
conformance scenarios. They are installed anew, so all of this is slow.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.trace import Image
from tests.serve.clients.venvs import Venv
from tests.serve.environments import counter
from tests.serve.mcp.episodes import served
from tests.serve.mcp.node import NODE, installed, said
from tests.serve.serving import ENVIRONMENTS, environment

pytestmark = pytest.mark.slow

OLDER = (("mcp==1.30.0",),)
PACKAGES = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/inspector@2.12.0")
RELEASED = "@modelcontextprotocol/conformance@0.1.16"
"""The scenarios that npm calls its latest; those above are newer, and know the stateless era."""

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has nothing but an older SDK."""
    kept = os.environ.get("QUINTAIN_VENVS")
    return Venv(Path(kept) if kept else tmp_path_factory.mktemp("venvs"), OLDER).python


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs in TypeScript."""
    return installed(tmp_path_factory.mktemp("node"), *PACKAGES)


# --- an older Python SDK ---

DRIVER = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

async def play(read, write):
    async with ClientSession(read, write) as session:
        hello = await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        prompt = (await session.get_prompt("task")).messages[-1].content.text
        first = await session.call_tool("add", {"by": 5})
        last = await session.call_tool("submit", {"answer": 5})
        return {
            "version": hello.protocolVersion,
            "instructions": hello.instructions,
            "tools": tools,
            "prompt": prompt,
            "first": first.content[0].text,
            "meta": last.meta,
            "structured": last.structuredContent,
        }

async def main(kind, *words):
    if kind == "http":
        async with streamable_http_client(*words) as (read, write, _):
            return await play(read, write)
    async with stdio_client(StdioServerParameters(command=words[0], args=list(words[1:]))) as (read, write):
        return await play(read, write)

print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
"""


def check_older(told: dict[str, Any]) -> None:
    assert told["version"] == "2025-11-25"
    assert told["instructions"] == "Be exact.\n\nCount to 5, then submit it."
    assert told["prompt"] == "Count to 5, then submit it."
    assert told["tools"] == [*counter.tools, "answer"]
    assert told["first"] == "The count is 5."
    assert told["structured"] is None
    assert told["meta"]["dev.quintain/reward"] == 1.0
    assert told["meta"]["dev.quintain/finished"] is True


def test_an_older_python_sdk_plays_over_http(older: Path) -> None:
    async def play() -> str:
        async with served(counter) as here:
            _, url = await here.open("train-5")
            return await said(older, "-c", DRIVER, "http", url)

    check_older(json.loads(asyncio.run(play())))


def test_an_older_python_sdk_plays_over_stdio(older: Path) -> None:
    serve = [sys.executable, "-m", "quintain", "serve", f"{ENVIRONMENTS}:counter", "--stdio", "--split", "train"]
    check_older(json.loads(asyncio.run(said(older, "-c", DRIVER, "stdio", *serve, "--task", "4"))))


# --- the Inspector ---


def test_the_inspector_plays_over_http_a_call_a_process(packages: Path) -> None:
    async def inspect(url: str, *options: str) -> dict[str, Any]:
        program = packages / ".bin" / "mcp-inspector"
        printed = await said(NODE, program, "--cli", url, "--transport", "http", *options)
        answer: dict[str, Any] = json.loads(printed)
        return answer

    async def play() -> None:
        async with served(counter) as here:
            _, url = await here.open("train-5")
            listed = await inspect(url, "--method", "tools/list")
            assert [tool["name"] for tool in listed["tools"]] == [*counter.tools, "answer"]
            assert listed["tools"][0]["inputSchema"] == counter.tools["add"].parameters
            call = ("--method", "tools/call", "--tool-name")
            for count in (2, 4):
                told = await inspect(url, *call, "add", "--tool-arg", "by=2")
                assert told["content"] == [{"type": "text", "text": f"The count is {count}."}]
            prompt = await inspect(url, "--method", "prompts/get", "--prompt-name", "task")
            assert prompt["messages"][-1]["content"]["text"] == "Count to 5, then submit it."
            told = await inspect(url, *call, "submit", "--tool-arg", "answer=5")
            assert told["_meta"]["dev.quintain/reward"] == 1.0

    asyncio.run(play())


def test_the_inspector_starts_an_episode_of_its_own_over_stdio(packages: Path, tmp_path: Path) -> None:
    serve = [sys.executable, "-m", "quintain", "serve", f"{ENVIRONMENTS}:counter", "--stdio"]
    program = [str(NODE), str(packages / ".bin" / "mcp-inspector"), "--cli"]
    call = ["--method", "tools/call", "--tool-name", "submit", "--tool-arg", "answer=1", "--transport", "stdio"]
    done = subprocess.run(
        [*program, *serve, *call], capture_output=True, text=True, env=environment(tmp_path), check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["_meta"]["dev.quintain/reward"] == 1.0


# --- the official conformance scenarios ---


class Exhibit(qn.State):
    """The tools that the scenarios ask for, as far as a world can have them."""

    @qn.tool
    def test_simple_text(self) -> str:
        """Say a text."""
        return "This is a simple text response for testing."

    @qn.tool
    def test_image_content(self) -> Image:
        """Show a picture."""
        return Image("image/png", PNG)

    @qn.tool
    def test_error_handling(self) -> str:
        """Refuse."""
        raise qn.ToolError("This tool intentionally returns an error for testing")


@qn.reward
def visited(outcome: qn.EpisodeView[Exhibit]) -> float:
    return 1.0


def exhibits(split: str) -> list[qn.Task[Exhibit]]:
    return [qn.Task(id="all", prompt="Look around.", start=Exhibit())]


exhibition = qn.Environment(
    "exhibition",
    tasks=exhibits,
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(visited),
    state=Exhibit,
    config=qn.Config(max_turns=1000),
)

NOT_OURS = {
    "logging-.*": "an episode sends no log to its agent",
    "completion-.*": "nothing is to be completed: the prompt has no arguments",
    "tools-call-(audio|embedded-resource|mixed-content)": "worlds answer with texts and pictures",
    "tools-call-with-(logging|progress)": "a tool is a method of a world, which knows nothing of its caller",
    "tools-call-(sampling|elicitation)|elicitation-.*|input-required-.*": "no tool asks its caller for anything",
    "json-schema-2020-12": "schemas are made of a method's types; the scenario wants one written by hand",
    "server-sse-polling": "without sessions there is no stream to come back to; a lost answer is asked for again",
    "resources-.*": "an episode has no resources",
    "prompts-get-.*": "an episode has one prompt, of another name than the scenarios want",
    "http-custom-header-.*": "no tool wants arguments repeated in headers",
    "tasks-.*": "calls are answered, not queued",
}
"""Scenarios that ask for what an episode does not have, and why."""

NOT_HERE = {
    "caching": {"sep-2549-resources-list-caching-hints", "sep-2549-resources-templates-list-caching-hints"},
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability",  # Of a tool that asks its caller.
        "sep-2575-missing-capability-http-400",
    },
}
"""Checks for the same in scenarios that are otherwise ours."""

OURS = {
    "caching",
    "dns-rebinding-protection",
    "http-header-validation",
    "ping",
    "prompts-list",
    "server-initialize",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "server-stateless",
    "tools-call-error",
    "tools-call-image",
    "tools-call-simple-text",
    "tools-list",
}
"""Scenarios that were really played; some of those that pass beside them find nothing to look at."""

NEWER = {"caching", "http-header-validation", "server-session-lifecycle", "server-stateless"}
"""Those of them that the released ones do not have yet."""


def scenarios(packages: Path, folder: Path) -> dict[str, set[str]]:
    """Which checks of each scenario fail."""

    async def play() -> None:
        program = packages / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
        async with served(exhibition) as here:
            _, url = await here.open()
            await said(NODE, program, "server", "--url", url, "--suite", "all", "-o", folder, status=1)

    asyncio.run(play())
    failed: dict[str, set[str]] = {}
    for file in folder.glob("*/checks.json"):
        name = re.sub(r"server-(.*)-\d{4}-\d\d-\d\dT.*", r"\1", file.parent.name)
        failed[name] = {check["id"] for check in json.loads(file.read_text()) if check["status"] == "FAILURE"}
    for name, checks in failed.items():
        if checks != NOT_HERE.get(name, set()):
            assert name not in OURS, (name, checks)
            assert any(re.fullmatch(pattern, name) for pattern in NOT_OURS), (name, checks)
    return failed


def test_the_released_scenarios_pass(tmp_path: Path) -> None:
    failed = scenarios(installed(tmp_path, RELEASED), tmp_path / "results")
    assert failed.keys() >= OURS - NEWER


def test_the_newest_scenarios_pass(packages: Path, tmp_path: Path) -> None:
    failed = scenarios(packages, tmp_path)
    assert failed.keys() >= OURS
    for pattern in NOT_OURS:
        assert any(checks and re.fullmatch(pattern, name) for name, checks in failed.items()), f"{pattern} is stale"
