"""Groups of episodes for tests of the training report, made without playing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quintain.episode import blank
from quintain.errors import Failure
from quintain.record import EpisodeRecord
from quintain.rollouts import Group
from quintain.trace import End, Level, Message, Reply, Reward, Timing, Tokens, Turn
from tests.worlds import environment, first_task

ENV = environment()


def episode(
    score: float | None,
    *,
    turns: int = 1,
    versions: Sequence[tuple[int, int]] = (),
    branches: Sequence[int] = (),
    component: Any = "S",
    kind: str = "quintain:reset_failed",
    level: str = "",
    reward: str = "polite",
) -> EpisodeRecord:
    """Returns an episode with this score, or a failed one; each turn drew ten tokens and has a reward of 0.25."""
    trace = blank(ENV, first_task(ENV))
    for index in range(turns):
        tokens = Tokens([1], list(range(10)), versions=list(versions)) if versions else Tokens([1], list(range(10)))
        rewards = (Reward(name=reward, level=Level.TURN, raw=0.25, value=0.25, turn=index),)
        branch = branches[index] if branches else 0
        reply = Reply(Message("assistant"), tokens)
        trace.turns.append(Turn(index=index, branch=branch, reply=reply, rewards=rewards))
    trace.tags = {"level": level} if level else {}
    trace.score, trace.end = score, End.TERMINATED
    if score is None:
        trace.fail(Failure(component=component, kind=kind, stage="seed", type="X", message="", turn=0))
    return EpisodeRecord(trace, Timing(model_s=1.0, tool_s=0.5, total_s=2.0))


def group(
    scores: Sequence[float | None], *, kept: bool = True, earlier: Sequence[EpisodeRecord] = (), **fields: Any
) -> Group:
    rollouts = tuple(episode(score, **fields) for score in scores)
    return Group(index=0, task="t", rollouts=rollouts, kept=kept, earlier=tuple(earlier))
