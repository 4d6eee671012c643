"""Run folders: each finished episode exactly once, whatever happens to the process or the disk."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quintain as qn
from quintain.episode import blank
from quintain.errors import TraceError, UsageError
from quintain.record import EpisodeRecord, PersistenceError, RunFolder, read_traces
from quintain.trace import Timing, Trace

from .worlds import environment, first_task, script

ROOT = Path(__file__).parents[1]
ENV = environment()


def finished(number: int, *, size: int = 0) -> EpisodeRecord:
    trace = blank(ENV, first_task(ENV))
    trace.task, trace.reason = f"t{number}", "x" * size
    return EpisodeRecord(trace, Timing(total_s=float(number)))


def filled(path: Path, count: int) -> list[Trace]:
    with RunFolder(path, {"a": 1}) as folder:
        for number in range(count):
            folder.add(finished(number))
    return [finished(number).trace for number in range(count)]


def test_an_added_episode_is_found_before_and_after_resuming(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    with RunFolder(path, {"a": 1}) as folder:
        assert folder.find(("t0", 0, 0)) is None
        folder.add(finished(0))
        assert (len(folder), folder.find(("t0", 0, 0))) == (1, finished(0).trace)
        with pytest.raises(UsageError, match="holds member 0, attempt 0 of task 't0' already"):
            folder.add(finished(0))
    with RunFolder(path, {"a": 1}, resume=True) as folder:
        folder.add(finished(1))
        assert folder.find(("t0", 0, 0)) == finished(0).trace
    assert list(read_traces(path)) == [finished(0).trace, finished(1).trace]
    rows = [msgspec.json.decode(line) for line in (path / "timings.jsonl").read_bytes().splitlines()]
    assert [(row["task"], row["total_s"]) for row in rows] == [("t0", 0.0), ("t1", 1.0)]


@given(st.data())
@settings(max_examples=30)
def test_a_torn_tail_is_cut(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    torn_tail_is_cut(tmp_path_factory.mktemp("run"), lambda start, end: data.draw(st.integers(start, end)))


def test_a_tail_without_its_line_end_is_cut(tmp_path: Path) -> None:
    torn_tail_is_cut(tmp_path, lambda start, end: end)


def torn_tail_is_cut(path: Path, size: Callable[[int, int], int]) -> None:
    """Asserts that a run loses its last lines when both files are cut to a size within them."""
    traces = filled(path, 3)
    for name in ("traces.jsonl", "timings.jsonl"):
        whole = (path / name).read_bytes()
        start = whole.rindex(b"\n", 0, -1) + 1
        (path / name).write_bytes(whole[: size(start, len(whole) - 1)])
    assert list(read_traces(path)) == traces[:2]
    with RunFolder(path, {"a": 1}, resume=True) as folder:
        assert len(folder) == 2
        folder.add(finished(2))
    assert list(read_traces(path)) == traces
    assert len((path / "timings.jsonl").read_bytes().splitlines()) == 3


@given(st.data())
@settings(max_examples=30)
def test_a_corrupted_record_is_named_by_file_and_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("run")
    filled(path, 3)
    file = path / "traces.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    number = data.draw(st.integers(0, 2))
    place = data.draw(st.integers(0, len(lines[number]) - 2))
    broken = bytearray(lines[number])
    broken[place] ^= data.draw(st.sampled_from([1, 2, 4, 16, 32, 128]))
    lines[number] = bytes(broken)
    file.write_bytes(b"".join(lines))
    if b"\n" in broken[:-1]:
        return
    with pytest.raises(TraceError, match=rf"traces\.jsonl, line {number + 1}: "):
        RunFolder(path, {"a": 1}, resume=True)
    with pytest.raises(TraceError, match=rf"traces\.jsonl, line {number + 1}: "):
        list(read_traces(path))


def test_a_run_is_not_overwritten_nor_continued_by_another(tmp_path: Path) -> None:
    config: dict[str, Any] = {"max_turns": 8, "retries": 2}
    RunFolder(tmp_path, {"env": "x", "seed": 1, "config": config}).close()
    with pytest.raises(UsageError, match="holds a run already; continue it with --resume"):
        RunFolder(tmp_path, {"env": "x", "seed": 1, "config": config})
    other = {"env": "x", "config": config | {"max_turns": 9}, "extra": True}
    with pytest.raises(UsageError) as caught:
        RunFolder(tmp_path, other, resume=True)
    assert str(caught.value).splitlines()[1:] == [
        "  config.max_turns: the folder has 8, this run has 9",
        "  extra: the folder has None, this run has True",
        "  seed: the folder has 1, this run has None",
    ]
    RunFolder(tmp_path, {"config": config, "seed": 1, "env": "x"}, resume=True).close()


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    with RunFolder(tmp_path, {}), pytest.raises(UsageError, match="another process is writing"):
        RunFolder(tmp_path, {}, resume=True)
    code = f"from quintain.record import RunFolder; RunFolder({str(tmp_path)!r}, {{}}, resume=True)"
    with RunFolder(tmp_path, {}, resume=True):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "UsageError: another process is writing" in done.stderr
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_folder_that_does_not_say_what_it_is(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    (tmp_path / "run.json").write_bytes(b'{"a": ')
    with pytest.raises(TraceError, match=r"run\.json does not say what run this is"):
        RunFolder(tmp_path, {"a": 1}, resume=True)
    (tmp_path / "run.json").unlink()
    with pytest.raises(UsageError, match=r"holds traces, but no run\.json"):
        RunFolder(tmp_path, {"a": 1}, resume=True)


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.jsonl"):
        with pytest.raises(UsageError, match=r"cannot read traces from .*: No such file"):
            list(read_traces(path))


def test_a_single_trace_is_a_file_of_one_line(tmp_path: Path) -> None:
    line = finished(0).trace.to_json()
    (tmp_path / "one").write_bytes(line)
    assert list(read_traces(tmp_path / "one")) == [finished(0).trace]
    (tmp_path / "one").write_bytes(line[:-9])
    with pytest.raises(TraceError, match="one, line 1: not a trace, or a truncated one"):
        list(read_traces(tmp_path / "one"))


# --- the disk ---

FILLS_UP = """
import resource, sys
from quintain.record import PersistenceError, RunFolder
from tests.test_record import finished

with RunFolder(sys.argv[1], {"a": 1}) as folder:
    folder.add(finished(0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    for _ in range(2):
        try:
            folder.add(finished(1, size=100_000))
        except PersistenceError as error:
            print(error)
    folder.add(finished(2))
"""


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILLS_UP, str(tmp_path)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    message = f"cannot write to {tmp_path}: File too large. 1 finished episodes are safe there; make room and continue"
    assert [line.startswith(message) for line in done.stdout.splitlines()] == [True, True]
    assert [trace.task for trace in read_traces(tmp_path)] == ["t0", "t2"]
    with RunFolder(tmp_path, {"a": 1}, resume=True) as folder:
        folder.add(finished(1))
        assert len(folder) == 3


def test_a_disk_that_breaks_at_any_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")

    for number, verb in enumerate(("pwrite", "fdatasync")):
        path = tmp_path / verb
        with RunFolder(path, {"a": 1}) as folder:
            folder.add(finished(number))
            with monkeypatch.context() as patch:
                patch.setattr(os, verb, broken)
                patch.setattr(os, "ftruncate", broken)
                with pytest.raises(PersistenceError, match="Input/output error"):
                    folder.add(finished(7))
            assert len(folder) == 1
            folder.add(finished(8))
        assert [trace.task for trace in read_traces(path)] == [f"t{number}", "t8"]


def test_a_full_disk_stops_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite, written = os.pwrite, 0

    def fills(descriptor: int, data: bytes, offset: int) -> int:
        nonlocal written
        written += 1
        if written > 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwrite(descriptor, data[:50], offset) if written == 9 else pwrite(descriptor, data, offset)

    async def law(folder: RunFolder) -> None:
        async for _ in qn.rollouts(ENV, script(), ENV.tasks("test"), folder=folder):
            continue

    monkeypatch.setattr(os, "pwrite", fills)
    with RunFolder(tmp_path, {}) as folder, pytest.raises(PersistenceError, match="No space left on device"):
        asyncio.run(asyncio.wait_for(law(folder), 20))
    assert len(list(read_traces(tmp_path))) == 4


# --- kill -9 ---

RUNS = """
import asyncio, sys
import quintain as qn
from quintain.record import RunFolder
from tests.worlds import call, environment, says, script

async def main(path):
    env = environment(concurrency=3)
    model = script(says(call("roll", sides=100)), says(call("note", text="x" * 2000)))
    with RunFolder(path, {"a": 1}, resume=True) as folder:
        async for _ in qn.rollouts(env, model, env.tasks("test")[:60], group=2, seed=5, folder=folder):
            pass

asyncio.run(main(sys.argv[1]))
"""


def written(path: Path) -> int:
    file = path / "traces.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def lines(path: Path) -> list[bytes]:
    return sorted((path / "traces.jsonl").read_bytes().splitlines())


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_kill_9_at_random_moments_then_resume(tmp_path: Path, kills: int) -> None:
    def start(path: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", RUNS, str(path)], cwd=ROOT)

    assert start(tmp_path / "calm").wait() == 0
    chance, path = random.Random(kills), tmp_path / "killed"
    for goal in sorted(chance.sample(range(1, 118), kills)):
        process = start(path)
        while process.poll() is None and written(path) < goal:
            time.sleep(chance.random() / 1000)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert start(path).wait() == 0
    assert len(lines(path)) == 120
    assert lines(path) == lines(tmp_path / "calm")


def test_ctrl_c_ends_a_run_cleanly_and_loses_nothing(tmp_path: Path) -> None:
    # A process inherits an ignored SIGINT, such as that of a background job.
    restored = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program = [sys.executable, "-c", restored + RUNS, str(tmp_path)]
    process = subprocess.Popen(program, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and written(tmp_path) < 20:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=30)
    assert complaints.splitlines()[-1] == "KeyboardInterrupt"
    assert "never retrieved" not in complaints
    assert "destroyed" not in complaints
    whole = (tmp_path / "traces.jsonl").read_bytes()
    assert whole.endswith(b"\n")
    assert 20 <= len(list(read_traces(tmp_path))) < 120
