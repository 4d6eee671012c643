"""Converters: rows by the field names of the trainers, which are not imported.

The fields are those of these sources of August 2026:

trl         output of `GRPOTrainer(rollout_func=)`, as columns; `score` reaches the reward function
trl_async   `RolloutSample` of `AsyncGRPOTrainer`; TRL 1.16 wants `input_ids`, `completion_mask` and `old_log_probs` as
            arrays of numpy
prime_rl    `TrainingSample`
verl        `AgentLoopOutput`
skyrl       `GeneratorOutput`, as columns and with `rollout_metrics=None`; `trajectory_ids` are arguments of
            `TrajectoryID`
slime       argument of `Sample.from_dict`
openrlhf    output of `AgentExecutorBase.execute`; `prompt` and `label` are the task's id
nemo_rl     result of a NeMo Gym rollout
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from quintain import Trajectory, codec
from quintain.errors import UsageError
from quintain.trace import End

Fields = dict[str, Any]

_Table = Mapping[str, str]
"""Name of a trainer's field to the name of the part that fills it."""

_TRL: _Table = {
    "prompt_ids": "prompt",
    "completion_ids": "response",
    "logprobs": "response_logprobs",
    "env_mask": "response_mask",
    "score": "score",
}
_TRL_ASYNC: _Table = {
    "prompt": "nothing",  # Messages, for logs only.
    "completion": "nothing",
    "input_ids": "ids",
    "completion_mask": "mask",
    "old_log_probs": "logprobs",
    "advantage": "advantage",
    "model_version": "oldest_version",
    "group_id": "group_number",
    "metrics": "metrics",
}
_PRIME_RL: _Table = {
    "token_ids": "ids",
    "mask": "drawn",
    "logprobs": "logprobs",
    "temperatures": "temperatures",
    "env_name": "environment",
    "advantages": "token_advantages",
}
_VERL: _Table = {
    "prompt_ids": "prompt",
    "response_ids": "response",
    "response_mask": "response_mask",
    "response_logprobs": "response_logprobs",
    "reward_score": "score",
    "num_turns": "turn_count",
    "metrics": "empty",
    "extra_fields": "version_range",
}
_SKYRL: _Table = {
    "prompt_token_ids": "prompt",
    "response_ids": "response",
    "rewards": "response_rewards",
    "loss_masks": "response_mask",
    "stop_reasons": "stop_reason",
    "rollout_logprobs": "response_logprobs",
    "trajectory_ids": "trajectory_id",
    "is_last_step": "last",
}
_SLIME: _Table = {
    "group_index": "group_number",
    "index": "row_number",
    "rollout_id": "episode_number",
    "tokens": "ids",
    "response_length": "response_length",
    "reward": "score",
    "loss_mask": "response_mask",
    "rollout_log_probs": "response_logprobs",
    "weight_versions": "version_texts",
    "status": "status",
}
_OPENRLHF: _Table = {
    "prompt": "task",
    "label": "task",
    "observation_tokens": "ids",
    "action_ranges": "spans",
    "rollout_log_probs": "logprobs",
    "reward": "score",
    "scores": "score",
    "truncated": "truncated",
    "extra_logs": "empty",
}
_NEMO_RL: _Table = {
    "response": "gym_response",
    "responses_create_params": "gym_request",
    "reward": "score",
}


class _Trainer(NamedTuple):
    """Fields of a trainer, the lists that a row must have for it, and the options that it takes."""

    fields: _Table
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    one_row: bool = False


_TRAINERS = {
    "trl": _Trainer(_TRL, needs=("logprobs",), one_row=True),
    "trl_async": _Trainer(_TRL_ASYNC, needs=("logprobs", "versions"), takes=("advantages",)),
    "prime_rl": _Trainer(_PRIME_RL, needs=("logprobs",), takes=("advantages",)),
    "verl": _Trainer(_VERL, one_row=True),
    "skyrl": _Trainer(_SKYRL, takes=("dense",)),
    "slime": _Trainer(_SLIME),
    "openrlhf": _Trainer(_OPENRLHF, one_row=True),
    "nemo_rl": _Trainer(_NEMO_RL, needs=("logprobs",), one_row=True),
}


class _View(NamedTuple):
    """Row, its advantages per token, and whether dense rewards are wanted."""

    row: Trajectory
    advantages: Sequence[float]
    dense: bool


def _truncated(row: Trajectory) -> bool:
    return row.end is End.TRUNCATED or row.finish_reason == "length"


def _number(row: Trajectory, *names: int) -> int:
    """Returns a number of 60 bits, the same for the same group and names, in every process."""
    text = "/".join(map(str, (row.environment, row.group, row.role, *names)))
    return int(codec.digest(text.encode())[:15], 16)


def _rewards(view: _View) -> list[float]:
    """Returns one number per token: the score at the episode's end, and dense rewards if they are wanted."""
    found = [0.0] * len(view.row.token_ids)
    found[-1] = view.row.score if view.row.last else 0.0
    for reward in view.row.rewards if view.dense else ():
        found[max(reward.token, view.row.prompt_length)] += reward.value
    return found


def _one_advantage(view: _View) -> float:
    values = {value for value, drawn in zip(view.advantages, view.row.mask, strict=True) if drawn}
    if len(values) > 1:
        raise UsageError(
            f"trl_async takes one advantage per row, got {len(values)} for a row of group {view.row.group!r}; use "
            "group_mean, leave_one_out or group_standardised"
        )
    return values.pop()


def _version_range(row: Trajectory) -> Fields:
    versions = [version for _, version in row.versions]
    return {"min_global_steps": min(versions), "max_global_steps": max(versions)} if versions else {}


def _outputs(row: Trajectory) -> list[Fields]:
    """Returns the replies as NeMo Gym has them; each prompt is the whole row up to it."""
    ids, spans = row.token_ids, ((first, end) for _, first, end in row.turns if first < end)
    return [
        {
            "prompt_token_ids": ids[:first],
            "generation_token_ids": ids[first:end],
            "generation_log_probs": row.logprobs[first:end],
        }
        for first, end in spans
    ]


_PARTS: Mapping[str, Callable[[_View], Any]] = {
    "nothing": lambda view: [],
    "empty": lambda view: {},
    "ids": lambda view: view.row.token_ids,
    "prompt": lambda view: view.row.token_ids[: view.row.prompt_length],
    "response": lambda view: view.row.token_ids[view.row.prompt_length :],
    "response_length": lambda view: len(view.row.token_ids) - view.row.prompt_length,
    "drawn": lambda view: view.row.mask,
    "mask": lambda view: list(map(int, view.row.mask)),
    "response_mask": lambda view: list(map(int, view.row.mask[view.row.prompt_length :])),
    "logprobs": lambda view: view.row.logprobs or None,
    "response_logprobs": lambda view: view.row.logprobs[view.row.prompt_length :] or None,
    "spans": lambda view: [(first, end) for _, first, end in view.row.turns if first < end],
    "turn_count": lambda view: len(view.row.turns),
    "temperatures": lambda view: [view.row.temperature] * len(view.row.token_ids),
    "task": lambda view: view.row.task,
    "environment": lambda view: view.row.environment,
    "score": lambda view: view.row.score,
    "metrics": lambda view: {"reward": view.row.score},
    "response_rewards": lambda view: _rewards(view)[view.row.prompt_length :],
    "advantage": _one_advantage,
    "token_advantages": lambda view: list(view.advantages),
    "oldest_version": lambda view: min(version for _, version in view.row.versions),
    "version_texts": lambda view: [str(version) for _, version in view.row.versions],
    "version_range": lambda view: _version_range(view.row),
    "group_number": lambda view: _number(view.row),
    "episode_number": lambda view: _number(view.row, view.row.member),
    "row_number": lambda view: _number(view.row, view.row.member, view.row.thread, view.row.branch),
    "trajectory_id": lambda view: {"instance_id": view.row.group, "repetition_id": view.row.member},
    "last": lambda view: view.row.last,
    "truncated": lambda view: _truncated(view.row),
    "stop_reason": lambda view: "length" if _truncated(view.row) else "stop",
    "status": lambda view: "truncated" if _truncated(view.row) else "completed",
    "gym_request": lambda view: {"input": []},
    "gym_response": lambda view: {"output": _outputs(view.row)},
}
"""Name of a part to the function that makes it."""


def convert(
    rows: Sequence[Trajectory],
    trainer: str,
    *,
    advantages: Sequence[Sequence[float]] | None = None,
    dense: bool = False,
) -> list[Fields]:
    """Returns the fields of each row under the names of a trainer.

    Args:
        rows: Rows of `quintain.trajectories`.
        trainer: A name of this module's list.
        advantages: One number per token of each row; by default `Trajectory.advantage`. Only for prime_rl, and with one
            number per row for trl_async: the others compute their own from the score.
        dense: Add step, turn and phase rewards at the last token of their turn. Only for skyrl.

    Raises:
        UsageError: The trainer is unknown, or it cannot take the rows, the advantages or dense rewards.
    """
    if trainer not in _TRAINERS:
        raise UsageError(f"no converter for {trainer!r}; there are {', '.join(_TRAINERS)}")
    chosen = _TRAINERS[trainer]
    _check(rows, trainer, given={"advantages": advantages is not None, "dense": dense})
    if advantages is None:
        used = rows if "advantages" in chosen.takes else ()
        advantages = [[row.advantage if drawn else 0.0 for drawn in row.mask] for row in used] or [()] * len(rows)
    views = [_View(row, values, dense) for row, values in zip(rows, advantages, strict=True)]
    return [{name: _PARTS[part](view) for name, part in chosen.fields.items()} for view in views]


def columns(fields: Sequence[Fields]) -> dict[str, list[Any]]:
    """Returns converted rows as one list per field, as TRL and SkyRL take them."""
    return {name: [one[name] for one in fields] for name in (fields[0] if fields else ())}


def _check(rows: Sequence[Trajectory], trainer: str, *, given: Mapping[str, bool]) -> None:
    chosen = _TRAINERS[trainer]
    for name in (name for name, is_given in given.items() if is_given and name not in chosen.takes):
        takers = ", ".join(name_ for name_, one in _TRAINERS.items() if name in one.takes)
        raise UsageError(f"{trainer} does not take {name}; they are taken by {takers}")
    for row in rows:
        which = f"the row of member {row.member} of group {row.group!r}"
        if not any(row.mask):
            raise UsageError(f"{which} has no sampled token; leave it out")
        for need in (need for need in chosen.needs if not getattr(row, need)):
            raise UsageError(f"{which} has no {need}, which {trainer} needs; use an endpoint that returns them")
    episodes = Counter((row.environment, row.group, row.role, row.member) for row in rows)
    if chosen.one_row and len(episodes) < len(rows):
        (_, group, _, member), count = episodes.most_common(1)[0]
        raise UsageError(
            f"{trainer} takes one row per episode, but member {member} of group {group!r} has {count}; convert only "
            "episodes whose context was never rewritten, or use prime_rl, skyrl, slime or trl_async"
        )
