"""Checks values that other tools refuse for a shared parameter: no tool may accept them.

What is tried is broken by construction, a character short or with a letter for a digit, and no name of a thing: the
tools that refuse it take another value of the right form that nothing in the world has. So what they object to is its
form, and they say so in the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import OpResult, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_words import text_of
from ._silent_unknown import answered

HERE = f"{__name__}:"
LEAST = 3
"""Tools that share a parameter: two that refuse, and one that does not."""
TOOLS, NAMES = 5, 8
"""Tools that are asked about one parameter, and parameters."""


class SharedParameter(msgspec.Struct, frozen=True):
    """A parameter that several tools declare alike.

    Attributes:
        uses: A call of each tool that works.
        broken: Values of no right form.
        strange: Values of the right form that were never seen.
    """

    name: str
    uses: tuple[KnownCall, ...]
    broken: tuple[str, ...]
    strange: tuple[str, ...]


@relation
def takes(records: Sequence[Record], _evidence: Evidence) -> bool:
    """One tool answers for a value as for a good one; two refuse it in the same words, and take a strange one.

    Records: the value and a good one in that tool, then the value in each other tool, then a strange one there.
    """
    wrong, good, *other_records = records
    refused, strange = ([record.at("call") for record in part] for part in (other_records[:2], other_records[2:]))
    if any(not _refuses(result) for result in refused) or any(result.is_error for result in strange):
        return False
    return len({text_of(result) for result in refused}) == 1 and answered([wrong, good], Evidence(""))


def _refuses(seen: OpResult) -> bool:
    return seen.is_error and seen.how not in ("crashed", "hung", "absent")


@check("x.tools_refuse_alike", "silent_default", needs=("tools", "call", "tasks"), value=83)
def refuse_alike(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a malformed value that other tools refuse for the same parameter is refused."""
    found = list(_shared(ctx))[:NAMES]
    if not found:
        raise NotChecked(f"no {LEAST} tools declare one parameter alike")
    for shared in found:
        yield from _odd_one(ctx, shared)


def _shared(ctx: AuditContext) -> Iterator[SharedParameter]:
    groups: dict[tuple[str, str], list[ToolSpec]] = {}
    for tool in ctx.about.tools:
        for name, schema in tool.properties.items():
            if is_dict(schema) and schema.get("type") == "string" and not schema.get("enum"):
                groups.setdefault((name, repr(schema)), []).append(tool)
    for (name, _), tools in groups.items():
        known = [_use(ctx, tool, name) for tool in tools[:TOOLS]]
        uses = tuple(known_call for known_call in known if known_call is not None)
        if len(uses) >= LEAST:
            schema = tools[0].properties[name]
            there = {str(value) for value in ctx.discovery.values.of(name)} | {
                str(known_call.op.value[name]) for known_call in uses
            }
            good = str(uses[0].op.value[name])
            broken, strange = (
                [text for text in made if fits(text, schema) and text not in there] for made in _made(good)
            )
            if broken and strange:
                yield SharedParameter(name, uses, tuple(broken), tuple(strange))


def _use(ctx: AuditContext, tool: ToolSpec, name: str) -> KnownCall | None:
    """A call of a tool that names a value with digits, with little before it."""
    found = [known_call for known_call in ctx.discovery.of(tool.name) if _has_digits(known_call.op.value.get(name))]
    return min(found, key=lambda known_call: len(known_call.before), default=None)


def _has_digits(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= 3 and any(letter in "0123456789" for letter in value)


def _made(good: str) -> tuple[list[str], list[str]]:
    """Returns broken variants of a value, and valid other values."""
    last = max(place for place, letter in enumerate(good) if letter in "0123456789")
    other_values = [good[:last] + str((int(good[last]) + step) % 10) + good[last + 1 :] for step in (1, 3, 7)]
    return [good[:-1], f"{good[:last]}x{good[last + 1 :]}"], other_values


def _odd_one(ctx: AuditContext, shared: SharedParameter) -> Iterator[Finding | None]:
    """The tools that take a value which two others refuse."""
    reported: set[str] = set()
    for value in shared.broken:
        records = ctx.play_all([_asks(use, shared.name, value) for use in shared.uses])
        seen = [(use, record.at("call")) for use, record in zip(shared.uses, records, strict=True)]
        ctx.count_comparisons(len(seen))
        taking = [use for use, result in seen if not result.is_error and use.op.name not in reported]
        refusing = [use for use, result in seen if _refuses(result)]
        free = _free(ctx, shared, refusing) if taking and len(refusing) >= LEAST - 1 else []
        for use in taking if len(free) >= LEAST - 1 else ():
            finding = _taken(ctx, shared, value, use=use, free=free[:2])
            reported |= {use.op.name} if finding is not None else set()
            yield finding


def _free(ctx: AuditContext, shared: SharedParameter, uses: Sequence[KnownCall]) -> list[tuple[KnownCall, str]]:
    """The tools that take a strange value, with one that each takes."""
    pairs = [(use, strange) for use in uses for strange in shared.strange]
    records = ctx.play_all([_asks(use, shared.name, strange) for use, strange in pairs])
    taken = [pair for pair, record in zip(pairs, records, strict=True) if not record.at("call").is_error]
    return list({use.op.name: (use, strange) for use, strange in taken}.values())


def _asks(use: KnownCall, name: str, value: str) -> Probe:
    asked = call(use.op.name, {**use.op.value, name: value}, mark="call")
    return Probe((reset(use.task), *use.before, asked))


def _taken(
    ctx: AuditContext, shared: SharedParameter, value: str, *, use: KnownCall, free: Sequence[tuple[KnownCall, str]]
) -> Finding | None:
    name = shared.name
    probes = (
        _asks(use, name, value),
        _asks(use, name, str(use.op.value[name])),
        *(_asks(other_call, name, value) for other_call, _ in free),
        *(_asks(other_call, name, strange) for other_call, strange in free),
    )
    records = ctx.play_all(probes)
    if not takes(records, Evidence("")):
        return None
    return ctx.finding(
        f"{use.op.name} takes a {name} that {' and '.join(other_call.op.name for other_call, _ in free)} refuse",
        *probes,
        relation=f"{HERE}takes",
        marks=("call",),
        minimise=0,
        expected=text_of(records[2].at("call")),
        observed=records[0].at("call").value,
        teaches="that a value need not be right",
    )
