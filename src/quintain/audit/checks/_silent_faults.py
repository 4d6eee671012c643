"""The fault matrix: a call or a verdict, once with each fault injected and twice without, all else equal.

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

from quintain import codec
from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.kernel.check import NotChecked
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence
from quintain.audit.kernel.probe import FAULTS, Op, OpResult, Probe, Record, number, reset, same, score
from quintain.audit.kernel.registry import relation

WORLDS, DAMAGES = 6, 8
"""Kinds of worlds of one task on which all faults are tried; worlds with damage among the candidates."""
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


class Cell(msgspec.Struct, frozen=True):
    """A call or a verdict, to be played with a fault and without.

    Attributes:
        name: The tool, or the kind of world that is judged.
        head: Ops that come before.
        tail: Ops that meet the fault, each with a mark.
        looks: The state is read before the tail, except with a fault.
    """

    name: str
    head: tuple[Op, ...]
    tail: tuple[Op, ...]
    looks: bool = False

    def _way(self, tag: str, fault: str = "") -> tuple[Op, ...]:
        inject, look = Op("inject", name=fault, mark=f"inject{tag}"), Op("changes", mark=f"was{tag}")
        first = (inject,) if fault else (look,) if self.looks else ()
        return (*first, *(op.marked(f"{op.mark}{tag}") for op in self.tail))

    def pair(self, fault: str) -> tuple[Probe, Probe]:
        """Returns a probe with the fault, and one that goes the way without it twice."""
        again = (op.moved("b") for op in (*self.head, *self._way(" again")))
        return Probe((*self.head, *self._way(f" {fault}", fault))), Probe((*self.head, *self._way(""), *again))

    def sweep(self, ctx: AuditContext, faults: Sequence[str]) -> Probe:
        """Returns a probe of all ways, each from the same moment: by going back to it, or on an instance each."""
        ways = [*(self._way(f" {fault}", fault) for fault in faults), self._way(""), self._way(" again")]
        if {"snapshot", "restore"} <= ctx.offers:
            back = Op("restore", name="here")
            return Probe((*self.head, Op("snapshot", name="here"), *(op for way in ways for op in (back, *way))))
        return Probe(tuple(op.moved(f"s{place}") for place, way in enumerate(ways) for op in (*self.head, *way)))


def accepted(ctx: AuditContext) -> list[str]:
    """Returns the faults that the subject can be asked for; raises NotChecked if there are none."""
    ops = [op for fault in FAULTS for op in (reset(ctx.tasks[0]), Op("inject", name=fault, mark=fault))]
    record = ctx.play(*ops)
    found = [fault for fault in FAULTS if record.at(fault).fine]
    if not found:
        raise NotChecked("inject() takes none of the faults")
    return found


# --- calls ---


def calls(ctx: AuditContext, tools: Sequence[str]) -> list[Cell]:
    """Returns one or two calls of each tool; what also works at the beginning of the episode is called there."""
    known = [call for tool in tools for call in _chosen(ctx, tool)]
    looks = "state" in ctx.offers
    look = (Op("changes", mark="look"),) if looks else ()
    found: list[Cell] = []
    probes = [Probe((reset(call.task), call.op.marked("call"), *look)) for call in known]
    for call, record in zip(known, ctx.play_all(probes), strict=True):
        works = not record.at("call").is_error and (looks and bool(record.at("look").value)) >= bool(call.writes)
        writes = looks and call.writes is True
        tail = (call.op.marked("call"), *(look if writes else (call.op.marked("after"),)))
        found.append(Cell(call.op.name, (reset(call.task), *(() if works else call.before)), tail, writes))
    return found


def _chosen(ctx: AuditContext, tool: str) -> Iterator[KnownCall]:
    """The calls of a tool that would show most: one that answers much, and one that changes most."""
    said = [(min(len(json.dumps(one.seen.value, default=str)), 200), one) for one in ctx.discovery.of(tool)]
    known = [one for _, one in sorted(said, key=lambda pair: (-pair[0], len(pair[1].before)))]
    kept = known[:1] + sorted(known, key=lambda call: (-len(call.changed or ()), len(call.before)))[:1]
    yield from kept[: 2 if kept[:1] != kept[1:] else 1]
    tried = [one for one in ctx.variations.of(tool) if one.kind in ("good", "legal") and one.works and not one.changes]
    rich = max(tried, key=lambda one: len(str(one.seen.value)), default=None)
    if rich and all(len(str(call.seen.value)) * 2 < len(str(rich.seen.value)) for call in kept):
        # Half of next to nothing is nothing.
        yield KnownCall(rich.base_state.task, rich.base_state.before, rich.op, rich.seen, tuple(rich.changes or ()))


# --- verdicts ---


def verdicts(ctx: AuditContext, task: str) -> list[Cell]:
    """Returns verdicts on worlds that are judged differently, one of each kind; an answer may meet the fault, too.

    On a good world a criterion that counts as met when it cannot be checked pays the right reward, so the verdict is
    requested on worlds of many kinds.
    """
    worlds = list(_worlds(ctx, task))
    found: dict[bytes, Cell] = {}
    records = ctx.play_all([solves(task, ops) for _, ops in worlds])
    for (name, ops), record in zip(worlds, records, strict=True):
        seen = record.at("score")
        if number(seen) is not None and record.broken is None:
            key = codec.dumps((seen.value, name if name in ("untouched", "done") else ""), repr)
            found.setdefault(key, Cell(name, (reset(task), *ops), (score(),)))
    kept = list(found.values())[:WORLDS]
    spoken = [cell for cell in kept if cell.head[-1].do == "answer"]
    return kept + [
        Cell(cell.name, cell.head[:-1], (cell.head[-1].marked("said"), score(mark="score"))) for cell in spoken
    ]


def _worlds(ctx: AuditContext, task: str) -> Iterator[tuple[str, tuple[Op, ...]]]:
    ops = ctx.oracle(task) or ()
    acts = tuple(op for op in ops if op.do != "answer")
    words = ops[len(acts) :]
    yield "untouched", ()
    if ops:
        yield "done", ops
    for damage in _damages(ctx, acts):
        yield "damaged", (*acts, damage, *words)
    writers = set(ctx.discovery.writers)
    writes = [place for place, op in enumerate(acts) if op.name in writers] or list(range(len(acts)))
    for place in writes[:3]:
        yield "not quite done", (*acts[:place], *acts[place + 1 :], *words)
    if words and acts:
        yield "only said", words
        yield "done in silence", acts
    elif words:
        yield "wrong words", (Op("answer", value="something else"),)
    if len(acts) > 1:
        yield "half done", acts[: len(acts) // 2]


def _damages(ctx: AuditContext, acts: Sequence[Op]) -> list[Op]:
    """Writes that the solution does not make: those of other tools and tasks, and its own with other values."""
    done = {_key(op) for op in acts}
    written = [call.op.marked("") for call in ctx.discovery.writes() or ctx.discovery.calls]
    further = {op.name: op for op in reversed(written) if _key(op) not in done}
    own = [op for op in acts if op.name in ctx.discovery.writers and is_dict(op.value)]
    changed = [
        msgspec.structs.replace(op, value=op.value | {name: item})
        for op in own
        for name, given in op.value.items()
        for item in _others(ctx, op.name, name, given=given)
    ]
    return [*list(further.values())[: DAMAGES // 2], *changed][:DAMAGES]


def _key(op: Op) -> str:
    return f"{op.name} {op.value}"


def _others(ctx: AuditContext, tool: str, name: str, *, given: Any) -> list[Any]:
    """Other values of an argument: of the enum, from the world, or seen under that name."""
    schema = next((spec.properties.get(name) for spec in ctx.about.tools if spec.name == tool), None)
    seen: list[Any] = list(schema.get("enum") or ()) if is_dict(schema) else []
    seen += [item for state in ctx.discovery.states.values() for item in _beside(state, given)]
    seen += ctx.discovery.values.of(name)
    known = [item for item in seen if type(item) is type(given) and item != given]
    return list(dict.fromkeys(known or ([given + 1] if is_number(given) else [])))[:3]


def _beside(value: Any, given: Any) -> Iterator[Any]:
    """Other keys of a table that has this key, and other values of a column that has this value."""
    if is_dict(value):
        yield from value if isinstance(given, str) and given in value else ()
        for item in value.values():
            yield from _beside(item, given)
    elif is_list(value):
        rows = [row for row in value if is_dict(row)]
        names = {name for row in rows for name, cell in row.items() if cell == given and type(cell) is type(given)}
        yield from (row[name] for name in sorted(names) for row in rows if isinstance(row.get(name), str | int))


# --- the relation ---

MARKS = {"defaults": "call", "loses": "look", "lingers": "after", "pays": "score"}
"""Ways to hide a fault, with the mark of the op that shows it."""


@relation
def hides(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a fault is hidden in a way, as `data` says: [way, fault].

    The call with the fault succeeds with another answer than without it ("defaults"), says what it says without and has
    not done it ("loses"), or still gives a wrong answer when the fault is over ("lingers"); or there is a verdict, and
    not the one that there is without ("pays").
    """
    way, fault = evidence.data
    volatile = evidence.volatile
    tried, free = records[0], records[-1]
    if not tried.at(f"inject {fault}").fine or MARKS[way] not in {op.mark for op in free.ops}:
        return False
    mark = "call" if way == "loses" else MARKS[way]
    got, true, again = tried.at(f"{mark} {fault}"), free.at(mark), free.at(f"{mark} again")
    if way == "pays":
        # The last words were taken, or not, in the same way, where the fault already lay in wait for them.
        said = any(op.mark == "said" for op in free.ops)
        took_alike = not said or tried.at(f"said {fault}").is_error == free.at("said").is_error
        is_sure = true.fine and same(true, again, volatile) and took_alike
        return is_sure and number(got) is not None and not _pays_alike(got, true, volatile)
    is_told = true.is_error or not got.fine or got.is_error or bool(_words(got.value) - _words(true.value))
    if is_told or way == "loses":
        return not is_told and bool(lost(records, evidence))
    steady = [free.at("call")] if way == "lingers" else []  # An answer that chance has a part in is none.
    return all(_alike(true, one, volatile) for one in (*steady, again)) and not _alike(got, true, volatile)


def lost(records: Sequence[Record], evidence: Evidence) -> list[str]:
    """Paths that the call changes without the fault, both times in the same way, and not with it."""
    fault = evidence.data[1]
    look, free = records[0].at(f"look {fault}").value, records[-1]
    was, true, again = (free.at(mark).value for mark in ("was", "look", "look again"))
    if not all(map(is_dict, (look, true, again, was))):
        return []
    known = [path for path in true if not set(path.split("/")) & {*evidence.volatile, "<more>"}]
    done = [path for path in known if true[path] != was.get(path) and again.get(path) == true[path]]
    return [path for path in done if look.get(path) == was.get(path)]


def _words(value: Any) -> frozenset[str]:
    return _said(value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False))


@functools.lru_cache(maxsize=64)  # One answer is held against those of all faults.
def _said(text: str) -> frozenset[str]:
    """Returns the words that report a problem."""
    return frozenset(found.group().lower() for found in _SAID.finditer(text))


def _alike(first: OpResult, second: OpResult, volatile: Sequence[str]) -> bool:
    """The same, times and counts of attempts aside: a tool that tried again has done nothing wrong."""
    one, other = (msgspec.structs.replace(seen, value=_blurred(seen.value)) for seen in (first, second))
    return same(one, other, volatile)


def _blurred(value: Any) -> Any:
    if is_dict(value):
        return {key: "<passing>" if _PASSING.search(key) else _blurred(item) for key, item in value.items()}
    return [_blurred(item) for item in value] if is_list(value) else value


def _pays_alike(first: OpResult, second: OpResult, volatile: Sequence[str]) -> bool:
    """True if score and numeric components are equal; words may differ, and missing components do not count."""
    one, other = ({**seen.value} if is_dict(seen.value) else {} for seen in (first, second))
    both = [(one[name], other[name]) for name in (one.keys() & other.keys()) - {*volatile}]
    return number(first) == number(second) and all(a == b for a, b in both if is_number(a) and is_number(b))
