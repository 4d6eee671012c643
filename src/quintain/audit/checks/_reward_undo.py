"""Undo: a solution, then its own work taken back. A verifier that looks at what was once done still pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.check import check
from quintain.audit.data import is_dict
from quintain.audit.finding import Evidence, Finding
from quintain.audit.generate import fits
from quintain.audit.lab import Lab
from quintain.audit.probe import Op, Probe, Record, call, number, reset, score, state

from . import _reward_claims as claims
from ._reward_acts import MISSING, Path, differences, is_bookkeeping, names, reads_by_name, scalars, words
from ._reward_runs import Run, Solved, paid, runs, weight

_TAKES_BACK = names(
    "cancel delete remove undo revert reopen unassign unmark restore return withdraw revoke void unbook "
    "refund reset rollback unlink unlock lock disable enable deactivate activate reactivate"
)
_MOST = 14
"""Ways back that are tried for one write."""
_FEWER = 8
"""The same for a write after which the solution goes on."""


@check("x.undo", "false_resolution", needs=("oracle", "state", "tasks", "tools"), value=82)
def undo(lab: Lab) -> Iterator[Finding | None]:
    """Work that is done and then taken back is not paid in full."""
    told: set[str] = set()
    for one in paid(lab, 3):
        words_ = tuple(op for op in one.ops if op.do == "answer")
        acts = tuple(op for op in one.ops if op.do != "answer")
        for place in one.writes:
            if one.ops[place].name in told:
                continue
            back = list(_ways_back(lab, one, place))[:_MOST]
            ways = [(*acts, op, *words_) for op in back]
            for op, run in zip(back, runs(lab, one, ways), strict=True):
                lab.looking()
                effects = one.effects.get(place, ())
                gone = [path for path in _gone(run.lacks) if any(_inside(path, effect) for effect in effects)]
                if run.score is None or one.full is None or run.score < one.full - 1e-9 or not gone:
                    continue
                found = _taken_back(lab, one, (acts, op, words_), gone=gone)
                if found is None:
                    found = _voided(lab, one, (acts, op, words_), gone=gone)
                if found is not None:
                    told.add(one.ops[place].name)
                    yield found
                    break
        yield from _halfway(lab, one, told)


def _halfway(lab: Lab, one: Solved, told: set[str]) -> Iterator[Finding | None]:
    """A step that is paid for by itself is taken back before the solution goes on, as it may not be at its end."""
    steps = runs(lab, one, [one.ops[:place] for place in range(len(one.ops))])
    for place in one.writes:
        less, more = steps[place].score, steps[place + 1].score if place + 1 < len(steps) else one.full
        name = one.ops[place].name
        if name in told or less is None or more is None or more <= less + 1e-9 or more >= (one.full or 0.0) - 1e-9:
            continue  # What is paid in full has been taken back at the solution's end.
        done = one.ops[: place + 1]
        back = list(_ways_back(lab, one, place))[:_FEWER]
        tried = zip(back, runs(lab, one, [(*done, op) for op in back]), strict=True)
        lab.looking(len(back))
        kept = [
            op
            for op, run in tried
            if run.score is not None and run.score >= more - 1e-9 and place + 1 not in run.errors
        ]
        if not kept:
            continue
        before, *found = runs(lab, one, [done[:-1], *((*done, op) for op in kept)], look=True)
        alike = [op for op, run in zip(kept, found, strict=True) if _touched(run) == _touched(before)]
        finding = next(filter(None, (_still_paid(lab, one, place, back=op) for op in alike)), None)
        if finding is not None:
            told.add(name)
            yield finding


def _touched(run: Run) -> set[Path]:
    return {path for path in run.touched if not is_bookkeeping(path)}


def _still_paid(lab: Lab, one: Solved, place: int, *, back: Op) -> Finding | None:
    done, name = one.ops[: place + 1], one.ops[place].name
    return lab.finding(
        f"what {name} did is taken back by {back.name}, and paid for all the same",
        Probe((reset(one.task), *done, back.marked("back"), state(), score())),
        Probe((reset(one.task), *done[:-1], state(), score())),
        Probe((reset(one.task), *done, state(), score())),
        relation=f"{__name__}:paid_for_nothing",
        marks=("score", "state", "back"),
        minimise=0,
        part="V",
        expected=f"what was paid before {name}: the world is as it was then",
        observed="what is paid where it is done",
        teaches="to do a thing and undo it",
    )


def paid_for_nothing(records: Sequence[Record], evidence: Evidence) -> bool:
    """A step taken back leaves the world of the second probe, before it, and is paid as the third, which has it."""
    back, before, done = records
    paid, less, more = (number(record.at("score")) for record in records)
    if paid is None or less is None or more is None or back.at("back").is_error:
        return False
    worlds = [record.at("state") for record in (back, before, done)]
    if not all(world.fine for world in worlds):
        return False
    here, there, moved = (world.value for world in worlds)
    is_back = not any(not is_bookkeeping(path) for path in differences(here, there, evidence.volatile))
    return (
        is_back
        and bool(differences(moved, there, evidence.volatile))
        and min(paid, more) > less + 1e-9
        and (paid >= more - 1e-9)
    )


def _voided(
    lab: Lab, one: Solved, way: tuple[tuple[Op, ...], Op, tuple[Op, ...]], *, gone: list[Path]
) -> Finding | None:
    """What was made is still there, and is void: not as the solution leaves it."""
    acts, op, said = way
    void = [[list(path), one.changed[path][1]] for path in gone][:10]
    return lab.finding(
        f"what was done is made void by {op.name}, and paid for all the same",
        Probe((reset(one.task), *acts, op.marked("back"), *said, state(), score())),
        relation=claims.PAID,
        marks=("score", "state", "back"),
        data={"full": one.full, "lacks": void, "done": ["back"]},
        minimise=0,
        part="V",
        **weight(one, void),
        expected=f"less than {one.full:g}: {', '.join('/'.join(path) for path in gone[:4])} is not so any more",
        observed=f"{one.full:g}",
        teaches="to undo what it did, once it is paid",
    )


def _gone(lacks: dict[str, Any]) -> list[Path]:
    return [tuple(path.split("\x1f")) for path in lacks]


def _inside(path: Path, effect: Path) -> bool:
    short = min(len(path), len(effect))
    return path[:short] == effect[:short]


def _ways_back(lab: Lab, one: Solved, place: int) -> Iterator[Op]:
    """Calls that may take a write back: its own tool with the old values, setters of a field, and inverse tools."""
    op = one.ops[place]
    fields = {path[-1]: one.changed[path][0] for path in one.effects.get(place, ()) if path in one.changed}
    own = {key: fields[key] for key in op.value if key in fields and fields[key] not in (MISSING, None)}
    if own:
        yield msgspec.structs.replace(op, value=op.value | own)
    ids = _ids(one, place)
    for tool in lab.about.tools:
        for key, schema in tool.properties.items():
            old = fields.get(key, MISSING)
            if old == MISSING or not fits(old, schema, tool.parameters):
                continue
            for base in _filled(tool.required, ids, op.value, but=key):
                yield call(tool.name, base | {key: old})
    others = [tool for tool in lab.about.tools if tool.name != op.name and not reads_by_name(call(tool.name))]
    named = [_TAKES_BACK & set(words(tool.name)) for tool in others]
    for tool, is_named in sorted(zip(others, named, strict=True), key=lambda pair: not pair[1]):
        # What takes back by its name is tried with every thing that it may mean, any other tool with one.
        for base in _filled(tool.required, ids, op.value)[: 8 if is_named else 1]:
            yield call(tool.name, base)


def _ids(one: Solved, place: int) -> list[Any]:
    """What names a thing that the write touched: keys of the rows, arguments, and scalars that it answered."""
    found: list[Any] = [path[1] for path in one.effects.get(place, ()) if len(path) > 1]
    found += scalars(one.ops[place].value)
    said = one.said[place].value
    found += scalars(said) if is_dict(said) else [word.strip(".,:;") for word in str(said).split()][:12]
    return list({str(value): value for value in found if len(str(value)) <= 60}.values())


def _filled(required: list[str], ids: list[Any], given: dict[str, Any], *, but: str = "") -> list[dict[str, Any]]:
    bases: list[dict[str, Any]] = [{}]
    for name in required:
        if name == but:
            continue
        values = (
            [given[name]] if name in given else ids if {"id", "ids", "key", "name"} & set(words(name)) else ["undo"]
        )
        bases = [base | {name: value} for base in bases for value in values][:8]
    return bases


def _taken_back(
    lab: Lab, one: Solved, way: tuple[tuple[Op, ...], Op, tuple[Op, ...]], *, gone: list[Path]
) -> Finding | None:
    acts, op, said = way
    as_before = [[list(path), one.changed[path][0]] for path in gone][:10]
    return lab.finding(
        f"what was done is taken back by {op.name}, and paid for all the same",
        Probe((reset(one.task), *acts, op.marked("back"), *said, state(), score())),
        relation=claims.PAID,
        marks=("score", "state", "back"),
        data={"full": one.full, "has": as_before, "done": ["back"]},
        minimise=20,
        part="V",
        **weight(one, as_before),
        expected=f"less than {one.full:g}: {', '.join('/'.join(path) for path in gone[:4])} is as it was before",
        observed=f"{one.full:g}",
        teaches="to undo what it did, once it is paid",
    )
