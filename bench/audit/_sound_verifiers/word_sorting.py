"""The environment that verifiers ships for datasets of Reasoning Gym, on `word_sorting`."""

import verifiers.legacy as vf
from verifiers.legacy.envs.integrations.reasoninggym_env import ReasoningGymEnv


def load_environment() -> vf.Environment:
    return ReasoningGymEnv(gym="word_sorting", num_train_examples=30, num_eval_examples=30)
