"""Discovery: requests before there is a session."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.environments import SPLITS, counter
from tests.serve.ors.wire import Ors

SPEC_KEYS = {"name", "description", "input_schema"}
LIST_KEYS = {"tools", "terminal_tool", "supports_score_group", "message_block_types"}


def detail(answer: httpx.Response) -> object:
    assert answer.headers["content-type"] == "application/json"
    return answer.json()["detail"]


def test_health_and_version_are_answered(ors: Ors) -> None:
    assert ors.get("/health").json() == {"status": "ok"}
    assert set(ors.get("/version").json()) == {"version", "build_sha"}


def test_environments_are_listed_in_lower_case_the_default_first(ors: Ors) -> None:
    assert ors.get("/list_environments").json() == ["counter", "words", "gated", "rough"]


@pytest.mark.parametrize("path", ["/counter/tools", "/COUNTER/tools", "/tools", "/tools/", "/tools?x=1"])
def test_tools_have_the_keys_that_clients_take_and_no_other(ors: Ors, path: str) -> None:
    answer = ors.http.get(path, follow_redirects=True)
    listed = answer.json()
    assert set(listed) == LIST_KEYS
    assert [tool["name"] for tool in listed["tools"]] == [*counter.tools, listed["terminal_tool"]["name"]]
    assert all(set(tool) == SPEC_KEYS for tool in listed["tools"])
    assert set(listed["terminal_tool"]) == {"name", "arg", "description"}
    assert listed["tools"][0]["input_schema"]["properties"]["by"]["default"] == 1
    assert listed["supports_score_group"] is False


def test_a_tool_without_arguments_has_a_schema_that_clients_can_turn_into_a_function(ors: Ors) -> None:
    peek = next(tool for tool in ors.get("/counter/tools").json()["tools"] if tool["name"] == "peek")
    assert peek["input_schema"] is None or peek["input_schema"]["type"] == "object"


def test_splits_have_their_types(ors: Ors) -> None:
    splits = [{"name": name, "type": name} for name in SPLITS]
    assert ors.get("/counter/splits").json() == splits
    assert ors.get("/splits").json() == splits
    assert ors.get("/gated/splits").json() == [{"name": "train", "type": "train"}]


@pytest.mark.parametrize("env", ["counter", "Counter"])
def test_tasks_come_with_the_name_that_was_asked(ors: Ors, env: str) -> None:
    answer = ors.post(f"/{env}/tasks", {"split": "train"}).json()
    assert set(answer) == {"tasks", "env_name"}
    assert answer["env_name"].lower() == "counter"
    assert len(answer["tasks"]) == SPLITS["train"]
    assert all(isinstance(task, dict) for task in answer["tasks"])
    assert ors.post(f"/{env}/num_tasks", {"split": "train"}).json() == {"num_tasks": SPLITS["train"]}


def test_tasks_have_a_prompt_and_neither_truth_nor_solution(ors: Ors) -> None:
    for path, body in (
        ("tasks", {"split": "train"}),
        ("task", {"split": "train", "index": 0}),
        ("task_range", {"split": "train"}),
    ):
        said = ors.post(f"/counter/{path}", body).text
        assert not [word for word in ("truth", "solution", "answer", "by") if f'"{word}"' in said]
    (task, *_) = ors.post("/counter/tasks", {"split": "train"}).json()["tasks"]
    assert set(task) == {"id", "split", "index", "prompt", "tags"}
    assert task["prompt"].startswith("Count to")


@pytest.mark.parametrize("index", [0, 4, -1, -5])
def test_a_task_is_the_one_in_the_list(ors: Ors, index: int) -> None:
    tasks = ors.post("/counter/tasks", {"split": "train"}).json()["tasks"]
    answer = ors.post("/counter/task", {"split": "train", "index": index}).json()
    assert answer == {"task": tasks[index], "env_name": "counter"}


places = st.none() | st.integers(-8, 8) | st.sampled_from([-(10**30), 10**30, 2**63, -(2**63) - 1])


@given(start=places, stop=places)
@settings(max_examples=40)
def test_a_range_is_a_slice(ors: Ors, start: int | None, stop: int | None) -> None:
    tasks = ors.post("/counter/tasks", {"split": "train"}).json()["tasks"]
    wanted = {"split": "train", "start": start, "stop": stop}
    answer = ors.post("/counter/task_range", wanted)
    assert answer.json() == {"tasks": tasks[start:stop], "env_name": "counter"}
    given_ones = {name: value for name, value in wanted.items() if value is not None}
    assert ors.post("/counter/task_range", given_ones).json() == answer.json()


@pytest.mark.parametrize("path", ["tasks", "num_tasks", "task", "task_range"])
@pytest.mark.parametrize("split", ["nowhere", "", "Train", "train\x00", "t" * 10_000])
def test_a_split_that_is_not_there(ors: Ors, path: str, split: str) -> None:
    body = {"split": split} | ({"index": 0} if path == "task" else {})
    answer = ors.post(f"/counter/{path}", body)
    assert answer.status_code == 400
    assert str(detail(answer)).startswith("Invalid split")


@pytest.mark.parametrize("index", [5, -6, 10**30, -(10**30)])
def test_an_index_that_is_not_there(ors: Ors, index: int) -> None:
    answer = ors.post("/counter/task", {"split": "train", "index": index})
    assert answer.status_code == 400
    assert str(detail(answer)).startswith("Invalid index")


@pytest.mark.parametrize(
    "path",
    [
        *("/nowhere/tools", "/nowhere/splits", "/nowhere", "/", "/counter", "/counter/nowhere", "/counter/tools/more"),
        *("/counter/health", "/counter/ping", "/nowhere/call", "/a/b/c"),
    ],
)
def test_unknown_paths_are_404(ors: Ors, path: str) -> None:
    answer = ors.http.get(path, follow_redirects=True)
    assert answer.status_code == 404, answer.text
    assert detail(answer)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("tasks", {}),
        ("tasks", {"split": None}),
        ("tasks", {"split": 1}),
        ("tasks", {"split": "train", "more": 1}),
        ("tasks", []),
        ("tasks", "train"),
        ("num_tasks", {"split": ["train"]}),
        ("task", {"split": "train"}),
        ("task", {"split": "train", "index": None}),
        ("task", {"split": "train", "index": "0x"}),
        ("task", {"split": "train", "index": 0.5}),
        ("task", {"split": "train", "index": 0, "task_spec": {}}),
        ("task_range", {"split": "train", "start": {}}),
        ("task_range", {"split": "train", "step": 2}),
        ("task_range", {}),
    ],
)
def test_bodies_that_do_not_fit_are_422(ors: Ors, path: str, body: object) -> None:
    answer = ors.post(f"/counter/{path}", body)
    assert answer.status_code == 422, answer.text
    assert detail(answer)


@pytest.mark.parametrize(
    ("body", "kind", "place"),
    [
        ({"index": 0}, "missing", ["body", "split"]),
        ({"split": "train", "index": 0, "more": 1}, "extra_forbidden", ["body", "more"]),
        ({"split": "train", "index": "x"}, "value_error", ["body", "index"]),
        ([], "value_error", ["body"]),
        (b"{", "json_invalid", ["body"]),
    ],
)
def test_errors_of_a_body_have_their_place(ors: Ors, body: object, kind: str, place: list[str]) -> None:
    (problem,) = ors.post("/counter/task", body).json()["detail"]
    assert (problem["type"], problem["loc"]) == (kind, place)
    assert problem["msg"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/health", "GET"),
        ("GET", "/counter/tasks", "POST"),
        ("PUT", "/create", "POST"),
        ("DELETE", "/tools", "GET"),
        ("HEAD", "/counter/prompt", "GET"),
    ],
)
def test_another_method_is_405(ors: Ors, method: str, path: str, allowed: str) -> None:
    answer = ors.http.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert method == "HEAD" or detail(answer)
