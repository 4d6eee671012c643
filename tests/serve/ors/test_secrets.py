"""Secrets of a client reach the tools and judges of its session, and no other place."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from quintain.serve.episodes.secrets import MOST
from quintain.serve.http.keys import add
from tests.serve.leaks import places
from tests.serve.operation.again import mortal
from tests.serve.ors.confiding import named
from tests.serve.ors.wire import Ors, frames, result, text
from tests.serve.serving import Served, serve

ENV = Path(__file__).with_name("confiding.py")


@pytest.fixture(scope="module")
def confided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Ors]]:
    folder = tmp_path_factory.mktemp("confided")
    with serve("env", folder=folder, file=ENV, options=("--journal", str(folder / "journal"))) as served:
        client = Ors(served.url)
        with client.http:
            yield served, client


def packed(values: object) -> str:
    return base64.b64encode(json.dumps(values).encode()).decode()


def header(**values: str) -> dict[str, str]:
    told = {name: {"value": value, "allowed_domains": ["api.example"]} for name, value in values.items()}
    return {"X-Secrets": packed(told)}


def create(ors: Ors, headers: dict[str, str], **more: object) -> httpx.Response:
    sid = uuid.uuid4().hex
    answer = ors.post("/create", {"split": "train", "index": 0, **more}, sid, **headers)
    answer.extensions["sid"] = sid
    return answer


def opened(ors: Ors, headers: dict[str, str], **more: object) -> str:
    answer = create(ors, headers, **more)
    assert answer.status_code == 200, answer.text
    return str(answer.extensions["sid"])


def test_each_session_reads_its_own(confided: tuple[Served, Ors]) -> None:
    """Often enough that quick tools come to run on the event loop, and at once."""
    _, ors = confided
    values = {f"sk-{number:032x}" for number in range(4)}
    sids = {opened(ors, header(KEY=value)): named(value) for value in values}
    sids[opened(ors, {}, secrets={"KEY": "by the body"})] = named("by the body")
    sids[opened(ors, {})] = "none"

    def play(sid: str) -> set[str]:
        tools = ("read", "wait") * 12
        return {text(ors.call(sid, tool, env="confiding", of="KEY")) for tool in tools}

    with ThreadPoolExecutor(len(sids)) as pool:
        assert list(pool.map(play, sids)) == [{expected} for expected in sids.values()]
    for sid in sids:
        assert text(ors.call(sid, "read", env="confiding", of="OTHER")) == "none"


def test_judges_read_them_and_the_record_has_stars(confided: tuple[Served, Ors]) -> None:
    served, ors = confided
    value = f"sk-{uuid.uuid4().hex}"
    for headers, score in ((header(JUDGE=value), 1.0), ({}, 0.0)):
        sid = opened(ors, headers)
        assert ors.call(sid, "leave", env="confiding")["output"]["reward"] == score
        record = ors.get(f"/v1/episodes/{sid}/trace").text
        assert ("asked with ***" in record) is bool(score)
    assert not places(served, value)


@pytest.mark.parametrize("tool", ["tell", "drop"])
def test_a_tool_that_tells_one_voids_the_episode(confided: tuple[Served, Ors], tool: str) -> None:
    served, ors = confided
    value = f"sk-{uuid.uuid4().hex}"
    sid = opened(ors, header(KEY=value))
    ors.call(sid, "read", env="confiding", of="KEY")
    answer = ors.post("/confiding/call", {"name": tool, "input": {"of": "KEY"}}, sid)
    assert frames(answer.content)[-1].event == "error", answer.text
    assert value not in answer.text
    assert not places(served, value)
    told = ors.get(f"/v1/episodes/{sid}").json()
    assert (told["validity"], told["failure"]["part"]) == ("invalid", "S"), told


@pytest.mark.parametrize(
    "sent",
    [
        "no base64!",
        "AAAA",
        packed([]),
        packed({"KEY": "sk-0123456789"}),
        packed({"KEY": {"value": 5}}),
        packed({"KEY": {"value": None}}),
        packed({"KEY": {}}),
        base64.b64encode(b'{"KEY": {"value": "sk-0123456789"}').decode(),
        base64.b64encode(b'{"KEY": {"value": "\\ud800"}}').decode(),
        base64.b64encode(b"[" * 40_000).decode(),
        packed({"KEY": {"value": "x" * 40_000}, "OTHER": {"value": "x" * 30_000}})[: 64 << 10],
    ],
)
def test_an_unreadable_header_is_refused_without_a_word_of_it(confided: tuple[Served, Ors], sent: str) -> None:
    _, ors = confided
    answer = create(ors, {"X-Secrets": sent})
    assert answer.status_code == 400, answer.text
    assert "sk-0123456789" not in answer.text
    assert "x" * 20 not in answer.text
    assert ors.get("/prompt", str(answer.extensions["sid"])).status_code == 404


def test_malformed_secrets_in_the_body_are_refused(confided: tuple[Served, Ors]) -> None:
    _, ors = confided
    assert create(ors, {}, secrets={"KEY": 1}).status_code == 422
    assert create(ors, {}, secrets={"KEY": "x" * 100_000}).status_code == 400
    both = create(ors, header(KEY="sk-0123456789"), secrets={"KEY": "sk-9876543210"})
    assert both.status_code == 400
    assert "sk-" not in both.text
    assert create(ors, header(KEY="one"), secrets={"KEY": "one", "MORE": "two"}).status_code == 200


def test_the_key_of_the_door_is_none_of_them(tmp_path: Path) -> None:
    key = add(tmp_path / "keys", "one", "agent")
    with serve("env", folder=tmp_path, file=ENV, options=("--keys", str(tmp_path / "keys"))) as served:
        ors = Ors(served.url)
        with ors.http:
            ors.http.headers["X-API-Key"] = key
            sid = opened(ors, header(api_key=key, OPENREWARD_API_KEY=key, OTHER="other", EMPTY=""))
            said = [text(ors.call(sid, "read", env="confiding", of=name)) for name in ("api_key", "EMPTY", "OTHER")]
    assert said == ["none", "none", named("other")]


def test_secrets_are_lost_on_restart(tmp_path: Path) -> None:
    value = {"value": f"sk-{uuid.uuid4().hex}"}
    with mortal(tmp_path, f"{ENV}:env") as server:
        for sid in ("asks", "does not", "asked"):
            body = {"split": "train", "index": 0}
            headers = {"X-Secrets": packed({"KEY": value})}
            assert server.ask("POST", "/create", sid, body=body, headers=headers)[0] == 200
            assert server.call(sid, "idle")["ok"]
        server.call("asked", "read", of="KEY")
        server.again()
        assert server.call("does not", "read", of="OTHER")["output"]["blocks"][0]["text"] == "none"
        last = server.call("does not", "leave")["output"]
        assert (last["finished"], last["reward"]) == (True, 0.0)
        for sid, tool in (("asks", "read"), ("asked", "idle")):
            body = {"name": tool, "input": {"of": "KEY"} if tool == "read" else {}}
            said = server.ask("POST", "/call", sid, body=body)[2]
            assert b"the secret 'KEY' went with the process that it was given to" in said, said
            failure = server.told(sid)["failure"]
            assert (failure["part"], failure["kind"]) == ("C", "session_lost"), failure


def test_a_result_is_found_by_its_key_without_them(confided: tuple[Served, Ors]) -> None:
    _, ors = confided
    sid = opened(ors, header(KEY="sk-0123456789"))
    first = ors.post("/confiding/call", {"name": "read", "input": {"of": "KEY"}}, sid)
    key = frames(first.content)[0].data
    again = ors.post("/confiding/call", {"name": "read", "input": {"of": "KEY"}, "task_id": key}, sid)
    assert text(result(again.content)) == named("sk-0123456789")


@pytest.mark.parametrize(("name", "value"), [("KEY", "x" * MOST), ("x" * MOST, "value")])
def test_names_and_values_have_a_bound_together(confided: tuple[Served, Ors], name: str, value: str) -> None:
    _, ors = confided
    answer = create(ors, {}, secrets={name: value})
    assert answer.status_code == 400
    assert "characters with their names" in answer.text
    assert "xxx" not in answer.text
