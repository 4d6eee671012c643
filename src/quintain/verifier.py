"""Verifier (V): scoring functions at five levels, their ranges, and the weighted score."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Literal, TypedDict, Unpack, cast, overload

import msgspec

from .errors import DefinitionError, EpisodeError, short
from .state import S
from .task import Task
from .trace import Level, Reward, Step, Trace, Turn


class EpisodeView(msgspec.Struct, Generic[S], frozen=True):
    """A finished episode.

    Attributes:
        task: What was asked.
        start: The world in which it began: the task's own, unless the episode continued a day.
        state: The world that it left.
        trace: The record.
    """

    task: Task[S]
    start: S
    state: S
    trace: Trace

    @property
    def answer(self) -> str:
        """The agent's last words; empty when it said none."""
        said = [turn.reply.message.text for turn in self.trace.turns if turn.thread == 0]
        return said[-1] if said else ""


class TurnView(msgspec.Struct, Generic[S], frozen=True):
    """One turn, and the world before and after it."""

    task: Task[S]
    before: S
    turn: Turn
    after: S


class StepView(msgspec.Struct, Generic[S], frozen=True):
    """One call of an actor, and the world before and after it."""

    task: Task[S]
    before: S
    step: Step
    after: S
    role: str
    """Whose call it was."""


class GroupView(msgspec.Struct, Generic[S], frozen=True):
    """The valid episodes of one group: at least two of the same task, in the order of the members."""

    task: Task[S]
    episodes: tuple[EpisodeView[S], ...]


class Score(msgspec.Struct, frozen=True):
    """A verdict with its reason, and its parts as plain data.

    `value` None means that the criterion does not apply; the score is then made of the others.
    """

    value: float | None
    reason: str = ""
    details: dict[str, Any] = {}


Verdict = float | Score | Awaitable[float | Score]
Verdicts = Sequence[float | Score] | Awaitable[Sequence[float | Score]]
_Trajectory = Literal["trajectory"]
_SCORED = (Level.TRAJECTORY, Level.GROUP)


class _RewardRule(TypedDict, total=False):
    """Arguments of `reward` beside its level."""

    weight: float
    low: float
    high: float
    normalize: bool
    external: bool


class Criterion(msgspec.Struct, Generic[S], frozen=True, kw_only=True):
    """A scoring function with its name, level, weight and range.

    Attributes:
        low, high: The range of raw values; one outside it is a Failure, never clipped.
        normalize: Deliver (raw - low) / (high - low) instead of raw.
        after: At phase level, the phase that must have been reached before.
        external: The verdict does not follow from the episode alone, as that of a language model. A replay takes it
            from the record. Group-level verdicts are treated so too.
    """

    name: str
    level: Level
    fn: Callable[[Any], Verdict | Verdicts]
    weight: float = 1.0
    low: float = 0.0
    high: float = 1.0
    normalize: bool = False
    after: str | None = None
    external: bool = False

    def __post_init__(self) -> None:
        for name in ("weight", "low", "high"):  # A float has other bytes in a trace than its int.
            msgspec.structs.force_setattr(self, name, float(getattr(self, name)))
        if not (math.isfinite(self.weight) and self.low < self.high and math.isfinite(self.high - self.low)):
            got = f"weight={self.weight}, low={self.low}, high={self.high}"
            raise DefinitionError(f"criterion {self.name!r} needs a finite weight and low < high, got {got}")

    def reward(self, verdict: object, **where: int) -> Reward:
        """Returns the record of what `fn` returned, for the `turn` and the `step` in `where`.

        Raises:
            EpisodeError: Part V, `quintain:reward_out_of_range`: the raw value is outside [low, high] or not a number.
            TypeError: The criterion returned neither a number nor a Score.
        """
        said = verdict if isinstance(verdict, Score) else Score(cast(float, verdict))
        raw: object = said.value
        if not isinstance(raw, (int, float)) and not (raw is None and isinstance(verdict, Score)):
            raise TypeError(f"criterion {self.name!r} must return a number or a Score, got {short(raw)}")
        if raw is not None and not self.low <= raw <= self.high:
            message = (
                f"criterion {self.name!r} returned {raw}, outside its range (low={self.low}, high={self.high}); return "
                "a value inside, or declare the range, as in @reward(low=-1, high=2)"
            )
            raise EpisodeError(message, component="V", kind="quintain:reward_out_of_range")
        number = None if raw is None else float(raw)
        value = (number - self.low) / (self.high - self.low) if self.normalize and number is not None else number
        own: dict[str, Any] = {"name": self.name, "level": self.level, "weight": self.weight, **where}
        return Reward(raw=number, value=value, reason=said.reason, details=said.details, **own)

    def silent(self, reason: str, value: float | None = None) -> Reward:
        """The reward of a criterion that had nothing to judge."""
        return Reward(name=self.name, level=self.level, raw=value, value=value, weight=self.weight, reason=reason)


@overload
def reward(fn: Callable[[EpisodeView[S]], Verdict], /) -> Criterion[S]: ...
@overload
def reward(
    *, level: _Trajectory = ..., **rule: Unpack[_RewardRule]
) -> Callable[[Callable[[EpisodeView[S]], Verdict]], Criterion[S]]: ...
@overload
def reward(
    *, level: Literal["turn"], **rule: Unpack[_RewardRule]
) -> Callable[[Callable[[TurnView[S]], Verdict]], Criterion[S]]: ...
@overload
def reward(
    *, level: Literal["step"], **rule: Unpack[_RewardRule]
) -> Callable[[Callable[[StepView[S]], Verdict]], Criterion[S]]: ...
@overload
def reward(
    *, level: Literal["group"], **rule: Unpack[_RewardRule]
) -> Callable[[Callable[[GroupView[S]], Verdicts]], Criterion[S]]: ...
def reward(
    fn: Callable[[Any], Any] | None = None,
    /,
    *,
    level: str = "trajectory",
    weight: float = 1.0,
    low: float = 0.0,
    high: float = 1.0,
    normalize: bool = False,
    external: bool = False,
) -> Any:
    """Makes a criterion of a function, which receives the view of its level and may be async.

    The views are EpisodeView (trajectory), TurnView (turn), StepView (step) and GroupView (group). A function of a
    group returns one number or Score per episode, in their order; it runs if `rollouts` played a group with two or more
    valid members, else its criterion is skipped. All others return one number or Score.

    Args:
        fn: The function, where the decorator has no parentheses.
        level: When the function runs: "step", "turn", "trajectory" or "group".
        weight: Factor of the value in the score.
        low: Lowest value that the function may return. A value outside the range fails the episode.
        high: Highest value that the function may return.
        normalize: Deliver (value - low) / (high - low) instead of the value.
        external: The verdict does not follow from the episode alone, as that of a language model; a replay takes it
            from the record.

    Raises:
        DefinitionError: The level is unknown, the weight is not finite, or low is not below high.
    """
    if level not in ("step", "turn", "trajectory", "group"):
        raise DefinitionError(f"the level of a reward is 'step', 'turn', 'trajectory' or 'group', got {level!r}")

    def wrap(fn: Callable[[Any], Any]) -> Criterion[Any]:
        rule = _RewardRule(weight=weight, low=low, high=high, normalize=normalize, external=external)
        return Criterion(name=fn.__name__, level=Level(level), fn=fn, **rule)

    return wrap if fn is None else wrap(fn)


def phase(*, after: str | None = None, weight: float = 1.0) -> Callable[[Callable[[TurnView[S]], bool]], Criterion[S]]:
    """Turn a predicate into a milestone: worth 1, once, at the turn where it first holds; 0 when it never does.

    Args:
        after: Name of the phase that must have been reached before, in an earlier turn or the same.
        weight: Its share among the phases.
    """

    def wrap(fn: Callable[[TurnView[S]], bool]) -> Criterion[S]:
        return Criterion(name=fn.__name__, level=Level.PHASE, fn=fn, weight=weight, after=after)

    return wrap


class Verifier(Generic[S]):
    """Criteria with distinct names, and how the trajectory-level ones make the score.

    Args:
        criteria: In the order in which they judge; at least one at trajectory or group level.
        combine: "sum" adds value * weight, "product" multiplies the values; skipped criteria count in neither.

    Raises:
        DefinitionError: A function lacks its decorator, names repeat, nothing judges the trajectory, a phase follows
            an unknown one, `combine` is unknown, or a weight is given where values are multiplied.
    """

    def __init__(self, *criteria: Criterion[S], combine: Literal["sum", "product"] = "sum") -> None:
        if wrong := [c for c in cast(tuple[object, ...], criteria) if not isinstance(c, Criterion)]:
            name = getattr(wrong[0], "__name__", None)
            advice = f"; put @reward above {name}" if name else "; pass them one by one, as Verifier(one, other)"
            raise DefinitionError(f"Verifier takes functions with @reward or @phase, got {short(wrong[0])}{advice}")
        if cast(object, combine) not in ("sum", "product"):
            raise DefinitionError(f"combine must be 'sum' or 'product', got {combine!r}; weights of 1/n make a mean")
        names = [c.name for c in criteria]
        if len(set(names)) != len(names):
            raise DefinitionError(f"criteria need distinct names, got {names}")
        if not any(c.level in _SCORED for c in criteria):
            raise DefinitionError(f"nothing judges the whole trajectory, as a @reward does; criteria: {names}")
        earlier: set[str] = set()
        for c in criteria:
            if c.after is not None and c.after not in earlier:
                raise DefinitionError(f"phase {c.name!r} follows {c.after!r}, no phase listed before it: {names}")
            if c.level is Level.PHASE:
                earlier.add(c.name)
            if combine == "product" and c.level in _SCORED and c.weight != 1:
                raise DefinitionError(f"criterion {c.name!r} has weight {c.weight}, but values are multiplied")
        self.criteria = criteria
        self.combine: Literal["sum", "product"] = combine
        self._by_level = {level: tuple(c for c in criteria if c.level is level) for level in Level}

    def at(self, level: Level) -> tuple[Criterion[S], ...]:
        """The criteria of one level, in order."""
        return self._by_level[level]

    def total(self, rewards: list[Reward]) -> float | None:
        """The score that rewards of the trajectory and the group add up (or multiply) to.

        It is None if nothing but a group-level criterion may still give a verdict.

        Raises:
            EpisodeError: Every criterion was skipped, so no score exists; or the product is beyond all floats.
            OverflowError: The sum is.
        """
        counted = [r for r in rewards if r.level in _SCORED and r.value is not None]
        if not counted and self.at(Level.GROUP):
            return None
        if not counted:
            raise EpisodeError("every trajectory-level criterion was skipped", component="V", kind="verifier_error")
        if self.combine == "product":
            score = math.prod(r.value for r in counted if r.value is not None)
        else:
            score = math.fsum(r.value * r.weight for r in counted if r.value is not None)
        if not math.isfinite(score):
            raise EpisodeError(f"the score is {score}", component="V", kind="quintain:reward_out_of_range")
        return score
