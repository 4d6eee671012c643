"""Replay: the same bytes here and elsewhere, and the first place where it is not so."""

from __future__ import annotations

import asyncio
import random
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quintain as qn
from quintain.errors import ModelError, ReplayDivergence, UsageError
from quintain.harnesses import Dialogue
from quintain.record import read_traces
from quintain.replay import ReplayModel, find_divergence, rebuild
from quintain.testing.elsewhere import fresh_processes
from quintain.trace import End, Step, Trace

from .golden.environment import Folding, environment_of
from .worlds import Forgiving, call, environment, first_task, one_by_one, play, says, script, single

GOLDEN = Path(__file__).parent / "golden" / "traces.jsonl"


def again(env: qn.Environment[Any], trace: Trace) -> Trace:
    return asyncio.run(qn.replay(env, first_task(env), trace))


# --- what replays ---


@pytest.mark.parametrize("trace", list(read_traces(GOLDEN)), ids=lambda trace: trace.agent)
def test_golden_traces_replay_for_ever(trace: Trace) -> None:
    env = environment_of(trace.agent)
    trace.fingerprint = env.fingerprint  # It names the framework's own code too, which may well change.
    assert again(env, trace).to_json() == trace.to_json()


CALLS = st.lists(
    st.sampled_from(
        [
            call("note", text="a"),
            call("roll", sides=99),
            call("bell_ring", delay=2),
            call("wait", seconds=3),
            call("take", key="lamp"),
            call("pay", gold=1),
            call("nod"),
            call("nothing"),
        ]
    ),
    max_size=3,
)


@given(st.lists(CALLS, max_size=6), st.sampled_from([None, Dialogue(), Folding()]), st.sampled_from([0, 0.5]))
@settings(max_examples=40)
def test_a_played_trace_replays(turns: list[Any], harness: Any, noise: float) -> None:
    env = environment(harness=harness, noise_rate=noise, max_turns=8)
    trace = play(env, script(*(says(*calls, text="" if calls else "so") for calls in turns)), member=2)
    other = env.replace(config=qn.Config(max_turns=1))
    assert again(other, Trace.from_json(trace.to_json())).to_bytes() == trace.to_bytes()


@pytest.mark.parametrize("name", ["plain", "folding", "talking"])
def test_an_episode_can_be_rebuilt_at_every_turn(name: str) -> None:
    (trace,) = (one for one in read_traces(GOLDEN) if one.agent == name)
    env = environment_of(name)

    async def law(turns: int) -> None:
        episode = await rebuild(env, first_task(env), trace, turns=turns)
        assert episode.trace.turns == trace.turns[:turns]
        twin = await episode.fork()
        for turn in trace.turns[turns:]:
            for one in (episode, twin):
                session = next(session for session in one.sessions if session.context.thread == turn.thread)
                session.set_context(trace.context(turn.index))
                plain = msgspec.structs.replace(turn.reply, tokens=None)
                assert (await session.step(plain)).state_digest == turn.state_digest
        for one in (episode, twin):
            one.terminate("the end")
            assert await one.verify() == trace.score

    for turns in range(len(trace.turns) + 1):
        asyncio.run(law(turns))


def test_rebuild_knows_its_limits() -> None:
    (trace,) = (one for one in read_traces(GOLDEN) if one.agent == "plain")
    env = environment_of("plain")
    for turns in (-1, 5):
        with pytest.raises(UsageError, match=rf"turns must be in \[0, 4\], got {turns}"):
            asyncio.run(rebuild(env, first_task(env), trace, turns=turns))
    spoiled = msgspec.structs.replace(trace.turns[1], state_digest="0" * 32)
    trace.turns[1] = spoiled
    with pytest.raises(ReplayDivergence, match="turn 1, state_digest"):
        asyncio.run(rebuild(env, first_task(env), trace, turns=3))


def test_rebuild_gets_through_a_harness_that_catches_everything() -> None:
    env = environment(harness=Forgiving(), max_turns=5)
    trace = play(env, one_by_one(*[call("nod")] * 5))
    assert len(asyncio.run(rebuild(env, first_task(env), trace, turns=3)).trace.turns) == 3
    with pytest.raises(ReplayDivergence, match="turn 2, turns: the trace has 3, the replay gave 2"):
        asyncio.run(rebuild(env.replace(harness=Forgiving(2)), first_task(env), trace, turns=3))


# --- what does not ---


class Moody(qn.State):
    """Every source of nondeterminism has a tool."""

    seen: list[str] = []

    def keep(self, text: object) -> str:
        self.seen.append(str(text))
        return str(text)

    @qn.tool
    def by_uuid(self) -> str:
        """Use uuid4."""
        return self.keep(uuid.uuid4())

    @qn.tool
    def by_clock(self) -> str:
        """Use the time of day."""
        return self.keep(time.time_ns())

    @qn.tool
    def by_chance(self) -> str:
        """Use unseeded random numbers."""
        return self.keep(random.random())

    @qn.tool
    def by_hash(self) -> str:
        """Use hash()."""
        return self.keep(hash("word"))

    @qn.tool
    def by_order(self) -> str:
        """Use the order of a set."""
        return self.keep(list({f"word {n}" for n in range(20)}))

    @qn.tool
    def by_address(self) -> str:
        """Use id()."""
        return self.keep(id(HELD))

    @qn.tool
    def by_secret(self) -> str:
        """Say nothing of it."""
        self.keep(uuid.uuid4())
        return "ok"


HELD: list[Any] = [object() for _ in range(random.SystemRandom().randrange(10_000))]
MOODY = single(Moody())


@pytest.mark.parametrize("tool", ["by_uuid", "by_clock", "by_chance"])
def test_a_replay_here_names_turn_step_and_field(tool: str) -> None:
    trace = play(MOODY, script(says(call("by_order")), says(call("by_hash"), call(tool))))
    with pytest.raises(
        ReplayDivergence, match=r"turn 1, step 1, observation: the trace has .*, the replay gave "
    ) as caught:
        again(MOODY, trace)
    assert (caught.value.turn, caught.value.step, caught.value.field) == (1, 1, "observation")


def test_a_difference_in_the_world_alone_is_found() -> None:
    with pytest.raises(ReplayDivergence, match="turn 0, state_digest"):
        again(MOODY, play(MOODY, script(says(call("by_secret")))))


@pytest.mark.parametrize(
    "tool",
    [
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("by_uuid", "by_clock", "by_chance", "by_order")),
        pytest.param("by_address", marks=pytest.mark.slow),
        "by_hash",
        "by_secret",
    ],
)
def test_a_replay_elsewhere_finds_every_kind(tool: str, tmp_path: Path) -> None:
    trace = play(MOODY, script(says(), says(call(tool))))
    trace = play(MOODY, script(says(call(tool))))
    (tmp_path / "trace").write_bytes(trace.to_json())
    results = fresh_processes([sys.executable, "-m", "tests.test_replay", str(tmp_path / "trace")], [1, 2])
    assert [result.returncode for result in results] == [1, 1]
    field = "state_digest" if tool == "by_secret" else "step 0, observation"
    assert all(result.stdout.startswith(f"turn 0, {field}: ") for result in results)
    assert [result.stderr for result in results] == ["", ""]


def test_elsewhere_has_the_hash_seeds_it_was_asked_for() -> None:
    code = "import os; print(os.environ['PYTHONHASHSEED'], 'x' * 200_000)"
    results = fresh_processes([sys.executable, "-c", code], [3, 4, 5])
    assert [result.stdout[0] for result in results] == ["3", "4", "5"]


def test_processes_do_not_outlive_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    started: list[subprocess.Popen[str]] = []

    def interrupted(self: subprocess.Popen[str]) -> tuple[str, str]:
        started.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fresh_processes([sys.executable, "-c", "import time; time.sleep(60)"], [1])
    monkeypatch.undo()
    started[0].communicate(timeout=20)
    assert started[0].returncode == -9


CHANGES: list[tuple[Callable[[Trace], Any], str]] = [
    (lambda trace: setattr(trace, "score", 0.0), "score: the trace has 0.0, the replay gave 0.25"),
    (lambda trace: setattr(trace, "end", End.TRUNCATED), "end: "),
    (lambda trace: setattr(trace, "fingerprint", "0"), "fingerprint: "),
    (lambda trace: trace.turns.pop(), "turn 1, turns: the trace has 1, the replay gave 2"),
    (lambda trace: trace.turns.append(trace.turns[0]), "turn 2, turns: the trace has 3, the replay gave 2"),
    (lambda trace: trace.rewards.pop(), "rewards: "),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_the_first_field_that_differs_is_named(change: Callable[[Trace], Any], message: str) -> None:
    env = environment()
    trace = play(env, script(says(call("note", text="x")), says(text="done")))
    again(env, trace)
    expected = Trace.from_json(trace.to_json())
    change(expected)
    diverged = find_divergence(expected, trace)
    assert diverged is not None
    assert str(diverged).startswith(message)


def test_another_step_more_or_less_is_named_by_its_turn() -> None:
    env = environment()
    trace = play(env, script(says(call("nod"))))
    more = Trace.from_json(trace.to_json())
    more.turns[0] = msgspec.structs.replace(more.turns[0], steps=(*more.turns[0].steps, Step(call("nod"), "nod2")))
    diverged = find_divergence(trace, more)
    assert diverged is not None
    assert (diverged.turn, diverged.step, diverged.field) == (0, None, "steps")


def test_a_trace_of_another_environment_or_task() -> None:
    env = environment()
    trace = play(env, script())
    with pytest.raises(UsageError, match="is of yard/test-0, not of yard/test-1"):
        asyncio.run(qn.replay(env, env.tasks("test")[1], trace))


# --- the recorded model ---


def test_replies_go_to_their_roles_with_their_whole_prompts() -> None:
    (trace,) = (one for one in read_traces(GOLDEN) if one.agent == "talking")

    async def law() -> None:
        recorded = ReplayModel(trace)
        env = environment_of("talking")
        episode = await qn.Episode[Any].begin(env, first_task(env))
        user = episode.session.add_actor("user")
        agent = [await recorded(episode.session.request()) for _ in range(2)]
        spoken = [await recorded(user.request()) for _ in range(2)]
        assert [reply.message for reply in agent] == [
            turn.reply.message for turn in trace.turns if turn.role == "agent"
        ]
        assert [reply.message for reply in spoken] == [
            turn.reply.message for turn in trace.turns if turn.role == "user"
        ]
        for turn, reply in zip((t for t in trace.turns if t.role == "user"), spoken, strict=True):
            assert reply.tokens is not None
            assert reply.tokens.prompt == [len(message.text) for message in trace.context(turn.index)]
        with pytest.raises(ModelError, match="no further reply of role 'agent'") as caught:
            await recorded(episode.session.request())
        assert caught.value.kind == "quintain:replay_diverged"

    asyncio.run(law())


def test_a_harness_that_asks_for_more_than_the_trace_holds_diverges() -> None:
    env = environment(harness=Forgiving(2))
    longer = env.replace(harness=Forgiving(3))
    trace = play(env, script(says(call("nod")), says(call("nod"))))
    with pytest.raises(ReplayDivergence, match="end: "):
        again(longer, msgspec.structs.replace(trace, fingerprint=longer.fingerprint))


def main(path: str) -> int:
    """Replay a moody trace in this process; says where it left it."""
    (trace,) = read_traces(path)
    try:
        again(MOODY, trace)
    except ReplayDivergence as diverged:
        sys.stdout.write(f"{diverged}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
