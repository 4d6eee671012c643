"""`quintain serve`, as it refuses: what is wrong, what to do, and status 2."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from quintain.serve.names import OWN
from tests.cli.conftest import Call

ENV = "desk.py:env"
NAMED = """
import quintain as qn
from desk import env as desk, Desk

one = qn.Environment("{name}", tasks=desk.tasks, harness=desk.harness, verifier=desk.verifier, state=Desk)
"""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nowhere"], ["unknown environment 'nowhere'", "path/to/file.py:attr"]),
        (["lost.py:env"], ["file 'lost.py' does not exist"]),
        (["desk.py:lost"], ["no 'lost'", "env"]),
        (["broken.py"], ["NameError", "line 1"]),
        ([ENV, ENV], ["two environments", "'desk'"]),
        ([ENV, "--workers", 3], ["--workers 3", "--shard NAME", "docs/how-to/serve-behind-a-proxy.md"]),
        ([ENV, "--shard", "Two"], ["--shard 'Two'", "such as 2"]),
        ([ENV, "--host", "0.0.0.0"], ["0.0.0.0", "--keys FILE"]),
        ([ENV, "--keys", "lost.jsonl"], ["lost.jsonl", "quintain keys add lost.jsonl"]),
        ([ENV, "--keys", "desk.py"], ["desk.py", "quintain keys add"]),
        ([ENV, "--journal", "desk.py"], ["--journal", "desk.py"]),
        ([ENV, "--journal", "desk.py/below"], ["the journal in desk.py/below", "Not a directory"]),
        ([ENV, "--sync"], ["--journal DIR"]),
        ([ENV, "--name", "https://env.example.com"], ["--name 'https://env.example.com'", "without scheme"]),
        ([ENV, "--name", "env.example.com:443"], ["--name 'env.example.com:443'", "without scheme"]),
        ([ENV, "--origin", "lab.example.com"], ["--origin 'lab.example.com'", "as https://"]),
        ([ENV, "--origin", "https://lab.example.com/page"], ["--origin 'https://lab.example.com/page'", "as https://"]),
        ([ENV, "--task", "0", "--seed", 1], ["only with --stdio", "--task, --seed"]),
        ([ENV, "--stdio", "--shard", "2", "--journal", "j"], ["--stdio listens nowhere", "--shard", "--journal"]),
        ([ENV, "--stdio", "--port", 8080], ["--stdio listens nowhere", "--port"]),
        ([ENV, "--stdio", "--task", "nothing"], ["no task 'nothing'"]),
        ([ENV, "--stdio", "--split", "nothing"], ["'nothing'", "train"]),
    ],
)
def test_serve_names_the_invalid_option(desk: Path, call: Call, given: list[str], said: list[str]) -> None:
    (desk / "broken.py").write_text("env = qn.Environment()\n")
    ended = call("serve", "--port", 0, *given) if "--stdio" not in given else call("serve", *given)
    assert (ended.status, ended.out) == (2, "")
    assert sum(line.startswith("Error: ") for line in ended.err.splitlines()) == 1
    assert "Traceback" not in ended.err
    for words in said:
        assert words in ended.err


def test_a_port_in_use_is_said(desk: Path, call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = call("serve", ENV, "--port", port)
    assert ended.status == 2
    assert f"127.0.0.1:{port}" in ended.err
    assert "--port" in ended.err


@pytest.mark.parametrize("name", [*sorted(OWN), "OpenEnv"])
def test_a_name_that_is_a_path_of_the_servers_own_is_refused(desk: Path, call: Call, name: str) -> None:
    (desk / "named.py").write_text(NAMED.format(name=name))
    ended = call("serve", "named.py:one", "--port", 0)
    assert ended.status == 2
    assert f"/{name.lower()} is the server's own" in ended.err
