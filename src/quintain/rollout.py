"""One episode from its beginning to its verdict."""

from __future__ import annotations

import time
from typing import Any, Generic, NamedTuple, TypeGuard, cast

from . import codec
from .environment import Environment
from .episode import Episode, blank
from .errors import BROKEN, ContextOverflow, EpisodeError, ModelError, author_frames, blame
from .executor import DeadlineExceeded, within
from .harness import Agent, Model, Request
from .record import EpisodeRecord
from .state import S
from .task import Task
from .trace import Reply, Timing

CONTEXT_WINDOW = "context_window"
"""Reason of an episode whose context grew longer than the agent's model takes."""


async def rollout(
    env: Environment[S],
    task: Task[S],
    model: Model | Agent,
    *,
    seed: int = 0,
    member: int | None = None,
    attempt: int = 0,
    split: str = "",
    agent: str | None = None,
) -> EpisodeRecord:
    """Plays one task to its end and scores it. Nothing that happens inside the episode raises.

    Args:
        env: The environment.
        task: One of its tasks.
        model: An async function from a Request to a Reply, or an agent, which makes one for each episode.
        seed: Seed of the world's random stream, the same for all members of a group.
        member: Place in the group, from 0. None is 0; the server of a remote environment counts.
        attempt: Number of the group's retry, from 0.
        split: Split of the task, for the record.
        agent: Name of the model in the record; None takes the model's own name.
    """
    names = {"seed": seed, "member": member, "attempt": attempt, "split": split}
    names |= {} if agent is None else {"agent": agent}
    return (await play_episode(env, task, model, start=None, **names)).record


class EpisodeResult(NamedTuple, Generic[S]):
    """A finished episode with the world that it left."""

    record: EpisodeRecord
    state: S | None
    """None when no world could be made."""


async def play_episode(
    env: Environment[S], task: Task[S], model: Model | Agent, *, start: S | None, **names: Any
) -> EpisodeResult[S]:
    """Plays as `rollout` does, in the world `start` unless that is None; `names` are fields of the Trace."""
    started = time.perf_counter()
    agent = model if _is_agent(model) else None
    names = {"agent": agent.name if agent else _name(model)} | names
    try:
        episode = await Episode[S].begin(env, task, start, **names)
        chosen = cast(Model, model) if agent is None else agent.model(task, episode.trace.seed)
    except BROKEN as error:
        trace = blank(env, task, **names)
        trace.fail(blame(error, component="T", kind="quintain:reset_failed", stage="seed", turn=0))
        timing = Timing(total_s=time.perf_counter() - started)
        return EpisodeResult(EpisodeRecord(trace, timing, author_frames(error)), None)
    await drive(episode, chosen)
    await episode.verify()
    episode.timing.total_s = time.perf_counter() - started
    return EpisodeResult(EpisodeRecord(episode.trace, episode.timing, episode.frames), episode.state)


async def drive(episode: Episode[S], model: Model) -> None:
    """Let the harness play; whatever breaks is a Failure with a name on it."""
    env = episode.env
    try:
        await within(env.config.episode_timeout_s, env.harness.play(episode.session, _watched(model, episode)))
        if not episode.ended:
            episode.terminate("the harness returned")
    except DeadlineExceeded as error:
        episode.fail(error, component="H", kind="agent_timeout")
    except BROKEN as error:
        if not isinstance(error, ContextOverflow):  # Recorded where the model was asked.
            episode.fail(error, component="H", kind="agent_run_error")


def _watched(model: Model, episode: Episode[S]) -> Model:
    """The model with its time limit, its time accounted, its replies checked, and its failures blamed on it."""

    async def ask(request: Request) -> Reply:
        started = time.perf_counter()
        try:
            reply = await within(episode.env.config.model_timeout_s, model(request))
            return _checked(reply)
        except DeadlineExceeded as error:
            failure = ModelError(f"no reply: it {error}", kind="transport_timeout")
            # Recorded here, so that a harness which catches everything cannot swallow it.
            episode.fail(failure, component="model", kind=failure.kind)
            raise failure from error
        except EpisodeError as error:
            # The policy made no context too long but its own, after its first turn.
            if isinstance(error, ContextOverflow) and request.role == "agent" in {t.role for t in episode.trace.turns}:
                episode.terminate(CONTEXT_WINDOW, truncated=True)
            else:
                episode.fail(error, component=error.component, kind=error.kind)
            raise
        except BROKEN as error:
            episode.fail(error, component="model", kind="agent_request_failed")
            raise ModelError(f"{type(error).__name__}: {error}") from error
        finally:
            episode.timing.model_s += time.perf_counter() - started

    return ask


def _checked(reply: object) -> Reply:
    try:
        checked = codec.loads(codec.dumps(reply), Reply)
    except Exception as error:
        raise ModelError(f"no valid Reply: {error}", kind="quintain:model_reply_invalid") from error
    if checked.message.role != "assistant":
        raise ModelError(f"a Reply of role {checked.message.role!r}", kind="quintain:model_reply_invalid")
    return checked


def _is_agent(model: object) -> TypeGuard[Agent]:
    return hasattr(model, "name") and hasattr(model, "model")  # What isinstance() does, at a tenth of its cost in 3.11.


def _name(model: object) -> str:
    return getattr(model, "name", None) or getattr(model, "__name__", None) or type(model).__name__
