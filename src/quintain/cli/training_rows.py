"""Rows of training files: conversations, examples, pairs and tokens, made from the groups of a run."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from quintain.errors import UsageError
from quintain.models import wire
from quintain.record import read_traces
from quintain.trace import Message, Trace, Turn
from quintain.trajectory import trajectories

ROLE = "agent"
Row = dict[str, Any]
Tools = Callable[[Trace], "list[Row] | None"]
"""Function from a trace to the schemas of the agent's tools; None where they are unknown."""
Truth = Callable[[Trace], Any]
"""Function from a trace to the truth of its task."""


class ExportOptions(NamedTuple):
    """ExportOptions of the episodes to export.

    Attributes:
        min_score: SFT takes every episode with this score or a higher one; None takes the best of each group.
        all_pairs: DPO pairs all members with different scores, instead of the best with the worst.
    """

    min_score: float | None = None
    all_pairs: bool = False


class ChatSpan(NamedTuple):
    """Messages of one context, in the form of chat completions.

    Attributes:
        prompt: Number of messages before the first reply.
        places: Index of a turn in its episode to the index of its reply in `messages`.
    """

    messages: list[Row]
    prompt: int
    places: dict[int, int]

    def completion(self) -> list[Row]:
        """Returns the messages from the first reply to the last one."""
        return self.messages[self.prompt : max(self.places.values()) + 1]


def groups(path: Path) -> Iterator[list[Trace]]:
    """Yields the episodes of each group as soon as its last one is read; only open groups are in memory.

    Raises:
        UsageError: The file or folder does not exist.
        TraceError: A trace is damaged.
    """
    sizes = Counter(map(_group, read_traces(path)))
    opened: dict[tuple[Any, ...], list[Trace]] = defaultdict(list)
    for trace in read_traces(path):
        group = _group(trace)
        opened[group].append(trace)
        if len(opened[group]) == sizes[group]:
            yield sorted(opened.pop(group), key=lambda trace: trace.member)


def _group(trace: Trace) -> tuple[Any, ...]:
    return (trace.environment, trace.agent, trace.split, trace.seed, trace.task, trace.attempt)


def conversations(trace: Trace) -> Iterator[ChatSpan]:
    """Yields the agent's conversations; a context that was rewritten ends one and begins the next."""
    turns = sorted((turn for turn in trace.turns if turn.role == ROLE), key=lambda turn: (turn.thread, turn.index))
    for _, thread in itertools.groupby(turns, key=lambda turn: turn.thread):
        context: list[Message] = []
        replies: list[tuple[int, Turn]] = []
        for turn in thread:
            if turn.keep is not None:
                if replies and turn.keep <= replies[-1][0]:
                    yield _conversation(context, replies)
                    replies = []
                context = context[: turn.keep]
            context += turn.added
            replies.append((len(context), turn))
            context += turn.produced()
        yield _conversation(context, replies)


def _conversation(context: Sequence[Message], replies: Sequence[tuple[int, Turn]]) -> ChatSpan:
    messages: list[Row] = []
    places: dict[int, int] = {}
    start = 0
    for place, turn in replies:
        messages += wire.messages(context[start:place])
        places[turn.index] = len(messages)
        messages += wire.messages(context[place : place + 1])
        if reasoning := turn.reply.message.reasoning:
            messages[-1]["reasoning_content"] = reasoning
        start = place + 1
    messages += wire.messages(context[start:])
    for message in messages:
        message["content"] = message["content"] or ""  # Chat templates of transformers take no None.
    return ChatSpan(messages, min(places.values()), places)


def rows(
    kind: str, group: Sequence[Trace], choice: ExportOptions, *, tools: Tools, truth: Truth, skipped: Counter[str]
) -> Iterator[Row]:
    """Yields the rows of a group, without those of invalid episodes.

    Args:
        kind: A name in `KINDS`.
        group: The episodes of one group.
        choice: The episodes and pairs to take.
        tools: Schemas of an episode's tools.
        truth: Truth of an episode's task.
        skipped: Receives the number of episodes without a row, by reason.
    """
    valid: list[Trace] = []
    for trace in group:
        if trace.failure is not None:
            skipped[f"invalid ({trace.failure.component}, {trace.failure.kind})"] += 1
        elif trace.validity != "valid":
            skipped["unfinished"] += 1
        elif not any(turn.role == ROLE for turn in trace.turns):
            skipped["no reply of the agent"] += 1
        else:
            valid.append(trace)
    if valid:
        yield from KINDS[kind](_Candidates(group, valid, choice, tools, truth, skipped))


class _Candidates(NamedTuple):
    """Group of which rows are made; `valid` are the episodes that can have some."""

    all: Sequence[Trace]
    valid: Sequence[Trace]
    choice: ExportOptions
    tools: Tools
    truth: Truth
    skipped: Counter[str]

    def facts(self, trace: Trace) -> Row:
        names = ("environment", "split", "task", "tags", "agent")
        schemas = self.tools(trace)
        return {name: getattr(trace, name) for name in names} | ({} if schemas is None else {"tools": schemas})


def _chat(group: _Candidates) -> Iterator[Row]:
    for trace in group.valid:
        facts = {"member": trace.member, "attempt": trace.attempt, "score": trace.score, "reason": trace.reason}
        for found in conversations(trace):
            rewards = list(_rewards(trace, found.places))
            yield {"messages": found.messages, "rewards": rewards} | group.facts(trace) | facts


def _rewards(trace: Trace, places: Mapping[int, int]) -> Iterator[Row]:
    for reward in trace.every_reward():
        if reward.value is not None and (reward.turn is None or reward.turn in places):
            yield {
                "name": reward.name,
                "level": reward.level.value,
                "value": reward.value,
                "weight": reward.weight,
                "reason": reward.reason,
                "message": None if reward.turn is None else places[reward.turn],
                "step": reward.step,
            }


def _sft(group: _Candidates) -> Iterator[Row]:
    least = group.choice.min_score
    best = max(group.valid, key=_score)
    for trace in group.valid:
        if least is not None and _score(trace) < least:
            group.skipped[f"score below {least:g}"] += 1
        elif least is None and trace is not best:
            group.skipped["not the best of the group"] += 1
        else:
            for found in conversations(trace):
                messages = found.messages[: found.prompt] + found.completion()
                yield {"messages": messages, "score": trace.score} | group.facts(trace)


def _dpo(group: _Candidates) -> Iterator[Row]:
    whole: list[tuple[Trace, ChatSpan]] = []
    for trace in group.valid:
        found = list(conversations(trace))
        if len(found) == 1:
            whole.append((trace, found[0]))
        else:
            group.skipped["several contexts"] += 1
    used: set[int] = set()
    for better, worse in _pairs(whole, every=group.choice.all_pairs):
        (chosen, first), (rejected, second) = better, worse
        if first.messages[: first.prompt] == second.messages[: second.prompt]:
            used |= {id(chosen), id(rejected)}
            yield {
                "prompt": first.messages[: first.prompt],
                "chosen": first.completion(),
                "rejected": second.completion(),
                "score_chosen": chosen.score,
                "score_rejected": rejected.score,
            } | group.facts(chosen)
    if unpaired := sum(id(trace) not in used for trace, _ in whole):
        group.skipped["in no pair"] += unpaired


def _pairs(
    members: Sequence[tuple[Trace, ChatSpan]], *, every: bool
) -> Iterator[tuple[tuple[Trace, ChatSpan], tuple[Trace, ChatSpan]]]:
    """Yields (better, worse) members with different scores."""
    ordered = sorted(members, key=lambda member: _score(member[0]), reverse=True)
    pairs = itertools.combinations(ordered, 2) if every else [(ordered[0], ordered[-1])] if ordered else []
    return ((better, worse) for better, worse in pairs if _score(better[0]) > _score(worse[0]))


def _rft(group: _Candidates) -> Iterator[Row]:
    """Yields the prompt and the truth of a task whose episodes are one reply.

    Raises:
        UsageError: An episode has several replies or a call, or the prompt does not end with a user's message.
    """
    for trace in group.valid:
        turns = [turn for turn in trace.turns if turn.role == ROLE]
        calls = sum(len(turn.steps) for turn in turns)
        if len(turns) > 1 or calls:
            raise UsageError(
                f"--format rft is for tasks of one reply, but an episode of task {trace.task!r} has {len(turns)} "
                f"replies and {calls} calls: OpenAI's grader sees one reply and no state; use --format sft, dpo or rows"
            )
    first = group.valid[0]
    (found,) = conversations(first)
    messages = found.messages[: found.prompt]
    if not messages or messages[-1]["role"] != "user":
        raise UsageError(f"--format rft needs a prompt that ends with a user's message; task {first.task!r} has none")
    if others := len(group.valid) - 1:
        group.skipped["same prompt as another member"] += others
    yield {"messages": messages, "truth": group.truth(first)} | {
        name: value for name, value in group.facts(first).items() if name != "tools" or value
    }


def _tokens(group: _Candidates) -> Iterator[Row]:
    if any(turn.reply.tokens is None for trace in group.valid for turn in trace.turns if turn.role == ROLE):
        group.skipped["no token ids in the group"] += len(group.valid)
        return
    found = trajectories(group.all, role=ROLE)
    without = {trace.member for trace in group.valid} - {one.member for one in found}
    if without:
        group.skipped["no sampled token" if found else "too few valid episodes in the group"] += len(without)
    yield from map(msgspec.to_builtins, found)


def _score(trace: Trace) -> float:
    assert trace.score is not None, "a valid episode has a score"
    return trace.score


KINDS: dict[str, Callable[[_Candidates], Iterator[Row]]] = {
    "chat": _chat,
    "sft": _sft,
    "dpo": _dpo,
    "rft": _rft,
    "rows": _tokens,
    "parquet": _chat,
}
"""Name of a format to the function that makes its rows."""
