"""Episodes in a world with a database: forked, frozen, thawed and replayed, they are the same to the byte."""

from __future__ import annotations

import asyncio
import json

import quintain as qn
from quintain import codec, resource
from quintain.context import Snapshot
from quintain.episode import Episode
from quintain.replay import replay
from quintain.trace import Message, Reply, ToolCall
from tests.resources.database.shop import Shop, shop


@qn.reward
def sent(outcome: qn.EpisodeView[Shop]) -> float:
    """The share of orders that went out."""
    return float(outcome.state.db.execute("SELECT count(*) / 400.0 FROM orders WHERE status = 'sent'")[0][0])


def environment() -> qn.Environment[Shop]:
    return qn.Environment(
        "shop",
        tasks=lambda split: [qn.Task(id="one", prompt="Send some.", start=Shop(db=shop()))],
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(sent),
        state=Shop,
        config=qn.Config(max_turns=50),
    )


def reply(number: int) -> Reply:
    name, arguments = (
        ("send", {"order": number}),
        ("wait", {"hours": 1.5}),
        ("read", {"sql": f"SELECT id, status FROM orders WHERE id < {number} ORDER BY id LIMIT 3"}),
        ("send", {"order": 9999}),
    )[number % 4]
    return Reply(Message("assistant", calls=(ToolCall(f"call_{number}", name, codec.text(arguments)),)))


async def played(episode: Episode[Shop], numbers: range) -> Episode[Shop]:
    for number in numbers:
        await episode.session.step(reply(number))
    return episode


async def story() -> list[bytes]:
    env = environment()
    task = env.tasks("test")[0]
    straight = await played(await Episode.begin(env, task, seed=3), range(24))
    half = await played(await Episode.begin(env, task, seed=3), range(12))
    twin = await half.fork()
    frozen = (await half.snapshot()).to_bytes()
    await played(half, range(100, 103))  # what one branch does, the others do not see
    thawed = await Episode.restore(env, task, Snapshot.from_bytes(frozen))
    ends: list[bytes] = []
    for episode in (straight, await played(twin, range(12, 24)), await played(thawed, range(12, 24))):
        await episode.session.step(Reply(Message("assistant", "Done.")))
        episode.session.terminate("the agent answered")
        await episode.verify()
        ends.append(episode.trace.to_bytes())
        assert (await resource.digest(episode.state)) == (await resource.digest(straight.state))
    await replay(env, task, straight.trace)
    return ends


def test_every_way_through_an_episode_gives_the_same_bytes() -> None:
    straight, forked, thawed = asyncio.run(story())
    assert straight == forked == thawed


def test_a_turn_is_named_by_the_state_of_its_database() -> None:
    env = environment()

    async def digests() -> list[str]:
        episode = await played(await Episode.begin(env, env.tasks("test")[0], seed=3), range(8))
        return [turn.state_digest for turn in episode.trace.turns]

    found = asyncio.run(digests())
    assert found[2] == found[3] != found[4]  # reading, and an order that does not exist, change nothing
    assert asyncio.run(digests()) == found


def test_the_order_of_rows_does_not_reach_an_observation() -> None:
    """A world's own contract test reverses unordered rows in the same way."""
    env = environment()

    async def observed(*, is_reversed: bool) -> str:
        episode = await Episode.begin(env, env.tasks("test")[0], seed=3)
        episode.state.db.reverse_unordered_selects(on=is_reversed)
        await played(episode, range(12))
        return json.dumps([[str(step.observation) for step in turn.steps] for turn in episode.trace.turns])

    assert asyncio.run(observed(is_reversed=True)) == asyncio.run(observed(is_reversed=False))
