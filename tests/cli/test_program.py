"""`quintain run ENV --harness command:CMD`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.cli.program import document, tasks_in

ENV = "desk.py:env"
AGENT = """
import json, os, sys, urllib.request
key = "Bearer " + os.environ["OPENAI_API_KEY"]
body = json.dumps({"messages": [{"role": "user", "content": sys.argv[1]}]}).encode()
headers = {"Authorization": key, "Content-Type": "application/json"}
asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
with urllib.request.urlopen(asked) as answer:
    print(json.load(answer)["choices"][0]["message"]["content"])
"""


@pytest.fixture
def agent(desk: Path) -> Path:
    (desk / "agent.py").write_text(AGENT)
    return desk


def test_a_program_plays_and_its_traces_replay(agent: Path, call: Call) -> None:
    ended = call("run", ENV, "--harness", "command:python agent.py {prompt}", "--tasks", 2, "--out", "here", "--json")
    assert ended.status == 0, ended.err
    assert document(ended.out)["mean_reward"] == 1.0
    assert tasks_in(agent / "here") == {"add-1": 1, "add-2": 1}
    said = json.loads((agent / "here" / "run.json").read_text())["harness"]
    assert said["command"] == f"python {agent / 'agent.py'} '{{prompt}}'", "it starts in a folder of its own"
    assert call("replay", "here", "--here").status == 0
    assert "Add [up]." in call("show", "here", "--full").out


def test_to_look_at_a_run_needs_no_program(agent: Path, call: Call) -> None:
    call("run", ENV, "--harness", "command:python agent.py {prompt}", "--tasks", 2, "--out", "here")
    (agent / "agent.py").unlink()
    ended = call("triage", "here", "--json")
    assert ended.status == 0, ended.err
    assert not document(ended.out)["warnings"], ended.out
    shown = call("show", "here", "--task", "add-1").out
    assert "changes" in shown
    assert "sums" in shown


def test_a_run_goes_on_only_with_the_same_program(agent: Path, call: Call) -> None:
    call("run", ENV, "--harness", "command:python agent.py {prompt}", "--tasks", 1, "--out", "here")
    ended = call("run", ENV, "--harness", "command:python agent.py", "--tasks", 1, "--out", "here", "--resume")
    assert ended.status == 2
    assert "harness.command" in ended.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--harness", "python agent.py"], "takes 'command:CMD'"),
        (["--harness", "command:"], "names a program"),
        (["--harness", "command:a 'b"], "cannot be split"),
        (["--allow-tool", "bash"], "need --harness"),
    ],
)
def test_a_harness_that_cannot_be(agent: Path, call: Call, options: list[str], words: str) -> None:
    ended = call("run", ENV, *options)
    assert ended.status == 2
    assert words in ended.err.replace("\n", " ")
    assert not (agent / "runs").exists()
