from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.cli.program import document

ROWS = [{"question": f"{n} + {n}?", "answer": 2 * n} for n in range(1, 4)]
SCORES = """
import quintain as qn

def short(answer, truth):
    return float(len(answer) < 2)

@qn.reward
def seen(view):
    return qn.Score(0.5, view.answer)

number = 4
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the rows in sums.jsonl and the scorers in scores.py."""
    (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "scores.py").write_text(SCORES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("scorer", "agent", "mean"),
    [
        ("numeric", "oracle", 1.0),
        ("exact", "oracle", 1.0),
        ("numeric", "noop", 0.0),
        ("scores.py:short", "oracle", 1.0),
        ("scores.py:seen", "noop", 0.5),
    ],
)
def test_a_data_file_runs(data: Path, call: Call, scorer: str, agent: str, mean: float) -> None:
    ended = call("run", "sums.jsonl", "--scorer", scorer, "--agent", agent, "--json")
    assert ended.status == 0, ended.err
    said = document(ended.out)
    assert (said["environment"], said["episodes"], said["mean_reward"]) == ("sums", 3, mean)
    assert said["run_dir"] == f"runs/sums-{agent}-1"


def test_columns_are_chosen_by_name(data: Path, call: Call) -> None:
    Path("other.csv").write_text("text,gold,answer\n1 + 1?,2,wrong\n")
    ended = call("run", "other.csv", "--scorer", "numeric", "--prompt-column", "text", "--answer-column", "gold")
    assert ended.status == 0, ended.err


def test_a_run_of_data_resumes_and_replays_from_any_folder(
    data: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for resume in ((), ("--resume",)):
        ended = call("run", "sums.jsonl", "--scorer", "scores.py:short", "--out", "here", *resume)
        assert ended.status == 0, ended.err
    assert (data / "here" / "traces.jsonl").read_text().count("\n") == 3
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for command in (("replay", data / "here", "--processes", 1), ("show", data / "here"), ("export", data / "here")):
        ended = call(*command)
        assert ended.status == 0, ended.err
    monkeypatch.chdir(data)

    ended = call("run", "sums.jsonl", "--scorer", "numeric", "--out", "here", "--resume")
    assert ended.status == 2
    assert "options.scorer" in ended.err


@pytest.mark.usefixtures("few_episodes", "forked_workers")
def test_audit_reads_a_file_with_a_scorer_as_an_environment(data: Path, call: Call) -> None:
    ended = call("audit", "sums.jsonl", "--option", "scorer=numeric", "--check", "x.task_set", "--json")
    assert ended.status == 0, ended.err
    assert [check["status"] for check in document(ended.out)["checks"]] == ["checked"]
    assert "can be read" in call("audit", "sums.jsonl").err, "without a scorer, a file of records"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sums.jsonl"], "sums.jsonl needs a scorer: exact, numeric or file.py:fn, as --option scorer=exact"),
        (["sums.jsonl", "--scorer", "exct"], "unknown scorer 'exct'; known: exact, numeric, file.py:fn"),
        (["sums.jsonl", "--scorer", "scores.py:long"], "scores.py has no 'long'; it has: "),
        (["sums.jsonl", "--scorer", "scores.py:number"], "a scorer is a criterion"),
        (["sums.jsonl", "--scorer", "exact", "--prompt-column", "text"], "the columns are: 'question', 'answer'"),
        (["gone.jsonl", "--scorer", "exact"], "cannot read 'gone.jsonl': No such file or directory"),
        (["sales", "--scorer", "exact"], "scorer"),
    ],
)
def test_wrong_data_ends_with_status_2(data: Path, call: Call, arguments: list[str], words: str) -> None:
    ended = call("run", *arguments)
    assert ended.status == 2
    assert words in ended.err
    assert not Path("runs").exists()
