"""Concurrency probes that run inside the subject's process: preempted threads, and histories of one instance.

A concurrent history is right when some serial order of the same calls explains it (Herlihy and Wing, TOPLAS 1990). The
subject is its own model: the serial orders are played on fresh instances. Calls that are all equal have one order only,
so a great many of them can be checked; of different calls a few are, in every order (Wing and Gong, JPDC 1993).
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import msgspec

from quintain import codec
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, OpResult, masked, reset
from quintain.audit.kernel.registry import probe_function

HERE = f"{__name__}:"
ORDERS = 24
"""Serial orders that are played at most."""
SHARE = 0.05
"""Share of lines before which a thread yields."""
LINES = 30_000
"""Lines after which no thread gives way any more, so that a large subject ends in time."""
ENOUGH_S = 1.5
"""After so many seconds no further round begins."""


@probe_function
def hurry(_player: Player, _on: str, value: Any) -> str:
    """Let threads take turns anywhere in the subject's own code, and if wanted as often as the interpreter can.

    Args:
        value: {"files": of the subject, "fast": whether also inside of libraries}. The process ends with the probe, so
            nothing is put back.
    """
    if value["fast"]:
        sys.setswitchinterval(1e-6)
    threading.settrace(_Turns(frozenset(value["files"])))
    return "threads take turns anywhere"


class _Turns:
    """Gives way to other threads before a line of these files, now and then (as ConTest: Edelstein et al. 2002)."""

    def __init__(self, files: frozenset[str]) -> None:
        self._files = files
        self._lines = 0

    def __call__(self, frame: FrameType, _event: str, _arg: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in self._files or self._lines > LINES:
            return None
        self.turn(frame, "call", None)
        return self.turn

    def turn(self, _frame: FrameType, _event: str, _arg: object) -> Callable[..., Any]:
        # Numbers spread evenly over [0, 1), so that no line is always the one (Weyl's sequence of the golden ratio).
        self._lines += 1
        if self._lines <= LINES and self._lines * 0.6180339887498949 % 1 < SHARE:
            time.sleep(1e-5)
        return self.turn


@probe_function
def hammer(player: Player, on: str, value: Any) -> dict[str, Any]:
    """Call one instance from several threads, until what came of it is what no serial order gives.

    Args:
        player: Makes the instances.
        on: Begin of their names.
        value: {"task", "before": ops, "lanes": a list of ops per thread, "rounds", "volatile", "files"}.

    Returns:
        "serial" and "concurrent", what came of it, when there was such a round; else only "rounds".
    """
    hurry(player, on, {"files": value["files"], "fast": True})
    until = time.monotonic() + ENOUGH_S
    before = [reset(value["task"]), *(msgspec.convert(op, Op) for op in value["before"])]
    lanes = [[msgspec.convert(op, Op) for op in lane] for lane in value["lanes"]]
    history = _History(player, before, lanes, volatile=tuple(value["volatile"]))
    orders = [history.serial(f"{on} serial {n}", order) for n, order in enumerate(_orders(lanes))]
    if history.serial(f"{on} serial again", _orders(lanes)[0]) != orders[0]:
        return {"rounds": 0, "unsteady": True}
    for number in range(value["rounds"]):
        found = history.concurrent(f"{on} round {number}")
        if found not in orders:
            read = [msgspec.msgpack.decode(item) for item in (orders[0], found)]
            return {"rounds": number + 1, "serial": _short(read[0], read[1]), "concurrent": _short(read[1], read[0])}
        if time.monotonic() > until:
            return {"rounds": number + 1}
    return {"rounds": value["rounds"]}


def _short(first: Any, second: Any) -> Any:
    """The parts of an outcome that are not the same in the other."""
    return {name: first[name] for name in first if first[name] != second[name]}


def _orders(lanes: Sequence[Sequence[Op]]) -> list[tuple[int, ...]]:
    """Orders in which the lanes may take turns; one where all calls are equal."""
    turns = [number for number, lane in enumerate(lanes) for _ in lane]
    if len({codec.dumps((op.do, op.name, op.value), repr) for lane in lanes for op in lane}) == 1:
        return [tuple(turns)]
    return list(dict.fromkeys(itertools.islice(itertools.permutations(turns), 10 * ORDERS)))[:ORDERS]


class _History:
    """Calls of one instance by several threads."""

    def __init__(
        self, player: Player, before: Sequence[Op], lanes: Sequence[Sequence[Op]], *, volatile: tuple[str, ...]
    ) -> None:
        self._player, self._before, self._lanes, self._volatile = player, before, lanes, volatile
        self._are_equal = len(_orders(lanes)) == 1

    def serial(self, on: str, order: Sequence[int]) -> bytes:
        """Returns the outcome of the calls in one serial order."""
        self._begin(on)
        seen: list[list[OpResult]] = [[] for _ in self._lanes]
        for number in order:
            seen[number].append(self._player.do(self._lanes[number][len(seen[number])].moved(on)))
        return self._outcome(on, seen)

    def concurrent(self, on: str) -> bytes:
        """Returns the outcome when all threads start at once."""
        self._begin(on)
        seen: list[list[OpResult]] = [[] for _ in self._lanes]
        gate = threading.Barrier(len(self._lanes))

        def run(number: int) -> None:
            gate.wait()
            for op in self._lanes[number]:
                seen[number].append(self._player.do(op.moved(on)))

        threads = [threading.Thread(target=run, args=(number,)) for number in range(len(self._lanes))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self._outcome(on, seen)

    def _begin(self, on: str) -> None:
        for op in self._before:
            self._player.do(op.moved(on))

    def _outcome(self, on: str, seen: Sequence[Sequence[OpResult]]) -> bytes:
        results: list[Any] = [[list(masked(result.content(), self._volatile)) for result in lane] for lane in seen]
        if self._are_equal:  # Then it does not matter which thread was given which answer.
            results = sorted((item for lane in results for item in lane), key=lambda value: codec.dumps(value, repr))
        state = self._player.do(Op("state", on))
        return codec.dumps({"answers": results, "world": masked(state.value, self._volatile)}, repr)
