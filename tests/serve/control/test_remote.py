"""A remote environment is played like a local one, and leaves the same bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.cli.plan import RunArguments, plan
from quintain.config import Config
from quintain.context import Snapshot
from quintain.environment import Environment
from quintain.errors import ContextOverflow, EpisodeError, UsageError
from quintain.harness import Model, Request, Session
from quintain.harnesses import Dialogue
from quintain.models import Scripted
from quintain.models.agents import oracle, random
from quintain.models.cast import Cast
from quintain.replay import ReplayModel
from quintain.serve.client import environments
from quintain.serve.client.episode import RemoteEpisode
from quintain.serve.episodes.actions import fingerprint
from quintain.serve.model import CommandHarness
from quintain.trace import End, Message, Reply, Tokens, ToolCall
from tests.serve.control.conftest import here
from tests.serve.serving import Served


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 60))


def call(name: str, arguments: str, **more: Any) -> Reply:
    return Reply(Message("assistant", calls=(ToolCall("c", name, arguments),)), **more)


def say(words: str) -> Reply:
    return Reply(Message("assistant", words))


def conversation() -> Model:
    """A whole talk, with a call of each actor, one that fails, and tokens."""
    tokens = Tokens([1, 2, 3], [4], [-0.5])
    agent = [say("What is it?"), call("write", '{"number": 3}', tokens=tokens), call("nothing", "{}"), say("Done.")]
    user = [say("Hello!"), call("look", "{}"), say("It is 3."), say("###STOP###")]
    return Cast(agent=Scripted(agent), user=Scripted(user))


async def same(local: Environment[Any], remote: Environment[Any], task: Any, *, model: Any, **names: Any) -> qn.Trace:
    """Play a task here and there; the record, if both are the same bytes."""
    fields: dict[str, Any] = {"split": "train", "seed": 7} | names
    traces = [
        (await qn.rollout(env, env.tasks("train")[task], model(env.tasks("train")[task]), **fields)).trace
        for env in (local, remote)
    ]
    assert traces[0].to_json() == traces[1].to_json()
    return traces[0]


def test_the_servers_harness_leaves_the_record_of_a_local_run(served: Served) -> None:
    async def play() -> None:
        async with qn.connect(served.url) as server:
            remote = await server.environment("talk")
            trace = await same(here("talk"), remote, 3, model=lambda _: conversation(), agent="x", member=2, attempt=1)
            assert trace.score == 1
            assert {turn.role for turn in trace.turns} == {"agent", "user"}

    run(play())


@pytest.mark.parametrize("is_led", [False, True])
def test_a_context_that_outgrows_the_clients_model_truncates_the_episode(served: Served, *, is_led: bool) -> None:
    talk = conversation()

    async def model(request: Request) -> Reply:
        if request.role == "agent" and any(message.role == "tool" for message in request.messages):
            raise ContextOverflow("9000 tokens > 8192")
        return await talk(request)

    async def play() -> None:
        async with qn.connect(served.url) as server:
            remote = await server.environment("talk")
            env = remote.replace(harness=here("talk").harness) if is_led else remote
            task = env.tasks("train")[3]
            trace = (await qn.rollout(env, task, model, split="train")).trace
            assert (trace.end, trace.reason, trace.validity) == (End.TRUNCATED, "context_window", "valid")
            assert len([turn for turn in trace.turns if turn.role == "agent"]) == 2

    run(play())


def test_tools_that_only_the_harness_offers_reach_the_model(served: Served) -> None:
    offered: list[list[tuple[str, str, Any]]] = []

    async def model(request: Request) -> Reply:
        offered.append([(tool.name, tool.description, tool.parameters) for tool in request.tools])
        return call("take", '{"coins": 2}')

    async def play() -> None:
        async with qn.connect(served.url) as server:
            local, remote = here("offering"), await server.environment("offering")
            local_run, remote_run = [
                await qn.rollout(env, env.tasks("test")[1], model, split="test") for env in (local, remote)
            ]
            assert local_run.trace.to_json() == remote_run.trace.to_json()

    run(play())
    assert [name for name, _, _ in offered[1]] == ["take", "nod"]
    assert offered[0] == offered[1]


def test_a_harness_that_plays_here_leaves_the_same_record(served: Served) -> None:
    async def play() -> None:
        async with qn.connect(served.url) as server:
            local = here("talk")
            remote = (await server.environment("talk")).replace(harness=local.harness)
            trace = await same(local, remote, 3, model=lambda _: conversation())
            assert trace.score == 1

    run(play())


def test_sales_by_recorded_replies(served: Served) -> None:
    async def play() -> None:
        async with qn.connect(served.url) as server:
            local, remote = here("sales"), await server.environment("Sales")
            task = local.tasks("train")[0]
            before = (await qn.rollout(local, task, oracle(), seed=5, split="train")).trace
            names: dict[str, Any] = {"seed": 5, "split": "train", "agent": before.agent}
            after = (await qn.rollout(remote, remote.task("train", task.id), ReplayModel(before), **names)).trace
            assert before.score == 1
            assert after.to_json() == before.to_json()
            assert (await qn.replay(remote, remote.tasks("train")[0], before)).to_bytes() == before.to_bytes()

    run(play())


@pytest.mark.parametrize("harness", ["there", "here"])
@pytest.mark.parametrize(("task", "name"), [("plain", "crash"), ("plain", "touch"), ("broken", "touch")])
def test_failures_are_the_same(served: Served, harness: str, task: str, name: str) -> None:
    """A tool, a criterion, and a world that cannot be built."""

    async def play() -> None:
        local = here("rough")
        async with qn.connect(served.url) as server:
            remote = await server.environment("rough")
            if harness == "here":
                remote = remote.replace(harness=local.harness)
            replies = [call(name, "{}")] * 3
            traces = [
                (await qn.rollout(env, env.task("train", task), Scripted(replies), split="train")).trace
                for env in (local, remote)
            ]
            assert traces[0].failure is not None
            assert traces[0].to_json() == traces[1].to_json()

    run(play())


def test_a_model_that_breaks_is_blamed_in_the_servers_record(served: Served) -> None:
    async def broken(request: Any) -> Reply:
        raise RuntimeError("no electricity")

    async def play() -> None:
        async with qn.connect(served.url) as server:
            remote = await server.environment("talk")
            for env in (remote, remote.replace(harness=here("talk").harness)):
                trace = (await qn.rollout(env, env.tasks("train")[0], broken, split="train")).trace
                assert trace.failure is not None
                assert (trace.failure.component, trace.failure.kind) == ("model", "agent_request_failed")
                assert trace.criteria == ("noted", "in_time")

    run(play())


def test_limits_and_dials_of_the_client_count(served: Served) -> None:
    async def play() -> None:
        async with qn.connect(served.url) as server:
            config = Config(max_turns=3, noise_rate=0.5)
            local, remote = here("talk").replace(config=config), await server.environment("talk")
            trace = await same(local, remote.replace(config=config), 3, model=lambda _: conversation())
            assert trace.reason == "max_turns"

    run(play())


def test_rollouts_and_random_agents(served: Served) -> None:
    async def played(env: Environment[Any]) -> list[bytes]:
        groups = qn.rollouts(env, random(), env.tasks("train")[:3], group=2, seed=3, split="train", ordered=True)
        return [trace.to_json() async for group in groups for trace in group.traces]

    async def play() -> None:
        async with qn.connect(served.url) as server:
            remote = await server.environment("sales")
            assert await played(remote) == await played(here("sales"))
            assert not remote._open_episodes.ids, "what was played is closed"

    run(play())


def test_a_day_goes_on_in_the_world_that_was_left(served: Served) -> None:
    def takes(n: int) -> list[Reply]:
        return [call("take", f'{{"coins": {n}}}'), say("done")]

    class Taker:
        name = "taker"

        def model(self, task: qn.Task[Any], seed: int) -> Model:
            return Scripted(takes(int(task.id[-1])))

    async def played(env: Environment[Any]) -> list[qn.Trace]:
        groups = qn.rollouts(env, Taker(), env.tasks("test"), group=2, split="test", ordered=True)
        return [trace async for group in groups for trace in group.traces]

    async def play() -> None:
        async with qn.connect(served.url) as server:
            remote = await server.environment("shift")
            there, local = await played(remote), await played(here("shift"))
            assert [one.to_json() for one in there] == [one.to_json() for one in local]
            assert there[-1].turns[0].steps[0].observation == "6 in the till"

    run(play())


async def _answer(episode: RemoteEpisode, replies: list[Reply]) -> None:
    model = Scripted(replies)
    while not episode.ended:
        await episode.session.step(await model(episode.session.request()))


def test_fork_snapshot_and_restore_in_the_middle_of_a_conversation(served: Served) -> None:
    rest = [say("It is 3."), call("write", '{"number": 3}'), say("Done."), say("###STOP###")]

    async def play() -> None:
        async with qn.connect(served.url) as server:
            remote = await server.environment("talk")
            async with await remote.begin("train", 3, harness="server", seed=4) as episode:
                for reply in (say("Hello!"), say("What is it?"), call("look", "{}")):
                    await episode.session.step(reply)
                snapshot = Snapshot.from_bytes((await episode.snapshot()).to_bytes())
                twins = [episode, await episode.fork(), await remote.restore(snapshot, harness="server")]
                await _answer(await episode.fork(), [say("###STOP###")])
                for one in twins:
                    assert one.session.role == "user"
                    await _answer(one, rest)
                    assert await one.verify() == 1
                    assert (await one.replay()).agree
                assert twins[1].trace.forked == ("train-3", 0, 0, 3)
                twins[1].trace.forked = msgspec.UNSET
                assert len({one.trace.to_json() for one in twins}) == 1

    run(play())


class Haggler:
    """A harness of one's own: it tells, rewrites, lets another actor in, and ends."""

    async def play(self, session: Session, model: Model) -> None:
        session.set_context([Message("system", "Be brief."), *session.messages])
        user = session.add_actor("user", Message("user", "Begin."))
        await session.step(await model(session.request()))
        session.append(Message("user", "It is 3."))
        await session.step(await model(session.request()))
        session.set_context([*session.messages[:1], Message("user", "In short: 3.")])
        await user.step(await model(user.request()))
        await session.step(await model(session.request()))
        session.terminate("enough")
        session.terminate("more than enough")


def test_a_session_takes_any_harness(served: Served) -> None:
    def model() -> Model:
        agent = [say("What is it?"), call("write", '{"number": 3}'), say("Good bye.")]
        return Cast(agent=Scripted(agent), user=Scripted([call("look", "{}")]))

    async def play() -> None:
        local = here("talk").replace(harness=Haggler())
        expected = (await qn.rollout(local, local.tasks("train")[3], model(), seed=1, split="train", agent="x")).trace
        async with qn.connect(served.url) as server:
            remote = await server.environment("talk")
            async with await remote.begin("train", "train-3", seed=1, agent="x") as episode:
                await Haggler().play(episode.session, model())
                assert await episode.verify() == 1
                found = episode.trace
                assert (await episode.replay()).agree
            # The fingerprint is of the environment at the server; of whoever drives a session by hand nobody knows.
            expected.fingerprint, expected.external_harness = found.fingerprint, ""
            assert found.to_json() == expected.to_json()

    run(play())


def test_a_record_names_the_harness_that_led_it_and_is_retold_without_it(served: Served) -> None:
    def model() -> Model:
        agent = [say("What is it?"), call("write", '{"number": 3}'), say("Good bye.")]
        return Cast(agent=Scripted(agent), user=Scripted([call("look", "{}")]))

    async def play() -> None:
        local = here("talk")
        async with qn.connect(served.url) as server:
            remote = (await server.environment("talk")).replace(harness=Haggler())
            trace = (await qn.rollout(remote, remote.tasks("train")[3], model(), split="train")).trace
            assert (trace.score, trace.external_harness) == (1, fingerprint(Haggler()))
            assert trace.fingerprint == local.fingerprint != local.replace(harness=Haggler()).fingerprint
            for env in (local, remote, await server.environment("talk")):
                assert (await qn.replay(env, env.tasks("train")[3], trace)).to_json() == trace.to_json()

    run(play())


def test_a_model_that_breaks_breaks_a_replay_in_the_same_place(served: Served) -> None:
    async def broken(request: Any) -> Reply:
        raise RuntimeError("no electricity")

    async def play() -> None:
        local = here("talk")
        async with qn.connect(served.url) as server:
            remote = await server.environment("talk")
            for env in (remote, remote.replace(harness=local.harness), remote.replace(harness=Haggler())):
                trace = (await qn.rollout(env, env.tasks("train")[0], broken, split="train")).trace
                assert (await qn.replay(local, local.tasks("train")[0], trace)).to_json() == trace.to_json()

    run(play())


def test_a_raw_session_is_frozen_with_what_no_turn_holds_yet(served: Served) -> None:
    async def play() -> None:
        async with qn.connect(served.url) as server:
            remote = (await server.environment("talk")).replace(harness=Dialogue())
            async with await remote.begin("train", 3) as episode:
                user = episode.session.add_actor("user")
                await user.step(say("It is 3."))
                episode.session.append(Message("user", "It is 3."))
                back = await remote.restore(await episode.snapshot())
                twin = await episode.fork()
                for one in (episode, back, twin):
                    assert [message.text for message in one.session.messages] == ["It is 3."]
                    await one.session.step(call("write", '{"number": 3}'))
                    one.terminate("done")
                    assert await one.verify() == 1
                    assert bool(one.trace.forked) == (one is twin)
                    one.trace.forked = msgspec.UNSET
                    assert one.trace.to_json() == episode.trace.to_json()
                    assert len(one.rewards) == 2

    run(play())


def test_the_last_allowed_words_are_an_answer(served: Served) -> None:
    async def play() -> None:
        async with qn.connect(served.url) as server:
            config = Config(max_turns=1)
            local = here("shift").replace(config=config)
            remote = (await server.environment("shift")).replace(config=config)
            for env in (remote, remote.replace(harness=qn.ToolLoop())):
                traces = [
                    (await qn.rollout(one, one.tasks("test")[0], Scripted([say("done")]), split="test")).trace
                    for one in (local, env)
                ]
                assert traces[0].reason == "the agent answered"
                assert traces[0].to_json() == traces[1].to_json()

    run(play())


def test_an_impossible_request_is_refused_at_once(served: Served) -> None:
    async def play() -> None:
        async with qn.connect(served.url) as server:
            with pytest.raises(UsageError, match="no environment 'nothing'"):
                await server.environment("nothing")
            remote = await server.environment("talk")
            with pytest.raises(UsageError, match="freeze it where its code"):
                await remote.freeze("train")
            with pytest.raises(UsageError, match="verifier cannot be replaced"):
                remote.replace(verifier=remote.verifier)
            with pytest.raises(UsageError, match="no split 'night'"):
                remote.tasks("night")
            with pytest.raises(UsageError, match="no task"):
                await remote.begin("train", "train-99")
            with pytest.raises(UsageError, match="20 tasks"):
                await remote.begin("train", 20)
            async with await remote.begin("train", 0, harness="server") as episode:
                for wrong in (
                    episode.session.append,
                    lambda: episode.session.set_context([]),
                    lambda: episode.session.add_actor("x"),
                ):
                    with pytest.raises(UsageError, match="at the server"):
                        wrong()
                with pytest.raises(UsageError, match="before the end"):
                    await episode.verify()
                assert (await episode.verdict()).score == 0
            with pytest.raises(EpisodeError, match="forgotten"):
                await episode.session.step(say("?"))
        with pytest.raises(UsageError, match="cannot be reached"):
            qn.connect("http://127.0.0.1:9").open()
        with pytest.raises(UsageError, match="is named like"):
            qn.connect("localhost:80")
        with pytest.raises(UsageError, match=r"environment\(name\)"):
            qn.connect(f"{served.url}/counter")

    run(play())


def test_options_that_only_a_server_has_are_refused_before_a_run(served: Served) -> None:
    url = f"{served.url}/counter"
    with pytest.raises(UsageError, match=r"solutions of counter's tasks stay at its server.* --agent random"):
        plan(RunArguments(env=url))
    with pytest.raises(UsageError, match="a program plays beside its world, and counter is at a server"):
        plan(RunArguments(env=url, agent="random", harness="command:true"))
    assert plan(RunArguments(env=url, agent="random")).agent.name == "random"


def test_a_program_does_not_play_at_a_server(served: Served) -> None:
    async def play() -> None:
        async with qn.connect(served.url) as server:
            remote = (await server.environment("counter")).replace(harness=CommandHarness("true"))
            trace = (await qn.rollout(remote, remote.tasks("train")[0], Scripted([]))).trace
            assert trace.failure is not None
            assert "a program plays beside its world" in trace.failure.message

    run(play())


def test_tasks_that_were_fetched_are_not_asked_for_again(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        async with qn.connect(served.url) as server:
            remote = await server.environment("counter")
            monkeypatch.setattr(environments, "PAGE", 2)
            fetched = await remote.fetch("train")
            monkeypatch.setattr(remote.transport, "get_now", pytest.fail)
            assert [task.id for task in fetched] == [task.id for task in here("counter").tasks("train")]
            assert [task.id for task in remote.replace().tasks("train")] == [task.id for task in fetched]
            with pytest.raises(UsageError, match="night"):
                await remote.fetch("night")

    run(play())


def test_a_run_without_a_user_names_the_missing_option(served: Served) -> None:
    agent = plan(RunArguments(env=f"{served.url}/talk", agent="random")).agent

    async def play() -> qn.Trace:
        async with qn.connect(served.url) as server:
            remote = await server.environment("talk")
            return (await qn.rollout(remote, remote.tasks("train")[0], agent, split="train")).trace

    trace = run(play())
    assert (trace.agent, trace.score, trace.turns) == ("random", None, [])
    assert trace.failure is not None
    assert trace.failure.message.endswith("asks the role 'user', and no agent plays it: give --user AGENT")
