"""Anything at all, over every route, by an agent's key, in sessions that live, have ended, failed or never were."""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quintain.serve.http.keys import add
from tests.serve.blabbing import SCRIPT, TRUTH
from tests.serve.serving import Served, serve

pytestmark = pytest.mark.slow

ROUTES = [
    *(("GET", path) for path in ("/prompt", "/messages", "/task_tools", "/safe/tools", "/safe/splits", "/{word}")),
    *(("POST", f"/safe/{name}") for name in ("tasks", "task", "task_range", "num_tasks", "call", "score_group")),
    *(("POST", f"/{name}") for name in ("create", "create_session", "delete", "ping", "call", "{word}/call")),
    *(("GET", f"/v1/episodes{rest}") for rest in ("", "/{sid}", "/{sid}/trace", "/{sid}?wait={word}")),
    *(
        ("POST", f"/v1/episodes/{{sid}}/{name}")
        for name in ("calls", "answer", "replies", "terminate", "verify", "fork")
    ),
    *(("POST", f"/v1/{name}") for name in ("episodes", "episodes/restore", "{word}")),
    *(("POST", f"/openenv/safe/{name}") for name in ("reset", "step", "mcp", "safe/task", "safe/task_range")),
    *(("GET", f"/openenv/safe/{name}") for name in ("state", "state?episode_id={word}", "{word}")),
    ("POST", "/e/{word}/mcp"),
    ("DELETE", "/v1/episodes/{sid}"),
]
WORDS = st.sampled_from(
    ["", "a", "look", "shake", "say", "hint", "answer", "train", "train-safe", "\0", "é", "9" * 400]
)
FIELDS = """
    name input task_id split index env_name task_spec secrets start stop text arguments reply message role content
    calls environment task seed reason now data action type tool_name jsonrpc id method params session_id
"""
NAMES = st.sampled_from(FIELDS.split())
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=8,
)
CALLS = st.builds(lambda name, arguments: {"name": name, "input": arguments}, WORDS, VALUES | st.just({}))
WHOLE = (VALUES | CALLS).map(lambda value: json.dumps(value).encode())
SPOILT = st.builds(
    lambda body, place, piece: body[: place % (len(body) + 1)] + piece + body[place % (len(body) + 1) :],
    WHOLE, st.integers(0, 1000), st.binary(max_size=4),
)  # fmt: skip
BODIES = WHOLE | SPOILT | st.binary(max_size=40)
SIDS = ["open", "ended", "void", "none"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    folder = tmp_path_factory.mktemp("anything")
    key = add(folder / "keys", "agent", "agent")
    file = Path(__file__).with_name("blabbing.py")
    with serve("env", folder=folder, file=file, options=("--keys", str(folder / "keys"))) as server:
        yield server, key


def ask(served: tuple[Served, str], method: str, path: str, body: bytes, sid: str) -> tuple[int, bytes]:
    server, key = served
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    kind = "application/octet-stream" if path.endswith("restore") else "application/json"
    try:
        line.request(method, path, body, {"X-API-Key": key, "X-Session-ID": sid, "Content-Type": kind})
        answer = line.getresponse()
        return answer.status, answer.read()
    finally:
        line.close()


@settings(max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(route=st.sampled_from(ROUTES), word=WORDS, sid=st.sampled_from(SIDS), body=BODIES)
def test_is_answered(served: tuple[Served, str], *, route: tuple[str, str], word: str, sid: str, body: bytes) -> None:
    if sid != "none" and ask(served, "POST", "/ping", b"", sid)[0] == 404:
        assert ask(served, "POST", "/create", b'{"split": "train", "index": 0}', sid)[0] == 200
        tool = {"ended": b'"say", "input": {"word": "x"}', "void": b'"shake", "input": {}'}.get(sid)
        if tool:
            ask(served, "POST", "/call", b'{"name": ' + tool + b"}", sid)
    path = route[1].format(sid=sid, word=urllib.parse.quote(word))
    status, said = ask(served, route[0], path, b"" if route[0] == "GET" else body, sid)
    assert status < 500 or b"void" in said, (status, said[:500])
    for secret in (TRUTH, SCRIPT, "Traceback", 'File "'):
        assert secret.encode() not in said, said[:500]
    assert ask(served, "GET", "/health", b"", sid) == (200, b'{"status":"ok"}')
