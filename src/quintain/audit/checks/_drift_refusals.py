"""Checks schemas against refusals: valid calls are not refused for their form, and invalid ones are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.facts.generate import fits, valid
from quintain.audit.facts.variations import Variation
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import OpResult, Probe, Record, call, reset, same
from quintain.audit.kernel.registry import relation

from ._drift_words import INVALID, text_of

HERE = f"{__name__}:"
MAX_FINDINGS = 6
TASKS, OFFERED = 3, 40
"""Tasks in which a tool that never worked is tried, with so many values at most."""
TEACHES = "calls that production answers differently, or not at all"
_NAME = r"[`'\"]?([A-Za-z]\w*)[`'\"]?"
_LACKS = (
    re.compile(rf"\b{_NAME} (?:is|was) (?:missing|required|needed|mandatory|not given)\b"),
    re.compile(rf"\bmissing (?:required )?(?:argument|parameter|field|input)s?:? {_NAME}", re.IGNORECASE),
    re.compile(rf"\b(?:argument|parameter|field) {_NAME} (?:is|must be) (?:missing|required|given|set)", re.IGNORECASE),
    re.compile(rf"\b{_NAME} must be (?:given|provided|supplied|set|specified)\b"),
    re.compile(r"\b(?:requires?|needs?|provide|specify|give) (?:an? |the )?[`'\"]?([a-z]+_\w+)[`'\"]?", re.IGNORECASE),
)
_NOT_KNOWN = re.compile(
    rf"(?:unknown|unexpected|unrecognized|invalid|no such) (?:keyword )?(?:argument|parameter|field|input)s?:? {_NAME}",
    re.IGNORECASE,
)
_TYPE = re.compile(
    r"must be (?:an? )?(string|text|integer|whole number|number|boolean|list|array|object|true or false)", re.IGNORECASE
)
_BOUND = re.compile(
    r"(?:at most|at least|between|exceeds?|no more than|less than|more than|greater than|longer than|shorter than"
    r"|maximum(?: of| is)?|minimum(?: of| is)?|above|below|multiples? of|steps of) (-?\d+(?:\.\d+)?)",
    re.IGNORECASE,
)


def complaint(seen: OpResult, arguments: dict[str, Any], parameters: dict[str, Any]) -> str:
    """Returns the part of a refusal that contradicts the tool's own schema, or an empty string."""
    text = text_of(seen) if seen.is_error and seen.how != "crashed" else ""
    known: dict[str, Any] = parameters.get("properties") or {}
    values = {str(value).lower() for value in arguments.values()}
    for pattern in _LACKS:
        for found in pattern.finditer(text):
            name = found[1]
            if name in known or name.lower() in values or not _like_parameter(name, found[0], text):
                continue
            return f"lacks {name}"
    match = _NOT_KNOWN.search(text)
    if match and match[1] in known and match[1] in arguments:
        return f"does not know {match[1]}"
    for name, value in arguments.items():
        schema: Any = known.get(name)
        if re.search(rf"\b{re.escape(name)}\b", text) is None or not is_dict(schema):
            continue
        kind = _TYPE.search(text)
        if (
            kind
            and re.search(rf"\b{re.escape(name)}[`'\"]? must be", text)
            and _is_of(schema, kind[1].lower()) is False
        ):
            return f"wants {name} to be {kind[1].lower()}"
        if schema.get("enum") and INVALID.search(text):
            return f"refuses {name}={value}"
        if isinstance(value, str) and "maxLength" in schema and re.search(r"long", text):
            return f"finds {name} too long"
    return ""


def _like_parameter(name: str, said_text: str, text: str) -> bool:
    """True if a word is meant as a parameter name: by its form, or because the sentence has no other content."""
    if "_" in name or re.search(r"argument|parameter|field|[`'\"]", said_text):
        return True
    words = re.sub(r'^\W*("?error"?\W+)?(\w*Error:)?', "", text, flags=re.IGNORECASE)
    return bool(re.fullmatch(rf"\W*{re.escape(said_text)}\W*", words))


def _is_of(schema: dict[str, Any], kind: str) -> bool | None:
    kinds: Any = schema.get("type")
    wanted = {"text": "string", "whole number": "integer", "list": "array", "true or false": "boolean"}.get(kind, kind)
    if not kinds:
        return None
    listed: list[Any] = kinds if is_list(kinds) else [kinds]
    both = {"number", "integer"}
    there = {*map(str, listed)}
    return wanted in there or (wanted in both and bool(both & there))


@relation
def refused_within(records: Sequence[Record], evidence: Evidence) -> bool:
    """A call that fits the schema is refused for a reason that the schema does not have."""
    op = next(op for op in records[0].ops if op.mark == "call")
    if not fits(op.value, evidence.data["parameters"]):
        return False
    return bool(complaint(records[0].at("call"), op.value, evidence.data["parameters"]) == evidence.data["complaint"])


@relation
def bounded(records: Sequence[Record], evidence: Evidence) -> bool:
    """Calls about different things are refused for the same bound, which the schema does not have."""
    found = [_bound_of(record.at("call"), evidence.data["name"]) for record in records]
    return all(number == evidence.data["bound"] for number in found)


def _bound_of(seen: OpResult, name: str) -> float | None:
    text = text_of(seen) if seen.is_error else ""
    match = _BOUND.search(text)
    return float(match[1]) if match and re.search(rf"\b{re.escape(name)}\b", text) else None


@check("x.schema_is_enough", "action_drift", needs=("tools", "call", "tasks"), value=88, reads_prose=True)
def enough(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a call that fits its schema is never refused for its form."""
    yield from _nothing_offered_is_taken(ctx)
    tried = [candidate for candidate in ctx.variations.all if candidate.kind in ("good", "legal")]
    if not tried:
        raise NotChecked("no call is known that works")
    reported: set[tuple[str, str]] = set()
    for variation in tried:
        parameters = variation.tool.parameters
        ctx.count_comparisons()
        if variation.works or len(reported) >= MAX_FINDINGS or not fits(variation.arguments, parameters):
            continue
        found = complaint(variation.seen, variation.arguments, parameters)
        if not found or (variation.tool.name, found) in reported:
            continue
        reported.add((variation.tool.name, found))
        yield ctx.finding(
            f"{variation.tool.name} {found}, which its schema does not say",
            Probe((*variation.base_state.head, variation.op.marked("call"))),
            relation=f"{HERE}refused_within",
            marks=("call",),
            data={"parameters": parameters, "complaint": found},
            minimise=0,
            part="H",
            expected=parameters.get("properties"),
            observed=text_of(variation.seen)[:300],
            teaches=TEACHES,
        )
    yield from _bounds(ctx, tried)


@relation
def takes_nothing(records: Sequence[Record], evidence: Evidence) -> bool:
    """Every value that the schema offers for a parameter is refused as one that is not known."""
    name, parameters = evidence.data["name"], evidence.data["parameters"]
    offered: list[Any] = parameters["properties"][name]["enum"]
    calls = [op for record in records for op in record.ops if op.mark]
    seen = [record.at(op.mark) for record in records for op in record.ops if op.mark]
    refused = [
        op.value[name] in offered
        and str(op.value[name]) in text_of(result)
        and complaint(result, op.value, parameters) == f"refuses {name}={op.value[name]}"
        for op, result in zip(calls, seen, strict=True)
    ]
    return all(refused) and {str(op.value[name]) for op in calls} == set(map(str, offered))


def _nothing_offered_is_taken(ctx: AuditContext) -> Iterator[Finding | None]:
    """Tools of which no call is known to work, with each value that they offer, in several tasks."""
    for tool in ctx.about.tools:
        tasks = () if any(variation.works for variation in ctx.variations.of(tool.name)) else ctx.sample_tasks(TASKS)
        for name, schema in tool.properties.items():
            offered: list[Any] = schema.get("enum") or [] if is_dict(schema) else []
            if len(offered) < 2 or len(offered) > OFFERED or not tasks:
                continue
            given = {**valid(tool, ctx.discovery.values, ctx.rng, optional=0.0)}
            ops = [call(tool.name, {**given, name: item}, mark=f"offer {place}") for place, item in enumerate(offered)]
            probes = [Probe((reset(task), *ops)) for task in tasks]
            data = {"name": name, "parameters": tool.parameters}
            ctx.count_comparisons(len(ops))
            if takes_nothing(ctx.play_all(probes), Evidence("", data=data)):
                yield ctx.finding(
                    f"{tool.name} takes no {name} of those that its schema offers",
                    *probes,
                    relation=f"{HERE}takes_nothing",
                    marks=tuple(op.mark for op in ops),
                    data=data,
                    minimise=0,
                    part="H",
                    expected=offered,
                    observed=text_of(ctx.play_probe(probes[0]).at("offer 0"))[:300],
                    teaches=TEACHES,
                )


def _bounds(ctx: AuditContext, tried: Sequence[Variation]) -> Iterator[Finding | None]:
    """Bounds that refusals name and the schema does not: the same ones, whatever a call is about."""
    found: dict[tuple[str, str, float], list[Variation]] = {}
    for variation in tried:
        bound = (
            _bound_of(variation.seen, variation.name)
            if variation.name and is_number(variation.arguments.get(variation.name))
            else None
        )
        schema: Any = variation.tool.properties.get(variation.name)
        declared = [schema.get("minimum"), schema.get("maximum")] if is_dict(schema) else []
        if bound is None or variation.works or bound in declared or declared in ([], [None, None]):
            continue
        found.setdefault((variation.tool.name, variation.name, bound), []).append(variation)
    for (tool, name, bound), variations in found.items():
        other_variations = [
            candidate
            for candidate in variations
            if candidate.good != variations[0].good and candidate.base_state.task != variations[0].base_state.task
        ]
        beyond = [float(candidate.arguments[name]) for candidate in variations]
        taken = [
            float(one.arguments[name])
            for one in tried
            if one.works and one.tool.name == tool and is_number(one.arguments.get(name))
        ]
        is_kept = max(beyond) < min(taken, default=bound + 1) or min(beyond) > max(taken, default=bound - 1)
        if not other_variations or not is_kept:
            continue  # Not a bound: values beyond it are taken as well.
        yield ctx.finding(
            f"{tool} has another bound for {name} than its schema: {bound:g}",
            *(
                Probe((*candidate.base_state.head, candidate.op.marked("call")))
                for candidate in (variations[0], other_variations[0])
            ),
            relation=f"{HERE}bounded",
            marks=("call",),
            data={"name": name, "bound": bound},
            minimise=0,
            part="H",
            expected=variations[0].tool.properties[name],
            observed=text_of(variations[0].seen)[:300],
            teaches=TEACHES,
        )


# --- the other way round ---


@relation
def accepted(records: Sequence[Record], evidence: Evidence) -> bool:
    """A call that does not fit its schema works, and one of another tool that fits as little does not."""
    ops = [next(op for op in record.ops if op.mark == "call") for record in records]
    wrong = [
        not fits(op.value, schema) or _longer(op.value, schema) for op, schema in zip(ops, evidence.data, strict=True)
    ]
    return all(wrong) and not records[0].at("call").is_error and records[1].at("call").is_error


def _longer(arguments: dict[str, Any], parameters: dict[str, Any]) -> bool:
    known: dict[str, Any] = parameters.get("properties") or {}
    return any(
        isinstance(value, str) and len(value) > known.get(name, {}).get("maxLength", len(value))
        for name, value in arguments.items()
    )


def _manner(variation: Variation) -> str:
    """In what a call does not fit its schema."""
    schema: Any = variation.tool.properties.get(variation.name) or {}
    if variation.name not in variation.arguments:
        return "without"
    value = variation.arguments[variation.name]
    if schema.get("enum"):
        return "not offered"
    return "out of bounds" if is_number(value) else "too long"


@check("x.schema_is_kept", "action_drift", needs=("tools", "call", "tasks"), value=88)
def kept(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an environment that refuses schema violations refuses all of them."""
    tried = [candidate for candidate in ctx.variations.all if candidate.kind == "illegal"]
    if not tried:
        raise NotChecked("no schema forbids anything")
    refused = [candidate for candidate in tried if not candidate.works]
    loose: dict[tuple[str, str, str], Variation] = {}
    for candidate in tried:
        if candidate.works:
            loose.setdefault((candidate.tool.name, candidate.name, _manner(candidate)), candidate)
    ctx.count_comparisons(len(tried))
    if len({(peer.tool.name, peer.name, _manner(peer)) for peer in refused}) < max(6, 10 * len(loose)):
        raise NotChecked("what does not fit a schema is often let through here")
    for variation in list(loose.values())[:MAX_FINDINGS]:
        alike = [peer for peer in refused if _manner(peer) == _manner(variation)]
        yield _loose(ctx, variation, (alike or refused)[0], manner=_manner(variation))


def _loose(ctx: AuditContext, variation: Variation, sibling: Variation, *, manner: str) -> Finding | None:
    legal = [
        candidate
        for candidate in ctx.variations.of(variation.tool.name)
        if candidate.works
        and candidate.kind in ("good", "legal")
        and candidate.name in ("", variation.name)
        and candidate.good == variation.good
    ]
    replaced = any(
        same(candidate.seen, variation.seen) and candidate.changes == variation.changes for candidate in legal
    )
    tool = variation.tool.name
    return ctx.finding(
        f"{tool} takes a call that its schema forbids ({variation.name} {manner}), where others refuse it",
        *(Probe((*candidate.base_state.head, candidate.op.marked("call"))) for candidate in (variation, sibling)),
        relation=f"{HERE}accepted",
        marks=("call",),
        data=[variation.tool.parameters, sibling.tool.parameters],
        minimise=0,
        class_="silent_default" if replaced and manner != "without" else "action_drift",
        expected="an error",
        observed={"answer": variation.seen.value, "arguments": variation.arguments},
        teaches=TEACHES,
    )
