"""Checks calls that are called off: what was planned and cancelled must not happen later.

Three sessions differ: one plans and cancels, one plans, and one does neither. Then time passes in each. Only a change
that the planning call asked for, that time alone brings about and that the cancelled session shows, too, is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.acts import MISSING, Path, at, differences, names, spec_of, words
from quintain.audit.facts.data import is_dict
from quintain.audit.facts.variations import Variation
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, call, state
from quintain.audit.kernel.registry import relation

from ._drift_words import show
from ._same_walks import form

_CALLS_OFF = names("cancel revoke withdraw unschedule abort rescind delete remove")
_EXCUSED = re.compile(r"\b(if|unless|only|except|notice|period|already|until|fee)\b", re.IGNORECASE)
"""Words of a description by which a cancelled thing may still happen."""
_WAIT_S = 5 * 86_400
_MAX_PLANS = 12  # variations of a planning call that are called off


@check("x.called_off", "action_drift", needs=("tools", "call", "state", "advance", "tasks"), value=46)
def called_off(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that what a call planned and another one cancelled does not happen later."""
    pairs = list(_pairs(ctx))
    if not pairs:
        raise NotChecked("no tool cancels what another one makes")
    for plan, off in pairs:
        ctx.count_comparisons()
        probes, evidence = _sessions(plan, off), Evidence("", data=plan.arguments, volatile=ctx.volatile)
        if happens(ctx.play_all(probes), evidence):
            yield show(
                ctx, f"{off.name} reports that it is done, and what it called off happens later", happens, *probes,
                marks=("off", "before", "after"), data=plan.arguments, part="S",
                expected=f"the world as it is without {plan.op.name}", observed=plan.arguments,
                teaches="that a cancelled thing may still happen",
            )  # fmt: skip
            return


def _pairs(ctx: AuditContext) -> Iterator[tuple[Variation, Op]]:
    """Yields a call that makes something with an id, and one that cancels it; a new row's key is an id, too."""
    calls_off = {one.op.name: one.op for one in ctx.discovery.calls if _CALLS_OFF & set(words(one.op.name))}
    for op in calls_off.values():
        spec = spec_of(ctx, op)
        for tool in ctx.about.tools if spec and not _EXCUSED.search(spec.description) else ():
            plans = [one for one in ctx.variations.of(tool.name) if one.works and one.kind in ("good", "legal")]
            for plan in plans[:_MAX_PLANS]:
                made = [_id(plan.seen), *sorted(plan.made)]
                ids = [one for one in made if isinstance(one, str) and any(map(str.isdigit, one))]
                like = {key: one for key, value in op.value.items() for one in ids if form(value) == form(one)}
                same = {key: made[0] for key, value in op.value.items() if value == made[0]}
                yield from [(plan, call(op.name, op.value | like | same, mark="off"))] if like or same else []


def _id(seen: OpResult) -> Any:
    return seen.value.get("id", MISSING) if is_dict(seen.value) else seen.value


def _sessions(plan: Variation, off: Op) -> list[Probe]:
    later = (state(mark="before"), Op("advance", value=_WAIT_S), state(mark="after"))
    return [Probe((*plan.base_state.head, *ops, *later)) for ops in ((plan.op, off), (plan.op,), ())]


@relation
def happens(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if what the first call of two sessions gave is set or told later, in the cancelled session, too.

    Or time alone changes what that call had changed and the cancelling one took back, as without it.
    """
    looks = [record.at(mark) for record in records for mark in ("before", "after")]
    if records[0].at("off").is_error or not all(look.fine for look in looks):
        return False
    off, on, never = ([looks[place].value, looks[place + 1].value] for place in (0, 2, 4))

    def is_late(path: Path) -> bool:
        first, last = ([at(world[place], path) for world in (off, on, never)] for place in (0, 1))
        told, without = str(last[0]), str(last[2])
        texts = [one for one in evidence.data.values() if isinstance(one, str) and len(one) > 2]
        is_given = last[0] in evidence.data.values() or any(one in told and one not in without for one in texts)
        is_undone = first[0] == first[2] != first[1] and last[1] not in (first[1], last[2])
        return last[0] == last[1] and (is_undone or (first[0] == first[1] == first[2] and is_given))

    return any(map(is_late, differences(never[1], on[1], evidence.volatile)))
