"""An episode replays to the byte, however it ended: by its harness, by its agent, or by somebody else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.episode import Episode, blank
from quintain.errors import EpisodeError, Failure, ReplayDivergence, UsageError, blame
from quintain.harness import Model, Request, set_system_prompt
from quintain.harnesses import Dialogue
from quintain.replay import rebuild
from quintain.serve import secret
from quintain.serve.episodes.actions import Fail, Move, Tell, Terminate
from quintain.serve.episodes.host import EpisodeSpec, Host
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.secrets import NOTHING, Secrets
from quintain.serve.errors import Void
from quintain.serve.http.keys import ANYONE
from quintain.serve.http.limits import Limits
from quintain.serve.model import CommandHarness
from quintain.trace import End, Message, Reply, Step, ToolCall, Trace
from tests.serve.environments import counter, rough, words

TORN = Failure(
    component="H", kind="session_lost", stage="agent", type="Torn", message="a cable", turn=1, traceback_digest="0" * 16
)


async def again(env: qn.Environment[Any], trace: Trace) -> Trace:
    """Replays a record to the same bytes, and rebuilds its episode at every turn."""
    env = env.replace(config=trace.config)
    task = env.task(trace.split, trace.task)
    for turns in range(len(trace.turns) + 1):
        assert (await rebuild(env, task, trace, turns=turns)).trace.turns == trace.turns[:turns]
    assert (await qn.replay(env, task, Trace.from_json(trace.to_json()))).to_json() == trace.to_json()
    return trace


def played(
    env: qn.Environment[Any], end: Callable[[Live], Awaitable[Any]], *, secrets: Secrets = NOTHING, **limits: Any
) -> Trace:
    """The record of an episode that makes one call and ends so, which replays."""

    async def play() -> Trace:
        host = Host([env], limits=Limits(**limits))
        live = await host.create(EpisodeSpec(task=0), ANYONE, secrets=secrets)
        await live.ready()
        name = next(iter(env.tools))
        await live.call(name, '{"by": 1}' if name == "add" else "{}")
        await end(live)
        host.executor.close()
        return await again(env, live.trace)

    return asyncio.run(play())


async def ended(live: Live) -> None:
    await live.end("the agent left")


async def terminated(live: Live) -> None:
    await live.change((Terminate("enough"),))


async def blamed(live: Live) -> None:
    await live.change((Fail(TORN),))


def test_an_end_from_outside_is_in_the_record_and_comes_again() -> None:
    for end, reason in ((ended, "the agent left"), (terminated, "enough")):
        trace = played(counter, end)
        assert (trace.reason, trace.interrupted, trace.validity) == (reason, True, "valid")


def test_failure_from_the_client_is_recorded_as_sent() -> None:
    trace = played(counter, blamed)
    assert (trace.failure, trace.interrupted, trace.score) == (TORN, True, None)


def test_an_end_by_the_harness_is_not_from_outside() -> None:
    trace = played(counter, lambda live: live.answer("done"))
    assert (trace.reason, trace.interrupted) == ("the agent answered", msgspec.UNSET)
    assert b'"cut"' not in trace.to_json()


def test_an_end_that_came_too_late_is_none() -> None:
    async def late(live: Live) -> None:
        await live.answer("done")
        await live.end("the agent left")
        await live.change((Terminate("enough"), Fail(TORN)))

    trace = played(counter, late)
    assert (trace.reason, trace.interrupted, trace.failure) == ("the agent answered", msgspec.UNSET, None)


def test_an_episode_that_grew_too_large_replays() -> None:
    async def grow(live: Live) -> None:
        with pytest.raises(Void, match="an episode may have"):
            while True:
                await live.call("say", '{"text": "%s"}' % ("x" * 1000))

    trace = played(words, grow, episode_bytes=20_000)
    assert trace.failure is not None
    assert (trace.failure.kind, trace.interrupted) == ("provider_oom_killed", True)


def test_episode_whose_tool_returned_a_secret_replays_without_it() -> None:
    async def tell(live: Live) -> None:
        with pytest.raises(Void, match="returned a secret"):
            await live.call("echo", '{"text": "open sesame"}')

    trace = played(counter, tell, secrets=Secrets({"WORD": "open sesame"}))
    assert (len(trace.turns), trace.interrupted, trace.reason) == (1, True, "quintain:tool_bug")


class Chatter(qn.State):
    """A telephone that knows too much."""

    @qn.tool(roles=("user",))
    def look(self) -> str:
        """Look at the telephone."""
        return f"the code is {secret('WORD')}"


class Curious:
    """A simulated user who looks, and remembers what he was asked."""

    name = "curious"

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def model(self, task: qn.Task[Any], seed: int) -> Model:
        async def model(request: Request) -> Reply:
            self.asked.append(request)
            return Reply(Message("assistant", calls=(ToolCall("c", "look", "{}"),)))

        return model


def test_user_model_is_not_shown_a_tools_secret() -> None:
    user = Curious()
    env = qn.Environment(
        "telephone",
        tasks=lambda _split: [qn.Task(id="one", prompt="", start=Chatter())],
        harness=Dialogue(),
        verifier=qn.Verifier(qn.reward(_nothing)),
        state=Chatter,
    )

    async def play() -> Trace:
        host = Host([env], user=user)
        live = await host.create(EpisodeSpec(task=0), ANYONE, secrets=Secrets({"WORD": "open sesame"}))
        await live.ready()
        host.executor.close()
        return live.trace

    trace = asyncio.run(play())
    assert trace.failure is not None
    assert trace.failure.message == "look returned a secret"
    assert (len(user.asked), len(trace.turns)) == (1, 0)


def _nothing(_: qn.EpisodeView[Any]) -> float:
    return 0.0


def test_a_verifier_that_breaks_over_an_end_from_outside_breaks_again() -> None:
    def broken(_: qn.EpisodeView[Any]) -> float:
        raise RuntimeError("no verdict today")

    env = counter.replace(verifier=qn.Verifier(qn.reward(broken)))
    trace = played(env, ended)
    assert trace.failure is not None
    assert (trace.failure.stage, trace.interrupted) == ("verification", True)


def test_a_harness_that_ends_by_itself_where_it_was_cut_has_diverged() -> None:
    """Or a replay would hide that it plays otherwise today."""
    trace = played(counter, ended)

    class Brief(qn.ToolLoop, frozen=True):
        async def play(self, session: qn.Session, model: Any) -> None:
            set_system_prompt(session, self.system)
            await session.step(await model(session.request()))
            session.terminate("the agent left")

    twin = counter.replace()
    twin.harness = Brief("Be exact.")
    with pytest.raises(ReplayDivergence, match="cut"):
        asyncio.run(qn.replay(twin, twin.task(trace.split, trace.task), trace))


def test_failures_of_the_environment_replay() -> None:
    async def crash(live: Live) -> None:
        with pytest.raises(Void):
            await live.call("crash", "{}")

    trace = played(rough, crash)
    assert trace.failure is not None
    assert (trace.failure.kind, trace.interrupted) == ("quintain:tool_bug", msgspec.UNSET)


def test_a_turn_of_a_program_that_made_half_its_calls_goes_on_at_a_server() -> None:
    """As the control plane restores, forks and replays it."""

    async def play() -> Trace:
        env, task = counter, counter.tasks("test")[0]
        episode = await Episode[Any].begin(env, task, split="test")
        first, second = (ToolCall(f"c{n}", "add", '{"by": 1}') for n in range(2))
        calls = iter([first])

        async def course(_: Step | None) -> ToolCall | None:
            return next(calls, None)

        await episode.session.step(Reply(Message("assistant", calls=(first, second))), course)
        host = Host([env])
        wanted = EpisodeSpec(task=0, led=True, led_by="", origin=(await episode.snapshot()).to_bytes())
        live = await host.create(wanted, ANYONE)
        await live.act(Move(Message("assistant", calls=(second,)), before=(Tell(0, (Message("user", "Go on."),)),)))
        await live.change((Terminate("enough"),))
        await live.judge()
        host.executor.close()
        return await again(env, live.trace)

    trace = asyncio.run(play())
    assert [len(turn.steps) for turn in trace.turns] == [1, 1]
    assert (trace.external_harness, trace.interrupted, trace.reason) == ("", msgspec.UNSET, "enough")


def test_harness_that_asks_from_its_own_task_fails_with_the_reason() -> None:
    class Both(qn.ToolLoop, frozen=True):
        async def play(self, session: qn.Session, model: Any) -> None:
            await asyncio.gather(model(session.request()), model(session.request()))

    async def play() -> Trace:
        host = Host([counter.replace(harness=Both())])
        live = await host.create(EpisodeSpec(task=0), ANYONE)
        await live.ready()
        host.executor.close()
        return live.trace

    trace = asyncio.run(play())
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("H", "agent_run_error")
    assert "await the model in `play` itself" in trace.failure.message


def test_an_environment_whose_agent_is_a_program_is_not_served() -> None:
    with pytest.raises(UsageError, match="the agent of counter is a program already, by its CommandHarness"):
        Host([counter.replace(harness=CommandHarness("true"))])


def test_a_record_of_what_was_never_admitted_agrees_with_any_replay() -> None:
    """Such as that of an open episode whose environment was another one when its server came back."""
    trace = blank(counter, counter.tasks("test")[0], split="test")
    lost = EpisodeError("the environment is of another version now", component="C", kind="session_lost")
    trace.failure = blame(lost, component="C", kind="session_lost", stage="admission", turn=0)
    trace.end, trace.reason = End.FAILED, "session_lost"
    asyncio.run(qn.replay(counter, counter.tasks("test")[0], trace))


def test_an_end_comes_once() -> None:
    async def play() -> None:
        host = Host([counter])
        live = await host.create(EpisodeSpec(task=0), ANYONE)
        await live.call("add", '{"by": 1}')
        await live.end("enough")
        record = live.trace.to_bytes()
        await live.end("more than enough")
        assert (live.trace.reason, live.trace.to_bytes()) == ("enough", record)
        assert (
            host.counts.registry.get_sample_value(
                "quintain_episodes_ended_total", {"environment": "counter", "validity": "valid"}
            )
            == 1
        )
        host.executor.close()

    asyncio.run(play())
