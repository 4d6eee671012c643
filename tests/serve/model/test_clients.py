"""The official SDKs, and agent programs as their authors publish them, each in an environment of its own."""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.harness import Request
from quintain.replay import replay
from quintain.serve.model import CommandHarness
from quintain.trace import Reply, Trace
from tests.serve.clients.venvs import Venv
from tests.serve.mcp.node import WITH_NODE, installed
from tests.serve.model.bell import drawn, env, says

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).with_name("programs")
SDKS = ("openai==3.54.0", "anthropic==2.12.0", "mcp==2.3.0", "openai-agents==0.24.0", "llm==0.36")
MINI = ("mini-swe-agent==2.4.6", "litellm==1.106.2", "mcp==2.3.0")
"""mini-swe-agent, and what this LiteLLM forgets to bring."""
NPM = ("@openai/codex@0.169.0", "@anthropic-ai/claude-code@2.1.197")


@pytest.fixture(scope="session")
def pypi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs from PyPI."""
    return venv(tmp_path_factory, SDKS)


@pytest.fixture(scope="session")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that brings more than all others together."""
    return venv(tmp_path_factory, MINI) / "mini"


def venv(factory: pytest.TempPathFactory, packages: tuple[str, ...]) -> Path:
    kept = os.environ.get("QUINTAIN_VENVS")
    return Venv(Path(kept) if kept else factory.mktemp("venvs"), (packages,)).python.parent


@pytest.fixture(scope="session")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs from npm."""
    return installed(tmp_path_factory.mktemp("npm"), *NPM, scripts=True) / ".bin"


class Ringer:
    """Thinks and rings, then rings twice in one reply, then says so; under whatever name the program has for it.

    Its tokens continue from turn to turn if the program's context does.
    """

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> Reply:
        self.asked.append(request)
        ring = next((tool.name for tool in request.tools if tool.name.endswith("ring")), None)
        if ring is None:
            return says("A title.")
        turn = sum(message.role == "assistant" for message in request.messages)
        reply = [
            says("Let me see.", (ring, '{ "times": 1}'), thoughts="Hm."),
            says("", (ring, {"times": 2}), (ring, {"times": 3})),
            says("It rang."),
        ][turn]
        return drawn(reply, list(range(2 * turn + 1)), [2 * turn + 1])


def play(command: str, model: Any, **options: Any) -> Trace:
    task = env.tasks("test")[0]
    chosen = env.replace(harness=CommandHarness(command, own=env.harness, **options))

    async def both() -> Trace:
        trace = (await qn.rollout(chosen, task, model)).trace
        assert (await replay(chosen, task, trace)).to_bytes() == trace.to_bytes()
        return trace

    trace = asyncio.run(both())
    assert trace.failure is None, trace.failure
    return trace


def rang(trace: Trace) -> list[list[str]]:
    return [[str(step.observation) for step in turn.steps] for turn in trace.turns]


@pytest.mark.parametrize("how", ["whole", "stream"])
@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_the_official_sdks(pypi: Path, api: str, how: str) -> None:
    trace = play(shlex.join([str(pypi / "python"), str(PROGRAMS / "official.py"), api, how]), Ringer())
    assert rang(trace) == [["ding 1"], ["ding 3", "ding 6"], []]
    assert (trace.reason, {turn.branch for turn in trace.turns}) == ("the agent answered", {0})
    tokens = [turn.reply.tokens for turn in trace.turns if turn.reply.tokens]
    assert [(one.prompt, one.completion) for one in tokens] == [([0], [1]), ([2], [3]), ([4], [5])]
    assert [turn.reply.policy_version for turn in trace.turns] == [7, 7, 7]


@pytest.mark.parametrize("api", ["chat_completions", "responses"])
def test_the_agents_sdk(pypi: Path, api: str) -> None:
    command = [str(pypi / "python"), str(PROGRAMS / "agents_sdk.py"), api, "{system}", "{prompt}"]
    trace = play(shlex.join(command), Ringer())
    assert rang(trace) == [["ding 1"], ["ding 3", "ding 6"], []]
    assert [message.text for message in trace.turns[0].added] == ["You are a ringer.", "Ring the bell once."]


def test_a_program_without_tools(pypi: Path) -> None:
    model = Ringer()
    trace = play(f"{pypi / 'llm'} -m gpt-4o-mini -s {{system}} {{prompt}}", model)
    assert rang(trace) == [["ding 1"], ["ding 3", "ding 6"], []]
    assert len(model.asked) == 3


def test_a_program_with_a_shell(mini: Path) -> None:
    """The shell's output is in the messages, and the bell rings in the episode."""
    replies = iter(
        [
            says("First.", ("ring", {})),
            says("Look.", ("bash", {"command": "echo one two | wc -w"})),
            says("Submit.", ("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"})),
        ]
    )

    async def model(request: Request) -> Reply:
        return next(replies)

    settings = "MSWEA_CONFIGURED=1 MSWEA_COST_TRACKING=ignore_errors"
    options = "-t {prompt} -m openai/any -y --exit-immediately -o {given}/out.json"
    trace = play(f"env {settings} {mini} {options}", model, tools=("bash",))
    assert rang(trace) == [["ding 1"], [], []]
    assert (trace.score, trace.reason) == (1.0, "the program ended")
    assert '"output": "2\\n"' in trace.turns[2].added[0].text


def test_claude_code(npm: Path) -> None:
    model = Ringer()
    options = "--mcp-config {mcp_config} --strict-mcp-config --allowedTools mcp__quintain"
    trace = play(
        f"{shlex.join(WITH_NODE)} {npm / 'claude'} -p {{prompt}} --append-system-prompt {{system}} {options}", model
    )
    assert [steps for steps in rang(trace) if steps] == [["ding 1"], ["ding 3", "ding 6"]]
    assert (trace.reason, trace.turns[-1].reply.message.text) == ("the agent answered", "It rang.")
    offered = {tool.name for request in model.asked for tool in request.tools}
    assert offered == {f"mcp__quintain__{tool.name}" for tool in env.tools.values()}, "and nothing of its own"


def test_codex_plays_an_episode(npm: Path) -> None:
    model = Ringer()
    trace = play(f"{shlex.join(WITH_NODE)} sh {PROGRAMS / 'codex.sh'} {npm / 'codex'} {{prompt}}", model)
    assert [steps for steps in rang(trace) if steps] == [["ding 1"], ["ding 3", "ding 6"]]
    offered = {tool.name for request in model.asked for tool in request.tools}
    assert offered == {f"mcp__quintain__{tool.name}" for tool in env.tools.values()}, "and nothing of its own"
