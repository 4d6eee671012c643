"""`quintain rescore`: a new run folder, and a table of what changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.record import read_traces
from tests.cli.conftest import Call
from tests.cli.program import document

ENV = "desk.py:env"
VERIFIER = """
import quintain as qn


@qn.reward
def half(view: qn.EpisodeView) -> float:
    return 0.5


@qn.reward(level="group")
def alike(view):
    return [1.0 for _ in view.episodes]


@qn.reward
def broken(view: qn.EpisodeView) -> float:
    raise KeyError("x")


other = qn.Verifier(half, alike)
failing = qn.Verifier(broken)
"""


@pytest.fixture
def played(desk: Path, call: Call) -> Path:
    (desk / "judge.py").write_text(VERIFIER)
    assert call("run", ENV, "--tasks", 3, "--group", 2, "--out", "here").status == 0
    return desk


def test_the_verifier_of_the_environment_changes_nothing(played: Path, call: Call) -> None:
    ended = call("rescore", "here", "--out", "there")
    assert ended.status == 0, ended.err
    assert "0 of 6 episodes changed" in ended.out
    one, other = (sorted(trace.to_bytes() for trace in read_traces(folder)) for folder in ("here", "there"))
    assert one == other


def test_another_verifier_is_shown_by_criterion_and_episode_and_can_be_replayed(played: Path, call: Call) -> None:
    ended = call("rescore", "here", "--verifier", "judge.py:other", "--out", "there", "--json")
    said = document(ended.out)
    assert (said["episodes"], said["scored"], said["changed"]) == (6, 6, 6)
    assert said["criteria"]["half"] == {"before_mean": None, "after_mean": 0.5, "changed": 6}
    assert {row["after"] for row in said["episodes_changed"]} == {1.5}
    assert call("replay", "there", "--here").status == 0
    table = call("rescore", "here", "--verifier", "judge.py:other", "--out", "elsewhere").out
    assert "6 of 6 episodes changed" in table
    assert [line.split() for line in table.splitlines() if line.startswith("half ")] == [["half", "6", "-", "0.5"]]


def test_a_verifier_that_fails_stops_at_the_gate(played: Path, call: Call) -> None:
    ended = call("rescore", "here", "--verifier", "judge.py:failing", "--out", "there", "--set", "x=1")
    assert ended.status == 2
    ended = call("rescore", "here", "--verifier", "judge.py:failing", "--out", "there")
    assert ended.status == 3, ended.err
    assert "every one failed" in ended.err
    assert "in broken (judge.py" in ended.err


def test_a_wrong_verifier_is_refused(played: Path, call: Call) -> None:
    ended = call("rescore", "here", "--verifier", "judge.py:half")
    assert ended.status == 2
    assert "must name a Verifier" in ended.err
    assert call("rescore", "here", "--verifier", "judge.py:nothing").status == 2


def test_a_file_needs_its_environment_and_an_empty_one_is_refused(played: Path, call: Call) -> None:
    (played / "alone.jsonl").write_bytes((played / "here" / "traces.jsonl").read_bytes())
    assert call("rescore", "alone.jsonl").status == 2
    assert call("rescore", "alone.jsonl", "--env", ENV, "--out", "there").status == 0
    (played / "alone.jsonl").write_bytes(b"")
    ended = call("rescore", "alone.jsonl", "--env", ENV)
    assert (ended.status, "found no episode" in ended.err) == (2, True)
