"""Replay: the same replies must give the same bytes, here and in a process with another hash seed.

In order: the model and the environment that play a trace again; the harnesses that drive it; and the comparison of two
traces. A replay in the same process misses what depends on the order of sets, on `hash()` and on
`id()`; replays in fresh processes under other `PYTHONHASHSEED`s catch them, and clocks, uuids and unseeded random
numbers too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from . import codec
from .environment import Environment
from .episode import ActorSession, Episode
from .errors import JUDGE_KINDS, WALL_CLOCK_KINDS, JudgeError, ModelError, ReplayDivergence, UsageError
from .harness import CallSource, Harness, Model, Replayable, Request, Session
from .rollout import CONTEXT_WINDOW, EpisodeResult, play_episode
from .scoring import add_verdicts
from .state import S
from .task import Task
from .trace import End, Level, Reply, Step, ToolCall, Trace, Turn
from .verifier import Criterion, Score, Verifier


class ReplayModel:
    """Model that answers as it did in a trace, role by role."""

    name = "recorded"

    def __init__(self, trace: Trace) -> None:
        self._left: dict[str, list[Turn]] = defaultdict(list)
        for turn in reversed(trace.turns):
            self._left[turn.role].append(turn)
        self._prompts: dict[tuple[int, int], list[int]] = {}

    async def __call__(self, request: Request) -> Reply:
        """Returns the role's next reply.

        Raises:
            ModelError: The trace holds no more.
        """
        if left := self._left[request.role]:
            return self._whole(left.pop())
        raise ModelError(f"the trace holds no further reply of role {request.role!r}", kind="quintain:replay_diverged")

    def _whole(self, turn: Turn) -> Reply:
        """Returns the reply with its whole prompt: a trace keeps only what each turn adds to its branch."""
        tokens = turn.reply.tokens
        if tokens is None:
            return turn.reply
        before = self._prompts.setdefault((turn.thread, turn.branch), [])
        prompt = before + tokens.prompt
        before += tokens.prompt + tokens.completion
        return msgspec.structs.replace(turn.reply, tokens=msgspec.structs.replace(tokens, prompt=prompt))


async def replay(env: Environment[S], task: Task[S], trace: Trace) -> Trace:
    """Plays a trace's replies again, through the environment's own harness and verifier; returns the new trace.

    A failure by a real time limit may not occur again; then everything before it must agree.

    Raises:
        UsageError: The trace is of another environment or task; or it began where another episode ended, for which
            there is `quintain.chain.TaskChain`.
        ReplayDivergence: The world answered differently than it did the first time.
    """
    return (await replay_episode(env, task, trace, start=None)).record.trace


async def replay_episode(env: Environment[S], task: Task[S], trace: Trace, *, start: S | None) -> EpisodeResult[S]:
    """Replays an episode that began in the world `start`; None for the task's own."""
    check_origin(env, task, trace, start=start)
    new = await play_episode(replay_env(env, trace), task, ReplayModel(trace), start=start, **trace_metadata(trace))
    if (given := {old.name: old for old in trace.rewards if old.level is Level.GROUP}) and not trace.failure:
        add_verdicts(env, new.record.trace, given)
    if (diverged := find_divergence(trace, new.record.trace)) is not None:
        raise diverged
    return new


async def rebuild(
    env: Environment[S], task: Task[S], trace: Trace, *, turns: int, start: S | None = None
) -> Episode[S]:
    """Returns an episode as it stood after the first `turns` turns of a trace, ready to go on.

    Args:
        env: The environment.
        task: The trace's task.
        trace: The record.
        turns: Number of turns, in [0, len(trace.turns)].
        start: The world in which it began; None if that was the task's own.

    Raises:
        UsageError: The trace has fewer turns; or it is of another environment, task or start.
        ReplayDivergence: The world answered differently on the way.
    """
    if not 0 <= turns <= len(trace.turns):
        raise UsageError(f"turns must be in [0, {len(trace.turns)}], got {turns}")
    check_origin(env, task, trace, start=start)
    episode = await Episode[S].begin(replay_env(env, trace), task, start, **trace_metadata(trace))
    await _is_stopped(episode.env.harness, episode.session, ReplayModel(trace), turns=turns)
    if (diverged := _in_turns(trace.turns[:turns], episode.trace.turns)) is not None:
        raise diverged
    return episode


def check_origin(env: Environment[S], task: Task[S], trace: Trace, *, start: S | None) -> None:
    """Raises UsageError if a trace is not of this environment and task, or began in another kind of world."""
    if (trace.environment, trace.task) != (env.name, task.id):
        raise UsageError(f"the trace is of {trace.environment}/{trace.task}, not of {env.name}/{task.id}")
    if bool(trace.continues) == (start is None):
        where = f"the world after task {trace.continues[0]!r}" if trace.continues else "its own world"
        raise UsageError(f"the trace of {trace.task!r} began in {where}: replay it there (quintain.chain.TaskChain)")


def as_played(trace: Trace, *, ends: bool) -> Trace:
    """Returns a trace without what the verifier gave; without its end too, if the verifier ended one of two."""
    turns = [msgspec.structs.replace(turn, rewards=()) for turn in trace.turns]
    given: dict[str, Any] = {"turns": turns, "rewards": [], "criteria": (), "score": None, "fingerprint": ""}
    given |= {} if ends else {"end": None, "reason": "", "failure": None}
    return msgspec.structs.replace(trace, **given)


def trace_metadata(trace: Trace) -> dict[str, Any]:
    """Returns the fields of a trace that `Episode.begin` takes."""
    names = ("seed", "member", "attempt", "continues", "forked", "split", "agent", "external_harness")
    return {name: getattr(trace, name) for name in names}


def replay_env(env: Environment[S], trace: Trace) -> Environment[S]:
    """Returns the environment as it was configured, with a harness that drives it through a trace again.

    That is its own harness, unless another one led the episode, or it is Replayable.
    """
    harness = env.harness.replay_harness(trace) if isinstance(env.harness, Replayable) else env.harness
    if trace.external_harness is not msgspec.UNSET:
        harness = ReplayHarness(trace)
    twin = env.replace(config=trace.config)
    # Not by `replace`: it is the same environment, by the same fingerprint.
    twin.verifier = _from_record(env.verifier, trace)
    failed = trace.failure is not None and trace.failure.component == "model"
    stopped = trace.interrupted or failed or trace.reason == CONTEXT_WINDOW
    twin.harness = _StoppedHarness(harness, trace) if stopped else harness
    return twin


def _from_record(verifier: Verifier[S], trace: Trace) -> Verifier[S]:
    """Returns the verifier with the verdicts of external criteria taken from the record, in its order."""

    def recorded(criterion: Criterion[S]) -> Criterion[S]:
        left = [old for old in reversed(list(trace.every_reward())) if old.name == criterion.name]

        def fn(_: object) -> Score:
            if not left:
                message = f"the record holds no verdict of {criterion.name!r}, and a replay does not ask for another"
                raise JudgeError(message, kind="quintain:judge_missing")
            old = left.pop()
            return Score(old.raw, old.reason, old.details)

        return msgspec.structs.replace(criterion, fn=fn) if criterion.external else criterion

    if not any(criterion.external for criterion in verifier.criteria):
        return verifier
    return Verifier(*map(recorded, verifier.criteria), combine=verifier.combine)


class ReplayHarness(msgspec.Struct, frozen=True):
    """Harness that plays a record of any harness: the same contexts, calls and end."""

    trace: Trace

    async def play(self, session: Session, model: Model) -> None:
        """Plays a step for each turn of the record."""
        roles = {turn.thread: turn.role for turn in self.trace.turns}
        actors: list[Any] = [session]
        for turn in self.trace.turns:
            while len(actors) <= turn.thread:
                actors.append(session.add_actor(roles.get(len(actors), "")))  # Threads are numbered as they are opened.
            actor = actors[turn.thread]
            actor.set_context(self.trace.context(turn.index))
            await actor.step(await model(actor.request()), _calls_of(turn))
        _conclude(session, self.trace)


def _calls_of(turn: Turn) -> CallSource | None:
    """Returns the calls that were made, or None if they are those of the reply."""
    made = [step.call for step in turn.steps]
    if tuple(made) == turn.reply.message.calls:
        return None
    left = iter(made)

    async def call_source(_: Step | None) -> ToolCall | None:
        return next(left, None)

    return call_source


class _StoppedHarness(msgspec.Struct, frozen=True):
    """Harness that stops where a record ends, as its client or its model stopped it."""

    own: Harness
    trace: Trace

    async def play(self, session: Session, model: Model) -> None:
        if await _is_stopped(self.own, session, model, turns=len(self.trace.turns)):
            _conclude(session, self.trace)


async def _is_stopped(harness: Harness, session: Session, model: Model, *, turns: int) -> bool:
    """Plays an episode; True if its harness asks for a reply after that many turns, where it is stopped."""
    assert isinstance(session, ActorSession)  # `Episode.begin` has no others.
    episode = session.episode

    async def ask(request: Request) -> Reply:
        if len(episode.trace.turns) == turns:
            raise _Reached
        return await model(request)

    try:
        await harness.play(session, ask)
    except _Reached:
        return True
    return False


class _Reached(BaseException):
    """The prefix of a trace is played; not an Exception, so that a harness which catches those lets it through."""


def _conclude(session: Session, trace: Trace) -> None:
    """Ends an episode as a record does whose end came from outside of its harness."""
    assert isinstance(session, ActorSession)  # `Episode.begin` has no others.
    episode = session.episode
    if trace.failure is not None and trace.failure.stage != "verification":
        episode.trace.fail(trace.failure)
    elif trace.end is not None:  # One that goes on has no end.
        episode.terminate(trace.reason, truncated=trace.end is End.TRUNCATED)
    episode.trace.interrupted = trace.interrupted


def find_divergence(expected: Trace, found: Trace) -> ReplayDivergence | None:
    """Returns the first place where two traces differ: in the order turn, step, field."""
    if expected.to_bytes() == found.to_bytes():
        return None
    failure, new = expected.failure, found.failure  # What was not admitted holds nothing that was played.
    unasked = new is not None and new.kind == "quintain:judge_missing"
    alike = WALL_CLOCK_KINDS | JUDGE_KINDS
    if failure is not None and (failure.kind in alike or failure.stage == "admission" or unasked):
        return _in_turns(expected.turns[: failure.turn], found.turns[: failure.turn])
    return _in_turns(expected.turns, found.turns) or _first_field(expected, found)


def _in_turns(expected: Sequence[Turn], found: Sequence[Turn]) -> ReplayDivergence | None:
    for old, new in zip(expected, found, strict=False):
        if codec.dumps(old) == codec.dumps(new):
            continue
        for number, (a, b) in enumerate(zip(old.steps, new.steps, strict=False)):
            if a != b:
                return _first_field(a, b, turn=old.index, step=number)
        return _first_field(old, new, turn=old.index)
    if len(expected) != len(found):
        return ReplayDivergence("turns", len(expected), len(found), turn=min(len(expected), len(found)))
    return None


def _first_field(a: Any, b: Any, *, turn: int | None = None, step: int | None = None) -> ReplayDivergence:
    names = [name for name in a.__struct_fields__ if _bytes(getattr(a, name)) != _bytes(getattr(b, name))]
    field = a.__struct_encode_fields__[a.__struct_fields__.index(names[0])]
    return ReplayDivergence(field, getattr(a, names[0]), getattr(b, names[0]), turn=turn, step=step)


def _bytes(value: Any) -> bytes:
    return b"" if value is msgspec.UNSET else codec.dumps(value)
