"""Gymnasium's environments give the rewards of the original, fork and replay, and cannot hide that they are random."""

from __future__ import annotations

import asyncio
import functools
import itertools
import re
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import quintain as qn
from quintain.adapters.gymnasium import FIRST_SEEDS, Game, load
from quintain.environment import Environment
from quintain.episode import Episode
from quintain.errors import ToolError, UsageError
from quintain.models import Scripted
from quintain.record import EpisodeRecord
from quintain.replay import replay
from quintain.testing import ResourceContract
from quintain.trace import Content, End, Image, Message, Reply, Text, ToolCall


class Echo(gymnasium.Env[Any, Any]):
    """Environment that rewards each action by its number in the episode; a subclass changes one thing."""

    action_space: Any = spaces.Discrete(3)
    observation_space = spaces.Discrete(100)
    taken: list[Any] = []  # of all environments, for the tests
    count = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return self.first(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.taken.append(action)
        self.count += 1
        return self.count, self.reward(), self.count == 4, False, {}

    def first(self) -> int:
        return 0

    def reward(self) -> float:
        return float(self.count)


CLOCK = itertools.count()


class RandomReward(Echo):
    def reward(self) -> float:
        return float(next(CLOCK))


class RandomReset(Echo):
    def first(self) -> int:
        return next(CLOCK)


class NoReward(Echo):
    def reward(self) -> float:
        return float("nan")


class Broken(Echo):
    def reward(self) -> float:
        raise RuntimeError("the physics engine is gone")


class Composite(Echo):
    action_space = spaces.Dict(
        {
            "pen up": spaces.MultiBinary(2),
            "where": spaces.Tuple((spaces.Box(-1.0, 1.0, (2,)), spaces.Discrete(3, start=-1))),
            "dials": spaces.MultiDiscrete([2, 5]),
            "word": spaces.Text(3, charset="ab"),
        }
    )


class Graph(Echo):
    action_space = spaces.Tuple((spaces.Graph(spaces.Discrete(2), None),))


class Pixels(Echo):
    observation_space: Any = spaces.Box(0, 255, (64, 48, 3), np.uint8)

    def first(self) -> Any:
        return self.drawn()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        _, reward, terminated, truncated, info = super().step(action)
        return self.drawn(), reward, terminated, truncated, info

    def drawn(self) -> Any:
        size = int(np.prod(self.observation_space.shape))
        flat = np.arange(self.count, self.count + size) % 256
        return flat.astype(np.uint8).reshape(self.observation_space.shape)


class Grey(Pixels):
    observation_space = spaces.Box(0, 255, (5, 7), np.uint8)


class Memory(Pixels):
    observation_space = spaces.Box(0, 255, (128,), np.uint8)


KINDS: tuple[Any, ...] = (
    *(Echo, RandomReward, RandomReset, NoReward, Broken, Composite, Graph),
    *(Pixels, Grey, Memory),
)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    for kind in KINDS:
        gymnasium.register(f"quintain/{kind.__name__}-v0", entry_point=kind, max_episode_steps=10)
    yield
    for kind in KINDS:
        del gymnasium.registry[f"quintain/{kind.__name__}-v0"]
    Echo.taken.clear()


def _play(env: Environment[Any], actions: Sequence[Any], *, index: int = 0) -> EpisodeRecord:
    model = Scripted.calls([("step", {"action": action}) for action in actions])
    return asyncio.run(qn.rollout(env, env.tasks("test")[index], model))


@pytest.mark.parametrize(
    ("id", "texts", "options"),
    [
        ("FrozenLake-v1", {}, {}),
        ("FrozenLake-v1", {"is_slippery": "false", "map_name": "8x8"}, {"is_slippery": False, "map_name": "8x8"}),
        ("Taxi-v4", {}, {}),
        ("CartPole-v1", {}, {}),
        ("Pendulum-v1", {"g": "9.81"}, {"g": 9.81}),
        ("Blackjack-v1", {"natural": "true"}, {"natural": True}),
    ],
)
@pytest.mark.parametrize("index", [0, 1, 2])
def test_rewards_equal_those_of_the_original(
    id: str, texts: dict[str, Any], options: dict[str, Any], index: int
) -> None:
    env = load(id, **texts)
    original = gymnasium.make(id, **options)
    original.reset(seed=FIRST_SEEDS["test"] + index)
    original.action_space.seed(index)
    rewards: list[float] = []
    actions: list[Any] = []
    ended = False
    while not ended and len(actions) < 80:
        action = original.action_space.sample()
        _, reward, terminated, truncated, _ = original.step(action)
        actions.append(action.tolist())
        rewards.append(float(reward))
        ended = terminated or truncated
    trace = _play(env, actions, index=index).trace
    assert [reward.raw for turn in trace.turns for reward in turn.rewards] == rewards
    total = 0.0
    for reward in rewards:
        total += reward
    assert (trace.score, trace.failure) == (total, None)
    assert len(trace.turns) == len(actions) + (not ended)
    again = load(id, **texts)
    assert asyncio.run(replay(again, again.tasks("test")[index], trace)).to_bytes() == trace.to_bytes()


def test_an_end_by_the_original_ends_the_episode() -> None:
    trace = _play(load("quintain/Echo-v0"), [0, 1, 2, 0, 1]).trace
    assert (trace.end, trace.reason) == (End.TERMINATED, "the episode was terminated")
    assert (len(trace.turns), trace.score) == (4, 10.0)
    assert trace.turns[3].steps[0].data == {"observation": 4, "reward": 4.0, "terminated": True, "truncated": False}
    short = _play(load("quintain/Echo-v0", max_episode_steps=2), [0, 1, 2]).trace
    assert (short.reason, short.score) == ("the episode was truncated", 3.0)


def test_calls_after_the_end_and_outside_the_space_move_nothing() -> None:
    env = load("quintain/Echo-v0")
    calls = tuple(ToolCall(str(n), "step", f'{{"action":{action}}}') for n, action in enumerate([3, 0, 0, 0, 0, 0]))
    model = Scripted([Reply(Message("assistant", calls=calls))])
    trace = asyncio.run(qn.rollout(env, env.tasks("train")[0], model)).trace
    (turn,) = trace.turns
    assert [step.is_error for step in turn.steps] == [True, False, False, False, False, True]
    assert [reward.raw for reward in turn.rewards] == [None, 1.0, 2.0, 3.0, 4.0, None]
    assert "was terminated" in str(turn.steps[-1].observation)
    assert trace.score == 10.0


@pytest.mark.parametrize("kind", ["RandomReward", "RandomReset"])
def test_an_environment_that_is_not_deterministic_fails_with_component_s(kind: str) -> None:
    trace = _play(load(f"quintain/{kind}-v0"), [0, 0]).trace
    assert trace.score is None
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("S", "quintain:state_bug")
    place = "action 1 of 2" if kind == "RandomReward" else "reset"
    assert f"not deterministic: seed 1000000, {place} gave " in trace.failure.message


@pytest.mark.parametrize(("kind", "says"), [("NoReward", "reward of action 0 is nan"), ("Broken", "engine is gone")])
def test_an_environment_that_breaks_fails_with_component_s(kind: str, says: str) -> None:
    trace = _play(load(f"quintain/{kind}-v0"), [0]).trace
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("S", "quintain:tool_bug")
    assert says in trace.failure.message


def test_actions_that_cannot_be_played_again_fail_with_component_s(monkeypatch: pytest.MonkeyPatch) -> None:
    env = load("quintain/Echo-v0")
    model = Scripted.calls([("step", {"action": 0})])
    ready = env.tasks("test")[0]
    played = Echo.step

    def once(self: Echo, action: Any) -> Any:
        if self.taken:
            raise OSError("the only licence is taken")
        return played(self, action)

    monkeypatch.setattr(Echo, "step", once)
    trace = asyncio.run(qn.rollout(env, ready, model)).trace
    assert trace.failure is not None
    assert (trace.failure.component, trace.failure.kind) == ("S", "quintain:state_bug")
    assert "action 1 cannot be played again: OSError: the only licence is taken" in trace.failure.message


def _decoded(content: Content) -> tuple[str, tuple[int, ...], bytes]:
    """Returns the text before a picture, the fields of its header, and its lines of pixels with their filters."""
    assert isinstance(content, tuple)
    *before, picture = content
    assert isinstance(picture, Image)
    chunks: dict[bytes, bytes] = {}
    rest = picture.data.removeprefix(b"\x89PNG\r\n\x1a\n")
    while rest:
        size, name = struct.unpack(">I4s", rest[:8])
        chunks[name] = rest[8 : 8 + size]
        assert struct.unpack(">I", rest[8 + size : 12 + size]) == (zlib.crc32(name + chunks[name]),)
        rest = rest[12 + size :]
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    text = "".join(one.text for one in before if isinstance(one, Text))
    return text, struct.unpack(">IIBBBBB", chunks[b"IHDR"]), zlib.decompress(chunks[b"IDAT"])


@pytest.mark.parametrize(("kind", "header"), [("Pixels", (48, 64, 8, 2, 0, 0, 0)), ("Grey", (7, 5, 8, 0, 0, 0, 0))])
def test_pixels_are_sent_as_a_picture(kind: str, header: tuple[int, ...]) -> None:
    env = load(f"quintain/{kind}-v0")
    task = env.tasks("test")[0]
    text, drawn, _ = _decoded(task.prompt)
    assert drawn == header
    assert text.endswith("Observations are pictures. The first one follows.")
    trace = _play(env, [0, 1]).trace
    step = trace.turns[1].steps[0]
    text, drawn, rows = _decoded(step.observation)
    assert (text, drawn) == ("reward: 2.0\nterminated: false\ntruncated: false", header)
    width = len(rows) // header[1]
    assert {rows[n * width] for n in range(header[1])} == {0}
    pixels = b"".join(rows[n * width + 1 : (n + 1) * width] for n in range(header[1]))
    assert pixels == bytes(n % 256 for n in range(2, 2 + len(pixels)))
    assert "observation" not in step.data
    assert trace.score == 3.0
    again = load(f"quintain/{kind}-v0")
    assert asyncio.run(replay(again, again.tasks("test")[0], trace)).to_bytes() == trace.to_bytes()


def test_bytes_that_are_not_pixels_are_sent_as_numbers() -> None:
    step = _play(load("quintain/Memory-v0"), [0]).trace.turns[0].steps[0]
    assert step.data["observation"] == list(range(1, 129))
    assert str(step.observation).startswith("observation: [1,2,3,")


def test_an_action_of_nested_spaces_reaches_the_original_as_its_element() -> None:
    env = load("quintain/Composite-v0")
    action = {"pen up": [0, 1], "where": [[0.5, -1], -1], "dials": [1, 4], "word": "ab"}
    refused = [
        action | {"word": "abc" * 2},
        action | {"word": "xyz"},
        action | {"where": [[0.5, -1.5], 0]},
        action | {"where": [[0.5], 0]},
        action | {"dials": [1, 5]},
        {"word": "ab"},
    ]
    turns = _play(env, [action, *refused]).trace.turns
    assert [turn.steps[0].is_error for turn in turns[:-1]] == [False] + [True] * 6
    assert "is not in Dict(" in str(turns[2].steps[0].observation)
    for taken in Echo.taken:
        assert Composite.action_space.contains(taken)
        assert taken["where"][0].tolist() == [0.5, -1.0]
        assert taken["pen up"].tolist() == [0, 1]
    assert len(Echo.taken) == 2  # once in play, once when the moves are played again


def test_a_fork_and_a_snapshot_continue_as_the_original_does() -> None:
    env = load("CartPole-v1")
    task = env.tasks("test")[0]

    def reply(action: int) -> Reply:
        return Reply(Message("assistant", calls=(ToolCall("1", "step", f'{{"action":{action}}}'),)))

    async def both() -> tuple[Episode[Any], ...]:
        episode = await Episode[Any].begin(env, task)
        for action in (0, 1, 1):
            await episode.session.step(reply(action))
        twins = episode, await episode.fork(), await Episode[Any].restore(env, task, await episode.snapshot())
        for twin in twins:
            for action in (1, 0, 0):
                await twin.session.step(reply(action))
        return twins

    episode, *twins = asyncio.run(both())
    for twin in twins:
        assert twin.trace.to_bytes() == episode.trace.to_bytes()
        assert len(twin.state.game.moves) == 6
    asyncio.run(twins[0].session.step(reply(0)))
    assert len(episode.state.game.moves) == 6


class TestGame(ResourceContract):
    examples = 10

    def make(self) -> Game:
        game: Game = load("FrozenLake-v1", seeds=1).tasks("train")[0].world().game
        return game.fork()

    def operations(self) -> Sequence[Any]:
        # An episode on slippery ice may end at any move, after which a step is refused.
        return [functools.partial(_step, action=action) for action in range(4)]


def _step(game: Game, action: int) -> str:
    try:
        return str(game.step(action).content)
    except ToolError as refusal:
        return str(refusal)


def test_tasks_are_seeds_and_their_prompt_shows_the_first_observation() -> None:
    env = load("Taxi-v4", seeds="2")
    assert [task.id for task in env.tasks("train")] == ["seed-0", "seed-1"]
    assert [task.id for task in env.tasks("test")] == ["seed-1000000", "seed-1000001"]
    first, _ = gymnasium.make("Taxi-v4").reset(seed=1)
    prompt = str(env.tasks("train")[1].prompt)
    assert f"observation: {first}\n+---------+" in prompt
    assert "+-" not in str(load("Taxi-v4", render_mode="null").tasks("train")[1].prompt)
    assert env.config.max_turns == 200
    system: str = env.harness.system  # type: ignore[attr-defined]
    assert "0: Move south" in system
    assert "## Version History" not in system


def test_options_are_in_the_fingerprint() -> None:
    plain, dry = load("FrozenLake-v1"), load("FrozenLake-v1", is_slippery=False)
    assert plain.fingerprint == load("FrozenLake-v1").fingerprint != dry.fingerprint


@pytest.mark.parametrize(
    ("id", "options", "says"),
    [
        ("FrozenLak-v1", {}, "Did you mean: `FrozenLake`"),
        ("FrozenLake-v7", {}, "versioned environments"),
        ("no_such_module:FrozenLake-v1", {}, "No module named 'no_such_module'"),
        ("FrozenLake-v1", {"seeds": "0"}, "seeds must be a whole number from 1, got '0'"),
        ("FrozenLake-v1", {"seeds": "many"}, "seeds must be a whole number from 1, got 'many'"),
        ("CartPole-v1", {"render_mode": "rgb_array"}, "render_mode must be ansi or null, got 'rgb_array'"),
        ("quintain/Graph-v0", {}, "actions of Graph are not supported; supported: Discrete, "),
    ],
)
def test_load_refuses_unknown_ids_and_options(id: str, options: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        load(id, **options)


def test_a_missing_gymnasium_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(UsageError, match=r"pip install 'quintain\[gymnasium\]'"):
        load("FrozenLake-v1")
