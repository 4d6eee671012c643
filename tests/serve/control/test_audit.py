"""A served environment is a subject of the audit, as far as a server tells."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from quintain.audit.kernel.child import Child
from quintain.audit.kernel.loader import Subject, describe, load_subject
from quintain.audit.kernel.probe import Op, Probe
from quintain.audit.subjects.failure import SubjectFailure
from quintain.errors import UsageError
from tests.serve.control.conftest import here
from tests.serve.serving import Served


def subject(served: Served, name: str) -> Any:
    return load_subject(Subject(f"{served.url}/{name}")).factory()


def test_a_session_plays_goes_back_and_is_judged(served: Served) -> None:
    session = subject(served, "counter?split=train")
    assert session.tasks() == [f"train-{n}" for n in range(1, 6)]
    assert session.budget == here("counter").config.max_turns
    assert session.reset("train-2", 1) == session.prompt("train-2") == "Be exact.\n\nCount to 2, then submit it."
    start = session.digest()
    moment = session.snapshot()
    assert session.call("add", {"by": 2}) == "The count is 2."
    assert "error" in session.call("add", {"by": float("nan")})
    assert "error" in session.call("add", {"by": "x"})
    assert "error" in session.call("nothing", {})
    assert session.score() == {"counted": 0.0, "score": 0.0}
    session.restore(moment)
    assert session.digest() == start
    assert session.call("add", {"by": 1}) == "The count is 1."
    assert session.call("submit", {"answer": 2}) == "Handed in."
    assert session.score() == {"counted": 1.0, "score": 1.0}
    assert session.explain()[0]["name"] == "counted"
    assert "ended" in session.call("peek", {})["error"]
    session.close()


def test_a_simulated_user_says_what_the_task_tells_it(served: Served) -> None:
    session = subject(served, "talk")
    assert session.reset("test-3", 0).endswith("Your number is 3. Tell it when you are asked.")
    assert session.answer("Fine.") is None
    assert session.score()["score"] == 0.0
    session.close()


def test_a_broken_server_is_a_failure_of_the_subject(served: Served) -> None:
    session = subject(served, "rough")
    with pytest.raises(SubjectFailure, match="cannot be built"):
        session.reset("broken", 0)
    session.reset("plain", 0)
    with pytest.raises(SubjectFailure, match="the world"):
        session.call("crash", {})
    assert session.score() is None
    assert session.explain()[-1]["kind"] == "quintain:tool_bug"
    session.close()


def test_a_missing_server_or_environment_is_an_error_at_once(served: Served) -> None:
    with pytest.raises(UsageError, match="no environment 'nothing'"):
        subject(served, "nothing")
    with pytest.raises(UsageError, match="no split 'night'"):
        load_subject(Subject(f"{served.url}/counter", {"split": "night"}))
    about = describe(load_subject(Subject(f"{served.url}/counter")))
    assert (about.kind, about.tasks) == ("remote", ("test-1", "test-2"))
    assert not about.offers & {"oracle", "hidden", "state"}


def test_a_probe_leaves_no_episode_behind(served: Served) -> None:
    def held() -> str:
        metrics = httpx.get(f"{served.url}/metrics").text.splitlines()
        return "".join(line for line in metrics if line.startswith('quintain_episodes{environment="counter"'))

    before = held()
    lanes = tuple((Op("reset", on, "test-1"), Op("snapshot", on), Op("call", on, "peek", {})) for on in "ab")
    probe = Probe((Op("reset", name="test-1"), Op("call", name="add", value={"by": 1}), Op("together", lanes=lanes)))
    with Child(Subject(f"{served.url}/counter")) as child:
        record = child.play(probe, 60)
    assert record.seen[1].value == "The count is 1."
    assert held() == before


@pytest.mark.slow
def test_the_command_line_audits_a_url(served: Served, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "quintain", "audit", f"{served.url}/rough", "--check", "x.odd_calls", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
    assert done.returncode in {0, 1}, done.stderr
    assert "findings" in json.loads(done.stdout)


@pytest.mark.slow
def test_the_command_line_runs_a_url_and_replays_it(served: Served, tmp_path: Path) -> None:
    def quintain(*arguments: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "quintain", *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    chosen = ("--agent", "random", "--tasks", "3", "--set", "max_turns=4")
    for spec, out in ((f"{served.url}/sales", "there"), ("sales", "here")):
        quintain("run", spec, *chosen, "--out", out)
    records = [sorted((tmp_path / out / "traces.jsonl").read_bytes().splitlines()) for out in ("there", "here")]
    assert records[0] == records[1]
    assert quintain("replay", "there", "--processes", "1")["agree"]
