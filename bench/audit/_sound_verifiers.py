"""Environments that verifiers ships as classes; `quintain run verifiers:FILE` wants a `load_environment`."""

from __future__ import annotations

from typing import Any

from quintain.plugins import environment


def load_environment(**options: Any) -> Any:
    """Returns verifiers' own environment on a dataset of Reasoning Gym."""
    from verifiers.legacy.envs.integrations.reasoninggym_env import ReasoningGymEnv

    return ReasoningGymEnv(num_train_examples=30, num_eval_examples=30, **options)


def word_sorting() -> Any:
    return environment(f"verifiers:{__file__}", gym="word_sorting")


def gcd() -> Any:
    return environment(f"verifiers:{__file__}", gym="gcd")
