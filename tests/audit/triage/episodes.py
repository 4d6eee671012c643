"""Episodes for triage: of a counting world, and in the forms of other tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import quintain as qn
from quintain.audit.triage import LabeledEpisode, Reading, RunReport, triage
from quintain.audit.triage.episode_log import EpisodeLog, of_row, of_trace
from quintain.audit.triage.labels import Label
from quintain.harness import Model
from quintain.rollout import rollout
from quintain.testing.fakes import Script, counter
from quintain.trace import Trace

Calls = Sequence[tuple[str, dict[str, Any]]]

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get",
            "parameters": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}},
                "required": ["id"],
                "additionalProperties": False,
            },
        },
    },
    {"name": "update", "parameters": {"type": "object", "properties": {"id": {"type": "string"}}}},
]


def run(work: Any) -> Any:
    return asyncio.run(work)


def play(env: qn.Environment[Any], model: Model | Calls, n: int = 0, **names: Any) -> Trace:
    """Returns one episode of task n."""
    task = env.tasks("test")[n]
    who = model if callable(model) else Script(model, "done")
    fields: dict[str, Any] = {"seed": 1, "split": "test"} | names
    trace: Trace = run(rollout(env, task, who, **fields)).trace
    return trace


def count(n: int) -> Calls:
    """Returns the solution of task n - 1 of the counter."""
    return [("add", {"amount": 1})] * n


def reading(*traces: Trace | dict[str, Any]) -> Reading:
    played: list[EpisodeLog] = []
    for n, one in enumerate(traces):
        make: Callable[..., EpisodeLog] = of_trace if isinstance(one, Trace) else of_row
        played.append(make(one, place=f"file:{n + 1}", index=n))
    return Reading(played=played)


def file(*traces: Trace | dict[str, Any], env: Any = "no environment", **options: Any) -> RunReport:
    report: RunReport = run(triage(reading(*traces), env, **options))
    return report


def one(trace: Trace | dict[str, Any], env: Any = "no environment", **options: Any) -> LabeledEpisode:
    return file(trace, env=env, **options).judged[0]


def found(judged: LabeledEpisode, rule: int) -> list[Label]:
    return [label for label in judged.labels if label.rule == rule]


def said(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **fields}


def asks(name: str, arguments: str = "{}", key: str = "c1", **fields: Any) -> dict[str, Any]:
    call = {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **fields}


def answers(text: str, key: str = "c1", **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": key, "content": text, **fields}


def row(*messages: dict[str, Any], reward: Any = 1.0, **fields: Any) -> dict[str, Any]:
    """Returns a list of OpenAI messages with a reward."""
    given = {"messages": [{"role": "user", "content": "Do it."}, *messages], "reward": reward, "task_id": "t"}
    return given | fields


COUNTER = counter()
