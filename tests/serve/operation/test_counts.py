"""Reports of failures, on the error stream and in /metrics, and how often they are repeated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quintain.config import Config
from quintain.errors import Failure
from quintain.serve.http.metrics import LONGEST, Metrics
from quintain.trace import End, Trace
from tests.serve.operation.raw import ask
from tests.serve.serving import serve


def test_a_failure_is_said_with_its_episode(tmp_path: Path) -> None:
    with serve("rough", folder=tmp_path) as served:
        episode = json.loads(ask(served.port, "POST", "/v1/episodes", body={"environment": "rough"})[2])["id"]
        ask(served.port, "POST", f"/v1/episodes/{episode}/calls", body={"name": "crash", "arguments": {}})
        (line,) = served.said.splitlines()
        assert f"episode {episode!r} of rough" in line
        assert r"S quintain:tool_bug: RuntimeError: 'the world\nfell" in line
        counted = 'quintain_failures_total{environment="rough",kind="quintain:tool_bug",part="S"} 1'
        text = ask(served.port, "GET", "/metrics")[2].decode()
        assert counted in text
        assert 'quintain_episodes_begun_total{environment="rough"} 1' in text


def test_many_alike_are_said_a_few_times(caplog: pytest.LogCaptureFixture) -> None:
    counts = Metrics(["desk"])
    for number in range(1000):
        counts.end(f"e{number}", failed("x" * 1000))
    labels = {"environment": "desk", "part": "V", "kind": "verifier_error"}
    assert counts.registry.get_sample_value("quintain_failures_total", labels) == 1000
    assert len(caplog.messages) == 10
    assert "'e511'" in caplog.messages[-1]
    assert "(512 such so far)" in caplog.messages[-1]
    assert all(len(said) < LONGEST + 200 for said in caplog.messages)


def failed(message: str) -> Trace:
    failure = Failure(
        component="V", kind="verifier_error", stage="verification", type="ValueError", message=message, turn=0
    )
    return Trace(
        environment="desk",
        fingerprint="",
        tools_digest="",
        task="a",
        task_digest="",
        seed=0,
        config=Config(),
        end=End.FAILED,
        failure=failure,
    )
