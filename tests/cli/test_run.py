from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from quintain.cli import selection
from quintain.record import read_traces
from tests.cli.conftest import Call
from tests.cli.program import document, quintain, tasks_in

ENV = "desk.py:env"
UNDOCUMENTED = """
import quintain as qn

class World(qn.State):
    @qn.tool
    def go(self) -> str:
        return ""

@qn.reward
def fine(outcome):
    return 1.0

env = qn.Environment("e", tasks=list, harness=qn.ToolLoop(), state=World, verifier=qn.Verifier(fine))
"""
TALK = """
import quintain as qn
from quintain.harnesses import Dialogue
from quintain.models import Fixed
from quintain.trace import Message, Reply

class World(qn.State):
    pass

@qn.reward
def polite(outcome):
    return float(outcome.answer == "Good day.")

async def clerk(request):
    return Reply(Message("assistant", "Good day."))

async def customer(request):
    return Reply(Message("assistant", "Hello." if len(request.messages) < 2 else "###STOP###"))

clerk, customer = Fixed(clerk, "clerk"), Fixed(customer, "customer")

def tasks(split):
    return [qn.Task(id="t", prompt="", start=World(), roles={"user": "You want a good day."})]

env = qn.Environment("talk", tasks=tasks, harness=Dialogue(), verifier=qn.Verifier(polite), state=World)
"""


def test_a_run_prints_its_table_and_keeps_its_traces(desk: Path, call: Call) -> None:
    ended = call("run", ENV)
    assert ended.status == 0
    assert "desk, test, oracle" in ended.out
    for words in ("mean reward   1 ± 0", "12 of 12 episodes scored", "pass@1", "turns", "tool calls", "verifier"):
        assert words in ended.out, words
    assert "even" in ended.out, "by tag"
    assert "runs/desk-oracle-1" in ended.out
    assert tasks_in(desk / "runs" / "desk-oracle-1") == {f"add-{n}": 1 for n in range(1, 13)}
    assert ended.err == "", "no bar where no terminal is"


def test_the_parts_of_the_time_add_up(desk: Path, call: Call) -> None:
    out = call("run", ENV, "--tasks", 3, "--out", "here").out
    (line,) = [line for line in out.splitlines() if line.startswith("time ")]
    total, *parts = (round(100 * float(number)) for number in re.findall(r"([\d.]+) s", line))
    assert len(parts) == 4
    assert sum(parts) == total


def test_run_folders_count_up(desk: Path, call: Call) -> None:
    folders = [document(call("run", ENV, "--tasks", 1, "--json").out)["run_dir"] for _ in range(2)]
    assert folders == ["runs/desk-oracle-1", "runs/desk-oracle-2"]


def test_json_is_the_only_thing_on_stdout(desk: Path, call: Call) -> None:
    ended = call("run", ENV, "--agent", "noop", "--group", 2, "--tasks", 3, "--json", "--out", "here")
    assert ended.status == 0
    said = document(ended.out)
    expected = {
        "environment": "desk",
        "split": "test",
        "agent": "noop",
        "episodes": 6,
        "mean_reward": 0.0,
        "failed": 0,
        "failures": {},
        "pass_hat_k": {"1": 0.0, "2": 0.0},
        "run_dir": "here",
        "stopped": None,
    }
    assert {name: said[name] for name in expected} == expected
    assert (desk / "here" / "run.json").exists()


def test_json_output_excludes_prints_of_the_environment(desk: Path) -> None:
    source = (desk / "desk.py").read_text()
    (desk / "loud.py").write_text(
        "print('hello')\n" + source.replace("row = self.sums[name]", "row = self.sums[name]; print(row)")
    )
    for arguments in (("run", "loud.py:env", "--out", "here"), ("replay", "here", "--here")):
        ended = quintain(*arguments, "--json", cwd=desk)
        assert ended.returncode == 0, ended.stderr
        assert document(ended.stdout)
        assert "hello" in ended.stderr


def test_the_manifest_says_what_was_run(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", "2:4", "--seed", 9, "--set", "max_turns=3", "--out", "here")
    manifest = json.loads((desk / "here" / "run.json").read_text())
    assert manifest["environment"] == f"{desk}/desk.py:env"
    assert (manifest["split"], manifest["tasks"], manifest["seed"], manifest["group"]) == ("test", "2:4", 9, 1)
    assert manifest["config"]["max_turns"] == 3
    assert manifest["fingerprint"]
    assert tasks_in(desk / "here") == {"add-3": 1, "add-4": 1}


@pytest.mark.parametrize(
    ("selection", "tasks"),
    [
        ("2", ["add-1", "add-2"]),
        ("10:", ["add-11", "add-12"]),
        ("add-7,add-3", ["add-3", "add-7"]),
        ("add-5,", ["add-5"]),
    ],
)
def test_tasks_are_selected_by_number_slice_or_id(desk: Path, call: Call, selection: str, tasks: list[str]) -> None:
    assert call("run", ENV, "--tasks", selection, "--out", "here").status == 0
    assert sorted(tasks_in(desk / "here")) == tasks


def test_the_command_line_wins_over_the_file_and_the_file_over_the_environment(desk: Path, call: Call) -> None:
    (desk / "dials.toml").write_text("max_turns = 4\nconcurrency = 2\nretries = 1\n")
    call("run", ENV, "--tasks", 1, "--config", "dials.toml", "--set", "retries=0", "--concurrency", 3, "--out", "here")
    config = json.loads((desk / "here" / "run.json").read_text())["config"]
    assert (config["max_turns"], config["concurrency"], config["retries"]) == (4, 3, 0)
    (desk / "few.toml").write_text("concurrency = 2\n")
    call("run", ENV, "--tasks", 1, "--config", "few.toml", "--out", "there")
    assert json.loads((desk / "there" / "run.json").read_text())["config"]["max_turns"] == 6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], ["nowhere", "sales"]),
        (["missing.py:env"], ["missing.py"]),
        (["desk.py:none"], ["none", "env"]),
        ([ENV, "--agent", "genius"], ["genius", "oracle", "noop", "random"]),
        ([ENV, "--user", "genius"], ["genius", "oracle"]),
        ([ENV, "--split", "exam"], ["exam", "train", "test", "fire"]),
        ([ENV, "--tasks", "add-99,"], ["add-99"]),
        ([ENV, "--tasks", "13"], ["13", "12"]),
        ([ENV, "--tasks", "12:"], ["12:", "no task"]),
        ([ENV, "--set", "max_turn=3"], ["max_turn", "did you mean", "max_turns"]),
        ([ENV, "--set", "max_turns"], ["max_turns", "name=value"]),
        ([ENV, "--set", "max_turns=many"], ["int", "max_turns"]),
        ([ENV, "--set", "max_turns=0"], ["max_turns", ">= 1", "0"]),
        ([ENV, "--concurrency", "0"], ["concurrency", ">= 1"]),
        ([ENV, "--group", "0"], ["--group", "0"]),
        ([ENV, "--config", "nope.toml"], ["nope.toml"]),
        ([ENV, "--resume"], ["nothing to resume", "--out"]),
        ([ENV, "--data", "/tmp"], ["data"]),
        ([ENV, "--colour"], ["--colour"]),
    ],
)
def test_wrong_usage_is_2_and_says_what_would_be_right(
    desk: Path, call: Call, arguments: list[str], words: list[str]
) -> None:
    ended = call("run", *arguments)
    assert ended.status == 2
    assert ended.out == ""
    for word in words:
        assert word in ended.err
    assert "Traceback" not in ended.err
    assert not (desk / "runs").exists(), "a run that cannot begin leaves no folder"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import nothing_of_that_name", ["nothing_of_that_name", "broken.py"]),
        ("def env(:", ["broken.py", "SyntaxError"]),
        ("env = 3", ["env", "int"]),
        (UNDOCUMENTED, ["go", "docstring"]),
    ],
)
def test_an_environment_that_cannot_be_made_is_wrong_usage(
    desk: Path, call: Call, source: str, words: list[str]
) -> None:
    (desk / "broken.py").write_text(source)
    ended = call("run", "broken.py:env")
    assert (ended.status, ended.out) == (2, "")
    for word in words:
        assert word in ended.err
    assert "Traceback" not in ended.err


def test_the_gate_stops_a_run_with_3_and_a_report(desk: Path, call: Call) -> None:
    ended = call("run", ENV, "--split", "fire", "--out", "here")
    assert ended.status == 3
    assert "quintain:tool_bug" in ended.err
    assert "the desk caught fire" in ended.err
    assert "mean reward   -" in ended.out
    assert "Hint: `quintain triage DIR`" in ended.err


def test_a_stopped_run_is_still_one_json_document(desk: Path) -> None:
    ended = quintain("run", ENV, "--split", "fire", "--json", "--out", "here", "--set", "concurrency=1", cwd=desk)
    assert ended.returncode == 3
    said = document(ended.stdout)
    assert said["mean_reward"] is None
    assert said["episodes"] == said["failed"] == sum(tasks_in(desk / "here").values())
    assert said["failures"] == {"S": {"quintain:tool_bug": said["failed"]}}
    assert "every one failed" in said["stopped"]["reason"]
    assert "the desk caught fire" in said["stopped"]["report"]
    assert "Traceback" not in ended.stderr


def test_failures_below_the_gate_are_shown_with_what_they_may_hide(desk: Path, call: Call) -> None:
    ended = call("run", ENV, "--split", "fire", "--set", "gate_rate=none", "--tasks", 4)
    assert ended.status == 0
    for words in ("4 episodes (100.0%), without a reward", "between 0 and 1", "quintain:tool_bug", "S "):
        assert words in ended.out


def test_an_agent_of_one_s_own_plays(desk: Path, call: Call) -> None:
    (desk / "mine.py").write_text(
        "from quintain.models import Fixed\n"
        "from quintain.trace import Message, Reply\n"
        "async def give_up(request):\n    return Reply(Message('assistant', 'I give up.'))\n"
        "agent = Fixed(give_up, 'quitter')\n"
    )
    said = document(call("run", ENV, "--agent", "mine.py:agent", "--tasks", 2, "--json").out)
    assert said["mean_reward"] == 0.0
    assert said["run_dir"] == "runs/desk-quitter-1"


def test_the_simulated_user_is_another_agent(desk: Path, call: Call) -> None:
    (desk / "talk.py").write_text(TALK)
    arguments = ("run", "talk.py:env", "--agent", "talk.py:clerk", "--user", "talk.py:customer", "--out", "here")
    said = document(call(*arguments, "--json").out)
    assert (said["agent"], said["user"], said["mean_reward"]) == ("talk.py:clerk", "talk.py:customer", 1.0)
    assert call("replay", "here", "--here").status == 0
    out = call("show", "here").out
    assert "turn 0, user, thread 1" in out
    assert "says       Good day." in out


def test_the_oracle_has_a_silent_user(desk: Path, call: Call) -> None:
    solution = 'start=World(), solution=(), answer="Good day.", '
    (desk / "talk.py").write_text(TALK.replace("start=World(), ", solution))
    ended = call("run", "talk.py:env", "--out", "here", "--json")
    assert ended.status == 0, ended.err
    assert document(ended.out)["mean_reward"] == 1.0
    (trace,) = read_traces(desk / "here")
    assert (trace.agent, trace.reason) == ("oracle", "the user ended the conversation")
    assert [turn.role for turn in trace.turns] == ["user", "agent", "user"]
    assert call("replay", "here", "--here").status == 0


def test_a_missing_user_is_refused_before_the_first_episode(desk: Path, call: Call) -> None:
    (desk / "talk.py").write_text(TALK)
    ended = call("run", "talk.py:env", "--agent", "talk.py:clerk")
    assert (ended.status, ended.out) == (2, "")
    assert "talk asks the role 'user', and no agent plays it: give --user AGENT" in ended.err
    assert not (desk / "runs").exists()


def test_a_missing_user_of_an_own_harness_fails_the_episode(desk: Path, call: Call) -> None:
    harness = "class Own:\n    async def play(self, session, model):\n        await Dialogue().play(session, model)\n\n"
    (desk / "talk.py").write_text(
        TALK.replace("env =", f"{harness}env =").replace("harness=Dialogue()", "harness=Own()")
    )
    call("run", "talk.py:env", "--agent", "talk.py:clerk", "--out", "here")
    (trace,) = read_traces(desk / "here")
    assert (trace.agent, trace.score, len(trace.turns)) == ("clerk", None, 0)
    assert trace.failure is not None
    assert "this environment asks the role 'user', and no agent plays it: give --user AGENT" in trace.failure.message


def test_an_agent_with_a_user_of_its_own_needs_no_other(desk: Path, call: Call) -> None:
    company = "from quintain.models import Company\nboth = Company(agent=clerk, user=customer)\n"
    (desk / "talk.py").write_text(TALK + company)
    ended = call("run", "talk.py:env", "--agent", "talk.py:both", "--out", "here", "--json")
    assert document(ended.out)["mean_reward"] == 1.0


def test_list_names_what_is_installed(call: Call) -> None:
    ended = call("list")
    assert ended.status == 0
    assert "sales" in ended.out
    assert "oracle" in ended.out
    assert "tau2:DOMAIN" in ended.out
    said = document(call("list", "--json").out)
    assert "sales" in [one["name"] for one in said["environments"]]
    assert {"oracle", "noop", "random", "openai"} <= {one["name"] for one in said["agents"]}


def test_help_and_version(call: Call) -> None:
    assert "replay" in call("--help").out
    assert call("--version").out.startswith("quintain, version")
    assert "--resume" in call("run", "--help").out
    assert call("frobnicate").status == 2


def test_file_behind_an_adapter_becomes_absolute_in_the_manifest() -> None:
    assert selection.anchored("tau2:env.py") == f"tau2:{Path.cwd() / 'env.py'}"
    assert selection.anchored("tau2:folder/env.py@task") == f"tau2:{Path.cwd() / 'folder/env.py'}@task"
    assert selection.anchored("tau2:retail") == "tau2:retail"
