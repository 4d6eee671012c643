"""The life of a session: from its id to its deletion, and everything that may not be."""

from __future__ import annotations

import base64
import json
import threading
import uuid
from collections.abc import Iterator

import pytest

from tests.serve.environments import SPLITS
from tests.serve.ors.wire import Ors, connected, frames, read_answer, request, text
from tests.serve.serving import Served


@pytest.mark.parametrize("body", [None, {}, {"env": {"OPENAI_BASE_URL": "http://127.0.0.1"}}])
def test_an_id_comes_as_events(ors: Ors, body: object) -> None:
    answer = ors.post("/create_session", body)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    first, last = frames(answer.content)
    assert (first.event, last) == ("task_id", ("end", ""))
    assert len(first.data) >= 32
    assert ors.post("/ping", sid=first.data).status_code == 404  # an id is not yet a session


@pytest.mark.parametrize(("length", "status"), [(255, 200), (256, 400)])
def test_an_id_has_a_bound(ors: Ors, length: int, status: int) -> None:
    answer = ors.post("/create", {"split": "train", "index": 0}, uuid.uuid4().hex.ljust(length, "x"))
    assert answer.status_code == status, answer.text


def test_ids_differ(ors: Ors) -> None:
    assert len({frames(ors.post("/create_session").content)[0].data for _ in range(50)}) == 50


@pytest.mark.parametrize("index", [0, 4, -1])
def test_an_episode_by_its_place(ors: Ors, index: int) -> None:
    sid = ors.open(index=index)
    number = range(1, SPLITS["train"] + 1)[index]
    told = [block["text"] for block in ors.get("/counter/prompt", sid).json()]
    assert told == ["Be exact.", f"Count to {number}, then submit it."]


@pytest.mark.parametrize("split", list(SPLITS))
def test_an_episode_by_the_task_that_was_listed(ors: Ors, split: str) -> None:
    specs = ors.post("/counter/tasks", {"split": split}).json()["tasks"]
    for number, spec in enumerate(specs, 1):
        sid = uuid.uuid4().hex
        assert ors.post("/create", {"env_name": "counter", "task_spec": spec}, sid).status_code == 200
        assert ors.get("/counter/prompt", sid).json()[1]["text"].startswith(f"Count to {number},")


def test_the_first_environment_is_the_default(ors: Ors) -> None:
    sid = uuid.uuid4().hex
    assert ors.post("/create", {"split": "train", "index": 0}, sid).status_code == 200
    assert ors.get("/prompt", sid).json()[1]["text"].startswith("Count to 1,")


def test_the_session_decides_which_environment_answers(ors: Ors) -> None:
    sid = ors.open("words")
    for path in ("/words/prompt", "/prompt", "/counter/prompt"):
        assert (
            ors.http.get(path, headers={"x-session-id": sid}, follow_redirects=True).json()[0]["text"].startswith("Say")
        )


def test_prompt_messages_and_tools(ors: Ors) -> None:
    sid = ors.open()
    # Most clients ask for nothing else: the rules of the game are in it, and first.
    words = ("Be exact.", "Count to 1, then submit it.")
    assert ors.get("/counter/prompt", sid).json() == [{"text": one, "detail": None, "type": "text"} for one in words]
    messages = ors.get("/counter/messages", sid).json()
    assert [message["role"] for message in messages] == ["system", "user"]
    assert [message["blocks"][0]["text"] for message in messages] == ["Be exact.", "Count to 1, then submit it."]
    assert all(set(message) == {"role", "blocks", "detail"} for message in messages)
    own = ors.get("/counter/task_tools", sid).json()
    assert own == ors.get("/counter/tools").json()


def test_the_prompt_stays_the_task(ors: Ors) -> None:
    sid = ors.open()
    before = ors.get("/counter/prompt", sid).json(), ors.get("/counter/messages", sid).json()
    ors.call(sid, "add")
    assert (ors.get("/counter/prompt", sid).json(), ors.get("/counter/messages", sid).json()) == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/create"),
        ("GET", "/counter/prompt"),
        ("GET", "/counter/task_tools"),
        ("GET", "/counter/messages"),
        ("POST", "/counter/call"),
        ("POST", "/counter/score_group"),
        ("POST", "/ping"),
        ("POST", "/delete"),
        ("POST", "/delete_session"),
    ],
)
@pytest.mark.parametrize("headers", [{}, {"X_Session_ID": ""}, {"X_Session_ID": " \t "}])
def test_without_an_id(served: Served, method: str, path: str, headers: dict[str, str]) -> None:
    bodies = {"/create": {"split": "train", "index": 0}, "/counter/call": {"name": "peek", "input": {}}}
    with connected(served.port) as connection:
        connection.sendall(request(path, bodies.get(path), method=method, **headers))
        status, body = read_answer(connection)
    assert status == 400
    assert json.loads(body) == {"detail": "X-Session-ID header is required"}


@pytest.mark.parametrize("path", ["prompt", "task_tools", "messages", "call", "score_group"])
def test_a_session_that_is_not_there(ors: Ors, path: str) -> None:
    body = {"name": "peek", "input": {}}
    sid = uuid.uuid4().hex
    post = path in {"call", "score_group"}
    answer = ors.post(f"/counter/{path}", body, sid) if post else ors.get(f"/counter/{path}", sid)
    assert answer.status_code == 404
    assert answer.json() == {"detail": "Active environment not found"}
    assert ors.post("/ping", sid=sid).status_code == 404


def test_an_environment_that_is_not_there_answers_for_no_session(ors: Ors) -> None:
    sid = ors.open()
    assert ors.get("/nowhere/prompt", sid).status_code == 404
    assert ors.post("/nowhere/call", {"name": "add", "input": {}}, sid).status_code == 404
    assert text(ors.call(sid, "peek")) == "0"


def test_an_id_is_stripped(ors: Ors, served: Served) -> None:
    sid = ors.open()
    with connected(served.port) as connection:
        connection.sendall(request("/counter/prompt", method="GET", X_Session_ID=f"  {sid}\t"))
        assert read_answer(connection)[0] == 200


@pytest.mark.parametrize("sid", ["x", "a b", "../../etc", "é".encode().decode("latin-1"), "x" * 200, '"', "%00", "{}"])
def test_any_word_is_an_id(ors: Ors, sid: str) -> None:
    sid = f"{sid}-{uuid.uuid4().hex[:8]}"
    raw = {b"X-Session-ID": sid.encode("latin-1")}
    assert ors.http.post("/create", headers=raw, json={"split": "train", "index": 0}).status_code == 200
    assert ors.http.get("/counter/prompt", headers=raw).status_code == 200
    assert ors.http.post("/delete", headers=raw).status_code == 200


def test_no_id_is_taken_twice(ors: Ors) -> None:
    sid = ors.open()
    ors.call(sid, "add")
    again = ors.post("/create", {"env_name": "counter", "split": "train", "index": 1}, sid)
    assert again.status_code == 400
    assert again.json() == {"detail": "Session already exists"}
    assert text(ors.call(sid, "peek")) == "1"


def test_session_id_is_created_once_among_concurrent_requests(ors: Ors) -> None:
    sid = uuid.uuid4().hex
    statuses: list[int] = []

    def create() -> None:
        statuses.append(ors.post("/create", {"split": "train", "index": 0}, sid).status_code)

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [400] * 7


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"env_name": "counter"},
        {"split": "train"},
        {"index": 0},
        {"split": "train", "index": 0, "task_spec": {}},
        {"split": "train", "task_spec": {"id": "train-1"}},
        {"split": "train", "index": "x"},
        {"split": "train", "index": None},
        {"split": 3, "index": 0},
        {"task_spec": []},
        {"task_spec": "train-1"},
        {"env_name": 7, "split": "train", "index": 0},
        {"split": "train", "index": 0, "surplus": True},
        {"split": "train", "index": 0, "secrets": "x"},
        {"split": "train", "index": 0, "secrets": {"a": 1}},
        [],
        7,
    ],
)
def test_malformed_session_requests_are_refused(ors: Ors, body: object) -> None:
    sid = uuid.uuid4().hex
    answer = ors.post("/create", body, sid)
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"]
    assert ors.post("/ping", sid=sid).status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"split": "nowhere", "index": 0}, 400),
        ({"split": "train", "index": 99}, 400),
        ({"split": "train", "index": -99}, 400),
        ({"env_name": "nowhere", "split": "train", "index": 0}, 404),
        ({"split": "train", "index": 0, "toolset_name": "nowhere"}, 400),
        ({"task_spec": {"number": 1}}, 422),
        ({"task_spec": {}}, 422),
        ({"task_spec": {"id": "nobody"}}, 404),
        ({"task_spec": {"id": "train-1", "split": "nowhere"}}, 400),
    ],
)
def test_wishes_that_cannot_be_met(ors: Ors, body: object, status: int) -> None:
    sid = uuid.uuid4().hex
    answer = ors.post("/create", body, sid)
    assert answer.status_code == status, answer.text
    assert answer.json()["detail"]
    assert ors.post("/create", {"split": "train", "index": 0}, sid).status_code == 200  # the id is still free


def test_secrets_come_by_header_and_by_body(ors: Ors) -> None:
    header = base64.b64encode(json.dumps({"key": {"value": "hush", "allowed_domains": ["x.org"]}}).encode()).decode()
    wish = {"split": "train", "index": 0}
    assert ors.post("/create", wish, uuid.uuid4().hex, **{"X-Secrets": header}).status_code == 200
    assert ors.post("/create", wish | {"secrets": {"key": "hush"}}, uuid.uuid4().hex).status_code == 200


@pytest.mark.parametrize("header", ["%%%", "e30", base64.b64encode(b"[]").decode(), base64.b64encode(b"{").decode()])
def test_secrets_that_cannot_be_read_break_nothing(ors: Ors, header: str) -> None:
    answer = ors.post("/create", {"split": "train", "index": 0}, uuid.uuid4().hex, **{"X-Secrets": header})
    assert answer.status_code in {200, 400, 422}


def test_deleted_once_and_twice(ors: Ors) -> None:
    sid = ors.open()
    assert ors.post("/ping", sid=sid).json() == {"status": "ok"}
    for _ in range(2):
        answer = ors.post("/delete", sid=sid)
        assert (answer.status_code, answer.json()) == (200, {"sid": sid})
    assert ors.post("/delete_session", sid=sid).json() == {"sid": sid}
    assert ors.post("/ping", sid=sid).status_code == 404
    assert ors.get("/counter/prompt", sid).status_code in {404, 410}
    assert ors.post("/counter/call", {"name": "peek", "input": {}}, sid).status_code in {404, 410}


def test_delete_session_leaves_the_episode(ors: Ors) -> None:
    sid = ors.open()
    assert ors.post("/delete_session", sid=sid).json() == {"sid": sid}
    assert ors.post("/ping", sid=sid).status_code == 200


def test_an_id_whose_session_is_deleted_is_never_an_old_episode(ors: Ors) -> None:
    sid = ors.open()
    ors.call(sid, "add")
    ors.post("/delete", sid=sid)
    answer = ors.post("/create", {"split": "train", "index": 0}, sid)
    assert answer.status_code in {200, 400}
    if answer.status_code == 200:
        assert text(ors.call(sid, "peek")) == "0"


def test_a_world_that_cannot_be_built_is_no_zero(ors: Ors) -> None:
    sid = ors.open("rough", index=1)
    for path in ("prompt", "messages"):
        answer = ors.get(f"/rough/{path}", sid)
        assert answer.status_code == 500
        assert "Traceback" not in answer.text
    answer = ors.post("/rough/call", {"name": "touch", "input": {}}, sid)
    assert answer.status_code == 500
    assert ors.post("/delete", sid=sid).status_code == 200


@pytest.fixture
def waiting(ors: Ors, served: Served) -> Iterator[str]:
    """A session whose world is being built until the gate opens."""
    served.gates.close("start")
    sid = ors.open("gated", index=1)
    yield sid
    served.gates.open("start")
    ors.post("/delete", sid=sid)


def test_a_slow_start_holds_up_nobody_else(ors: Ors, waiting: str) -> None:
    assert ors.get("/gated/task_tools", waiting).json() == ors.get("/gated/tools").json()
    assert ors.post("/ping", sid=waiting).status_code == 200
    other = ors.open()
    assert text(ors.call(other, "add")) == "The count is 1."
