"""Reach: source lines that the verifier runs and lines that the tools run, in known episodes.

A mutant on a line that no episode runs shows nothing, and a line that both run (a lookup, a clock) is a requirement of
neither. So a line belongs to the verifier if `score` runs it and no call does, and to the tools if a call runs it and
`score` does not. Lines of the verifier's own files that a call runs (a criterion on single steps) belong to the
verifier.
"""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, ask, reset
from quintain.audit.kernel.registry import probe_function

from .battery import TaskBaseline, probe

_HERE = __name__
_ACTS = ("call", "answer", "advance")

Lines = dict[str, frozenset[int]]  # line numbers by path


class Reach(msgspec.Struct, frozen=True):
    """Lines of the verifier, of the tools, and all lines that an episode of a task runs."""

    verifier: Lines
    tools: Lines
    by_task: dict[str, Lines]

    def runs(self, task: str, path: str, lines: tuple[int, int]) -> bool:
        """True if a task's episodes run one of these lines of a file, or if that is unknown."""
        known = self.by_task.get(task)
        return known is None or not known.get(path, frozenset()).isdisjoint(range(lines[0], lines[1] + 1))


def reach(ctx: AuditContext, tried: Sequence[TaskBaseline]) -> Reach:
    """Traces the episodes of each task in its own process; lines that only the start runs belong to neither side."""
    sources = [(Path(one.path).resolve(), one.part) for one in ctx.sources if one.path]
    theirs = {str(path) for path, part in sources if part != "V"}
    value = {
        "folders": sorted({str(path.parent) for path, _ in sources}),
        "judges": sorted({str(path) for path, part in sources if part == "V"} - theirs),
    }
    scripts = [[reset(one.task, mark="first"), *probe(one.episodes).ops] for one in tried]
    asked = [ask(f"{_HERE}:trace", {**value, "ops": msgspec.to_builtins(ops)}) for ops in scripts]
    # The worker makes the tasks that it sees.
    lanes = [((reset(one.task),),) for one in tried]
    probes = [Probe((msgspec.structs.replace(op, lanes=lane),)) for op, lane in zip(asked, lanes, strict=True)]
    found: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    by_task: dict[str, Lines] = {}
    for one, record in zip(tried, ctx.play_all(probes), strict=True):
        seen = record.at("ask")
        if not seen.fine or not is_dict(seen.value):
            continue
        run: dict[str, dict[str, list[int]]] = seen.value
        every: dict[str, set[int]] = defaultdict(set)
        for phase, paths in run.items():
            for path, lines in paths.items():
                found[phase][path].update(lines)
                every[path].update(lines)
        by_task[one.task] = {path: frozenset(lines) for path, lines in every.items()}
    acts, scores, resets = found["act"], found["score"], found["reset"]
    return Reach(_minus(scores, acts, resets), _minus(acts, scores), by_task)


def _minus(one: dict[str, set[int]], *others: dict[str, set[int]]) -> Lines:
    left = {path: frozenset(run.difference(*(other.get(path, ()) for other in others))) for path, run in one.items()}
    return {path: lines for path, lines in left.items() if lines}


@probe_function
def trace(player: Player, on: str, value: Any) -> dict[str, dict[str, list[int]]]:
    """Plays ops in the worker and returns the lines that were run, by phase (act, score, reset) and file."""
    tracer = _Tracer(tuple(value["folders"]), frozenset(value["judges"]))
    threading.settrace(tracer.enter)
    try:
        for op in msgspec.convert(value["ops"], list[Op]):
            tracer.phase = op.mark if op.mark == "first" else "act" if op.do in _ACTS else op.do
            sys.settrace(tracer.enter)
            player.do(op.moved(on))
            sys.settrace(None)
    finally:
        sys.settrace(None)
        threading.settrace(None)
    return {phase: {path: sorted(lines) for path, lines in by.items()} for phase, by in tracer.seen.items()}


class _Tracer:
    def __init__(self, folders: tuple[str, ...], judges: frozenset[str]) -> None:
        self.phase = ""
        self.seen: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        self._folders = tuple(f"{folder}/" for folder in folders)
        self._judges = judges

    def enter(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        del event, argument
        path = frame.f_code.co_filename
        if not path.startswith(self._folders):
            return None
        phase = "judge" if self.phase == "act" and self._is_judged(frame) else self.phase
        lines = self.seen[phase][path]

        def line(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
            del event, argument
            lines.add(frame.f_lineno)
            return line

        return line

    def _is_judged(self, frame: FrameType | None) -> bool:
        while frame is not None:
            if frame.f_code.co_filename in self._judges:
                return True
            frame = frame.f_back
        return False
