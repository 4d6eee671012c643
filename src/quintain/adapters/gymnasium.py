"""Gymnasium's environments: one task per seed, one tool `step`, and the rewards of the original.

The world is a seed and the actions so far, so it forks, restores and replays although the original may not: it plays
the actions again. An original that then answers differently ends the episode as a failure of component S.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
import weakref
from collections.abc import Sequence
from typing import Any, ClassVar, cast

import msgspec

from quintain import codec
from quintain.config import Config
from quintain.environment import Environment
from quintain.errors import EpisodeError, ToolError, UsageError
from quintain.harness import ToolLoop
from quintain.plugins import package
from quintain.state import State
from quintain.task import Task, Tasks
from quintain.tools import tool
from quintain.trace import Content, Image, Level, Observation, Text
from quintain.verifier import Criterion, EpisodeView, Score, StepView, Verifier

from . import options as option
from . import spaces

FIRST_SEEDS = {"train": 0, "test": 1_000_000}
"""First seed of each split; the splits share none."""
_TURNS = 1000  # of an environment that limits its own steps nowhere
_criterion = functools.partial(Criterion[Any], low=-8e307, high=8e307)  # Rewards have no declared range.
_FOR_PROGRAMMERS = r"\n *#+ *(?:Information|Arguments|Vectorized|References|Version History)"
_PROMPT = """\
Play one episode of {name}. Each call of `step` takes one action and returns what follows from it. The episode goes on \
until `terminated` or `truncated` is true. Your score is the sum of the rewards.

{first}"""

_PICTURE = "Observations are pictures. The first one follows."


class Move(msgspec.Struct, frozen=True):
    """Action and its result.

    Attributes:
        action: Plain data, as in the call.
        seen: Digest of the observation as the model sees it.
        reward: As the original gave it, any finite number.
        end: "terminated", "truncated", or empty while the episode goes on.
    """

    action: Any
    seen: str
    reward: float
    end: str


class Original(msgspec.Struct, frozen=True):
    """Environment of Gymnasium by its id, the version of Gymnasium, and keyword arguments of `gymnasium.make`."""

    id: str
    version: str
    options: dict[str, Any]

    def make(self) -> Any:
        """Returns a new environment.

        Raises:
            UsageError: It is unknown, or needs a package that is not installed.
        """
        gym = package("gymnasium", extra="gymnasium")
        try:
            return gym.make(self.id, disable_env_checker=True, **self.options)  # The checker is for authors.
        except (gym.error.Error, ModuleNotFoundError) as error:
            raise UsageError(f"gymnasium:{self.id}: {error}") from error


class Game:
    """Episode of an original environment: a resource made of the seed and the moves so far.

    A copy holds no environment. When it needs one, it makes one and plays the moves again.

    Attributes:
        original: Set by a subclass.
        seed: Seed of `reset`.
        first: Digest of the first observation as the model sees it.
        moves: The moves so far.
    """

    original: ClassVar[Original]

    def __init__(self, seed: int, first: str, moves: Sequence[Move] = ()) -> None:
        self.seed = seed
        self.first = first
        self.moves: list[Move] = []
        self._digest = codec.digest(codec.dumps((seed, first)))
        for move in moves:
            self._add(move)
        self._env: Any = None

    def fork(self) -> Game:
        twin = type(self)(self.seed, self.first)
        twin.moves, twin._digest = self.moves.copy(), self._digest
        return twin

    def dump(self) -> bytes:
        return codec.dumps((self.seed, self.first, self.moves))

    @classmethod
    def load(cls, data: bytes, *_: Any) -> Game:
        return cls(*codec.loads(data, tuple[int, str, list[Move]]))

    def digest(self) -> str:
        return self._digest

    def _add(self, move: Move) -> None:
        self.moves.append(move)
        # A chain, so that the digest after a move costs the same however many moves came before.
        self._digest = codec.digest(codec.dumps((self._digest, move)))

    @property
    def total(self) -> float:
        """Sum of the rewards, added in their order."""
        total = 0.0
        for move in self.moves:  # `sum` rounds differently since Python 3.12.
            total += move.reward
        return total

    def step(self, action: Any) -> Observation:
        """Takes an action and returns the result as text and as data.

        Raises:
            ToolError: The episode has ended, or the action is not in the action space.
            EpisodeError: As `env`.
        """
        if self.moves and self.moves[-1].end:
            raise ToolError(f"the episode was {self.moves[-1].end}; no step is possible")
        move, observation = play(self.env(), action)
        self._add(move)
        return observation

    def env(self) -> Any:
        """Returns the environment after the moves.

        Raises:
            EpisodeError: Component S, `quintain:state_bug`: the same seed and actions now have another result.
        """
        if self._env is None:
            number = 0
            try:
                env = self.original.make()
                weakref.finalize(self, env.close).atexit = False
                self._check(number, self.first, _digest(shown(env, env.reset(seed=self.seed)[0])))
                for number, move in enumerate(self.moves, 1):
                    self._check(number, move, play(env, move.action)[0])
            except EpisodeError:
                raise
            except Exception as error:
                message = f"seed {self.seed}, action {number} cannot be played again: {type(error).__name__}: {error}"
                raise EpisodeError(message, component="S", kind="quintain:state_bug") from error
            self._env = env
        return self._env

    def _check(self, number: int, expected: Move | str, found: Move | str) -> None:
        if expected != found:
            place = f"action {number} of {len(self.moves)}" if number else "reset"
            message = f"not deterministic: seed {self.seed}, {place} gave {expected}, and when played again {found}"
            raise EpisodeError(message, component="S", kind="quintain:state_bug")


class EpisodeReturn(msgspec.Struct, frozen=True):
    """Scoring function: the sum of the original's rewards, after the moves were played again with equal results."""

    original: Original

    def __call__(self, view: EpisodeView[Any]) -> float:
        game: Game = view.state.game
        game.fork().env()
        return game.total


def step_reward(view: StepView[Any]) -> float | Score:
    """Returns the original's reward for one call; none for a call that was refused."""
    moves: list[Move] = view.after.game.moves
    return moves[-1].reward if len(moves) > len(view.before.game.moves) else Score(None, "no action was taken")


def load(id: str, *, seeds: int | str = 100, **options: Any) -> Environment[Any]:
    """Returns a registered Gymnasium environment as an environment with a task per seed.

    Args:
        id: As for `gymnasium.make`: "FrozenLake-v1", or "package.module:Name-v0", which imports the module first.
        seeds: Number of tasks in each of the splits "train" and "test".
        options: Keyword arguments of `gymnasium.make`. `render_mode` is "ansi" if the environment has that mode; the
            text then follows each observation.

    Raises:
        UsageError: Gymnasium is not installed, the environment is unknown, or its action space has no JSON form.
    """
    count, given = option.whole("seeds", seeds, least=1), option.values(options)
    original = Original(id, package("gymnasium", extra="gymnasium").__version__, given)
    env = original.make()
    if "ansi" in env.metadata.get("render_modes", ()):
        given.setdefault("render_mode", "ansi")
    if given.get("render_mode") not in {None, "ansi"}:
        raise UsageError(f"gymnasium:{id}: render_mode must be ansi or null, got {given['render_mode']!r}")
    game = type("OriginalGame", (Game,), {"original": original})
    state = _state(env.action_space, game)

    def tasks(split: str) -> Tasks[Any]:
        return Tasks(count, lambda index: _task(state, game, seed=FIRST_SEEDS[split] + index))

    return Environment(
        re.sub(r"\W", "_", f"gymnasium_{id}"),
        tasks=tasks,
        harness=ToolLoop(system=_about(env, given)),
        verifier=Verifier(
            _criterion(name="episode_return", level=Level.TRAJECTORY, fn=EpisodeReturn(original)),
            _criterion(name="step_reward", level=Level.STEP, fn=step_reward),
        ),
        state=state,
        config=Config(max_turns=env.spec.max_episode_steps or _TURNS),
        splits=tuple(FIRST_SEEDS),
    )


def play(env: Any, action: Any) -> tuple[Move, Observation]:
    """Takes one action, plain data, and returns its record and what the model reads.

    Raises:
        ToolError: The action is not in the action space.
        ValueError: The reward is not finite.
    """
    taken = spaces.element(env.action_space, action)
    if not env.action_space.contains(taken):
        raise ToolError(f"{action!r} is not in {env.action_space}")
    observation, reward, terminated, truncated, _ = env.step(taken)
    if not math.isfinite(reward):
        raise ValueError(f"the reward of action {action!r} is {reward}")
    flags = {"reward": float(reward), "terminated": bool(terminated), "truncated": bool(truncated)}
    content = shown(env, observation, flags)
    end = "terminated" if terminated else "truncated" if truncated else ""
    move = Move(action, _digest(content), float(reward), end)
    return move, Observation(content, _numbers(env, observation) | flags)


def shown(env: Any, observation: Any, flags: dict[str, Any] | None = None) -> Content:
    """Returns an observation and the flags of its step as lines of text, then what the original renders as text.

    An observation of pixels is a PNG picture after the text.
    """
    values = _numbers(env, observation) | (flags or {})
    lines = [f"{name}: {codec.text(value)}" for name, value in values.items()]
    text = "\n".join([*lines, env.render()] if env.render_mode == "ansi" else lines)
    if not spaces.is_picture(env.observation_space):
        return text
    picture = Image("image/png", spaces.png(observation))
    return (Text(text), picture) if text else (picture,)


def _numbers(env: Any, observation: Any) -> dict[str, Any]:
    """Returns an observation as plain data; nothing for pixels, which the picture holds."""
    return {} if spaces.is_picture(env.observation_space) else {"observation": spaces.plain(observation)}


def _digest(content: Content) -> str:
    return codec.digest(content.encode() if isinstance(content, str) else codec.dumps(content))


def _task(state: type[State], game: type[Game], *, seed: int) -> Task[Any]:
    env = game.original.make()
    first = shown(env, env.reset(seed=seed)[0])
    env.close()
    start = cast(Any, state)(game=game(seed, _digest(first)))
    is_text = isinstance(first, str)
    prompt = _PROMPT.format(name=game.original.id, first=first if is_text else _PICTURE)
    return Task(id=f"seed-{seed}", prompt=prompt if is_text else (Text(prompt), *first), start=start)


def _about(env: Any, options: dict[str, Any]) -> str:
    """Returns the documentation of an environment without the sections for programmers, its options and its spaces."""
    text = re.split(_FOR_PROGRAMMERS, inspect.getdoc(env.unwrapped) or "")[0].strip()
    about = f"Action space: {env.action_space}\nObservation space: {env.observation_space}"
    return f"{text}\n\nOptions: {codec.text(options)}\n{about}".strip()


def _state(space: Any, game: type[Game]) -> type[State]:
    """Returns the class of the world, whose tool has the schema of an action space."""
    action = spaces.type_of(space, "Action")

    def step(self: Any, action: Any) -> Observation:
        seen: Observation = self.game.step(msgspec.to_builtins(action))
        if end := self.game.moves[-1].end:
            self.finish(f"the episode was {end}")
        return seen

    step.__doc__ = f"Take one action.\n\nArgs:\n    action: An element of {' '.join(str(space).split())}."
    step.__annotations__ = {"action": action, "return": Observation}
    methods = {"step": tool(step)}
    fields = [("game", game)]
    made = msgspec.defstruct("World", fields, bases=(State,), namespace=methods, module=__name__, kw_only=True)
    return cast("type[State]", made)
