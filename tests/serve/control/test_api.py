"""The API as anybody's HTTP client meets it: what is told, what is refused and how, and that nothing is done twice."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

import quintain as qn
from quintain.trace import Trace
from tests.serve.control.conftest import here
from tests.serve.operation.raw import result
from tests.serve.serving import Served, serve

ROLES = ("system", "user", "assistant", "tool")


def begun(api: httpx.Client, environment: str = "counter", split: str = "train", **more: Any) -> dict[str, Any]:
    body = {"environment": environment, "split": split, "index": 0} | more
    answer = api.post("/v1/episodes", json=body)
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    return told


def post(api: httpx.Client, episode: dict[str, Any], what: str, **body: Any) -> dict[str, Any]:
    answer = api.post(f"/v1/episodes/{episode['id']}/{what}", json=body)
    assert answer.status_code in {200, 201}, answer.text
    told: dict[str, Any] = answer.json()
    return told


def refused(answer: httpx.Response, status: int) -> str:
    """The words of a refusal, which has to be a problem of RFC 9457."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem.keys() == {"type", "title", "status", "detail"}
    assert problem["status"] == status
    detail: str = problem["detail"]
    return detail


def test_an_episode_from_its_beginning_to_its_verdict(api: httpx.Client) -> None:
    episode = begun(api, index=1, seed=5, agent="curl")
    assert (episode["status"], episode["task"], episode["seed"], episode["validity"]) == (
        "open",
        "train-2",
        5,
        "unknown",
    )
    assert [one["content"] for one in episode["question"]["added"]] == ["Be exact.", "Count to 2, then submit it."]
    first = post(api, episode, "calls", name="add", arguments={"by": 2})
    assert (first["observation"], first["finished"], first["reward"]) == ("The count is 2.", False, None)
    wrong = post(api, episode, "calls", name="subtract")
    assert (wrong["observation"], wrong["is_error"]) == ("error: there is no tool 'subtract'", True)
    last = post(api, episode, "calls", name="submit", arguments={"answer": 2})
    assert (last["finished"], last["reward"], last["status"]["validity"]) == (True, 1.0, "valid")
    assert "ended" in refused(api.post(f"/v1/episodes/{episode['id']}/calls", json={"name": "add"}), 409)
    told = api.get(f"/v1/episodes/{episode['id']}").json()
    assert (told["end"], told["reason"], told["score"], told["turns"]) == ("terminated", "submitted", 1.0, 3)
    assert [(one["name"], one["value"]) for one in told["rewards"]] == [("counted", 1.0)]
    verdict = post(api, episode, "verify")
    assert (verdict["score"], verdict["state_digest"]) == (1.0, told["state_digest"])
    trace = Trace.from_json(api.get(f"/v1/episodes/{episode['id']}/trace").content)
    assert (trace.agent, trace.score) == ("curl", 1.0)
    assert post(api, episode, "replay") == {"agree": True, "divergence": None}
    journal = api.get(f"/v1/episodes/{episode['id']}/journal").json()["entries"]
    assert [(one["seq"], one["step"]["call"]["name"]) for one in journal] == [
        (0, "add"),
        (1, "subtract"),
        (2, "submit"),
    ]
    assert api.delete(f"/v1/episodes/{episode['id']}").status_code == 204
    assert refused(api.delete(f"/v1/episodes/{episode['id']}"), 404)


def test_a_whole_reply_with_several_calls(api: httpx.Client) -> None:
    episode = begun(api)
    calls = [{"id": str(n), "name": "add", "arguments": '{"by": 1}'} for n in range(3)]
    played = post(api, episode, "replies", reply={"message": {"role": "assistant", "calls": calls}})
    (turn,) = played["turns"]
    assert [step["observation"] for step in turn["steps"]] == [f"The count is {n}." for n in (1, 2, 3)]
    assert played["question"]["keep"] == 2
    assert [one["role"] for one in played["question"]["added"]] == ["assistant", "tool", "tool", "tool"]


def test_words_end_a_loop_and_a_verdict_can_be_asked_for_before(api: httpx.Client) -> None:
    episode = begun(api)
    assert post(api, episode, "verify", now=True)["score"] == 0
    assert refused(api.post(f"/v1/episodes/{episode['id']}/verify", json={}), 409)
    assert refused(api.post(f"/v1/episodes/{episode['id']}/replay"), 409)
    played = post(api, episode, "answer", text="I give up.")
    assert (played["finished"], played["reward"]) == (True, 0.0)


def test_a_task_is_a_name_and_nothing_else(api: httpx.Client) -> None:
    page = api.get("/v1/environments/talk/tasks", params={"split": "train", "offset": 3, "limit": 2}).json()
    assert (page["count"], page["split"]) == (20, "train")
    assert page["tasks"] == [
        {"id": "train-3", "tags": {"parity": "odd"}, "day": ""},
        {"id": "train-4", "tags": {"parity": "even"}, "day": ""},
    ]
    everything = api.get("/v1/environments").text + json.dumps(page) + json.dumps(begun(api, "talk", everyone=False))
    assert "Your number" not in everything
    assert {one["name"] for one in api.get("/v1/environments").json()["environments"]} >= {"counter", "talk", "sales"}
    assert api.get("/v1/environments/-").json()["name"] == "counter"


def test_an_environment_tells_its_digests(api: httpx.Client) -> None:
    told, local = api.get("/v1/environments/TALK").json(), here("talk")
    assert (told["fingerprint"], told["tools_digest"]) == (local.fingerprint, local.tools_digest)
    assert [tool["roles"] for tool in told["tools"]] == [["agent"], ["user"], ["agent"]]
    assert [one["name"] for one in told["criteria"]] == ["noted", "in_time"]


def test_a_key_may_be_used_for_each_episode(api: httpx.Client) -> None:
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    body = {"name": "add", "arguments": {"by": 1}}
    for _ in range(3):
        path = f"/v1/episodes/{begun(api)['id']}/calls"
        assert [api.post(path, json=body, headers=headers).json()["observation"] for _ in range(2)] == [
            "The count is 1."
        ] * 2


def test_a_key_is_done_once(api: httpx.Client) -> None:
    episode = begun(api)
    path, headers = f"/v1/episodes/{episode['id']}/calls", {"Idempotency-Key": uuid.uuid4().hex}
    body = {"name": "add", "arguments": {"by": 1}}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: api.post(path, json=body, headers=headers).content, range(8)))
    assert len(set(answers)) == 1
    assert post(api, episode, "calls", name="peek")["observation"] == "1"
    assert "another request" in refused(api.post(path, json={"name": "peek"}, headers=headers), 409)
    assert "printable" in refused(api.post(path, json=body, headers={"Idempotency-Key": "two words"}), 400)
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    created = [
        api.post("/v1/episodes", json={"environment": "counter", "index": 0}, headers=headers).json()["id"]
        for _ in range(2)
    ]
    assert created[0] == created[1] != episode["id"]


def test_a_question_is_told_whole_to_who_may_not_have_got_it(tmp_path: Path) -> None:
    """Its answer is kept no more, so that it is made anew, of what the episode knows."""
    forgetful = "from quintain.serve.control import once\nonce.MOST = 0"
    with serve("counter", folder=tmp_path, before=forgetful) as served, httpx.Client(base_url=served.url) as api:
        episode = begun(api)
        path, headers = f"/v1/episodes/{episode['id']}/calls", {"Idempotency-Key": "one"}
        body = {"name": "add", "arguments": {"by": 1}}
        first, again = (api.post(path, json=body, headers=headers).json() for _ in range(2))
        told = [*episode["question"]["added"], *first["question"]["added"]]
        assert (first["question"]["keep"], len(told)) == (2, 4)
        assert (again["question"]["keep"], again["question"]["added"]) == (0, told)
        assert (again["turns"], again["status"]) == (first["turns"], first["status"])


def test_episodes_are_listed_by_the_page(api: httpx.Client) -> None:
    names = [begun(api)["id"] for _ in range(3)]
    count = api.get("/v1/episodes", params={"limit": 1}).json()["count"]
    assert count >= 3
    for offset, limit, expected in ((3, 2, names[:2]), (1, 5, names[2:]), (3, 1000, names), (0, 5, [])):
        page = api.get("/v1/episodes", params={"offset": count - offset, "limit": limit}).json()
        assert (page["count"], [one["id"] for one in page["episodes"]]) == (count, expected)


def test_raw_sessions_join_and_step(api: httpx.Client) -> None:
    episode = begun(api, "talk", index=3, harness="client")
    assert (episode["question"], episode["roles"]) == (None, {"user": "Your number is 3. Tell it when you are asked."})
    joined = post(api, episode, "join", role="user", messages=[{"role": "user", "content": "Begin."}])
    assert (joined["thread"], len(joined["messages"])) == (1, 2)
    reply = {"message": {"role": "assistant", "calls": [{"id": "1", "name": "look", "arguments": "{}"}]}}
    (turn,) = post(api, episode, "step", reply=reply, thread=1)["turns"]
    assert (turn["role"], turn["thread"], len(turn["added"])) == ("user", 1, 2)
    before = [
        {"type": "rewrite", "thread": 0, "keep": 0, "messages": [{"role": "user", "content": "It is 3."}]},
        {"type": "terminate", "reason": "over"},
    ]
    verdict = post(api, episode, "verify", before=before)
    assert verdict["validity"] == "valid"
    assert post(api, episode, "replay")["agree"]
    path = f"/v1/episodes/{begun(api, 'talk', harness='client')['id']}"
    assert "no conversation 7" in refused(api.post(f"{path}/step", json={"reply": reply, "thread": 7}), 409)
    assert "keep" in refused(
        api.post(f"{path}/changes", json=[{"type": "rewrite", "thread": 0, "keep": -1, "messages": []}]), 422
    )
    assert "own harness" in refused(api.post(f"/v1/episodes/{begun(api)['id']}/join", json={"role": "user"}), 409)


@pytest.mark.parametrize(
    ("request_line", "fields", "status", "words"),
    [
        ("GET /v1", {}, 404, "/v1/openapi.json"),
        ("GET /v1/nothing", {}, 404, "there is no"),
        ("PUT /v1/episodes", {}, 405, "GET, POST"),
        ("POST /v1/episodes", {"content": b"{"}, 415, "application/json"),
        ("POST /v1/episodes", {"json": {"index": 2**70}}, 422, "index"),
        ("POST /v1/episodes", {"json": {"index": 0, "colour": "red"}}, 422, "colour"),
        ("POST /v1/episodes", {"json": {"index": 0, "config": {"max_turns": 0}}}, 422, "max_turns"),
        ("POST /v1/episodes", {"json": {"index": 0, "split": "night"}}, 404, "split"),
        ("POST /v1/episodes", {"json": {"index": 99}}, 404, "2 tasks"),
        ("POST /v1/episodes", {"json": {"task": "x"}}, 404, "no task"),
        ("POST /v1/episodes", {"json": {"index": 0, "after": "x"}}, 404, "no such episode"),
        ("POST /v1/episodes", {"json": {"index": 0, "environment": "x"}}, 404, "no environment"),
        ("POST /v1/episodes/restore", {"json": {}}, 415, "octet-stream"),
        ("POST /v1/episodes/restore", {"headers": {"content-type": "application/octet-stream"}}, 400, "snapshot"),
        ("GET /v1/episodes/x", {}, 404, "no such episode"),
        ("GET /v1/environments/x", {}, 404, "no environment"),
        ("GET /v1/environments/-/tasks", {"params": {"split": "night"}}, 404, "no split"),
        ("GET /v1/environments/-/tasks", {"params": {"limit": "many"}}, 422, "limit"),
        ("GET /v1/environments/-/tasks", {"params": {"offset": -1}}, 422, "offset"),
        ("GET /v1/environments?x=1", {}, 422, "no parameters"),
        ("GET /v1/episodes", {"params": {"limit": 0}}, 422, "limit"),
        ("GET /v1/environments/-/tasks?limit=1&limit=2", {}, 422, "twice"),
    ],
)
def test_every_mistake_has_its_problem(
    api: httpx.Client, request_line: str, fields: dict[str, Any], status: int, words: str
) -> None:
    method, _, path = request_line.partition(" ")
    assert words in refused(api.request(method, path, **fields), status)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"name": "\\ud800"}',
        b'{"name": "a", "arguments": ' + b"[" * 100_000,
        b"[" * 100_000,
        b'{"name": 1}',
        b"null",
    ],
)
def test_bodies_that_are_none(api: httpx.Client, body: bytes) -> None:
    path = f"/v1/episodes/{begun(api)['id']}/calls"
    answer = api.post(path, content=body, headers={"content-type": "application/json"})
    assert answer.status_code in {400, 422}
    assert refused(answer, answer.status_code)


def test_arguments_reach_the_tool_as_they_were_written(api: httpx.Client) -> None:
    episode = begun(api)
    for arguments, words in (
        ([1, 2], "Expected `object`"),
        ({"by": 2**70}, "Expected `int`"),
        ({"by": "1"}, "Expected `int`, got `str` - at `$.by`"),
    ):
        played = post(api, episode, "calls", name="add", arguments=arguments)
        assert played["is_error"]
        assert words in played["observation"]


def test_a_void_episode_says_so_and_takes_nothing_more(api: httpx.Client) -> None:
    episode = begun(api, "rough", "train")
    played = post(api, episode, "calls", name="crash")
    assert (played["finished"], played["is_error"], played["reward"]) == (True, True, None)
    assert played["status"]["failure"]["kind"] == "quintain:tool_bug"
    assert "Traceback" not in json.dumps(played)
    assert "void" in refused(api.post(f"/v1/episodes/{episode['id']}/calls", json={"name": "touch"}), 409)
    broken = begun(api, "rough", "train", task="broken")
    assert (broken["status"], broken["validity"]) == ("ended", "invalid")
    assert broken["failure"]["kind"] == "quintain:reset_failed"
    assert "void" in refused(api.post(f"/v1/episodes/{broken['id']}/calls", json={"name": "touch"}), 409)


def test_a_snapshot_goes_on_and_a_torn_one_does_not(api: httpx.Client) -> None:
    episode = begun(api)
    post(api, episode, "calls", name="add", arguments={"by": 1})
    snapshot = api.post(f"/v1/episodes/{episode['id']}/snapshot")
    assert snapshot.headers["content-type"] == "application/octet-stream"
    headers = {"content-type": "application/octet-stream"}
    restored = api.post("/v1/episodes/restore", content=snapshot.content, headers=headers).json()
    twin = post(api, episode, "fork")
    for one in (restored, twin):
        assert (one["turns"], one["question"]["keep"], len(one["question"]["added"])) == (1, 0, 4)
        assert post(api, one, "calls", name="peek")["observation"] == "1"
    assert refused(api.post("/v1/episodes/restore", content=snapshot.content[:-9], headers=headers), 400)
    assert refused(api.post("/v1/episodes/restore?harness=nobody", content=snapshot.content, headers=headers), 422)


def test_a_restored_episode_keeps_its_configuration(api: httpx.Client) -> None:
    """The tool refuses; an argument too many does not matter in this episode, whatever the server's own say."""
    episode = begun(api, "rough", config={"arguments": "lenient"})
    frozen = api.post(f"/v1/episodes/{episode['id']}/snapshot").content
    headers = {"content-type": "application/octet-stream"}
    restored = api.post("/v1/episodes/restore", content=frozen, headers=headers).json()
    for one in (episode, restored):
        call = {"name": "refuse", "input": {"colour": "red"}}
        told = result(api.post("/call", json=call, headers={"X-Session-ID": one["id"]}).content)
        assert told["ok"], told
        assert "not today" in told["output"]["blocks"][0]["text"]


def test_a_failure_of_the_client_is_kept(api: httpx.Client) -> None:
    episode = begun(api)
    failure = {"part": "model", "kind": "provider_unavailable", "stage": "agent", "type": "X", "message": "", "turn": 0}
    told = post(api, episode, "terminate", failure=failure)
    assert (told["validity"], told["failure"]["kind"]) == ("invalid", "provider_unavailable")
    assert post(api, episode, "terminate", reason="again")["validity"] == "invalid"
    for wrong in ({"kind": "bad weather"}, {"message": "x" * 2001}):
        body = {"failure": {**failure, **wrong}}
        assert refused(api.post(f"/v1/episodes/{begun(api)['id']}/terminate", json=body), 422)


def test_probes_and_metrics(api: httpx.Client) -> None:
    assert api.get("/healthz").json() == api.get("/readyz").json() == {"status": "ok"}
    episode = begun(api)
    post(api, episode, "answer", text="no")
    answer = api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    values = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    assert float(values['quintain_episodes_ended_total{environment="counter",validity="valid"}']) >= 1
    assert float(values['quintain_episodes_begun_total{environment="counter"}']) >= 1


def test_a_slow_world_is_waited_for(served: Served, api: httpx.Client) -> None:
    body = {"environment": "gated", "split": "train", "task": "late"}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        creating = pool.submit(api.post, "/v1/episodes", json=body)
        while not served.gates.entered("start"):
            assert not creating.done()
        assert api.get("/healthz").status_code == 200
        served.gates.open("start")
        assert creating.result().json()["status"] == "open"


@pytest.fixture
def document(api: httpx.Client) -> dict[str, Any]:
    told: dict[str, Any] = api.get("/v1/openapi.json").json()
    return told


def test_the_document_names_every_path_and_every_reference_is_there(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    assert len(document["paths"]) >= 20
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(set(names)) == len(names)
    told = json.dumps(document)
    for schema in {part.partition('"')[0] for part in told.split("#/components/schemas/")[1:]}:
        assert schema in document["components"]["schemas"]
    assert qn.__version__ == document["info"]["version"]
    of_one = {name: path for name, path in document["paths"].items() if "{id}" in name}
    assert len(of_one) > 10
    for name, path in of_one.items():
        for method, one in path.items():
            assert ("410" in one["responses"]) == (method != "delete"), name


@pytest.mark.parametrize("what", ["replies", "step"])
def test_the_document_takes_the_replies_that_the_server_takes(
    api: httpx.Client, document: dict[str, Any], what: str
) -> None:
    checker = pytest.importorskip("jsonschema").Draft202012Validator
    asked = document["paths"][f"/v1/episodes/{{id}}/{what}"]["post"]["requestBody"]["content"]["application/json"]
    checked = checker({**document, **asked["schema"]})
    for reply, taken in (
        *(({"message": {"role": role, "content": "Hello."}}, role == "assistant") for role in ROLES),
        *(({"message": {"role": "assistant", "call_id": call}}, call is None) for call in (None, "", "c")),
        *(
            ({"message": {"role": "assistant"}, "usage": {of: n}}, n == 0)
            for of in ("prompt", "completion")
            for n in (0, -1)
        ),
    ):
        episode = begun(api, harness="client" if what == "step" else "server")
        status = api.post(f"/v1/episodes/{episode['id']}/{what}", json={"reply": reply}).status_code
        assert status == (200 if taken else 400), reply
        assert checked.is_valid({"reply": reply}) == taken, reply


def test_an_agent_plays_over_mcp_while_a_trainer_looks_on(api: httpx.Client) -> None:
    from mcp import Client

    episode = begun(api)

    async def play() -> None:
        async with Client(episode["mcp_url"]) as agent:
            await agent.call_tool("add", {"by": 1})
            await agent.call_tool("submit", {"answer": 1})

    asyncio.run(play())
    told = api.get(f"/v1/episodes/{episode['id']}").json()
    assert (told["turns"], told["score"], told["reason"]) == (2, 1.0, "submitted")
    assert post(api, episode, "replay")["agree"]
