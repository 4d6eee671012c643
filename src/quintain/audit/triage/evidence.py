"""Evidence on a record from its environment: replay, regrading, and the task's own solution.

Everything runs on fresh worlds and takes only the models' replies from the record. Evidence is plain data, so that
another process, under another hash seed, can gather it too.
"""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from quintain import codec, resource
from quintain.chain import TaskChain, before
from quintain.environment import Environment
from quintain.errors import BROKEN, WALL_CLOCK_KINDS, QuintainError, ToolError
from quintain.executor import ALARM, DeadlineExceeded
from quintain.replay import ReplayModel, replay_env
from quintain.rollout import EpisodeResult as Again
from quintain.rollout import play_episode
from quintain.scoring import Scoring
from quintain.state import Rng, State
from quintain.table import Table
from quintain.task import Task
from quintain.tools import Tool, observe
from quintain.trace import Content, Level, Trace, Turn, plain
from quintain.verifier import Criterion, Score, StepView, Verifier

from .episode_log import EpisodeLog
from .plain import fields, sequence
from .shadow import Suspect

PATIENCE_S = 5.0
"""Seconds that a call which once hung gets in a replay."""
_SHOWN = 300


class FirstDifference(msgspec.Struct, frozen=True, kw_only=True):
    """First difference between a replay and its record.

    Attributes:
        field: "observation", "is_error", "state_digest", "rewards", "turns" or "end".
        idle: The recorded world did not change in a turn in which the replayed one did.
    """

    turn: int
    step: int | None = None
    field: str
    recorded: str
    found: str
    idle: bool = False


class ReplayEvidence(msgspec.Struct, kw_only=True):
    """Result of replaying one record.

    Attributes:
        missing: Why the record could not be replayed; empty if it was.
        same_version: The environment's code is the version that made the record.
        left: First difference; None if the replay agrees.
        steady: Replays agree with one another.
        broke: Kind of failure that ended the replay.
        scores: The verifier's present scores, one per grading; None for "no verdict".
        criteria: Scores of the single criteria in the last grading.
        moved: The replayed world's content differs at the end from the start.
        stale: Positions, in the list of suspects, of reads that the world contradicts.
        cold: First call after a change that a fresh copy of the same world answers differently, which shows a source
            outside the world, such as a cache.
    """

    missing: str = ""
    same_version: bool = True
    left: FirstDifference | None = None
    steady: bool = True
    broke: str = ""
    scores: list[float | None] = []
    criteria: dict[str, float | None] = {}
    moved: bool = True
    stale: tuple[int, ...] = ()
    cold: FirstDifference | None = None


class Witness:
    """Replayer of records in their environment.

    Args:
        env: Environment that made the records.
        times: Gradings of each record, 1 and up.
    """

    def __init__(self, env: Environment[Any], *, times: int = 3) -> None:
        self._env = env
        self._days: TaskChain[Any] = TaskChain(env)
        self._times = times

    async def examine(self, one: EpisodeLog, task: Task[Any] | str, suspects: list[Suspect]) -> ReplayEvidence:
        """Gathers the evidence on one episode.

        Args:
            one: The record.
            task: Its task, or why the task is unknown.
            suspects: Reads that look stale.
        """
        trace = one.trace
        if trace is None or isinstance(task, str):
            return ReplayEvidence(missing=str(task) if trace is not None else "only our own traces can be played again")
        try:
            if trace.task_digest and await task.digest(task.world()) != trace.task_digest and not trace.continues:
                return ReplayEvidence(missing="the task has another content than the one that was played")
            place = before(trace)
            start = None if place is None else await self._days.world(place)
            evidence = await self._played(trace, task, start=start, suspects=suspects)
        except (QuintainError, *BROKEN) as error:
            return ReplayEvidence(missing=f"it cannot be played again: {type(error).__name__}: {error}"[:_SHOWN])
        if task.day:
            self._days.advance(task, trace, None)
        return evidence

    async def _played(self, trace: Trace, task: Task[Any], *, start: Any, suspects: list[Suspect]) -> ReplayEvidence:
        first = await self._again(trace, task, start)
        evidence = ReplayEvidence(same_version=trace.fingerprint == self._env.fingerprint)
        evidence.left = difference(trace, first.record.trace)
        if evidence.left is not None:
            second = await self._again(trace, task, start)
            evidence.steady = difference(first.record.trace, second.record.trace) is None
        new = first.record.trace
        evidence.broke = new.failure.kind if new.failure is not None else ""
        evidence.scores = [new.score]
        evidence.criteria = {reward.name: reward.value for reward in new.rewards}
        if first.state is None:
            return evidence
        began = task.world() if start is None else start
        evidence.moved = await content(began) != await content(first.state)
        if new.failure is None:
            for _ in range(self._times - 1):
                evidence.scores.append(await self._graded(first, task, began))
        evidence.stale = tuple(n for n, one in enumerate(suspects) if contradicts(first.state, one))
        if evidence.left is None and _reads_on(trace):
            evidence.cold = await self._cold(trace, task, start)
        return evidence

    async def _cold(self, trace: Trace, task: Task[Any], start: Any) -> FirstDifference | None:
        """Compares each call's answer with that of a copy of the world."""
        env = self._env
        seen: list[FirstDifference | None] = []

        async def ask(effect: StepView[Any]) -> Score:
            step, tool = effect.step, env.tools.get(effect.step.call.name)
            found = step.observation
            if tool is not None and step.fault is None and not step.is_error:
                arguments = tool.decode(step.call.arguments, strict=trace.config.arguments == "strict")
                found = await _answer(
                    tool, await resource.fork(effect.before), arguments, limit_s=trace.config.tool_timeout_s
                )
            recorded, now = plain(step.observation)[:_SHOWN], plain(found)[:_SHOWN]
            same = found == step.observation
            seen.append(None if same else FirstDifference(turn=0, field="observation", recorded=recorded, found=now))
            return Score(None, "only asking")

        nothing = Criterion[Any](name="nothing", level=Level.TRAJECTORY, fn=lambda outcome: 0.0)
        spy = Verifier[Any](Criterion(name="ask", level=Level.STEP, fn=ask), nothing)
        await play_episode(
            replay_env(env, trace).replace(verifier=spy), task, ReplayModel(trace), start=start, **_names(trace)
        )
        places = [(turn.index, n) for turn in trace.turns for n in range(len(turn.steps))]
        for (turn, step), left in zip(places, seen, strict=False):
            if left is not None:
                return msgspec.structs.replace(left, turn=turn, step=step)
        return None

    async def _again(self, trace: Trace, task: Task[Any], start: Any) -> Again[Any]:
        """Replays the replies, with a short time limit for calls that hung."""
        config = trace.config
        if trace.failure is not None and trace.failure.kind in WALL_CLOCK_KINDS:
            limit = min(PATIENCE_S, config.tool_timeout_s or PATIENCE_S)
            config = msgspec.structs.replace(config, tool_timeout_s=limit)
        return await play_episode(
            replay_env(self._env, trace).replace(config=config), task, ReplayModel(trace), start=start, **_names(trace)
        )

    async def _graded(self, again: Again[Any], task: Task[Any], began: Any) -> float | None:
        """Returns a new score of the same end."""
        env, trace = self._env, again.record.trace
        scoring = Scoring(env, task, start=began)
        asked = msgspec.structs.replace(trace, rewards=[], score=None)
        try:
            return env.verifier.total(await scoring.trajectory(again.state, asked))
        except (DeadlineExceeded, *BROKEN):
            return None  # no verdict; the caller compares it with the others


def _names(trace: Trace) -> dict[str, Any]:
    return {name: getattr(trace, name) for name in ("seed", "member", "attempt", "continues", "split", "agent")}


def _reads_on(trace: Trace) -> bool:
    """True if a call follows a change of the world."""
    digests = [turn.state_digest for turn in trace.turns if turn.steps]
    return any(a != b for a, b in itertools.pairwise(digests))


async def _answer(tool: Tool, world: State, arguments: dict[str, Any], *, limit_s: float | None) -> Content:
    try:
        return observe(await ALARM.call(limit_s, tool.bind(world), **arguments))
    except ToolError as refusal:
        return str(refusal)


def difference(expected: Trace, found: Trace) -> FirstDifference | None:
    """Returns the first difference between two traces, apart from names, versions and real time.

    After a failure of a real clock or a model's endpoint, only earlier turns are compared.
    """
    failure = expected.failure
    until = failure.turn if failure is not None and failure.kind in WALL_CLOCK_KINDS else len(expected.turns)
    before_digest = ""
    for old, new in zip(expected.turns[:until], found.turns, strict=False):
        left = _in_turn(old, new)
        if left is not None:
            idle = bool(before_digest) and old.state_digest == before_digest
            return msgspec.structs.replace(left, idle=idle)
        before_digest = old.state_digest
    if len(found.turns) < until:
        turn = len(found.turns)
        return FirstDifference(turn=turn, field="turns", recorded=f"{until} turns", found=f"{turn}, {found.reason}")
    if failure is None and (expected.end, expected.reason) != (found.end, found.reason):
        turn = max(0, len(expected.turns) - 1)
        return FirstDifference(turn=turn, field="end", recorded=expected.reason, found=_ending(found))
    return None


def _ending(trace: Trace) -> str:
    return trace.reason if trace.failure is None else f"{trace.reason}: {trace.failure.message}"[:_SHOWN]


def _in_turn(old: Turn, new: Turn) -> FirstDifference | None:
    for number, (a, b) in enumerate(zip(old.steps, new.steps, strict=False)):
        for field in ("observation", "is_error"):
            was, now = getattr(a, field), getattr(b, field)
            if was != now:
                sides = (plain(was), plain(now)) if field == "observation" else (str(was), str(now))
                recorded, found = (side[:_SHOWN] for side in sides)
                return FirstDifference(turn=old.index, step=number, field=field, recorded=recorded, found=found)
    if len(old.steps) != len(new.steps):
        return FirstDifference(
            turn=old.index, field="turns", recorded=f"{len(old.steps)} steps", found=f"{len(new.steps)}"
        )
    if old.state_digest != new.state_digest:
        return FirstDifference(turn=old.index, field="state_digest", recorded=old.state_digest, found=new.state_digest)
    return None


async def content(world: State) -> str:
    """Returns the digest of a world's content without its clock and random draws."""
    own = await resource.fork(world)
    own.shared.clock.now = 0.0
    own.shared.rng = Rng()
    own.shared.finished = None
    return await resource.digest(own)


def contradicts(world: State, suspect: Suspect) -> bool:
    """True if the world holds the written value while a read showed the one before."""
    found = [values[suspect.field] for values in _entities(world, suspect.key) if suspect.field in values]
    return bool(found) and all(codec.dumps(value) == codec.dumps(suspect.new) for value in found)


def _entities(value: object, key: str) -> list[dict[str, Any]]:
    """Returns all objects in a world that stand under a key or have it as `id`."""
    if isinstance(value, Table):
        rows: Table[Any] = value  # pyright: ignore[reportUnknownVariableType]  # of whatever rows
        return [fields(rows[key])] if key in rows else []
    items = sequence(value)
    if items is not None:
        return [one for item in items for one in _entities(item, key)]
    held = fields(value)
    own = [held] if held.get("id") == key else [fields(held[key])] if fields(held.get(key)) else []
    return own + [one for name, item in held.items() if name not in (key, "shared") for one in _entities(item, key)]
