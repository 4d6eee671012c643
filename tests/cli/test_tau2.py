"""The commands on published data; skipped where there is none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.cli.program import document


@pytest.fixture
def data(reference_data: Path) -> Path:
    return reference_data / "tau2"


@pytest.fixture
def cases(data: Path, tmp_path: Path) -> Path:
    """The first ten cases."""
    file = tmp_path / "cases.jsonl"
    with gzip.open(data / "dev" / "cases_airline.jsonl.gz", "rt") as lines:
        file.write_text("".join(line for _, line in zip(range(10), lines, strict=False)))
    return file


@pytest.mark.slow
@pytest.mark.parametrize("live", [1, 64])
def test_stored_cases_agree(call: Call, data: Path, cases: Path, live: int) -> None:
    ended = call("conform", "tau2:airline", "--data", data, "--cases", cases, "--json", "--live", live, "--seed", 3)
    assert ended.status == 0
    said = document(ended.out)
    assert (said["cases"], said["agree"], said["mismatches"]) == (10, 10, {})
    assert said["steps"] > 0
    assert "10 of 10 cases agree" in call("conform", "tau2:airline", "--data", data, "--cases", cases).out


@pytest.mark.slow
def test_a_case_that_disagrees_ends_with_1_and_is_shown(call: Call, data: Path, cases: Path) -> None:
    lines = [json.loads(line) for line in cases.read_text().splitlines()]
    for line in lines[:4]:
        line["reward"] = 0.25
    cases.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ended = call("conform", "tau2:airline", "--data", data, "--cases", cases, "--json")
    assert ended.status == 1
    said = document(ended.out)
    assert (said["cases"], said["agree"]) == (10, 6)
    assert said["mismatches"]["reward"]["count"] == 4
    assert len(said["mismatches"]["reward"]["first"]) == 3
    table = call("conform", "tau2:airline", "--data", data, "--cases", cases).out
    assert "reward" in table
    assert "0.25" in table


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tau2:bakery"], ["bakery", "retail", "airline"]),
        (["sales"], ["tau2:DOMAIN"]),
        (["tau2:retail"], ["airline", "retail"]),
    ],
)
def test_wrong_usage(call: Call, data: Path, cases: Path, arguments: list[str], words: list[str]) -> None:
    ended = call("conform", *arguments, "--data", data, "--cases", cases)
    assert (ended.status, ended.out) == (2, "")
    for word in words:
        assert word in ended.err


def test_missing_files(call: Call, data: Path, tmp_path: Path) -> None:
    for where, what in ((data, tmp_path / "none"), (tmp_path / "none", tmp_path / "none")):
        ended = call("conform", "tau2:airline", "--data", where, "--cases", what)
        assert ended.status == 2
        assert "none" in ended.err


@pytest.mark.slow
def test_real_tasks_run_replay_and_show(
    call: Call, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = ("tau2:airline", "--data", data, "--nl-assertions", "assume-true")
    said = document(call("run", *named, "--tasks", 5, "--out", "here", "--json").out)
    assert (said["mean_reward"], said["failed"]) == (1.0, 0)
    assert document(call("replay", "here", "--here", "--json").out)["agree"] is True
    shown = document(call("show", "here", "--json").out)
    assert shown["state_diff_missing"] is None
    assert call("run", "tau2:airline", "--tasks", 1).status == 2, "it needs its data"
    ended = call("run", *named, "--option", "customer")
    assert ended.status == 2
    assert "name=value" in ended.err
    ended = call("run", *named, "--option", "customer=royal")
    assert ended.status == 2
    assert "simulated" in ended.err
