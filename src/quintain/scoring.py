"""Scoring of one episode, or of a group: runs the scoring functions of a verifier on views of its worlds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic

import msgspec

from . import codec, resource
from .environment import Environment
from .errors import BROKEN, EpisodeError, Frame, JudgeError, author_frames, blame
from .state import S
from .task import Task
from .trace import Level, Reward, Step, Trace, Turn
from .verifier import Criterion, EpisodeView, GroupView, StepView, TurnView


class Moment(Generic[S]):
    """A world at one moment, taken apart, and the view of it that all scoring functions share."""

    def __init__(self, parts: resource.Parts, view: S) -> None:
        self.view = view
        self._parts = parts
        self._digest = ""
        self._digests: list[str] = []

    @classmethod
    async def of(cls, world: S, parts: resource.Parts) -> Moment[S]:
        own = resource.Parts(parts.plain, await resource.each("fork", parts.held)) if parts.held else parts
        return cls(own, resource.join(type(world), own.plain, own.held and await resource.each("fork", own.held)))

    async def copy(self) -> S:
        """Returns a world of its own."""
        return resource.join(type(self.view), self._parts.plain, await resource.each("fork", self._parts.held))

    async def digest(self) -> str:
        self._digest = self._digest or await resource.digest(self.view, is_copy=True)
        return self._digest

    async def equals(self, parts: resource.Parts) -> bool:
        """True if the world that these parts come from has the content of this moment, to the byte."""
        return parts.plain == self._parts.plain and (not parts.held or await self._holds(parts.held))

    async def is_shown_by(self, copy: S) -> bool:
        """True if a copy, or the view, still has the content of this moment."""
        plain, held = resource.split(copy)
        # The bytes of a copy may be others: 1.0 for an int in a float's place, sets in another order.
        if plain != self._parts.plain and plain != resource.split(await self.copy()).plain:
            return False
        return not held or await self._holds(held)

    async def _holds(self, held: list[Any]) -> bool:
        self._digests = self._digests or await resource.each("digest", self._parts.held)
        return await resource.each("digest", held) == self._digests


class Scoring(Generic[S]):
    """Runs the scoring functions of one episode on views of its world: one for each distinct world, shared.

    No function can change the world. One that changes a view ends the episode as a Failure of component V that has its
    name. What a function raises leaves these methods; one that takes too long raises DeadlineExceeded.

    Attributes:
        watches_steps: True if the verifier has step-level criteria, which need the world before each step.
        watches_turns: True if it has turn-level criteria or phases, which need the world before each turn.
        reached: Names of the phases that have been awarded; grows in place.
        is_stale: Set it when the world may have changed.
        unchecked: Calls of scoring functions since the last check of their views.
    """

    def __init__(self, env: Environment[S], task: Task[S], *, start: S, reached: set[str] | None = None) -> None:
        self._env = env
        self._verifier = verifier = env.verifier
        self._task = task
        self._start = start
        self.is_stale = True
        self._last: Moment[S] | None = None
        self.unchecked: list[tuple[Criterion[S], Callable[[S, S], Any], tuple[Moment[S], Moment[S]]]] = []
        self.watches_steps = bool(verifier.at(Level.STEP))
        self.watches_turns = bool(verifier.at(Level.TURN) or verifier.at(Level.PHASE))
        self.reached = set[str]() if reached is None else reached

    async def digest(self, world: S) -> str:
        """Returns the digest of a world, from its view if there will be one."""
        if self.watches_steps or self.watches_turns:
            return await (await self._moment(world)).digest()
        return await resource.digest(world)

    async def moment(self, world: S) -> Moment[S]:
        """Returns the moment in which a world is; the same one as before if nothing changed.

        Raises:
            EpisodeError: Component S, `quintain:state_bug`: a tool put something into it that cannot be copied.
        """
        try:
            return await self._moment(world)
        except (Exception, SystemExit) as error:
            message = f"the world cannot be copied: {type(error).__name__}: {error}"
            raise EpisodeError(message, component="S", kind="quintain:state_bug") from error

    async def step(self, before: Moment[S], step: Step, state: S, *, role: str, turn: int, index: int) -> list[Reward]:
        """Returns the rewards of the step-level criteria for one call."""

        def make(before: S, after: S) -> StepView[S]:
            return StepView(self._task, before, step, after, role)

        moments = before, await self.moment(state)
        return [await self._score(c, make, moments, turn=turn, step=index) for c in self._verifier.at(Level.STEP)]

    async def turn(self, before: Moment[S], turn: Turn, state: S) -> list[Reward]:
        """Returns the rewards of the turn-level criteria and of the phases that a turn reached."""

        def make(before: S, after: S) -> TurnView[S]:
            return TurnView(self._task, before, turn, after)

        moments = before, await self.moment(state)
        rewards: list[Reward] = []
        for criterion in (*self._verifier.at(Level.TURN), *self._verifier.at(Level.PHASE)):
            is_phase = criterion.level is Level.PHASE
            if is_phase and (criterion.name in self.reached or criterion.after not in {None, *self.reached}):
                continue
            reward = await self._score(criterion, make, moments, turn=turn.index)
            if is_phase and reward.value:
                self.reached.add(criterion.name)
            if reward.value or not is_phase:
                rewards.append(reward)
        return rewards

    async def trajectory(self, state: S, trace: Trace) -> list[Reward]:
        """Returns the rewards of the trajectory-level criteria, and empty ones of criteria that gave none before."""
        given = {reward.name for turn in trace.turns for reward in turn.rewards}
        end, self.is_stale = await self.moment(state), True
        start = await self.moment(self._start)
        rewards: list[Reward] = []
        for criterion in self._verifier.criteria:
            if criterion.level is Level.TRAJECTORY:
                own = {"turns": list(trace.turns), "rewards": list(rewards), "tags": dict(trace.tags)}
                make = partial(EpisodeView, self._task, trace=msgspec.structs.replace(trace, **own))
                rewards.append(await self._score(criterion, make, (start, end)))
            elif criterion.name not in given:
                is_phase = criterion.level is Level.PHASE
                silent = criterion.silent("not reached", 0.0) if is_phase else criterion.silent("nothing to judge")
                rewards.append(silent)
        await self.check()
        return rewards

    async def check(self) -> None:
        """Compares the views with the worlds that they show.

        Raises:
            EpisodeError: Component V: a scoring function changed one since the last check.
        """
        calls, self.unchecked = self.unchecked, []
        views = {id(moment): moment for _, _, moments in calls for moment in moments}
        if all([await moment.is_shown_by(moment.view) for moment in views.values()]):
            return
        suspects = [criterion.name for criterion, _, _ in calls]
        for criterion, make, moments in calls:  # Each one again, on copies of its own.
            worlds = [await moment.copy() for moment in moments]
            await self._run(criterion, make(*worlds))
            if not all([await moment.is_shown_by(world) for moment, world in zip(moments, worlds, strict=True)]):
                suspects = [criterion.name]
                break
        names = " or ".join(map(repr, suspects))
        message = f"scoring function {names} changed the world that it may only read; let it change a .copy()"
        raise EpisodeError(message, component="V", kind="verifier_error")

    async def _moment(self, world: S) -> Moment[S]:
        if self._last is None or self.is_stale:
            parts = resource.split(world)
            if self._last is None or not await self._last.equals(parts):
                self._last = await Moment[S].of(world, parts)
            self.is_stale = False
        return self._last

    async def _score(
        self, criterion: Criterion[S], make: Callable[[S, S], Any], moments: tuple[Moment[S], Moment[S]], **where: int
    ) -> Reward:
        self.unchecked.append((criterion, make, moments))
        view = make(moments[0].view, moments[1].view)
        reward = criterion.reward(await self._run(criterion, view), **where)
        return _recorded(reward)

    async def _run(self, criterion: Criterion[S], view: Any) -> Any:
        return await self._env.executor.call(self._env.config.verifier_timeout_s, criterion.fn, view)


async def judge_group(env: Environment[S], views: Sequence[EpisodeView[S]]) -> tuple[Frame, ...]:
    """Runs the group-level criteria on episodes of one task, and puts their verdicts into the traces.

    If a criterion raises, takes longer than the time limit of a verifier per episode, or does not return one verdict
    in its range per episode, all episodes fail. Then the lines of the author's code that led to it are returned.
    """
    limit_s = env.config.verifier_timeout_s
    for criterion in env.verifier.at(Level.GROUP):
        # The criterion gets traces of its own: it cannot change a record.
        copies = [msgspec.structs.replace(v, trace=codec.loads(v.trace.to_bytes(), Trace)) for v in views]
        view = GroupView(views[0].task, tuple(copies))
        try:
            given = await env.executor.call(limit_s and limit_s * len(views), criterion.fn, view)
            rewards = [_recorded(criterion.reward(one)) for one in given]
            pairs = list(zip(views, rewards, strict=True))
        except BROKEN as error:
            kind = error.kind if isinstance(error, JudgeError) else "judge_failed"
            failed = JudgeError(f"criterion {criterion.name!r}: {type(error).__name__}: {error}", kind=kind)
            for trace in (one.trace for one in views):
                trace.fail(blame(failed, component="V", kind=kind, stage="verification", turn=len(trace.turns)))
            return author_frames(error)
        for episode, reward in pairs:
            add_verdicts(env, episode.trace, {criterion.name: reward})
    return ()


def add_verdicts(env: Environment[Any], trace: Trace, rewards: Mapping[str, Reward]) -> None:
    """Puts rewards into a scored trace, in place of those of the same name, and computes its score again."""
    trace.rewards = [rewards.get(old.name, old) for old in trace.rewards]
    trace.score = env.verifier.total(trace.rewards)


def _recorded(reward: Reward) -> Reward:
    """Returns the reward as a record holds it: reason and details of the author's become plain data."""
    if type(reward.reason) is str and not reward.reason and not reward.details:
        return reward
    return codec.loads(codec.dumps(reward), Reward)
