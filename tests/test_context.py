"""Fork, snapshot, restore: whatever was played, the twins go on alike and know nothing of each other."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quintain as qn
from quintain import codec
from quintain.context import Context, Snapshot
from quintain.errors import UsageError
from quintain.trace import Message, Reply, Tokens

from . import worlds
from .worlds import Op, act, finish

TOOLS = st.one_of(
    st.tuples(st.just("note"), st.sampled_from(['{"text": "b"}', '{"text": "a"}', '{"text": 5}', "{"])),
    st.tuples(st.just("roll"), st.sampled_from(['{"sides": 6}', '{"sides": 1000000}'])),
    st.tuples(st.just("wait"), st.integers(0, 9).map(lambda n: f'{{"seconds": {n}}}')),
    st.tuples(st.just("bell_ring"), st.integers(0, 9).map(lambda n: f'{{"delay": {n}}}')),
    st.tuples(st.just("put"), st.sampled_from(["lamp", "box", "axe"]).map(lambda k: f'{{"key": "{k}", "count": 2}}')),
    st.tuples(st.just("take"), st.sampled_from(["lamp", "box"]).map(lambda k: f'{{"key": "{k}"}}')),
    st.tuples(st.just("pay"), st.integers(0, 5).map(lambda n: f'{{"gold": {n}}}')),
    st.tuples(st.sampled_from(["nod", "no_such_tool"]), st.just("")),
)
WHO = st.integers(0, 3)
TEXTS = st.text(alphabet="xyz", max_size=3)
OPS: st.SearchStrategy[Op] = st.one_of(
    st.tuples(st.just("join"), st.sampled_from(["user", "agent"])),
    st.tuples(st.just("tell"), WHO, TEXTS),
    st.tuples(st.just("rewrite"), WHO, st.integers(0, 6), st.lists(TEXTS, max_size=2)),
    st.tuples(st.just("step"), WHO, st.lists(TOOLS, max_size=3), TEXTS, st.sampled_from([None, 0, 0, 1])),
    st.tuples(st.just("step"), WHO, st.lists(TOOLS, max_size=3), TEXTS, st.just(0)),
)
PLAYS = st.lists(OPS, max_size=12)


async def begun(ops: list[Op], **config: Any) -> qn.Episode[Any]:
    env = worlds.environment(max_turns=30, **config)
    episode = await qn.Episode[Any].begin(env, env.tasks("test")[1], seed=3)
    for op in ops:
        await act(episode, op)
    return episode


@given(PLAYS, PLAYS)
@settings(max_examples=60)
def test_fork_and_restored_snapshot_go_on_like_the_original(before: list[Op], after: list[Op]) -> None:
    copies_go_on_alike(before, after)


def test_copies_of_a_context_set_anew_go_on_like_the_original() -> None:
    copies_go_on_alike([("step", 0, [], "x", 0), ("rewrite", 0, 0, ["y"])], [("step", 0, [], "z", 0)])


def copies_go_on_alike(before: list[Op], after: list[Op]) -> None:
    async def law() -> None:
        episode = await begun(before, noise_rate=0.3)
        fork = await episode.fork()
        snapshot = await episode.snapshot()
        again = Snapshot.from_bytes(snapshot.to_bytes())
        restored = await qn.Episode[Any].restore(episode.env, episode.task, again)
        assert again == snapshot
        assert (await restored.snapshot()).digest == (await fork.snapshot()).digest == snapshot.digest
        expected = await finish(episode, after)
        assert await finish(fork, after) == expected
        assert await finish(restored, after) == expected

    asyncio.run(law())


@given(PLAYS, PLAYS, PLAYS)
@settings(max_examples=40)
def test_twins_never_see_each_other(before: list[Op], one: list[Op], other: list[Op]) -> None:
    async def law() -> None:
        alone = await finish(await begun([*before, *one]), [])
        episode = await begun(before)
        twin = await episode.fork()
        third = await twin.fork()
        for ours, theirs in zip([*one, None], [*other, None], strict=False):
            if ours:
                await act(episode, ours)
            if theirs:
                await act(twin, theirs)
        for op in one[len(other) + 1 :]:
            await act(episode, op)
        assert await finish(episode, []) == alone
        assert await finish(third, one) == alone

    asyncio.run(law())


@given(st.data())
@settings(max_examples=40)
def test_every_prompt_can_be_put_together_from_what_the_turns_add(data: st.DataObject) -> None:
    async def law() -> None:
        episode = await begun([])
        asked: list[Tokens | None] = []
        contexts: list[list[Message]] = []
        for op in data.draw(PLAYS):
            if op[0] == "step":
                session = episode.sessions[op[1] % len(episode.sessions)]
                contexts.append(list(session.messages))
                prompt = [word for one in session.messages for word in worlds.words(one, op[4])]
                asked.append(None if op[4] is None else Tokens(prompt, []))
            await act(episode, op)
        sequences: dict[tuple[int, int], list[int]] = {}
        for turn, context, tokens in zip(episode.trace.turns, contexts, asked, strict=True):
            assert episode.trace.context(turn.index) == context
            if tokens is None or turn.reply.tokens is None:
                assert tokens is turn.reply.tokens
                continue
            sequence = sequences.setdefault((turn.thread, turn.branch), [])
            sequence += turn.reply.tokens.prompt
            assert sequence == tokens.prompt
            sequence += turn.reply.tokens.completion

    asyncio.run(law())


@pytest.mark.parametrize("hash_seed", [1, pytest.param(4242, marks=pytest.mark.slow)])
def test_a_snapshot_goes_on_alike_in_another_process(tmp_path: Path, hash_seed: int) -> None:
    errands: list[worlds.Errand] = []
    expected: list[str] = []

    @given(PLAYS, PLAYS)
    @settings(max_examples=25, database=None)
    def collect(before: list[Op], after: list[Op]) -> None:
        async def law() -> None:
            episode = await begun(before)
            plain = msgspec.msgpack.decode(msgspec.msgpack.encode(after))
            errands.append(worlds.Errand((await episode.snapshot()).to_bytes(), 1, plain))
            expected.append(codec.digest(await finish(episode, after)))

        asyncio.run(law())

    collect()
    work = tmp_path / "work"
    work.write_bytes(msgspec.msgpack.encode(errands))
    command = [sys.executable, "-m", "tests.worlds", str(work)]
    environ = {"PYTHONHASHSEED": str(hash_seed), "PATH": "", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
    )
    assert done.stdout.split() == expected


def test_the_cost_of_a_fork_does_not_grow_with_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    dumps = codec.dumps

    def counted(*args: Any, **kwargs: Any) -> bytes:
        data = dumps(*args, **kwargs)
        encoded.append(len(data))
        return data

    async def cost(turns: int) -> int:
        env = worlds.environment(max_turns=700)
        episode = await qn.Episode[Any].begin(env, env.tasks("test")[1])
        for _ in range(turns):
            await act(episode, ("step", 0, [("nod", "")], "", 0))
        encoded.clear()
        monkeypatch.setattr(codec, "dumps", counted)
        await episode.fork()
        monkeypatch.setattr(codec, "dumps", dumps)
        return sum(encoded)

    few, many = asyncio.run(cost(10)), asyncio.run(cost(300))
    assert few > 0
    assert many <= few + 8  # the counter of identifiers has more digits


def test_forks_share_token_ids_until_they_part() -> None:
    context = Context("agent", 0, [])
    context.record(0, Reply(Message("assistant"), Tokens([1, 2], [3])))
    one, other = context.fork(), context.fork()
    first = one.record(1, Reply(Message("assistant"), Tokens([1, 2, 3, 4], [5])))
    second = other.record(1, Reply(Message("assistant"), Tokens([1, 2, 3, 9], [8])))
    assert first.reply.tokens == Tokens([4], [5])
    assert second.reply.tokens == Tokens([9], [8])
    assert one.record(2, Reply(Message("assistant"), Tokens([1, 2, 3, 4, 5, 6], []))).reply.tokens == Tokens([6], [])
    assert other.record(2, Reply(Message("assistant"), Tokens([1, 2, 3, 9, 8], [7]))).reply.tokens == Tokens([], [7])


@pytest.mark.parametrize("prompt", [[1, 2], [1, 2, 4, 5], []], ids=["shorter", "other ids", "empty"])
def test_tokens_that_do_not_continue_start_a_branch(prompt: list[int]) -> None:
    context = Context("agent", 0, [])
    context.record(0, Reply(Message("assistant"), Tokens([1, 2], [3])))
    turn = context.record(1, Reply(Message("assistant"), Tokens(prompt, [7])))
    assert (turn.branch, turn.keep) == (1, None)
    assert turn.reply.tokens == Tokens(prompt, [7])


def test_a_rewrite_starts_a_branch_only_where_it_changes_what_is_recorded() -> None:
    async def law() -> None:
        episode = await begun([])
        session = episode.session
        session.set_context([Message("system", "s"), *session.messages])
        first = await session.step(worlds.says(text="one"))
        session.set_context([*session.messages, Message("user", "more")])
        second = await session.step(worlds.says(text="two"))
        session.set_context([Message("system", "s"), Message("user", "a summary")])
        session.set_context([Message("system", "s"), Message("user", "a better summary")])
        third = await session.step(worlds.says(text="three"))
        assert [turn.branch for turn in (first, second, third)] == [0, 0, 1]
        assert [turn.keep for turn in (first, second, third)] == [None, None, 1]
        assert third.added == (Message("user", "a better summary"),)

    asyncio.run(law())


def test_a_snapshot_is_of_one_task_and_one_version() -> None:
    async def law() -> None:
        episode = await begun([])
        snapshot = await episode.snapshot()
        with pytest.raises(UsageError, match=r"'test-1' in .*, not of 'test-2'"):
            await qn.Episode[Any].restore(episode.env, episode.env.tasks("test")[2], snapshot)
        other = worlds.environment(worlds.fine)
        with pytest.raises(ValueError, match=f"not of 'test-1' in {other.fingerprint}"):
            await qn.Episode[Any].restore(other, episode.task, snapshot)
        with pytest.raises(msgspec.DecodeError):
            Snapshot.from_bytes(snapshot.to_bytes()[:-1])

    asyncio.run(law())


def test_a_restored_episode_keeps_its_own_limits() -> None:
    async def law() -> None:
        episode = await begun([("step", 0, [], "hello", None)], max_calls=7)
        longer = episode.env.replace(config=qn.Config(max_turns=99))
        restored = await qn.Episode[Any].restore(longer, episode.task, await episode.snapshot())
        assert restored.env.config == restored.trace.config == episode.env.config

    asyncio.run(law())


def test_an_episode_in_the_middle_of_a_turn_refuses_copies() -> None:
    async def law() -> None:
        episode = await begun([])
        playing = asyncio.create_task(episode.session.step(worlds.says(worlds.call("pay", gold=1))))
        await asyncio.sleep(0)
        assert not playing.done()
        for attempt in (episode.fork(), episode.snapshot(), episode.session.step(worlds.says())):
            with pytest.raises(ValueError, match="a turn is being played"):
                await attempt
        await playing
        assert (await episode.fork()).state.vault.gold == 1

    asyncio.run(law())
