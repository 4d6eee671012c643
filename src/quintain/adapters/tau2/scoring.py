"""Tau2-bench's components of reward, each a criterion of its own. The score is the product of those a task asks for."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar, cast

from quintain import codec
from quintain.errors import DefinitionError, JudgeError
from quintain.task import Task
from quintain.trace import End, ToolCall, Trace
from quintain.verifier import EpisodeView, Score, Verifier, reward

from .convention import respond
from .data import Action, Criteria, Function
from .world import World, same

F = TypeVar("F", bound=Callable[..., Any])

Judge = Callable[[EpisodeView[World], str], Awaitable[bool]]
"""True if a sentence about the conversation is true."""
Assertions = Literal["judge", "assume-true"]


class Gold:
    """Final states of the reference solutions; each is played once."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, str], World] = {}

    def state(self, task: Task[World]) -> World:
        """Returns the world after the task's actions; failing ones are left out, as in the reference."""
        key = (task.id, codec.digest(codec.dumps(task.truth)))
        if key not in self._states:
            world = task.world().copy()
            for action in task.truth.actions or ():
                respond(world, action.name, action.arguments, requestor=action.requestor)
            self._states[key] = world
        return self._states[key]


def verifier(*, nl_assertions: Assertions, judge: Judge | None = None) -> Verifier[World]:
    """Returns all components, in the reference's order.

    Args:
        nl_assertions: "judge" asks `judge` for each sentence about the conversation, and fails the episode where there
            is none; "assume-true" takes them for granted, and says so in the record.
        judge: Answers for the sentences.
    """
    gold = Gold()

    @reward
    @_component("DB")
    def DB(outcome: EpisodeView[World]) -> Score:  # noqa: N802 (the reference's name)
        """The database ends as the reference solution leaves it."""
        truth: Criteria = outcome.task.truth
        if truth.actions is None and truth.env_assertions is None:
            return Score(1.0, "nothing is expected of the database")
        if same(gold.state(outcome.task), outcome.state):
            return Score(1.0, "the database ends as it should")
        return Score(0.0, "the database differs from the reference solution's")

    @reward
    async def NL_ASSERTION(outcome: EpisodeView[World]) -> Score:  # noqa: N802
        """Every sentence about the conversation is true."""
        settled = _settled("NL_ASSERTION", outcome)
        if settled is not None:
            return settled
        sentences: list[str] = outcome.task.truth.nl_assertions or []
        if not sentences:
            return Score(1.0, "none to judge")
        if nl_assertions == "assume-true":
            return Score(1.0, f"{len(sentences)} assumed true, not judged")
        if judge is None:
            message = f"{len(sentences)} sentences need a judge; give one, or assume them true"
            raise JudgeError(message, kind="quintain:judge_missing")
        wrong = [sentence for sentence in sentences if not await judge(outcome, sentence)]
        return Score(float(not wrong), "; ".join(["judged false", *wrong]) if wrong else "all judged true")

    return Verifier(DB, ENV_ASSERTION, ACTION, NL_ASSERTION, COMMUNICATE, combine="product")


def _component(name: str) -> Callable[[F], F]:
    """Returns a criterion that judges only where the task asks for it, and only conversations that came to an end."""

    def wrap(judge: F) -> F:
        @functools.wraps(judge)
        def judged(outcome: EpisodeView[World]) -> Any:
            settled = _settled(name, outcome)
            return judge(outcome) if settled is None else settled

        return judged  # type: ignore[return-value]  # same signature

    return wrap


def _settled(name: str, outcome: EpisodeView[World]) -> Score | None:
    """Returns the verdict that needs no judging."""
    truth: Criteria | None = outcome.task.truth
    basis = truth.reward_basis if truth else ()
    if not basis and name == "DB":
        return Score(1.0, "this task is not judged")
    if name not in basis:
        return Score(None, "not in this task's reward basis")
    if outcome.trace.end is End.TRUNCATED:
        return Score(0.0, f"cut off by {outcome.trace.reason}")
    return None


@reward
@_component("ENV_ASSERTION")
def ENV_ASSERTION(outcome: EpisodeView[World]) -> Score:  # noqa: N802
    """The named functions of the final world return what is expected."""
    missed = [one.func_name for one, held in assertions_held(outcome.task.truth, outcome.state) if not held]
    return Score(float(not missed), f"not as expected: {', '.join(missed)}" if missed else "all as expected")


@reward
@_component("ACTION")
def ACTION(outcome: EpisodeView[World]) -> Score:  # noqa: N802
    """Every action of the reference solution was called."""
    missed = [action.name for action, done in actions_done(outcome.task.truth, outcome.trace) if not done]
    return Score(float(not missed), f"not called as expected: {', '.join(missed)}" if missed else "all called")


@reward
@_component("COMMUNICATE")
def COMMUNICATE(outcome: EpisodeView[World]) -> Score:  # noqa: N802
    """Scores 1.0 if the agent said everything that the customer had to learn."""
    missed = [info for info, said in infos_said(outcome.task.truth, outcome.trace) if not said]
    return Score(float(not missed), f"not said: {', '.join(missed)}" if missed else "all said")


def assertions_held(truth: Criteria, world: World) -> list[tuple[Function, bool]]:
    """Returns each function of the final world that is asserted, and whether it returns the expected value.

    Raises:
        DefinitionError: The domain has no such function.
    """
    held: list[tuple[Function, bool]] = []
    for one in truth.env_assertions or ():
        if not one.func_name.startswith("assert_") or (function := getattr(world, one.func_name, None)) is None:
            raise DefinitionError(f"a task asserts {one.func_name!r}, a function that {type(world).__name__} lacks")
        held.append((one, function(**one.arguments) == one.assert_value))
    return held


def actions_done(truth: Criteria, trace: Trace) -> list[tuple[Action, bool]]:
    """Returns each action of the reference solution, and whether some call of the trace equals it."""
    calls = [(call.name, _arguments(call)) for turn in trace.turns for call in turn.reply.message.calls]
    return [(action, any(_equal(action, name, said) for name, said in calls)) for action in truth.actions or ()]


def infos_said(truth: Criteria, trace: Trace) -> list[tuple[str, bool]]:
    """Returns each piece of information, and True if the agent's text has it, without case and commas."""
    texts = [turn.reply.message.text for turn in trace.turns if turn.role == "agent"]
    said = [text.lower().replace(",", "") for text in texts if text.strip()]
    return [(info, any(info.lower() in text for text in said)) for info in truth.communicate_info or ()]


def _equal(action: Action, name: str, arguments: dict[str, Any] | None) -> bool:
    if action.name != name or arguments is None:
        return False
    counted = arguments if action.compare_args is None else action.compare_args
    mine, theirs = ({key: a[key] for key in a if key in counted} for a in (action.arguments, arguments))
    return mine == theirs or not counted


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    """Returns the arguments of a call; None if the model wrote no JSON object, which never matches the reference."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        return None
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else None
