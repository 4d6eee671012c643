"""The three APIs on the wire: what is understood, what is said back, and what is refused in which form."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import httpx
import pytest

from quintain.harness import Request
from quintain.serve.model.api import ProgramRequest
from quintain.trace import Image, Message, Reply, Text, ToolCall
from tests.serve.model.bell import Model, says, talking

CHAT, RESPONSES, MESSAGES = "v1/chat/completions", "v1/responses", "v1/messages"
PNG = base64.b64encode(b"png").decode()
TOOL = {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}
TOOLS: dict[str, dict[str, Any]] = {
    CHAT: {"type": "function", "function": TOOL},
    RESPONSES: {"type": "function", **TOOL},
    MESSAGES: {"name": "look", "description": "Look.", "input_schema": TOOL["parameters"]},
}
SIMPLE: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    RESPONSES: {"model": "m", "input": "Hi"},
    MESSAGES: {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
}


def post(path: str, body: Any, *replies: Reply | Exception, **headers: str) -> tuple[httpx.Response, list[Request]]:
    """One request of a program that calls the episode's tools itself."""
    model = Model(*replies)

    async def ask() -> httpx.Response:
        async with talking(model, "*", listed=True) as talk:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            return await talk.client.post(path, content=content, headers=headers)

    return asyncio.run(ask()), model.asked


HEARD = (
    Message("system", "Be kind."),
    Message("user", (Text("What"), Text("is it?"), Image("image/png", b"png"))),
    Message("assistant", "I look.", (ToolCall("a", "look", '{"x":1}'), ToolCall("b", "look", "{}")), reasoning="Hm."),
    Message("tool", "dark", call_id="a"),
    Message("tool", (Text("light"), Image("image/png", b"png")), call_id="b"),
    Message("user", "So?"),
)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
URL = f"data:image/png;base64,{PNG}"
CONVERSATIONS: dict[str, dict[str, Any]] = {
    CHAT: {
        "messages": [
            {"role": "developer", "content": "Be kind."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What"},
                    {"type": "text", "text": "is it?"},
                    {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
                ],
            },
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "I look."}],
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"x":1}'}},
                    {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "dark"},
            {
                "role": "tool",
                "tool_call_id": "b",
                "content": [{"type": "text", "text": "light"}, {"type": "image_url", "image_url": URL}],
            },
            {"role": "user", "content": "So?"},
        ]
    },
    RESPONSES: {
        "instructions": "Be kind.",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What"},
                    {"type": "input_text", "text": "is it?"},
                    {"type": "input_image", "image_url": URL, "detail": "low"},
                ],
            },
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"x":1}'},
            {"type": "function_call", "call_id": "b", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "dark"},
            {
                "type": "function_call_output",
                "call_id": "b",
                "output": [{"type": "input_text", "text": "light"}, {"type": "input_image", "image_url": URL}],
            },
            {"role": "user", "content": "So?"},
        ],
    },
    MESSAGES: {
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "What"}, {"type": "text", "text": "is it?"}, IMAGE]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": ""},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "a", "name": "look", "input": {"x": 1}},
                    {"type": "tool_use", "id": "b", "name": "look", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "dark"},
                    {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "light"}, IMAGE]},
                    {"type": "text", "text": "So?"},
                ],
            },
        ],
    },
}


@pytest.mark.parametrize("path", CONVERSATIONS)
def test_every_api_says_the_same_conversation(path: str) -> None:
    answer, asked = post(path, CONVERSATIONS[path], says("ok"))
    assert answer.status_code == 200, answer.text
    assert tuple(asked[0].messages) == HEARD


@pytest.mark.parametrize("path", TOOLS)
def test_every_api_offers_tools(path: str) -> None:
    _, asked = post(path, SIMPLE[path] | {"tools": [TOOLS[path]]}, says("ok"))
    (tool,) = asked[0].tools
    assert (tool.name, tool.description, tool.parameters) == ("look", "Look.", TOOL["parameters"])
    none: Any = {"type": "none"} if path == MESSAGES else "none"
    _, asked = post(path, SIMPLE[path] | {"tools": [TOOLS[path]], "tool_choice": none}, says("ok"))
    assert not asked[0].tools


CHOICES: list[tuple[str, Any, str]] = [
    (CHAT, "required", "*"),
    (CHAT, {"type": "function", "function": {"name": "look"}}, "look"),
    (RESPONSES, "required", "*"),
    (RESPONSES, {"type": "function", "name": "look"}, "look"),
    (MESSAGES, {"type": "any"}, "*"),
    (MESSAGES, {"type": "tool", "name": "look"}, "look"),
]


@pytest.mark.parametrize(("path", "choice", "expected"), CHOICES)
def test_forced_tool_choice_is_passed_to_the_model(path: str, choice: Any, expected: str) -> None:
    answer, asked = post(path, SIMPLE[path] | {"tools": [TOOLS[path]], "tool_choice": choice}, says("ok"))
    assert answer.status_code == 200, answer.text
    assert isinstance(asked[0], ProgramRequest)
    assert (asked[0].tool_choice, [tool.name for tool in asked[0].tools]) == (expected, ["look"])


@pytest.mark.parametrize(("path", "field"), [(CHAT, "stop"), (MESSAGES, "stop_sequences")])
def test_stop_texts_are_passed_to_the_model_and_applied(path: str, field: str) -> None:
    answer, asked = post(path, SIMPLE[path] | {field: ["Observation:", "END"]}, says("I look. Observation: dark"))
    assert isinstance(asked[0], ProgramRequest)
    assert asked[0].stop == ("Observation:", "END")
    assert "I look. " in answer.text
    assert "Observation" not in answer.text


SAID = says("I look.", ("look", {"x": "é"}), thoughts="Hm.")


def test_a_completion() -> None:
    answer, _ = post(CHAT, SIMPLE[CHAT] | {"tools": [TOOLS[CHAT]]}, SAID)
    body = answer.json()
    (choice,) = body["choices"]
    assert (body["object"], body["model"], choice["finish_reason"]) == ("chat.completion", "m", "tool_calls")
    assert choice["message"] == {
        "role": "assistant",
        "content": "I look.",
        "refusal": None,
        "reasoning_content": "Hm.",
        "tool_calls": [
            {"id": "c0_look", "type": "function", "function": {"name": "look", "arguments": '{"x": "\\u00e9"}'}}
        ],
    }
    assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def test_a_response() -> None:
    answer, _ = post(RESPONSES, SIMPLE[RESPONSES] | {"tools": [TOOLS[RESPONSES]]}, SAID)
    body = answer.json()
    thought, said, called = body["output"]
    assert thought["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert (said["content"][0]["text"], called["call_id"], called["name"]) == ("I look.", "c0_look", "look")
    assert (body["status"], body["usage"]["total_tokens"]) == ("completed", 5)


def test_a_message() -> None:
    answer, _ = post(MESSAGES, SIMPLE[MESSAGES] | {"tools": [TOOLS[MESSAGES]]}, SAID)
    body = answer.json()
    assert body["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c0_look", "name": "look", "input": {"x": "é"}},
    ]
    assert (body["stop_reason"], body["usage"]) == ("tool_use", {"input_tokens": 3, "output_tokens": 2})


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (CHAT, lambda body: body["choices"][0]["finish_reason"]),
        (RESPONSES, lambda body: body["incomplete_details"]["reason"]),
        (MESSAGES, lambda body: body["stop_reason"]),
    ],
)
def test_a_reply_that_was_cut_off_says_so(path: str, found: Any) -> None:
    cut = Reply(Message("assistant", "Well, I"), finish_reason="length")
    names = {CHAT: "length", RESPONSES: "max_output_tokens", MESSAGES: "max_tokens"}
    assert found(post(path, SIMPLE[path], cut)[0].json()) == names[path]


def frames(answer: httpx.Response) -> list[Any]:
    assert answer.headers["content-type"].startswith("text/event-stream")
    data = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(one) for one in data if one != "[DONE]"]


LONG = says("word " * 3000, ("look", {"x": "é" * 3000}), thoughts="Hm.")


def test_a_completion_in_chunks() -> None:
    asked = SIMPLE[CHAT] | {"tools": [TOOLS[CHAT]], "stream": True, "stream_options": {"include_usage": True}}
    answer, _ = post(CHAT, asked, LONG)
    chunks = frames(answer)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(one.get("content") or "" for one in deltas) == LONG.message.text
    called = [one["tool_calls"][0] for one in deltas if "tool_calls" in one]
    assert called[0]["id"] == "c0_look"
    assert "".join(one["function"]["arguments"] for one in called) == LONG.message.calls[0].arguments
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["usage"]["total_tokens"] == 5
    assert answer.text.endswith("data: [DONE]\n\n")
    assert max(map(len, answer.text.splitlines())) < 32_768


def test_a_response_in_events() -> None:
    answer, _ = post(RESPONSES, SIMPLE[RESPONSES] | {"tools": [TOOLS[RESPONSES]], "stream": True}, LONG)
    events = frames(answer)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert text == LONG.message.text
    called = "".join(e["delta"] for e in events if e["type"] == "response.function_call_arguments.delta")
    assert called == LONG.message.calls[0].arguments
    assert events[-1]["type"] == "response.completed"
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["reasoning", "message", "function_call"]


def test_a_message_in_events() -> None:
    answer, _ = post(MESSAGES, SIMPLE[MESSAGES] | {"tools": [TOOLS[MESSAGES]], "stream": True}, LONG)
    events = frames(answer)
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(one.get("text", "") for one in deltas) == LONG.message.text
    assert "".join(one.get("partial_json", "") for one in deltas) == LONG.message.calls[0].arguments
    assert [e["index"] for e in events if e["type"] == "content_block_stop"] == [0, 1, 2]


def test_a_response_goes_on_from_another() -> None:
    model = Model(says("", ("ring", {})), says("Done."))

    async def play() -> None:
        async with talking(model, listed=True) as talk:
            asked: dict[str, Any] = {
                "input": "Ring.",
                "instructions": "One.",
                "tools": [{"type": "function", "name": "ring"}],
            }
            first = (await talk.post(RESPONSES, asked)).json()
            await talk.act("ring")
            output = {"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "ding 1"}
            asked |= {"input": [output], "instructions": "Two.", "previous_response_id": first["id"]}
            second = (await talk.post(RESPONSES, asked)).json()
            assert second["output"][0]["content"][0]["text"] == "Done."
            unknown = await talk.post(RESPONSES, asked | {"previous_response_id": "resp_9"})
            assert (unknown.status_code, unknown.json()["error"]["type"]) == (404, "not_found_error")
            trace = await talk.end()
        assert [message.text for message in model.asked[1].messages] == ["Two.", "Ring.", "", "ding 1"]
        assert len(trace.turns[0].steps) == 1

    asyncio.run(play())


def test_a_function_in_a_namespace() -> None:
    space = {"type": "namespace", "name": "mcp__bell", "tools": [{"type": "function", "name": "ring"}]}
    model = Model(says("", ("mcp__bell__ring", {})), says("Done."))

    async def play() -> None:
        async with talking(model, listed=True) as talk:
            (call,) = (await talk.post(RESPONSES, {"input": "Ring.", "tools": [space]})).json()["output"]
            assert (call["namespace"], call["name"]) == ("mcp__bell", "ring")
            await talk.act("ring")
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "ding 1"}
            given = [{"role": "user", "content": "Ring."}, call, output]
            await talk.post(RESPONSES, {"input": given, "tools": [space]})
            trace = await talk.end()
        assert [len(turn.steps) for turn in trace.turns] == [1, 0]
        assert {turn.branch for turn in trace.turns} == {0}

    asyncio.run(play())


BAD: list[tuple[str, Any]] = [
    (CHAT, b"{"),
    (CHAT, b'{"messages": "\xff"}'),
    (CHAT, b"[" * 100_000),
    (CHAT, {}),
    (CHAT, {"messages": [{"role": "robot"}]}),
    (CHAT, {"messages": [{"role": "tool", "content": "x"}]}),
    (CHAT, {"messages": [{"role": "user", "tool_calls": [{"id": "a", "function": {"name": "b"}}]}]}),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "http://x/y.png"}]}]}),
    (
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "data:image/png;base64,!"}]}]},
    ),
    (CHAT, SIMPLE[CHAT] | {"n": 2}),
    (CHAT, SIMPLE[CHAT] | {"stop": [1]}),
    (CHAT, SIMPLE[CHAT] | {"response_format": {"type": "json_object"}}),
    (CHAT, SIMPLE[CHAT] | {"tool_choice": "required"}),
    (CHAT, SIMPLE[CHAT] | {"tool_choice": {"type": "allowed_tools"}}),
    (CHAT, SIMPLE[CHAT] | {"tool_choice": {"type": "function", "function": {"name": "unknown"}}}),
    (CHAT, SIMPLE[CHAT] | {"functions": [TOOL]}),
    (CHAT, SIMPLE[CHAT] | {"audio": {}}),
    (CHAT, SIMPLE[CHAT] | {"modalities": ["text", "audio"]}),
    (CHAT, SIMPLE[CHAT] | {"logprobs": True}),
    (CHAT, SIMPLE[CHAT] | {"web_search_options": {}}),
    (CHAT, SIMPLE[CHAT] | {"function_call": {"name": "look"}}),
    (CHAT, {"messages": [{"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}}]}),
    (CHAT, {"messages": []}),
    (CHAT, SIMPLE[CHAT] | {"max_tokens": 0}),
    (RESPONSES, b"nothing"),
    (RESPONSES, {"input": []}),
    (RESPONSES, {"input": [1]}),
    (RESPONSES, {"input": [{"type": "function_call_output", "output": "x"}]}),
    (RESPONSES, {"input": [{"type": "function_call", "name": "look"}]}),
    (RESPONSES, {"input": "x", "include": ["message.output_text.logprobs"]}),
    (RESPONSES, {"input": [{"type": "item_reference", "id": "x"}]}),
    (RESPONSES, {"input": [{"role": "robot", "content": "x"}]}),
    (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_file"}]}]}),
    (RESPONSES, {"input": "x", "tools": [{"type": "function"}]}),
    (RESPONSES, {"input": "x", "tool_choice": "required"}),
    (RESPONSES, {"input": "x", "text": {"format": {"type": "json_schema"}}}),
    (RESPONSES, {"input": "x", "background": True}),
    (RESPONSES, {"input": "x", "conversation": "c"}),
    (MESSAGES, b""),
    (MESSAGES, {"max_tokens": 9, "messages": []}),
    (MESSAGES, SIMPLE[MESSAGES] | {"output_config": {"format": {"type": "json_schema"}}}),
    (MESSAGES, SIMPLE[MESSAGES] | {"mcp_servers": [{"type": "url"}]}),
    (MESSAGES, {"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}),
    (MESSAGES, {"max_tokens": 1, "messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]}),
    (MESSAGES, SIMPLE[MESSAGES] | {"stop_sequences": "x"}),
    (MESSAGES, SIMPLE[MESSAGES] | {"tool_choice": {"type": "tool", "name": "unknown"}}),
    (MESSAGES, SIMPLE[MESSAGES] | {"tools": [{"name": "x"}]}),
    (MESSAGES, {"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "document"}]}]}),
    (MESSAGES, {"max_tokens": 1, "messages": [{"role": "robot", "content": "x"}]}),
]


@pytest.mark.parametrize(("path", "body"), BAD, ids=str)
def test_unsupported_requests_are_refused_in_the_form_of_the_api(path: str, body: Any) -> None:
    answer, asked = post(path, body)
    assert (answer.status_code, asked) == (400, [])
    document = answer.json()
    assert document["error"]["type"] == "invalid_request_error"
    assert document["error"]["message"]
    assert (document.get("type") == "error") == (path == MESSAGES)


def test_requests_without_the_key_are_refused() -> None:
    answer, asked = post(CHAT, SIMPLE[CHAT], Authorization="Bearer sk-other")
    assert (answer.status_code, answer.json()["error"]["code"], asked) == (401, "invalid_api_key", [])
    answer, _ = post(MESSAGES, SIMPLE[MESSAGES], **{"Authorization": "", "x-api-key": "sk-other"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")


@pytest.mark.parametrize(
    "path", ["v1", "v1/embeddings", "v1/messages/count_tokens", "v2/messages", "../nobody/v1/messages"]
)
def test_unknown_paths_are_404(path: str) -> None:
    assert post(path, {})[0].status_code == 404
    answer, _ = post(path, {}, **{"anthropic-version": "2023-06-01"})
    assert (answer.status_code, answer.json().get("type") == "error") == (404, not path.startswith(".."))


def test_models_have_a_name() -> None:
    async def play() -> None:
        async with talking(Model()) as talk:
            assert (await talk.client.get("v1/models")).json()["data"][0]["id"] == "quintain"
            named = (await talk.client.get("v1/models/some/other")).json()
            assert (named["id"], named["display_name"]) == ("some/other", "some/other"), "whatever it is called"
            assert (await talk.client.get(CHAT)).status_code == 405

    asyncio.run(play())


def test_a_model_that_fails_while_a_stream_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    from quintain.serve.model import endpoint

    monkeypatch.setattr(endpoint, "_QUIET_S", 0.0)
    for path, name in ((CHAT, "error"), (RESPONSES, "code"), (MESSAGES, "error")):
        answer, _ = post(path, SIMPLE[path] | {"stream": True}, RuntimeError("no weights"))
        assert answer.status_code == 200
        (event,) = frames(answer)
        assert "no weights" in json.dumps(event)
        assert name in event
