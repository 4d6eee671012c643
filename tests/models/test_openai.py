"""Against a server on loopback that hangs, dies, limits and babbles; never against a mock transport."""

from __future__ import annotations

import asyncio
import math
import sys
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.errors import ModelError, UsageError
from quintain.harness import Request
from quintain.models import OpenAI
from quintain.state import State
from quintain.tools import collect, tool
from quintain.trace import Image, Message, Reply, Text, Tokens, ToolCall, Usage

from .server import GOOD, HELLO, KEY, Action, Server, answer, completion, fail, play, serving


class Desk(State):
    @tool
    def refund(self, order: str, cents: int = 5) -> str:
        """Pay back.

        Args:
            order: Which one.
            cents: How much.
        """
        return f"{order}: {cents}"


# --- what is sent ---


def test_a_plain_server_answers() -> None:
    reply, server = play(GOOD)
    assert reply == Reply(Message("assistant", "hello"), usage=Usage(7, 2), finish_reason="stop")
    (sent,) = server.requests
    assert sent == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 1.0,
        "top_p": 1.0,
        "seed": 5,
        "logprobs": True,
        "return_token_ids": True,
    }
    assert server.headers[0][":request"] == "POST /v1/chat/completions HTTP/1.1"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_sampling_tools_and_extra_fields_are_sent() -> None:
    request = Request(
        messages=HELLO.messages,
        tools=list(collect(Desk).values()),
        seed=2**31 + 7,
        temperature=0.5,
        top_p=0.9,
        max_tokens=64,
    )
    _, server = play(GOOD, request=request, tokens=False, extra={"top_k": 20, "temperature": 0.1})
    (sent,) = server.requests
    assert sent["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "refund",
                "description": "Pay back.",
                "parameters": request.tools[0].parameters,
            },
        }
    ]
    del sent["messages"], sent["tools"]
    assert sent == {"model": "m", "seed": 7, "temperature": 0.1, "top_p": 0.9, "max_tokens": 64, "top_k": 20}


def test_calls_and_pictures_are_sent_in_the_places_that_servers_accept() -> None:
    picture = Image("image/png", b"\x89PNG")
    messages = [
        Message("system", "s"),
        Message("user", (Text("look"), picture)),
        Message("assistant", "", calls=(ToolCall("a", "f", "{bad"), ToolCall("b", "f", "{}")), reasoning="hm"),
        Message("tool", (Text("seen"), picture), call_id="a"),
        Message("tool", "plain", call_id="b"),
        Message("assistant", ""),
        Message("tool", (picture,), call_id="c"),
    ]
    _, server = play(GOOD, request=Request(messages=messages, tools=[]))
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}
    assert server.requests[0]["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "look"}, url]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{bad"}},
                {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "content": "seen\n[image/png, 4 bytes]", "tool_call_id": "a"},
        {"role": "tool", "content": "plain", "tool_call_id": "b"},
        {"role": "user", "content": [url]},
        {"role": "assistant", "content": ""},
        {"role": "tool", "content": "[image/png, 4 bytes]", "tool_call_id": "c"},
        {"role": "user", "content": [url]},
    ]


def test_key_and_address_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> Server:
        async with serving(GOOD) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/")
            monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
            model = OpenAI("m")
            await model(HELLO)
            await model.aclose()
            return server

    server = asyncio.run(run())
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert server.headers[0][":request"].startswith("POST /v1/chat/")


def test_without_a_key_none_is_sent() -> None:
    _, server = play(GOOD, api_key="")
    assert "authorization" not in server.headers[0]


# --- what comes back ---


def test_calls_are_passed_on_as_the_model_wrote_them() -> None:
    calls = [
        {"id": "one", "type": "function", "function": {"name": "f", "arguments": '{"a": 1,}'}},
        {"id": None, "type": "function", "function": {"name": "g", "arguments": {"b": 2}}},
        {"type": "function", "function": {"name": "h", "arguments": None}},
    ]
    reply, _ = play(answer(completion(None, message={"tool_calls": calls}, finish_reason="tool_calls")))
    assert reply.message.content == ""
    assert reply.message.calls == (
        ToolCall("one", "f", '{"a": 1,}'),
        ToolCall("call_1_1", "g", '{"b":2}'),
        ToolCall("call_1_2", "h", "{}"),
    )


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_thoughts_are_kept_apart(field: str) -> None:
    reply, _ = play(answer(completion(message={field: "let me see", "tool_calls": None})))
    assert (reply.message.reasoning, reply.message.text) == ("let me see", "hello")


LOGPROBS = {"content": [{"token": "he", "logprob": -0.5, "top_logprobs": []}, {"token": "llo", "logprob": -9999.0}]}


def vllm() -> dict[str, Any]:
    body = completion(token_ids=[11, 12], logprobs=LOGPROBS, stop_reason=None, routed_experts=None)
    return body | {"prompt_token_ids": [1, 2, 3], "prompt_logprobs": None, "kv_transfer_params": None}


def sglang() -> dict[str, Any]:
    body = completion(token_ids=[11, 12], prompt_token_ids=[1, 2, 3], logprobs=LOGPROBS, matched_stop=151645)
    return body | {"metadata": {"weight_version": "4"}}


@pytest.mark.parametrize(("body", "version"), [(vllm(), None), (sglang(), 4)], ids=["vllm", "sglang"])
def test_token_ids_are_taken_as_the_server_gives_them(body: dict[str, Any], version: int | None) -> None:
    reply, _ = play(answer(body), tokens=True)
    assert reply.tokens == Tokens([1, 2, 3], [11, 12], [-0.5, -9999.0])
    assert reply.policy_version == version


def test_ids_without_logprobs_will_do_unless_insisted_on() -> None:
    body = vllm()
    body["choices"][0]["logprobs"] = None
    assert play(answer(body))[0].tokens == Tokens([1, 2, 3], [11, 12])
    error, count = fail(answer(body), tokens=True)
    assert (error.kind, count) == ("quintain:model_reply_invalid", 2)
    assert "not one logprob for each" in str(error)


def test_logprobs_without_ids_are_of_no_use() -> None:
    assert play(answer(completion(logprobs=LOGPROBS)))[0].tokens is None


@pytest.mark.parametrize(
    ("fields", "version"),
    [
        ({"policy_version": 12}, 12),
        ({"policy_version": 1, "metadata": {"weight_version": "2"}}, 1),
        ({"sglext": {"weight_version": "3", "cached_tokens_details": {}}}, 3),
        ({"metadata": {"weight_version": "default"}}, None),
        ({"metadata": {}}, None),
        ({"metadata": None, "policy_version": [1]}, None),
    ],
)
def test_the_policy_version(fields: dict[str, Any], version: int | None) -> None:
    assert play(answer(completion() | fields))[0].policy_version == version


def test_a_server_may_leave_out_the_usage() -> None:
    body = completion()
    del body["usage"]
    assert play(answer(body))[0].usage == Usage()


# --- servers that know less ---


def picky(*unknown: str) -> Action:
    """Refuses the first unknown field that the request has."""

    async def act(writer: Any) -> None:
        server: Server = SERVERS[-1]
        for name in unknown:
            if name in server.requests[-1]:
                refusal = {"error": {"message": f"Unsupported parameter: '{name}'.", "param": name}}
                return await answer(refusal, 400)(writer)
        return await GOOD(writer)

    return act


SERVERS: list[Server] = []


def test_fields_unknown_to_a_server_are_left_out_from_then_on() -> None:
    async def run() -> list[dict[str, Any]]:
        async with serving(picky("return_token_ids", "logprobs", "max_tokens")) as server:
            SERVERS.append(server)
            model = OpenAI("m", base_url=server.url, retries=0)
            for _ in range(2):
                await model(msgspec.structs.replace(HELLO, max_tokens=9))
            await model.aclose()
            return server.requests

    *_, last, again = sent = asyncio.run(run())
    assert len(sent) == 5, "three refusals, the first answer, and the second at once"
    assert last == again
    assert last["max_completion_tokens"] == 9
    assert last.keys().isdisjoint({"return_token_ids", "logprobs", "max_tokens"})


def test_token_ids_that_were_insisted_on_are_not_left_out() -> None:
    refusal = {"error": {"message": "Unrecognized request argument supplied: return_token_ids"}}
    error, count = fail(answer(refusal, 400), tokens=True)
    assert count == 1
    assert "return_token_ids" in str(error)


def test_a_refusal_that_leaving_out_does_not_cure_is_forgotten() -> None:
    error, count = fail(answer(b"unexpected: seed, logprobs", 400))
    assert count == 2
    assert "unexpected: seed" in str(error)


# --- wrong usage ---


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"base_url": "localhost:8000"}, "must be like http://localhost:8000/v1"),
        ({"base_url": "ftp://x/v1"}, "must be like"),
        ({"base_url": "http://[::1"}, "not a URL"),
        ({"api_key": "two words"}, "printable"),
        ({"api_key": "line\nbreak"}, "printable"),
        ({"retries": -1}, "retries >= 0"),
        ({"timeout_s": 0}, "timeout_s > 0"),
        ({"backoff_s": math.nan}, "backoff_s >= 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        OpenAI("m", **options)
    assert "two words" not in str(caught.value)


def test_a_missing_extra_answers_with_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(UsageError, match=r"pip install 'quintain\[http\]'"):
        OpenAI("m")


def test_each_event_loop_has_its_own_connections() -> None:
    holder: dict[str, OpenAI] = {}

    async def run() -> str:
        async with serving(GOOD) as server:
            model = holder.setdefault("model", OpenAI("m", base_url=server.url))
            model._endpoint._url = model._endpoint._url.copy_with(port=int(server.url.split(":")[2].split("/")[0]))
            replies = await asyncio.gather(*(model(HELLO) for _ in range(5)))
            await model.aclose()
            await model.aclose()
            return replies[0].message.text

    assert [asyncio.run(run()), asyncio.run(run())] == ["hello", "hello"]


def test_replies_survive_their_record() -> None:
    reply, _ = play(answer(vllm()))
    assert msgspec.json.decode(msgspec.json.encode(reply), type=Reply) == reply


# --- versions per token ---

SPANS = [{"version": "6", "start": 0, "end": 1}, {"version": "7", "start": 1, "end": 2}]


def versioned(*versions: Any, count: int = 2, **fields: Any) -> dict[str, Any]:
    """Returns a completion with this program's own field; `count` tokens."""
    return completion(token_ids=list(range(count)), prompt_token_ids=[1], token_versions=list(versions)) | fields


@pytest.mark.parametrize(
    ("body", "versions"),
    [
        (versioned(6, 7, policy_version=7), [(0, 6), (1, 7)]),
        (versioned("6", "6"), [(0, 6)]),
        (versioned(6, 6, 7, 7, 6, count=5), [(0, 6), (2, 7), (4, 6)]),
        (versioned(count=0), msgspec.UNSET),
        (versioned(None, "default"), msgspec.UNSET),
        (completion(token_ids=[11, 12], prompt_token_ids=[1], weight_versions=SPANS), [(0, 6), (1, 7)]),
        (sglang() | {"metadata": {"weight_version": "7", "weight_versions": SPANS}}, [(0, 6), (1, 7)]),
        (sglang() | {"metadata": {"weight_versions": [{"version": "default", "start": 0, "end": 2}]}}, msgspec.UNSET),
        (vllm(), msgspec.UNSET),
    ],
)
def test_versions_of_tokens_are_read_where_servers_put_them(body: dict[str, Any], versions: Any) -> None:
    tokens = play(answer(body))[0].tokens
    assert tokens is not None
    assert tokens.versions == versions


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (versioned(6), "2 completion tokens, but 1 token_versions"),
        (versioned(6, 7, 8), "2 completion tokens, but 3 token_versions"),
        (versioned(6, None), "some tokens have no version"),
        (versioned("default", 7), "some tokens have no version"),
        (completion(token_ids=[1, 2], prompt_token_ids=[1], weight_versions=SPANS[:1]), "cover 2 completion tokens"),
        (completion(token_ids=[1, 2], prompt_token_ids=[1], weight_versions=SPANS[1:]), "cover 2 completion tokens"),
        (completion(token_ids=[1], prompt_token_ids=[1], weight_versions=SPANS), "cover 1 completion tokens"),
        (completion(token_ids=[1, 2], prompt_token_ids=[1], weight_versions=SPANS[::-1]), "without a gap"),
        (
            completion(token_ids=[1, 2, 3], prompt_token_ids=[1], logprobs=LOGPROBS),
            "3 completion tokens, but 2 logprobs",
        ),
    ],
)
def test_a_reply_with_other_lengths_is_malformed(body: dict[str, Any], says: str) -> None:
    error, count = fail(answer(body))
    assert (error.kind, count) == ("quintain:model_reply_invalid", 2)
    assert says in str(error)


@pytest.mark.parametrize(
    ("bodies", "says"),
    [
        ([versioned(6, 7), vllm()], "earlier replies of this endpoint had policy versions per token"),
        ([versioned(6, 7), vllm() | {"policy_version": 7}], "earlier replies of this endpoint had policy versions per"),
        ([sglang(), vllm()], "earlier replies of this endpoint had a policy version, this one does not"),
        ([sglang(), completion()], "earlier replies of this endpoint had a policy version, this one does not"),
    ],
)
def test_an_endpoint_that_stops_giving_versions_fails(bodies: list[dict[str, Any]], says: str) -> None:
    async def run() -> None:
        async with serving(*map(answer, bodies)) as server:
            model = OpenAI("m", base_url=server.url, backoff_s=0.001)
            await model(HELLO)
            with pytest.raises(ModelError, match=says) as caught:
                await model(HELLO)
            assert caught.value.kind == "quintain:model_reply_invalid"
            await model.aclose()

    asyncio.run(run())


def test_a_reply_without_tokens_drops_no_version() -> None:
    async def run() -> None:
        async with serving(*map(answer, [versioned(6, 7), versioned(count=0), versioned(7, 7)])) as server:
            model = OpenAI("m", base_url=server.url)
            replies = [await model(HELLO) for _ in range(3)]
            assert [one.tokens and one.tokens.versions for one in replies] == [
                [(0, 6), (1, 7)],
                msgspec.UNSET,
                [(0, 7)],
            ]
            await model.aclose()

    asyncio.run(run())


def test_dropped_versions_fail_the_episode_and_leave_the_group() -> None:
    async def run() -> qn.Group:
        async with serving(answer(versioned(6, 7)), answer(versioned(6, 7)), answer(versioned(6))) as server:
            model = OpenAI("m", base_url=server.url, backoff_s=0.001)
            config = qn.Config(concurrency=1, gate_rate=None)
            tasks = [qn.Task(id="a", prompt="Say it.", start=Desk())]
            verifier = qn.Verifier(answered)
            env = qn.Environment("one", tasks=lambda _: tasks, harness=qn.ToolLoop(), verifier=verifier, state=Desk)
            async for group in qn.rollouts(env.replace(config=config), model, tasks, group=3):
                await model.aclose()
                return group
        raise AssertionError

    group = asyncio.run(run())
    assert [trace.validity for trace in group.traces] == ["valid", "valid", "invalid"]
    failure = group.traces[2].failure
    assert failure is not None
    assert (failure.component, failure.kind) == ("model", "quintain:model_reply_invalid")
    assert "2 completion tokens, but 1 token_versions" in failure.message
    assert [(row.member, row.versions, row.advantage) for row in qn.trajectories(group.traces)] == [
        (0, [(1, 6), (2, 7)], 0.0),
        (1, [(1, 6), (2, 7)], 0.0),
    ]


@qn.reward
def answered(view: qn.EpisodeView[Desk]) -> float:
    return float(bool(view.trace.turns))
