"""Player of ops on instances of a subject, in a worker process without protection from the subject."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintain import codec
from quintain.audit.facts.data import Differ, glance, is_list
from quintain.audit.subjects.failure import SubjectFailure

from .adapter import Factory, SubjectAdapter, how_raised, plain, verdict, where_raised, with_text_keys
from .answers import answered
from .probe import Op, OpResult, turns
from .registry import find_probe_function, probe_function

LONGEST = 4_000_000
"""Bytes of the largest value that leaves the worker; a larger one is replaced by its size and digest."""
_PARTS = 30  # parts of a wait


class Player:
    """Player of one probe and owner of its instances."""

    def __init__(self, factory: Factory) -> None:
        self._factory = factory
        self._lock = threading.Lock()
        self.adapters: dict[str, SubjectAdapter] = {}
        self.snapshots: dict[tuple[str, str], Any] = {}
        self._compared: set[str] = set()  # instances of which somebody will ask what changed
        self.starts: dict[str, Callable[[], dict[str, list[Any]]]] = {}  # changes since the reset, by instance

    def adapter(self, on: str) -> SubjectAdapter:
        """Returns the instance of this name, made at its first use."""
        with self._lock:
            if on not in self.adapters:
                self.adapters[on] = SubjectAdapter(self._factory())
            return self.adapters[on]

    def play(self, ops: Sequence[Op], seen: Callable[[OpResult], None]) -> None:
        for one in self.each(ops):
            seen(one)

    def each(self, ops: Sequence[Op]) -> Iterator[OpResult]:
        """Yields the result of each op, played on demand."""
        self._compared |= {op.on for op in ops if op.do == "changes"}
        needed = turns(ops)
        for place, op in enumerate(ops):
            known = op.do != "reset" or op.value is not None
            yield self.do(op if known else msgspec.structs.replace(op, value=needed[place]))

    def leave(self) -> None:
        for adapter in self.adapters.values():
            with contextlib.suppress(SubjectFailure):  # Its server is gone, and the session with it.
                adapter.subject.close()

    def do(self, op: Op) -> OpResult:
        """Plays one op; an exception of the subject is part of the result."""
        started = time.perf_counter()
        try:
            several = [self._value(op) for _ in range(op.times)]
        except _Absent as absent:
            return OpResult(how="absent", raised=str(absent))
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 (it is what was seen)
            seconds = time.perf_counter() - started
            raised = f"{type(error).__name__}: {error}"[:2000]
            return OpResult(raised=raised, how=how_raised(error), where=where_raised(error), seconds=seconds)
        value = several[0][0] if op.times == 1 else [one for one, _ in several]
        return OpResult(value, odd=any(odd for _, odd in several), seconds=time.perf_counter() - started)

    def _value(self, op: Op) -> tuple[Any, bool]:
        if op.do in _OURS:
            return _OURS[op.do](self, op), False
        adapter = self.adapter(op.on)
        needed = _NEEDS.get(op.do, op.do)
        if needed not in adapter.offers:
            raise _Absent(f"the subject has no method {needed}()")
        found = _DO[op.do](self, adapter, op)
        if op.do in _READS and hasattr(adapter.subject, "start_state"):
            return found, False  # An environment's state is plain, and its parts are shared.
        value, odd = plain(found)
        try:
            data = codec.dumps(value)
        except TypeError:  # a key is not text
            value = with_text_keys(value)
            data = codec.dumps(value)
        is_long = len(data) > LONGEST
        return ({"<longer than can be kept>": len(data), "digest": codec.digest(data)} if is_long else value), odd

    def reset(self, adapter: SubjectAdapter, op: Op) -> Any:
        """Begins a task; the op's value is the number of turns that the session needs, if known.

        If the episode allows fewer, it has no such limit: what a session of many reads shows, one of few may show as
        well.
        """
        if hasattr(adapter.subject, "is_roomy"):
            adapter.subject.is_roomy = op.value is not None and op.value > adapter.subject.budget
        first = adapter.subject.reset(adapter.task(op.name), op.seed)
        if op.on in self._compared and "state" in adapter.offers:
            subject = adapter.subject
            if hasattr(subject, "changes_from_here"):
                self.starts[op.on] = subject.changes_from_here()
            else:
                differ = Differ(copy.deepcopy(subject.state()))  # What it hands out may be its own living dict.
                self.starts[op.on] = lambda: differ.changes(subject.state())
        return first

    def scripted(self, adapter: SubjectAdapter, op: Op) -> Any:
        """Grades an answer, or runs the simulated user on an utterance, with a scripted model; its last reply repeats.

        The value has "answer" or "said", and "says" (replies) or "raises".
        """
        asked: list[str] = []

        def complete(text: str) -> str:
            asked.append(text)
            if "raises" in op.value:
                raise TimeoutError(op.value["raises"])
            says: Any = op.value["says"]
            return str(says[min(len(asked), len(says)) - 1] if is_list(says) else says)

        given, gives = ("answer", "grade") if op.do == "judge" else ("said", "replied")
        found = getattr(adapter.subject, op.do)(adapter.task(op.name), op.value[given], complete)
        return {gives: found, "asked": asked}

    def together(self, op: Op) -> Any:
        """Plays lanes at the same time, one thread each, and returns each lane's results."""
        lanes: list[list[OpResult]] = [[] for _ in op.lanes]
        users = Counter(on for lane in op.lanes for on in {one.on for one in lane})
        for on in sorted(on for on, lanes in users.items() if lanes > 1):
            self.adapter(on)  # One that lanes share is made before them; any other belongs to its lane's thread.
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

    def ask(self, op: Op) -> Any:
        """Calls a registered probe function with (player, instance, value)."""
        return plain(find_probe_function(op.name)(self, op.on, op.value))[0]


@probe_function
def tasks_at(player: Player, on: str, indices: Any) -> list[str]:
    """Returns the ids of an environment's tasks at these indices."""
    return list(player.adapter(on).subject.shelf.names(indices))


TASKS_AT = f"{__name__}:{tasks_at.__name__}"


class _Absent(Exception):
    """Error for a method that the subject does not offer."""


def held() -> dict[str, int]:
    """Returns this process's threads, open files, child processes and bytes of memory."""
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
    """Sleeps in parts, so that a machine that stalls shortens one part and not the whole wait."""
    for _ in range(_PARTS):
        time.sleep(float(op.value) / _PARTS)


_OURS: dict[str, Callable[[Player, Op], Any]] = {
    "wait": _wait, "resources": lambda _player, _op: held(), "together": Player.together, "ask": Player.ask,
}  # fmt: skip

_NEEDS = {"changes": "state", "glance": "state"}
_READS = {"state", "changes"}

_DO: dict[str, Callable[[Player, SubjectAdapter, Op], Any]] = {
    "reset": Player.reset,
    "call": lambda _, adapter, op: answered(adapter.subject.call(op.name, copy.deepcopy(op.value))),
    "answer": lambda _, adapter, op: adapter.subject.answer(op.value),
    "score": lambda _, adapter, op: verdict(adapter.subject.score()),
    "state": lambda _, adapter, op: adapter.subject.state(),
    "changes": lambda player, _, op: player.starts[op.on](),
    "glance": lambda _, adapter, op: glance(adapter.subject.state()),
    "digest": lambda _, adapter, op: adapter.subject.digest(),
    "explain": lambda _, adapter, op: adapter.subject.explain(),
    "snapshot": lambda player, adapter, op: player.snapshots.update({(op.on, op.name): adapter.subject.snapshot()}),
    "restore": lambda player, adapter, op: adapter.subject.restore(player.snapshots[op.on, op.name]),
    "inject": lambda _, adapter, op: adapter.subject.inject(op.name),
    "advance": lambda _, adapter, op: adapter.subject.advance(op.value),
    "hidden": lambda _, adapter, op: adapter.subject.hidden(adapter.task(op.name)),
    "prompt": lambda _, adapter, op: adapter.subject.prompt(adapter.task(op.name)),
    "oracle": lambda _, adapter, op: adapter.oracle(op.name),
    "production": lambda _, adapter, op: adapter.subject.production(),
    "tools": lambda _, adapter, op: adapter.tools(),
    "judge": Player.scripted,
    "user": Player.scripted,
    "close": lambda _, adapter, op: adapter.subject.close(),
}
