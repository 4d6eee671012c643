"""Probe: a short program on an environment as plain data, so that it can be played again.

A probe is a sequence of ops on named *instances* (sessions of the subject, each made at its first use). Playing it in
a context gives an `OpResult` per op. A claim about an environment is a relation between the records of a few probes
(`relations.py`); a finding needs no more to be proved, minimised and replayed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from quintain import codec
from quintain.audit.facts.data import is_dict, is_list

from .answers import speaks_of_error

FAULTS = (
    "timeout", "refused", "500", "429", "empty", "truncated", "cancelled", "out_of_memory", "disk_full",
)  # fmt: skip
"""Faults that `inject` accepts."""


class Op(msgspec.Struct, frozen=True, omit_defaults=True):
    """One operation on an instance.

    Attributes:
        do: reset, call, answer, score, state, digest, explain, snapshot, restore, inject, advance, hidden, prompt,
            oracle, production, tools, judge, user, close: methods of the subject; changes: differences of the state
            since the reset; glance: the first entries of each table of the state; wait: real seconds pass;
            resources: threads, files, children and memory of the process; ask: a registered function runs inside the
            process; together: lanes run at the same time, one thread each.
        on: The instance.
        name: Tool of a call, task of a reset, hidden, judge or user, label of a snapshot or restore, fault of an
            inject, function of an ask.
        value: Arguments of a call, text of an answer, seconds of an advance or wait, argument of an ask.
        seed: Seed of a reset.
        times: Number of repetitions; beyond one, the result is the list of all values.
        mark: Name of this op's result; minimising never removes a marked op.
        lanes: Lanes of a together.
    """

    do: str
    on: str = "a"
    name: str = ""
    value: Any = None
    seed: int = 0
    times: int = 1
    mark: str = ""
    lanes: tuple[tuple[Op, ...], ...] = ()

    def marked(self, mark: str) -> Op:
        return msgspec.structs.replace(self, mark=mark)

    def moved(self, on: str) -> Op:
        return msgspec.structs.replace(self, on=on)


def reset(task: str, *, on: str = "a", seed: int = 0, mark: str = "") -> Op:
    """Returns the op that begins a task."""
    return Op("reset", on, task, seed=seed, mark=mark)


def turns(ops: Sequence[Op]) -> dict[int, int]:
    """Returns the number of calls and answers of each session, by the place of the op that begins it."""
    begun: dict[str, int] = {}
    counts: dict[int, int] = {}
    for place, op in enumerate(ops):
        if op.do == "reset":
            begun[op.on], counts[place] = place, 0
        for one in (op, *(one for lane in op.lanes for one in lane)):
            if one.do in ("call", "answer") and one.on in begun:
                counts[begun[one.on]] += one.times
    return counts


def waits(ops: Iterable[Op]) -> bool:
    return any(op.do == "wait" or any(map(waits, op.lanes)) for op in ops)


def call(name: str, arguments: dict[str, Any] | None = None, *, on: str = "a", mark: str = "") -> Op:
    """Returns the op that calls a tool."""
    return Op("call", on, name, arguments or {}, mark=mark)


def answer(text: str, *, on: str = "a", mark: str = "") -> Op:
    return Op("answer", on, value=text, mark=mark)


def score(*, on: str = "a", times: int = 1, mark: str = "score") -> Op:
    return Op("score", on, times=times, mark=mark)


def state(*, on: str = "a", mark: str = "state") -> Op:
    """Returns the op that reads the world."""
    return Op("state", on, mark=mark)


def together(*lanes: Sequence[Op], mark: str = "together") -> Op:
    return Op("together", lanes=tuple(tuple(lane) for lane in lanes), mark=mark)


def ask(function: str, value: Any = None, *, on: str = "a", mark: str = "ask") -> Op:
    return Op("ask", on, function, value, mark=mark)


class ProcessContext(msgspec.Struct, frozen=True, omit_defaults=True):
    """Settings of the process in which a probe is played: `hash_seed` is PYTHONHASHSEED, `zone` TZ and `locale` LC_ALL.

    Attributes:
        elsewhere: Use another working folder, HOME and user name.
        thread: Run ops in a thread that is not the main one.
        loaded: Keep every core busy meanwhile.
        days: Days by which the wall clock is ahead.
    """

    hash_seed: int = 0
    zone: str = "UTC"
    locale: str = "C.UTF-8"
    elsewhere: bool = False
    thread: bool = False
    loaded: bool = False
    days: float = 0


HOME = ProcessContext()


class Probe(msgspec.Struct, frozen=True, omit_defaults=True):
    """Ops and the context in which they are played."""

    ops: tuple[Op, ...]
    context: ProcessContext = HOME

    def without(self, gone: Iterable[int]) -> Probe:
        """Returns the probe without the ops at some places."""
        left = set(gone)
        return Probe(tuple(op for place, op in enumerate(self.ops) if place not in left), self.context)


class OpResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Result of one op.

    Attributes:
        value: Plain data; None if it raised.
        raised: "Type: message" of an exception; empty without one.
        how: "" for success; "refused": the subject rejected the call on purpose; "crashed": any other exception;
            "absent": the subject does not offer the method; "hung": the op never returned.
        where: File and line of the exception's last frame.
        odd: The value was not plain data; `value` is its repr.
        seconds: Wall time; comparisons ignore it.
    """

    value: Any = None
    raised: str = ""
    how: str = ""
    where: str = ""
    odd: bool = False
    seconds: float = 0.0

    @property
    def fine(self) -> bool:
        return not self.how

    @property
    def is_error(self) -> bool:
        """True if the agent sees an error, as an exception or in the observation."""
        return bool(self.how) or speaks_of_error(self.value)

    def content(self) -> tuple[Any, str, str]:
        """Returns what comparisons read: the value, the exception's type and `how`."""
        return self.value, self.raised.partition(":")[0], self.how


def text_of(seen: OpResult) -> str:
    """Returns the result of an op as text: its exception, or its value."""
    if seen.raised:
        return seen.raised
    return seen.value if isinstance(seen.value, str) else json.dumps(seen.value, ensure_ascii=False, default=str)


OVERDUE = "it had not come back after"  # prefix of a record's `died` after a timeout


class Record(msgspec.Struct, frozen=True):
    """Results of a probe, one per op; after a hang the rest are missing.

    Attributes:
        died: Why the process ended early; empty if it did not.
        left: Number of processes that the probe left behind; they have been killed.
    """

    ops: tuple[Op, ...]
    seen: tuple[OpResult, ...]
    died: str = ""
    left: int = 0

    def at(self, mark: str) -> OpResult:
        """Returns the result of the op with this mark, "hung" if it was never reached; raises KeyError without one."""
        for place, op in enumerate(self.ops):
            if op.mark == mark:
                return self.seen[place] if place < len(self.seen) else OpResult(how="hung", raised=self.died)
        raise KeyError(f"no op of this probe is marked {mark!r}: {[op.mark for op in self.ops if op.mark]}")

    def lane(self, mark: str, number: int) -> list[OpResult]:
        """Returns the results of one lane of a `together`."""
        lanes: list[Any] = self.at(mark).value or []
        return [msgspec.convert(one, OpResult) for one in lanes[number]] if number < len(lanes) else []

    @property
    def broken(self) -> OpResult | None:
        """Returns the result of the first op that crashed or hung, or None."""
        return next((one for one in self.seen if one.how in ("crashed", "hung")), None)


def number(seen: OpResult) -> float | None:
    """Returns the score that an op `score` gave, or None."""
    value: Any = seen.value
    if is_dict(value):
        value = value.get("score")
    return float(value) if isinstance(value, int | float) and seen.fine else None


def masked(value: Any, volatile: Iterable[str]) -> Any:
    """Returns the value with the fields of these names replaced by a constant."""
    names = frozenset(volatile)
    if is_dict(value) and names:
        return {key: "<volatile>" if key in names else masked(item, names) for key, item in value.items()}
    return [masked(item, names) for item in value] if is_list(value) and names else value


def same(one: OpResult, other: OpResult, volatile: Iterable[str] = ()) -> bool:
    """True if both results are equal in value and type. Dict order is ignored except inside text."""
    names = frozenset(volatile)
    first, second = (codec.dumps((masked(seen.value, names), *seen.content()[1:]), repr) for seen in (one, other))
    return first == second
