"""Turns and steps that a program's requests become; `Talk.end` replays every record to the byte."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from quintain.harness import Request
from quintain.serve.model import conversation
from quintain.trace import Message, Reply, ToolCall, Trace
from tests.serve.model.bell import Model, drawn, says, talking

USER = {"role": "user", "content": "Go on."}


def answered(call: dict[str, Any], text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call["id"], "content": text}


def shape(trace: Trace) -> list[tuple[str, list[str]]]:
    """Returns each turn's text and its calls with their observations."""
    return [
        (turn.reply.message.text, [f"{step.call.name} {step.observation}" for step in turn.steps])
        for turn in trace.turns
    ]


def test_words_alone_are_the_answer() -> None:
    async def play() -> None:
        async with talking(Model(says("Hello."))) as talk:
            assert (await talk.chat(USER))["content"] == "Hello."
            assert not talk.episode.trace.turns, "nobody knows yet whether these are the last words"
            trace = await talk.end()
        assert (shape(trace), trace.reason) == ([("Hello.", [])], "the agent answered")

    asyncio.run(play())


def test_a_program_that_knows_no_tools_has_them_run_for_it() -> None:
    model = Model(says("One.", ("ring", {})), says("It rang."), says("Indeed."))

    async def play() -> None:
        async with talking(model) as talk:
            said = await talk.chat(USER)
            assert (said["content"], said.get("tool_calls")) == ("It rang.", None)
            await talk.chat(USER, said, {"role": "user", "content": "Sure?"})
            trace = await talk.end()
        assert [tool.name for tool in model.asked[0].tools] == ["ring", "look", "crack", "leave"]
        roles = [message.role for message in model.asked[2].messages]
        assert roles == ["user", "assistant", "tool", "assistant", "user"], "what was run for it is in its context"
        assert shape(trace) == [("One.", ["ring ding 1"]), ("It rang.", []), ("Indeed.", [])]
        assert {turn.branch for turn in trace.turns} == {0}
        assert trace.score == 1.0

    asyncio.run(play())


def test_a_call_is_an_action_when_the_program_makes_it() -> None:
    model = Model(says("Two.", ("mcp__bell__ring", '{ "times": 2}'), ("mcp__bell__ring", {"times": 1})), says("Done."))

    async def play() -> None:
        async with talking(model) as talk:
            assert await talk.tools() == ["ring", "look", "crack", "leave"]
            said = await talk.chat(USER, tools=["mcp__bell__ring"])
            assert talk.episode.state.rings == 0
            second = await talk.act("ring", times=1)
            assert second["content"][0]["text"] == "ding 1"
            first = await talk.act("ring", times=2)
            assert first["content"][0]["text"] == "ding 3"
            assert len(talk.episode.trace.turns) == 1, "all its calls are made"
            results = [
                answered(call, text) for call, text in zip(said["tool_calls"], ("ding 3", "ding 1"), strict=True)
            ]
            await talk.chat(USER, said, *results, tools=["mcp__bell__ring"])
            trace = await talk.end()
        (turn, _) = trace.turns
        assert [(step.call.id, step.call.name, step.call.arguments) for step in turn.steps] == [
            ("c1_mcp__bell__ring", "ring", '{"times": 1}'),
            ("c0_mcp__bell__ring", "ring", '{ "times": 2}'),
        ], "as the model wrote them, in the order in which they were made"

    asyncio.run(play())


def test_tokens_continue_where_the_context_does() -> None:
    model = Model(
        drawn(says("", ("ring", '{"times":1 }'), thoughts="hm"), [1, 2], [3]), drawn(says("ok"), [1, 2, 3, 4], [5])
    )

    async def play() -> None:
        async with talking(model, listed=True) as talk:
            said = await talk.chat(USER, tools=["ring"])
            await talk.act("ring", times=1)
            call = said["tool_calls"][0]
            call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]))
            said.pop("reasoning_content")
            await talk.chat(USER, said, answered(call, "ding 1"), tools=["ring"])
            trace = await talk.end()
        first, second = trace.turns
        assert model.asked[1].messages[1] == first.reply.message, "as it was said, thoughts and spaces too"
        assert second.reply.tokens is not None
        assert (second.reply.tokens.prompt, second.branch, second.keep) == ([4], 0, None)
        assert second.reply.policy_version == 7

    asyncio.run(play())


def test_every_call_has_an_id_of_its_own() -> None:
    """Programs go by them, and not every server gives any."""
    nameless = Reply(Message("assistant", "", (ToolCall("", "ring", "{}"), ToolCall("a", "ring", "{}"))))
    model = Model(nameless, nameless)

    async def play() -> None:
        async with talking(model, listed=True) as talk:
            ids = [[call["id"] for call in (await talk.chat(USER, tools=["ring"]))["tool_calls"]] for _ in range(2)]
            await talk.act("ring")
            trace = await talk.end()
        assert ids == [["call_1", "a"], ["call_2", "a_1"]]
        assert trace.turns[1].steps[0].call.id == "call_2"

    asyncio.run(play())


def test_record_has_the_observation_as_the_program_sent_it() -> None:
    model = Model(says("", ("ring", {})), says("ok"))

    async def play() -> None:
        async with talking(model, listed=True) as talk:
            said = await talk.chat(USER, tools=["ring"])
            await talk.act("ring")
            await talk.chat(USER, said, answered(said["tool_calls"][0], "It said: ding 1"), tools=["ring"])
            trace = await talk.end()
        assert trace.turns[0].steps[0].observation == "ding 1"
        assert [m.text for m in trace.context(1)] == ["Go on.", "", "It said: ding 1"]
        assert trace.turns[1].keep == 2

    asyncio.run(play())


def test_arguments_that_the_program_changed_are_those_that_were_used() -> None:
    async def play() -> None:
        async with talking(Model(says("", ("ring", {}))), listed=True) as talk:
            await talk.chat(USER, tools=["ring"])
            await talk.act("ring", times=2)
            trace = await talk.end()
        assert trace.turns[0].steps[0].call.arguments == '{"times": 2}'
        assert trace.turns[0].reply.message.calls[0].arguments == "{}"
        assert trace.reason == "the program ended"

    asyncio.run(play())


def test_a_call_that_the_program_leaves_out_is_no_action() -> None:
    model = Model(says("Both.", ("ring", {}), ("leave", {})), says("Done."))

    async def play() -> None:
        async with talking(model, listed=True) as talk:
            said = await talk.chat(USER, tools=["ring", "leave"])
            await talk.act("ring")
            results = [answered(call, text) for call, text in zip(said["tool_calls"], ("ding 1", "no"), strict=True)]
            await talk.chat(USER, said, *results, tools=["ring", "leave"])
            trace = await talk.end()
        assert shape(trace) == [("Both.", ["ring ding 1"]), ("Done.", [])]

    asyncio.run(play())


def test_a_call_that_nobody_asked_for_is_a_turn_of_the_program() -> None:
    model = Model(says("", ("leave", {})), says("ok"))

    async def play() -> None:
        async with talking(model, listed=True) as talk:
            await talk.act("ring")
            await talk.chat(USER, tools=["leave"])
            await talk.act("ring", times=2)
            await talk.chat(USER, tools=["leave"])
            trace = await talk.end()
        assert shape(trace) == [("", ["ring ding 1"]), ("", []), ("", ["ring ding 3"]), ("ok", [])]
        assert trace.turns[0].reply.message.calls[0].id == "program_1"
        assert trace.turns[0].reply.usage.prompt == 0

    asyncio.run(play())


def test_helpers_of_a_program_take_turns() -> None:
    """Two conversations at once, each with calls: neither makes the other's."""
    model = Model(says("A.", ("ring", {"times": 1})), says("B.", ("ring", {"times": 2})))

    async def play() -> None:
        async with talking(model, listed=True) as talk:
            await talk.chat(USER, tools=["ring"])
            other = asyncio.ensure_future(talk.chat({"role": "user", "content": "Help."}, tools=["ring"]))
            while len(model.asked) < 2:  # noqa: ASYNC110  # the model has no event to wait for
                await asyncio.sleep(0)
            await talk.act("ring", times=1)
            async with asyncio.timeout(conversation._TURN_S / 2):  # It does not wait out its time.
                await other
            await talk.act("ring", times=2)
            trace = await talk.end()
        assert shape(trace) == [("A.", ["ring ding 1"]), ("B.", ["ring ding 3"])]

    asyncio.run(play())


def test_a_helper_may_be_needed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "_TURN_S", 0.05)
    model = Model(says("A.", ("ring", {"times": 1})), says("B.", ("ring", {"times": 2})))

    async def play() -> None:
        async with talking(model, listed=True) as talk:
            await talk.chat(USER, tools=["ring"])
            await talk.chat({"role": "user", "content": "Help."}, tools=["ring"])
            await talk.act("ring", times=2)
            await talk.act("ring", times=1)
            trace = await talk.end()
        assert shape(trace) == [("A.", []), ("B.", ["ring ding 2"]), ("", ["ring ding 3"])]

    asyncio.run(play())


def test_words_aside_are_no_answer() -> None:
    model = Model(says("Working.", ("ring", {})), says("A title"), says("Done."), says("Bye"))

    async def play() -> None:
        async with talking(model, listed=True) as talk:
            said = await talk.chat(USER, tools=["ring"])
            await talk.chat({"role": "user", "content": "Name this talk."})
            await talk.act("ring")
            assert len(talk.episode.trace.turns) == 1, "the title waits for the turn that is open"
            await talk.chat(USER, said, answered(said["tool_calls"][0], "ding 1"), tools=["ring"])
            await talk.chat({"role": "user", "content": "Sum up."})
            trace = await talk.end()
        assert [text for text, _ in shape(trace)] == ["Working.", "A title", "Bye", "Done."]
        assert trace.reason == "the agent answered"

    asyncio.run(play())


def test_late_tool_clients_are_refused() -> None:
    async def play() -> None:
        async with talking(Model(says("Hello."))) as talk:
            await talk.chat(USER)
            url = str(talk.client.base_url).replace("/m/", "/e/") + "mcp"
            answer = await talk.client.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
            said = answer.json()
            assert (answer.status_code, said["jsonrpc"], said["error"]["code"]) == (403, "2.0", -32600)
            assert said["error"]["message"].startswith("too_late: ")

    asyncio.run(play())


# The gate.


def test_tools_of_the_program_are_not_offered() -> None:
    model = Model(says("ok"))

    async def play() -> None:
        async with talking(model, "web_*", listed=True) as talk:
            await talk.chat(USER, tools=["bash", "web_read", "bell_ring", "ring"])
        assert [tool.name for tool in model.asked[0].tools] == ["web_read", "bell_ring", "ring"]

    asyncio.run(play())


def test_a_tool_of_the_programs_own_may_be_called_like_one_of_the_episodes() -> None:
    offers = {"bell_ring": "Ring  the bell.\nArgs: x", "boxing_ring": "Look up fights.", "ring": "Call somebody."}
    tools = [{"type": "function", "function": {"name": n, "description": said}} for n, said in offers.items()]
    tools.append({"type": "custom", "custom": {"name": "patch"}})
    model = Model(says("", *((name, {}) for name in ("boxing_ring", "ring", "patch"))), says("", ("bell_ring", {})))

    async def play() -> None:
        async with talking(model, listed=True) as talk:
            answer = await talk.post("v1/chat/completions", {"messages": [USER], "tools": tools})
            (call,) = answer.json()["choices"][0]["message"]["tool_calls"]
            assert call["function"]["name"] == "bell_ring"
            await talk.act("ring")
            trace = await talk.end()
        assert [tool.name for tool in model.asked[0].tools] == ["bell_ring"]
        steps = [[step.observation for step in turn.steps] for turn in trace.turns]
        assert steps == [[f"error: there is no tool {name!r}" for name in ("boxing_ring", "patch")], ["ding 1"]]
        assert model.asked[1].messages[-1].text == "error: there is no tool 'ring'"

    asyncio.run(play())


def test_a_call_of_a_tool_that_is_shut_never_reaches_the_program() -> None:
    model = Model(says("Sly.", ("bash", {"command": "rm"}), ("ring", {})), says("Sorry.", ("ring", {})))

    async def play() -> None:
        async with talking(model, listed=True) as talk:
            said = await talk.chat(USER, tools=["bash", "ring"])
            assert [call["function"]["name"] for call in said["tool_calls"]] == ["ring"]
            assert said["content"] == "Sorry."
            await talk.act("ring")
            trace = await talk.end()
        told = [message.text for message in model.asked[1].messages if message.role == "tool"]
        assert told == ["error: there is no tool 'bash'", "error: not run; see the other calls"]
        assert shape(trace) == [("Sly.", ["bash error: there is no tool 'bash'"]), ("Sorry.", ["ring ding 1"])]

    asyncio.run(play())


def test_a_program_with_other_tools_alone_must_be_allowed_them() -> None:
    async def play() -> None:
        async with talking(Model()) as talk:
            refused = await talk.chat(USER, tools=["bash"])
            assert refused["error"]["code"] == "agent_command_not_allowed"
            assert talk.conversation.over.is_set()
            trace = talk.episode.trace
        assert trace.failure is not None
        assert (trace.failure.component, trace.failure.kind) == ("H", "agent_command_not_allowed")
        assert "bash" in trace.failure.message

    asyncio.run(play())


def test_a_program_keeps_its_own_tools_where_it_may() -> None:
    both = says("Both.", ("ring", {}), ("bash", {"command": "ls"}))
    model = Model(says("First.", ("bash", {"command": "id"})), both, says("Done."))

    async def play() -> None:
        async with talking(model, "bash") as talk:
            first = await talk.chat(USER, tools=["bash"])
            one = answered(first["tool_calls"][0], "root")
            second = await talk.chat(USER, first, one, tools=["bash"])
            assert [call["function"]["name"] for call in second["tool_calls"]] == ["bash"]
            await talk.chat(USER, first, one, second, answered(second["tool_calls"][0], "a b"), tools=["bash"])
            trace = await talk.end()
        assert shape(trace) == [("First.", []), ("Both.", ["ring ding 1"]), ("Done.", [])]
        assert [m.text for m in trace.context(2) if m.role == "tool"] == ["root", "ding 1", "a b"]
        assert {turn.branch for turn in trace.turns} == {0}

    asyncio.run(play())


def test_arguments_that_are_no_object_are_the_models_mistake() -> None:
    model = Model(says("", ("ring", "{oops")), says("", ("bash", "[]")), says("Sorry."))

    async def play() -> None:
        async with talking(model, "bash", listed=True) as talk:
            assert (await talk.chat(USER, tools=["ring", "bash"]))["content"] == "Sorry."
            trace = await talk.end()
        (step,) = trace.turns[0].steps
        assert step.is_error
        assert "malformed" in str(step.observation)
        assert [m.text for m in trace.context(2)][-1] == "error: the arguments are no JSON object"

    asyncio.run(play())


def test_a_program_that_goes_away_leaves_a_whole_record() -> None:
    async def play() -> None:
        async with talking(Model(says("", ("ring", {}))), listed=True) as talk:
            await talk.chat(USER, tools=["ring"])
            trace = await talk.end()
        assert shape(trace) == [("", [])]

    asyncio.run(play())


@pytest.mark.parametrize("left", [True, False])
def test_a_question_is_asked_again_by_who_left_before_its_answer_came(*, left: bool) -> None:
    class Slow(Model):
        def __init__(self) -> None:
            super().__init__(says("Hello."), says("Hi."))
            self.gate = asyncio.Event()
            self.entered = asyncio.Event()

        async def __call__(self, request: Request) -> Any:
            self.entered.set()
            await self.gate.wait()
            return await super().__call__(request)

    async def play() -> None:
        model = Slow()
        async with talking(model) as talk:
            first = asyncio.ensure_future(talk.chat(USER))
            await model.entered.wait()
            if left:
                first.cancel()
                await asyncio.wait([first])
            second = asyncio.ensure_future(talk.chat(USER))
            model.gate.set()
            said = [(await one)["content"] for one in ([second] if left else [first, second])]
            trace = await talk.end()
        assert said == (["Hello."] if left else ["Hello.", "Hi."]), "and several at once are several draws"
        assert len(trace.turns) == len(model.asked) == len(said)

    asyncio.run(play())
