"""The protocol without a socket: what there is, tasks without their truth, and episodes that have a name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("httpx", reason="pip install 'quintain[http]'")

import httpx

from tests.serve.openenv.conftest import client_of
from tests.serve.serving import Served

KEY = "dev.quintain/"


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    with client_of(served, "counter") as client:
        yield client


def add(by: int, **more: Any) -> dict[str, Any]:
    return {"action": {"type": "call_tool", "tool_name": "add", "arguments": {"by": by}}, **more}


def test_discovery_paths_answer(client: httpx.Client, served: Served) -> None:
    assert client.get("/health").json() == {"status": "healthy"}
    about = client.get("/metadata").json()
    assert (about["name"], about["description"]) == (
        "counter",
        "World with a counter, and with values that a wire may damage.",
    )
    assert client.get("/list_environments").json() == ["counter"]
    assert client.get("/counter/splits").json() == [
        {"name": name, "type": name} for name in ("train", "validation", "test")
    ]
    assert httpx.get(f"{served.url}/openenv").json()[:2] == ["/openenv/counter", "/openenv/words"]
    assert httpx.get(f"{served.url}/openenv/COUNTER/health").json() == {"status": "healthy"}


def test_tasks_are_names_and_prompts(client: httpx.Client) -> None:
    third = {"id": "train-3", "split": "train", "index": 2, "prompt": "Count to 3, then submit it.", "tags": None}
    listed = client.post("/counter/tasks", json={"split": "train"}).json()
    assert (listed["env_name"], len(listed["tasks"]), listed["tasks"][2]) == ("counter", 5, third)
    assert client.post("/counter/num_tasks", json={"split": "train"}).json() == {"num_tasks": 5}
    for index in (2, -3):
        assert client.post("/counter/task", json={"split": "train", "index": index}).json()["task"] == third
    ranges = {(1, 3): [1, 2], (-2, None): [3, 4], (3, 99): [3, 4], (None, None): [0, 1, 2, 3, 4], (4, 2): []}
    for (start, stop), found in ranges.items():
        asked = {"split": "train", "start": start, "stop": stop}
        answer = client.post("/counter/task_range", json=asked).json()
        assert [task["index"] for task in answer["tasks"]] == found


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/counter/tasks", {"split": "nowhere"}, 400),
        ("POST", "/counter/task", {"split": "train", "index": 5}, 400),
        ("POST", "/counter/task", {"split": "train", "index": "x"}, 422),
        ("POST", "/counter/task", {"split": "train", "index": 0, "more": 1}, 422),
        ("POST", "/counter/tasks", {}, 422),
        ("POST", "/words/tasks", {"split": "train"}, 404),
        ("POST", "/nowhere/tasks", {"split": "train"}, 404),
        ("GET", "/nowhere", None, 404),
        ("GET", "", None, 404),
        ("GET", "/reset", None, 405),
        ("POST", "/health", None, 405),
        ("POST", "/reset", [], 422),
        ("POST", "/reset", {"seed": -1}, 422),
        ("POST", "/reset", {"episode_id": "e" * 256}, 422),
        ("POST", "/reset", {"split": "nowhere"}, 400),
        ("POST", "/reset", {"task": "nobody"}, 404),
        ("POST", "/reset", {"session_id": "nobody"}, 404),
        ("POST", "/step", {}, 422),
        ("POST", "/step", {"action": {"tool_name": "add"}}, 400),
        ("POST", "/step", {"action": {"tool_name": "add"}, "episode_id": "nobody"}, 404),
        ("POST", "/step", {"action": {"tool_name": "add"}, "session_id": "nobody"}, 404),
        ("POST", "/step", {"action": {"fly": 1}}, 422),
        ("POST", "/step", {"action": {"type": "call_tool"}}, 422),
        ("POST", "/step", {"action": {"tool_name": "add", "arguments": []}}, 422),
        ("POST", "/step", {"action": {"tool_name": "add"}, "timeout_s": 0}, 422),
        ("POST", "/step", {"action": {"tool_name": "add"}, "more": 1}, 422),
        ("GET", "/state?session_id=nobody", None, 404),
        ("GET", "/state?episode_id=nobody", None, 404),
    ],
)
def test_unknown_names_and_methods_are_refused(
    client: httpx.Client, method: str, path: str, body: Any, status: int
) -> None:
    answer = client.request(method, path, json=body) if body is not None else client.request(method, path)
    assert answer.status_code == status, answer.text
    assert answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("/step", {}, ["action"]),
        ("/step", {"action": {"tool_name": "add", "arguments": None}}, ["action"]),
        ("/step", {"action": {"tool_name": "add", "by": 1}}, ["action", "by"]),
        ("/reset", {"seed": "x"}, ["seed"]),
        ("/counter/task", {"split": "train"}, ["index"]),
    ],
)
def test_errors_of_a_body_have_their_place(client: httpx.Client, path: str, body: Any, place: list[str]) -> None:
    (problem,) = client.post(path, json=body).json()["detail"]
    assert problem["loc"] == ["body", *place]


def test_unknown_fields_of_reset_are_named_in_metadata(client: httpx.Client) -> None:
    begun = client.post("/reset", json={"split": "train", "index": 1, "session_id": None, "prompt": "x"}).json()
    assert begun["metadata"][f"{KEY}task"] == "train-2"
    assert begun["metadata"][f"{KEY}ignored"] == ["prompt"]


def test_bodies_that_are_no_json(client: httpx.Client) -> None:
    for body in (b"{", b"\xff", b"[" * 50_000, b'{"action": {"tool_name": "\\ud800"}}'):
        for path in ("/reset", "/step", "/counter/tasks"):
            answer = client.post(path, content=body)
            assert (answer.status_code, list(answer.json())) == (422, ["detail"])
    assert client.post("/reset", content=b"x" * (5 << 20)).status_code == 413


def test_an_episode_without_a_name_of_its_own(client: httpx.Client) -> None:
    begun = client.post("/reset", json={"split": "train", "index": 1})
    mine = {"X-Session-ID": begun.headers["x-session-id"]}
    assert begun.json()["observation"]["result"].endswith("Count to 2, then submit it.")
    assert client.post("/step", json=add(1), headers=mine).json()["observation"]["result"] == "The count is 1."
    session = begun.json()["metadata"][f"{KEY}session"]
    assert client.post("/step", json=add(1, session_id=session)).json()["observation"]["result"] == "The count is 2."
    last = client.post("/step", json={"action": {"tool_name": "submit", "arguments": {"answer": 2}}}, headers=mine)
    assert (last.json()["reward"], last.json()["done"]) == (1.0, True)
    state = client.get("/state", headers=mine).json()
    assert (state["episode_id"], state["step_count"]) == (begun.json()["metadata"][f"{KEY}episode"], 3)
    assert client.post("/step", json=add(1), headers=mine).status_code == 409
    again = client.post("/reset", json={"split": "train", "index": 0}, headers=mine)
    assert again.headers["x-session-id"] == mine["X-Session-ID"]
    assert client.get("/state", headers=mine).json()["step_count"] == 0


def test_episodes_with_names(client: httpx.Client) -> None:
    for name in ("one", "two"):
        assert client.post("/reset", json={"split": "train", "index": 0, "episode_id": name}).status_code == 200
    assert client.post("/step", json=add(5, episode_id="one")).json()["observation"]["result"] == "The count is 5."
    assert client.post("/step", json=add(1, episode_id="two")).json()["observation"]["result"] == "The count is 1."
    assert client.get("/state", params={"episode_id": "one"}).json()["step_count"] == 1
    # Somebody else who likes the name "one" does not get into this episode, and does not end it.
    assert client.post("/reset", json={"split": "train", "index": 0, "episode_id": "one"}).status_code == 409
    assert client.post("/step", json=add(1, episode_id="one")).json()["observation"]["result"] == "The count is 6."
    end = {"action": {"type": "answer", "text": "enough"}, "episode_id": "one"}
    assert client.post("/step", json=end).json()["done"]
    assert client.post("/reset", json={"split": "train", "index": 0, "episode_id": "one"}).status_code == 200
    assert client.post("/step", json=add(2, episode_id="one")).json()["observation"]["result"] == "The count is 2."


def test_state_without_a_name_is_nobodys(client: httpx.Client) -> None:
    client.post("/reset", json={})
    assert client.get("/state").json() == {"episode_id": None, "step_count": 0}


def test_tools_are_listed_before_a_reset(client: httpx.Client) -> None:
    tools = client.post("/step", json={"action": {"type": "list_tools"}}).json()["observation"]["tools"]
    assert tools[0]["name"] == "add"
    assert tools[0]["input_schema"]["properties"]["by"]["maximum"] == 100


def test_a_step_with_a_name_is_done_once(client: httpx.Client) -> None:
    mine = {"X-Session-ID": client.post("/reset", json={}).headers["x-session-id"]}
    answers = [client.post("/step", json=add(7, request_id="r1"), headers=mine).content for _ in range(3)]
    assert len(set(answers)) == 1
    named = {**mine, "Idempotency-Key": "k1"}
    for _ in range(2):
        assert client.post("/step", json=add(1), headers=named).json()["observation"]["result"] == "The count is 8."
    assert client.get("/state", headers=mine).json()["step_count"] == 2
    longer = client.post("/step", json=add(1), headers={**mine, "Idempotency-Key": "k" * 256})
    assert (longer.status_code, longer.json()["detail"][:18]) == (400, "an Idempotency-Key")
    assert client.get("/state", headers=mine).json()["step_count"] == 2


def test_a_step_that_takes_too_long_goes_on_and_its_answer_can_be_had_later(served: Served) -> None:
    with client_of(served, "gated") as client:
        mine = {"X-Session-ID": client.post("/reset", json={"index": 0}).headers["x-session-id"]}
        hold = {"action": {"tool_name": "hold", "arguments": {"gate": "http_late"}}, "request_id": "h1"}
        assert client.post("/step", json={**hold, "timeout_s": 0.05}, headers=mine).status_code == 504
        served.gates.open("http_late")
        answer = client.post("/step", json=hold, headers=mine).json()
        assert answer["observation"]["result"] == "Through http_late."
        assert served.gates.entered("http_late") == 1


def test_parallel_steps_are_done_one_after_the_other(client: httpx.Client) -> None:
    mine = {"X-Session-ID": client.post("/reset", json={}).headers["x-session-id"]}
    found: list[str] = []

    def step() -> None:
        found.append(client.post("/step", json=add(1), headers=mine).json()["observation"]["result"])

    threads = [threading.Thread(target=step) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [f"The count is {number}." for number in range(1, 9)]


def test_a_failed_episode_says_so(served: Served) -> None:
    with client_of(served, "rough") as client:
        assert client.post("/reset", json={"task": "broken"}).status_code == 500
        mine = {"X-Session-ID": client.post("/reset", json={"task": "plain"}).headers["x-session-id"]}
        void = client.post("/step", json={"action": {"tool_name": "crash"}}, headers=mine)
        assert void.status_code == 500
        assert void.json()["metadata"][f"{KEY}validity"] == "invalid"
        assert "Traceback" not in void.text


def test_the_schemas_say_what_is_true(client: httpx.Client) -> None:
    schemas = client.get("/schema").json()
    assert {one["title"] for one in schemas["action"]["oneOf"] if "title" in one} >= {"add", "submit"}
    api = client.get("/openapi.json").json()
    assert api["info"]["version"].startswith("1.")
    assert {"/reset", "/step", "/state", "/mcp", "/counter/task_range"} <= set(api["paths"])
    jsonschema = pytest.importorskip("jsonschema")
    checker = jsonschema.Draft202012Validator
    for schema in schemas.values():
        checker.check_schema(schema)
    begun = client.post("/reset", json={})
    mine = {"X-Session-ID": begun.headers["x-session-id"]}
    seen = [
        client.post("/step", json={"action": action}, headers=mine).json()
        for action in ({"tool_name": "add"}, {"tool_name": "fly"}, {"type": "list_tools"})
    ]
    for name, envelope in [("reset_observation", begun.json()), *(("observation", one) for one in seen)]:
        whole = {**envelope["observation"], "reward": envelope["reward"], "done": envelope["done"]}
        checker(schemas[name]).validate(whole)
    checker(schemas["state"]).validate(client.get("/state", headers=mine).json())
    actions = checker(schemas["action"])
    for action in (
        {"tool_name": "add", "arguments": {"by": 1}},
        {"type": "answer", "text": "x"},
        {"type": "list_tools"},
    ):
        actions.validate(action)
    for action in ({"tool_name": "add", "arguments": {"by": "x"}}, {"tool_name": "submit"}, {"type": "answer"}, {}):
        assert not actions.is_valid(action)
