"""Historical bugs that two published versions of a package still show: the packages' own code, put behind the plain
subject's methods. What each pair is about stands in the registry, in `__init__.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from . import installed
from .installed import Release

_LOCK = threading.RLock()
STEPS = 20  # an episode's limit; the class takes it as a parameter
PUZZLES = 40  # enough for the share of impossible ones to tell 20 % from 50 %


# --- Gymnasium: CartPole, the vectorised environment with a single pole ---


class CartPole:
    """Push the cart left or right for at most 20 steps. The score is the number of steps that the pole stood."""

    graded = True

    def __init__(self, release: Release) -> None:
        module = installed.load(release, "gymnasium.envs.classic_control.cartpole")
        self.environment = module.CartPoleVectorEnv(num_envs=1, max_episode_steps=STEPS)
        self.total = 0.0
        self.over = True

    def tasks(self) -> list[str]:
        return ["balance"]

    def tools(self) -> list[dict[str, Any]]:
        direction = {"type": "integer", "enum": [0, 1], "description": "0 is left, 1 is right"}
        parameters = {"type": "object", "properties": {"direction": direction}, "required": ["direction"]}
        return [{"name": "push", "description": "Push the cart for one step.", "parameters": parameters}]

    def reset(self, task: str, seed: int) -> dict[str, Any]:
        observation, _ = self.environment.reset(seed=seed)
        self.total, self.over = 0.0, False
        return {"observation": observation[0].tolist()}

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        import numpy as np  # of the packages that all releases share, or of this environment

        if name != "push" or set(arguments) != {"direction"} or arguments["direction"] not in (0, 1):
            return {"error": "there is one tool, push(direction), and its direction is 0 or 1"}
        if self.over:
            return {"error": "the episode is over"}
        observation, reward, terminated, truncated, _ = self.environment.step(np.array([int(arguments["direction"])]))
        self.total += float(reward[0])
        self.over = bool(terminated[0] or truncated[0])
        return {
            "observation": observation[0].tolist(),
            "reward": float(reward[0]),
            "terminated": bool(terminated[0]),
            "truncated": bool(truncated[0]),
        }

    def score(self) -> float:
        return self.total

    def state(self) -> dict[str, Any]:
        return {"physics": self.environment.state[:, 0].tolist(), "steps": int(self.environment.steps[0])}


def cartpole_before() -> CartPole:
    return CartPole(installed.gymnasium("0.29.1"))


def cartpole_after() -> CartPole:
    return CartPole(installed.gymnasium("1.0.0"))


# --- reasoning-gym: one dataset is one environment of questions ---


class Dataset:
    """A question is asked, `submit` hands in the answer, and the package's own `score_answer` judges the last one."""

    module = ""
    name = ""
    size = 8
    slow = False
    """True if its questions take seconds to make; they are plain JSON then."""

    def __init__(self, version: str) -> None:
        self.entries, self.dataset = _entries(type(self), version)
        self.entry = self.entries[0]
        self.answer: str | None = None

    def tasks(self) -> list[str]:
        return [str(number) for number in range(len(self.entries))]

    def tools(self) -> list[dict[str, Any]]:
        parameters = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
        return [{"name": "submit", "description": "Hand in the final answer.", "parameters": parameters}]

    def reset(self, task: str, seed: int) -> str:
        self.entry, self.answer = self.entries[int(task)], None
        question: str = self.entry["question"]
        return question

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name != "submit" or set(arguments) != {"answer"} or not isinstance(arguments["answer"], str):
            return {"error": "there is one tool, submit(answer), and the answer is a text"}
        self.answer = arguments["answer"]
        return {"ok": True}

    def score(self) -> float:
        return float(self.dataset.score_answer(self.answer, self.entry))

    def oracle(self, task: str) -> list[list[Any]]:
        return [["submit", {"answer": self.gold(self.entries[int(task)])}]]

    @staticmethod
    def gold(entry: dict[str, Any]) -> str:
        return str(entry["answer"])


Questions = tuple[Sequence[dict[str, Any]], Any]
_MADE: dict[tuple[str, str], Questions] = {}


def _entries(kind: type[Dataset], version: str) -> Questions:
    """The questions of a dataset, and the dataset, which judges the answers."""
    # One at a time: some of the generators draw from NumPy's global state.
    with _LOCK:
        key = (kind.name, version)
        if key not in _MADE:
            _MADE[key] = _made(kind, version)
        return _MADE[key]


def _made(kind: type[Dataset], version: str) -> Questions:
    release = installed.reasoning_gym(version)
    installed.load(
        release, "reasoning_gym.coaching"
    )  # It and `factory` import each other, and work in this order only.
    module = installed.load(release, f"reasoning_gym.{kind.module}")
    config = getattr(module, f"{kind.name}Config")(seed=7, size=kind.size)
    dataset = getattr(module, f"{kind.name}Dataset")(config)

    def make() -> list[dict[str, Any]]:
        return [dataset[number] for number in range(kind.size)]

    return installed.kept(f"{kind.name}-{version}-{kind.size}", make) if kind.slow else make(), dataset


class Brainfuck(Dataset):
    module, name = "code.bf", "BF"


class Countdown(Dataset):
    module, name = "games.countdown", "Countdown"

    @staticmethod
    def gold(entry: dict[str, Any]) -> str:
        return str(entry["metadata"]["expression"])


class PoolMatrix(Dataset):
    module, name = "algorithmic.pool_matrix", "PoolMatrix"


class GraphColor(Dataset):
    module, name = "algorithmic.graph_color", "GraphColor"

    @staticmethod
    def gold(entry: dict[str, Any]) -> str:
        colours: dict[int, int] = entry["metadata"]["possible_answer"]
        return "{" + ", ".join(f'"{vertex}": {colour}' for vertex, colour in colours.items()) + "}"


class PowerFunction(Dataset):
    module, name = "arithmetic.power_function", "PowerFunction"
    size = 20


class KnightSwap(Dataset):
    module, name = "games.knight_swap", "KnightSwap"
    size = PUZZLES
    slow = True

    declared: ClassVar[float] = 0.2
    """The share of impossible puzzles in the dataset's configuration."""

    def state(self) -> dict[str, Any]:
        return {"impossible": not self.entry["metadata"]["is_possible"]}

    def production(self) -> dict[str, Any]:
        return {"rates": {"impossible": self.declared}}


def bf_before() -> Dataset:
    return Brainfuck("0.1.18")


def bf_after() -> Dataset:
    return Brainfuck("0.1.19")


def countdown_before() -> Dataset:
    return Countdown("0.1.12")


def countdown_after() -> Dataset:
    return Countdown("0.1.18")


def pool_matrix_before() -> Dataset:
    return PoolMatrix("0.1.11")


def pool_matrix_after() -> Dataset:
    return PoolMatrix("0.1.12")


def graph_color_before() -> Dataset:
    return GraphColor("0.1.11")


def graph_color_after() -> Dataset:
    return GraphColor("0.1.12")


def power_function_before() -> Dataset:
    return PowerFunction("0.1.22")


def power_function_after() -> Dataset:
    return PowerFunction("0.1.23")


def knight_swap_before() -> Dataset:
    return KnightSwap("0.1.24")


def knight_swap_after() -> Dataset:
    return KnightSwap("0.1.25")


def _cryptarithm(version: str, answer: str, puzzle: dict[str, Any]) -> float:
    module = installed.load(installed.reasoning_gym(version), "reasoning_gym.algorithmic.cryptarithm")
    dataset = module.CryptarithmDataset(module.CryptarithmConfig(seed=7, size=1))
    return float(dataset.score_answer(answer, puzzle))


def cryptarithm_before(answer: str, gold: dict[str, Any]) -> float:
    return _cryptarithm("0.1.24", answer, gold)


def cryptarithm_after(answer: str, gold: dict[str, Any]) -> float:
    return _cryptarithm("0.1.25", answer, gold)


# --- Math-Verify ---


def math_verify_before(answer: str, gold: str) -> float:
    module = installed.load(installed.math_verify("0.7.0", "1.10.1"), "math_verify")
    return float(module.verify(module.parse(gold), module.parse(answer)))


def math_verify_after(answer: str, gold: str) -> float:
    """The way that 0.8.0 prescribes for threads: no timeout by a signal."""
    module = installed.load(installed.math_verify("0.8.0", "1.10.2"), "math_verify")
    parsed = [module.parse(text, parsing_timeout=None) for text in (gold, answer)]
    return float(module.verify(*parsed, timeout_seconds=None))
