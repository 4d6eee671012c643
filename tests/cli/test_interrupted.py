"""Interrupted runs (kill -9, Ctrl-C, a full disk, a second writer) lose no finished episode."""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.cli.program import command, document, quintain, started, tasks_in, wait_for

ENV = "desk.py:env"
WAITING = ("run", ENV, "--split", "wait", "--concurrency", 1, "--out", "here")
"""Task 5 waits for a file, so that the run stands still in its middle."""
ALL = {f"add-{n}": 1 for n in range(1, 13)}


def test_a_killed_run_goes_on_with_each_episode_once(desk: Path, call: Call) -> None:
    process = started(*WAITING, cwd=desk)
    wait_for(4, process, desk / "here")
    process.kill()
    process.communicate()
    with (desk / "here" / "traces.jsonl").open("ab") as file:
        file.write(b'{"digest":"0123","trace":{"versi')  # as if it had died within a write
    (desk / "go").touch()
    ended = call(*WAITING, "--resume", "--json")
    assert ended.status == 0, ended.err
    said = document(ended.out)
    assert (said["resumed_from"], said["episodes"], said["mean_reward"]) == (4, 12, 1.0)
    assert tasks_in(desk / "here") == ALL
    assert call("replay", "here", "--processes", 1).status == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_loses_nothing_and_says_how_to_go_on(desk: Path, call: Call, number: int, status: int) -> None:
    process = started(*WAITING, cwd=desk)
    wait_for(4, process, desk / "here")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert out == ""
    assert "4 finished episodes saved in here" in err
    assert "Traceback" not in err
    further = next(line.strip() for line in err.splitlines() if line.strip().startswith("quintain run"))
    (desk / "go").touch()
    ended = call(*shlex.split(further)[1:])
    assert ended.status == 0, ended.err
    assert "4 of them from before" in ended.out
    assert tasks_in(desk / "here") == ALL


def test_resume_without_a_folder_takes_the_latest(desk: Path, call: Call) -> None:
    for _ in range(2):
        call("run", ENV, "--tasks", 3)
    said = document(call("run", ENV, "--tasks", 3, "--resume", "--json").out)
    assert (said["run_dir"], said["resumed_from"], said["episodes"]) == ("runs/desk-oracle-2", 3, 3)


def test_a_finished_run_is_not_overwritten(desk: Path, call: Call) -> None:
    assert call("run", ENV, "--tasks", 1, "--out", "here").status == 0
    ended = call("run", ENV, "--tasks", 1, "--out", "here")
    assert ended.status == 2
    assert "--resume" in ended.err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--seed", "1"], ["seed", "0", "1"]),
        (["--set", "max_turns=5"], ["config", "max_turns"]),
        (["--agent", "noop"], ["agent", "oracle", "noop"]),
        (["--tasks", "3"], ["tasks"]),
    ],
)
def test_another_configuration_does_not_continue_a_run(
    desk: Path, call: Call, change: list[str], words: list[str]
) -> None:
    call("run", ENV, "--tasks", 2, "--out", "here")
    ended = call("run", ENV, "--tasks", 2, "--out", "here", "--resume", *change)
    assert ended.status == 2
    for word in words:
        assert word in ended.err
    assert tasks_in(desk / "here") == {"add-1": 1, "add-2": 1}


def test_another_version_of_the_environment_does_not_continue_a_run(desk: Path) -> None:
    assert quintain("run", ENV, "--tasks", 2, "--out", "here", cwd=desk).returncode == 0
    (desk / "desk.py").write_text((desk / "desk.py").read_text().replace("advance(60)", "advance(61)"))
    ended = quintain("run", ENV, "--tasks", 2, "--out", "here", "--resume", cwd=desk)
    assert ended.returncode == 2
    assert "fingerprint" in ended.stderr


def test_two_processes_do_not_write_into_one_folder(desk: Path, call: Call) -> None:
    process = started(*WAITING, cwd=desk)
    wait_for(4, process, desk / "here")
    second = call(*WAITING, "--resume")
    assert second.status == 2
    assert "another process" in second.err
    (desk / "go").touch()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert tasks_in(desk / "here") == ALL


def test_a_full_disk_ends_with_1_and_the_run_goes_on_when_there_is_room(desk: Path, call: Call) -> None:
    assert call("run", ENV, "--tasks", 1, "--out", "probe").status == 0
    limit = int((desk / "probe" / "traces.jsonl").stat().st_size * 4.5)
    full = subprocess.run(
        command("run", ENV, "--concurrency", 1, "--out", "here"),
        cwd=desk,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert full.returncode == 1
    assert "4 finished episodes are safe there" in full.stderr
    assert "Traceback" not in full.stderr
    assert sum(tasks_in(desk / "here").values()) == 4
    again = call("run", ENV, "--concurrency", 1, "--out", "here", "--resume", "--json")
    assert again.status == 0, again.err
    assert document(again.out)["resumed_from"] == 4
    assert tasks_in(desk / "here") == ALL


def test_a_reader_that_leaves_early_is_no_error(desk: Path, call: Call) -> None:
    call("run", ENV, "--out", "here")
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        command("show", "here", "--json"), cwd=desk, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert "Traceback" not in process.stderr
    assert "Broken" not in process.stderr


def test_an_unwritable_folder_is_no_traceback(desk: Path, call: Call) -> None:
    (desk / "file").write_text("I am in the way.")
    ended = call("run", ENV, "--tasks", 1, "--out", "file")
    assert ended.status == 2
    assert "file" in ended.err


def test_a_manifest_that_is_no_manifest(desk: Path, call: Call) -> None:
    call("run", ENV, "--tasks", 1, "--out", "here")
    (desk / "here" / "run.json").write_text(json.dumps({"hello": "world"}))
    for arguments in (("replay", "here", "--here"), ("run", ENV, "--tasks", 1, "--out", "here", "--resume")):
        ended = call(*arguments)
        assert ended.status == 2, arguments
        assert "Traceback" not in ended.err
