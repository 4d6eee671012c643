"""Subjects as their authors would give them to Gymnasium's `check_env` and to PettingZoo's seed test.

An environment is one task of a subject. An action is a place in a list of calls (all of the oracle's, and two draws for
each tool), the observation is what the agent reads, the reward is how the score changed. `check_env` gets registered
environments, unwrapped, as its page asks for: without a spec it would not compare what two resets gave.
"""

from __future__ import annotations

import re
import string
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env as gymnasium_check_env

from bench.audit._peer_view import ToolFinding, View, deeds, view
from quintain.audit.kernel.loader import LoadedSubject

LONGEST = 10_000_000
STEPS = 40
"""After so many an episode is cut short."""


class SubjectEnv(gym.Env[str, int]):
    """One task of a subject."""

    metadata = {"render_modes": []}

    def __init__(self, session: View, task: str) -> None:
        self._view, self._task = session, task
        self._deeds = deeds(session, task)
        self.action_space = spaces.Discrete(len(self._deeds))
        self.observation_space = spaces.Text(LONGEST, min_length=0, charset=string.printable)
        self._score, self._steps = 0.0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        first = self._view.reset(self._task, int(self.np_random.integers(2**31)))
        self._score, self._steps = self._view.number(), 0
        return first, dict(self._view.parts)

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        read = self._view.act(self._deeds[int(action)])
        before, self._score = self._score, self._view.number()
        self._steps += 1
        return read, self._score - before, False, self._steps >= STEPS, dict(self._view.parts)

    def close(self) -> None:
        self._view.close()


def check_env(opened: LoadedSubject) -> list[ToolFinding]:
    """Returns the findings of Gymnasium's checker for each task."""
    gym.register("Subject-v0", entry_point=lambda task: SubjectEnv(view(opened), task))
    return _of_all(opened, lambda task: gymnasium_check_env(gym.make("Subject-v0", task=task).unwrapped))


def seed_test(opened: LoadedSubject) -> list[ToolFinding]:
    """Returns the findings of PettingZoo's seed test for each task."""
    from pettingzoo.test import seed_test as pettingzoo_seed_test

    return _of_all(opened, lambda task: pettingzoo_seed_test(lambda: _alone(SubjectEnv(view(opened), task))))


def _of_all(opened: LoadedSubject, test: Callable[[str], None]) -> list[ToolFinding]:
    findings: list[ToolFinding] = []
    for task in view(opened).tasks:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                test(task)
            except Exception as error:  # noqa: BLE001 (its verdict, or a crash of the subject: its user sees either)
                findings.append(_finding_of(task, type(error).__name__, str(error)))
        findings.extend(
            _finding_of(task, "warning", str(one.message)) for one in caught if issubclass(one.category, UserWarning)
        )
    return findings


def _finding_of(task: str, kind: str, text: str) -> ToolFinding:
    words = re.sub(r"\x1b\[\d*m|0x[0-9a-f]+|\d+(\.\d+)?", "", text)
    return ToolFinding(f"{task}: {kind}: {words[:200]}", f"{task}: {kind}: {text}")


def _alone(env: SubjectEnv) -> Any:
    """The environment as PettingZoo's kind with one agent, which is all that a subject has."""
    from pettingzoo import AECEnv

    class Alone(AECEnv):  # type: ignore[misc]  # PettingZoo has no types
        metadata = {"name": "subject", "render_modes": []}
        possible_agents = ["agent"]

        def observation_space(self, agent: str) -> Any:
            return env.observation_space

        def action_space(self, agent: str) -> Any:
            return env.action_space

        def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
            self.agents, self.agent_selection = ["agent"], "agent"
            self.read, info = env.reset(seed=seed)
            self._tell(0.0, info, over=False, cut=False)

        def observe(self, agent: str) -> str:
            return self.read

        def step(self, action: Any) -> None:
            if self.terminations["agent"] or self.truncations["agent"]:
                self._was_dead_step(action)
                return
            self.read, reward, over, cut, info = env.step(action)
            self._tell(reward, info, over=over, cut=cut)

        def _tell(self, reward: float, info: dict[str, Any], *, over: bool, cut: bool) -> None:
            self.rewards, self._cumulative_rewards = {"agent": np.float64(reward)}, {"agent": np.float64(reward)}
            self.terminations, self.truncations, self.infos = {"agent": over}, {"agent": cut}, {"agent": info}

        def close(self) -> None:
            env.close()

    return Alone()
