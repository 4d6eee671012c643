"""Findings of one cause as one finding: the most precise, with the others as its symptoms."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence

import msgspec

from quintain import codec
from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.finding import CONFIDENCES, SEVERITIES, Finding, Symptom
from quintain.changes import plain_changes

_NAME = re.compile(r"[^\W\d]\w{2,}")


def grouped(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Returns one finding per cause, in the given order.

    Findings have one cause if they are of one check, tool, field and place, or if their steps and first differences are
    equal.
    """
    groups: list[tuple[set[Hashable], list[Finding]]] = []
    for one in findings:
        causes = set(_causes(one))
        known = next((group for group in groups if group[0] & causes), None)
        if known is None:
            groups.append((causes, [one]))
        else:
            known[0].update(causes)
            known[1].append(one)
    return tuple(_merged(group) for _, group in groups)


def _merged(group: Sequence[Finding]) -> Finding:
    main = min(group, key=_precision)
    symptoms = tuple(
        Symptom(one.name, one.check, one.class_, one.severity, one.confidence, one.title)
        for one in group
        if one is not main
    )
    return msgspec.structs.replace(main, symptoms=symptoms) if symptoms else main


def _precision(one: Finding) -> tuple[int, int, int]:
    steps = sum(len(probe.ops) for probe in one.probes)
    return SEVERITIES.index(one.severity), CONFIDENCES.index(one.confidence), steps


def _causes(one: Finding) -> Iterator[Hashable]:
    ops = one.probes[0].ops if one.probes else ()
    found = plain_changes(one.expected, one.observed) if None not in (one.expected, one.observed) else []
    if ops and found:
        steps = [(op.do, op.on, op.name, op.value, op.seed) for op in ops]
        yield one.accepted, codec.dumps((steps, found[0]), repr)
    last = next((op for op in reversed(ops) if op.do == "call"), None)
    if last is not None:
        named = re.findall(r"`(\w+)`", one.title)
        arguments = [name for name in named if is_dict(last.value) and name in last.value]
        if fields := (_NAME.findall(found[0].path)[-1:] if found else arguments[:1]):
            yield one.accepted, one.check, last.name, one.where, *fields
