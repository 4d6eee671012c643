"""A survey of the subject before the checks: calls that work and where, which tools read and which write.

A few tasks are walked along their oracle, with the state looked at around each call; then every tool that was not met
is called with arguments drawn from its schema and from what was seen so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from .generate import Values, valid
from .probe import Op, Probe, Record, Seen, call, reset, same

if TYPE_CHECKING:
    from .lab import Lab

WALKED = 8
"""Tasks whose oracle is walked."""
DRAWN = 12
"""Calls that are tried for a tool that no oracle uses."""


class Known(msgspec.Struct, frozen=True):
    """A call that worked.

    Attributes:
        task: In which.
        before: Ops between the reset and the call.
        op: The call.
        seen: What it gave.
        writes: Whether the world's state was another one afterwards; None where the state cannot be seen.
    """

    task: str
    before: tuple[Op, ...]
    op: Op
    seen: Seen
    writes: bool | None


class Survey(msgspec.Struct, frozen=True):
    """What was learned.

    Attributes:
        calls: Those that worked, oracle's first.
        values: Scalars seen in prompts, observations and states.
        refused: Tools for which no call worked.
        states: A start state by task, where states can be seen.
    """

    calls: tuple[Known, ...]
    values: Values
    refused: tuple[str, ...]
    states: dict[str, Any]

    @property
    def writers(self) -> tuple[str, ...]:
        """Tools of which some call changed the state."""
        return tuple(dict.fromkeys(one.op.name for one in self.calls if one.writes))

    @property
    def readers(self) -> tuple[str, ...]:
        """Tools that worked and never changed it; unknown where the state cannot be seen, then by what they answer."""
        writers = set(self.writers)
        return tuple(dict.fromkeys(one.op.name for one in self.calls if one.op.name not in writers))

    def of(self, tool: str) -> tuple[Known, ...]:
        """The calls of a tool that worked."""
        return tuple(one for one in self.calls if one.op.name == tool)

    def writes(self) -> tuple[Known, ...]:
        return tuple(one for one in self.calls if one.writes)

    def reads(self) -> tuple[Known, ...]:
        readers = set(self.readers)
        return tuple(one for one in self.calls if one.op.name in readers and one.writes is not True)


def survey(lab: Lab) -> Survey:
    """Walk and draw. What it costs is shared by all checks."""
    values = Values()
    states: dict[str, Any] = {}
    tasks = lab.some(WALKED)
    walks = [(task, lab.oracle(task) or ()) for task in tasks]
    records = lab.play_all([Probe(tuple(_walk(lab, task, ops))) for task, ops in walks])
    calls: list[Known] = []
    for (task, _), record in zip(walks, records, strict=True):
        calls += _read(lab, task, record, values=values, states=states)
    met = {one.op.name for one in calls}
    missing = [tool.name for tool in lab.about.tools if tool.name not in met]
    calls += _draw(lab, missing, values, tasks)
    found = {one.op.name for one in calls}
    return Survey(tuple(calls), values, tuple(name for name in missing if name not in found), states)


def look(lab: Lab) -> str:
    """The op that sees the world past its tools: "digest" where there is one, else "state"; "" for neither."""
    return next((name for name in ("digest", "state") if name in lab.offers), "")


def _walk(lab: Lab, task: str, ops: Sequence[Op]) -> Iterator[Op]:
    eye = look(lab)
    yield reset(task, mark="reset")
    if "state" in lab.offers:
        yield Op("state", mark="start")
    if eye:
        yield Op(eye, mark="look -1")
    for place, op in enumerate(ops):
        yield op.marked(f"op {place}")
        if eye:
            yield Op(eye, mark=f"look {place}")


def _read(lab: Lab, task: str, record: Record, *, values: Values, states: dict[str, Any]) -> Iterator[Known]:
    eye, ops = look(lab), lab.oracle(task) or ()
    values.take(record.at("reset").value, "prompt")
    if "state" in lab.offers:
        states[task] = record.at("start").value
        values.take(states[task])
    for place, op in enumerate(ops):
        seen = record.at(f"op {place}")
        values.take(seen.value, op.name)
        if op.do == "call":
            values.take(op.value)
        if op.do != "call" or seen.is_error:
            continue
        writes = None
        if eye:
            writes = not same(record.at(f"look {place - 1}"), record.at(f"look {place}"), lab.volatile)
        yield Known(task, tuple(ops[:place]), op, seen, writes)


def _draw(lab: Lab, missing: Sequence[str], values: Values, tasks: Sequence[str]) -> list[Known]:
    """Calls of the tools that no oracle uses, each at the start of some task."""
    if not tasks:
        return []
    specs = [tool for tool in lab.about.tools if tool.name in set(missing)]
    tried: list[tuple[str, Op]] = []
    for number, tool in enumerate(specs):
        task = tasks[number % len(tasks)]
        tried += [(task, call(tool.name, valid(tool, values, lab.rng))) for _ in range(DRAWN)]
    eye = look(lab)
    eyes = ((Op(eye, mark="before"),), (Op(eye, mark="after"),)) if eye else ((), ())
    probes = [Probe((reset(task), *eyes[0], op.marked("op"), *eyes[1])) for task, op in tried]
    found: list[Known] = []
    kept: dict[str, int] = {}
    for (task, op), record in zip(tried, lab.play_all(probes), strict=True):
        seen = record.at("op")
        if seen.is_error or kept.get(op.name, 0) >= 3:
            continue
        values.take(seen.value, op.name)
        kept[op.name] = kept.get(op.name, 0) + 1
        writes = not same(record.at("before"), record.at("after"), lab.volatile) if eye else None
        found.append(Known(task, (), op, seen, writes))
    return found
