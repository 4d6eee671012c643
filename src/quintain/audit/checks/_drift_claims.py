"""Checks claims of descriptions: defaults, once, not empty, one word, a part of a name, the last one counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.variations import Variation
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, same
from quintain.audit.kernel.registry import relation

HERE = f"{__name__}:"
TEACHES = "to ignore tool descriptions"
_DEFAULT = re.compile(r"\b(?:default(?:s to| is|:)?|by default) [`'\"]?(-?\w+)", re.IGNORECASE)


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
