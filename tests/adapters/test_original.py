"""Environments that another framework drives, with an original written here."""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from quintain.adapters.original import Ask, Conversation, Ending, OriginalEnvironment, content, tool
from quintain.config import Config
from quintain.episode import Episode
from quintain.errors import EpisodeError, ReplayDivergence
from quintain.harness import Request
from quintain.record import EpisodeRecord
from quintain.replay import replay
from quintain.rollout import rollout
from quintain.task import Task
from quintain.trace import End, Image, Message, Reply, Text, ToolCall

CALL = Reply(Message("assistant", "", (ToolCall("1", "add", "[2, 3"), ToolCall("2", "typo", "{}"))))
WORDS = Reply(Message("assistant", "5"))


class Sums:
    """Asks for a sum until a reply calls nothing; it runs the calls itself and adds a system prompt."""

    def __init__(self, notes: Sequence[str] = ("well?",)) -> None:
        self.notes = itertools.cycle(notes)
        self.breaks = False
        self.ends_after_calls = False

    async def play(self, task: Task[Any], ask: Ask) -> Ending:
        messages = [Message("system", "Be short."), Message("user", task.truth["question"])]
        while True:
            reply = await ask(messages, [tool("add", "Adds.")])
            if reply is None:
                return Ending("out of turns", messages, "")
            messages.append(reply.message)
            if self.breaks:
                raise RuntimeError("the original broke")
            calls = reply.message.calls
            messages += [Message("tool", f"{call.name} of {call.arguments}", call_id=call.id) for call in calls]
            if not calls or self.ends_after_calls:
                return Ending("answered", messages, reply.message.text)
            messages.append(Message("user", next(self.notes)))

    async def score(self, ending: Ending) -> tuple[float, Mapping[str, float]]:
        return 2.0 if ending.result == "5" else 0.25, {"right": float(ending.result == "5"), "reward": 7.0}


def made(original: Sums, **config: Any) -> OriginalEnvironment:
    task = Task(id="a", prompt="2 + 3?", start=Conversation(), truth={"question": "2 + 3?"})
    return OriginalEnvironment(
        "sums/a",
        original=original,
        tasks={"test": lambda: [task]},
        tools=[tool("add", "Adds.")],
        parts=["right", "reward", "right"],
        code="1",
        config=Config(**config),
    )


def played(env: OriginalEnvironment, *replies: Reply) -> EpisodeRecord:
    left = iter(replies)

    async def model(request: Request) -> Reply:
        assert [one.name for one in request.tools] == ["add"]
        return next(left)

    return asyncio.run(rollout(env, env.tasks("test")[0], model))


def test_record_has_the_context_calls_and_score_of_the_original() -> None:
    env = made(Sums())
    trace = played(env, CALL, WORDS).trace
    assert (env.name, trace.end, trace.reason, trace.failure) == ("sums_a", End.TERMINATED, "answered", None)
    assert [step.observation for step in trace.turns[0].steps] == ["add of [2, 3", "typo of {}"]
    assert trace.context(1) == [
        Message("system", "Be short."),
        Message("user", "2 + 3?"),
        CALL.message,
        Message("tool", "add of [2, 3", call_id="1"),
        Message("tool", "typo of {}", call_id="2"),
        Message("user", "well?"),
    ]
    assert [turn.branch for turn in trace.turns] == [0, 0]
    assert {one.name: one.value for one in trace.rewards} == {"reward": 2.0, "right": 1.0, "reward_part": 7.0}
    assert trace.score == 2.0
    assert asyncio.run(replay(env, env.tasks("test")[0], trace)).to_bytes() == trace.to_bytes()


def test_calls_of_the_last_turn_are_recorded() -> None:
    original = Sums()
    original.ends_after_calls = True
    (turn,) = played(made(original), CALL).trace.turns
    assert [step.call.name for step in turn.steps] == ["add", "typo"]


def test_limit_ends_the_loop_of_the_original() -> None:
    trace = played(made(Sums(), max_turns=2), CALL, CALL).trace
    assert (trace.end, trace.reason, trace.score, len(trace.turns)) == (End.TRUNCATED, "max_turns", 0.25, 2)


def test_original_that_breaks_is_a_failure_of_the_world() -> None:
    original = Sums()
    original.breaks = True
    trace = played(made(original), WORDS).trace
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("S", "quintain:tool_bug")
    assert (trace.failure.message, len(trace.turns)) == ("the original broke", 1)


def test_original_that_goes_another_way_gets_no_score() -> None:
    trace = played(made(Sums(("one", "two"))), CALL, WORDS).trace
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("S", "quintain:replay_diverged")
    assert "'one'" in trace.failure.message
    assert "'two'" in trace.failure.message


def test_original_that_stops_earlier_gets_no_score() -> None:
    original = Sums()
    env = made(original)

    async def model(request: Request) -> Reply:
        original.ends_after_calls = len(request.messages) > 2
        return CALL if len(request.messages) == 2 else WORDS

    trace = asyncio.run(rollout(env, env.tasks("test")[0], model)).trace
    assert trace.failure is not None
    assert "the record has 2 replies, the original now stops after 1" in trace.failure.message


def test_replay_finds_an_original_that_changed() -> None:
    trace = played(made(Sums()), CALL, WORDS).trace
    env = made(Sums(("other",)))
    with pytest.raises(ReplayDivergence, match="turn 1, added"):
        asyncio.run(replay(env, env.tasks("test")[0], trace))


def test_model_that_fails_is_blamed_on_the_model() -> None:
    trace = played(made(Sums()), CALL).trace
    assert trace.failure is not None
    assert trace.failure.component == "model"


def test_noise_is_refused() -> None:
    trace = played(made(Sums(), noise_rate=0.5), WORDS).trace
    assert trace.failure is not None
    assert (trace.failure.component, trace.turns) == ("C", [])


def test_tool_called_without_the_harness_says_who_runs_it() -> None:
    async def play() -> Episode[Conversation]:
        env = made(Sums())
        episode = await Episode[Conversation].begin(env, env.tasks("test")[0])
        await episode.session.step(CALL)
        return episode

    failure = asyncio.run(play()).trace.failure
    assert failure is not None
    assert "let its own harness play it" in failure.message


def test_reply_without_the_harness_is_scored() -> None:
    async def play() -> float | None:
        env = made(Sums())
        episode = await Episode[Conversation].begin(env, env.tasks("test")[0])
        await episode.session.step(WORDS)
        episode.terminate("answered")
        return await episode.verify()

    assert asyncio.run(play()) == 2.0


def test_content_is_text_or_blocks() -> None:
    assert content(None) == ""
    assert content("a") == "a"
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAE="}}
    assert content([{"type": "text", "text": "a"}, picture]) == (Text("a"), Image("image/png", b"\x00\x01"))
    for url in ("https://example.org/a.png", "data:image/png;base64,A"):
        with pytest.raises(EpisodeError, match="picture"):
            content([{"type": "image_url", "image_url": {"url": url}}])
    with pytest.raises(EpisodeError, match="block of type 'input_audio'"):
        content([{"type": "input_audio"}])
