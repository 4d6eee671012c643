"""Child process of the studio that replays episodes: `python -m quintain.studio.player SPEC`.

It reads lines of `traces.jsonl` from standard input and writes an `Answer` for each to standard output. It is the only
part of the studio that runs an environment's code.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
from typing import Any

import msgspec

from quintain import plugins
from quintain.changes import MISSING, WorldChange, shown
from quintain.environment import Environment
from quintain.errors import BROKEN, QuintainError, UsageError
from quintain.replay import ReplayHarness
from quintain.trace import Trace

from .watch import task_of, watch

_CHARACTERS = 4000
"""Characters of a value; the rest is left out."""
_CHANGES = 500
"""Changes of a step; the rest is counted."""


class ChangeText(msgspec.Struct, omit_defaults=True):
    """Difference at one place of the world; a side is JSON text, or None if it has no value."""

    path: str
    before: str | None = None
    after: str | None = None


class StepChange(msgspec.Struct, omit_defaults=True):
    """Changes of one step.

    Attributes:
        turn, step: Place of the step.
        changes: The first of its changes.
        more: Number of those that are left out.
    """

    turn: int
    step: int
    changes: list[ChangeText]
    more: int = 0


class Answer(msgspec.Struct, omit_defaults=True):
    """Changes of an episode by step.

    Attributes:
        steps: The steps, in order.
        diverged: First turn that the environment answers otherwise; what steps changed is left out from there.
        stale: True if the environment's code is not the one that made the record.
        reason: Reason for which nothing could be replayed; empty if something was.
    """

    steps: list[StepChange] = []
    diverged: int | None = None
    stale: bool = False
    reason: str = ""

    def lines(self, start: int = 0, end: float = math.inf) -> bytes:
        """Returns it as JSON lines: how the replay went, then the steps of the turns from `start` to before `end`."""
        steps = [step for step in self.steps if start <= step.turn < end]
        return b"\n".join(map(msgspec.json.encode, [{"diverged": self.diverged, "stale": self.stale}, *steps]))


def main(spec: str) -> None:
    """Answers until standard input ends."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # What the environment prints is not an answer.
    made: Environment[Any] | None = None
    for line in sys.stdin.buffer:
        try:
            if made is None:
                name, options = msgspec.json.decode(spec, type=tuple[str, dict[str, str]])
                made = plugins.environment(name, **options)
            answer = played(made, line)
        except QuintainError as error:
            answer = Answer(reason=str(error))
        except BROKEN as error:
            answer = Answer(reason=f"the environment broke: {type(error).__name__}: {error}")
        out.write(msgspec.json.encode(answer) + b"\n")


def played(env: Environment[Any], line: bytes) -> Answer:
    """Returns what each step of an episode changed.

    Args:
        env: The environment.
        line: The episode's line of `traces.jsonl`.

    Raises:
        UsageError: The environment cannot play it.
        TraceError: The line is damaged.
    """
    trace = Trace.from_json(line)
    if trace.environment != env.name:
        raise UsageError(f"the episode is of {trace.environment!r}, not of {env.name!r}; name its environment by --env")
    if trace.continues:
        raise UsageError(
            f"the episode began where task {trace.continues[0]!r} ended; only `quintain replay` plays those"
        )
    if env.remote_begin is not None:
        raise UsageError(f"the worlds of {env.name!r} are at a server, which does not show them")
    stale = trace.fingerprint != env.fingerprint
    # The record alone drives the world: a program that was the harness is not started again.
    env = env.replace(harness=ReplayHarness(trace))
    seen = asyncio.run(watch(env, task_of(env, trace), trace))
    steps = [
        StepChange(turn, step, list(map(_change, found[:_CHANGES])), max(0, len(found) - _CHANGES))
        for (turn, step), found in seen.steps.items()
    ]
    return Answer(steps, seen.diverged, stale)


def _change(change: WorldChange) -> ChangeText:
    return ChangeText(change.path, *(None if side is MISSING else _cut(shown(side)) for side in change[1:]))


def _cut(text: str) -> str:
    # A lone surrogate of a file's name has no place in JSON.
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}… ({len(text):,} characters)"


if __name__ == "__main__":
    main(sys.argv[1])
