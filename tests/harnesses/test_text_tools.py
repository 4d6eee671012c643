"""Text-format calls: which parts of a reply are calls, and the exact error for each malformed one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain import codec
from quintain.harness import Request
from quintain.harnesses import TextTools
from quintain.tools import collect
from quintain.trace import Image, Message, Reply, Text, ToolCall
from tests.harnesses.agents import Library

DEEP = "maximum recursion depth exceeded while deserializing an object"
FORM = '; write <tool_call>{"name": "TOOL", "arguments": {...}}</tool_call>'

TEXTS = st.text(st.characters(exclude_characters="<", codec="utf-8"))


def parsed(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    reply, errors = TextTools().parse(Reply(Message("assistant", text)), turn=3)
    assert reply.message.text == text
    return [(call.name, call.arguments) for call in reply.message.calls], errors


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("no call", []),
        ('<tool_call>{"name": "a"}</tool_call>', [("a", "{}")]),
        ('<tool_call>\n{"name": "a", "arguments": {"x": [1,  2]}}\n</tool_call>', [("a", '{"x": [1,  2]}')]),
        ('<tool_call>{"name":"a"}</tool_call> and <tool_call>{"name":"b"}</tool_call>', [("a", "{}"), ("b", "{}")]),
        ('```json\n{"name": "a", "arguments": {}}\n```', [("a", "{}")]),
        (
            '```json\n{"name": "a", "arguments": {}}\n```\n<tool_call>{"name":"b"}</tool_call>',
            [("a", "{}"), ("b", "{}")],
        ),
        ('The answer:\n```json\n{"name": "Ann"}\n```', []),
        ('```python\n{"name": "a", "arguments": {}}\n```', []),
        ('Say {"name": "a", "arguments": {}}', []),
    ],
)
def test_a_parser_finds_the_calls_of_a_reply(text: str, calls: list[tuple[str, str]]) -> None:
    assert parsed(text) == (calls, [])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "Input data was truncated"),
        ("{oops}", "JSON is malformed: object keys must be strings (byte 1)"),
        ('{"name": "a"} {', "JSON is malformed: trailing characters (byte 15)"),
        ("[1]", "Expected `object`, got `array`"),
        ("{}", "Object missing required field `name`"),
        ('{"name": 5}', "Expected `str`, got `int` - at `$.name`"),
        ('{"name": "a", "args": {}}', "Object contains unknown field `args`"),
        ('{"name": "a", "arguments": "{}"}', "Expected `object`, got `str` - at `$.arguments`"),
        ('{"name": "a", "arguments": ' + '{"a":' * 5000, DEEP),
    ],
)
def test_a_malformed_call_has_an_exact_error(text: str, error: str) -> None:
    assert parsed(f"<tool_call>{text}</tool_call>") == ([], [f"error: tool call 1: {error}{FORM}"])


def test_an_open_call_has_an_exact_error_and_does_not_take_the_next_one() -> None:
    text = '<tool_call>{"name": "a"}\n<tool_call>{"name": "b"}</tool_call>'
    assert parsed(text) == ([("b", "{}")], [f"error: tool call 1: <tool_call> has no </tool_call>{FORM}"])


def test_a_fenced_block_within_marks_is_one_error() -> None:
    calls, errors = parsed('<tool_call>\n```json\n{"name": "a", "arguments": {}}\n```\n</tool_call>')
    assert (calls, len(errors)) == ([], 1)


def test_a_malformed_fenced_call_is_an_error_but_other_json_is_not() -> None:
    text = '```json\n{"name": "a", "arguments": }\n```\n```json\n[1,\n```'
    assert parsed(text) == ([], [f"error: tool call 1: JSON is malformed: invalid character (byte 27){FORM}"])


@given(TEXTS, st.dictionaries(TEXTS, st.integers() | TEXTS))
def test_a_parser_reads_what_was_written(name: str, arguments: dict[str, int | str]) -> None:
    text = codec.text(arguments)
    written = f'{{"name": {codec.text((name,))[1:-1]}, "arguments": {text}}}'
    assert parsed(f"<tool_call>{written}</tool_call>") == ([(name, text)], [])


@given(st.text(alphabet='<tool_cal>/{}"nameruts:\n`json ', max_size=200))
def test_a_parser_survives_any_text(text: str) -> None:
    parsed(text)


def test_a_rendered_request_has_text_only() -> None:
    call = ToolCall("1", "look", "{}")
    picture = Image("image/png", b"x")
    messages = [
        Message("user", "Hello"),
        Message("assistant", "I look.", (call, call)),
        Message("tool", "a", call_id="1"),
        Message("tool", "b", call_id="1"),
        Message("user", "Go on."),
        Message("assistant", "", (call, call)),
        Message("tool", (Text("c"), picture), call_id="1"),
        Message("tool", "d", call_id="1"),
    ]
    tools = tuple(collect(Library).values())
    rendered = TextTools().render(Request(messages=messages, tools=tools))
    assert rendered.tools == ()
    assert [message.role for message in rendered.messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "user",
        "assistant",
        "user",
    ]
    assert rendered.messages[2] == Message("assistant", "I look.")
    assert rendered.messages[3].text == "<tool_response>\na\n</tool_response>\n<tool_response>\nb\n</tool_response>"
    assert isinstance(blocks := rendered.messages[-1].content, tuple)
    assert picture in blocks
    assert TextTools().render(Request(messages=messages[:1], tools=())).messages == tuple(messages[:1])
