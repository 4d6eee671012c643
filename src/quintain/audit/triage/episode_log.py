"""Finished episode in one form for all recorders: prompts, replies, calls, answers and reward.

The rules read nothing else, so the same functions judge this project's traces and other tools' logs: lists of OpenAI
messages, rows of verifiers, samples of Inspect. A fact that a log lacks is None, never a default that a rule could
mistake for a fact. A field of an unexpected type makes a record unreadable, because half an episode would be judged as
if it were whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, cast

import msgspec

from quintain.errors import TraceError
from quintain.trace import End, Trace, plain

Form = Literal["quintain", "messages", "rollout", "inspect"]
"""Format of the record: this project's, OpenAI messages, a row of verifiers, a sample of Inspect."""

_REFUSAL = re.compile(r"\s*(\{\s*\"error\"\s*:|error\b|exception\b|traceback \(most recent call last\))", re.IGNORECASE)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """Tool call and its answer, in turn and step: turns count replies of all actors, steps the calls of a reply."""

    turn: int
    step: int
    role: str = "agent"
    name: str
    arguments: dict[str, Any] | None  # parsed arguments; None if the text is not a JSON object
    raw: str  # the text as the model wrote it
    answered: bool = True
    observation: str = ""
    is_error: bool = False  # the call was refused or broke; guessed from the text if the log has no mark
    fault: str | None = None  # planned fault that the configuration injected here
    seconds: float | None = None

    @property
    def key(self) -> str:
        """Returns an identity of tool and arguments that is equal for equal calls, however they were spelled."""
        arguments = self.raw if self.arguments is None else json.dumps(self.arguments, sort_keys=True)
        return f"{self.name} {arguments}"


class Utterance(msgspec.Struct, kw_only=True):
    """One reply of a model.

    Attributes:
        drawn, counted: Number of completion tokens in the record, and by the endpoint; or None.
    """

    turn: int
    role: str = "agent"
    text: str = ""
    reasoning: str = ""
    heard: tuple[str, ...] = ()  # new context beyond earlier replies and answers: prompts, words of others
    calls: int = 0
    finish: str = ""  # why the sampler stopped, in the endpoint's words
    drawn: int | None = None
    counted: int | None = None


class RecordedFailure(msgspec.Struct, frozen=True):
    """Recorded failure outside the agent; a foreign log names no `kind` and perhaps no `part`."""

    part: str = ""
    kind: str = ""
    type: str = ""
    message: str = ""
    turn: int = 0


class EpisodeLog(msgspec.Struct, kw_only=True):
    """A finished episode; what a log lacks is None or empty."""

    place: str  # file and line, for people
    index: int  # position in the input
    form: Form
    task: str
    group: str  # identity of the episodes that start from the same task and seed
    member: int = 0
    attempt: int = 0
    prompt: str = ""
    said: tuple[Utterance, ...] = ()
    calls: tuple[Call, ...] = ()
    reward: float | None = None  # recorded reward, or None; `has_reward` distinguishes a missing field
    has_reward: bool = True
    components: dict[str, float | None] = {}  # scores of the single criteria at trajectory level
    criteria: tuple[str, ...] = ()  # names of the expected criteria
    end: Literal["terminated", "truncated", "failed", ""] = ""
    reason: str = ""
    broken: RecordedFailure | None = None
    tools: dict[str, dict[str, Any]] | None = None
    limit: int | None = None  # most allowed replies
    digests: tuple[str, ...] = ()  # digest of the world after each turn
    gold: Any = None  # the right answer, if the log has it next to the episode
    seconds: dict[str, float] = {}
    trace: Trace | None = None  # the whole record, if it is this project's

    @property
    def answer(self) -> str:
        return next((one.text for one in reversed(self.said) if one.role == "agent"), "")

    @property
    def solved(self) -> bool:
        return self.reward is not None and self.reward >= 1 - 1e-9

    def calls_of(self, turn: int) -> list[Call]:
        return [call for call in self.calls if call.turn == turn]


def of_trace(trace: Trace, *, place: str, index: int) -> EpisodeLog:
    task = f"{trace.environment}/{trace.task}"
    f = trace.failure
    broken = None if f is None else RecordedFailure(f.component, f.kind, f.type, f.message, f.turn)
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
        said=tuple(
            Utterance(
                turn=turn.index,
                role=turn.role,
                text=turn.reply.message.text,
                reasoning=turn.reply.message.reasoning,
                heard=tuple(message.text for message in turn.added),
                calls=len(turn.reply.message.calls),
                finish=turn.reply.finish_reason,
                drawn=None if turn.reply.tokens is None else len(turn.reply.tokens.completion),
                counted=turn.reply.usage.completion or None,
            )
            for turn in trace.turns
        ),
        calls=tuple(_recorded(trace)),
        reward=trace.score,
        components={one.name: one.value for one in trace.rewards},
        criteria=trace.criteria,
        end=trace.end.value if trace.end is not None else "",
        reason=trace.reason,
        broken=broken,
        limit=trace.config.max_turns,
        digests=tuple(turn.state_digest for turn in trace.turns),
        trace=trace,
    )


def _recorded(trace: Trace) -> Iterator[Call]:
    # A program answers the calls of its own tools itself.
    elsewhere = {one.call_id for turn in trace.turns for one in turn.added if one.role == "tool"}
    for turn in trace.turns:
        left = list(turn.steps)
        # A reply is not played to its end where the episode broke, or the world ended it, in the middle.
        is_cut = trace.end is End.FAILED or turn is trace.turns[-1]
        for n, asked in enumerate(turn.reply.message.calls):
            # A program makes its calls in an order of its own, need not make all, and has names of its own for tools.
            step = next((one for one in left if one.call.id == asked.id), None)
            called = asked if step is None else step.call
            call = Call(
                turn=turn.index,
                step=n,
                role=turn.role,
                name=called.name,
                arguments=parsed(called.arguments),
                raw=called.arguments,
                answered=step is not None,
            )
            if step is not None:
                left.remove(step)
                seen = {"observation": plain(step.observation), "is_error": step.is_error, "fault": step.fault}
                yield msgspec.structs.replace(call, **seen)
            elif not is_cut and asked.id not in elsewhere:
                yield call


def parsed(text: str) -> dict[str, Any] | None:
    """Returns the arguments of a call, or None if the text is not a JSON object; empty means no arguments."""
    return mapping(loaded(text.strip() or "{}"))


# --- other tools' episodes ---

Row = dict[str, Any]

_TASKS = ("task_id", "example_id", "sample_id", "id", "task")
_GRADES: dict[Any, Any] = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "correct": 1.0, "incorrect": 0.0}
"""Inspect's grades: correct, incorrect, partial, no answer."""
_LETTERS = {"S": "tool", "V": "reward rubric judge scor verif grad", "T": "dataset task"}
"""Words in the name of a foreign error, by the component that they mean."""


def form_of(row: Row) -> Form | None:
    """Returns the form of a JSON object's record, or None if it is not an episode."""
    if isinstance(row.get("messages"), list):
        return "inspect" if "scores" in row or isinstance(row.get("output"), dict) else "messages"
    return "rollout" if "prompt" in row and "completion" in row else None


def of_row(row: Row, *, place: str, index: int) -> EpisodeLog:
    """Returns an episode from a foreign row; raises TraceError if its form is unknown or broken."""
    form = form_of(row)
    if form is None:
        raise TraceError(f"no form that is known; its keys are {', '.join(sorted(row)[:8]) or 'none'}")
    parts = (("prompt", "user"), ("completion", "assistant")) if form == "rollout" else (("messages", "user"),)
    said, calls, prompt = _conversation([one for key, role in parts for one in _messages(row[key], role)])
    found = next((_text(row[name]) for name in _TASKS if row.get(name) is not None), "")
    metrics = {name: number(one) for name, one in (mapping(row.get("metrics")) or {}).items()}
    paid = number(row.get("reward", row.get("score")))
    reward, components = _inspect_scores(row) if form == "inspect" else (paid, metrics)
    if own := mapping((mapping(row.get("metadata")) or {}).get("quintain")):  # Our own export to Inspect.
        row = row | {"member": own.get("member"), "epoch": own.get("member")}
        reward = number(own.get("score"))
        components = {name: components.get(name) for name in map(_text, sequence(own.get("criteria")) or ())}
    truncated = bool(row.get("is_truncated")) or row.get("limit") is not None
    task = found or prompt[:80]
    return EpisodeLog(
        place=place,
        index=index,
        form=form,
        task=task,
        group=f"{task} {prompt}",
        member=_count(row.get("epoch", row.get("member", row.get("rollout", 0)))),
        prompt=prompt,
        said=said,
        calls=calls,
        reward=reward,
        has_reward=form == "inspect" or "reward" in row or "score" in row,
        components=components,
        end="failed" if row.get("error") else "truncated" if truncated else "",
        reason=_text(row.get("stop_condition") or row.get("limit") or ""),
        broken=_broken(row.get("error"), len(said)),
        tools=_tools(row),
        limit=_count(row["max_turns"]) if isinstance(row.get("max_turns"), int) else None,
        gold=row.get("target", row.get("answer")),
    )


def _messages(value: Any, role: str) -> list[Row]:
    """Returns a conversation; a bare text becomes one message of `role`."""
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    items = sequence(value)
    if items is None:
        raise TraceError(f"a conversation is a list of messages or a text, got {type(value).__name__}")
    messages = [mapping(item) or {} for item in items]
    for n, message in enumerate(messages):
        if not isinstance(message.get("role"), str):
            raise TraceError(f"message {n} has no role: {_text(items[n])[:80]}")
    return messages


def _conversation(messages: list[Row]) -> tuple[tuple[Utterance, ...], tuple[Call, ...], str]:
    """Returns replies, calls with their answers, and the prompt, which is everything before the first reply."""
    said: list[Utterance] = []
    calls: list[Call] = []
    heard: list[str] = []
    prompt: list[str] = []
    waiting: dict[str, int] = {}
    for message in messages:
        role, text = message["role"], _content(message.get("content"))
        if role in ("tool", "function"):
            _answer(calls, waiting, message, text=text)
        elif role == "assistant" or (role == "user" and said):
            asked = list(_calls(message, len(said)))
            waiting |= {identity: len(calls) + n for n, (identity, _) in enumerate(asked)}
            calls += [call for _, call in asked]
            one = Utterance(turn=len(said), text=text, heard=tuple(heard), calls=len(asked))
            one.role = "agent" if role == "assistant" else "user"
            one.reasoning = _text(
                message.get("reasoning_content")
                or message.get("reasoning")
                or _blocks(message.get("content"), "reasoning")
            )
            one.finish = _text(message.get("finish_reason") or message.get("stop_reason") or "")
            said.append(one)
            heard = []
        else:
            heard.append(text)
            prompt += [] if said else [text]
    return tuple(said), tuple(calls), "\n".join(prompt)


def _calls(message: Row, turn: int) -> Iterator[tuple[str, Call]]:
    asked = sequence(message.get("tool_calls") or [])
    if asked is None:
        raise TraceError(f"tool_calls is a list, got {_text(message['tool_calls'])[:80]}")
    for n, each in enumerate(asked):
        call = mapping(loaded(each) if isinstance(each, str) else each)
        if call is None:
            raise TraceError(f"a tool call is an object, got {_text(each)[:80]}")
        function = call.get("function", call)
        named = mapping(function) or {"name": function, **call}
        given = named.get("arguments", {})
        raw = given if isinstance(given, str) else json.dumps(given)
        arguments = parsed(given) if isinstance(given, str) else mapping(given)
        name, identity = _text(named.get("name") or ""), _text(call.get("id") or f"{turn}/{n}")
        yield identity, Call(turn=turn, step=n, name=name, arguments=arguments, raw=raw, answered=False)


def _answer(calls: list[Call], waiting: dict[str, int], message: Row, *, text: str) -> None:
    """Assigns an answer to the call that it names, or to the first unanswered call."""
    identity = message.get("tool_call_id")
    fallback = next((n for n, call in enumerate(calls) if not call.answered), None)
    place = waiting.get(_text(identity)) if identity is not None else fallback
    if place is None:
        raise TraceError(f"an answer to an unknown call: {_text(identity)}")
    error = message.get("error")
    marked = message.get("is_error", error)
    said = text or _text((mapping(error) or {}).get("message") or error or "")
    failed = _REFUSAL.match(said) is not None if marked is None else bool(marked)
    calls[place] = msgspec.structs.replace(calls[place], answered=True, observation=said, is_error=failed)


def _content(value: Any) -> str:
    if sequence(value) is not None:
        return _blocks(value, "text")
    return "" if value is None else _text(value)


def _blocks(value: Any, kind: str) -> str:
    """Returns the texts of a kind, as "text" or "reasoning", in the blocks of a message; empty if it has none."""
    blocks = [mapping(one) or {"text": one} for one in sequence(value) or ()]
    return "\n".join(_text(one[kind]) for one in blocks if kind in one)


def _inspect_scores(row: Row) -> tuple[float | None, dict[str, float | None]]:
    scores = mapping(row.get("scores") or {})
    if scores is None:
        raise TraceError(f"scores is an object, got {_text(row['scores'])[:80]}")
    values = {name: number((mapping(one) or {"value": one}).get("value")) for name, one in scores.items()}
    spoken = [value for value in values.values() if value is not None]
    return (sum(spoken) / len(spoken) if spoken else None), values


def number(value: Any) -> float | None:
    try:
        return float(_GRADES.get(value, value)) if isinstance(value, str | int | float) else None
    except ValueError:
        return None


def _broken(error: Any, turn: int) -> RecordedFailure | None:
    if not error:
        return None
    fields = mapping(error) or {"message": error}
    name = _text(fields.get("error") or fields.get("type") or "")
    message = _text(fields.get("message") or fields.get("error_chain_str") or error)
    said = (name or message).lower()
    part = next((letter for letter, words in _LETTERS.items() if any(word in said for word in words.split())), "")
    return RecordedFailure(part=part, type=name, message=message[:2000], turn=turn)


def _tools(row: Row) -> dict[str, dict[str, Any]] | None:
    """Returns the schemas of the advertised tools by name; None if the row has none."""
    inside = mapping(row.get("info")) or {}
    places = [one[name] for one in (row, inside) for name in ("tools", "tool_defs", "oai_tools") if one.get(name)]
    found = places[0] if places else None
    listed = sequence(loaded(found) if isinstance(found, str) else found)
    tools: dict[str, dict[str, Any]] = {}
    for each in listed or ():
        outer = mapping(loaded(each) if isinstance(each, str) else each) or {}
        tool = mapping(outer.get("function")) or outer
        schemas = [mapping(tool.get(name)) for name in ("parameters", "inputSchema", "input_schema")]
        tools[_text(tool.get("name") or "")] = next((one for one in schemas if one is not None), Row())
    return None if listed is None else tools


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=repr)


# --- guarded access to parsed JSON ---


def mapping(value: object) -> dict[str, Any] | None:
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def sequence(value: object) -> list[Any] | None:
    return list(cast(Iterable[Any], value)) if isinstance(value, list | tuple) else None


def loaded(text: str) -> object:
    """Parses JSON text; None if it is invalid or too deep."""
    try:
        return cast(object, json.loads(text))
    except (ValueError, RecursionError):
        return None


def fields(row: object) -> dict[str, Any]:
    if isinstance(row, msgspec.Struct):
        return {name: getattr(row, name) for name in row.__struct_fields__}
    return mapping(row) or {}


def strings(value: object) -> Iterator[str]:
    """Yields every text inside plain data, without keys of dicts and without sets, which have no order."""
    if isinstance(value, str):
        yield value
        return
    for item in sequence(value) or fields(value).values():
        yield from strings(item)
