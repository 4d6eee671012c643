"""The fault matrix of tools: one call, once with each fault injected and once without, all else equal.

A backend that fails, and an answer that is not an error but differs from the one without the fault: the tool made it
up. The comparison needs no list of suspicious defaults, and a tool that uses no backend is never accused: its answer is
equal.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence
from quintain.audit.kernel.probe import FAULTS, Op, OpResult, Probe, Record, reset, same
from quintain.audit.kernel.registry import relation

HERE = f"{__name__}:"
_SAID = re.compile(
    r"error|fail|exception|traceback|time[sd]?.?out|timeout|unavailable|unreachable|unreadable|refused|reset by peer"
    r"|too many|rate.?limit|throttl|truncat|incomplete|partial|half an|cut off|cancel|abort|interrupt|memory|\bdisk\b"
    r"|no space|degraded|stale|cached|offline|\bdown\b|try again|retry|could not|couldn't|cannot|can't|unable|warning"
    r"|malformed|not respond|no (answer|response|reply)|empty (answer|response|reply|body|payload)|corrupt"
    r'|"(status|code|status_code)": "?[45]\d\d\b|"(success|ok|complete)": false',
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"(^|_)(at|on|ts|now|time|timestamp|date|elapsed|latency|duration|attempts?|tries|seconds|ms)$|retr(y|ies)",
    re.IGNORECASE,
)


def admits(seen: OpResult, free: OpResult) -> bool:
    """True if an answer reports a problem in words that it lacks without the fault."""
    if seen.is_error:
        return True
    return bool(_words(seen.value) - _words(free.value))


def _words(value: Any) -> frozenset[str]:
    return _said(value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False))


@functools.lru_cache(maxsize=64)  # One answer is held against those of all faults.
def _said(text: str) -> frozenset[str]:
    return frozenset(found.group().lower() for found in _SAID.finditer(text))


def alike(first: OpResult, second: OpResult, volatile: Sequence[str]) -> bool:
    """The same, times and counts of attempts aside: a tool that tried again has done nothing wrong."""
    return same(_blurred(first), _blurred(second), volatile)


def _blurred(seen: OpResult) -> OpResult:
    def walk(value: Any) -> Any:
        if is_dict(value):
            return {key: "<passing>" if _PASSING.search(key) else walk(item) for key, item in value.items()}
        return [walk(item) for item in value] if is_list(value) else value

    return msgspec.structs.replace(seen, value=walk(seen.value))


# --- relations: each states the bug; the first record has the fault, the second has none ---


@relation
def defaults(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the call with the fault succeeds with another answer than without it."""
    got, true, again = _three(records, "call")
    is_sure = not true.is_error and alike(true, again, evidence.volatile)
    made_up = got.fine and not admits(got, true) and not alike(got, true, evidence.volatile)
    return records[0].at("inject").fine and is_sure and made_up


@relation
def loses(records: Sequence[Record], evidence: Evidence) -> bool:
    """With the fault the call says what it says without, and a change that it makes without is missing."""
    got, true, _ = _three(records, "call")
    is_said = not true.is_error and got.fine and not admits(got, true)
    return records[0].at("inject").fine and is_said and bool(lost(records, evidence.volatile))


def lost(records: Sequence[Record], volatile: Sequence[str]) -> list[str]:
    """Paths that the call changes without the fault, both times in the same way, and not with it."""
    look, true, again = (seen.value for seen in _three(records, "look"))
    was = records[1].at("was").value
    if not all(map(is_dict, (look, true, again, was))):
        return []
    known = [path for path in true if not set(path.split("/")) & {*volatile, "<more>"}]
    done = [path for path in known if true[path] != was.get(path) and again.get(path) == true[path]]
    return [path for path in done if look.get(path) == was.get(path)]


@relation
def lingers(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the call still gives a wrong answer without an error after the fault is over."""
    got, true, again = _three(records, "after")
    is_steady = alike(records[1].at("call"), true, evidence.volatile)  # An answer that chance has a part in is none.
    is_sure = not true.is_error and is_steady and alike(true, again, evidence.volatile)
    wrong = got.fine and not admits(got, true) and not alike(got, true, evidence.volatile)
    return records[0].at("inject").fine and is_sure and wrong


def _three(records: Sequence[Record], mark: str) -> tuple[OpResult, OpResult, OpResult]:
    return records[0].at(mark), records[1].at(mark), records[1].at(f"{mark} again")


# --- probes ---


def accepted(ctx: AuditContext) -> list[str]:
    """Faults that the subject can be asked for."""
    if not ctx.tasks:
        return []
    ops = [op for fault in FAULTS for op in (reset(ctx.tasks[0]), Op("inject", name=fault, mark=fault))]
    record = ctx.play(*ops)
    return [fault for fault in FAULTS if record.at(fault).fine]


def cells(ctx: AuditContext, tools: Sequence[str]) -> list[Cell]:
    """One or two for each tool; what also works at the beginning of the episode is called there."""
    known = [call for tool in tools for call in _chosen(ctx, tool)]
    look = (Op("changes", mark="look"),) if "state" in ctx.offers else ()
    records = ctx.play_all([Probe((reset(call.task), call.op.marked("call"), *look)) for call in known])
    found: list[Cell] = []
    for call, record in zip(known, records, strict=True):
        changed = bool(look) and bool(record.at("look").value)
        works = not record.at("call").is_error and changed >= bool(call.writes)
        short = msgspec.structs.replace(call, before=()) if works else call
        found.append(Cell(short, call.writes is True and "state" in ctx.offers))
    return found


def _chosen(ctx: AuditContext, tool: str) -> Iterator[KnownCall]:
    """The calls of a tool that would show most: one that answers much, and one that changes most."""
    known = sorted(ctx.discovery.of(tool), key=lambda call: (-_weight(call.seen.value), len(call.before)))
    tried = [
        KnownCall(
            variation.base_state.task,
            variation.base_state.before,
            variation.op,
            variation.seen,
            tuple(variation.changes or ()),
        )
        for variation in ctx.variations.of(tool)
        if variation.kind in ("good", "legal") and variation.works and not variation.changes
    ]
    rich = sorted(tried, key=lambda call: -len(str(call.seen.value)))[:1]
    kept: list[KnownCall] = []
    for item in (known[:1], sorted(known, key=lambda call: (-len(call.changed or ()), len(call.before)))[:1]):
        kept += [known for known in item if known not in kept]
    if rich and all(len(str(known_call.seen.value)) * 2 < len(str(rich[0].seen.value)) for known_call in kept):
        kept += rich  # Half of next to nothing is nothing.
    yield from kept


def _weight(value: Any) -> int:
    return min(len(json.dumps(value, default=str)), 200)


class Cell(msgspec.Struct, frozen=True):
    """A call, to be played with a fault and without.

    Attributes:
        looks: The world is compared, too.
    """

    known: KnownCall
    looks: bool

    @property
    def head(self) -> tuple[Op, ...]:
        return (reset(self.known.task), *self.known.before)

    def faulted(self, fault: str, tag: str = "") -> tuple[Op, ...]:
        """With the fault; `tag` stands behind each mark."""
        return (Op("inject", name=fault, mark=f"inject{tag}"), *self._tail(tag))

    def free(self, tag: str = "") -> tuple[Op, ...]:
        """Returns the ops without the fault."""
        return (*((Op("changes", mark=f"was{tag}"),) if self.looks else ()), *self._tail(tag))

    def _tail(self, tag: str) -> tuple[Op, ...]:
        call, after = self.known.op.marked(f"call{tag}"), self.known.op.marked(f"after{tag}")
        return (call, Op("changes", mark=f"look{tag}") if self.looks else after)

    def pair(self, fault: str) -> tuple[Probe, Probe]:
        """With the fault, and twice without."""
        return pair(self.head, self.faulted(fault), free=self.free(), again=self.free(" again"))

    def sweep(self, ctx: AuditContext, faults: Sequence[str]) -> Probe:
        """All faults, each from the same moment, then twice without."""
        ways = [self.faulted(fault, f" {fault}") for fault in faults]
        return sweep(ctx, self.head, [*ways, self.free(), self.free(" again")])


def pair(
    head: tuple[Op, ...], faulted: tuple[Op, ...], *, free: tuple[Op, ...], again: tuple[Op, ...]
) -> tuple[Probe, Probe]:
    """From the same beginning once with a fault, and on two instances without."""
    return Probe((*head, *faulted)), Probe((*head, *free, *(op.moved("b") for op in (*head, *again))))


def sweep(ctx: AuditContext, head: tuple[Op, ...], ways: Sequence[tuple[Op, ...]]) -> Probe:
    """Many ways from one moment: by going back to it where that is offered, else on an instance each."""
    if {"snapshot", "restore"} <= ctx.offers:
        back = Op("restore", name="here")
        return Probe((*head, Op("snapshot", name="here"), *(op for way in ways for op in (back, *way))))
    return Probe(tuple(op.moved(f"s{place}") for place, way in enumerate(ways) for op in (*head, *way)))


def read_sweep(record: Record, fault: str) -> tuple[Record, Record]:
    """One fault's part of a sweep, and the part without one, as the records of a pair."""
    return _part(record, f" {fault}"), record


def _part(record: Record, tag: str) -> Record:
    own_places = [place for place, op in enumerate(record.ops) if op.mark.endswith(tag)]
    ops = tuple(record.ops[place] for place in own_places)
    seen = tuple(record.seen[place] for place in own_places if place < len(record.seen))
    return Record(tuple(op.marked(op.mark.removesuffix(tag)) for op in ops), seen, record.died)
