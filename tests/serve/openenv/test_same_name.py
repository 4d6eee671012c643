"""Two callers that choose one name for their episodes at the same time: one of them plays, the other is told so."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.serve.operation.raw import ask
from tests.serve.serving import Served, serve, until

LATE = {"split": "train", "index": 1}
Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve("gated", folder=tmp_path) as server:
        yield server
        server.gates.open("start")


def reset(served: Served, name: str = "", *, session: str = "", task: Any = LATE) -> Answer:
    headers = {"x-session-id": session} if session else {}
    body = {**task, **({"episode_id": name} if name else {})}
    return ask(served.port, "POST", "/openenv/gated/reset", body=body, headers=headers)


def closed(served: Served, session: str) -> bytes:
    params = {"session_id": session}
    body = {"jsonrpc": "2.0", "id": 1, "method": "openenv/session/close", "params": params}
    return ask(served.port, "POST", "/openenv/gated/mcp", body=body, headers={"x-session-id": session})[2]


def test_two_resets_at_once_with_one_name_are_one_episode_and_a_conflict(served: Served) -> None:
    another = reset(served, task={"split": "train", "index": 0})[1]["x-session-id"]
    with ThreadPoolExecutor() as pool:
        first: Future[Answer] = pool.submit(reset, served, "mine")
        until(lambda: served.gates.entered("start") == 1)
        assert [reset(served, "mine")[0], reset(served, "mine", session=another)[0]] == [409, 409]
        served.gates.open("start")
        assert first.result()[0] == 200
        served.gates.close("start")
        second: Future[Answer] = pool.submit(reset, served, "yours", session=another)
        until(lambda: served.gates.entered("start") == 2)
        assert reset(served, "yours")[0] == 409
        served.gates.open("start")
        assert second.result()[0] == 200
    for name in ("mine", "yours"):
        assert ask(served.port, "GET", f"/openenv/gated/state?episode_id={name}")[0] == 200


def test_a_name_is_free_again_when_nothing_could_be_begun(served: Served) -> None:
    assert reset(served, "mine", task={"split": "none"})[0] == 400
    assert reset(served, "mine", task={"split": "train", "index": 0})[0] == 200
    assert reset(served, "mine", task={"split": "train", "index": 0})[0] == 409


def test_sessions_that_had_one_name_after_each_other_are_closed_in_any_order(served: Served) -> None:
    sessions: list[str] = []
    for _ in range(2):
        begun = reset(served, "mine", task={"split": "train", "index": 0})
        assert begun[0] == 200
        sessions.append(begun[1]["x-session-id"])
        leave = {"action": {"type": "call_tool", "tool_name": "finish_here", "arguments": {}}, "episode_id": "mine"}
        assert ask(served.port, "POST", "/openenv/gated/step", body=leave)[0] == 200
    assert [b'"closed":true' in closed(served, one) for one in reversed(sessions)] == [True, True]


def test_a_name_of_an_episode_that_is_not_used_any_more_is_free(tmp_path: Path) -> None:
    before = "import quintain.serve.openenv.sessions as sessions\nsessions.REUSE_S = 0.5"
    with serve("gated", folder=tmp_path, before=before) as served:
        first, again = {"split": "train", "index": 0}, {"split": "train", "index": 0}
        session = reset(served, "mine", task=first)[1]["x-session-id"]
        status, _, said = reset(served, "mine", task=again)
        assert status == 409
        assert b"10 s" in said
        until(lambda: reset(served, "mine", task=again)[0] == 200)
        state = ask(served.port, "GET", f"/openenv/gated/state?session_id={session}")
        assert state[0] == 404, "the session before is closed"
