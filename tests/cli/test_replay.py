from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from quintain.cli import console
from tests.cli.conftest import Call
from tests.cli.program import document, quintain

ENV = "desk.py:env"


def test_a_run_replays_in_three_other_processes(desk: Path, call: Call) -> None:
    call("run", ENV, "--group", 2, "--out", "here")
    ended = call("replay", "here", "--json")
    assert ended.status == 0, ended.err
    said = document(ended.out)
    assert (said["episodes"], said["agree"]) == (24, True)
    assert [process["hash_seed"] for process in said["processes"]] == ["1", "2", "3"]
    assert [process["episodes"] for process in said["processes"]] == [24] * 3


def test_one_file_is_replayed_with_the_manifest_beside_it(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 2, "--out", "here")
    ended = call("replay", "here/traces.jsonl", "--here")
    assert ended.status == 0
    assert "equal to the byte" in ended.out


def test_a_trace_alone_needs_its_environment_named(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 2, "--out", "here")
    (desk / "alone.jsonl").write_bytes((desk / "here" / "traces.jsonl").read_bytes())
    ended = call("replay", "alone.jsonl", "--here")
    assert ended.status == 2
    assert "--env" in ended.err
    assert call("replay", "alone.jsonl", "--here", "--env", ENV).status == 0


def test_replay_of_an_empty_run_exits_2(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 1, "--out", "here")
    (desk / "here" / "traces.jsonl").write_bytes(b"")
    ended = call("replay", "here", "--processes", 1)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.strip() == "Error: found no episode to replay in here"


def test_replay_shows_progress_and_times_no_import(desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call("run", ENV, "--tasks", 2, "--out", "here")
    (desk / "slow.py").write_text("import time\n\ntime.sleep(1)\n" + (desk / "desk.py").read_text())
    (verdict,) = document(call("replay", "here", "--here", "--env", "slow.py:env", "--json").out)["processes"]
    assert verdict["wall_s"] < 0.9
    assert "replaying" not in call("replay", "here", "--here").err
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "replaying" in call("replay", "here", "--here").err


@pytest.mark.parametrize(("command", "processes"), [pytest.param("replay", 2, marks=pytest.mark.slow), ("triage", 3)])
def test_progress_counts_the_episodes_of_all_processes(
    desk: Path, call: Call, monkeypatch: pytest.MonkeyPatch, command: str, processes: int
) -> None:
    call("run", ENV, "--tasks", 3, "--out", "here")
    seen: list[tuple[int | None, list[int]]] = []

    @contextlib.contextmanager
    def progress(_: str, total: int | None) -> Generator[Callable[..., object]]:
        steps: list[int] = []
        seen.append((total, steps))
        yield lambda *, advance: steps.append(advance)

    monkeypatch.setattr(console, "progress", progress)
    monkeypatch.setenv("FORCE_COLOR", "1")  # The other processes show no bar of their own.
    ended = call(command, "here", "--json", "--processes", 2)  # Triage replays in this process, too.
    assert ended.status == 0, ended.err
    assert [(total, sum(steps)) for total, steps in seen] == [(3 * processes, 3 * processes)]


def test_several_runs_are_replayed_together(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 2, "--out", "one")
    call("run", ENV, "--tasks", 3, "--out", "two", "--agent", "noop")
    assert document(call("replay", "one", "two", "--here", "--json").out)["episodes"] == 5


@pytest.mark.slow
def test_only_other_processes_notice_the_order_of_a_set(desk: Path) -> None:
    made = quintain("run", ENV, "--split", "mood", "--tasks", 2, "--out", "here", cwd=desk, PYTHONHASHSEED="77")
    assert made.returncode == 0
    same = quintain("replay", "here", "--here", cwd=desk, PYTHONHASHSEED="77")
    assert same.returncode == 0, "the same hash seed hides it"
    other = quintain("replay", "here", cwd=desk, PYTHONHASHSEED="77")
    assert other.returncode == 1
    assert "add-1, member 0, attempt 0, of here: turn 0, step 0, observation" in other.stdout
    assert "trace   " in other.stdout
    assert "replay  " in other.stdout
    assert other.stderr == ""
    said = document(quintain("replay", "here", "--json", "--processes", 1, cwd=desk).stdout)
    assert said["agree"] is False
    first = said["processes"][0]["first"][0]
    assert (first["turn"], first["step"], first["field"]) == (0, 0, "observation")
    assert first["trace"] != first["replay"]


def test_another_version_of_the_code_diverges_where_it_shows_first(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 1, "--out", "here")
    source = (desk / "desk.py").read_text()
    (desk / "other.py").write_text(source.replace("{name} is {row.total}", "{name} = {row.total}"))
    ended = call("replay", "here", "--here", "--env", "other.py:env")
    assert ended.status == 1
    assert "turn 0, step 0, observation" in ended.out
    assert "a is 1" in ended.out
    assert "a = 1" in ended.out
    assert "code has changed since these traces were made" in ended.out
    (desk / "comment.py").write_text(source + "\n# The same, but for this line.\n")
    ended = call("replay", "here", "--here", "--env", "comment.py:env")
    assert ended.status == 1
    assert "fingerprint" in ended.out
    assert "code has changed since these traces were made" in ended.out


def test_failed_episodes_replay_too(desk: Path, call: Call) -> None:
    call("run", ENV, "--split", "fire", "--set", "gate_rate=none", "--out", "here")
    assert call("replay", "here", "--here").status == 0


DAMAGES: list[tuple[Callable[[bytes], bytes], list[str]]] = [
    (lambda line: line[: len(line) // 2] + b"\n", ["line 2", "truncated"]),
    (lambda line: line.replace(b"a is 2", b"a is 3"), ["line 2", "corrupted"]),
    (lambda line: line.replace(b'"version":', b'"version":9'), ["line 2", "version 9", "reads version"]),
    (lambda line: b"hello\n", ["line 2", "not a trace"]),
]
ELSEWHERE = [
    pytest.param("elsewhere", *damage, marks=pytest.mark.slow if index else ()) for index, damage in enumerate(DAMAGES)
]


@pytest.mark.parametrize(("where", "damage", "words"), [*(("here", *damage) for damage in DAMAGES), *ELSEWHERE])
def test_a_damaged_trace_is_named_by_file_and_line(
    desk: Path, call: Call, where: str, damage: Callable[[bytes], bytes], words: list[str]
) -> None:
    call("run", ENV, "--tasks", 3, "--out", "here")
    file = desk / "here" / "traces.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    lines[1] = damage(lines[1])
    file.write_bytes(b"".join(lines))
    here: list[tuple[object, ...]] = [("replay", "here", "--here"), ("show", "here", "--index", 1)]
    for arguments in here if where == "here" else [("replay", "here", "--processes", 1)]:
        ended = call(*arguments)
        assert (ended.status, ended.out) == (2, "")
        for word in ["traces.jsonl", *words]:
            assert word in ended.err
        assert "Traceback" not in ended.err


def test_a_file_cut_off_is_a_truncated_trace(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 1, "--out", "here")
    (desk / "cut.jsonl").write_bytes((desk / "here" / "traces.jsonl").read_bytes()[:-40])
    ended = call("replay", "cut.jsonl", "--here", "--env", ENV)
    assert ended.status == 2
    assert "truncated" in ended.err


def test_paths_that_are_not_there(desk: Path, call: Call) -> None:
    for arguments in (("replay", "nowhere", "--here"), ("show", "nowhere"), ("replay", "nowhere", "--processes", 1)):
        ended = call(*arguments)
        assert ended.status == 2
        assert "nowhere" in ended.err
    assert call("replay").status == 2
    assert call("replay", ".", "--processes", 0).status == 2


DAYS = """
import quintain as qn


class Count(qn.State):
    n: int = 0

    @qn.tool
    def add(self) -> int:
        \"\"\"Add one.\"\"\"
        self.n += 1
        return self.n


@qn.reward
def added(outcome: qn.EpisodeView[Count]) -> float:
    return float(outcome.state.n == outcome.start.n + 1)


def tasks(split: str) -> list[qn.Task[Count]]:
    return [
        qn.Task(id=f"{day}{n}", prompt="add", start=Count(), day=day, solution=(("add", {}),))
        for day in "ab"
        for n in range(4)
    ]


env = qn.Environment("days", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(added), state=Count)
"""


def test_days_replay_in_other_processes(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "days.py").write_text(DAYS)
    monkeypatch.chdir(tmp_path)
    made = call("run", "days.py:env", "--group", 2, "--out", "here", "--json")
    assert made.status == 0, made.err
    observed = re.findall(r'"observation":"(\d)"', (tmp_path / "here" / "traces.jsonl").read_text())
    assert sorted(observed) == sorted("1234" * 4), "each of two members sees, on each of two days, what it did before"
    said = document(call("replay", "here", "--processes", 1, "--json").out)
    assert (said["episodes"], said["agree"]) == (16, True)
