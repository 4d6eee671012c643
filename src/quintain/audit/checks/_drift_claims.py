"""Checks claims of descriptions: defaults, once, not empty, one word, a part of a name, the last one counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.variations import Variation, changed
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, number, reset, same, score
from quintain.audit.kernel.registry import relation

from ._drift_words import rows_of

HERE = f"{__name__}:"
TEACHES = "to ignore tool descriptions"
_DEFAULT = re.compile(r"\b(?:default(?:s to| is|:)?|by default) [`'\"]?(-?\w+)", re.IGNORECASE)
_ONCE = re.compile(r"\b(only once|once (for|per)|no more than once|at most once|a single time)\b", re.IGNORECASE)
_NOT_EMPTY = re.compile(r"not (be )?(empty|blank)|non-?empty|must say something", re.IGNORECASE)
ONE_WORD = re.compile(r"^((exactly |only )?one|(a )?single) word\b(?!,? or)", re.IGNORECASE)
"""Descriptions that ask for one search word; a reading tool makes no promise about two words."""
_SUBMITS = re.compile(r"submit|answer|final|finish|guess", re.IGNORECASE)
PART = re.compile(
    r"\bpart of\b|substring|\b(contain\w*|holds?) (\w+ ){0,3}(texts?|strings?|letters|characters)\b", re.IGNORECASE
)
"""Descriptions of a substring match on text; containing a word or an id promises nothing about a part of it."""
_LAST = re.compile(
    r"\b(last|latest) (one |answer |submission |call )?(counts|wins|is (taken|graded|scored))", re.IGNORECASE
)


# --- defaults ---


@relation
def defaults_differ(records: Sequence[Record], evidence: Evidence) -> bool:
    """Without a parameter the call does something else than with its declared default, and twice the same."""
    without, given, again = records
    if any(record.at("call").is_error for record in records):
        return False
    marks = ("call", "look") if evidence.data["looks"] else ("call",)
    steady = all(same(without.at(mark), again.at(mark), evidence.volatile) for mark in marks)
    return steady and any(not same(without.at(mark), given.at(mark), evidence.volatile) for mark in marks)


@check("x.defaults_hold", "action_drift", needs=("tools", "call", "tasks"), value=48)
def defaults(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an omitted parameter has the effect of its declared default."""
    cases = [(tool, name, value) for tool in ctx.about.tools for name, value in _defaults(tool)]
    if not cases:
        raise NotChecked("no default is declared")
    for tool, name, value in cases:
        tried = [
            candidate
            for candidate in ctx.variations.of(tool.name)
            if candidate.works and candidate.kind in ("good", "legal")
        ]
        tried.sort(key=lambda variation: -len(str(variation.seen.value)))
        for variation in [*tried[:2], *(candidate for candidate in tried[2:] if candidate.kind == "good")][:3]:
            looks = variation.changes is not None
            without = {key: argument for key, argument in variation.arguments.items() if key != name}
            ops = [call(tool.name, item) for item in (without, {**without, name: value}, without)]
            probes = [_seen(variation, op, looks=looks) for op in ops]
            data = {"looks": looks}
            ctx.count_comparisons()
            if not defaults_differ(ctx.play_all(probes), Evidence("", data=data, volatile=ctx.volatile)):
                continue
            yield ctx.finding(
                f"{tool.name} without {name} does not do what its declared default {value!r} does",
                *probes,
                relation=f"{HERE}defaults_differ",
                marks=("call",),
                data=data,
                minimise=0,
                part="H",
                expected=f"the same as with {name}={value!r}",
                observed="something else",
                teaches=TEACHES,
            )
            break


def _defaults(tool: ToolSpec) -> Iterator[tuple[str, Any]]:
    for name, schema in tool.properties.items():
        if name in tool.required or not is_dict(schema):
            continue
        if schema.get("default") is not None:
            yield name, schema["default"]
            continue
        match = _DEFAULT.search(str(schema.get("description") or ""))
        if match and schema.get("type") == "integer" and match[1].lstrip("-").isdigit():
            yield name, int(match[1])
        elif match and match[1] in (schema.get("enum") or ()):
            yield name, match[1]
        elif match and schema.get("type") == "boolean" and match[1].lower() in ("true", "false"):
            yield name, match[1].lower() == "true"


def _seen(variation: Variation, op: Op, *, looks: bool) -> Probe:
    look = (Op("changes", mark="look"),) if looks else ()
    return Probe((*variation.base_state.head, op.marked("call"), *look))


# --- once, empty, one word ---


@relation
def again(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The same call a second time works and changes the world once more."""
    record = records[0]
    made = changed(record.at("was").value, record.at("look").value)
    return not record.at("first").is_error and not record.at("call").is_error and bool(made)


@relation
def works(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The call works."""
    return not records[0].at("call").is_error


@check("x.claims_hold", "action_drift", needs=("tools", "call", "tasks"), value=82, reads_prose=True)
def claims(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks descriptions that promise once, not empty, one word, or a part of a name."""
    looked = False
    for tool in ctx.about.tools:
        tried = [candidate for candidate in ctx.variations.of(tool.name) if candidate.works]
        good = [candidate for candidate in tried if candidate.kind == "good"]
        for variation in good[:1]:
            for found in (_once(ctx, variation), *_forms(ctx, variation), _parts(ctx, variation, tried)):
                looked = True
                yield found
    if not looked:
        raise NotChecked("no call is known that works")


def _once(ctx: AuditContext, variation: Variation) -> Finding | None:
    if not _ONCE.search(variation.tool.description) or not variation.changes:
        return None
    look = Op("changes")
    ops = (variation.op.marked("first"), look.marked("was"), variation.op.marked("call"), look.marked("look"))
    probe = Probe((*variation.base_state.head, *ops))
    ctx.count_comparisons()
    if not again([ctx.play_probe(probe)], Evidence("")):
        return None
    return ctx.finding(
        f"{variation.tool.name} can be done again, though its description says once",
        probe,
        relation=f"{HERE}again",
        marks=("first", "was", "call", "look"),
        minimise=0,
        expected="a refusal of the second call",
        observed="a second change",
        teaches=TEACHES,
    )


def _forms(ctx: AuditContext, variation: Variation) -> Iterator[Finding | None]:
    for name, schema in variation.tool.properties.items():
        text = str(schema.get("description") or "") if is_dict(schema) else ""
        wrong = [(_NOT_EMPTY, ""), (_NOT_EMPTY, "   "), (ONE_WORD, "two words")]
        # An answer in the wrong form may be taken for what it is: a wrong answer.
        for pattern, value in [] if _SUBMITS.search(variation.tool.name) else wrong:
            if not pattern.search(text) or schema.get("type") != "string":
                continue
            if pattern is ONE_WORD and variation.tool.name in ctx.discovery.readers:
                continue
            probe = Probe(
                (*variation.base_state.head, call(variation.tool.name, {**variation.good, name: value}, mark="call"))
            )
            ctx.count_comparisons()
            if works([ctx.play_probe(probe)], Evidence("")):
                yield ctx.finding(
                    f"{variation.tool.name} takes {name}={value!r}, though its description says {text!r}",
                    probe,
                    relation=f"{HERE}works",
                    marks=("call",),
                    minimise=0,
                    expected="a refusal",
                    observed="it works",
                    teaches=TEACHES,
                )


# --- a part of a name ---


@relation
def part_finds_less(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if a row found by the whole text is missing from a short result list for a part."""
    record = records[0]
    whole, part = rows_of(record.at("whole").value), rows_of(record.at("call").value)
    if whole is None or part is None or record.at("call").is_error:
        return False
    return bool(whole) and len(part) < 10 and any(row not in part for row in whole)


def _parts(ctx: AuditContext, good: Variation, tried: Sequence[Variation]) -> Finding | None:
    for name, schema in good.tool.properties.items():
        text = f"{good.tool.description} {schema.get('description') or ''}" if is_dict(schema) else ""
        if not PART.search(text) or schema.get("type") != "string":
            continue
        for variation in [candidate for candidate in tried if rows_of(candidate.seen.value)][:6]:
            value = variation.arguments.get(name)
            if not isinstance(value, str) or len(value.strip()) < 5:
                continue
            part = call(variation.tool.name, {**variation.arguments, name: value.strip()[1:-1]}, mark="call")
            probe = Probe((*variation.base_state.head, variation.op.marked("whole"), part))
            ctx.count_comparisons()
            if part_finds_less([ctx.play_probe(probe)], Evidence("")):
                return ctx.finding(
                    f"{variation.tool.name} does not find by a part of the {name}",
                    probe,
                    relation=f"{HERE}part_finds_less",
                    marks=("whole", "call"),
                    minimise=0,
                    expected=variation.seen.value,
                    observed=ctx.play_probe(probe).at("call").value,
                    teaches=TEACHES,
                )
    return None


# --- the last one counts ---


@relation
def first_counts(records: Sequence[Record], evidence: Evidence) -> bool:
    """The solution is paid, and paid less after an earlier answer that should not count."""
    whole, after = number(records[0].at("score")), number(records[1].at("score"))
    return whole is not None and after is not None and whole >= evidence.data and after < whole - 1e-9


@check("x.last_one_counts", "action_drift", needs=("tools", "call", "tasks", "oracle"), value=78, reads_prose=True)
def last(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an earlier answer changes nothing where the last answer is documented to count."""
    tools = {tool.name: tool for tool in ctx.about.tools if _LAST.search(tool.description)}
    if not tools:
        raise NotChecked("no tool says that the last call counts")
    for task in ctx.sample_tasks(3):
        ops = ctx.oracle(task) or ()
        for place, op in enumerate(ops):
            words = [name for name, value in op.value.items() if isinstance(value, str)] if op.name in tools else []
            if not words or not ctx.solution_score(task):
                continue
            other_op = call(op.name, {**op.value, words[-1]: "not this one"})
            probes = (
                Probe((reset(task), *ops, score())),
                Probe((reset(task), *ops[:place], other_op, *ops[place:], score())),
            )
            ctx.count_comparisons()
            data = ctx.solution_score(task)
            if first_counts(ctx.play_all(probes), Evidence("", data=data)):
                yield ctx.finding(
                    f"{op.name} says that the last one counts, and an earlier one does",
                    *probes,
                    relation=f"{HERE}first_counts",
                    marks=("score",),
                    data=data,
                    minimise=0,
                    expected=data,
                    observed="less",
                    teaches=TEACHES,
                )
                return
