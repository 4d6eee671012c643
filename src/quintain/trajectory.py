"""Trajectory: tokens, mask, logprobs and advantage for a trainer.

There is one for each trainable branch of a valid episode, and none of a failed episode.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import msgspec

from .errors import UsageError, short
from .gate import enough
from .trace import End, Level, Tokens, Trace, Turn


class TokenReward(msgspec.Struct, frozen=True, gc=False):
    """One step, turn or phase reward of a turn.

    Attributes:
        token: Index of the turn's last token.
        turn: Index of the turn in its episode.
        name, level: Name and level of the criterion.
        value: Its value times its weight.
    """

    token: int
    turn: int
    name: str
    level: Level
    value: float


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """One branch of a valid episode's conversation. The three lists have one entry per token.

    Attributes:
        environment, task, seed, attempt, member: The episode.
        group: Name of the episodes that share a baseline: one task, seed and attempt.
        role, thread, branch: The branch.
        last: True for the row with the role's last turn; an episode whose context was rewritten has several rows.
        token_ids: Prompts, drawn tokens and observations, in order, as the endpoint gave them.
        mask: True where the model drew the token.
        logprobs: Natural log at sampling time; 0.0 where mask is False; empty unless the endpoint gave all of them.
        prompt_length: Number of tokens before the first reply.
        turns: (turn index, first token, end) of what each turn drew; first equals end if it drew nothing.
        versions: (first token, policy version) of each drawn stretch; empty unless the endpoint gave all of them.
        temperature: Of the sampler.
        rewards: Step, turn and phase rewards of the row's turns; they are no part of the score.
        score: The episode's score.
        group_scores: Scores of the group's valid episodes, by member; its own score is one of them.
        advantage: Score minus the mean of `group_scores`; the plain score in a group of one.
        end: How the episode ended: terminated or truncated.
        finish_reason: Why the sampler stopped in the row's last reply, in the endpoint's words.
    """

    environment: str
    task: str
    seed: int
    attempt: int
    member: int
    group: str
    role: str
    thread: int
    branch: int
    last: bool
    token_ids: list[int]
    mask: list[bool]
    logprobs: list[float]
    prompt_length: int
    turns: list[tuple[int, int, int]]
    versions: list[tuple[int, int]]
    temperature: float
    rewards: list[TokenReward]
    score: float
    group_scores: list[float]
    advantage: float
    end: End
    finish_reason: str


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
    found: list[Trajectory] = []
    for trace in valid:
        turns = [turn for turn in trace.turns if turn.role == role and turn.reply.tokens != Tokens([], [])]
        last = turns[-1] if turns else None
        ordered = sorted(turns, key=lambda turn: (turn.thread, turn.branch, turn.index))
        for _, branch in itertools.groupby(ordered, key=lambda turn: (turn.thread, turn.branch)):
            row = list(branch)
            found.append(_trajectory(trace, row, scores if len(group) > 1 else [], last=row[-1] is last))
    return found


def _trajectory(trace: Trace, turns: list[Turn], scores: list[float], *, last: bool) -> Trajectory:
    ids, mask, logprobs = list[int](), list[bool](), list[float]()
    rewards, spans = list[TokenReward](), list[tuple[int, int, int]]()
    for turn in turns:
        tokens = turn.reply.tokens
        if tokens is None:
            raise UsageError(
                f"turn {turn.index} of {trace.task!r} has no token ids: ask the endpoint for them (return_token_ids)"
            )
        ids += tokens.prompt + tokens.completion
        mask += [False] * len(tokens.prompt) + [True] * len(tokens.completion)
        logprobs += [0.0] * len(tokens.prompt) + (tokens.logprobs or [0.0] * len(tokens.completion))
        spans.append((turn.index, len(ids) - len(tokens.completion), len(ids)))
        rewards += [
            TokenReward(len(ids) - 1, turn.index, reward.name, reward.level, reward.value * reward.weight)
            for reward in turn.rewards
            if reward.value is not None
        ]
    drawn = [(turn, span[1]) for turn, span in zip(turns, spans, strict=True) if span[1] < span[2]]
    versions = [_versions(turn, first) for turn, first in drawn]
    score = trace.score or 0.0
    return Trajectory(
        environment=trace.environment,
        task=trace.task,
        seed=trace.seed,
        attempt=trace.attempt,
        member=trace.member,
        group=f"{trace.task}/{trace.seed}/{trace.attempt}",
        role=turns[0].role,
        thread=turns[0].thread,
        branch=turns[0].branch,
        last=last,
        token_ids=ids,
        mask=mask,
        logprobs=logprobs if all(turn.reply.tokens.logprobs for turn, _ in drawn if turn.reply.tokens) else [],
        prompt_length=spans[0][1],
        turns=spans,
        versions=list(itertools.chain.from_iterable(versions)) if all(versions) else [],
        temperature=trace.config.temperature,
        rewards=rewards,
        score=score,
        group_scores=scores or [score],
        advantage=score - (math.fsum(scores) / len(scores) if scores else 0.0),
        end=trace.end or End.TERMINATED,
        finish_reason=turns[-1].reply.finish_reason,
    )


def _versions(turn: Turn, first: int) -> list[tuple[int, int]]:
    """Returns (token, version) of each run that the turn drew, its first token at `first`; empty if unknown."""
    tokens, version = turn.reply.tokens, turn.reply.policy_version
    if tokens is not None and tokens.versions:
        return [(first + start, number) for start, number in tokens.versions]
    return [] if version is None else [(first, version)]
