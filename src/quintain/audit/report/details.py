"""Details of findings: their place in the sources, and of proven ones the state changes and reasons of one more play.

The probes of a finding are minimal and do not read the state; readers want to see what each call changed and why the
score came out as it did. This is an illustration and not part of the proof.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.child import SubjectBroken
from quintain.audit.kernel.context import AuditContext, OutOfTime
from quintain.audit.kernel.finding import Finding, shortened
from quintain.audit.kernel.loader import About, Source
from quintain.audit.kernel.probe import Op, Probe, Record

MAX_FINDINGS = 30  # number of findings that are played once more, the worst first
PATHS = 12  # state paths that are listed for each op; the rest are counted
_VALUE = 300  # characters of each value
_REASONS = 12_000  # characters of the reasons
_ACTS = frozenset({"call", "answer", "advance", "restore", "together", "inject"})


def detailed(findings: Sequence[Finding], ctx: AuditContext) -> list[Finding]:
    """Returns the findings with their place in the sources, and proven ones with `details`, if they can be seen."""
    found: list[Finding] = []
    left = MAX_FINDINGS
    for one in findings:
        more: dict[str, Any] = {} if one.where else {"where": located(one, ctx.about)}
        if left and one.confidence == "proven" and one.probes and {"state", "explain"} & ctx.offers:
            left -= 1
            more["details"] = details(one.probes[0], ctx)
        found.append(msgspec.structs.replace(one, **more))
    return found


def details(probe: Probe, ctx: AuditContext) -> dict[str, Any]:
    """Plays a probe once more, with a look at the state after each op; empty if the budget is spent.

    `changes` holds for each op the state paths that it changed, as {path: [before, after]}, or None without a look;
    `reasons` what the subject's `explain()` gives at the end.
    """
    ops, looks = _looking(probe, ctx.offers)
    try:
        record = ctx.play_probe(Probe(ops, probe.context))
    except (OutOfTime, SubjectBroken):
        return {}
    reasons = record.at("details: why") if "explain" in ctx.offers else None
    return {
        "changes": list(_changes(record, looks)),
        "reasons": shortened(reasons.value, _REASONS) if reasons is not None and reasons.fine else None,
    }


def _looking(probe: Probe, offers: frozenset[str]) -> tuple[tuple[Op, ...], list[list[str]]]:
    """Returns the probe's ops with looks in between and, by op, the instances that are looked at."""
    ops: list[Op] = []
    looks: list[list[str]] = []
    begun: set[str] = set()
    for place, op in enumerate(probe.ops):
        begun |= {op.on} if op.do == "reset" else set()
        instances = {one.on for lane in op.lanes for one in lane} or {op.on}
        looks.append(sorted(instances & begun) if op.do in _ACTS and "state" in offers else [])
        ops += [op, *(Op("changes", on, mark=f"details: {place} {on}") for on in looks[-1])]
    last = next((op.on for op in reversed(probe.ops) if op.do in ("score", "reset")), "a")
    ops += [Op("explain", last, mark="details: why")] if "explain" in offers else []
    return tuple(ops), looks


def _changes(record: Record, looks: Sequence[Sequence[str]]) -> Iterator[dict[str, Any] | None]:
    """Yields, for each op, its own changes, from looks that give changes since the reset."""
    before: dict[str, dict[str, Any]] = {}
    ops = [op for op in record.ops if not op.mark.startswith("details: ")]
    for place, (op, instances) in enumerate(zip(ops, looks, strict=True)):
        if op.do == "reset":
            before.pop(op.on, None)
        seen = {on: record.at(f"details: {place} {on}") for on in instances}
        looked = {on: one.value for on, one in seen.items() if one.fine and is_dict(one.value)}
        found: dict[str, Any] = {}
        for on, value in looked.items():
            found |= _op_changes(before.get(on, {}), value, on if len(instances) > 1 else "")
        before |= looked
        yield found if looked else None


def _op_changes(before: dict[str, Any], after: dict[str, Any], on: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    paths = [path for path in dict.fromkeys((*before, *after)) if before.get(path) != after.get(path)]
    for path in paths[:PATHS]:
        start = (before.get(path) or after.get(path) or [None])[0]
        sides = (side[path][1] if path in side else start for side in (before, after))
        found[f"{on}: {path}" if on else path] = [shortened(value, _VALUE) for value in sides]
    more = {"...": [None, f"{len(paths) - PATHS} more"]} if len(paths) > PATHS else {}
    return found | more


# --- places in the sources ---


def located(finding: Finding, about: About) -> str:
    """Returns "file:line" of the scoring function, or of the last tool that the finding calls; "" if none is found.

    A tool is a function of its name, else a branch that compares a name with it, else the function of all calls.
    """
    calls = [op.name for probe in finding.probes[:1] for op in probe.ops if op.do == "call"]
    is_scored = finding.part == "V"
    tool = "score" if is_scored else calls[-1] if calls else ""
    if not is_scored and tool in about.places:
        return about.places[tool]
    for source in sorted(about.sources, key=lambda one: one.part != finding.part):
        for line in _lines(source, tool, is_own=source.part == finding.part and is_scored):
            return f"{source.path}:{line}"
    return ""


def _lines(source: Source, tool: str, *, is_own: bool) -> Iterator[int]:
    """Yields the lines of functions named `tool`, then of comparisons with it, and so on."""
    try:
        top = ast.parse(Path(source.path).read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return
    named = [node for node in top if getattr(node, "name", "") in source.names] if source.names else top
    nodes = [inner for node in named for inner in ast.walk(node)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    yield from (node.lineno for node in functions if node.name == tool)
    compared = [node for node in nodes if isinstance(node, ast.Compare | ast.MatchValue)]
    values = [inner for node in compared for inner in ast.walk(node) if isinstance(inner, ast.Constant)]
    yield from (value.lineno for value in values if tool and value.value == tool)
    yield from (node.lineno for node in functions if tool and node.name in ("call", "step"))
    if is_own and source.names:
        yield from (node.lineno for node in named)
