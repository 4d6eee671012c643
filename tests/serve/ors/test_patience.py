"""What takes longer than a request may: worlds that start late, and sessions that nobody asks for."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.serve.ors.wire import Ors, begun, connected, frames, result, text, vanish
from tests.serve.serving import Served, serve

pytestmark = pytest.mark.slow


def test_a_world_that_starts_late_says_so(ors: Ors, served: Served) -> None:
    """The clients of the field wait out exactly this answer."""
    served.gates.close("start")
    sid = ors.open("gated", index=1)
    body = {"name": "mark", "input": {"label": "early"}}
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(ors.get, "/gated/prompt", sid), pool.submit(ors.post, "/gated/call", body, sid)]
        answers = [one.result() for one in waiting]
    assert 20 < time.monotonic() - began < 29  # clients give up a request that is silent for 30 s
    for answer in answers:
        assert answer.status_code == 503
        assert answer.headers["x-backend-state"] == "starting"
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.json()["detail"]
    served.gates.open("start")
    assert ors.get("/gated/prompt", sid).json()[0]["text"].startswith("Wait")
    assert text(ors.call(sid, "mark", env="gated", label="late")) == "Marked 1."


def test_a_client_that_is_gone_without_a_word_loses_nothing(ors: Ors, served: Served) -> None:
    sid, gate = ors.open("gated"), "vanished"
    before = served.descriptors
    with connected(served.port) as connection:
        key = begun(connection, sid, "hold", {"gate": gate})
        served.gates.await_entry(gate)
        assert served.descriptors == before + 1
        vanish(connection)
    limit = time.monotonic() + 30
    while served.descriptors > before:  # Its next comment, after 10 s, finds that nobody is there.
        assert time.monotonic() < limit
        time.sleep(0.1)
    served.gates.open(gate)
    body = {"name": "hold", "input": {"gate": gate}, "task_id": key}
    assert text(result(ors.post("/gated/call", body, sid).content)) == f"Through {gate}."
    assert served.gates.entered(gate) == 1


def test_a_session_that_nobody_asks_for_is_closed(tmp_path: Path) -> None:
    with serve("counter", folder=tmp_path, options=("--idle", "3")) as server:
        ors = Ors(server.url)
        with ors.http:
            kept, left = ors.open(), ors.open()
            limit = time.monotonic() + 12
            while time.monotonic() < limit:
                assert ors.post("/ping", sid=kept).status_code == 200
                time.sleep(0.5)
            assert ors.post("/ping", sid=left).status_code == 404
            assert ors.get("/counter/prompt", left).status_code == 404
            assert text(ors.call(kept, "add")) == "The count is 1."


def test_a_session_whose_tool_runs_is_not_idle(tmp_path: Path) -> None:
    with serve("gated", folder=tmp_path, options=("--idle", "1")) as server:
        ors = Ors(server.url)
        with ors.http:
            sid = ors.open("gated")
            gate = "long"
            with ors.http.stream(
                "POST",
                "/gated/call",
                json={"name": "hold_awaiting", "input": {"gate": gate}},
                headers={"X-Session-ID": sid},
                timeout=60,
            ) as stream:
                time.sleep(12)
                server.gates.open(gate)
                events = frames(b"".join(stream.iter_raw()))
            assert events[-1].event == "end", events
            assert "Through long." in events[-1].data
            assert text(ors.call(sid, "mark", env="gated", label="after")) == "Marked 2."


def test_a_server_that_ends_lets_a_call_end(tmp_path: Path) -> None:
    """SIGTERM: what runs is answered, what comes is refused, and the status is 0."""
    with serve("gated", folder=tmp_path) as server:
        ors = Ors(server.url)
        with ors.http:
            sid = ors.open("gated")
            body = {"name": "hold_awaiting", "input": {"gate": "door"}}
            with ors.http.stream("POST", "/gated/call", json=body, headers={"X-Session-ID": sid}) as stream:
                lines = stream.iter_raw()
                first = next(lines)
                server.process.terminate()
                time.sleep(1)
                server.gates.open("door")
                events = frames(first + b"".join(lines))
        assert server.process.wait(30) == 0
        assert "Through door." in events[-1].data
        server.ended = True
