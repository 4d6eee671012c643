"""Subagents: an inner harness on the same world, its limits, and its place in the record."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import quintain as qn
from quintain.errors import ModelError
from quintain.harness import Request
from quintain.harnesses import AgentLoop, FinalAnswer, KeepRecent, Notes, Subagent, delegations
from quintain.replay import replay
from quintain.trace import Reply, Trace
from tests.harnesses.agents import Lines, run, say, texts


class Clerk(qn.State):
    """Files that only the searcher sees."""

    opened: int = 0

    @qn.tool(roles=("searcher",))
    def open(self, number: int) -> str:
        """Open a file.

        Args:
            number: Its number.
        """
        self.opened += 1
        return f"file {number}"


@qn.reward
def done(view: qn.EpisodeView[Clerk]) -> float:
    return float(view.answer == "done" and view.state.opened > 0)


def desk(loop: AgentLoop, **config: Any) -> tuple[qn.Environment[Clerk], qn.Task[Clerk]]:
    task = qn.Task(id="t", prompt="Find it.", start=Clerk())
    env = qn.Environment(
        "desk",
        tasks=lambda split: [task],
        harness=loop,
        verifier=qn.Verifier(done),
        state=Clerk,
        config=qn.Config().override(config),
    )
    return env, task


def play(loop: AgentLoop, model: Any, **config: Any) -> Trace:
    env, task = desk(loop, **config)
    trace = asyncio.run(qn.rollout(env, task, model)).trace
    assert trace.failure is None, trace.failure
    assert asyncio.run(replay(env, task, trace)).to_bytes() == trace.to_bytes()
    return trace


def give(agent: str, *prompts: str) -> Reply:
    return say("", *(("task", f'{{"agent": "{agent}", "prompt": "{prompt}"}}') for prompt in prompts))


def look(number: int) -> Reply:
    return say("", ("open", f'{{"number": {number}}}'))


def searcher(**options: Any) -> Subagent:
    return Subagent(harness=qn.ToolLoop("You search."), description="Opens files.", role="searcher", **options)


def test_a_subagent_works_on_the_same_world_with_its_own_tools() -> None:
    model = Lines(
        give("searcher", "Open 1.", "Open 2."),
        say("done"),
        searcher=[look(1), say("It is file 1."), look(2), say("It is file 2.")],
    )
    trace = play(AgentLoop(subagents={"searcher": searcher()}), model)
    assert (trace.score, trace.reason) == (1.0, "the agent answered")
    assert texts(model.asked[-1], "tool") == ["It is file 1.", "It is file 2."]
    assert [tool.name for tool in model.asked[0].tools] == ["task"]
    assert model.asked[0].tools[0].description.endswith("Agents:\n- searcher: Opens files.")
    assert [tool.name for tool in model.asked[1].tools] == ["open"]
    assert texts(model.asked[1], "system") == ["You search."]
    found = [(one.turn, one.thread, [turn.index for turn in one.turns]) for one in delegations(trace)]
    assert found == [(0, 1, [1, 2]), (0, 2, [3, 4])]


def test_a_subagent_without_an_answer_is_an_error_that_the_agent_reads() -> None:
    no_answer = "error: the agent ended without an answer"
    model = Lines(
        give("searcher", "Open."), say("done"), searcher=[look(1), say("I open 2.", ("open", '{"number": 2}'))]
    )
    play(AgentLoop(subagents={"searcher": searcher(max_turns=2)}), model)
    assert texts(model.asked[-1], "tool") == [no_answer]
    model = Lines(give("searcher", "Open."), say("done"), searcher=[say("")])
    play(AgentLoop(subagents={"searcher": searcher()}), model)
    assert texts(model.asked[-1], "tool") == [no_answer]


def test_a_subagent_may_answer_in_its_last_turn() -> None:
    inner = Subagent(harness=AgentLoop(tools=(FinalAnswer(),)), description="Opens.", role="searcher", max_turns=2)
    for last in (say("file 1"), say("I know.", ("answer", '{"text": "file 1"}'))):
        model = Lines(give("searcher", "Open."), say("done"), searcher=[look(1), last])
        play(AgentLoop(subagents={"searcher": inner}), model)
        assert texts(model.asked[-1], "tool") == ["file 1"]


def test_a_subagent_takes_a_limited_number_of_tasks() -> None:
    model = Lines(
        give("searcher", "Open.", "Again."),
        give("stranger", "Open."),
        say("done"),
        searcher=[say("first")],
    )
    trace = play(AgentLoop(subagents={"searcher": searcher(max_tasks=1)}), model)
    assert texts(model.asked[-1], "tool") == [
        "first",
        "the agent 'searcher' takes no more tasks",
        "no agent is named 'stranger'; known: searcher",
    ]
    assert len(list(delegations(trace))) == 1


def test_nested_subagents_are_linked_to_the_turns_that_gave_their_tasks() -> None:
    middle = AgentLoop(system="Divide.", subagents={"searcher": searcher()}, context=KeepRecent(1), tools=(Notes(),))
    model = Lines(
        give("manager", "Find A.", "Find A."),
        say("done"),
        manager=[give("searcher", "Find A."), say("A"), say("B")],
        searcher=[look(1), say("file 1")],
    )
    manager = Subagent(harness=middle, description="Divides work.", role="manager")
    trace = play(AgentLoop(subagents={"manager": manager}), model)
    assert [(one.turn, one.thread) for one in delegations(trace)] == [(0, 1), (1, 2), (0, 3)]
    assert [turn.role for turn in trace.turns] == [
        "agent",
        "manager",
        "searcher",
        "searcher",
        "manager",
        "manager",
        "agent",
    ]
    assert texts(model.asked[-1], "tool") == ["A", "B"]


def test_other_threads_are_no_delegations() -> None:
    model = Lines(say("", ("task", "{}")), say("", ("task", "[")), say("done"), summariser=[say("- read")])
    trace = run(AgentLoop(), model)
    assert list(delegations(trace)) == []


def test_a_subagent_that_goes_on_without_end_is_stopped_with_the_episode() -> None:
    async def model(request: Request) -> Reply:
        return give("searcher", "Open.") if request.role == "agent" else look(1)

    trace = play(AgentLoop(subagents={"searcher": searcher()}), model, max_turns=30)
    assert (trace.reason, len(trace.turns)) == ("max_turns", 30)


def test_a_subagent_that_gives_tasks_to_itself_without_end_reads_an_error() -> None:
    loop = AgentLoop()
    loop.subagents["clerk"] = Subagent(harness=loop, description="Itself.", max_tasks=1)
    read: list[str] = []

    async def model(request: Request) -> Reply:
        read.extend(texts(request, "tool"))
        return say("done") if read else give("clerk", "Go on.")

    trace = play(loop, model, max_turns=500)
    assert len(list(delegations(trace))) == 8
    assert read[0] == "error: no task was given: 8 agents have given tasks to one another; do it yourself"
    assert read[1:] == ["done"] * 8
    assert trace.reason == "the agent answered"


def test_a_subagent_whose_model_breaks_is_a_failure_of_the_model() -> None:
    async def model(request: Request) -> Reply:
        if request.role == "agent":
            return give("searcher", "Open.")
        raise ModelError("the endpoint is gone", kind="provider_unavailable")

    trace = asyncio.run(qn.rollout(*desk(AgentLoop(subagents={"searcher": searcher()})), model)).trace
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("model", "provider_unavailable")


def test_a_broken_inner_harness_is_a_failure_of_the_harness() -> None:
    class Broken:
        async def play(self, session: Any, model: Any) -> None:
            raise RuntimeError("broken")

    inner = Subagent(harness=Broken(), description="Breaks.")
    env, task = desk(AgentLoop(subagents={"x": inner}))
    trace = asyncio.run(qn.rollout(env, task, Lines(give("x", "Go.")))).trace
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.message) == ("H", "broken")


def test_a_subagent_needs_a_turn_and_a_task() -> None:
    for options in ({"max_turns": 0}, {"max_tasks": 0}):
        with pytest.raises(qn.DefinitionError, match="a Subagent needs max_turns >= 1 and max_tasks >= 1"):
            searcher(**options)


def test_the_settings_of_a_subagent_are_in_the_fingerprint() -> None:
    prints = {
        desk(AgentLoop(subagents=agents))[0].fingerprint
        for agents in ({}, {"a": searcher()}, {"b": searcher()}, {"a": searcher(max_turns=3)})
    }
    assert len(prints) == 4
