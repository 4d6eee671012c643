"""Lost connections: what was asked is done once, and its answer can be had again by whoever asked, and nobody else."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.ors.wire import (
    Ors,
    begun,
    call_request,
    connected,
    frames,
    read_until,
    result,
    task_id,
    text,
)
from tests.serve.serving import Served


def again(ors: Ors, sid: str, key: str, **call: object) -> list[tuple[str, str]]:
    """The events that come when a key is asked for again."""
    body = {"name": "", "input": {}} | call | {"task_id": key}
    answer = ors.post("/gated/call", body, sid)
    assert answer.status_code == 200, answer.text
    return [(frame.event, frame.data) for frame in frames(answer.content) if frame.event]


def reset(connection: socket.socket) -> None:
    """Close so that the other side is told at once, by a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.fixture
def gate(served: Served) -> Iterator[str]:
    name = uuid.uuid4().hex
    yield name
    served.gates.open(name)


@pytest.mark.parametrize("tool", ["hold", "hold_awaiting"])
def test_a_call_goes_on_without_its_client_and_is_answered_by_its_key(
    ors: Ors, served: Served, gate: str, tool: str
) -> None:
    sid = ors.open("gated")
    with connected(served.port) as connection:
        key = begun(connection, sid, tool, {"gate": gate})
        served.gates.await_entry(gate)
        reset(connection)
    served.gates.open(gate)
    (first, told), *rest = again(ors, sid, key)
    assert (first, told) == ("task_id", key)
    assert [event for event, _ in rest] == ["end"]
    assert f"Through {gate}." in rest[0][1]
    assert served.gates.entered(gate) == 1


def test_a_key_is_answered_the_same_as_often_as_it_is_asked(ors: Ors, served: Served) -> None:
    sid, label = ors.open("gated"), uuid.uuid4().hex
    first = ors.post("/gated/call", {"name": "mark", "input": {"label": label}}, sid)
    key = task_id(first.content)
    ors.call(sid, "mark", env="gated", label="another")
    for call in ({}, {"name": "finish_here"}, {"name": "nothing", "input": {"x": 1}}):
        events = again(ors, sid, key, **call)
        assert events[0] == ("task_id", key)
        answer = result(b"".join(f"event: {event}\r\ndata: {data}\r\n\r\n".encode() for event, data in events))
        assert text(answer) == "Marked 1."
        assert answer == result(first.content)  # Metadata and all, though the episode has gone on.
    assert served.gates.entered(label) == 1
    assert text(ors.call(sid, "mark", env="gated", label="third")) == "Marked 3."


def test_the_last_answer_can_be_had_again_with_its_reward(ors: Ors) -> None:
    sid = ors.open()
    answer = ors.post("/counter/call", {"name": "submit", "input": {"answer": 1}}, sid)
    key = task_id(answer.content)
    repeated = ors.post("/counter/call", {"name": "submit", "input": {"answer": 1}, "task_id": key}, sid)
    assert result(repeated.content) == result(answer.content)
    assert result(repeated.content)["output"]["reward"] == 1.0


@pytest.mark.parametrize("key", ["", "x", "0" * 32, "../..", "🜁", "k" * 5_000])
def test_an_unknown_key_is_an_error_and_no_call(ors: Ors, key: str) -> None:
    sid = ors.open()
    answer = ors.post("/counter/call", {"name": "add", "input": {}, "task_id": key}, sid)
    assert answer.status_code == 200
    assert frames(answer.content) == [("error", "unknown task_id")]
    assert text(ors.call(sid, "peek")) == "0"


def test_a_call_that_was_refused_can_be_asked_for_again(ors: Ors, served: Served, gate: str) -> None:
    """Nothing is known under its key, but it was given here: whoever asks for it has it made, and refused once more."""
    sid, late_one = ors.open("gated"), {"label": f"late-{gate}"}
    with contextlib.ExitStack() as lines:
        held, ending, late, resumed = (lines.enter_context(connected(served.port)) for _ in range(4))
        begun(held, sid, "hold", {"gate": gate})
        served.gates.await_entry(gate)
        begun(ending, sid, "finish_here", {})
        key = begun(late, sid, "mark", late_one)
        reset(late)
        resumed.sendall(call_request(sid, "mark", late_one, env="gated", task_id=key))
        read_until(resumed, b"event: task_id")  # While the call still waits for its turn.
        served.gates.open(gate)
        assert b"episode_finished" in read_until(resumed, b"\r\n0\r\n\r\n")
    for _ in range(2):
        assert ors.call(sid, "mark", env="gated", **late_one)["reason"] == "episode_finished"
    assert served.gates.entered(f"late-{gate}") == 0


def test_another_session_cannot_read_an_answer(ors: Ors) -> None:
    mine, other = ors.open(), ors.open()
    secret = uuid.uuid4().hex
    answer = ors.post("/counter/call", {"name": "echo", "input": {"text": secret}}, mine)
    key = task_id(answer.content)
    for thief in (other, ors.open("words")):
        stolen = ors.post("/counter/call", {"name": "echo", "input": {"text": ""}, "task_id": key}, thief)
        assert secret not in stolen.text
        assert [frame for frame in frames(stolen.content) if frame.event][-1] == ("error", "unknown task_id")
    assert ors.post("/counter/call", {"name": "echo", "input": {}, "task_id": key}, uuid.uuid4().hex).status_code == 404
    ors.post("/delete", sid=mine)
    assert secret not in ors.post("/counter/call", {"name": "echo", "input": {}, "task_id": key}, mine).text


def test_keys_cannot_be_guessed(ors: Ors) -> None:
    sid = ors.open()
    keys = {task_id(ors.post("/counter/call", {"name": "peek", "input": {}}, sid).content) for _ in range(20)}
    assert len(keys) == 20
    assert all(len(key) == 32 and int(key, 16) >= 0 for key in keys)


def test_request_without_a_key_is_a_call_of_its_own(ors: Ors, served: Served, gate: str) -> None:
    """Even if the same request was lost before its key was read."""
    sid = ors.open("gated")
    wanted = call_request(sid, "hold_awaiting", {"gate": gate}, env="gated")
    with connected(served.port) as connection:
        connection.sendall(wanted)
        served.gates.await_entry(gate)
        reset(connection)
    served.gates.open(gate)
    with connected(served.port) as connection:
        connection.sendall(wanted)
        assert f"Through {gate}.".encode() in read_until(connection, b"\r\n0\r\n\r\n")
    assert served.gates.entered(gate) == 2
    assert text(ors.call(sid, "mark", env="gated", label="after")) == "Marked 3."


def test_a_request_that_comes_again_after_its_answer_is_another_call(ors: Ors) -> None:
    sid = ors.open()
    assert [text(ors.call(sid, "add")) for _ in range(3)] == [f"The count is {n}." for n in (1, 2, 3)]


def test_many_who_resume_at_once_get_the_same(ors: Ors, served: Served, gate: str) -> None:
    sid = ors.open("gated")
    with connected(served.port) as connection:
        key = begun(connection, sid, "hold", {"gate": gate})
        served.gates.await_entry(gate)
        reset(connection)
    answers: list[list[tuple[str, str]]] = []
    threads = [threading.Thread(target=lambda: answers.append(again(ors, sid, key))) for _ in range(8)]
    for thread in threads:
        thread.start()
    served.gates.open(gate)
    for thread in threads:
        thread.join()
    assert len({str(answer) for answer in answers}) == 1
    assert "Through" in answers[0][-1][1]
    assert served.gates.entered(gate) == 1


def test_a_key_of_a_call_that_waits_for_another(ors: Ors, served: Served, gate: str) -> None:
    """It is known from its first frame on, though its turn has not come yet."""
    sid, label = ors.open("gated"), uuid.uuid4().hex
    with connected(served.port) as first, connected(served.port) as second:
        begun(first, sid, "hold", {"gate": gate})
        served.gates.await_entry(gate)
        key = begun(second, sid, "mark", {"label": label})
        reset(second)
        assert served.gates.entered(label) == 0
        served.gates.open(gate)
        events = again(ors, sid, key)
    assert "Marked 2." in events[-1][1]
    assert served.gates.entered(label) == 1


def test_half_closed_client_may_resume_by_its_key(ors: Ors, served: Served) -> None:
    sid = ors.open()
    with connected(served.port) as connection:
        connection.sendall(call_request(sid, "add", {}, env="counter"))
        connection.shutdown(socket.SHUT_WR)
        received = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65_536):
                received += piece
    # What came of the answer came in order; without its key the same request is the same call.
    body = {"name": "add", "input": {}} | ({"task_id": task_id(received)} if b"task_id" in received else {})
    assert text(result(ors.post("/counter/call", json.dumps(body).encode(), sid).content)) == "The count is 1."
    assert text(ors.call(sid, "peek")) == "1"


def test_a_request_without_its_end_holds_up_nobody(ors: Ors, served: Served) -> None:
    sid = ors.open()
    wanted = call_request(sid, "add", {}, env="counter")
    with connected(served.port) as half, connected(served.port) as none:
        half.sendall(wanted[:-5])
        none.sendall(b"")
        assert text(ors.call(sid, "add")) == "The count is 1."
        reset(half)
    assert text(ors.call(sid, "add")) == "The count is 2."


drops = st.lists(st.sampled_from(["read", "drop early", "drop late", "half"]), min_size=1, max_size=6)


@given(plan=drops)
@settings(max_examples=10)
def test_world_and_record_agree_after_lost_connections(ors: Ors, served: Served, plan: list[str]) -> None:
    """A client that resends what was lost. An answer that was under way when it left counts as told: see the docs."""
    sid = ors.open("gated")
    for number, way in enumerate(plan):
        label = f"{sid}-{number}"
        wanted = call_request(sid, "mark", {"label": label}, env="gated")
        if way != "read":
            with connected(served.port) as connection:
                connection.sendall(wanted[:-3] if way == "half" else wanted)
                if way == "drop late":
                    read_until(connection, b"event: task_id")
                reset(connection)
        assert text(ors.call(sid, "mark", env="gated", label=label)).startswith("Marked")
        assert 1 <= served.gates.entered(label) <= (2 if "drop" in way else 1)
