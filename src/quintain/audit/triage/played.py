"""One finished episode in a single form, whoever recorded it: what was asked, said, called, seen and earned.

The rules look at nothing else, so that a folder of another tool's logs is judged by the same functions as our own
traces. What a log does not say is None, never a default that a rule could mistake for a fact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from quintain.errors import Failure
from quintain.task import Task
from quintain.trace import End, Step, Trace, Turn, plain

from .plain import loaded, mapping

Form = Literal["quintain", "messages", "rollout", "inspect"]
"""Whose record it is: ours, a list of OpenAI messages, a row of verifiers, a sample of Inspect."""

_REFUSAL = re.compile(r"\s*(\{\s*\"error\"\s*:|error\b|exception\b|traceback \(most recent call last\))", re.IGNORECASE)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call and its answer.

    Attributes:
        turn, step: Where; turns count replies of all actors, steps the calls of one reply.
        arguments: Parsed; None where the text is no JSON object.
        raw: The text as the model wrote it.
        answered: Whether anything came back; a call that was dropped on its way has no answer.
        is_error: Whether it was refused or broke; guessed from the text where the log does not say.
        fault: The planned fault that the configuration injected here.
        seconds: How long it took, where the log says.
    """

    turn: int
    step: int
    role: str = "agent"
    name: str
    arguments: dict[str, Any] | None
    raw: str
    answered: bool = True
    observation: str = ""
    is_error: bool = False
    fault: str | None = None
    seconds: float | None = None

    @property
    def key(self) -> str:
        """Names tool and arguments: equal for equal calls, however they were spelled."""
        arguments = self.raw if self.arguments is None else json.dumps(self.arguments, sort_keys=True)
        return f"{self.name} {arguments}"


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One reply of a model.

    Attributes:
        heard: What the context got beyond earlier replies and answers: prompts, words of others.
        finish: Why the sampler stopped, in the endpoint's words.
        drawn: Completion tokens that the record holds; None where it holds none.
        counted: Completion tokens that the endpoint counted; None where it did not say.
    """

    turn: int
    role: str = "agent"
    text: str = ""
    reasoning: str = ""
    heard: tuple[str, ...] = ()
    calls: int = 0
    finish: str = ""
    drawn: int | None = None
    counted: int | None = None


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """What the log says went wrong outside the agent.

    Attributes:
        part: The letter to blame, where the log knows letters.
        kind: One of `quintain.errors.KINDS`; empty for a foreign log.
        turn: Turns that were complete.
    """

    part: str = ""
    kind: str = ""
    stage: str = ""
    type: str = ""
    message: str = ""
    turn: int = 0


class Played(msgspec.Struct, kw_only=True):
    """A finished episode.

    Attributes:
        place: File and line, so that a person finds it.
        index: Position in what was read.
        group: Names the episodes that start from the same task and seed.
        reward: As recorded; None where there is none, which `has_reward` tells apart from a field that is missing.
        components: Verdicts of the single criteria at trajectory level.
        criteria: Names that should have spoken; empty where nobody said.
        end: How it ended, where the log says.
        limit: Most replies that were allowed, where the log says.
        digests: Names the world after each turn; empty where the log has none.
        gold: The right answer, where the log has it beside the episode.
        seconds: Parts of the time to seconds.
        trace: The whole record, where it is ours.
    """

    place: str
    index: int
    form: Form
    task: str
    group: str
    member: int = 0
    attempt: int = 0
    prompt: str = ""
    said: tuple[Said, ...] = ()
    calls: tuple[Call, ...] = ()
    reward: float | None = None
    has_reward: bool = True
    components: dict[str, float | None] = {}
    criteria: tuple[str, ...] = ()
    end: Literal["terminated", "truncated", "failed", ""] = ""
    reason: str = ""
    broken: Broken | None = None
    tools: dict[str, dict[str, Any]] | None = None
    limit: int | None = None
    digests: tuple[str, ...] = ()
    gold: Any = None
    seconds: dict[str, float] = {}
    trace: Trace | None = None

    @property
    def answer(self) -> str:
        """The agent's last words."""
        return next((one.text for one in reversed(self.said) if one.role == "agent"), "")

    @property
    def solved(self) -> bool:
        return self.reward is not None and self.reward >= 1 - 1e-9

    def calls_of(self, turn: int) -> list[Call]:
        return [call for call in self.calls if call.turn == turn]


def of_trace(trace: Trace, *, place: str, index: int) -> Played:
    """Our own record in the common form."""
    task = f"{trace.environment}/{trace.task}"
    own = [turn for turn in trace.turns if turn.thread == 0]  # what another actor is told first, the agent never reads
    return Played(
        place=place,
        index=index,
        form="quintain",
        task=trace.task,
        group=f"{task} {trace.task_digest} {trace.seed} {trace.attempt} {trace.continues or ''}",
        member=trace.member,
        attempt=trace.attempt,
        prompt="\n".join(message.text for turn in own[:1] for message in turn.added),
        said=tuple(map(_said, trace.turns)),
        calls=tuple(_calls(trace)),
        reward=trace.score,
        components={one.name: one.value for one in trace.rewards},
        criteria=trace.criteria,
        end=trace.end.value if trace.end is not None else "",
        reason=trace.reason,
        broken=_broken(trace.failure),
        limit=trace.config.max_turns,
        digests=tuple(turn.state_digest for turn in trace.turns),
        trace=trace,
    )


def _said(turn: Turn) -> Said:
    reply = turn.reply
    return Said(
        turn=turn.index,
        role=turn.role,
        text=reply.message.text,
        reasoning=reply.message.reasoning,
        heard=tuple(message.text for message in turn.added),
        calls=len(reply.message.calls),
        finish=reply.finish_reason,
        drawn=None if reply.tokens is None else len(reply.tokens.completion),
        counted=reply.usage.completion or None,
    )


def _calls(trace: Trace) -> Iterator[Call]:
    # A program answers the calls of its own tools itself.
    elsewhere = {one.call_id for turn in trace.turns for one in turn.added if one.role == "tool"}
    for turn in trace.turns:
        left = list(turn.steps)
        for n, asked in enumerate(turn.reply.message.calls):
            # A program makes its calls in an order of its own, and need not make all.
            step: Step | None = next((one for one in left if one.call.id == asked.id), None)
            if step is not None:
                left.remove(step)
            # A reply is not played to its end where the episode broke, or the world ended it, in the middle.
            spared = trace.end is End.FAILED or turn is trace.turns[-1] or asked.id in elsewhere
            if step is None and spared:
                continue
            called = asked if step is None else step.call  # A program may have names of its own for our tools.
            yield Call(
                turn=turn.index,
                step=n,
                role=turn.role,
                name=called.name,
                arguments=parsed(called.arguments),
                raw=called.arguments,
                answered=step is not None,
                observation="" if step is None else plain(step.observation),
                is_error=step is not None and step.is_error,
                fault=None if step is None else step.fault,
            )


def _broken(failure: Failure | None) -> Broken | None:
    if failure is None:
        return None
    names = ("kind", "stage", "type", "message", "turn")
    return Broken(part=failure.component, **{name: getattr(failure, name) for name in names})


def parsed(text: str) -> dict[str, Any] | None:
    """The arguments of a call; an empty text means none. None for what is no JSON object."""
    return mapping(loaded(text.strip() or "{}"))


def refuses(text: str) -> bool:
    """Whether an answer reads like an error, for logs that do not mark errors."""
    return _REFUSAL.match(text) is not None


def known(task: Task[Any]) -> dict[str, Any]:
    """What is sealed in a task: what nobody who plays should be able to write before having read it."""
    return {"truth": task.truth, "answer": task.answer}
