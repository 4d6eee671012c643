"""The verifier at work on one episode: which criterion sees what, and when."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from . import codec, resource
from .deadline import guarded
from .errors import EpisodeError
from .state import State
from .task import Task
from .trace import Level, Reward, Trace, Turn
from .verifier import Criterion, EpisodeView, StepView, TurnView, Verifier

S = TypeVar("S", bound=State)


class Scoring(Generic[S]):
    """Judges on copies: each criterion gets its own, so none can change the world or what another one sees.

    Whatever a criterion raises comes out of these methods; a criterion that takes too long raises DeadlineExceeded.

    Attributes:
        watches_steps: Whether `step` has anything to judge, and so needs the world before.
        watches_turns: Whether `turn` has.
        reached: Names of the phases that have been awarded.
    """

    def __init__(self, verifier: Verifier[S], task: Task[S], *, start: S, timeout_s: float | None) -> None:
        self._verifier = verifier
        self._task = task
        self._start = start
        self._timeout_s = timeout_s
        self.watches_steps = bool(verifier.at(Level.STEP))
        self.watches_turns = bool(verifier.at(Level.TURN) or verifier.at(Level.PHASE))
        self.reached: set[str] = set()

    def fork(self) -> Scoring[S]:
        twin = Scoring(self._verifier, self._task, start=self._start, timeout_s=self._timeout_s)
        twin.reached = set(self.reached)
        return twin

    async def step(self, effect: StepView[S], **where: int) -> list[Reward]:
        """What the step-level criteria say of one call; `where` names its turn and step."""
        rewards: list[Reward] = []
        for criterion in self._verifier.at(Level.STEP):
            before, after = await copied(effect.before), await copied(effect.after)
            view = msgspec.structs.replace(effect, before=before, after=after)
            rewards.append(await self._verdict(criterion, view, **where))
        return rewards

    async def turn(self, before: S, turn: Turn, after: S) -> list[Reward]:
        """What the turn-level criteria say, and the phases that this turn reached."""
        rewards: list[Reward] = []
        for criterion in (*self._verifier.at(Level.TURN), *self._verifier.at(Level.PHASE)):
            is_phase = criterion.level is Level.PHASE
            if is_phase and (criterion.name in self.reached or criterion.after not in {None, *self.reached}):
                continue
            view = TurnView(self._task, await copied(before), turn, await copied(after))
            verdict = await self._verdict(criterion, view, turn=turn.index)
            if is_phase and not verdict.value:
                continue
            if is_phase:
                self.reached.add(criterion.name)
            rewards.append(verdict)
        return rewards

    async def trajectory(self, state: S, trace: Trace) -> list[Reward]:
        """What the trajectory-level criteria say; the others are accounted for if they never spoke."""
        given = {reward.name for turn in trace.turns for reward in turn.rewards}
        rewards: list[Reward] = []
        for criterion in self._verifier.criteria:
            if criterion.level is Level.TRAJECTORY:
                own = {"turns": list(trace.turns), "rewards": list(rewards), "tags": dict(trace.tags)}
                record = msgspec.structs.replace(trace, **own)
                view = EpisodeView(self._task, await copied(self._start), await copied(state), record)
                rewards.append(await self._verdict(criterion, view))
            elif criterion.name not in given:
                is_phase = criterion.level is Level.PHASE
                silent = criterion.silent("not reached", 0.0) if is_phase else criterion.silent("nothing to judge")
                rewards.append(silent)
        return rewards

    async def _verdict(self, criterion: Criterion[S], view: Any, **where: int) -> Reward:
        reward = criterion.reward(await guarded(self._timeout_s, criterion.fn, view), **where)
        return codec.loads(codec.dumps(reward), Reward)  # so that its reason is one that a record can hold


async def copied(world: S) -> S:
    """A copy of the world.

    Raises:
        EpisodeError: Part S, `quintain:state_bug`: a tool put something into it that cannot be copied.
    """
    try:
        return await resource.fork(world)
    except (Exception, SystemExit) as error:
        message = f"the world cannot be copied: {type(error).__name__}: {error}"
        raise EpisodeError(message, component="S", kind="quintain:state_bug") from error
