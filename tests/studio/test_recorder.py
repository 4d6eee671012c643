"""EpisodeInPlay recorder: lines of what is in play, seconds of turns, and records that stay the same."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain import codec
from quintain.harness import Harness, Replayable, Request, ToolLoop
from quintain.record import RunFolder, read_traces
from quintain.replay import ReplayHarness
from quintain.report import Summary
from quintain.rollouts import rollouts
from quintain.studio import recorder as module
from quintain.studio.recorder import Recorder
from quintain.trace import Reply, Trace
from tests.worlds import call, environment, says


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DELAY_S", 0)


REPLIES = [says(call("put", key="oak")), says(call("note", text="elm")), says(text="done")]


class Slow:
    """Agent that takes its time, and reads what the recorder has written by then."""

    name = "slow"

    def __init__(self, live: Path) -> None:
        self.live, self.seen = live, list[list[dict[str, Any]]]()

    def model(self, task: qn.Task[Any], seed: int) -> Any:
        left = iter(REPLIES)

        async def ask(request: Request) -> Reply:
            await asyncio.sleep(0.01)
            self.seen.append(lines(self.live))
            return next(left)

        return ask


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


async def run(env: qn.Environment[Any], agent: Slow, folder: RunFolder, **names: Any) -> None:
    async for _ in rollouts(env, agent, env.tasks("test")[:2], folder=folder, **names):
        pass


def play(place: Path, *, recorded: bool = True, **names: Any) -> Slow:
    agent, env = Slow(place / module.FILE), environment(concurrency=1)
    with RunFolder(place, {}, resume=True) as folder:
        if not recorded:
            asyncio.run(run(env, agent, folder, **names))
            return agent
        with Recorder(folder) as recorder:
            watched = recorder.watch(env)
            assert watched.fingerprint == env.fingerprint
            asyncio.run(run(watched, agent, folder, **names))
    return agent


def test_recorder_writes_each_turn_before_the_next_reply(tmp_path: Path) -> None:
    before = time.time()
    first, *_ = play(tmp_path).seen[2:]
    trace, *_ = read_traces(tmp_path)
    key = [trace.task, 0, 0]
    assert [line.get("began", line.get("key")) for line in first] == [key, key, key]
    assert before <= first[0]["at"] <= time.time()
    assert first[0]["head"]["agent"] == "slow"
    assert [line["turn"] for line in first[1:]] == [json.loads(codec.json(turn)) for turn in trace.turns[:2]]
    assert lines(tmp_path / module.FILE) == []


def test_recorded_episodes_have_the_same_bytes(tmp_path: Path) -> None:
    play(tmp_path / "with", group=2)
    play(tmp_path / "without", group=2, recorded=False)
    with_, without = ((tmp_path / name / "traces.jsonl").read_bytes() for name in ("with", "without"))
    assert with_ == without != b""


def test_timings_hold_the_seconds_of_each_turn(tmp_path: Path) -> None:
    before = time.time()
    play(tmp_path)
    for row, trace in zip(lines(tmp_path / "timings.jsonl"), read_traces(tmp_path), strict=True):
        assert before <= row["began"] <= time.time()
        assert len(row["turns"]) == len(trace.turns)
        assert all(model >= 0.01 for model, _, _ in row["turns"])
        totals = [sum(column) for column in zip(*row["turns"], strict=True)]
        assert totals[:2] == pytest.approx([row["model_s"], row["tool_s"]])
        assert totals[2] <= row["verifier_s"]


def test_summaries_add_up_the_seconds_of_recorded_episodes(tmp_path: Path) -> None:
    async def sums() -> Summary:
        found, env, agent = Summary((0.0, 1.0)), environment(), Slow(tmp_path / module.FILE)
        with RunFolder(tmp_path, {}) as folder, Recorder(folder) as recorder:
            async for group in rollouts(recorder.watch(env), agent, env.tasks("test")[:3], folder=folder):
                found.add(group.rollouts)
        return found

    seconds = asyncio.run(sums()).seconds
    assert seconds.keys() == {"model", "tool", "verifier", "queue", "total"}
    assert seconds["model"] == pytest.approx(sum(row["model_s"] for row in lines(tmp_path / "timings.jsonl")))


def test_a_stopped_run_says_what_was_in_play(tmp_path: Path) -> None:
    class Stop(BaseException):
        """A kill, as the process meets it."""

    class Stopped(Slow):
        def model(self, task: qn.Task[Any], seed: int) -> Any:
            ask = super().model(task, seed)

            async def until(request: Request) -> Reply:
                if len(self.seen) == 2:
                    raise Stop
                reply: Reply = await ask(request)
                return reply

            return until

    agent, env = Stopped(tmp_path / module.FILE), environment()
    with pytest.raises(Stop), RunFolder(tmp_path, {}) as folder, Recorder(folder) as recorder:
        asyncio.run(run(recorder.watch(env), agent, folder))
    left = lines(tmp_path / module.FILE)
    assert [line["turn"]["index"] for line in left if "turn" in line and line["key"][0] == env.tasks("test")[0].id]
    play(tmp_path)
    assert lines(tmp_path / module.FILE) == []
    assert len(list(read_traces(tmp_path))) == 2


def test_a_large_file_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    first = play(tmp_path).seen[2]
    assert ["turn" in line for line in first] == [False, True, True]
    second = play(tmp_path / "again", group=2).seen[-1]  # It holds nothing of the three episodes before.
    assert {str(line.get("began") or line["key"]) for line in second} == {str(second[0]["began"])}


def test_a_replayable_harness_stays_one(tmp_path: Path) -> None:
    class Program(ToolLoop, frozen=True):
        def replay_harness(self, trace: Trace) -> Harness:
            return ReplayHarness(trace)

    trace = Trace(environment="", fingerprint="", tools_digest="", task="a", task_digest="", seed=0, config=qn.Config())
    with RunFolder(tmp_path, {}) as folder, Recorder(folder) as recorder:
        harness = recorder.watch(environment(harness=Program())).harness
        assert isinstance(harness, Replayable)
        assert harness.replay_harness(trace) == ReplayHarness(trace)
        assert not isinstance(recorder.watch(environment()).harness, Replayable)
