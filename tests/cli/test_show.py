from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from quintain.record import read_traces
from tests.cli.conftest import Call
from tests.cli.program import document

ENV = "desk.py:env"


def test_a_trace_tells_what_was_said_done_seen_changed_and_earned(desk: Path, call: Call) -> None:
    call("run", ENV, "--out", "here")
    ended = call("show", "here", "--task", "add-3")
    assert ended.status == 0
    for line in (
        "desk, test, oracle: add-3",
        "seed 0, member 0, attempt 0, family odd",
        "score 1, terminated: the agent answered",
        "turn 0, agent",
        "system     Add [up].",
        "user       Add 3 to a.",
        'calls      add {"name":"a","number":3}',
        "sees       a is 3",
        'changes    sums["a"].total: 0 → 3',
        '           sums["a"].notes[0]: (nothing) → "+3"',
        '           where: "" → "a"',
        "           clock.now: 0.0 → 60.0",
        "turn 1, agent",
        "says       done",
        "+ added 1  a is 3, should be 3",
    ):
        assert line in ended.out, line
    assert ended.err == ""


def test_a_low_score_says_why(desk: Path, call: Call) -> None:
    call("run", ENV, "--agent", "noop", "--tasks", 1, "--out", "here")
    out = call("show", "here").out
    assert "score 0" in out
    assert "- added 0  a is 0, should be 1" in out
    assert "+ kept 1" in out


def test_a_failure_says_who_is_to_blame(desk: Path, call: Call) -> None:
    call("run", ENV, "--split", "fire", "--set", "gate_rate=none", "--tasks", 1, "--out", "here")
    out = call("show", "here").out
    assert "failed, by S: quintain:tool_bug, stage agent, after 0 turns" in out
    assert "RuntimeError: the desk caught fire" in out
    assert "no score" in out


def test_a_penalty_is_red_and_a_reward_green(desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (desk / "desk.py").read_text()
    (desk / "strict.py").write_text(source.replace("@qn.reward(weight=0.0)", "@qn.reward(weight=-0.5)"))
    call("run", "strict.py:env", "--tasks", 1, "--allow-partial", "--out", "here")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    out = call("show", "here").out
    assert "\x1b[31mkept \x1b[0m\x1b[1;31m1\x1b[0m" in out
    assert "\x1b[32madded \x1b[0m\x1b[1;32m1\x1b[0m" in out


def test_traces_are_found_by_place_and_by_task(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 3, "--out", "here", "--concurrency", 1)
    first = call("show", "here")
    assert ": add-1\n" in first.out
    assert "--index" in first.err
    assert ": add-2\n" in call("show", "here", "--index", 1).out
    assert ": add-3\n" in call("show", "here", "--index", -1).out
    rows = document(call("show", "here", "--list", "--json").out)["traces"]
    assert [(row["index"], row["task"], row["score"]) for row in rows] == [(n, f"add-{n + 1}", 1.0) for n in range(3)]
    assert "add-2" in call("show", "here", "--list").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--index", 3], ["no trace 3", "--list"]),
        (["--index", -4], ["no trace -4"]),
        (["--task", "add-9"], ["add-9", "--list"]),
        (["--index", 0, "--task", "add-1"], ["not both"]),
        (["--index", "first"], ["first"]),
    ],
)
def test_a_trace_that_is_not_there(desk: Path, call: Call, arguments: list[object], words: list[str]) -> None:
    call("run", ENV, "--tasks", 3, "--out", "here")
    ended = call("show", "here", *arguments)
    assert (ended.status, ended.out) == (2, "")
    for word in words:
        assert word in ended.err


def test_json_holds_the_trace_and_every_change(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 1, "--out", "here")
    said = document(call("show", "here", "--json").out)
    assert said["trace"]["task"] == "add-1"
    assert said["state_diff_missing"] is None
    (step,) = said["state_diff"]
    assert (step["turn"], step["step"]) == (0, 0)
    assert {"path": 'sums["a"].total', "before": 0, "after": 1} in step["changes"]
    assert {"path": 'sums["a"].notes[0]', "after": "+1"} in step["changes"]


def test_without_the_environment_the_changes_are_left_out_and_it_says_so(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 1, "--out", "here")
    (desk / "alone.jsonl").write_bytes((desk / "here" / "traces.jsonl").read_bytes())
    ended = call("show", "alone.jsonl")
    assert ended.status == 0
    assert "sees       a is 1" in ended.out
    assert "changes" not in ended.out.replace("What each step changed", "")
    assert "Changes of each step are not shown" in ended.out
    assert "--env" in ended.out
    assert "changes    sums" in call("show", "alone.jsonl", "--env", ENV).out


def test_an_environment_that_answers_otherwise_shows_no_changes_of_its_own(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 1, "--out", "here")
    source = (desk / "desk.py").read_text()
    (desk / "other.py").write_text(source.replace("row.total += number", "row.total += number + 1"))
    out = call("show", "here", "--env", "other.py:env").out
    assert "answers otherwise from turn 0 on" in out
    assert 'sums["a"]' not in out


def test_long_texts_are_cut_unless_they_are_wanted(desk: Path, call: Call) -> None:
    source = (desk / "desk.py").read_text()
    (desk / "long.py").write_text(source.replace('f"{name} is {row.total}"', '"\\n".join(map(str, range(1000)))'))
    call("run", "long.py:env", "--tasks", 1, "--out", "here")
    short, full = call("show", "here").out, call("show", "here", "--full").out
    assert "988 further lines" in short
    assert "\n           500\n" not in short
    assert "\n           500\n" in full


def test_a_long_edit_is_cut_around_the_difference(desk: Path, call: Call) -> None:
    source = (desk / "desk.py").read_text()
    source = source.replace("self.where = name", 'self.where = self.where.replace("!", "?")')
    (desk / "long.py").write_text(source.replace("7)})", '7)}), where="x" * 500 + "!" + "y" * 500'))
    call("run", "long.py:env", "--tasks", 1, "--out", "here")
    out = "".join(line.strip() for line in call("show", "here").out.splitlines())
    assert "xxx!yyy" in out
    assert "xxx?yyy" in out
    assert "x" * 200 not in out


def test_show_escapes_control_sequences_of_tools(desk: Path, call: Call) -> None:
    source = (desk / "desk.py").read_text()
    (desk / "evil.py").write_text(source.replace('f"{name} is {row.total}"', '"\\x1b[2J [red]gone[/red]"'))
    call("run", "evil.py:env", "--tasks", 1, "--out", "here")
    out = call("show", "here").out
    assert "\x1b" not in out
    assert "\\x1b[2J [red]gone[/red]" in out


def test_show_writes_a_page_and_opens_it(desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def browser(url: str) -> bool:
        opened.append(url)
        return len(opened) == 1

    monkeypatch.setattr("webbrowser.open", browser)
    source = (desk / "desk.py").read_text()
    (desk / "evil.py").write_text(source.replace('f"{name} is {row.total}"', '"<script>alert(1)</script>"'))
    call("run", "evil.py:env", "--tasks", 1, "--out", "here")
    ended = call("show", "here", "--html", "page.html", "--open")
    assert ended.out == "page.html\n"
    assert opened == [(desk / "page.html").as_uri()]
    page = (desk / "page.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "src=" not in page
    assert "Add [up]." in page
    ended = call("show", "here", "--open")
    assert Path(ended.out.strip()).as_uri() == opened[1]
    assert "found no web browser" in ended.err
    shutil.rmtree(Path(ended.out.strip()).parent)
    assert call("show", "here", "--html", "no/page.html").status == 2


def test_an_audit_opens_its_report(desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    call("run", ENV, "--tasks", 1, "--out", "here")
    call("audit", "here", "--out", "found", "--open")
    assert opened == [(desk / "found" / "report.html").as_uri()]


def test_no_line_is_wider_than_the_terminal(desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call("run", ENV, "--out", "here")
    monkeypatch.setenv("COLUMNS", "60")
    for arguments in (("show", "here"), ("show", "here", "--list"), ("list",), ("replay", "here", "--here")):
        for line in call(*arguments).out.splitlines():
            assert len(line) <= 60, (arguments, line)


def test_show_names_the_rows_that_a_call_changed_in_a_database(tmp_path: Path, call: Call) -> None:
    assert call("run", "helpdesk", "--tasks", "refund-easy-1", "--out", tmp_path / "here").status == 0
    out = call("show", tmp_path / "here").out
    assert 'db.zd_metrics[303].next_breach: "2026-01-05T09:02:50Z" → null' in out
    assert "digest" not in out


def test_data_of_an_observation_is_shown_below_it(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 1, "--out", "here")
    (trace,) = read_traces("here")
    turn = trace.turns[0]
    step = msgspec.structs.replace(turn.steps[0], data={"rows": [1, 2]})
    trace.turns[0] = msgspec.structs.replace(turn, steps=(step,))
    Path("own.jsonl").write_bytes(trace.to_json() + b"\n")
    lines = [line.strip() for line in call("show", "own.jsonl").out.splitlines()]
    sees = next(n for n, line in enumerate(lines) if line.startswith("sees"))
    assert lines[sees + 1].split(maxsplit=1) == ["data", '{"rows":[1,2]}']
