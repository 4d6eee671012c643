"""Loops: one turn, tools that the harness holds, reflection, a final answer, parallel calls, text-format calls."""

from __future__ import annotations

import asyncio

import quintain as qn
from quintain.harness import Harness
from quintain.harnesses import (
    AgentLoop,
    AnswerTools,
    AskUser,
    FinalAnswer,
    KeepRecent,
    Notes,
    NotesTools,
    SingleTurn,
    TextTools,
    Todo,
    agentic,
)
from quintain.harnesses.loop import CONTINUE, NUDGE, REFLECTION
from quintain.models import Cast, Oracle
from quintain.trace import End, Message
from tests.harnesses.agents import TASK, Library, Lines, env_of, run, say, texts


def test_a_single_turn_runs_its_calls_and_ends() -> None:
    trace = run(SingleTurn(system="Read."), Lines(say("done", ("look", '{"page": 1}'))))
    assert trace.reason == "the agent answered"
    assert [message.role for message in trace.context(0)] == ["system", "user"]
    assert len(trace.turns[0].steps) == 1


def test_an_agent_loop_without_options_is_a_tool_loop() -> None:
    replies = [say("", ("look", '{"page": 1}')), say("done")]
    ours, theirs = (run(harness, Lines(*replies)) for harness in (AgentLoop(system="Read."), qn.ToolLoop("Read.")))
    assert ours.turns == theirs.turns
    assert ours.reason == theirs.reason


def test_parallel_calls_run_in_order_and_results_keep_it_when_the_harness_holds_a_tool() -> None:
    calls = [
        ("look", '{"page": 1}'),
        ("note", '{"text": "a"}'),
        ("look", '{"page": 2}'),
        ("none", "{}"),
        ("note", "{}"),
    ]
    model = Lines(say("", *calls), say("", ("notes_read", "{}")), say("done"))
    trace = run(AgentLoop(tools=(Notes(),)), model)
    assert [step.call.name for step in trace.turns[0].steps] == ["look", "look", "none"]
    results = [message for message in model.asked[1].messages if message.role == "tool"]
    assert [message.call_id for message in results] == ["c0", "c1", "c2", "c3", "c4"]
    assert [message.text[:12] for message in results] == [
        "page 1 of 1\n",
        "note 1 kept",
        "page 2 of 2\n",
        "error: there",
        "error: Objec",
    ]
    assert results[4].text == "error: Object missing required field `text`"
    assert texts(model.asked[2], "tool")[-1] == "1. a"
    assert [turn.branch for turn in trace.turns] == [0, 0, 0]
    assert "notes_read" in [tool.name for tool in model.asked[0].tools]


def test_twenty_calls_at_once_are_all_answered_and_count_towards_the_limit() -> None:
    calls = [("look", f'{{"page": {page}}}') for page in range(18)]
    calls = [*calls[:9], ("no_such_tool", "{}"), ("note", '{"text": "a"}'), *calls[9:]]
    model = Lines(say("", *calls), say("done"))
    trace = run(AgentLoop(tools=(Notes(),)), model)
    read = texts(model.asked[1], "tool")
    assert [text.partition(" of ")[0] for text in read if text.startswith("page")] == [f"page {n}" for n in range(18)]
    assert (read[9][-14:], read[10]) == ("'no_such_tool'", "note 1 kept")
    assert len(trace.turns[0].steps) == 19
    trace = run(AgentLoop(), Lines(say("", *calls)), max_calls=5)
    assert (trace.end, trace.reason, len(trace.turns)) == (End.TRUNCATED, "max_calls", 1)


def test_held_tools_start_afresh_in_each_episode() -> None:
    loop = AgentLoop(tools=(Notes(notes=["first"]),))
    for _ in range(2):
        model = Lines(say("", ("note", '{"text": "second"}')), say("", ("notes_read", "{}")), say("done"))
        run(loop, model)
        assert texts(model.asked[-1], "tool")[-1] == "1. first\n2. second"


class Desk(NotesTools, AnswerTools):
    notes: list[str] = []
    final_answer: str | None = None


@qn.reward
def noted(view: qn.EpisodeView[Desk]) -> float:
    return float((view.state.notes, view.state.final_answer) == (["a"], "b"))


def desk(harness: Harness) -> tuple[qn.Environment[Desk], qn.Task[Desk]]:
    task = qn.Task(id="t", prompt="", start=Desk(), solution=(("note", {"text": "a"}), ("answer", {"text": "b"})))
    verifier = qn.Verifier(noted)
    return qn.Environment("d", tasks=lambda split: [task], harness=harness, verifier=verifier, state=Desk), task


def test_tools_of_one_name_are_a_failure_of_the_harness() -> None:
    trace = asyncio.run(qn.rollout(*desk(AgentLoop(tools=(Notes(),))), Lines(say("done")))).trace
    assert trace.failure is not None
    assert "world and harness both have a tool 'note'; leave out one of the two" in trace.failure.message
    trace = asyncio.run(qn.rollout(env_of(AgentLoop(tools=(Notes(), Sub()))), TASK, Lines(say("done")))).trace
    assert trace.failure is not None
    assert "two of the harness's tools are named 'note'; leave one out" in trace.failure.message


class Sub(Notes):
    """Notes under another name."""


def test_mixins_in_the_world_are_part_of_the_state() -> None:
    trace = asyncio.run(qn.rollout(*desk(qn.ToolLoop()), Oracle())).trace
    assert (trace.score, trace.reason) == (1.0, "the agent answered")


def test_the_agentic_loop_plans_reflects_and_ends_by_a_call() -> None:
    items = '{"items": [{"text": "read", "status": "doing"}, {"text": "answer"}]}'
    model = Lines(
        say("", ("todo_write", items)),
        say("", ("look", '{"page": 1}'), ("todo_read", "{}")),
        say("I must answer now."),
        say("I think I am done."),
        say("words", ("answer", '{"text": "done"}')),
    )
    trace = run(agentic("You read.", reflect_every=2), model)
    assert (trace.score, trace.reason) == (1.0, "the agent answered")
    assert texts(model.asked[-1], "tool")[0] == "2 items, 2 left"
    assert texts(model.asked[-1], "tool")[2] == "[doing] read\n[open] answer"
    assert texts(model.asked[-1], "user") == ["Read the pages.", REFLECTION, CONTINUE, NUDGE]
    assert texts(model.asked[0], "system")[0].startswith("You read.\n\nWork in a loop")
    last = trace.turns[-1].reply.message
    assert (last.text, last.reasoning) == ("done", "words")


def test_a_malformed_answer_does_not_end_the_episode() -> None:
    model = Lines(say("", ("answer", '{"text": 5}')), say("", ("answer", '{"text": "done"}')))
    trace = run(AgentLoop(tools=(FinalAnswer(),)), model)
    assert texts(model.asked[1], "tool") == ["error: Expected `str`, got `int` - at `$.text`"]
    assert trace.score == 1.0


def test_arguments_of_held_tools_are_as_lenient_as_the_configuration() -> None:
    for arguments, read in (("strict", "error: Object contains unknown field `x`"), ("lenient", "note 1 kept")):
        model = Lines(say("", ("note", '{"text": "a", "x": 1}')), say("done"))
        run(AgentLoop(tools=(Notes(),)), model, arguments=arguments)
        assert texts(model.asked[1], "tool") == [read]


def test_reflection_counts_the_turns_since_the_last_one() -> None:
    look = say("", ("look", '{"page": 1}'))
    model = Lines(*[look] * 7, say("done"))
    run(AgentLoop(reflect_every=2), model)
    asked = [request.messages[-1].text == REFLECTION for request in model.asked]
    assert asked == [False, False, True, False, False, True, False, False]


def test_ask_user_asks_the_actor_user() -> None:
    model = Lines(
        say("", ("ask_user", '{"question": "What is it?"}'), ("ask_user", '{"question": "Sure?"}')),
        say("done"),
        user=[say("42"), say("")],
    )
    trace = run(AgentLoop(tools=(AskUser(),)), model)
    assert texts(model.asked[3], "tool") == ["42", "the user said nothing"]
    assert [(turn.role, turn.thread) for turn in trace.turns] == [("agent", 0), ("user", 1), ("user", 1), ("agent", 0)]
    assert [message.text for message in model.asked[2].messages] == ["You know a secret.", "What is it?", "42", "Sure?"]


def test_an_episode_may_end_while_the_user_is_asked() -> None:
    model = Lines(say("", ("ask_user", '{"question": "What?"}')), say("done"), user=[say("42")])
    assert run(AgentLoop(tools=(AskUser(),), budget=900), model, max_turns=2).reason == "max_turns"


def test_an_episode_may_end_in_the_first_turn() -> None:
    model = Lines(say("", ("note", '{"text": "a"}'), ("look", '{"page": 1}')))
    assert run(AgentLoop(tools=(Notes(),)), model, max_turns=1).reason == "max_turns"


def test_a_loop_requests_nothing_after_the_end() -> None:
    env = env_of(AgentLoop(budget=500))

    async def play() -> None:
        episode = await qn.Episode.begin(env, TASK)
        episode.terminate("before it began")
        await env.harness.play(episode.session, Lines())
        await SingleTurn().play(episode.session, Lines())

    asyncio.run(play())


def test_text_calls_run_like_native_ones_and_errors_are_read() -> None:
    good = '<tool_call>{"name": "look", "arguments": {"page": 1}}</tool_call>'
    model = Lines(
        say(f"I read.\n{good}\n{good.replace('1', '2')}\n<tool_call>{{oops</tool_call>"),
        say("<tool_call>oops"),
        say('```json\n{"name": "todo_read", "arguments": {}}\n```'),
        say("done"),
    )
    trace = run(AgentLoop(system="Read.", text_tools=TextTools(), tools=(Todo(),), context=KeepRecent(1)), model)
    assert trace.score == 1.0
    assert [call.id for turn in trace.turns for call in turn.reply.message.calls] == [
        "call_0_1",
        "call_0_2",
        "call_2_1",
    ]
    assert [len(turn.steps) for turn in trace.turns] == [2, 0, 0, 0]
    last = model.asked[-1]
    assert not last.tools
    assert all(message.role != "tool" and not message.calls for message in last.messages)
    assert texts(last, "system")[0].startswith("Read.\n\nYou can call tools.")
    assert '{"name":"look","description":"Read a page."' in texts(last, "system")[0]
    user = texts(last, "user")
    assert user[1].startswith("<tool_response>\n[r:")
    assert texts(model.asked[1], "user")[1].endswith("has 74 words. \n</tool_response>")
    form = '; write <tool_call>{"name": "TOOL", "arguments": {...}}</tool_call>'
    assert user[2] == f"error: tool call 3: JSON is malformed: object keys must be strings (byte 1){form}"
    assert user[3] == f"error: tool call 1: <tool_call> has no </tool_call>{form}"
    assert user[4].endswith("the list is empty\n</tool_response>")


def test_text_calls_leave_native_calls_as_they_are() -> None:
    env = env_of(AgentLoop(text_tools=TextTools()))
    task = qn.Task(id="t", prompt="", start=Library(), solution=(("look", {"page": 1}),), answer="done")
    trace = asyncio.run(qn.rollout(env, task, Cast(agent=Oracle().model(task, 0)))).trace
    assert trace.score == 1.0


def test_results_of_held_tools_are_messages_of_the_record() -> None:
    trace = run(AgentLoop(tools=(Notes(),)), Lines(say("", ("note", '{"text": "a"}')), say("done")))
    assert trace.turns[1].added == (Message("tool", "note 1 kept", call_id="c0"),)
    assert trace.turns[0].reply.message.calls[0].name == "note"
