"""Process rewards: turns that a judge scores, and the value of each turn from continuations of a fork."""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from quintain.environment import Environment
from quintain.episode import Episode
from quintain.errors import DefinitionError, UsageError
from quintain.harness import Model, Request, Session, ToolLoop, run_until_text
from quintain.replay import ReplayModel, as_played, check_origin, find_divergence, replay_env, trace_metadata
from quintain.rollout import drive
from quintain.state import S
from quintain.task import Task
from quintain.trace import Reply, Trace
from quintain.verifier import Criterion, EpisodeView, Score, reward

from .chat import Judge, all_of, filled, listed, merged, question
from .llm import score_type

Continue = Callable[[Session, Model], Awaitable[None]]
"""Plays an episode on from where it stands, as a harness does from its beginning."""
_AWAY = 1_000_000
"""Attempts of the continuations of a turn begin at a multiple of this, so each continuation has its own seeds."""


TURN = """Task that the agent was given:
{task}

What it did before:
{before}

Its next turn:
{text}

Give that turn a score from 0 (worst) to {scale} (best) for this criterion only: {criterion}"""


def judged_turns(
    judge: Judge, criterion: str, *, every: int = 1, scale: int = 10, template: str = TURN
) -> Criterion[Any]:
    """Returns a criterion with the mean score of the agent's turns / scale, from 0 to 1; `details` has each of them.

    The judge sees a turn with its calls and results, and the turns before it, but nothing after it. An episode without
    a judged turn is skipped.

    Args:
        judge: The judge.
        criterion: What is judged, in words.
        every: Distance between two judged turns, 1 and up: 3 judges every third turn.
        scale: Highest score, 1 and up; the judge gives a whole number from 0.
        template: Prompt, with {task}, {before}, {text}, {criterion} and {scale}.

    Raises:
        DefinitionError: `every` or `scale` is below 1, or the template lacks a name.
    """
    if every < 1:
        raise DefinitionError(f"every must be at least 1, got {every}")
    kind = score_type(scale)
    filled(template, dict.fromkeys(("task", "before", "text"), ""), criterion="", scale="")

    @reward(external=True)
    async def judged_turns(view: EpisodeView[Any]) -> Score:
        own = [turn for turn in view.trace.turns if not turn.thread]
        chosen = list(enumerate(own))[every - 1 :: every]

        async def ask(place: int) -> tuple[float, dict[str, Any]]:
            texts = {"task": question(view), "before": listed(own[:place]), "text": listed(own[place : place + 1])}
            prompt = filled(template, texts, criterion=criterion, scale=str(scale))
            said = await judge.ask(prompt, kind, trace=view.trace)
            return statistics.fmean(vote.score for vote in said.votes) / scale, said.details

        found = await all_of(ask(place) for place, _ in chosen)
        if not found:
            return Score(None, "the agent took too few turns to judge one")
        turns = {str(turn.index): value for (_, turn), (value, _) in zip(chosen, found, strict=True)}
        worst = min(turns, key=lambda index: turns[index])
        reason = f"mean of {len(turns)} turns; lowest: turn {worst}, {turns[worst]:.4g}"
        return Score(statistics.fmean(turns.values()), reason, {**merged(about for _, about in found), "turns": turns})

    return judged_turns


class TurnValue(NamedTuple):
    """Value of the moment before a turn.

    Attributes:
        turn: Index of the turn.
        value: Mean score of the continuations from there; None if fewer than two are valid.
        standard_error: Sample standard deviation of the scores / sqrt(their number); None like `value`.
        scores: Scores of the valid continuations.
        failed: Number of continuations that are invalid; they count in nothing.
    """

    turn: int
    value: float | None
    standard_error: float | None
    scores: tuple[float, ...]
    failed: int


class _Continuing:
    """Harness of a fork."""

    def __init__(self, play_on: Continue) -> None:
        self._play_on = play_on

    async def play(self, session: Session, model: Model) -> None:
        await self._play_on(session, model)


async def answers(session: Session, model: Model) -> None:
    """Plays on as `ToolLoop` does: until the agent answers without a call."""
    await run_until_text(session, model)
    session.terminate("the agent answered")


async def monte_carlo_values(
    env: Environment[S],
    task: Task[S],
    trace: Trace,
    *,
    model: Callable[[], Model],
    m: int = 8,
    turns: Iterable[int] | None = None,
    play_on: Continue | None = None,
) -> list[TurnValue]:
    """Returns the value of the moment before each turn of an episode: V(k) is the mean score of m continuations.

    What turn k was worth is V(k + 1) - V(k), and for the last turn the score of the episode - V(k). The episode is
    played once from its record, and forked where the model is asked for a turn; so n turns cost n * m forks and one
    replay. The continuations of one turn have the same world and different sampling seeds.

    Args:
        env: The environment.
        task: The task of the trace.
        trace: The record of the episode.
        model: Function that returns the model of one continuation, usually the policy.
        m: Number of continuations, 2 and up.
        turns: Indices of turns of the agent; all by default.
        play_on: Plays a fork to its end. None takes `answers`, for environments with a `ToolLoop`.

    Raises:
        UsageError: m is below 2, a turn does not exist, the harness is not a `ToolLoop` and `play_on` is missing, or
            the trace is of another environment or task.
        ReplayDivergence: The world answered differently than it did the first time.
    """
    if m < 2:
        raise UsageError(f"m must be at least 2, or no standard error exists; got {m}")
    if play_on is None and not isinstance(env.harness, ToolLoop):
        raise UsageError(f"pass play_on: how {type(env.harness).__name__} goes on from a turn is not known")
    known = {turn.index for turn in trace.turns if turn.role == "agent"}
    wanted = known if turns is None else set(turns)
    if wanted - known:
        raise UsageError(f"turns {sorted(wanted - known)} are not turns of the agent, which are {sorted(known)}")
    own = env.replace(config=trace.config)
    found: list[TurnValue] = []
    own.harness = _Continuing(play_on or answers)  # Not by `replace`: it is the same environment.
    for moment in await _moments(env, task, trace, wanted=wanted):
        twins = [await moment.fork() for _ in range(m)]
        turn = len(moment.trace.turns)
        for number, twin in enumerate(twins):
            twin.env, twin.trace.attempt = own.for_task(task), _AWAY * (turn + 1) + number
        await asyncio.gather(*(_play(twin, model()) for twin in twins))
        found.append(_value(turn, [twin.trace for twin in twins]))
    return found


async def _moments(env: Environment[S], task: Task[S], trace: Trace, *, wanted: Collection[int]) -> list[Episode[S]]:
    """Returns the episode as it stood before each of these turns."""
    check_origin(env, task, trace, start=None)
    trunk = replay_env(env, trace)
    trunk.verifier = env.verifier
    episode = await Episode[S].begin(trunk, task, **trace_metadata(trace))
    recorded, moments = ReplayModel(trace), list[Episode[S]]()

    async def ask(request: Request) -> Reply:
        if request.role == "agent" and len(episode.trace.turns) in wanted:
            moments.append(await episode.fork())
        return await recorded(request)

    await drive(episode, ask)
    if (diverged := find_divergence(as_played(trace, ends=False), as_played(episode.trace, ends=False))) is not None:
        raise diverged
    return moments


async def _play(episode: Episode[Any], model: Model) -> None:
    await drive(episode, model)
    await episode.verify()


def _value(turn: int, traces: Sequence[Trace]) -> TurnValue:
    scores = tuple(trace.score for trace in traces if trace.validity == "valid" and trace.score is not None)
    failed = len(traces) - len(scores)
    if len(scores) < 2:
        return TurnValue(turn, None, None, scores, failed)
    error = statistics.stdev(scores) / math.sqrt(len(scores))
    return TurnValue(turn, statistics.fmean(scores), error, scores, failed)
