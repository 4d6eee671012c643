"""Finished episode in one form for all recorders: prompts, replies, calls, answers and reward.

The rules read nothing else, so the same functions judge other tools' logs and this project's traces. A fact that a log
lacks is None, never a default that a rule could mistake for a fact.
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
"""Format of the record: this project's, OpenAI messages, a row of verifiers, a sample of Inspect."""

_REFUSAL = re.compile(r"\s*(\{\s*\"error\"\s*:|error\b|exception\b|traceback \(most recent call last\))", re.IGNORECASE)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call and its answer.

    Attributes:
        turn, step: Position; turns count replies of all actors, steps the calls of one reply.
        arguments: Parsed arguments; None if the text is not a JSON object.
        raw: The text as the model wrote it.
        answered: An answer came back.
        is_error: The call was refused or broke; guessed from the text if the log has no mark.
        fault: Planned fault that the configuration injected here.
        seconds: Duration, if the log has it.
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
        """Returns an identity of tool and arguments that is equal for equal calls, however they were spelled."""
        arguments = self.raw if self.arguments is None else json.dumps(self.arguments, sort_keys=True)
        return f"{self.name} {arguments}"


class Utterance(msgspec.Struct, frozen=True, kw_only=True):
    """One reply of a model.

    Attributes:
        heard: New context beyond earlier replies and answers: prompts, words of others.
        finish: Why the sampler stopped, in the endpoint's words.
        drawn: Number of completion tokens in the record, or None.
        counted: Number of completion tokens by the endpoint, or None.
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


class RecordedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """ReplayModel failure outside the agent.

    Attributes:
        part: Component to blame, if the log names one.
        kind: One of `quintain.errors.KINDS`; empty for a foreign log.
        turn: Number of complete turns.
    """

    part: str = ""
    kind: str = ""
    stage: str = ""
    type: str = ""
    message: str = ""
    turn: int = 0


class EpisodeLog(msgspec.Struct, kw_only=True):
    """A finished episode.

    Attributes:
        place: File and line, for people.
        index: Position in the input.
        group: Identity of the episodes that start from the same task and seed.
        reward: ReplayModel reward, or None; `has_reward` distinguishes a missing field.
        components: Scores of the single criteria at trajectory level.
        criteria: Names of the expected criteria; empty if unknown.
        end: How the episode ended, if the log has it.
        limit: Most allowed replies, if the log has it.
        digests: Digest of the world after each turn; empty if the log has none.
        gold: The right answer, if the log has it next to the episode.
        seconds: Durations in seconds, by phase.
        trace: The whole record, if it is this project's.
    """

    place: str
    index: int
    form: Form
    task: str
    group: str
    member: int = 0
    attempt: int = 0
    prompt: str = ""
    said: tuple[Utterance, ...] = ()
    calls: tuple[Call, ...] = ()
    reward: float | None = None
    has_reward: bool = True
    components: dict[str, float | None] = {}
    criteria: tuple[str, ...] = ()
    end: Literal["terminated", "truncated", "failed", ""] = ""
    reason: str = ""
    broken: RecordedFailure | None = None
    tools: dict[str, dict[str, Any]] | None = None
    limit: int | None = None
    digests: tuple[str, ...] = ()
    gold: Any = None
    seconds: dict[str, float] = {}
    trace: Trace | None = None

    @property
    def answer(self) -> str:
        """Returns the agent's last words."""
        return next((one.text for one in reversed(self.said) if one.role == "agent"), "")

    @property
    def solved(self) -> bool:
        return self.reward is not None and self.reward >= 1 - 1e-9

    def calls_of(self, turn: int) -> list[Call]:
        return [call for call in self.calls if call.turn == turn]


def of_trace(trace: Trace, *, place: str, index: int) -> EpisodeLog:
    """Returns a trace of this project in the common form."""
    task = f"{trace.environment}/{trace.task}"
    own = [turn for turn in trace.turns if turn.thread == 0]  # the agent never reads another actor's prompt
    return EpisodeLog(
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


def _said(turn: Turn) -> Utterance:
    reply = turn.reply
    return Utterance(
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


def _broken(failure: Failure | None) -> RecordedFailure | None:
    if failure is None:
        return None
    names = ("kind", "stage", "type", "message", "turn")
    return RecordedFailure(part=failure.component, **{name: getattr(failure, name) for name in names})


def parsed(text: str) -> dict[str, Any] | None:
    """Returns the arguments of a call, or None if the text is not a JSON object; an empty text means no arguments."""
    return mapping(loaded(text.strip() or "{}"))


def refuses(text: str) -> bool:
    """True if an answer reads like an error, for logs that do not mark errors."""
    return _REFUSAL.match(text) is not None


def known(task: Task[Any]) -> dict[str, Any]:
    """Returns a task's sealed values, which no actor should write before having read them."""
    return {"truth": task.truth, "answer": task.answer}
