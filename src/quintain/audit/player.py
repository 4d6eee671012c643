"""Plays ops on instances of a subject, in this process: a child; nothing here protects it from the subject."""

from __future__ import annotations

import copy
import gc
import importlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from .handle import Factory, Handle, how_raised, plain, verdict, where_raised
from .probe import Op, Seen

LONGEST = 4_000_000
"""Bytes of a value that are carried out of the child; a longer one is replaced by its size and digest."""


class Player:
    """The instances of one probe.

    Attributes:
        handles: Instances by name.
    """

    def __init__(self, factory: Factory) -> None:
        self._factory = factory
        self._lock = threading.Lock()
        self.handles: dict[str, Handle] = {}
        self._snapshots: dict[tuple[str, str], Any] = {}
        self._current: dict[str, str] = {}

    def handle(self, on: str) -> Handle:
        """The instance of this name, made at its first use."""
        with self._lock:
            if on not in self.handles:
                self.handles[on] = Handle(self._factory())
            return self.handles[on]

    def play(self, ops: Sequence[Op], seen: Callable[[Seen], None]) -> None:
        """Do all ops, one after the other, and say of each what it gave."""
        for op in ops:
            seen(self.do(op))

    def do(self, op: Op) -> Seen:
        """Do one op; whatever the subject raises is part of what is seen."""
        started = time.perf_counter()
        try:
            if op.times == 1:
                value, odd = self._value(op)
            else:
                several = [self._value(op) for _ in range(op.times)]
                value, odd = [one for one, _ in several], any(odd for _, odd in several)
        except _Absent as absent:
            return Seen(how="absent", raised=str(absent))
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 (it is what was seen)
            seconds = time.perf_counter() - started
            told = f"{type(error).__name__}: {error}"[:2000]
            return Seen(raised=told, how=how_raised(error), where=where_raised(error), seconds=seconds)
        return Seen(value, odd=odd, seconds=time.perf_counter() - started)

    def _value(self, op: Op) -> tuple[Any, bool]:
        if op.do in _OURS:
            return _OURS[op.do](self, op), False
        handle = self.handle(op.on)
        if op.do not in handle.offers:
            raise _Absent(f"the subject has no method {op.do}()")
        value, odd = plain(_DO[op.do](self, handle, op))
        if len(str(value)) > LONGEST:
            return {"<longer than can be kept>": len(str(value))}, odd
        return value, odd

    def _reset(self, handle: Handle, op: Op) -> Any:
        first = handle.subject.reset(handle.task(op.name), op.seed)
        self._current[op.on] = op.name
        return first

    def _snapshot(self, handle: Handle, op: Op) -> None:
        self._snapshots[op.on, op.name] = handle.subject.snapshot()

    def _restore(self, handle: Handle, op: Op) -> None:
        handle.subject.restore(self._snapshots[op.on, op.name])

    def _judge(self, handle: Handle, op: Op) -> Any:
        """Value: {"answer": text, "says": what the judge's model replies, or "raises": ...}."""
        asked: list[str] = []

        def complete(text: str) -> str:
            asked.append(text)
            if "raises" in op.value:
                raise TimeoutError(op.value["raises"])
            return str(op.value["says"])

        grade = handle.subject.judge(handle.task(op.name), op.value["answer"], complete)
        return {"grade": grade, "asked": asked}

    def _together(self, op: Op) -> Any:
        lanes: list[list[Seen]] = [[] for _ in op.lanes]
        for one in {lane_op.on for lane in op.lanes for lane_op in lane}:
            self.handle(one)
        gate = threading.Barrier(len(op.lanes))

        def run(number: int) -> None:
            gate.wait()
            self.play(op.lanes[number], lambda seen: lanes[number].append(msgspec.structs.replace(seen, seconds=0.0)))

        threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(lanes))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return msgspec.to_builtins(lanes)

    def _ask(self, op: Op) -> Any:
        module, _, function = op.name.partition(":")
        return plain(getattr(importlib.import_module(module), function)(self, op.on, op.value))[0]


class _Absent(Exception):
    """The subject does not offer a method."""


def held() -> dict[str, int]:
    """What this process holds: threads, open files, child processes, bytes of memory."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("utf-8").splitlines())
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text("utf-8").split()
    return {
        "threads": threading.active_count(),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "processes": len(children),
        "memory": int(status["VmRSS"].split()[0]) * 1024,
    }


def _wait(_player: Player, op: Op) -> None:
    time.sleep(float(op.value))


def _held(_player: Player, _op: Op) -> dict[str, int]:
    return held()


_OURS: dict[str, Callable[[Player, Op], Any]] = {
    "wait": _wait,
    "resources": _held,
    "together": Player._together,
    "ask": Player._ask,
}

_DO: dict[str, Callable[[Player, Handle, Op], Any]] = {
    "reset": Player._reset,
    "call": lambda _, handle, op: handle.subject.call(op.name, copy.deepcopy(op.value)),
    "answer": lambda _, handle, op: handle.subject.answer(op.value),
    "score": lambda _, handle, op: verdict(handle.subject.score()),
    "state": lambda _, handle, op: handle.subject.state(),
    "digest": lambda _, handle, op: handle.subject.digest(),
    "explain": lambda _, handle, op: handle.subject.explain(),
    "snapshot": Player._snapshot,
    "restore": Player._restore,
    "inject": lambda _, handle, op: handle.subject.inject(op.name),
    "advance": lambda _, handle, op: handle.subject.advance(op.value),
    "hidden": lambda _, handle, op: handle.subject.hidden(handle.task(op.name)),
    "prompt": lambda _, handle, op: handle.subject.prompt(handle.task(op.name)),
    "oracle": lambda _, handle, op: handle.oracle(op.name),
    "production": lambda _, handle, op: handle.subject.production(),
    "tools": lambda _, handle, op: handle.tools(),
    "judge": Player._judge,
    "close": lambda _, handle, op: handle.subject.close(),
}
