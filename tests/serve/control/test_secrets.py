"""Secrets over /v1 reach the tools and scoring functions of their episode and its forks alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import quintain as qn
from quintain import codec
from quintain.context import Snapshot
from quintain.errors import EpisodeError, UsageError
from quintain.models import Scripted
from quintain.serve.episodes.host import EpisodeSpec
from quintain.serve.episodes.secrets import packed
from quintain.serve.journal.entries import Created
from quintain.trace import Message, Reply, ToolCall
from tests.serve.leaks import places
from tests.serve.mcp.episodes import Wire
from tests.serve.operation.again import DYING, Mortal, mortal
from tests.serve.ors.confiding import named
from tests.serve.ors.test_secrets import ENV
from tests.serve.serving import Served, serve

EPISODES = "/v1/episodes"
OCTETS = {"content-type": "application/octet-stream"}


@pytest.fixture(scope="module", params=["with a journal", pytest.param("without", marks=pytest.mark.slow)])
def served(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    options = ("--journal", str(folder / "journal")) if request.param == "with a journal" else ()
    with serve("env", "watched", folder=folder, file=ENV, options=options) as server:
        yield server


@pytest.fixture
def api(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.url) as client:
        yield client


def fresh() -> str:
    return f"sk-{uuid.uuid4().hex}"


def begun(api: httpx.Client, **body: Any) -> str:
    answer = api.post(EPISODES, json={"environment": "confiding", "split": "train", **body})
    assert answer.status_code == 201, answer.text
    return f"{EPISODES}/{answer.json()['id']}"


def call(api: httpx.Client, path: str, name: str, **arguments: str) -> dict[str, Any]:
    answer = api.post(f"{path}/calls", json={"name": name, "arguments": arguments})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def blame(told: dict[str, Any]) -> tuple[str, str]:
    failure = told["status"]["failure"]
    assert "'KEY' went with the process" in failure["message"], failure
    return failure["part"], failure["kind"]


@pytest.mark.slow
def test_each_episode_reads_its_own(api: httpx.Client) -> None:
    values = [fresh(), fresh()]
    paths = {begun(api, secrets={"KEY": value}): named(value) for value in values}
    paths[begun(api)] = paths[begun(api, secrets={"KEY": ""})] = "none"
    for path, expected in paths.items():
        assert call(api, path, "read", of="KEY")["observation"] == expected
        assert call(api, path, "read", of="OTHER")["observation"] == "none"


def test_an_agent_that_speaks_mcp_plays_with_those_that_its_episode_was_begun_with(api: httpx.Client) -> None:
    """And what it sends itself tells its episode none: it may be a program that an agent has written."""
    value = fresh()

    async def read(address: str) -> Any:
        url = str(httpx.URL(address).copy_with(host=api.base_url.host, port=api.base_url.port))
        async with Wire(url, modern=True) as wire:
            wire.http.headers["X-Secrets"] = packed({"KEY": fresh()})
            return (await wire.call(1, "read", {"of": "KEY"}))["result"]["content"][0]["text"]

    with_it, without = (api.get(path).json()["mcp_url"] for path in (begun(api, secrets={"KEY": value}), begun(api)))
    assert asyncio.run(read(with_it)) == named(value)
    assert asyncio.run(read(without)) == "none"


def test_secrets_are_not_visible_to_other_episodes(served: Served, api: httpx.Client) -> None:
    """Neither before the end, where a judge has told it of each step, nor after it."""
    value = fresh()
    path = begun(api, environment="watched", secrets={"KEY": value, "JUDGE": value})
    answer = api.post(f"{path}/calls", json={"name": "read", "arguments": {"of": "KEY"}})
    assert answer.json()["turns"][0]["rewards"][0]["reason"] == "read seen with ***"
    now = api.post(f"{path}/verify", json={"now": True})
    assert now.json()["score"] == 1.0
    told = [answer.text, now.text, api.get(path).text, api.post(f"{path}/snapshot").text]
    assert not places(served, value)
    told.append(api.post(f"{path}/calls", json={"name": "leave", "arguments": {}}).text)
    record = api.get(f"{path}/trace").text
    assert "asked with ***" in record
    assert api.post(f"{path}/replay").json() == {"agree": True, "divergence": None}
    assert value not in "".join(told)
    assert places(served, path.rpartition("/")[2])
    assert not places(served, value)


@pytest.mark.parametrize("harness", ["server", "client"])
@pytest.mark.parametrize("tool", ["tell", "drop"])
def test_a_tool_that_tells_one_voids_the_episode(served: Served, api: httpx.Client, harness: str, tool: str) -> None:
    value = fresh()
    path = begun(api, harness=harness, secrets={"KEY": value})
    reply = {"message": {"role": "assistant", "calls": [{"id": "c", "name": tool, "arguments": '{"of": "KEY"}'}]}}
    answer = api.post(f"{path}/{'step' if harness == 'client' else 'replies'}", json={"reply": reply})
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"]["failure"]["kind"] == "quintain:tool_bug"
    assert value not in answer.text
    assert value.encode() not in api.post(f"{path}/snapshot").content
    assert not places(served, value)


def test_unusable_secrets_are_refused(served: Served, api: httpx.Client) -> None:
    value = fresh()
    body = {"environment": "confiding", "split": "train"}
    refusals: list[tuple[int, dict[str, Any], dict[str, str]]] = [
        (400, {"secrets": {"KEY": value * 1000}}, {}),
        (400, {"secrets": {"KEY": value}}, {"X-Secrets": packed({"KEY": value[::-1]})}),
        (400, {}, {"X-Secrets": value}),
        (422, {"secrets": {"KEY": [value]}}, {}),
        (422, {"secrets": [value]}, {}),
    ]
    for status, more, headers in refusals:
        answer = api.post(EPISODES, json={**body, **more}, headers=headers)
        assert answer.status_code == status, answer.text
        assert not {value, value[::-1]} & set(answer.text.split('"'))
        assert value[:20] not in answer.text
    torn = api.post(
        EPISODES, content=f'{{"secrets": {{"KEY": "{value}" }}'.encode(), headers={"Content-Type": "application/json"}
    )
    assert torn.status_code == 400
    assert value not in torn.text
    assert not places(served, value)


def test_the_document_says_that_they_are_only_written(api: httpx.Client) -> None:
    paths, schemas = (api.get("/v1/openapi.json").json()[name] for name in ("paths", "components"))
    assert schemas["schemas"]["Create"]["properties"]["secrets"]["writeOnly"]
    for path in (EPISODES, f"{EPISODES}/restore"):
        (header,) = (one for one in paths[path]["post"]["parameters"] if one["name"] == "X-Secrets")
        assert header["schema"]["writeOnly"]
    answers = {name: schema for name, schema in schemas["schemas"].items() if "secrets" in schema.get("properties", ())}
    assert list(answers) == ["Create"]


def test_a_twin_has_them_and_outlives_its_source(api: httpx.Client) -> None:
    value = fresh()
    path = begun(api, secrets={"KEY": value, "JUDGE": value})
    twin = f"{EPISODES}/{api.post(f'{path}/fork', json={}).json()['id']}"
    api.delete(path)
    assert call(api, twin, "read", of="KEY")["observation"] == named(value)
    assert call(api, twin, "leave")["status"]["score"] == 1.0
    assert value not in api.get(f"{twin}/trace").text


def test_a_restored_episode_has_what_it_is_given_and_never_none_instead(served: Served, api: httpx.Client) -> None:
    value, other = fresh(), fresh()
    path = begun(api, secrets={"KEY": value, "JUDGE": value})
    frozen = api.post(f"{path}/snapshot").content
    assert value.encode() not in frozen

    def restored(**secrets: str) -> str:
        headers = {**OCTETS, "X-Secrets": packed(secrets)} if secrets else OCTETS
        answer = api.post(f"{EPISODES}/restore", content=frozen, headers=headers)
        assert answer.status_code == 201, answer.text
        return f"{EPISODES}/{answer.json()['id']}"

    whole, part = restored(KEY=other, JUDGE=other), restored(JUDGE=other)
    assert call(api, whole, "read", of="KEY")["observation"] == named(other)
    assert call(api, part, "read", of="MORE")["observation"] == "none"
    twin = f"{EPISODES}/{api.post(f'{part}/fork', json={}).json()['id']}"
    for one in (part, twin, restored()):
        assert blame(call(api, one, "read", of="KEY")) == ("C", "session_lost")
    assert call(api, restored(KEY=other), "leave")["status"]["validity"] == "invalid"
    assert not places(served, other)


def test_the_next_of_a_day_reads_none_for_what_the_one_before_had(api: httpx.Client) -> None:
    value = fresh()
    path = begun(api, secrets={"KEY": value})
    call(api, path, "leave")
    given, bare = (begun(api, after=path.rpartition("/")[2], **more) for more in ({"secrets": {"KEY": value}}, {}))
    assert call(api, given, "read", of="KEY")["observation"] == named(value)
    assert blame(call(api, bare, "read", of="KEY")) == ("C", "session_lost")


def test_a_key_is_for_one_value(api: httpx.Client) -> None:
    key = {"Idempotency-Key": uuid.uuid4().hex}
    body = {"environment": "confiding", "split": "train", "secrets": {"KEY": "one"}}
    first = api.post(EPISODES, json=body, headers=key)
    assert api.post(EPISODES, json=body, headers=key).json()["id"] == first.json()["id"]
    for more, headers in (({"secrets": {"KEY": "two"}}, {}), ({}, {"X-Secrets": packed({"KEY": "one"})})):
        assert api.post(EPISODES, json={**body, **more}, headers={**key, **headers}).status_code == 409
    path = f"{EPISODES}/{first.json()['id']}"
    assert call(api, path, "read", of="KEY")["observation"] == named("one")


# --- a process that is killed ---


def ask(server: Mortal, path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    status, _, said = server.ask("POST", path, body=body, headers=headers)
    assert status in {200, 201}, said
    told: dict[str, Any] = json.loads(said)
    return told


def test_a_journal_has_no_digest_of_a_secret(tmp_path: Path) -> None:
    """A short secret could be, by anybody who reads a digest of it."""
    body = {"environment": "confiding", "split": "train"}
    with mortal(tmp_path, f"{ENV}:env") as server:
        for secrets in ({"PIN": "1234"}, {"PIN": "5678"}, {"CODE": "1234"}):
            ask(server, EPISODES, {**body, "secrets": secrets}, **{"Idempotency-Key": uuid.uuid4().hex})
        server.kill()
    with contextlib.closing(sqlite3.connect(tmp_path / "journal" / "0.journal")) as journal:
        written = journal.execute("SELECT body FROM events WHERE kind = 'created' ORDER BY number").fetchall()
    wanted = [codec.loads(codec.loads(body, Created).wanted, EpisodeSpec) for (body,) in written]
    assert [one.secrets for one in wanted] == [("PIN",), ("PIN",), ("CODE",)]
    digests = [one.request for one in wanted]
    assert digests[0] == digests[1] != digests[2]


def test_a_repeated_creation_brings_its_secrets_again(tmp_path: Path) -> None:
    body = {"environment": "confiding", "split": "train", "secrets": {"KEY": "value"}}
    key = {"Idempotency-Key": "one"}
    with mortal(tmp_path, f"{ENV}:env", before=DYING) as server:
        server.wish("after Created")
        with pytest.raises(OSError, match=r"reset|closed"):
            ask(server, EPISODES, body, **key)
        server.start()
        path = f"{EPISODES}/{ask(server, EPISODES, body, **key)['id']}"
        read = {"name": "read", "arguments": {"of": "KEY"}}
        assert ask(server, f"{path}/calls", read)["observation"] == named("value")
        server.again()
        assert f"{EPISODES}/{ask(server, EPISODES, body, **key)['id']}" == path  # That it was begun is known.
        status, _, said = server.ask("POST", f"{path}/calls", body={"name": "idle"})
        assert status == 409, said
        assert b"the secret 'KEY' went with the process" in said, said


def test_a_repeated_restore_brings_its_secrets_again(tmp_path: Path) -> None:
    """Whoever has looked at it meanwhile."""
    key = {"Idempotency-Key": "one", "X-Secrets": packed({"KEY": "other"})}
    with mortal(tmp_path, f"{ENV}:env", before=DYING) as server:
        body = {"environment": "confiding", "split": "train", "secrets": {"KEY": "value"}}
        path = f"{EPISODES}/{ask(server, EPISODES, body)['id']}"
        read = {"name": "read", "arguments": {"of": "KEY"}}
        ask(server, f"{path}/calls", read)
        frozen = server.ask("POST", f"{path}/snapshot")[2]
        restore = f"{EPISODES}/restore"
        server.wish("after Created")
        with pytest.raises(OSError, match=r"reset|closed"):
            server.ask("POST", restore, body=frozen, headers={**OCTETS, **key})
        server.start()
        for one in json.loads(server.ask("GET", EPISODES)[2])["episodes"]:
            assert server.told(one["id"])["turns"] == 1
        for _ in range(2):
            status, _, said = server.ask("POST", restore, body=frozen, headers={**OCTETS, **key})
            assert status == 201, said
            restored = f"{EPISODES}/{json.loads(said)['id']}"
            assert ask(server, f"{restored}/calls", read)["observation"] == named("other")


@pytest.mark.slow
def test_an_episode_with_turns_is_not_begun_again(tmp_path: Path) -> None:
    create, key = {"environment": "confiding", "split": "train", "secrets": {"KEY": "v"}}, {"Idempotency-Key": "one"}
    with mortal(tmp_path, f"{ENV}:env") as server:
        name = ask(server, EPISODES, create, **key)["id"]
        server.again()
        ask(server, f"{EPISODES}/{name}/terminate", {"reason": "over"})
        before = server.told(name)
        assert ask(server, EPISODES, create, **key)["id"] == name
        assert server.told(name) == before


# --- from afar ---


def reply(name: str, arguments: str = "{}") -> Reply:
    return Reply(Message("assistant", calls=(ToolCall("c", name, arguments),)))


@pytest.mark.parametrize("harness", ["there", "here"])
def test_a_remote_judge_gets_its_key(served: Served, harness: str) -> None:
    value = fresh()

    async def play(secrets: dict[str, str]) -> qn.Trace:
        async with qn.connect(served.url) as server:
            far = await server.environment("confiding", secrets=secrets)
            far = far.replace(harness=qn.ToolLoop()) if harness == "here" else far
            task = await asyncio.to_thread(far.task, "train", "desk")
            model = Scripted([reply("read", '{"of": "KEY"}'), reply("leave")])
            return (await qn.rollout(far, task, model, split="train")).trace

    trace = asyncio.run(play({"KEY": value, "JUDGE": value}))
    assert (trace.score, trace.turns[0].steps[0].observation) == (1.0, named(value))
    assert value not in trace.to_json().decode()
    assert asyncio.run(play({})).score == 0.0


@pytest.mark.parametrize("harness", ["there", "here"])
def test_a_remote_tool_that_tells_one_is_a_failure_of_the_world(served: Served, harness: str) -> None:
    async def play() -> qn.Trace:
        async with qn.connect(served.url) as server:
            far = await server.environment("confiding", secrets={"KEY": fresh()})
            far = far.replace(harness=qn.ToolLoop()) if harness == "here" else far
            task = await asyncio.to_thread(far.task, "train", "desk")
            return (await qn.rollout(far, task, Scripted([reply("tell", '{"of": "KEY"}')]), split="train")).trace

    failure = asyncio.run(play()).failure
    assert failure is not None
    assert (failure.component, failure.message) == ("S", "tell returned a secret")


LONG = "one of eight characters"


def test_remote_moments_need_them_again(served: Served) -> None:
    async def play() -> None:
        read = reply("read", '{"of": "KEY"}')
        async with qn.connect(served.url) as server:
            far, bare = await server.environment("confiding", secrets={"KEY": LONG}), await server.environment()
            async with await far.begin("train", "desk") as episode:
                moment = Snapshot.from_bytes((await episode.snapshot()).to_bytes())
                assert moment.secrets == ("KEY",)
                async with await episode.fork() as twin, await far.restore(moment) as again:
                    for one in (episode, twin, again):
                        turn = await one.session.step(read)
                        assert turn.steps[0].observation == named(LONG)
                with pytest.raises(EpisodeError, match="kept no turn"):
                    await episode.session.step(reply("tell", '{"of": "KEY"}'))
                async with await bare.restore(moment) as lost:
                    await lost.session.step(read)
                    assert lost.trace.failure is not None
                    assert "'KEY'" in lost.trace.failure.message
            with pytest.raises(UsageError, match="the secrets have"):
                await (await server.environment(secrets={"KEY": "x" * 20_000})).begin("train", "desk")

    asyncio.run(play())
