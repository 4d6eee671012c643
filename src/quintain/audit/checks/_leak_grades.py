"""Checks for leaked grades: a number in an answer that equals the score, whatever the words are worth.

Each part of the solution's text is made wrong, at equal length. The world then differs in these words alone; a number
that falls with the score all the same is not data of the world, but the verifier's. An agent that can submit again can
climb it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, number, reset, score
from quintain.audit.kernel.registry import relation

from ._leak_verdict import NAMED, answered
from ._same_cache import misspelt

LEVELS, PARTS = 3, 6
"""Levels of a score that make a scale; parts of what is said that are made wrong, one by one and together."""
NEAR = 0.02
"""Largest rounding error of such a number, as a share of the scale."""


@relation
def follows(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a number in the answer tracks the score, in like worlds, and can guide a second attempt."""
    want: dict[str, Any] = evidence.data
    points: list[tuple[float, float]] = []
    worlds: list[dict[str, Any]] = []
    for record in records:
        paid, shown_value = number(record.at("score")), answered(record.at("read")).get(want["place"])
        if paid is None or not is_number(shown_value):
            return False
        points.append((paid, shown_value))
        world: Any = record.at("world").value
        worlds.append({name: both for name, both in world.items() if name.partition("/")[0] not in want["background"]})
    again = [number(record.at("again")) for record in records[1:]]
    climbs = all(paid is not None and paid >= float(want["full"]) - 1e-9 for paid in again)
    return climbs and is_scale(points) and _are_alike(worlds)


def is_scale(points: Sequence[tuple[float, float]]) -> bool:
    """True if the shown numbers are the score in another unit, at three levels or more, some seen twice."""
    paid, shown_values = zip(*points, strict=True)
    levels = {round(item, 6) for item in paid}
    if not LEVELS <= len(levels) < len(points) or max(shown_values) <= min(shown_values):
        return False
    first, second = ([(value - min(row)) / (max(row) - min(row)) for value in row] for row in (paid, shown_values))
    return all(abs(own_value - other_value) <= NEAR for own_value, other_value in zip(first, second, strict=True))


def _are_alike(worlds: Sequence[dict[str, Any]]) -> bool:
    """True if worlds changed at the same places and differ in texts only."""
    if len({frozenset(world) for world in worlds}) != 1:
        return False
    return all(
        _is_said(world[name][1]) or world[name][1] == worlds[0][name][1] for world in worlds for name in worlds[0]
    )


def _is_said(value: Any) -> bool:
    return isinstance(value, str) or (is_list(value) and all(isinstance(item, str) for item in value))


def grades(ctx: AuditContext, task: str) -> Iterator[Finding | None]:
    """The last call of a solution that says something in parts: what it answers when they are wrong."""
    oracle, full = [msgspec.structs.replace(op, mark="") for op in ctx.oracle(task) or ()], ctx.solution_score(task)
    at = next((place for place in reversed(range(len(oracle))) if _parts(oracle[place])), None)
    if not full or at is None:
        return
    right = _played(task, oracle, at)
    record = ctx.play_probe(right)
    ctx.count_comparisons()
    places = [place for place, item in answered(record.at("read")).items() if is_number(item)]
    wrong = list(_wrong(oracle[at])) if places else []
    probes = [right, *(_played(task, [*oracle[:at], op, *oracle[at + 1 :]], at, then=oracle[at:]) for op in wrong)]
    records = ctx.play_all(probes) if wrong else []
    fine = [place for place, play_record in enumerate(records) if not play_record.at("read").is_error]
    for where in places:
        data = {"place": where, "full": full, "background": sorted(ctx.discovery.background)}
        if len(fine) > LEVELS and follows([records[place] for place in fine], Evidence("", data=data)):
            yield _finding(ctx, oracle[at].name, [probes[place] for place in fine], data=data)


def _played(task: str, ops: Sequence[Op], at: int, *, then: Sequence[Op] = ()) -> Probe:
    """Returns a probe of a solution with one call's answer, the world, the score and an optional repair."""
    doing = [op.marked("read") if place == at else op for place, op in enumerate(ops)]
    again = [*then, score(mark="again")] if then else []
    return Probe((reset(task), *doing, Op("changes", mark="world"), score(), *again))


def _parts(op: Op) -> list[tuple[str, int]]:
    """Argument and number of each line of its texts and each text of its lists, where one has several."""
    given: dict[str, Any] = op.value if op.do == "call" and is_dict(op.value) else {}
    counts = {name: len(_split(value)) for name, value in given.items()}
    return [(name, place) for name, count in counts.items() if count >= LEVELS - 1 for place in range(count)][:PARTS]


def _split(value: Any) -> list[str]:
    """Returns the parts of a text or of a list of texts."""
    if isinstance(value, str):
        return value.split("\n")
    return [*value] if is_list(value) and all(isinstance(item, str) for item in value) else []


def _wrong(op: Op) -> Iterator[Op]:
    """The call with each part made wrong, with two of them, and with more and more."""
    parts = _parts(op)
    some: list[tuple[tuple[str, int], ...]] = [(part,) for part in parts]
    some += list(itertools.combinations(parts, 2))[:PARTS]
    some += [tuple(parts[:count]) for count in range(3, len(parts) + 1)]
    for gone in some:
        given = dict(op.value)
        for name, place in gone:
            rows = _split(given[name])
            rows[place] = misspelt(rows[place])
            given[name] = "\n".join(rows) if isinstance(given[name], str) else rows
        yield call(op.name, given)


def _finding(ctx: AuditContext, tool: str, probes: Sequence[Probe], *, data: dict[str, Any]) -> Finding | None:
    declared = next((spec for spec in ctx.about.tools if spec.name == tool), None)
    is_said = declared is not None and bool(NAMED.search(declared.description.lower()))
    return ctx.finding(
        f"{tool} tells at {data['place']} how good the verifier finds what was said",
        *probes,
        relation=f"{__name__}:follows",
        marks=("read", "world", "score"),
        data=data,
        minimise=0,
        part="V",
        expected="nothing that depends on what the verifier wants",
        observed="a number that falls as the score does, part by part, in worlds that differ in words alone",
        teaches="to change word by word until the number is as high as it gets",
        at_most="likely" if is_said else "proven",
        severity="warning" if is_said else "error",
    )
