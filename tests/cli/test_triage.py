from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call
from tests.cli.program import document, quintain

ENV = "desk.py:env"


def test_a_sound_run_is_the_policys(desk: Path, call: Call) -> None:
    call("run", ENV, "--out", "here")
    ended = call("triage", "here", "--processes", 0)
    assert ended.status == 0
    for line in ("12 episodes", "policy                 12   100.0%", "not the policy          0", "12 to train on"):
        assert line in ended.out, line
    assert "is undecided" in ended.out
    assert "drawn blindly" in ended.out
    assert "not checked" not in ended.out


def test_a_run_that_should_have_been_stopped_ends_with_1(desk: Path, call: Call) -> None:
    call("run", ENV, "--split", "fire", "--set", "gate_rate=none", "--out", "here")
    ended = call("triage", "here", "--processes", 0)
    assert ended.status == 1
    assert "The run should have been stopped" in ended.out
    assert "quintain:tool_bug" in ended.out


def test_a_world_that_depends_on_the_hash_seed_is_caught_by_another_process(desk: Path, call: Call) -> None:
    call("run", ENV, "--split", "mood", "--out", "here", "--tasks", 3)
    alone = document(call("triage", "here", "--processes", 0, "--json").out)
    assert {row["owner"] for row in alone["labels"]} == {"policy"}
    ended = call("triage", "here", "--json")
    assert ended.status == 1
    for row in document(ended.out)["labels"]:
        assert (row["owner"], row["rule"], row["classes"]) == ("env", 3, ["reset_leak"])
        assert row["event"] == {"turn": 0, "step": 0}


LEAKY = """
import quintain as qn

SEEN = {}


class Shop(qn.State):
    price: int

    @qn.tool
    def look(self) -> int:
        '''Read the price.'''
        return SEEN.setdefault("price", self.price)


@qn.reward
def looked(outcome):
    return float(len(outcome.trace.turns) > 1)


env = qn.Environment(
    "shop",
    tasks=lambda split: [
        qn.Task(id=f"t{n}", prompt="", start=Shop(price=n), solution=(("look", {}),)) for n in range(4)
    ],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(looked),
    state=Shop,
)
"""


def test_triage_finds_a_state_leak_by_reordering_episodes(desk: Path, call: Call) -> None:
    Path("shop.py").write_text(LEAKY)
    assert call("run", "shop.py:env", "--out", "here", "--set", "concurrency=1").status == 0

    in_order = quintain("triage", "here", "--processes", 0, "--json", cwd=desk)
    assert {row["owner"] for row in document(in_order.stdout)["labels"]} == {"policy"}
    ended = quintain("triage", "here", "--json", cwd=desk)
    assert ended.returncode == 1
    labels = document(ended.stdout)["labels"]
    assert {(row["owner"], row["rule"], row["classes"][0]) for row in labels} == {("env", 3, "reset_leak")}


def test_the_document_has_the_same_keys_whatever_was_found(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 2, "--out", "here")
    found = document(call("triage", "here", "--json", "--traces-only").out)
    assert sorted(found) == sorted([
        "episodes", "verdict", "limit", "failures", "by_owner", "by_class", "by_task", "decisions", "unreadable",
        "ignored", "not_checked", "warnings", "queue", "labels",
    ])  # fmt: skip
    assert sorted(found["by_owner"]) == sorted([
        "policy", "env", "verifier", "task", "simulator", "infra", "trainer", "unknown",
    ])  # fmt: skip
    assert found["not_checked"]["3"] == [{"reason": "left out by --traces-only", "episodes": 2}]
    assert sorted(found["labels"][0]) == sorted([
        "place", "index", "task", "member", "attempt", "reward", "owner", "classes", "visibility", "rule", "confidence",
        "why", "event", "verdict", "score_as", "provoked", "labels", "not_checked",
    ])  # fmt: skip


def test_labels_go_into_a_file_for_trainers(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 2, "--out", "here")
    assert call("triage", "here", "--traces-only", "--jsonl", "labels.jsonl").status == 0
    rows = [json.loads(line) for line in Path("labels.jsonl").read_text().splitlines()]
    assert [row["verdict"] for row in rows] == ["train", "train"]
    assert call("triage", "here", "--traces-only", "--jsonl", "no/such/folder").status == 2


def test_the_findings_of_an_audit_are_used(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 2, "--out", "here")
    finding: dict[str, Any] = {
        "check": "x.leak", "class": "leak", "part": "T", "severity": "error", "confidence": "proven",
        "tasks": ["add-1"], "trajectory": [], "expected": "", "observed": "", "replay": "",
    }  # fmt: skip
    Path("audit.json").write_text(json.dumps({"subject": "desk", "findings": [finding], "seconds": 1}))
    found = document(call("triage", "here", "--traces-only", "--audit", "audit.json", "--json").out)
    assert {row["task"]: row["owner"] for row in found["labels"]} == {"add-1": "task", "add-2": "policy"}
    Path("audit.json").write_text("[]")
    ended = call("triage", "here", "--audit", "audit.json")
    assert ended.status == 2
    assert "not a report" in ended.err


def test_logs_of_other_tools_are_read_and_what_is_torn_is_counted(desk: Path, call: Call) -> None:
    Path("logs").mkdir()
    row = {"prompt": "2+2?", "completion": "4", "reward": 1.0, "answer": "4", "example_id": 1}
    Path("logs/results.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row)[:30] + "\n")
    Path("logs/readme.txt").write_text("hello")
    ended = call("triage", "logs")
    assert "2 episodes, of which 1 could not be read" in ended.out
    assert "unreadable: logs/results.jsonl:2" in ended.out
    assert "another tool's" in ended.out
    found = document(call("triage", "logs", "--json").out)
    assert found["by_owner"]["unknown"]["episodes"] == 1
    assert found["ignored"] == ["logs/readme.txt"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "does not exist"),
        (["here", "--env", "nowhere.py:env"], "nowhere.py"),
        (["here", "--audit", "nowhere.json"], "not a report"),
        (["here", "--regrade", "0"], "--regrade"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], words: str, desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 1, "--out", "here")
    ended = call("triage", *arguments)
    assert ended.status == 2
    assert words in ended.err


def test_an_environment_that_is_gone_is_a_reason_and_no_end(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 1, "--out", "here")
    Path("desk.py").unlink()
    ended = call("triage", "here")
    assert ended.status == 0
    assert "not checked: rule 3 (replay) on 1 episode" in ended.out


@pytest.mark.slow
def test_two_processes_say_the_same_to_the_byte(desk: Path, call: Call) -> None:
    call("run", ENV, "--split", "fire", "--set", "gate_rate=none", "--out", "here")
    said = [quintain("triage", "here", "--json", cwd=desk, PYTHONHASHSEED=seed).stdout for seed in ("1", "2")]
    assert said[0] == said[1] != ""


def test_triage_escapes_control_sequences_of_models(desk: Path, call: Call) -> None:
    talk = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    row = {"messages": talk, "reward": None, "error": "\x1b[2J cleared", "task_id": "\x1b[31mred"}
    Path("log.jsonl").write_text(json.dumps(row) + "\n")
    assert "\x1b" not in call("triage", "log.jsonl").out
