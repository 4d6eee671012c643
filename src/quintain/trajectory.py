"""Trajectory: tokens, mask, logprobs and advantage for a trainer.

There is one for each trainable branch of a valid episode, and none of a failed episode.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import msgspec

from .errors import UsageError, short
from .gate import enough
from .trace import Tokens, Trace, Turn


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """One branch of a conversation. The three lists have one entry per token.

    Attributes:
        task, member, role, thread, branch: Where it comes from.
        token_ids: Prompts, drawn tokens and observations, in order, as the endpoint gave them.
        mask: True where the model drew the token.
        logprobs: Natural log at sampling time; 0.0 where mask is False; empty unless the endpoint gave all of them.
        rewards: (token index, weighted value): what each turn earned, at its last token; the score at the very last.
        advantage: The episode's score minus the mean of its group's valid episodes; the plain score in a group of one.
        versions: (first token, policy version) of each drawn stretch, where the endpoint said.
    """

    task: str
    member: int
    role: str
    thread: int
    branch: int
    token_ids: list[int]
    mask: list[bool]
    logprobs: list[float]
    rewards: list[tuple[int, float]]
    advantage: float
    versions: list[tuple[int, int]]


def trajectories(group: Iterable[Trace], *, role: str = "agent") -> list[Trajectory]:
    """The trainable branches of a group's valid episodes.

    Failed episodes are left out, and out of the baseline. A group of which too few are valid gives nothing.

    Args:
        group: Episodes of one task, seed and attempt, such as `RolloutGroup.traces`.
        role: The actor whose turns are taken.

    Raises:
        UsageError: The traces are of several groups, or the endpoint returned no token ids.
    """
    group = tuple(group)
    if len(mixed := {(trace.task, trace.seed, trace.attempt) for trace in group}) > 1:
        given = short([f"{task}, seed {seed}, attempt {attempt}" for task, seed, attempt in sorted(mixed)])
        raise UsageError(f"a group is one task, seed and attempt, got {given}; call trajectories() once for each")
    valid = [trace for trace in group if trace.validity == "valid"]
    if not enough(len(valid), len(group)):
        return []
    scores = [trace.score or 0.0 for trace in valid]
    baseline = sum(scores) / len(scores) if len(group) > 1 else 0.0
    found: list[Trajectory] = []
    for trace, score in zip(valid, scores, strict=True):
        turns = [turn for turn in trace.turns if turn.role == role and turn.reply.tokens != Tokens([], [])]
        last = turns[-1] if turns else None
        ordered = sorted(turns, key=lambda turn: (turn.thread, turn.branch, turn.index))
        for _, branch in itertools.groupby(ordered, key=lambda turn: (turn.thread, turn.branch)):
            found.append(_trajectory(trace, list(branch), score - baseline, ends=last))
    return found


def _trajectory(trace: Trace, turns: list[Turn], advantage: float, *, ends: Turn | None) -> Trajectory:
    ids, mask, logprobs = list[int](), list[bool](), list[float]()
    rewards, versions = list[tuple[int, float]](), list[tuple[int, int]]()
    for turn in turns:
        tokens = turn.reply.tokens
        if tokens is None:
            raise UsageError(
                f"turn {turn.index} of {trace.task!r} has no token ids: ask the endpoint for them (return_token_ids)"
            )
        if turn.reply.policy_version is not None:
            versions.append((len(ids) + len(tokens.prompt), turn.reply.policy_version))
        ids += tokens.prompt + tokens.completion
        mask += [False] * len(tokens.prompt) + [True] * len(tokens.completion)
        logprobs += [0.0] * len(tokens.prompt) + (tokens.logprobs or [0.0] * len(tokens.completion))
        earned = [r.value * r.weight for r in turn.rewards if r.value is not None]
        if earned:
            rewards.append((len(ids) - 1, sum(earned)))
    if turns[-1] is ends and trace.score is not None:
        rewards.append((len(ids) - 1, trace.score))
    known = all(tokens.logprobs or not tokens.completion for turn in turns if (tokens := turn.reply.tokens))
    first = turns[0]
    return Trajectory(
        task=trace.task,
        member=trace.member,
        role=first.role,
        thread=first.thread,
        branch=first.branch,
        token_ids=ids,
        mask=mask,
        logprobs=logprobs if known else [],
        rewards=rewards,
        advantage=advantage,
        versions=versions,
    )
