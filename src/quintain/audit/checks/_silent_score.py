"""The fault matrix of the verdict: the reward when the verifier cannot read the world.

On a good world a criterion that counts as met when it cannot be checked pays the right reward, so the verdict is
requested on worlds of many kinds: untouched, half done, done, done but for one change, and done with damage beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain import codec
from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, number, reset, same, score
from quintain.audit.kernel.registry import relation

from ._silent_faults import pair, sweep

HERE = f"{__name__}:"
WORLDS = 6
"""Kinds of worlds of one task on which all faults are tried."""


@relation
def pays_anyway(records: Sequence[Record], evidence: Evidence) -> bool:
    """With the fault there is a verdict, and not the one that there is without."""
    faulted, free = records
    got, true = faulted.at("score"), free.at("score")
    is_sure = true.fine and same(true, free.at("score again"), evidence.volatile)
    is_told = faulted.at("inject").fine and number(got) is not None
    return is_sure and is_told and not _equal(got, true, evidence.volatile) and _went_alike(faulted, free)


@relation
def uses_up(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the verdict is the same with the fault and the fault is used up: it was hit and not reported."""
    asked, alone, free = records
    equal = _equal(asked.at("score"), free.at("score"), evidence.volatile)
    is_met = not asked.at("next").is_error and alone.at("next").is_error and not free.at("next").is_error
    return asked.at("inject").fine and alone.at("inject").fine and equal and is_met


def _equal(first: OpResult, second: OpResult, volatile: Sequence[str]) -> bool:
    """True if score and numeric components are equal; words may differ, and missing components do not count."""
    if number(first) != number(second):
        return False
    own_fields, other_fields = ({**seen.value} if is_dict(seen.value) else {} for seen in (first, second))
    both = (own_fields.keys() & other_fields.keys()) - {*volatile}
    return all(
        own_fields[name] == other_fields[name]
        for name in both
        if is_number(own_fields[name]) and is_number(other_fields[name])
    )


def _went_alike(faulted: Record, free: Record) -> bool:
    """The last words were taken, or not, in the same way, where the fault already lay in wait for them."""
    if all(op.mark != "said" for op in faulted.ops):
        return True
    return faulted.at("said").is_error == free.at("said").is_error


class World(msgspec.Struct, frozen=True):
    """A way to a world, and the verdict on it.

    Attributes:
        name: Of which kind it is.
    """

    task: str
    name: str
    ops: tuple[Op, ...]
    verdict: Any = None

    @property
    def speaks(self) -> bool:
        """True if it ends in an answer, which may be judged at once."""
        return bool(self.ops) and self.ops[-1].do == "answer"

    def _ways(self, *, words: bool) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
        cut = len(self.ops) - 1 if words else len(self.ops)
        return (reset(self.task), *self.ops[:cut]), self.ops[cut:]

    def pair(self, fault: str, *, words: bool = False) -> tuple[Probe, Probe]:
        """With the fault, already while the last words are said if `words`; and twice without."""
        head, said = self._ways(words=words)
        return pair(head, _scored(said, "", fault), free=_scored(said, ""), again=_scored(said, " again"))

    def sweep(self, ctx: AuditContext, faults: Sequence[str], *, words: bool = False) -> Probe:
        """All faults, each from the same moment, then twice without."""
        head, said = self._ways(words=words)
        ways = [_scored(said, f" {fault}", fault) for fault in faults]
        return sweep(ctx, head, [*ways, _scored(said, ""), _scored(said, " again")])


def _scored(said: Sequence[Op], tag: str, fault: str = "") -> tuple[Op, ...]:
    inject = (Op("inject", name=fault, mark=f"inject{tag}"),) if fault else ()
    return (*inject, *(op.marked(f"said{tag}") for op in said), score(mark=f"score{tag}"))


def worlds(ctx: AuditContext, task: str) -> list[World]:
    """Worlds of a task that are judged differently, one of each kind."""
    candidates = list(_candidates(ctx, task))
    records = ctx.play_all([Probe((reset(task), *world.ops, score())) for world in candidates])
    found: dict[bytes, World] = {}
    for world, record in zip(candidates, records, strict=True):
        seen = record.at("score")
        if number(seen) is None or (record.broken is not None):
            continue
        kind = world.name if world.name in ("untouched", "done") else ""
        key = codec.dumps((seen.value, kind), repr)
        found.setdefault(key, msgspec.structs.replace(world, verdict=seen.value))
    return list(found.values())[:WORLDS]


def _candidates(ctx: AuditContext, task: str) -> Iterator[World]:
    ops = ctx.oracle(task) or ()
    acts = tuple(op for op in ops if op.do != "answer")
    words = ops[len(acts) :]
    yield World(task, "untouched", ())
    if ops:
        yield World(task, "done", ops)
    for damage in _damages(ctx, task, acts):
        yield World(task, "damaged", (*acts, *damage, *words))
    writers = set(ctx.discovery.writers)
    writes = [place for place, op in enumerate(acts) if op.name in writers] or list(range(len(acts)))
    for place in writes[:3]:
        yield World(task, "not quite done", (*acts[:place], *acts[place + 1 :], *words))
    if words and acts:
        yield World(task, "only said", words)
        yield World(task, "done in silence", acts)
    elif words:
        yield World(task, "wrong words", (Op("answer", value="something else"),))
    if len(acts) > 1:
        yield World(task, "half done", acts[: len(acts) // 2])


def _damages(ctx: AuditContext, task: str, acts: Sequence[Op]) -> list[tuple[Op, ...]]:
    """Writes that the solution does not make: those of other tasks, and the solution's own with other values."""
    own_value = {(op.name, str(op.value)) for op in acts}
    writes = sorted(ctx.discovery.writes(), key=lambda call: (bool(call.before), call.task != task))
    if not writes:  # Writes are invisible: take the calls that worked.
        writes = list(ctx.discovery.calls)
    found: dict[str, tuple[Op, ...]] = {}
    for known_call in writes:
        if (known_call.op.name, str(known_call.op.value)) not in own_value:
            found.setdefault(f"{known_call.op.name} {known_call.task == task}", (known_call.op,))
    strange = list(found.values())[:4]
    writers = set(ctx.discovery.writers)
    for op in acts:
        if op.name in writers and is_dict(op.value):
            strange += [
                (msgspec.structs.replace(op, value=value),) for value in _other_arguments(ctx, op.name, op.value)
            ]
    return strange[:8]


def _other_arguments(ctx: AuditContext, tool: str, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the arguments with one other value: of the enum, from the world, or seen under that name."""
    properties = {
        name: schema for spec in ctx.about.tools if spec.name == tool for name, schema in spec.properties.items()
    }
    for name, given in value.items():
        schema = properties.get(name)
        choices: list[Any] = list(schema.get("enum") or ()) if is_dict(schema) else []
        beside = [item for state in ctx.discovery.states.values() for item in _beside(state, given)]
        seen = [*choices, *beside, *ctx.discovery.values.of(name)] or ([given + 1] if is_number(given) else [])
        seen = list(dict.fromkeys(item for item in seen if type(item) is type(given) and item != given))
        yield from ({**value, name: item} for item in seen[:3])


def _beside(value: Any, given: Any, depth: int = 0) -> Iterator[Any]:
    """Other keys of a table that has this key, and other values of a column that has this value."""
    if depth > 3:
        return
    if is_dict(value):
        if isinstance(given, str) and given in value:
            yield from value
        for item in value.values():
            yield from _beside(item, given, depth + 1)
    elif is_list(value):
        rows = [row for row in value if is_dict(row)]
        columns = {name for row in rows for name, cell in row.items() if cell == given and type(cell) is type(given)}
        for name in sorted(columns):
            yield from (row[name] for row in rows if isinstance(row.get(name), str | int))


def components_never_move(found: Sequence[World]) -> bool:
    """True if some component of the verdict, or a lone score, is the same on all these worlds."""
    verdicts = [world.verdict if is_dict(world.verdict) else {"score": world.verdict} for world in found]
    names = {name for verdict in verdicts for name in verdict}
    return any(len({repr(verdict.get(name)) for verdict in verdicts}) < 2 for name in names)
