"""Episodes in a world on PostgreSQL: forked, frozen, thawed and replayed, they are the same to the byte."""

from __future__ import annotations

import asyncio

import pytest

import quintain as qn
from quintain import codec, resource
from quintain.context import Snapshot
from quintain.episode import Episode
from quintain.replay import replay
from quintain.resources.postgres.server import ServerError
from quintain.trace import Message, Reply, ToolCall
from tests.resources.postgres.shop import Shop, shop


@qn.reward
def sent(outcome: qn.EpisodeView[Shop]) -> float:
    """The share of orders that went out."""
    return float(outcome.state.db.execute("SELECT count(*) / 40.0 FROM orders WHERE status = 'sent'")[0][0])


def environment(url: str) -> qn.Environment[Shop]:
    return qn.Environment(
        "shop",
        tasks=lambda split: [qn.Task(id="one", prompt="Send some.", start=Shop(db=shop(url)))],
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(sent),
        state=Shop,
        config=qn.Config(max_turns=50),
    )


def reply(number: int) -> Reply:
    name, arguments = (
        ("send", {"order": 1 + number}),
        ("wait", {"hours": 1.5}),
        ("read", {"sql": f"SELECT id, status FROM orders WHERE id < {number} ORDER BY id LIMIT 3"}),
        ("order", {"customer": 1 + number % 9}),
        ("send", {"order": 9999}),
    )[number % 5]
    return Reply(Message("assistant", calls=(ToolCall(f"call_{number}", name, codec.text(arguments)),)))


async def played(episode: Episode[Shop], numbers: range) -> Episode[Shop]:
    for number in numbers:
        await episode.session.step(reply(number))
    return episode


async def story(url: str) -> list[bytes]:
    env = environment(url)
    task = env.tasks("test")[0]
    straight = await played(await Episode.begin(env, task, seed=3), range(12))
    half = await played(await Episode.begin(env, task, seed=3), range(6))
    twin = await half.fork()
    frozen = (await half.snapshot()).to_bytes()
    await played(half, range(20, 23))  # what one branch does, the others do not see
    thawed = await Episode.restore(env, task, Snapshot.from_bytes(frozen))
    ends: list[bytes] = []
    for episode in (straight, await played(twin, range(6, 12)), await played(thawed, range(6, 12))):
        await episode.session.step(Reply(Message("assistant", "Done.")))
        episode.session.terminate("the agent answered")
        await episode.verify()
        ends.append(episode.trace.to_bytes())
        assert (await resource.digest(episode.state)) == (await resource.digest(straight.state))
    await replay(env, task, straight.trace)
    return ends


def test_every_way_through_an_episode_gives_the_same_bytes(url: str) -> None:
    straight, forked, thawed = asyncio.run(story(url))
    assert straight == forked == thawed


def test_a_server_that_went_away_is_a_failure_of_the_state(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = environment(url)

    async def broken() -> qn.Trace:
        episode = await Episode.begin(env, env.tasks("test")[0], seed=3)
        await played(episode, range(2))

        def gone(*_: object) -> None:
            raise ServerError(url, "server closed the connection")

        monkeypatch.setattr(type(episode.state.db), "insert", gone)
        await episode.session.step(reply(3))
        return episode.trace

    trace = asyncio.run(broken())
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("S", "transport_peer_drop")
    assert url in trace.failure.message
