"""Faults injected by the triage benchmark: of world, verifier, endpoint, trainer and tasks.

Each reports whether it took effect: a stale read that equals a fresh one is not a fault.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import math
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

import msgspec

import quintain as qn
from quintain import codec
from quintain.audit.triage.labels import Owner
from quintain.environments.helpdesk import env as helpdesk
from quintain.environments.sales import env as sales
from quintain.environments.sales.goals import Field
from quintain.errors import ModelError, ToolError
from quintain.harness import Model, Request
from quintain.models import Noop, Random
from quintain.state import Rng
from quintain.task import Call
from quintain.tools import Tool
from quintain.trace import End, Level, Message, Reply, Tokens, ToolCall, Trace, Usage

HANG_S = 1.0
_READING = ("get", "search", "history", "read", "list", "sent_to", "free", "agenda", "find", "show", "view_")
READS = {name for name in (*sales.tools, *helpdesk.tools) if any(word in name for word in _READING)}
DONE = ("done", "changed")
"""The criterion that says whether the job is done, in each of the two."""
WRITES = set(sales.tools) - READS - {"now", "wait", "crm_colleagues", "calendar_appointments"}


class Fate:
    """The fault of one episode, and whether it came about."""

    def __init__(self, rng: Rng) -> None:
        self.rng = rng
        self.fired = False
        self.at = rng.below(3)
        self.seen = 0
        self.answers: dict[str, Any] = {}
        self.worlds: dict[int, tuple[qn.State, dict[str, Any]]] = {}


Meddle = Callable[[Fate, Tool, qn.State, dict[str, Any]], Awaitable[Any]]


class Meddled(Tool, frozen=True, kw_only=True):
    """A tool whose calls go through a fault."""

    meddle: Any
    fate: Any

    def bind(self, state: qn.State) -> Callable[..., Any]:
        async def call(**arguments: Any) -> Any:
            return await self.meddle(self.fate, _plain(self), state, arguments)

        return call


async def real(tool: Tool, state: qn.State, arguments: dict[str, Any]) -> Any:
    """Returns the tool's own result."""
    result = tool.bind(state)(**arguments)
    return await result if inspect.isawaitable(result) else result


def _plain(tool: Tool) -> Tool:
    return Tool(**{name: getattr(tool, name) for name in Tool.__struct_fields__})


def _turn(fate: Fate) -> bool:
    """True if the fault hits this call."""
    fate.seen += 1
    return fate.seen - 1 == fate.at


def _answered(fate: Fate, true: Any, false: Any) -> Any:
    """A wrong answer, which is a fault only where it differs."""
    fate.fired = fate.fired or codec.text(true) != codec.text(false)
    return false


# --- faults of the world, while it is played ---


async def crash(fate: Fate, tool: Tool, state: qn.State, arguments: dict[str, Any]) -> Any:
    if not _turn(fate):
        return await real(tool, state, arguments)
    fate.fired = True
    raise RuntimeError("the backend lost a row")


async def hang(fate: Fate, tool: Tool, state: qn.State, arguments: dict[str, Any]) -> Any:
    if _turn(fate):
        fate.fired = True
        await asyncio.sleep(4 * HANG_S)
    return await real(tool, state, arguments)


async def stale(fate: Fate, tool: Tool, state: qn.State, arguments: dict[str, Any]) -> Any:
    true = await real(tool, state, arguments)
    if tool.name not in READS:
        return true
    return _answered(fate, true, fate.answers.setdefault(f"{tool.name} {codec.text(arguments)}", copy.deepcopy(true)))


async def empty(fate: Fate, tool: Tool, state: qn.State, arguments: dict[str, Any]) -> Any:
    true = await real(tool, state, arguments)
    if tool.name not in READS or not _turn(fate):
        return true
    return _answered(fate, true, [])


async def cut_answer(fate: Fate, tool: Tool, state: qn.State, arguments: dict[str, Any]) -> Any:
    true = await real(tool, state, arguments)
    if tool.name not in READS or not _turn(fate):
        return true
    text = codec.text(true)
    return _answered(fate, text, text[: len(text) // 2])


async def outage(fate: Fate, tool: Tool, state: qn.State, arguments: dict[str, Any]) -> Any:
    if not _turn(fate):
        return await real(tool, state, arguments)
    fate.fired = True
    raise ToolError("error: 503 service unavailable")


async def lost_write(fate: Fate, tool: Tool, state: qn.State, arguments: dict[str, Any]) -> Any:
    if tool.name not in WRITES or fate.fired:
        return await real(tool, state, arguments)
    aside = state.copy()  # held by a name, for a clock does not keep its world alive
    answer = await real(tool, aside, arguments)
    fate.fired = True
    return answer


async def double_write(fate: Fate, tool: Tool, state: qn.State, arguments: dict[str, Any]) -> Any:
    answer = await real(tool, state, arguments)
    if tool.name in WRITES and not fate.fired:
        before = codec.dumps(state.shared.counters)
        try:
            await real(tool, state, arguments)
        except ToolError:
            return answer  # the retry was refused, and did nothing
        fate.fired = codec.dumps(state.shared.counters) != before
    return answer


async def leftover(fate: Fate, tool: Tool, state: Any, arguments: dict[str, Any]) -> Any:
    """Shows data of an earlier episode in the world at the first call."""
    if not fate.fired:
        key = fate.rng.choice(list(state.crm.contacts))
        row = state.crm.contacts[key]
        row.phone, row.updated = "+49 30 000000", "2024-01-01T00:00Z"
        state.crm.contacts[key] = row
        fate.fired = True
    return await real(tool, state, arguments)


async def renamed(fate: Fate, tool: Tool, state: qn.State, arguments: dict[str, Any]) -> Any:
    """The code has another parameter than the schema says."""
    if tool.name != "crm_get":
        return await real(tool, state, arguments)
    fate.fired = True
    raise ToolError("crm_get() got an unexpected keyword argument 'record_id'")


async def held_stale(fate: Fate, tool: Tool, state: qn.State, arguments: dict[str, Any]) -> Any:
    """As `stale`, in every play: a cache that each world has for itself."""
    _, answers = fate.worlds.setdefault(id(state), (state, {}))  # holding the world keeps its id its own
    true = await real(tool, state, arguments)
    if tool.name not in READS:
        return true
    return _answered(fate, true, answers.setdefault(f"{tool.name} {codec.text(arguments)}", copy.deepcopy(true)))


# --- faults of the verifier, the endpoint and the trainer ---


def verdict(fate: Fate, env: qn.Environment[Any], change: Callable[[float], float]) -> qn.Environment[Any]:
    def judged(judge: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def said(outcome: Any) -> Any:
            true = judge(outcome)
            value = change(float(true.value))
            fate.fired = fate.fired or value != true.value
            return qn.Score(value, true.reason)

        return said

    criteria = [msgspec.structs.replace(c, fn=judged(c.fn)) if c.name in DONE else c for c in env.verifier.criteria]
    twin = env.replace(verifier=qn.Verifier(*criteria, combine="product"))
    twin.fingerprint = env.fingerprint  # the same code, on a bad day
    return twin


def _broken_verdict(value: float) -> float:
    del value
    raise ConnectionError("the judge is not there")


class Said:
    """A model behind a fault of its endpoint, or of what reads its replies."""

    def __init__(self, inner: Model, fate: Fate, how: str) -> None:
        self.inner, self.fate, self.how = inner, fate, how

    async def __call__(self, request: Request) -> Reply:
        reply = await self.inner(request)
        calls = reply.message.calls
        if not calls or self.fate.fired or not _turn(self.fate):
            return reply
        self.fate.fired = True
        if self.how == "endpoint_error":
            raise ModelError("HTTP 502 from the endpoint")
        if self.how == "endpoint_empty":
            return Reply(Message("assistant"))
        if self.how == "dropped_call":
            said = {"name": calls[0].name, "arguments": json.loads(calls[0].arguments)}
            return Reply(Message("assistant", f"<tool_call>{json.dumps(said)}</tool_call>"))
        if self.how == "cut_reply":
            cut = ToolCall(calls[0].id, calls[0].name, calls[0].arguments[:-3])
            return Reply(Message("assistant", calls=(cut,)), finish_reason="length")
        return msgspec.structs.replace(reply, tokens=Tokens([1, 2], [3] * 4), usage=Usage(2, 40))


def missing_component(fate: Fate, trace: Trace) -> None:
    kept = [r for r in trace.rewards if r.name not in DONE]
    fate.fired = trace.failure is None and len(kept) < len(trace.rewards)
    if fate.fired:
        trace.rewards = kept
        trace.score = math.prod(r.value or 0.0 for r in kept if r.level is Level.TRAJECTORY)


def no_verdict(fate: Fate, trace: Trace) -> None:
    fate.fired, trace.score, trace.rewards = trace.failure is None, None, []


def booked_as_zero(fate: Fate, trace: Trace) -> None:
    """A crash that a harness has caught, and scored."""
    fate.fired = trace.failure is not None
    if fate.fired:
        trace.failure, trace.end, trace.reason, trace.score = None, End.TERMINATED, "the agent answered", 0.0


# --- what each fault is ---


class Fault(NamedTuple):
    owner: Owner
    tools: Meddle | None = None
    verdict: Callable[[float], float] | None = None
    reply: bool = False
    after: Callable[[Fate, Trace], None] | None = None
    loud: bool = False


FAULTS: dict[str, Fault] = {
    "crash": Fault("env", crash, loud=True),
    "hang": Fault("infra", hang, loud=True),
    "stale": Fault("env", stale),
    "empty": Fault("env", empty),
    "cut_answer": Fault("env", cut_answer),
    "outage": Fault("infra", outage),
    "lost_write": Fault("env", lost_write),
    "double_write": Fault("env", double_write),
    "leftover": Fault("env", leftover),
    "verifier_crash": Fault("verifier", verdict=_broken_verdict, loud=True),
    "flipped_verdict": Fault("verifier", verdict=lambda value: 1.0 - value),
    "judge_default": Fault("verifier", verdict=lambda value: 0.5),
    "missing_component": Fault("verifier", after=missing_component),
    "no_verdict": Fault("verifier", after=no_verdict, loud=True),
    "booked_as_zero": Fault("env", crash, after=booked_as_zero),
    "endpoint_error": Fault("infra", reply=True, loud=True),
    "endpoint_empty": Fault("infra", reply=True),
    "dropped_call": Fault("trainer", reply=True),
    "cut_reply": Fault("trainer", reply=True),
    "lost_tokens": Fault("trainer", reply=True),
}
SALES_ALONE = ("lost_write", "double_write", "leftover")
"""Faults that use the rows of `sales` or copy its world without waiting."""
TASK_FAULTS = ("wrong_gold", "wrong_gold_and_solution", "trivial")

# --- who plays ---

_CLUMSY: tuple[Call, ...] = (
    ("crm_fetch", {"id": "C-1"}),
    ("crm_get", {}),
    ("crm_get", {"record_id": "Z-0"}),
    ("wait", {"hours": -1}),
)
POLICIES = ("solution", "careful", "sloppy", "quitter", "clumsy", "random", "noop")


def policy(name: str, task: qn.Task[Any], rng: Rng) -> Model:
    """A policy that plays one episode; all but the last two know the solution, and use it well or badly."""
    if name == "random":
        return Random()
    if name == "noop":
        return Noop()
    calls = list(task.solution or ())
    if name == "careful":
        calls = list(_read_back(calls))
    elif name == "sloppy":
        calls.pop(rng.below(len(calls)))
    elif name == "quitter":
        calls = calls[: rng.below(len(calls))]
    elif name == "clumsy":
        calls.insert(rng.below(len(calls)), rng.choice(_CLUMSY))
        calls = calls[: 1 + rng.below(len(calls))]
    return _Unhurried(calls, task.answer)


class _Unhurried:
    """Makes the calls one a turn, whatever it reads, and answers."""

    def __init__(self, calls: list[Call], answer: str) -> None:
        self._left, self._answer, self._made = list(calls), answer, 0

    async def __call__(self, request: Request) -> Reply:
        if not self._left:
            return Reply(Message("assistant", self._answer))
        name, arguments = self._left.pop(0)
        self._made += 1
        return Reply(Message("assistant", calls=(ToolCall(f"call_{self._made}", name, codec.text(arguments)),)))


def _read_back(calls: list[Call]) -> Iterator[Call]:
    for name, arguments in calls:
        texts = (value for value in arguments.values() if isinstance(value, str))
        keys = [text for text in texts if text[:2] in ("A-", "C-", "L-", "O-")]
        if name in WRITES:
            yield from (("crm_get", {"record_id": key}) for key in keys[:1])
        yield name, arguments
        if name in WRITES:
            yield from (("crm_get", {"record_id": key}) for key in keys[:1])


# --- tasks that are broken ---


def spoiled(task: qn.Task[Any], other: qn.Task[Any], how: str) -> qn.Task[Any]:
    """Returns the task with a wrong goal, another task's truth and solution, or its work done."""
    if how == "wrong_gold":
        key = next(iter(task.world().crm.contacts))
        goal = Field(table="crm.contacts", key=key, field="title", value="Chief Nonsense Officer")
        return msgspec.structs.replace(task, truth=msgspec.structs.replace(task.truth, goals=(*task.truth.goals, goal)))
    if how == "wrong_gold_and_solution":
        return msgspec.structs.replace(other, id=task.id, prompt=task.prompt)
    world = task.world().copy()
    for name, arguments in task.solution or ():
        try:
            sales.tools[name].bind(world)(**sales.tools[name].decode(codec.text(arguments)))
        except ToolError:
            break
    return msgspec.structs.replace(task, start=world)
