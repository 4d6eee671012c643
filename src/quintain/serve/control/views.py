"""An episode in the words of the control plane."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from quintain.harness import Request
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.views import CallAnswer, blamed, named, visible_rewards
from quintain.serve.http.keys import Caller
from quintain.trace import Message, Trace, Turn

from .answers import CallLog, Detail, Entry, Question, ReplyResult, Status, ToolInfo, Verdict
from .routes import ApiCall

_known: weakref.WeakKeyDictionary[Live, dict[str, Sequence[Message]]] = weakref.WeakKeyDictionary()
"""Messages of each role's last answered question, which the caller has, so that only later messages are sent."""


def status(live: Live, caller: Caller) -> Status:
    """Returns the state of an episode."""
    return Status(**_standing(live, caller))


def detail(call: ApiCall, live: Live) -> Detail:
    """Returns an episode with its current question and addresses."""
    trace = live.trace
    return Detail(
        **_standing(live, call.caller),
        rewards=visible_rewards(trace.every_reward(), trace, call.caller),
        question=_question(live, {}),
        prompt=tuple(live.messages) if live.led else (),
        roles=live.task.roles if live.led else {},
        label=trace.split,
        day=live.task.day,
        mcp_url=_mcp_url(call, live),
    )


def played(
    call: ApiCall, live: Live, *, first: int, answers: Sequence[CallAnswer], answered: Request | None
) -> ReplyResult:
    """Returns the result of a reply: its answers, and the turns from a first one on.

    `answered` is the question of the reply; None if the reply was made before, so that it is unknown what the client
    has.
    """
    known = _known.setdefault(live, {})
    if answered is not None:
        known[answered.role] = tuple(answered.messages)
    trace = live.trace
    turns = trace.turns[first:]
    last = answers[-1] if answers else None
    is_end = trace.end is not None
    return ReplyResult(
        turns=tuple(_turn(turn, trace, call.caller) for turn in turns if not turn.thread or call.has("trainer")),
        observation=last.content if last else "",
        is_error=last.is_error if last else is_end,
        finished=is_end,
        reward=last.reward if last else None,
        status=status(live, call.caller),
        question=_question(live, known if answered is not None else {}),
    )


def _turn(turn: Turn, trace: Trace, caller: Caller) -> Turn:
    """A turn as a caller may know it: an agent neither what names the world, nor which of its errors were planned."""
    if caller.role != "agent":
        return turn
    steps = tuple(msgspec.structs.replace(step, fault=None) for step in turn.steps)
    rewards = visible_rewards(turn.rewards, trace, caller)
    return msgspec.structs.replace(turn, steps=steps, state_digest="", rewards=rewards)


def verdict(trace: Trace, caller: Caller) -> Verdict:
    """Returns the verdict of the criteria."""
    return Verdict(rewards=visible_rewards(trace.every_reward(), trace, caller), **_judged(trace, caller))


def journal(trace: Trace) -> CallLog:
    """The calls of an episode, numbered through."""
    calls = [(turn, step) for turn in trace.turns for step in turn.steps]
    return CallLog(
        tuple(
            Entry(
                seq=seq,
                turn=turn.index,
                role=turn.role,
                thread=turn.thread,
                step=step,
                state_digest=turn.state_digest if step is turn.steps[-1] else "",
            )
            for seq, (turn, step) in enumerate(calls)
        )
    )


def _standing(live: Live, caller: Caller) -> dict[str, Any]:
    trace = live.trace
    return {
        **{name: getattr(trace, name) for name in ("seed", "member", "attempt", "agent", "end", "reason")},
        **_judged(trace, caller),
        "id": live.id,
        "status": live.status,
        "environment": live.env.name,
        "split": live.split,
        "task": live.task.id,
        "harness": "client" if live.led else "server",
        "turns": len(trace.turns),
        "task_digest": named(trace.task_digest, caller),
    }


def _judged(trace: Trace, caller: Caller) -> dict[str, Any]:
    return {
        "validity": trace.validity,
        "failure": trace.failure and blamed(trace.failure, caller),
        "score": trace.score,
        "state_digest": named(trace.turns[-1].state_digest, caller) if trace.turns else "",
    }


def _question(live: Live, known: Mapping[str, Sequence[Message]]) -> Question | None:
    """Returns the open question for a caller that has the known messages of its role already."""
    request = live.question
    if request is None or live.led:
        return None
    pairs = zip(known.get(request.role, ()), request.messages, strict=False)
    keep = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] is pair[1] or pair[0] == pair[1], pairs))
    return Question(
        role=request.role,
        seed=request.seed or live.seed,  # A question that is asked here has none until somebody wants it.
        keep=keep,
        added=tuple(request.messages[keep:]),
        tools=tuple(
            one.name if live.env.tools.get(one.name) == one else msgspec.convert(one, ToolInfo, from_attributes=True)
            for one in request.tools
        ),
        temperature=request.temperature,
        top_p=request.top_p,
        max_tokens=request.max_tokens,
    )


def _mcp_url(call: ApiCall, live: Live) -> str:
    """Returns the address of an episode, under the name by which the caller reaches the server."""
    host = call.request.header(b"host")
    if live.led or not host:
        return ""
    return f"{call.request.scope.get('scheme', 'http')}://{host}/e/{live.token}/mcp"
