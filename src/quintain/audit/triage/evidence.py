"""What the environment itself can say about a record: play it again, grade it again, play the task's own solution.

All of it happens on fresh worlds and takes nothing from the record but the replies of the models. It is plain data, so
that another process, under another hash seed, can gather it too.
"""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from quintain import codec, resource
from quintain.chain import TaskChain, before
from quintain.deadline import DeadlineExceeded, guarded
from quintain.environment import Environment
from quintain.episode import BROKEN
from quintain.errors import WALL_CLOCK_KINDS, QuintainError, ToolError
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

from .plain import fields, sequence
from .played import Played
from .shadow import Suspect

PATIENCE_S = 5.0
"""A call that once hung gets so long to show that the world answers."""
_SHOWN = 300


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """The first place where a replay left its record.

    Attributes:
        field: "observation", "is_error", "state_digest", "rewards", "turns" or "end".
        idle: Whether the recorded world did not change in a turn in which the replayed one did.
    """

    turn: int
    step: int | None = None
    field: str
    recorded: str
    found: str
    idle: bool = False


class Evidence(msgspec.Struct, kw_only=True):
    """What playing one record again showed.

    Attributes:
        missing: Why it could not be played; empty when it could.
        same_version: Whether the environment's code is the one that made the record.
        left: Where the replay differs; None when it agrees.
        steady: Whether replays agree with one another.
        broke: The kind of failure that the replay ended with.
        scores: What the verifier says now, each time it is asked; None for "no verdict".
        criteria: The single verdicts of the last time.
        moved: Whether the replayed world's content is another at the end.
        stale: Positions in the list of suspects of reads that the world itself contradicts.
        cold: The first call, after a change, that a fresh copy of the same world answers otherwise. So something that
            is no part of the world has answered: what a copy does not have, such as a cache.
    """

    missing: str = ""
    same_version: bool = True
    left: Left | None = None
    steady: bool = True
    broke: str = ""
    scores: list[float | None] = []
    criteria: dict[str, float | None] = {}
    moved: bool = True
    stale: tuple[int, ...] = ()
    cold: Left | None = None


class Witness:
    """Plays records again in their environment.

    Args:
        env: What made them.
        times: How often each is graded again, 1 and up.
    """

    def __init__(self, env: Environment[Any], *, times: int = 3) -> None:
        self._env = env
        self._days: TaskChain[Any] = TaskChain(env)
        self._times = times

    async def examine(self, one: Played, task: Task[Any] | str, suspects: list[Suspect]) -> Evidence:
        """Gather what there is on one episode.

        Args:
            one: The record.
            task: What it is of; or why that is not known.
            suspects: Reads that look stale.
        """
        trace = one.trace
        if trace is None or isinstance(task, str):
            return Evidence(missing=str(task) if trace is not None else "only our own traces can be played again")
        try:
            if trace.task_digest and await task.digest(task.world()) != trace.task_digest and not trace.continues:
                return Evidence(missing="the task has another content than the one that was played")
            place = before(trace)
            start = None if place is None else await self._days.world(place)
            evidence = await self._played(trace, task, start=start, suspects=suspects)
        except (QuintainError, *BROKEN) as error:
            return Evidence(missing=f"it cannot be played again: {type(error).__name__}: {error}"[:_SHOWN])
        if task.day:
            self._days.advance(task, trace, None)
        return evidence

    async def _played(self, trace: Trace, task: Task[Any], *, start: Any, suspects: list[Suspect]) -> Evidence:
        first = await self._again(trace, task, start)
        evidence = Evidence(same_version=trace.fingerprint == self._env.fingerprint)
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

    async def _cold(self, trace: Trace, task: Task[Any], start: Any) -> Left | None:
        """Ask a copy of the world, before each call, what it would answer."""
        env = self._env
        seen: list[Left | None] = []

        async def ask(effect: StepView[Any]) -> Score:
            step, tool = effect.step, env.tools.get(effect.step.call.name)
            found = step.observation
            if tool is not None and step.fault is None and not step.is_error:
                arguments = tool.decode(step.call.arguments, strict=trace.config.arguments == "strict")
                found = await _answer(tool, effect.before, arguments, limit_s=trace.config.tool_timeout_s)
            recorded, now = plain(step.observation)[:_SHOWN], plain(found)[:_SHOWN]
            same = found == step.observation
            seen.append(None if same else Left(turn=0, field="observation", recorded=recorded, found=now))
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
        """Play the replies once more; a call that hung then may not hang for long now."""
        config = trace.config
        if trace.failure is not None and trace.failure.kind in WALL_CLOCK_KINDS:
            limit = min(PATIENCE_S, config.tool_timeout_s or PATIENCE_S)
            config = msgspec.structs.replace(config, tool_timeout_s=limit)
        return await play_episode(
            replay_env(self._env, trace).replace(config=config), task, ReplayModel(trace), start=start, **_names(trace)
        )

    async def _graded(self, again: Again[Any], task: Task[Any], began: Any) -> float | None:
        """The score of the same end, asked for once more."""
        env, trace = self._env, again.record.trace
        scoring = Scoring(env.verifier, task, start=began, timeout_s=env.config.verifier_timeout_s)
        asked = msgspec.structs.replace(trace, rewards=[], score=None)
        try:
            return env.verifier.total(await scoring.trajectory(again.state, asked))
        except (DeadlineExceeded, *BROKEN):
            return None  # no verdict; the caller compares it with the others


def _names(trace: Trace) -> dict[str, Any]:
    return {name: getattr(trace, name) for name in ("seed", "member", "attempt", "continues", "split", "agent")}


def _reads_on(trace: Trace) -> bool:
    """Whether something is called after the world has changed."""
    digests = [turn.state_digest for turn in trace.turns if turn.steps]
    return any(a != b for a, b in itertools.pairwise(digests))


async def _answer(tool: Tool, world: State, arguments: dict[str, Any], *, limit_s: float | None) -> Content:
    try:
        return observe(await guarded(limit_s, tool.bind(world), **arguments))
    except ToolError as refusal:
        return str(refusal)


def difference(expected: Trace, found: Trace) -> Left | None:
    """The first place where what happened differs; names, versions and real time apart.

    What a real clock or a model's endpoint decided is not compared, but everything before it.
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
        return Left(turn=turn, field="turns", recorded=f"{until} turns", found=f"{turn}, {found.reason}")
    if failure is None and (expected.end, expected.reason) != (found.end, found.reason):
        turn = max(0, len(expected.turns) - 1)
        return Left(turn=turn, field="end", recorded=expected.reason, found=_ending(found))
    return None


def _ending(trace: Trace) -> str:
    return trace.reason if trace.failure is None else f"{trace.reason}: {trace.failure.message}"[:_SHOWN]


def _in_turn(old: Turn, new: Turn) -> Left | None:
    for number, (a, b) in enumerate(zip(old.steps, new.steps, strict=False)):
        for field in ("observation", "is_error"):
            was, now = getattr(a, field), getattr(b, field)
            if was != now:
                sides = (plain(was), plain(now)) if field == "observation" else (str(was), str(now))
                recorded, found = (side[:_SHOWN] for side in sides)
                return Left(turn=old.index, step=number, field=field, recorded=recorded, found=found)
    if len(old.steps) != len(new.steps):
        return Left(turn=old.index, field="turns", recorded=f"{len(old.steps)} steps", found=f"{len(new.steps)}")
    if old.state_digest != new.state_digest:
        return Left(turn=old.index, field="state_digest", recorded=old.state_digest, found=new.state_digest)
    return None


async def content(world: State) -> str:
    """Names what a world holds, but for its time and its draws: what merely passed is no act."""
    own = await resource.fork(world)
    own.shared.clock.now = 0.0
    own.shared.rng = Rng()
    own.shared.finished = None
    return await resource.digest(own)


def contradicts(world: State, suspect: Suspect) -> bool:
    """Whether the world holds the value that was written, while a read showed the one before."""
    found = [values[suspect.field] for values in _entities(world, suspect.key) if suspect.field in values]
    return bool(found) and all(codec.dumps(value) == codec.dumps(suspect.new) for value in found)


def _entities(value: object, key: str) -> list[dict[str, Any]]:
    """Everything in a world that stands under a key, or says that it is its `id`."""
    if isinstance(value, Table):
        rows: Table[Any] = value  # pyright: ignore[reportUnknownVariableType]  # of whatever rows
        return [fields(rows[key])] if key in rows else []
    items = sequence(value)
    if items is not None:
        return [one for item in items for one in _entities(item, key)]
    held = fields(value)
    own = [held] if held.get("id") == key else [fields(held[key])] if fields(held.get(key)) else []
    return own + [one for name, item in held.items() if name not in (key, "shared") for one in _entities(item, key)]
