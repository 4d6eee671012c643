"""Streams: what they are made of, how long they may be, and who may be slow."""

from __future__ import annotations

import json
import sysconfig
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain import codec
from quintain.serve.ors.frames import MOST
from quintain.serve.ors.frames import cut as framed
from tests.serve.ors.wire import Ors, call_request, connected, dechunked, frames, read_until, result, task_id, text
from tests.serve.serving import Served

FRAME = 32 * 1024
"""Bytes that a frame may have: older readers of the field take 128 KiB a line."""


def test_a_stream_is_what_clients_take(ors: Ors) -> None:
    answer = ors.post("/counter/call", {"name": "add", "input": {}}, ors.open())
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    lines = answer.content.split(b"\r\n")
    assert lines[-2:] == [b"", b""]
    assert all(b":" in line for line in lines if line)
    assert b"\n" not in answer.content.replace(b"\r\n", b"")


def test_a_document_is_compact(ors: Ors) -> None:
    stream = ors.post("/counter/call", {"name": "add", "input": {}}, ors.open()).content
    data = "".join(frame.data for frame in frames(stream) if frame.event in {"chunk", "end"})
    assert ", " not in data.replace("The count is", "")
    assert json.loads(data)["ok"] is True


@pytest.mark.parametrize("length", [0, 1, 31_000, 32_000, 33_000, 100_000, 1_000_000])
def test_frames_are_no_longer_than_readers_take(ors: Ors, length: int) -> None:
    sid = ors.open()
    for letter in ("x", " ", "é", "🜁", "\\", "\n", "\u2028"):
        times = length // len(letter.encode())
        body = {"name": "repeat", "input": {"text": letter, "times": times}}
        stream = ors.post("/counter/call", body, sid).content
        assert max(len(frame) for frame in stream.split(b"\r\n\r\n")) <= FRAME - 4
        assert text(result(stream)) == letter * times


@pytest.mark.parametrize("lead", range(40))
def test_no_space_is_lost_wherever_a_frame_is_cut(ors: Ors, lead: int) -> None:
    words = "a" * lead + " \u00a0\u3000\t\u2003\x85\x1c\ufeff b" * 9_000
    assert text(ors.call(ors.open(), "echo", text=words)) == words


def test_twenty_thousand_spaces(ors: Ors) -> None:
    assert text(ors.call(ors.open(), "repeat", text=" ", times=20_000)) == " " * 20_000
    assert text(ors.call(ors.open(), "repeat", text=" ", times=200_000)) == " " * 200_000


def test_a_standard_library_arrives_unchanged(ors: Ors) -> None:
    folder = Path(sysconfig.get_path("stdlib"))
    files = [path for path in sorted(folder.glob("*.py")) if path.stat().st_size > 32_000]
    assert len(files) > 20
    sid = ors.open()
    for path in files:
        assert text(ors.call(sid, "source", module=path.name)) == path.read_text("utf-8"), path.name


@given(words=st.text(st.characters(codec="utf-8"), max_size=200), times=st.sampled_from([1, 400]))
@settings(max_examples=20)
def test_any_text_arrives_unchanged(ors: Ors, words: str, times: int) -> None:
    assert text(ors.call(ors.open(), "repeat", text=words, times=times)) == words * times


texts = st.text(st.characters(codec="utf-8") | st.sampled_from(" \u00a0\u2003\u3000é漢🜁"), min_size=1, max_size=50)


@given(lead=st.integers(0, 9), text=texts, size=st.integers(MOST - 20, 3 * MOST))
def test_frames_are_cut_between_characters_and_begin_with_no_space(lead: int, text: str, size: int) -> None:
    whole = "a" * lead + text * (size // len(text.encode()))
    cut = list(framed(codec.json(whole)))
    assert all(len(frame) <= FRAME for frame in cut)
    assert json.loads("".join(frame.data for frame in frames(b"".join(cut)))) == whole  # Each is decoded by itself.


def test_an_observation_of_several_megabytes(ors: Ors) -> None:
    answer = ors.call(ors.open(), "repeat", text="0123456789 ", times=800_000)
    assert len(text(answer)) == 8_800_000


def test_an_observation_beyond_the_limit_is_the_worlds_bug(ors: Ors, served: Served) -> None:
    before = served.memory
    sid = ors.open("rough")
    answer = ors.post("/rough/call", {"name": "flood", "input": {"megabytes": 100}}, sid)
    assert answer.status_code == 200
    assert len(answer.content) < 10_000
    assert frames(answer.content)[-1].event == "error"
    assert served.memory - before < 600_000_000
    assert ors.get("/health").status_code == 200


def test_a_client_that_does_not_read_holds_up_nobody(ors: Ors, served: Served) -> None:
    sid = ors.open()
    with connected(served.port) as connection:
        connection.sendall(call_request(sid, "repeat", {"text": "0123456789", "times": 900_000}, env="counter"))
        key = task_id(read_until(connection, b"event: chunk"))
        assert text(ors.call(ors.open(), "add")) == "The count is 1."
        assert text(ors.call(sid, "add")) == "The count is 1."  # nor its own session
        body = {"name": "repeat", "input": {}, "task_id": key}
        assert len(text(result(ors.post("/counter/call", body, sid).content))) == 9_000_000
        rest = b""
        while not rest.endswith(b"0\r\n\r\n"):
            rest += connection.recv(1 << 20)
        assert len(rest) > 8_000_000


def test_many_calls_down_one_connection(ors: Ors, served: Served) -> None:
    """Pipelined: clients of the field do not, but proxies may."""
    sid = ors.open()
    with connected(served.port) as connection:
        connection.sendall(b"".join(call_request(sid, "add", {"by": n}, env="counter") for n in range(1, 4)))
        received = b""
        while received.count(b"\r\n0\r\n\r\n") < 3:
            received += connection.recv(65_536)
    streams = [part.partition(b"\r\n\r\n")[2] + b"\r\n0\r\n\r\n" for part in received.split(b"\r\n0\r\n\r\n")[:3]]
    assert [text(result(dechunked(stream))) for stream in streams] == [f"The count is {n}." for n in (1, 3, 6)]


def test_descriptors_and_threads_do_not_grow_with_lost_clients(ors: Ors, served: Served) -> None:
    def lose(count: int) -> None:
        for _ in range(count):
            sid = ors.open()
            with connected(served.port) as connection:
                connection.sendall(call_request(sid, "add", {}, env="counter"))
            ors.post("/delete", sid=sid)

    lose(20)
    before = served.descriptors, served.threads
    lose(200)
    assert served.descriptors <= before[0] + 5
    assert served.threads <= before[1] + 2


@pytest.mark.slow
def test_a_long_call_is_kept_alive(ors: Ors, served: Served) -> None:
    sid, gate = ors.open("gated"), uuid.uuid4().hex
    with connected(served.port) as connection:
        connection.sendall(call_request(sid, "hold", {"gate": gate}, env="gated"))
        read_until(connection, b"event: task_id")
        served.gates.await_entry(gate)
        pings = read_until(connection, b": ping")
        pings += read_until(connection, b": ping")
        served.gates.open(gate)
        rest = read_until(connection, b"\r\n0\r\n\r\n")
    assert b"event" not in pings.partition(b": ping")[2]
    assert f"Through {gate}.".encode() in rest
