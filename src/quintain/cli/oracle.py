"""Checks of the oracle: solutions with unknown tools, and solutions that do not reach full marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintain import codec
from quintain.environment import Environment
from quintain.errors import UsageError, short
from quintain.record import read_traces
from quintain.task import Task
from quintain.trace import SOLVED, Trace, plain

from .console import clipped, number, plural, safe
from .transcript import why_not_one

_SHOWN = 5
_TEXT = 200


class Unsolved(msgspec.Struct):
    """Episode in which a task's own solution did not reach full marks.

    Attributes:
        score: Sum of the rewards, below 1.
        refused: Calls that a tool refused, with the reason.
        below: Criteria below their maximum.
        reason: Why the episode ended.
    """

    task: str
    member: int
    score: float
    refused: list[str]
    below: list[str]
    reason: str


def check_solutions(env: Environment[Any], tasks: Iterable[Task[Any]]) -> None:
    """Checks that each solution calls tools of the agent only, with arguments that they accept.

    Raises:
        UsageError: A solution names an unknown tool, or its arguments have a wrong name or type.
    """
    for task in tasks:
        tools = {tool.name: tool for tool in env.for_task(task).tools_of("agent")}
        for index, (name, arguments) in enumerate(task.solution or ()):
            which = f"the solution of task {task.id!r} calls {name!r} (call {index})"
            if name not in tools:
                is_unmarked = name not in env.tools and callable(getattr(env.state, name, None))
                hint = f"{name} is a method of {env.state.__name__} without @qn.tool; " if is_unmarked else ""
                known = ", ".join(sorted(tools)) or "none"
                raise UsageError(f"{which}, which is not a tool of the agent; {hint}the tools are {known}")
            try:
                tools[name].decode(codec.text(arguments), strict=env.config.arguments == "strict")
            except msgspec.DecodeError as error:
                known = ", ".join(tools[name].arguments.__struct_fields__) or "none"
                raise UsageError(f"{which} with {short(arguments)}: {error}; its parameters: {known}") from error


def unsolved(path: Path, best: dict[str, float]) -> list[Unsolved]:
    """Returns the valid episodes of a run folder that have less than full marks, except those with injected faults.

    Args:
        path: The run folder.
        best: Maximum of each criterion, weight included.
    """
    return [
        _explained(trace, best)
        for trace in read_traces(path)
        if trace.score is not None
        and trace.score < SOLVED
        and not any(step.fault for turn in trace.turns for step in turn.steps)
    ]


def explain(found: Sequence[Unsolved]) -> str:
    """Returns the message for people."""
    lines = [f"The solutions of the tasks did not reach full marks in {plural(len(found), 'episode')}:"]
    for one in found[:_SHOWN]:
        reasons = [
            *(f"refused {text}" for text in one.refused),
            *(f"{name} is below its maximum" for name in one.below),
        ]
        why = "; ".join(reasons) or f"each criterion is at its maximum, so no episode has more; {one.reason}"
        lines.append(f"  {one.task}: score {number(one.score)}; {why}")
    if len(found) > _SHOWN:
        lines.append(f"  and {len(found) - _SHOWN} more")
    return "\n".join([*lines, "Correct the solutions or the verifier, or accept this with --allow-partial."])


def _explained(trace: Trace, best: dict[str, float]) -> Unsolved:
    refused = [
        f"{step.call.name}({clipped(step.call.arguments, _TEXT)}): {clipped(plain(step.observation), _TEXT)}"
        for turn in trace.turns
        for step in turn.steps
        if step.is_error
    ]
    texts = [safe(text) for text in refused]
    return Unsolved(trace.task, trace.member, trace.score or 0.0, texts, why_not_one(trace, best), safe(trace.reason))
