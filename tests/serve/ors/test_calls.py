"""Tool calls: what they answer, who pays for a mistake, and what holds after the end."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.serve.ors.wire import PREFIX, Json, Ors, call_request, connected, frames, read_until, result, text
from tests.serve.serving import Served


def meta(document: Json) -> Json:
    """What stands under the server's own prefix."""
    return {name.removeprefix(PREFIX): value for name, value in document["output"]["metadata"].items()}


def test_an_episode_that_ends_by_a_tool(ors: Ors) -> None:
    sid = ors.open(index=1)
    first = ors.call(sid, "add", by=2)
    assert set(first["output"]) == {"blocks", "metadata", "reward", "finished"}
    assert text(first) == "The count is 2."
    assert (first["output"]["reward"], first["output"]["finished"]) == (None, False)
    assert (meta(first)["seq"], meta(first)["finished"]) == (0, False)
    last = ors.call(sid, "submit", answer=2)
    assert text(last) == "Handed in."
    assert (last["output"]["reward"], last["output"]["finished"]) == (1.0, True)
    assert (meta(last)["reward"], meta(last)["finished"], meta(last)["validity"]) == (1.0, True, "valid")
    assert meta(last)["episode"] == meta(first)["episode"]


def test_an_episode_that_ends_by_words(ors: Ors) -> None:
    terminal = ors.get("/words/tools").json()["terminal_tool"]
    for word, score in (("ash", 1.0), ("oak", 0.0)):
        sid = ors.open("words")
        assert text(ors.call(sid, "look")) == "ash"
        last = ors.call(sid, terminal["name"], **{terminal["arg"]: word})
        assert (last["output"]["reward"], last["output"]["finished"]) == (score, True)


def test_keys_of_metadata_all_have_the_prefix(ors: Ors) -> None:
    names = set(ors.call(ors.open(), "add")["output"]["metadata"])
    assert {f"{PREFIX}{name}" for name in ("episode", "seq", "finished", "validity", "state_digest")} <= names
    assert all(name.startswith(PREFIX) for name in names)


def test_the_same_calls_leave_the_same_world(ors: Ors) -> None:
    digests = []
    for _ in range(2):
        sid = ors.open(index=3)
        ors.call(sid, "add", by=5)
        digests.append(meta(ors.call(sid, "add", by=-1))["state_digest"])
    assert digests[0] == digests[1]


def test_an_unknown_tool_is_the_models_mistake(ors: Ors) -> None:
    sid = ors.open()
    answer = ors.call(sid, "subtract", by=1)
    assert answer["ok"] is False
    assert (answer["error"], answer["reason"]) == ("'subtract' is not a valid tool", "not_found")
    assert text(ors.call(sid, "peek")) == "0"


@pytest.mark.parametrize("arguments", [{"by": "many"}, {"by": 101}, {"by": 1.5}, {"by": None}, {"by": 1, "more": 2}])
def test_arguments_that_do_not_fit_are_the_models_mistake(ors: Ors, arguments: Json) -> None:
    sid = ors.open()
    answer = ors.call(sid, "add", **arguments)
    assert (answer["ok"], answer["reason"]) == (False, "input_validation")
    assert answer["error"].startswith("Tool input validation error:")
    assert text(ors.call(sid, "peek")) == "0"


def test_tool_refusals_are_observations(ors: Ors) -> None:
    sid = ors.open("rough")
    assert text(ors.call(sid, "refuse", env="rough")) == "not today\nand not\r\ntomorrow: never"
    assert text(ors.call(sid, "touch", env="rough")) == "1"


def test_after_the_end_every_call_is_refused(ors: Ors) -> None:
    sid = ors.open()
    ors.call(sid, "add")
    assert ors.call(sid, "submit", answer=1)["output"]["reward"] == 1.0
    late: list[tuple[str, Json]] = [("submit", {"answer": 1}), ("add", {}), ("subtract", {}), ("add", {"by": "x"})]
    for name, arguments in late:
        refused = ors.call(sid, name, **arguments)
        assert (refused["ok"], refused["reason"]) == (False, "episode_finished")
        assert "reward" not in refused
    assert ors.post("/ping", sid=sid).status_code == 200


@pytest.mark.parametrize("tool", ["crash", "hang"])
def test_a_broken_world_has_no_reward(ors: Ors, tool: str) -> None:
    """The stream says `error`, which tells clients that this episode is void; it goes on refusing."""
    sid = ors.open("rough")
    ors.call(sid, "touch", env="rough")
    for name in (tool, "touch", "leave"):
        answer = ors.post("/rough/call", {"name": name, "input": {}}, sid)
        assert b"Traceback" not in answer.content
        assert b'"reward":1' not in answer.content
        if answer.status_code == 200:
            assert frames(answer.content)[-1].event == "error", answer.content
    assert ors.post("/delete", sid=sid).status_code == 200


def test_a_judge_that_breaks_gives_no_reward(ors: Ors) -> None:
    sid = ors.open("rough")
    for _ in range(3):
        ors.call(sid, "touch", env="rough")
    answer = ors.post("/rough/call", {"name": "leave", "input": {}}, sid)
    assert answer.status_code == 200
    assert frames(answer.content)[-1].event == "error"


def test_an_error_of_many_lines_is_one_event(ors: Ors) -> None:
    answer = ors.post("/rough/call", {"name": "crash", "input": {}}, ors.open("rough"))
    assert [frame.event for frame in frames(answer.content) if frame.event] == ["task_id", "error"]


def test_too_many_turns_truncate(ors: Ors) -> None:
    sid = ors.open("rough")
    answers = [ors.call(sid, "refuse", env="rough") for _ in range(20)]
    assert [answer["output"]["finished"] for answer in answers] == [False] * 19 + [True]
    assert ors.call(sid, "refuse", env="rough")["reason"] == "episode_finished"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "add"},
        {"input": {}},
        {"name": 1, "input": {}},
        {"name": None, "input": {}},
        {"name": "add", "input": []},
        {"name": "add", "input": None},
        {"name": "add", "input": "{}"},
        {"name": "add", "input": {}, "task_id": 7},
        {"name": "add", "input": {}, "surplus": 1},
        [],
        None,
    ],
)
def test_malformed_calls_are_422_and_not_turns(ors: Ors, body: object) -> None:
    sid = ors.open()
    answer = ors.post("/counter/call", body, sid)
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"]
    assert meta(ors.call(sid, "peek"))["seq"] == 0


@pytest.mark.parametrize("path", ["/call", "/COUNTER/call", "/words/call", "/counter/call/"])
def test_paths_that_reach_the_same_session(ors: Ors, path: str) -> None:
    answer = ors.http.post(
        path, json={"name": "add", "input": {}}, headers={"X-Session-ID": ors.open()}, follow_redirects=True
    )
    assert text(result(answer.content)) == "The count is 1."


def test_parallel_calls_run_one_after_the_other(ors: Ors) -> None:
    sid = ors.open()
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: ors.call(sid, "add"), range(40)))
    assert sorted(meta(answer)["seq"] for answer in answers) == list(range(40))
    for answer in answers:  # the number of a turn is what it saw of the world
        assert text(answer) == f"The count is {meta(answer)['seq'] + 1}."


def test_a_second_call_waits_for_the_first(ors: Ors, served: Served) -> None:
    sid, gate = ors.open("gated"), uuid.uuid4().hex
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ors.call, sid, "hold", env="gated", gate=gate)
        served.gates.await_entry(gate)
        second = pool.submit(ors.call, sid, "mark", env="gated", label=f"after {gate}")
        with pytest.raises(AssertionError):
            served.gates.await_entry(f"after {gate}", seconds=0.3)
        served.gates.open(gate)
        assert (text(first.result()), text(second.result())) == (f"Through {gate}.", "Marked 2.")


@pytest.mark.parametrize("tool", ["hold", "hold_awaiting"])
def test_a_tool_that_waits_holds_up_no_other_session(ors: Ors, served: Served, tool: str) -> None:
    gates = [uuid.uuid4().hex for _ in range(4)]
    waiting = [ors.open("gated") for _ in gates]
    with ThreadPoolExecutor(4) as pool:
        held = [
            pool.submit(ors.call, sid, tool, env="gated", gate=gate) for sid, gate in zip(waiting, gates, strict=True)
        ]
        for gate in gates:
            served.gates.await_entry(gate)
        assert text(ors.call(ors.open(), "add")) == "The count is 1."
        assert ors.get("/health").status_code == 200
        for gate in gates:
            served.gates.open(gate)
        assert [text(one.result()) for one in held] == [f"Through {gate}." for gate in gates]


def test_a_tool_that_was_always_quick_and_then_waits_holds_up_nobody(ors: Ors, served: Served) -> None:
    sid, opened, shut = ors.open("gated"), uuid.uuid4().hex, uuid.uuid4().hex
    served.gates.open(opened)
    for _ in range(20):
        assert text(ors.call(sid, "hold", env="gated", gate=opened)) == f"Through {opened}."
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(ors.call, sid, "hold", env="gated", gate=shut)
        served.gates.await_entry(shut)
        assert text(ors.call(ors.open(), "add")) == "The count is 1."
        served.gates.open(shut)
        assert text(held.result()) == f"Through {shut}."
    assert text(ors.call(sid, "mark", env="gated", label="last")) == "Marked 22."


def test_the_id_of_a_call_is_told_before_the_tool_runs(ors: Ors, served: Served) -> None:
    sid, gate = ors.open("gated"), uuid.uuid4().hex
    with connected(served.port) as connection:
        connection.sendall(call_request(sid, "hold", {"gate": gate}, env="gated"))
        head = read_until(connection, b"event: task_id\r\ndata: ")
        assert head.startswith(b"HTTP/1.1 200")
        served.gates.await_entry(gate)
        served.gates.open(gate)
        assert b"Through" in read_until(connection, b"\r\n0\r\n\r\n")


def test_deleted_while_a_tool_runs(ors: Ors, served: Served) -> None:
    sid, gate = ors.open("gated"), uuid.uuid4().hex
    with connected(served.port) as connection:
        connection.sendall(call_request(sid, "hold_awaiting", {"gate": gate}, env="gated"))
        read_until(connection, b"task_id")
        served.gates.await_entry(gate)
        assert ors.post("/delete", sid=sid).status_code == 200
        served.gates.open(gate)
        assert b'"reward":1' not in read_until(connection, b"\r\n0\r\n\r\n")
    assert ors.post("/ping", sid=sid).status_code == 404
