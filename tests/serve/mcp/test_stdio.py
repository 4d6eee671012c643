"""`quintain serve ENV --stdio`: a process is an episode."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters

from quintain import plugins
from quintain.record import read_traces
from quintain.replay import replay
from tests.serve.environments import Gates
from tests.serve.forks import Fork
from tests.serve.mcp.episodes import MODES
from tests.serve.serving import ENVIRONMENTS, environment, serve

SECONDS = 60

NOISY = '''
import os
import quintain as qn

print("imported")


class Loud(qn.State):
    """Somebody who talks to the wrong people."""

    @qn.tool
    def shout(self) -> str:
        """Shout."""
        print("printed")
        os.write(1, b"written")
        os.system("echo spawned")
        return "quiet"


@qn.reward
def one(outcome: qn.EpisodeView[Loud]) -> float:
    return 1.0


def built() -> Loud:
    print("built")
    return Loud()


env = qn.Environment(
    "loud",
    tasks=lambda split: [qn.Task(id="a", prompt="Shout.", start=built)],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(one),
    state=Loud,
)
'''


def command(target: str | Path, *options: str) -> list[str]:
    return ["-m", "quintain", "serve", str(target), "--stdio", *options]


def server(folder: Path, target: str | Path, *options: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=command(target, *options), env=environment(folder))


def run(folder: Path, *options: str, said: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options],
        input=said,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(folder),
        check=False,
    )


def line(key: int | str, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": key, "method": method, "params": params}) + "\n"


HELLO = line(
    0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "hand", "version": "1"}
)


def add(key: int | str) -> str:
    return line(key, "tools/call", name="add", arguments={"by": 1})


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES[:2])  # The third is what the second finds out by asking.
def test_an_episode_is_played_scored_and_kept(mode: str, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    here = server(
        tmp_path,
        f"{ENVIRONMENTS}:counter",
        "--split",
        "train",
        "--task",
        "train-4",
        "--trace",
        str(file),
        "--seed",
        "9",
    )

    async def play() -> types.CallToolResult:
        async with Client(here, mode=mode) as client:
            await client.call_tool("add", {"by": 4})
            return await client.call_tool("submit", {"answer": 4})

    last = asyncio.run(play())
    assert last.meta
    assert last.meta["dev.quintain/reward"] == 1.0
    (trace,) = read_traces(file)
    assert (trace.task, trace.seed, trace.score) == ("train-4", 9, 1.0)
    counter = plugins.environment(f"{ENVIRONMENTS}:counter")
    again = asyncio.run(replay(counter, counter.task("train", "train-4"), trace))
    assert again.to_bytes() == trace.to_bytes()


def test_client_that_closes_stdin_has_a_score_only_after_a_call(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    for place, said in (("0", HELLO), ("1", HELLO + add(1))):
        with conversation(tmp_path, f"{ENVIRONMENTS}:counter", "--task", place, "--trace", str(file)) as process:
            process.stdin.write(said)
            process.stdin.close()
            assert process.wait(SECONDS) == 0, (tmp_path / "stderr").read_text()
            assert json.loads(process.stdout.readline())["result"]["instructions"].startswith("Be exact.")
    traces = list(read_traces(file))
    assert [(one.task, one.score, one.validity, one.reason) for one in traces] == [
        ("test-1", None, "invalid", "transport_peer_drop"),
        ("test-2", 0.0, "valid", "the agent left"),
    ]
    assert traces[0].failure is not None
    assert (traces[0].failure.component, traces[0].failure.message) == ("C", "the client left before it made a call")


@pytest.mark.slow
def test_stdout_is_the_protocols_alone(tmp_path: Path) -> None:
    file = tmp_path / "loud.py"
    file.write_text(NOISY)

    async def play() -> types.CallToolResult:
        async with Client(server(tmp_path, f"{file}:env")) as client:
            return await client.call_tool("shout", {})

    (block,) = asyncio.run(play()).content
    assert isinstance(block, types.TextContent)
    assert block.text == "quiet"
    done = run(tmp_path, *command(f"{file}:env"), said=HELLO)
    assert len(done.stdout.splitlines()) == 1
    assert "imported" in done.stderr
    assert "built" in done.stderr


@contextlib.contextmanager
def conversation(folder: Path, target: str, *options: str) -> Generator[Fork]:
    """A server whose error stream is a file; the SDK alone takes a second and a half to import."""
    with (folder / "stderr").open("w") as errors:
        process = Fork(
            ["serve", target, "--stdio", *options],
            env=environment(folder), cwd=folder, stderr=errors, modules=["quintain.serve.mcp.stdio"],
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


WRONG: list[tuple[str, int, Any]] = [
    ("no JSON", -32700, None),
    ("[" + add(5).strip() + "]", -32600, None),
    ('{"jsonrpc": "1.0", "id": 6, "method": "ping"}', -32600, 6),
    ('{"jsonrpc": "2.0", "id": "7", "method": "tools/call", "params": []}', -32600, "7"),
    (line(8, "tools/call", name="echo", arguments={"text": "\ud800"}).strip(), -32700, 8),
    (line(9, "tools/cull").strip(), -32601, 9),
    ('{"jsonrpc": "2.0", "id": true, "method": "ping", "params": 1}', -32600, None),
]


def test_a_line_that_is_no_message_is_answered(tmp_path: Path) -> None:
    """Nobody waits for ever, not even for an answer to half a surrogate pair, which JavaScript sends as it is."""
    with conversation(tmp_path, f"{ENVIRONMENTS}:counter") as process:
        process.stdin.write(f"nothing yet\n\n \n{HELLO}")
        assert json.loads(process.stdout.readline())["error"]["code"] == -32700
        assert "result" in json.loads(process.stdout.readline())
        for said, code, key in WRONG:
            process.stdin.write(f"{said}\r\n")
            answer = json.loads(process.stdout.readline())
            assert (answer["error"]["code"], answer["id"]) == (code, key), said
        process.stdin.write(add(10))
        assert "result" in json.loads(process.stdout.readline())
        process.stdin.close()
        assert process.wait(SECONDS) == 0


def test_client_that_is_killed_has_no_score_and_leaves_no_noise(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    options = ("--trace", str(file), "--task", "at once", "--split", "train")
    with conversation(tmp_path, f"{ENVIRONMENTS}:gated", *options) as process:
        process.stdin.write(HELLO)
        process.stdout.readline()
        process.stdin.write(line(1, "tools/call", name="hold", arguments={"gate": "a"}))
        Gates(tmp_path).await_entry("a")
        process.stdout.close()
        process.stdin.close()
        Gates(tmp_path).open("a")
        assert process.wait(SECONDS) == 0
        (said,) = (tmp_path / "stderr").read_text().splitlines()
        assert "the client is gone" in said
    (trace,) = read_traces(file)
    assert (trace.validity, trace.reason, len(trace.turns)) == ("invalid", "transport_peer_drop", 1)


def test_a_repeated_id_is_one_call_and_a_signal_ends_the_episode_in_order(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    with conversation(tmp_path, f"{ENVIRONMENTS}:counter", "--trace", str(file)) as process:
        process.stdin.write(HELLO)
        process.stdout.readline()
        said = []
        for key in (1, 1, 2, "1"):
            process.stdin.write(add(key))
            said.append(json.loads(process.stdout.readline())["result"]["content"][0]["text"])
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    assert said == ["The count is 1.", "The count is 1.", "The count is 2.", "The count is 3."]
    (trace,) = read_traces(file)
    assert (trace.reason, len(trace.turns)) == ("the agent left", 3)


def test_a_call_that_runs_when_the_agent_leaves_is_in_the_record(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    options = ("--trace", str(file), "--task", "at once", "--split", "train")
    with conversation(tmp_path, f"{ENVIRONMENTS}:gated", *options) as process:
        process.stdin.write(HELLO)
        process.stdout.readline()
        process.stdin.write(line(1, "tools/call", name="hold", arguments={"gate": "a"}))
        gates = Gates(tmp_path)
        gates.await_entry("a")
        process.stdin.close()
        gates.open("a")
        assert process.wait(SECONDS) == 0
    (trace,) = read_traces(file)
    assert trace.validity == "valid"
    assert trace.turns[0].steps[0].observation == "Through a."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((f"{ENVIRONMENTS}:counter", "--stdio", "--task", "7"), "7"),
        ((f"{ENVIRONMENTS}:counter", f"{ENVIRONMENTS}:words", "--stdio"), "one environment"),
        ((f"{ENVIRONMENTS}:counter", "--stdio", "--trace", "nowhere/at/all"), "nowhere"),
        ((f"{ENVIRONMENTS}:rough", "--stdio", "--task", "broken", "--split", "train"), "cannot be built"),
        ((f"{ENVIRONMENTS}:counter", "--task", "0"), "--stdio"),
    ],
)
def test_stdio_server_refuses_at_once_what_it_cannot_serve(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    done = run(tmp_path, "-m", "quintain", "serve", *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert not done.stdout
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.jsonl"))


def test_an_sdk_that_is_too_old_is_told_and_all_else_is_served(tmp_path: Path) -> None:
    """As when `openenv` was installed beside the server, which wants mcp 1."""
    about = tmp_path / "mcp-1.30.0.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text("Metadata-Version: 2.1\nName: mcp\nVersion: 1.30.0\n")
    before = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    start = ("-c", f"{before}\nfrom quintain.cli import main\nmain()")
    done = run(tmp_path, *start, "serve", f"{ENVIRONMENTS}:counter", "--stdio")
    assert done.returncode == 2
    assert "mcp 2 or newer, and here is mcp 1.30.0" in done.stderr
    assert "Traceback" not in done.stderr
    with serve("counter", folder=tmp_path, before=before) as served:
        answer = httpx.post(f"{served.url}/e/x/mcp", json={})
        assert (answer.status_code, "here is mcp 1.30.0" in answer.json()["detail"]) == (503, True)
        assert httpx.get(f"{served.url}/counter/splits").status_code == 200
    assert "here is mcp 1.30.0" in served.said


def test_at_a_terminal_it_says_who_is_to_talk_to_it(tmp_path: Path) -> None:
    """It would seem to hang otherwise, for whoever tries the command before an agent program gets it."""
    keyboard, terminal = pty.openpty()
    command = [sys.executable, "-m", "quintain", "serve", f"{ENVIRONMENTS}:counter", "--stdio"]
    with os.fdopen(terminal, "rb") as stdin:
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=environment(tmp_path),
        )
    with process, os.fdopen(keyboard, "wb", buffering=0) as keys:
        assert process.stderr is not None
        assert b"Ctrl-D ends the episode" in process.stderr.readline()
        keys.write(b"\x04")
        out, _ = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (0, b"")
