"""Runs for the tests of the studio, made without playing, and a reader of columns."""

from __future__ import annotations

import itertools
import json
import math
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from quintain import codec
from quintain.errors import Failure
from quintain.trace import Level, Message, Reply, Reward, Step, ToolCall, Trace, Turn, Usage
from tests.train.groups import episode

HOSTILE = "</script><img src=x onerror='window.broken = 1'>\x1b[31m\u202eevil\u200b"
"""A text that no page may run, hide or follow."""


def trace(task: str, member: int = 0, *, score: float | None = 1.0, turns: int = 3, say: str = "fine") -> Trace:
    """Returns an episode with calls, refusals, rewards at three levels and two tags."""
    made = episode(score).trace
    made.task, made.member = task, member
    made.tags = {"level": "hard" if member % 2 else "easy"}
    made.turns = [_turn(n, made.member, say) for n in range(turns)]
    verdict = Reward(name="done", level=Level.TRAJECTORY, raw=score, value=score, reason=f"said {say}")
    made.rewards = [verdict, Reward(name="seen", level=Level.PHASE, raw=None, value=None, reason="not reached")]
    return made


def _turn(n: int, member: int, say: str) -> Turn:
    call = ToolCall(f"c{n}", "search" if n % 2 == 0 else "update", json.dumps({"n": n, "by": member if n > 1 else 0}))
    refused = n % 3 == 1
    return Turn(
        index=n,
        added=(Message("system", "Do it."), Message("user", say)) if n == 0 else (),
        reply=Reply(Message("assistant", say, calls=(call,)), usage=Usage(100, 10 + n), policy_version=n),
        steps=(Step(call, say if refused else f'{{"rows": {n}}}', is_error=refused),),
        rewards=(Reward(name="progress", level=Level.TURN, raw=0.25, value=0.25, turn=n),),
        state_digest="ab"[n > 1],
    )


def rewritten() -> Trace:
    """Returns an episode whose context was cut to its first message before turn 2."""
    made = trace("rewritten", turns=4)
    made.turns[2] = msgspec.structs.replace(made.turns[2], keep=1, added=(Message("user", "a summary"),), branch=1)
    return made


def failed(task: str) -> Trace:
    made = trace(task, score=None)
    made.failure, made.end, made.score, made.reason = None, None, None, ""
    made.fail(Failure(component="S", kind="quintain:tool_bug", stage="agent", type="KeyError", message=HOSTILE, turn=3))
    return made


def line(made: Trace) -> bytes:
    return made.to_json() + b"\n"


def forged(**fields: Any) -> bytes:
    """Returns a line with a right digest whose trace has other fields than a run can write."""
    body = codec.json(json.loads(codec.json(trace("forged"))) | fields)
    return b'{"digest":"%s","trace":%s}\n' % (codec.digest(body).encode(), body)


def timing(made: Trace, seconds: float = 1.5) -> bytes:
    names = {"task": made.task, "member": made.member, "attempt": made.attempt}
    spent = dict.fromkeys(("model_s", "tool_s", "verifier_s", "queue_s"), 0.25)
    return codec.json(names | spent | {"total_s": seconds}) + b"\n"


def began(made: Trace, at: float) -> bytes:
    """Returns the line of the flight recorder with which an episode begins."""
    head = msgspec.structs.replace(made, turns=[], rewards=[], end=None, score=None)
    return codec.json({"began": (made.task, made.member, made.attempt), "at": at, "head": head}) + b"\n"


def turned(made: Trace, turn: int, at: float) -> bytes:
    """Returns the line of the flight recorder for a turn."""
    return codec.json({"key": (made.task, made.member, made.attempt), "at": at, "turn": made.turns[turn]}) + b"\n"


def write(folder: Path, traces: Iterable[Trace], more: bytes = b"") -> Path:
    """Writes a run folder; `more` is appended to its traces."""
    folder.mkdir(parents=True, exist_ok=True)
    traces = list(traces)
    (folder / "traces.jsonl").write_bytes(b"".join(map(line, traces)) + more)
    (folder / "timings.jsonl").write_bytes(b"".join(map(timing, traces)))
    (folder / "run.json").write_bytes(codec.json({"name": "desk", "agent": "random", "split": "test"}))
    return folder


class Reader:
    """Columns as a browser holds them after some messages: values by name and row."""

    def __init__(self) -> None:
        self.rows = 0
        self.columns: dict[str, list[Any]] = {}
        self._values: dict[str, dict[int, str]] = {}

    def apply(self, message: bytes) -> None:
        size = int.from_bytes(message[:4], "little")
        head = json.loads(message[4 : 4 + size])
        assert (4 + size) % 8 == 0
        assert head["from"] == self.rows
        for said in head["columns"]:
            start = said.get("from", head["from"])
            if start == 0:
                self._values[said["name"]] = {}
            known = self._values.setdefault(said["name"], {})
            known |= (
                {said["base"] + n: value for n, value in enumerate(said.get("values", ()))} if "base" in said else {}
            )
            data = self._array(message, 4 + size + said["at"][0], said["type"], said["length"])
            values: list[Any] = [known[n] for n in data] if known or said["kind"] != "number" else data.tolist()
            if said["kind"] == "lists":
                count = head["rows"] - start + 1
                places = said["at"][1:]
                starts = self._array(message, 4 + size + places[0], "u4", count).tolist() if places else [0] * count
                values = [values[a:b] for a, b in itertools.pairwise(starts)]
            missing = "" if said["kind"] == "text" else math.nan
            column = self.columns.setdefault(said["name"], [missing] * self.rows)
            column[start:] = values
        self.rows = head["rows"]

    @staticmethod
    def _array(message: bytes, place: int, kind: str, count: int) -> array[Any]:
        found: array[Any] = array({"f4": "f", "u4": "I", "u2": "H", "u1": "B"}[kind])
        assert place % 8 == 0
        found.frombytes(message[place : place + found.itemsize * count])
        return found

    def table(self) -> list[str]:
        """Returns the rows as texts, which NaN doesn't make unequal."""
        return [repr({name: column[n] for name, column in self.columns.items()}) for n in range(self.rows)]
