"""Bytes that nobody should send: each gets an error that says so, and none of them a 500, a traceback or a turn."""

from __future__ import annotations

import contextlib
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.ors.wire import Ors, connected, frames, read_answer, request, result, text
from tests.serve.serving import Served

BROKEN: dict[str, bytes] = {
    "nothing": b"",
    "a space": b" ",
    "half": b'{"split": "train", "index"',
    "two": b"{}{}",
    "no JSON": b"split=train&index=0",
    "NaN": b'{"split": "train", "index": NaN}',
    "a huge number": b'{"split": "train", "index": 1e400}',
    "many digits": b'{"split": "train", "index": ' + b"9" * 100_000 + b"}",
    "no UTF-8": b'{"split": "\xff\xfe", "index": 0}',
    "no UTF-8 in what is kept as it came": b'{"name": "add", "input": {"by": "\xff"}}',
    "overlong UTF-8": b'{"split": "\xc0\xaf", "index": 0}',
    "a lone surrogate": b'{"split": "\\ud800", "index": 0}',
    "a control character": b'{"split": "a\x01", "index": 0}',
    "UTF-16": '{"split": "train", "index": 0}'.encode("utf-16"),
    "a mark of order": b"\xef\xbb\xbf" + b'{"split": "train", "index": 0}',
    "nested arrays": b"[" * 100_000,
    "nested objects": b'{"split":' * 20_000 + b"1" + b"}" * 20_000,
    "nested in a task": b'{"task_spec": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
}
PATHS = ("/create", "/counter/call", "/counter/tasks", "/counter/task_range", "/create_session")


def held(answer: httpx.Response) -> None:
    """The answer blames who asked, in the protocol's own shape."""
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text[:500])
    assert answer.json()["detail"]
    assert "Traceback" not in answer.text
    assert 'File "' not in answer.text
    assert len(answer.content) < 20_000


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", list(BROKEN.values()), ids=list(BROKEN))
def test_a_broken_body(ors: Ors, path: str, body: bytes) -> None:
    sid = ors.open() if "call" in path else uuid.uuid4().hex
    answer = ors.post(path, body, sid)
    if path == "/create_session" and answer.status_code == 200:
        return  # it says nothing of its body, and reference servers do not read it
    held(answer)


WHOLE: dict[str, Any] = {
    "/create": {"env_name": "counter", "task_spec": {"id": "train-1", "split": "train"}, "secrets": {"a": "b"}},
    "/counter/call": {"name": "add", "input": {"by": 1, "x": {"y": ["z"]}}, "task_id": "k"},
    "/counter/tasks": {"split": "train"},
}


@pytest.mark.parametrize("path", WHOLE)
@pytest.mark.parametrize("piece", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf0\x9f"], ids=bytes.hex)
def test_bytes_that_are_no_text_are_refused_wherever_they_stand(ors: Ors, path: str, piece: bytes) -> None:
    sid, whole = ors.open() if "call" in path else uuid.uuid4().hex, json.dumps(WHOLE[path]).encode()
    for place in range(len(whole) + 1):
        held(ors.post(path, whole[:place] + piece + whole[place:], sid))
    if "call" in path:
        assert text(ors.call(sid, "peek")) == "0"


def test_keys_twice(ors: Ors) -> None:
    """JSON allows it, and every parser of the field takes the last one; nothing else may happen."""
    sid = ors.open()
    answer = ors.post("/counter/call", b'{"name": "peek", "name": "add", "input": {"by": 1, "by": 2}}', sid)
    assert text(result(answer.content)) == "The count is 2."


def test_a_body_that_is_too_long_is_413_before_it_is_read(ors: Ors, served: Served) -> None:
    before = served.memory
    sid = ors.open()
    body = json.dumps({"name": "echo", "input": {"text": "x" * 50_000_000}}).encode()
    try:
        answer = ors.post("/counter/call", body, sid)
    except httpx.WriteError:
        answer = None  # the server closed while we were still writing, which is its right
    assert answer is None or answer.status_code == 413
    assert served.memory - before < 100_000_000
    assert text(ors.call(sid, "peek")) == "0"


def test_arguments_that_nest_deeply_are_the_models_mistake_or_the_callers(ors: Ors) -> None:
    sid = ors.open()
    deep = b'{"name": "echo", "input": {"text": ' + b"[" * 3_000 + b"]" * 3_000 + b"}}"
    answer = ors.post("/counter/call", deep, sid)
    if answer.status_code == 200:
        assert result(answer.content)["reason"] == "input_validation"
    else:
        held(answer)
    assert text(ors.call(sid, "peek")) == "0"


@pytest.mark.parametrize("name", ["", "__init__", "add\n", "x" * 100_000, "copy", "finish", "🜁", "\x00", "../add"])
def test_names_that_are_no_tools(ors: Ors, name: str) -> None:
    sid = ors.open()
    answer = ors.post("/counter/call", {"name": name, "input": {}}, sid)
    if answer.status_code == 200:
        assert result(answer.content)["reason"] in {"not_found", "input_validation"}
    else:
        held(answer)
    assert text(ors.call(sid, "peek")) == "0"


@pytest.mark.parametrize(
    "path",
    [
        "/counter/../health",
        "//counter//tools",
        "/%2e%2e/health",
        "/counter%2ftools",
        "/counter/tools%00",
        "/" + "a" * 20_000,
        "/counter/" * 500,
        "/%ff%fe/tools",
        "/counter/tools?" + "x=1&" * 2_000,
        "/counter/tools#x",
        "*",
    ],
)
def test_odd_paths(served: Served, path: str) -> None:
    with connected(served.port) as connection:
        connection.sendall(request(path, method="GET"))
        status, body = read_answer(connection)
    assert status in {200, 308, 400, 404, 405, 414, 431}, (status, body)
    assert b"Traceback" not in body


PING = b"POST /ping HTTP/1.1\r\nHost: 127.0.0.1\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SMUGGLED = {
    "two lengths": PING + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "length and chunks": (
        PING + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\n\r\nGET /version HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    ),
    "a space before the colon": PING + b"Content-Length : 4\r\n\r\nabcd",
    "a negative length": PING + b"Content-Length: -1\r\n\r\n",
    "a length that is no number": PING + b"Content-Length: 0x4\r\n\r\nabcd",
    "a length beyond all numbers": PING + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "a chunk without a size": PING + b"Transfer-Encoding: chunked\r\n\r\nzz\r\na\r\n0",
    "an unknown coding": PING + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "a folded header": PING + b"X-Session-ID: a\r\n b\r\n\r\n",
    "a bare line feed": b"GET /health HTTP/1.1\nHost: 127.0.0.1\n\n",
    "a null in a header": HEALTH + b"X-Session-ID: a\x00b\r\n\r\n",
    "an endless header": HEALTH + b"X: " + b"x" * 300_000 + b"\r\n\r\n",
    "many headers": HEALTH + b"X: y\r\n" * 20_000 + b"\r\n",
    "no version": b"GET /health\r\n\r\n",
    "another version": b"GET /health HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "another upgrade": HEALTH + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "a socket nobody serves": (
        HEALTH + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ),
    "two sessions": PING + b"X-Session-ID: a\r\nX-Session-ID: b\r\n\r\n",
    "an unknown method": b"BREW /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "an expectation": PING + b"Expect: 200-nothing\r\nContent-Length: 0\r\n\r\n",
}


def answered(port: int, sent: bytes) -> bytes:
    """All that comes back within a second."""
    received = b""
    with connected(port) as connection, contextlib.suppress(ConnectionError, TimeoutError):
        connection.settimeout(1)
        connection.sendall(sent)
        while piece := connection.recv(65_536):
            received += piece
    return received


@pytest.fixture(scope="module")
def smuggled(served: Served) -> dict[str, bytes]:
    """What came back on each; asked side by side, for many are never answered."""
    with ThreadPoolExecutor(len(SMUGGLED)) as pool:
        answers = pool.map(lambda sent: answered(served.port, sent), SMUGGLED.values())
        return dict(zip(SMUGGLED, answers, strict=True))


@pytest.mark.parametrize("name", SMUGGLED)
def test_odd_requests_are_refused_or_cut_off_and_never_two(ors: Ors, smuggled: dict[str, bytes], name: str) -> None:
    received = smuggled[name]
    assert not received.startswith(b"HTTP/1.1 5") or received.startswith(b"HTTP/1.1 501"), received[:300]
    assert b"Traceback" not in received
    assert b"build_sha" not in received
    assert received.count(b"HTTP/1.1 ") <= 1
    assert ors.get("/health").status_code == 200


def test_a_chunked_body_is_a_body(ors: Ors, served: Served) -> None:
    sid = ors.open()
    body = json.dumps({"name": "add", "input": {"by": 4}}).encode()
    chunks = b"".join(b"%x\r\n%b\r\n" % (1, body[n : n + 1]) for n in range(len(body))) + b"0\r\n\r\n"
    head = (
        f"POST /counter/call HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Session-ID: {sid}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with connected(served.port) as connection:
        connection.sendall(head.encode() + chunks)
        assert text(result(read_answer(connection)[1])) == "The count is 4."


json_like = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from(["train", "counter", "add", "", "train-1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "split",
    "index",
    "start",
    "stop",
    "env_name",
    "task_spec",
    "secrets",
    "toolset_name",
    "name",
    "input",
    "task_id",
)


def spoilt(body: object, place: int, piece: bytes) -> bytes:
    """A body with other bytes at some place of it."""
    whole = json.dumps(body, ensure_ascii=False).encode()
    place %= len(whole) + 1
    return whole[:place] + piece + whole[place + len(piece) // 2 :]


bodies = st.one_of(
    st.binary(max_size=60),
    st.builds(spoilt, st.sampled_from(list(WHOLE.values())), st.integers(0, 200), st.binary(max_size=4)),
    json_like.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(st.sampled_from(FIELDS), json_like, max_size=5).map(lambda value: json.dumps(value).encode()),
)


@given(
    path=st.sampled_from(["/create", "/call", "/tasks", "/num_tasks", "/task", "/task_range", "/score_group"]),
    body=bodies,
)
@settings(max_examples=250)
def test_fuzzed_bodies_are_somebodys_mistake(ors: Ors, fuzzed: dict[str, str], path: str, body: bytes) -> None:
    sid = uuid.uuid4().hex if path == "/create" else fuzzed["sid"]
    answer = ors.post(f"/counter{path}" if path != "/create" else path, body, sid)
    assert answer.status_code < 500, (path, body, answer.text)
    if path == "/call" and answer.status_code == 200:
        events = [frame for frame in frames(answer.content) if frame.event]
        assert events[-1].event == "end" or events[-1].data == "unknown task_id", (body, events)
        if events[-1].event == "end" and result(answer.content).get("output", {}).get("finished"):
            fuzzed["sid"] = ors.open()
    elif answer.status_code != 200:
        held(answer)


@pytest.fixture(scope="module")
def fuzzed(ors: Ors) -> dict[str, str]:
    """A session for fuzzed calls; a new one is put in when they have ended it."""
    return {"sid": ors.open()}


@given(
    headers=st.dictionaries(
        st.sampled_from(["X-Session-ID", "X-Secrets", "X-API-Key", "X-Deployment", "Accept", "Content-Type", "Origin"]),
        st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f"), max_size=40),
        max_size=4,
    )
)
@settings(max_examples=60)
def test_fuzzed_headers_are_somebodys_mistake(ors: Ors, headers: dict[str, str]) -> None:
    raw: dict[bytes, bytes] = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    body: Any = {"split": "train", "index": 0}
    for path in ("/create", "/counter/tasks", "/ping", "/delete"):
        assert ors.http.post(path, headers=raw, json=body).status_code < 500
