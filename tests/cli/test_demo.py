from __future__ import annotations

from pathlib import Path

import pytest

from quintain.record import read_traces
from tests.cli.conftest import Call
from tests.cli.program import quintain
from tests.cli.test_run import TALK


@pytest.fixture
def bank(call: Call, tmp_path: Path) -> Path:
    """The file of an environment that any agent may play."""
    call("new", "bank", "--path", tmp_path)
    return tmp_path / "bank" / "src" / "bank" / "environment.py"


def test_the_demonstration_compares_three_agents_and_replays_them(bank: Path, tmp_path: Path) -> None:
    ended = quintain("demo", bank, "--tasks", 4, "--processes", 2, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    for words in ("oracle", "noop", "random", "2 other processes", "equal to the byte"):
        assert words in ended.stdout
    assert sorted(path.name for path in tmp_path.glob("runs/*/*")) == ["noop", "oracle", "random"]


def test_the_demonstration_ends_with_1_when_a_replay_diverges(
    bank: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    moody = 'return " ".join({"one", "two", "three", "four", "five", "six", "seven"})'
    bank.write_text(bank.read_text().replace('return self.new_id("T")', moody))
    ended = call("demo", bank, "--tasks", 2, "--processes", 2)
    assert ended.status == 1
    assert "diverged" in ended.out


def test_the_demonstration_of_a_dialogue_has_a_silent_user(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talk.py").write_text(
        TALK.replace("start=World(), ", 'start=World(), solution=(), answer="Good day.", ')
    )
    ended = call("demo", "talk.py:env", "--tasks", 1, "--processes", 1)
    assert ended.status == 0, ended.err
    traces = {path.name: next(iter(read_traces(path))) for path in tmp_path.glob("runs/*/*")}
    assert {name: trace.score for name, trace in traces.items()} == {"oracle": 1.0, "noop": 0.0, "random": 0.0}
    assert {trace.reason for trace in traces.values()} == {"the user ended the conversation"}


@pytest.mark.slow
def test_make_run_s_demonstration(tmp_path: Path) -> None:
    ended = quintain("demo", cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "equal to the byte" in ended.stdout


def test_sales_is_what_is_played_when_nothing_is_named(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call("run", "--tasks", 3)
    assert ended.status == 0
    assert "sales, test, oracle" in ended.out
    assert "mean reward   1 ± 0" in ended.out
    assert call("show", "runs/sales-oracle-1").status == 0
