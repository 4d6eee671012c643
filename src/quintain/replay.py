"""Replay: the same replies must give the same bytes, here and in a process with another hash seed.

A replay in the same process misses what depends on the order of sets, on `hash()` and on `id()`; replays in fresh
processes under other `PYTHONHASHSEED`s catch them, and clocks, uuids and unseeded random numbers too.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Sequence
from subprocess import PIPE, CompletedProcess, Popen
from typing import Any, TypeVar

import msgspec

from . import codec
from .environment import Environment
from .episode import ActorSession, Episode
from .errors import WALL_CLOCK_KINDS, Failure, ModelError, ReplayDivergence, UsageError
from .harness import CallSource, Harness, Model, Replayable, Request, Session
from .rollout import EpisodeResult, play_episode
from .state import State
from .task import Task
from .trace import End, Reply, Step, Tokens, ToolCall, Trace, Turn

S = TypeVar("S", bound=State)


class ReplayModel:
    """A model that answers as it did in a trace, role by role."""

    name = "recorded"

    def __init__(self, trace: Trace) -> None:
        self._left: dict[str, list[Turn]] = defaultdict(list)
        for turn in reversed(trace.turns):
            self._left[turn.role].append(turn)
        self._prompts: dict[tuple[int, int], list[int]] = {}

    async def __call__(self, request: Request) -> Reply:
        """The role's next reply.

        Raises:
            ModelError: The trace holds no more.
        """
        left = self._left[request.role]
        if left:
            return self._whole(left.pop())
        raise ModelError(f"the trace holds no further reply of role {request.role!r}", kind="quintain:replay_diverged")

    def _whole(self, turn: Turn) -> Reply:
        """The reply with its whole prompt: a trace keeps only what each turn adds to its branch."""
        tokens = turn.reply.tokens
        if tokens is None:
            return turn.reply
        before = self._prompts.setdefault((turn.thread, turn.branch), [])
        prompt = before + tokens.prompt
        before += tokens.prompt + tokens.completion
        return msgspec.structs.replace(turn.reply, tokens=Tokens(prompt, tokens.completion, tokens.logprobs))


async def replay(env: Environment[S], task: Task[S], trace: Trace) -> Trace:
    """Play a trace's replies again, through the environment's own harness and verifier; returns the new trace.

    A failure that a real clock decided cannot be asked to happen again; then everything before it must agree.

    Raises:
        UsageError: The trace is of another environment or task; or it began where another episode ended, for which
            there is `quintain.chain.TaskChain`.
        ReplayDivergence: The world answered differently than it did the first time.
    """
    return (await replay_episode(env, task, trace, start=None)).record.trace


async def replay_episode(env: Environment[S], task: Task[S], trace: Trace, *, start: S | None) -> EpisodeResult[S]:
    """As `replay`, for an episode that began in the world `start`; None for the task's own."""
    _check(env, task, trace, start=start)
    new = await play_episode(replay_env(env, trace), task, ReplayModel(trace), start=start, **trace_metadata(trace))
    if (diverged := find_divergence(trace, new.record.trace)) is not None:
        raise diverged
    return new


def replay_env(env: Environment[S], trace: Trace) -> Environment[S]:
    """As it was configured, with what drives it through a trace again.

    Its own harness, unless another one led the episode, or it is Replayable.
    """
    harness = env.harness.replay_harness(trace) if isinstance(env.harness, Replayable) else env.harness
    if trace.external_harness is not msgspec.UNSET:
        harness = ReplayHarness(trace)
    twin = env.replace(config=trace.config)
    # Not by `replace`: it is the same environment, by the same fingerprint.
    stopped = trace.interrupted or (trace.failure is not None and trace.failure.component == "model")
    twin.harness = _Cut(harness, trace) if stopped else harness
    return twin


class ReplayHarness(msgspec.Struct, frozen=True):
    """Plays what stands in a record, whatever harness it was: the same contexts and calls, and the end as it was."""

    trace: Trace

    async def play(self, session: Session, model: Model) -> None:
        """One step for each turn of the record."""
        assert isinstance(session, ActorSession)  # `Episode.begin` has no others.
        roles = {turn.thread: turn.role for turn in self.trace.turns}
        actors = [session]
        for turn in self.trace.turns:
            while len(actors) <= turn.thread:
                actors.append(session.add_actor(roles.get(len(actors), "")))  # Threads are numbered as they are opened.
            actor = actors[turn.thread]
            actor.set_context(self.trace.context(turn.index))
            await actor.step(await model(actor.request()), _calls_of(turn))
        _conclude(session.episode, self.trace)


class _Cut(msgspec.Struct, frozen=True):
    """A harness that is stopped where it asks for more than a record holds: by somebody outside, or by its model."""

    own: Harness
    trace: Trace

    async def play(self, session: Session, model: Model) -> None:
        assert isinstance(session, ActorSession)  # `Episode.begin` has no others.
        try:
            await self.own.play(session, _until(session.episode, model, len(self.trace.turns)))
        except _Reached:
            _conclude(session.episode, self.trace)


def _calls_of(turn: Turn) -> CallSource | None:
    """The calls that were made, where these are not simply those of the reply."""
    made = [step.call for step in turn.steps]
    if tuple(made) == turn.reply.message.calls:
        return None
    left = iter(made)

    async def call_source(_: Step | None) -> ToolCall | None:
        return next(left, None)

    return call_source


def _conclude(episode: Episode[Any], trace: Trace) -> None:
    """End as a record does, where the end came from without."""
    if trace.failure is not None and trace.failure.stage != "verification":
        set_failure(episode, trace.failure)
    elif trace.end in {End.TERMINATED, End.FAILED}:  # A limit comes again by itself; one that goes on has no end.
        episode.terminate(trace.reason)
    episode.trace.interrupted = trace.interrupted


def set_failure(episode: Episode[Any], failure: Failure) -> None:
    """End an episode by a failure that somebody else has put into words already; the first one is kept."""
    trace = episode.trace
    if trace.failure is None:
        trace.failure, trace.end, trace.reason, trace.score = failure, End.FAILED, failure.kind, None


def _check(env: Environment[S], task: Task[S], trace: Trace, *, start: S | None) -> None:
    if (trace.environment, trace.task) != (env.name, task.id):
        raise UsageError(f"the trace is of {trace.environment}/{trace.task}, not of {env.name}/{task.id}")
    if bool(trace.continues) == (start is None):
        where = f"the world after task {trace.continues[0]!r}" if trace.continues else "its own world"
        raise UsageError(f"the trace of {trace.task!r} began in {where}: replay it there (quintain.chain.TaskChain)")


def find_divergence(expected: Trace, found: Trace) -> ReplayDivergence | None:
    """The first place where two traces differ: in the order turn, step, field."""
    failure = expected.failure  # What was not admitted holds nothing that was played.
    if failure is not None and (failure.kind in WALL_CLOCK_KINDS or failure.stage == "admission"):
        complete = failure.turn
        return _in_turns(expected.turns[:complete], found.turns[:complete])
    diverged = _in_turns(expected.turns, found.turns)
    if diverged is None and expected.to_bytes() != found.to_bytes():
        return _first_field(expected, found)
    return diverged


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


async def rebuild(
    env: Environment[S], task: Task[S], trace: Trace, *, turns: int, start: S | None = None
) -> Episode[S]:
    """An episode as it stood after the first `turns` turns of a trace, ready to go on.

    Args:
        env: The environment.
        task: The trace's task.
        trace: The record.
        turns: How many; in [0, len(trace.turns)].
        start: The world that it began in, where that was not the task's own.

    Raises:
        UsageError: The trace has fewer turns; or it is of another environment, task or start.
        ReplayDivergence: The world answered differently on the way.
    """
    if not 0 <= turns <= len(trace.turns):
        raise UsageError(f"turns must be in [0, {len(trace.turns)}], got {turns}")
    _check(env, task, trace, start=start)
    episode = await Episode[S].begin(replay_env(env, trace), task, start, **trace_metadata(trace))
    with contextlib.suppress(_Reached):  # The harness asks for the reply beyond the prefix: there we are.
        await episode.env.harness.play(episode.session, _until(episode, ReplayModel(trace), turns))
    if (diverged := _in_turns(trace.turns[:turns], episode.trace.turns)) is not None:
        raise diverged
    return episode


def _until(episode: Episode[Any], model: Model, turns: int) -> Model:
    """The model, as long as there are fewer turns."""

    async def ask(request: Request) -> Reply:
        if len(episode.trace.turns) == turns:
            raise _Reached
        return await model(request)

    return ask


class _Reached(BaseException):
    """The prefix of a trace is played; not an Exception, so that a harness which catches those lets it through."""


def trace_metadata(trace: Trace) -> dict[str, Any]:
    """Returns the fields of a trace that `Episode.begin` takes."""
    names = ("seed", "member", "attempt", "continues", "split", "agent", "external_harness")
    return {name: getattr(trace, name) for name in names}


def fresh_processes(command: Sequence[str], hash_seeds: Sequence[int]) -> list[CompletedProcess[str]]:
    """Run one command in a fresh process per hash seed, all at once, and wait for them.

    Args:
        command: Program and arguments, such as `[sys.executable, "-m", "quintain", "replay", folder, "--here"]`.
        hash_seeds: Values of PYTHONHASHSEED, 0 to 4294967295.
    """
    started = [
        Popen(command, env=os.environ | {"PYTHONHASHSEED": str(seed)}, stdout=PIPE, stderr=PIPE, text=True)
        for seed in hash_seeds
    ]
    try:
        outputs = [process.communicate() for process in started]
    finally:
        for process in started:
            process.kill()  # What has ended already stays as it is.
    return [
        CompletedProcess(command, process.returncode, out, err)
        for process, (out, err) in zip(started, outputs, strict=True)
    ]
