"""A tool that blocks its thread is abandoned: the episode is void in every protocol, and its record is kept."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.harness import Model, Request
from quintain.harnesses import Dialogue
from quintain.record import read_traces
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.episodes.live import Live
from quintain.serve.errors import Void
from quintain.serve.http import limits
from quintain.serve.http.keys import ANYONE
from quintain.trace import Message, Reply, ToolCall
from tests.serve import stuck
from tests.serve.openenv.frames import opened
from tests.serve.operation.raw import ask
from tests.serve.serving import serve

KIND = "quintain:tool_timeout"
HASTY = "import quintain.serve.http.limits as limits\nlimits.GRACE_S = 0.1"


def test_tool_timeout_is_a_failure_in_every_protocol_and_record(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / stuck.PIPE)
    options = ("--out", str(tmp_path / "out"))
    with serve("env", folder=tmp_path, file=Path(stuck.__file__), options=options, before=HASTY) as served:
        at = {"x-session-id": "s"}
        assert ask(served.port, "POST", "/create", body={"split": "train", "index": 0}, headers=at)[0] == 200
        status, _, said = ask(served.port, "POST", "/call", body={"name": "read", "input": {}}, headers=at)
        assert status == 200
        assert KIND.encode() in said, said
        with opened(served.url, "stuck") as wire:
            wire.ask("reset", index=0)
            void = wire.refused("step", tool_name="read", arguments={})
            assert void["metadata"]["dev.quintain/failure"]["kind"] == KIND
        begun = ask(served.port, "POST", "/v1/episodes", body={"environment": "stuck", "index": 0})[2]
        path = f"/v1/episodes/{json.loads(begun)['id']}/calls"
        status, _, said = ask(served.port, "POST", path, body={"name": "read", "arguments": {}})
        assert (status, json.loads(said)["status"]["failure"]["kind"]) == (200, KIND)
        os.close(os.open(tmp_path / stuck.PIPE, os.O_RDWR))  # All that wait for it go on.
    traces = list(read_traces(tmp_path / "out" / "stuck"))
    assert [(one.failure and one.failure.kind, one.criteria) for one in traces] == [(KIND, ("read",))] * 3


GATE = threading.Event()
HOLDS_S = 0.12


class Door(qn.State):
    """World whose tool hangs for some time, or for good."""

    @qn.tool(roles=("agent", "user"))
    def stick(self) -> str:
        """Try it while it is locked."""
        while not GATE.is_set():  # A thread that runs no Python hangs the tracer of coverage in 3.11.
            GATE.wait(0.01)
        return "open"

    @qn.tool(roles=("user",))
    def push(self) -> str:
        """Push it open."""
        time.sleep(HOLDS_S)
        return "open"


class Caller:
    """A simulated user who makes these calls before his first words, and takes his time for all that he says.

    Args:
        calls: Names of tools.
        holds: Whether he holds his thread while he takes it.
    """

    name = "user"

    def __init__(self, *calls: str, holds: bool = False) -> None:
        self.calls = calls
        self.holds = holds

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        return self

    async def __call__(self, request: Request) -> Reply:
        number = sum(message.role == "tool" for message in request.messages)
        if number < len(self.calls):
            return Reply(Message("assistant", calls=(ToolCall("c", self.calls[number], "{}"),)))
        if self.holds:
            time.sleep(5 * HOLDS_S)  # noqa: ASYNC251  # that is what it is about
        else:
            await asyncio.sleep(5 * HOLDS_S)
        return Reply(Message("assistant", "Open it."))


@qn.reward
def opened_it(_: qn.EpisodeView[Door]) -> float:
    return 1.0


DOOR = qn.Environment(
    "door",
    tasks=lambda _split: [qn.Task(id="one", prompt="", start=Door())],
    harness=Dialogue(),
    verifier=qn.Verifier(opened_it),
    state=Door,
    config=qn.Config(tool_timeout_s=2.5 * HOLDS_S),
)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GRACE_S", HOLDS_S)
    GATE.clear()


async def begun(user: Caller) -> tuple[Host, Live]:
    host = Host([DOOR], user=user)
    return host, await host.create(EpisodeSpec(split="test", task=0), ANYONE)


@pytest.mark.parametrize("by", ["agent", "user"])
def test_blocking_tool_is_abandoned_beside_a_simulated_user(hasty: None, by: str) -> None:
    async def play() -> None:
        host, live = await begun(Caller(*(["stick"] if by == "user" else [])))
        async with asyncio.timeout(20):
            await live.ready()
            with pytest.raises(Void):
                await live.call("stick", "{}")
        assert live.trace.failure is not None
        assert (live.trace.failure.component, live.trace.failure.kind) == ("S", KIND)
        assert (live.status, host.executor.abandoned) == ("ended", 1)
        GATE.set()
        host.executor.close()

    asyncio.run(play())


@pytest.mark.parametrize("holds", [False, True])
def test_simulated_user_has_no_limit_and_each_of_its_tools_has_one(hasty: None, holds: bool) -> None:
    async def play() -> None:
        host, live = await begun(Caller(*["push"] * 5, holds=holds))
        assert (await live.answer("Is it open?")).content == "Open it."
        assert (len(live.trace.turns), live.trace.failure, host.executor.abandoned) == (8, None, 0)
        host.executor.close()

    asyncio.run(play())
