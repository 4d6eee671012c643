"""A probe: a short program on an environment, as plain data, so that whoever holds it can play it again.

A probe is a sequence of ops on named *instances* (sessions of the subject, each made at its first use); playing it in
a context gives a `Seen` per op. A claim about an environment is a relation between what a few probes saw
(`relations.py`), and that is all a finding needs to be proved, made smaller and replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from quintain import codec

from .answers import speaks_of_error
from .data import is_dict, is_list

FAULTS = (
    "timeout", "refused", "500", "429", "empty", "truncated", "cancelled", "out_of_memory", "disk_full",
)  # fmt: skip
"""What `inject` may be asked for."""


class Op(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing done to an instance.

    Attributes:
        do: reset, call, answer, score, state, digest, explain, snapshot, restore, inject, advance, hidden, prompt,
            oracle, production, tools, judge, user, close: methods of the subject; changes: how the state differs from
            that at the reset; glance: the first entries of each table of the state; wait: real seconds pass;
            resources: what the process holds; ask: a function of ours runs inside the process; together: lanes run at
            the same time, each in a thread.
        on: The instance.
        name: Tool of a call, task of a reset, hidden, judge or user, label of a snapshot or restore, fault of an
            inject, "module:function" of an ask.
        value: Arguments of a call, text of an answer, seconds of an advance or wait, argument of an ask.
        seed: Of a reset.
        times: Do it so often; beyond once, what is seen is the list of all values.
        mark: Names what this op sees; a marked op is never taken away when a probe is made smaller.
        lanes: Of a together.
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
        """The same, on another instance."""
        return msgspec.structs.replace(self, on=on)


def reset(task: str, *, on: str = "a", seed: int = 0, mark: str = "") -> Op:
    return Op("reset", on, task, seed=seed, mark=mark)


def call(name: str, arguments: dict[str, Any] | None = None, *, on: str = "a", mark: str = "") -> Op:
    return Op("call", on, name, arguments or {}, mark=mark)


def answer(text: str, *, on: str = "a", mark: str = "") -> Op:
    return Op("answer", on, value=text, mark=mark)


def score(*, on: str = "a", times: int = 1, mark: str = "score") -> Op:
    return Op("score", on, times=times, mark=mark)


def state(*, on: str = "a", mark: str = "state") -> Op:
    return Op("state", on, mark=mark)


def together(*lanes: Sequence[Op], mark: str = "together") -> Op:
    return Op("together", lanes=tuple(tuple(lane) for lane in lanes), mark=mark)


def ask(function: str, value: Any = None, *, on: str = "a", mark: str = "ask") -> Op:
    return Op("ask", on, function, value, mark=mark)


class Context(msgspec.Struct, frozen=True, omit_defaults=True):
    """The process in which a probe is played.

    Attributes:
        hash_seed: PYTHONHASHSEED.
        zone: TZ.
        locale: LC_ALL.
        elsewhere: In another working folder, with another HOME and user name in its environment.
        thread: Ops run in a thread that is not the main one.
        loaded: Other threads and processes keep every core busy meanwhile.
        days: The wall clock that Python reads is that many days ahead, to the second.
    """

    hash_seed: int = 0
    zone: str = "UTC"
    locale: str = "C.UTF-8"
    elsewhere: bool = False
    thread: bool = False
    loaded: bool = False
    days: float = 0


HOME = Context()


class Probe(msgspec.Struct, frozen=True, omit_defaults=True):
    """Ops and where they are played."""

    ops: tuple[Op, ...]
    context: Context = HOME

    def without(self, gone: Iterable[int]) -> Probe:
        """The probe without the ops at these places."""
        left = set(gone)
        kept = tuple(op for place, op in enumerate(self.ops) if place not in left)
        return msgspec.structs.replace(self, ops=kept)


class OpResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one op gave.

    Attributes:
        value: Plain data; None when it raised.
        raised: "Type: message" of an exception; empty when there was none.
        how: "" fine; "refused": the subject raised on purpose what means that the call was wrong; "crashed": anything
            else that was raised; "absent": the subject does not offer this; "hung": it never came back.
        where: File and line of the exception's last frame.
        odd: The value was not plain data; `value` is its repr.
        seconds: Wall time; no part of comparisons.
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
        """The agent is told, in whatever way, that this did not work."""
        return bool(self.how) or speaks_of_error(self.value)

    def content(self) -> tuple[Any, str, str]:
        """What comparisons look at: the value, and the type of what was raised."""
        return self.value, self.raised.partition(":")[0], self.how


OVERDUE = "it had not come back after"
"""How a record says that its time was over."""


class Record(msgspec.Struct, frozen=True):
    """What a probe saw, op by op.

    Attributes:
        seen: One per op; the last may have hung, then those after it are missing.
        died: Why the process went away before the end; empty when it did not.
        left: Processes that the probe left behind; they have been killed.
    """

    ops: tuple[Op, ...]
    seen: tuple[OpResult, ...]
    died: str = ""
    left: int = 0

    def at(self, mark: str) -> OpResult:
        """What the op with this mark saw; "absent" when the probe never got there.

        Raises:
            KeyError: No op has that mark.
        """
        for place, op in enumerate(self.ops):
            if op.mark == mark:
                return self.seen[place] if place < len(self.seen) else OpResult(how="hung", raised=self.died)
        raise KeyError(f"no op of this probe is marked {mark!r}: {[op.mark for op in self.ops if op.mark]}")

    def lane(self, mark: str, number: int) -> list[OpResult]:
        """What one lane of a `together` saw."""
        lanes: list[Any] = self.at(mark).value or []
        return [msgspec.convert(one, OpResult) for one in lanes[number]] if number < len(lanes) else []

    @property
    def broken(self) -> OpResult | None:
        """The first op that crashed or hung."""
        return next((one for one in self.seen if one.how in ("crashed", "hung")), None)


def number(seen: OpResult) -> float | None:
    """The score that an op `score` gave; None when it gave none."""
    value: Any = seen.value
    if is_dict(value):
        value = value.get("score")
    return float(value) if isinstance(value, int | float) and seen.fine else None


def masked(value: Any, volatile: Iterable[str]) -> Any:
    """The value with the fields of these names blotted out."""
    names = frozenset(volatile)

    def walk(one: Any) -> Any:
        if is_dict(one):
            return {key: "<volatile>" if key in names else walk(item) for key, item in one.items()}
        if is_list(one):
            return [walk(item) for item in one]
        return one

    return walk(value) if names else value


def same(one: OpResult, other: OpResult, volatile: Iterable[str] = ()) -> bool:
    """Whether two ops gave the same: equal values of equal types, order of lists and of dicts included in text only."""
    return _bytes(one, volatile) == _bytes(other, volatile)


def _bytes(seen: OpResult, volatile: Iterable[str]) -> bytes:
    value, raised, how = seen.content()
    return codec.dumps((masked(value, volatile), raised, how), repr)
