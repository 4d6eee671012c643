"""A disk that is really full: what cannot be written down is refused before it is done, and nothing else is lost."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.serve.openenv.frames import opened
from tests.serve.operation.again import Mortal, mortal
from tests.serve.operation.test_recovery import output

SIZE = 6 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own, where the journal will be."""
    folder = tmp_path / "journal"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    done = subprocess.run(mount, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Take all that is left."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4096))
    assert os.statvfs(disk).f_bavail == 0
    return ballast


def turns(server: Mortal) -> int:
    return len(json.loads(server.trace("s"))["trace"]["turns"])


def full(server: Mortal, session: str = "s") -> int:
    """Call until even the smallest call is refused; how many were not."""
    made = 0
    for size in (300_000, 30_000, 3_000, 0):
        body = {"name": "nothing", "arguments": {"text": "x" * size}}
        while (answer := server.ask("POST", f"/v1/episodes/{session}/calls", body=body))[0] == 200:
            made += 1
            assert made < 200
        status, headers, said = answer
        assert (status, headers["retry-after"]) == (503, "5")
        assert b"No space left" in said
    return made


@pytest.mark.slow
def test_calls_on_a_full_disk_are_refused_and_the_others_kept(tmp_path: Path, disk: Path) -> None:
    with mortal(tmp_path, "counter") as server:
        server.create("s", index=4)
        assert output(server.call("s", "add", by=1)) == "The count is 1."
        ballast = fill(disk)
        made = full(server)
        server.ask("POST", "/create", "last", body={"split": "train", "index": 0})  # It may still fit.
        assert server.ask("POST", "/create", "t", body={"split": "train", "index": 0})[0] == 503
        assert server.ask("POST", "/v1/episodes", body={})[0] == 503
        assert server.ask("POST", "/ping", "t")[0] == 404
        assert server.ask("POST", "/call", "s", body={"name": "add", "input": {"by": 1}})[0] == 503
        assert turns(server) == 1 + made
        before = server.trace("s")
        server.again()  # While the disk is full.
        assert server.trace("s") == before
        assert server.ask("POST", "/call", "s", body={"name": "add", "input": {"by": 1}})[0] == 503
        ballast.unlink()
        assert output(server.call("s", "add", by=1)) == "The count is 2."
        server.create("t")
        server.again()
        assert output(server.call("s", "submit", answer=5)) == "Handed in."
        assert turns(server) == 3 + made
        assert output(server.call("t", "add", by=3)) == "The count is 3."


@pytest.mark.slow
def test_full_disk_is_an_error_on_an_openenv_socket(tmp_path: Path, disk: Path) -> None:
    with mortal(tmp_path, "counter") as server, opened(f"http://127.0.0.1:{server.port}", "counter") as wire:
        episode = wire.ask("reset", split="train", index=0)["metadata"]["dev.quintain/episode"]
        ballast = fill(disk)
        full(server, episode)
        answer: dict[str, Any] = {"type": ""}
        while answer["type"] != "error":  # A few may still fit.
            wire.send("step", tool_name="echo", arguments={"text": "x" * 300_000})
            answer = wire.receive()
        refused = answer["data"]
        assert (refused["code"], refused["retry_after_s"]) == ("EXECUTION_ERROR", 5)
        assert "No space left" in refused["message"]
        assert "max_sessions" not in refused  # It is not that there were too many.
        ballast.unlink()
        assert wire.read("add", by=1) == "The count is 1."


@pytest.mark.slow
def test_full_disk_is_an_error_over_mcp(tmp_path: Path, disk: Path) -> None:
    async def add(url: str) -> str:
        async with Client(url) as client:
            try:
                return str((await client.call_tool("add", {"by": 1})).content[0].text)  # type: ignore[union-attr]
            except MCPError as error:
                return str(error)

    with mortal(tmp_path, "counter") as server:
        episode = json.loads(server.ask("POST", "/v1/episodes", body={})[2])
        ballast = fill(disk)
        full(server, episode["id"])
        refusal = "the journal cannot be written: No space left on device"
        count = 0
        while (said := asyncio.run(add(episode["mcp_url"]))) != refusal:  # A few may still fit.
            count += 1
            assert said == f"The count is {count}."
        server.again()
        assert asyncio.run(add(episode["mcp_url"])) == refusal
        ballast.unlink()
        assert asyncio.run(add(episode["mcp_url"])) == f"The count is {count + 1}."
