"""Which lines of a subject's files its verifier runs, and which its tools run, in episodes that are known.

A mutant on a line that no episode runs says nothing, and a line that both run (a lookup, a clock) is no requirement of
either. So a line is the verifier's when `score` runs it and no call does; the tools' when a call runs it and `score`
does not. Where the verifier has files of its own, what they run during a call (a judge of single steps) is theirs.
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

from quintain.audit.lab import Lab
from quintain.audit.player import Player
from quintain.audit.probe import Op, Probe, ask

_HERE = __name__
_ACTS = ("call", "answer", "advance")

Lines = dict[str, frozenset[int]]
"""By path."""


class Reach(msgspec.Struct, frozen=True):
    """Lines of the verifier, and lines of the tools."""

    verifier: Lines
    tools: Lines


def reach(lab: Lab, episodes: Sequence[Sequence[Op]]) -> Reach:
    """Play episodes, each in a process of its own, and see what they run."""
    sources = [(Path(one.path).resolve(), one.part) for one in lab.sources if one.path]
    theirs = {str(path) for path, part in sources if part != "V"}
    value = {
        "folders": sorted({str(path.parent) for path, _ in sources}),
        "judges": sorted({str(path) for path, part in sources if part == "V"} - theirs),
    }
    probes = [Probe((ask(f"{_HERE}:trace", {**value, "ops": msgspec.to_builtins(ops)}),)) for ops in episodes]
    found: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for record in lab.play_all(probes):
        seen = record.at("ask")
        run: dict[str, dict[str, list[int]]] = seen.value if seen.fine else {}
        for phase, paths in run.items():
            for path, lines in paths.items():
                found[phase][path].update(lines)
    acts, scores, resets = found["act"], found["score"], found["reset"]
    return Reach(_minus(scores, acts, resets), _minus(acts, scores))


def _minus(one: dict[str, set[int]], *others: dict[str, set[int]]) -> Lines:
    left = {
        path: frozenset(lines.difference(*(other.get(path, ()) for other in others))) for path, lines in one.items()
    }
    return {path: lines for path, lines in left.items() if lines}


def trace(player: Player, on: str, value: Any) -> dict[str, dict[str, list[int]]]:
    """In the child: play ops, and say by phase (act, score, reset) and file which lines were run."""
    tracer = _Tracer(tuple(value["folders"]), frozenset(value["judges"]))
    threading.settrace(tracer.enter)
    try:
        for op in msgspec.convert(value["ops"], list[Op]):
            tracer.phase = "act" if op.do in _ACTS else op.do
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
        """A function is called: follow it when it is one of the subject's."""
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
        """Whether a judge of the verifier is at work, further out."""
        while frame is not None:
            if frame.f_code.co_filename in self._judges:
                return True
            frame = frame.f_back
        return False
