"""Real clients whose server is killed at every turn and started again: their episodes go on as if nothing had been."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

import quintain as qn
from quintain import plugins
from quintain.models import Scripted
from tests.serve.clients.venvs import OPENENV, OPENREWARD, ORS, Venv
from tests.serve.operation.again import DYING, Mortal, mortal
from tests.serve.serving import ENVIRONMENTS

pytestmark = pytest.mark.slow

Install = Callable[[Sequence[Sequence[str]]], Venv]
MOMENTS = (
    "after Created",
    "before Acted",
    "after Acted",
    "before Done",
    "after Done",
    "before Settled",
    "after Settled",
)


class Fate:
    """Has a server die at one moment after the other, and somebody start it again.

    Attributes:
        died: At which moments it did.
    """

    def __init__(self, server: Mortal, moments: Sequence[str]) -> None:
        self.server = server
        self.died: list[str] = []
        self._moments = list(moments)
        self._over = threading.Event()

    def run(self) -> None:
        for moment in self._moments:
            self.server.wish(moment)
            while self.server.wishes:
                if self._over.wait(0.01):
                    (self.server.folder / "wish").unlink(missing_ok=True)
                    return
            self.server.start()
            self.died.append(moment)

    def end(self) -> None:
        self._over.set()


@contextlib.contextmanager
def fatal(server: Mortal, moments: Sequence[str]) -> Generator[Fate]:
    fate = Fate(server, moments)
    thread = threading.Thread(target=fate.run)
    thread.start()
    try:
        yield fate
    finally:
        fate.end()
        thread.join()


@pytest.mark.parametrize(("steps", "sdk"), [(ORS, "ors"), (OPENREWARD, "openreward")])
def test_ors_clients_go_on_through_kills_by_their_own_retries(
    installed: Install, tmp_path: Path, steps: Sequence[Sequence[str]], sdk: str
) -> None:
    venv = installed(steps)
    with mortal(tmp_path, "counter", before=DYING) as server, fatal(server, MOMENTS) as fate:
        seen = venv.facts("killed.py", sdk, f"http://127.0.0.1:{server.port}")
    assert seen["added"] == [f"The count is {number}." for number in range(1, 6)]
    assert (seen["last"]["reward"], seen["last"]["finished"]) == (1.0, True)
    assert fate.died == list(MOMENTS)


def test_a_session_of_openenv_goes_on(installed: Install, tmp_path: Path) -> None:
    with mortal(tmp_path, "counter", before=DYING) as server, fatal(server, MOMENTS) as fate:
        url = f"http://127.0.0.1:{server.port}"
        seen = installed(OPENENV).facts("killed_openenv.py", url, "session")["session"]
    assert seen == {"steps": 6, "scores": [1.0]}
    assert fate.died == list(MOMENTS)


def test_openenv_socket_gets_an_error_when_its_episode_is_gone(installed: Install, tmp_path: Path) -> None:
    with mortal(tmp_path, "counter", before=DYING) as server, fatal(server, MOMENTS[1:5]) as fate:
        url = f"http://127.0.0.1:{server.port}"
        seen = installed(OPENENV).facts("killed_openenv.py", url, "socket")["socket"]
    assert seen["reward"] == 1.0
    assert len(seen["refusals"]) == len(fate.died) == 4
    assert all("reset begins one" in words for words in seen["refusals"])


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_mcp_agent_repeats_calls_under_their_keys(
    tmp_path: Path, mode: Literal["legacy", "auto", "2026-07-28"]
) -> None:
    numbers = itertools.count()

    async def call(url: str, tool: str, **given: object) -> Any:
        key = {"Idempotency-Key": str(next(numbers))}
        for _ in range(100):
            with contextlib.suppress(Exception):  # A connection that broke looks like anything.
                async with (
                    create_mcp_http_client(headers=key) as http,
                    Client(streamable_http_client(url, http_client=http), mode=mode) as client,
                ):
                    return await client.call_tool(tool, given)
            await asyncio.sleep(0.05)
        raise AssertionError("it never worked")

    async def play(url: str) -> tuple[list[str], Any]:
        said = [(await call(url, "add", by=1)).content[0].text for _ in range(5)]
        return said, await call(url, "submit", answer=5)

    moments = ("before Acted", "after Acted", "before Done", "before Settled")
    with mortal(tmp_path, "counter", before=DYING) as server:
        body = {"environment": "counter", "split": "train", "index": 4}
        url = json.loads(server.ask("POST", "/v1/episodes", body=body)[2])["mcp_url"].replace("localhost", "127.0.0.1")
        with fatal(server, moments) as fate:
            said, last = asyncio.run(play(url))
    assert said == [f"The count is {number}." for number in range(1, 6)]
    assert last.meta["dev.quintain/reward"] == 1.0
    assert fate.died == list(moments)


@pytest.mark.parametrize("harness", ["there", "here"])
def test_our_own_client_does_not_even_notice(tmp_path: Path, harness: str) -> None:
    names: dict[str, Any] = {"seed": 3, "split": "train", "agent": "x"}
    local = plugins.environment(f"{ENVIRONMENTS}:counter")
    solution = Scripted.calls([("add", {"by": 1})] * 5 + [("submit", {"answer": 5})])

    async def play(url: str) -> bytes:
        async with qn.connect(url) as far:
            remote = await far.environment("counter")
            remote = remote.replace(harness=local.harness) if harness == "here" else remote
            task = await asyncio.to_thread(remote.task, "train", "train-5")
            return (await qn.rollout(remote, task, solution, **names)).trace.to_json()

    with mortal(tmp_path, "counter", before=DYING) as server, fatal(server, MOMENTS) as fate:
        found = asyncio.run(play(f"http://127.0.0.1:{server.port}"))
    solution = Scripted.calls([("add", {"by": 1})] * 5 + [("submit", {"answer": 5})])
    expected = asyncio.run(qn.rollout(local, local.task("train", "train-5"), solution, **names)).trace
    assert expected.score == 1.0
    assert found == expected.to_json()
    assert fate.died == list(MOMENTS)
