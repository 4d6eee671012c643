"""Checks a call that is cut off midway: its half-done work must not reach the next episode.

A tracer counts the lines that the call runs in the subject's own files, and raises a TimeoutError before one of them,
as a limit of time would. Lines are counted, not seconds, so a cut falls in the same place whenever it is played.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from quintain.audit.facts.discovery import KnownCall
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, ask, reset
from quintain.audit.kernel.registry import probe_function

CALLS = 4
"""Calls that are cut, each of another tool, and each at `PLACES`."""
PLACES = (0.35, 0.7, 1.0)
"""Parts of the call's lines after which it is cut."""
_HERE = __name__


def cuts(ctx: AuditContext) -> tuple[Op, ...]:
    """Episodes, one after the other, each ended by a call that is cut; empty where no call of ours can be cut."""
    folders = sorted({str(Path(source.path).resolve().parent) for source in ctx.sources if source.path})
    chosen = _chosen(ctx)
    if not folders or not chosen:
        return ()
    counted = ctx.play_all([Probe((*_until(call), _cut(call, folders, 0, mark="lines"))) for call in chosen])
    found: list[Op] = []
    for call, record in zip(chosen, counted, strict=True):
        seen = record.at("lines")
        lines = seen.value["lines"] if seen.fine else 0
        for line in sorted({max(1, round(lines * part)) for part in PLACES}) if lines else ():
            found += [*_until(call), _cut(call, folders, line)]
    return tuple(found)


def _chosen(ctx: AuditContext) -> list[KnownCall]:
    """Calls that work, those that write first, one of each tool."""
    ordered = sorted(ctx.discovery.calls, key=lambda call: not call.writes)
    return list({known_call.op.name: known_call for known_call in reversed(ordered)}.values())[::-1][:CALLS]


def _until(call: KnownCall) -> tuple[Op, ...]:
    return (reset(call.task), *(op.marked("") for op in call.before))


def _cut(call: KnownCall, folders: Sequence[str], line: int, *, mark: str = "") -> Op:
    value = {"op": msgspec.to_builtins(call.op.marked("")), "folders": list(folders), "line": line}
    return ask(f"{_HERE}:cut", value, mark=mark)


@probe_function
def cut(player: Player, on: str, value: dict[str, Any]) -> dict[str, Any]:
    """In the child: do an op until so many lines of the subject have run, then raise in it.

    Args:
        player: Holds the instances.
        on: The instance.
        value: `op`; `folders` of the files whose lines count; `line`, before which it is cut, 0 for never.

    Returns:
        `lines` that were begun, and `raised`, what came out of the call.
    """
    scissors = _Scissors(tuple(f"{folder}/" for folder in value["folders"]), value["line"])
    op = msgspec.convert(value["op"], Op).moved(on)
    player.adapter(on)
    sys.settrace(scissors.enter)
    try:
        seen = player.do(op)
    finally:
        sys.settrace(None)
    return {"lines": scissors.lines, "raised": seen.raised}


class _Scissors:
    def __init__(self, folders: tuple[str, ...], before: int) -> None:
        self.lines = 0
        self._folders = folders
        self._before = before

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        """A function is called: its lines count when it is one of the subject's."""
        del event, argument
        return self.line if frame.f_code.co_filename.startswith(self._folders) else None

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        """A line begins, or a function ends."""
        del frame, argument
        if event == "line":
            self.lines += 1
            if self.lines == self._before:
                raise TimeoutError("the call took too long and was cut off")
        return self.line
