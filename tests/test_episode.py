"""An episode: its limits, its ends, its tools in trouble, its weather."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quintain as qn
from quintain.errors import UsageError
from quintain.harness import Model, Session, ToolLoop
from quintain.harnesses import Dialogue
from quintain.trace import Content, End, Image, Message, Reply, Text, Usage

from .worlds import Yard, call, environment, fine, first_task, one_by_one, play, says, script, single


def begun(env: qn.Environment[Any]) -> qn.Episode[Any]:
    return asyncio.run(qn.Episode[Any].begin(env, first_task(env)))


def step(episode: qn.Episode[Any], reply: Reply) -> None:
    asyncio.run(episode.session.step(reply))


# --- limits and ends ---


@pytest.mark.parametrize(
    ("config", "reply", "end", "reason", "turns"),
    [
        ({"max_turns": 3}, says(call("nod")), End.TRUNCATED, "max_turns", 3),
        ({"max_turns": 1}, says(text="an answer"), End.TERMINATED, "the agent answered", 1),
        ({"max_calls": 3}, says(call("nod"), call("nod")), End.TRUNCATED, "max_calls", 2),
        ({"max_tokens": 100}, says(call("nod"), usage=Usage(40, 2)), End.TRUNCATED, "max_tokens", 3),
        ({"context_tokens": 42}, says(call("nod"), usage=Usage(40, 2)), End.TRUNCATED, "context_tokens", 1),
        ({"context_tokens": 43, "max_turns": 2}, says(call("nod"), usage=Usage(40, 2)), End.TRUNCATED, "max_turns", 2),
    ],
)
def test_limits_truncate_an_episode(config: dict[str, Any], reply: Reply, end: End, reason: str, turns: int) -> None:
    trace = play(environment(**config), script(*[reply] * 9))
    assert (trace.end, trace.reason, len(trace.turns)) == (end, reason, turns)
    assert trace.validity == "valid"


class Meter(qn.State):
    """Counts additions."""

    count: int = 0

    @qn.tool(writes=())
    def total(self) -> int:
        """Returns the count."""
        return self.count

    @qn.tool
    def add(self) -> int:
        """Adds one and returns the count."""
        self.count += 1
        return self.count


class Walks(msgspec.Struct, frozen=True):
    """Returns without a word when the episode has ended."""

    async def play(self, session: Session, model: Model) -> None:
        while not session.ended:
            await session.step(await model(session.request()))


def test_only_the_harness_can_say_that_a_last_reply_was_an_answer() -> None:
    trace = play(environment(harness=Walks(), max_turns=2), script())
    assert (trace.end, trace.reason) == (End.TRUNCATED, "max_turns")


def test_a_harness_that_just_returns_has_terminated_the_episode() -> None:
    class Leaves(msgspec.Struct, frozen=True):
        async def play(self, session: Session, model: Model) -> None:
            await session.step(await model(session.request()))

    trace = play(environment(harness=Leaves()), script())
    assert (trace.end, trace.reason) == (End.TERMINATED, "the harness returned")


def test_the_world_ends_the_episode_after_the_turn() -> None:
    class Door(qn.State):
        @qn.tool
        def shut(self) -> str:
            """Shut it."""
            self.finish("it is shut")
            return "bang"

    trace = play(single(Door(), max_turns=1), script(says(call("shut"), call("shut"))))
    assert (trace.end, trace.reason, len(trace.turns[0].steps)) == (End.TERMINATED, "it is shut", 2)


def test_ending_twice_changes_nothing_and_failing_outweighs() -> None:
    episode = begun(environment())
    episode.terminate("first")
    episode.terminate("second")
    assert (episode.trace.end, episode.trace.reason) == (End.TERMINATED, "first")
    asyncio.run(episode.verify())
    assert episode.trace.validity == "valid"
    episode.fail(ValueError("a"), component="H", kind="agent_run_error")
    episode.fail(ValueError("b"), component="S", kind="quintain:tool_bug")
    episode.terminate("third")
    assert (episode.trace.end, episode.trace.reason) == (End.FAILED, "agent_run_error")
    assert episode.trace.failure is not None
    assert episode.trace.failure.message == "a"
    assert (episode.trace.score, asyncio.run(episode.verify()), episode.trace.validity) == (None, None, "invalid")


def test_play_and_verify_at_the_wrong_time_raise() -> None:
    episode = begun(environment())
    with pytest.raises(UsageError, match="before the end"):
        asyncio.run(episode.verify())
    episode.terminate("over")
    with pytest.raises(UsageError, match=r"has ended \(over\)"):
        step(episode, says())


def test_a_world_of_another_class_is_refused() -> None:
    class Other(qn.State):
        pass

    env = environment(tasks=lambda split: [qn.Task(id="t", prompt="", start=Other())])
    with pytest.raises(TypeError, match=r"'t' \(split ''\) starts in a Other, yard plays in a Yard"):
        begun(env)


def test_a_turn_that_was_broken_off_fails_the_episode() -> None:
    """A harness that gives up on a step and goes on would hide what the step did to the world."""

    class Impatient(msgspec.Struct, frozen=True):
        async def play(self, session: Session, model: Model) -> None:
            task = asyncio.create_task(session.step(await model(session.request())))
            for _ in range(5):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            session.terminate("never mind")

    class Slow(qn.State):
        done: int = 0

        @qn.tool
        async def work(self) -> None:
            """Work."""
            self.done += 1
            await asyncio.Event().wait()

    trace = play(single(Slow(), harness=Impatient()), one_by_one(call("work")))
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind, trace.turns) == ("H", "cancelled", [])


@pytest.mark.parametrize("words", ["\ud800", 5, None, ["list"]])
def test_a_harness_cannot_put_into_the_record_what_it_cannot_hold(words: Any) -> None:
    class Tells(msgspec.Struct, frozen=True):
        async def play(self, session: Session, model: Model) -> None:
            session.append(Message("user", words))
            await session.step(await model(session.request()))

    class Ends(msgspec.Struct, frozen=True):
        async def play(self, session: Session, model: Model) -> None:
            session.terminate(words)

    for harness in (Tells(), Ends()):
        trace = play(environment(harness=harness), script())
        assert trace.failure is not None
        assert (trace.failure.component, trace.failure.kind) == ("H", "agent_run_error")


def test_appended_messages_are_recorded_as_decoded() -> None:
    class Shows(msgspec.Struct, frozen=True):
        async def play(self, session: Session, model: Model) -> None:
            blocks: Any = [Text("look"), Image("image/png", b"\x89PNG")]
            session.append(Message("user", blocks))
            await session.step(await model(session.request()))

    trace = play(environment(harness=Shows()), script())
    assert trace.turns[0].added[1].content == (Text("look"), Image("image/png", b"\x89PNG"))


# --- noise ---


def stormy(calls: int, **config: Any) -> list[str | None]:
    trace = play(environment(fine, max_turns=600, **config), one_by_one(*[call("roll", sides=10**9)] * calls))
    return [one.fault for turn in trace.turns for one in turn.steps]


@given(st.floats(0.01, 0.99), st.integers(0, 10))
@settings(max_examples=15)
def test_faults_never_come_in_a_row_and_keep_to_the_budget(rate: float, budget: int) -> None:
    faults = stormy(40, noise_rate=rate, noise_budget=budget)
    assert not any(a and b for a, b in itertools.pairwise(faults))
    assert sum(fault is not None for fault in faults) <= budget


def test_a_group_meets_the_same_faults_and_the_dice_do_not_notice() -> None:
    def rolled(**config: Any) -> list[tuple[str | None, Content]]:
        env = environment(fine, max_turns=99, **config)
        trace = play(env, one_by_one(*[call("roll", sides=10**9)] * 60), member=config.pop("member", 0))
        return [(one.fault, one.observation) for turn in trace.turns for one in turn.steps]

    calm, storm = rolled(), rolled(noise_rate=0.4)
    assert any(fault for fault, _ in storm)
    runs = [observation for fault, observation in storm if fault is None]
    throws = [observation for _, observation in calm]
    spoiled = {"truncated", "empty"}
    reached = [fault for fault, _ in storm if fault is None or fault in spoiled]
    assert runs == [value for value, fault in zip(throws, reached, strict=False) if fault is None]
    members = [
        [one.fault for turn in trace.turns for one in turn.steps]
        for trace in (
            play(
                environment(fine, max_turns=99, noise_rate=0.4),
                one_by_one(*[call("roll", sides=9)] * 60),
                member=member,
            )
            for member in range(3)
        )
    ]
    assert members[0] == members[1] == members[2] == [fault for fault, _ in storm]


def test_every_kind_of_fault_is_marked_and_valid() -> None:
    env = environment(fine, max_turns=600, noise_rate=0.5)
    trace = play(env, one_by_one(*[call("take", key="lamp"), call("note", text="x" * 20)] * 100))
    seen = {one.fault for turn in trace.turns for one in turn.steps}
    assert seen == {None, "timeout", "unavailable", "rate_limited", "truncated", "empty"}
    assert trace.validity == "valid"
    for one in (one for turn in trace.turns for one in turn.steps):
        assert one.is_error or one.fault not in {"timeout", "unavailable", "rate_limited"}


@given(st.integers(0, 1000), st.floats(0.1, 0.99))
@settings(max_examples=15)
def test_a_stale_read_is_the_last_read_and_a_duplicate_has_two_copies(seed: int, rate: float) -> None:
    check_stale_and_duplicate(seed, rate)


def test_both_of_two_kinds_of_faults_occur() -> None:
    assert check_stale_and_duplicate(1, 0.9) >= {"stale", "duplicate"}


def check_stale_and_duplicate(seed: int, rate: float) -> set[str | None]:
    """Plays reads and writes under both kinds of faults; returns those that occurred."""
    env = single(Meter(), fine, noise_rate=rate, noise_weights={"stale": 1.0, "duplicate": 1.0})
    turns = [call("total"), call("add")] * 20
    trace, sibling = (play(env, one_by_one(*turns), seed=seed, member=member) for member in (0, 1))
    steps = [one for turn in trace.turns for one in turn.steps]
    assert steps == [one for turn in sibling.turns for one in turn.steps]
    added, read = 0, None
    for one in steps:
        added += one.call.name == "add"
        fresh = str(added)
        if one.fault == "stale":
            assert (one.call.name, one.observation) == ("total", read)
        else:
            assert one.observation == (f"{fresh}\n{fresh}" if one.fault else fresh)
        read = fresh if one.call.name == "total" and one.fault is None else read
    assert trace.validity == "valid"
    return {one.fault for one in steps}


def test_no_weather_over_calls_that_reach_no_tool() -> None:
    trace = play(environment(fine, max_turns=99, noise_rate=0.9), one_by_one(*[call("no_such_tool")] * 20))
    assert {one.fault for turn in trace.turns for one in turn.steps} == {None}


# --- sessions ---


def test_a_session_shows_one_roles_side() -> None:
    episode = begun(environment(temperature=0.5, top_p=0.9, max_reply_tokens=7))
    user = episode.session.add_actor("user", Message("user", "hi"))
    assert [message.text for message in user.messages] == ["You are the user.", "hi"]
    assert {tool.name for tool in user.tools} == {"nod", "leave"}
    assert "leave" not in {tool.name for tool in episode.session.tools}
    request = user.request()
    assert (request.role, request.temperature, request.top_p, request.max_tokens) == ("user", 0.5, 0.9, 7)
    stranger = episode.session.add_actor("stranger")
    assert (stranger.messages, list(stranger.tools)) == ((), [])
    assert request.seed != episode.session.request().seed != stranger.request().seed
    asyncio.run(user.step(says(call("leave"))))
    assert (episode.trace.turns[0].role, episode.trace.turns[0].thread, user.ended) == ("user", 1, True)
    assert episode.trace.reason == "the user left"


def test_two_conversations_of_a_dialogue_end_by_the_limit_as_truncated() -> None:
    env = environment(harness=Dialogue(), max_turns=4)
    trace = play(env, script(*[says(text="go on")] * 9))
    assert (trace.end, [turn.role for turn in trace.turns]) == (End.TRUNCATED, ["user", "agent"] * 2)


def test_an_episode_without_a_prompt_begins_in_silence() -> None:
    env = environment(tasks=lambda split: [qn.Task(id="t", prompt="", start=Yard())], harness=ToolLoop())
    assert begun(env).session.messages == ()


def test_the_sampling_seed_is_a_function_of_the_place() -> None:
    def seeds(**names: Any) -> tuple[int, ...]:
        asked: list[int] = []

        async def model(request: Any) -> Reply:
            asked.append(request.seed)
            return says(*[call("nod")] * (len(asked) < 3))

        play(environment(), model, **names)
        return tuple(asked)

    assert seeds() == seeds()
    assert len({*seeds(), *seeds(member=1), *seeds(attempt=1), *seeds(seed=1)}) == 12
