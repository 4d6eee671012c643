"""Checks for callable tools that are not advertised: names from the code and names near known ones.

A name that is a tool answers otherwise than two that surely are none: it does something, or asks for its arguments.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_words import MISSING, UNKNOWN, callables_in, text_of

MISSING_TOOL = "no_such_tool_at_all"
VERBS = (
    "delete", "remove", "purge", "drop", "cancel", "reset", "clear", "wipe", "create", "add", "insert", "update",
    "set", "edit", "change", "modify", "list", "get", "find", "search", "read", "write", "dump", "export", "import",
    "approve", "close", "restore",
)  # fmt: skip
ADMIN = (
    "admin", "debug", "debug_state", "exec", "execute", "eval", "run", "run_sql", "sql", "query", "raw_query", "shell",
    "bash", "python", "sudo", "login_as", "impersonate", "set_state", "get_state", "dump_state", "load_state", "undo",
    "finish", "complete_task", "mark_done", "submit_solution", "set_reward", "set_score", "get_score", "list_tools",
    "ping", "echo", "noop", "test", "help",
)  # fmt: skip
GUESSES = 160
"""Number of guessed names tried in addition to those in the code."""
MAX_FINDINGS = 4


@relation
def answers(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if an unlisted name is handled like a tool while two names that do not exist are refused."""
    record, name = records[0], evidence.data
    seen, *other_results = (record.at(mark) for mark in ("call", "missing", "near"))
    if seen.how == "crashed" or UNKNOWN.search(text_of(seen)) or not all(result.is_error for result in other_results):
        return False
    shape = _shape(seen, name)
    if any(shape in (_shape(result, MISSING_TOOL), _shape(result, _near(name))) for result in other_results):
        return False
    return not seen.is_error or MISSING.search(text_of(seen)) is not None


def _shape(seen: OpResult, name: str) -> str:
    return text_of(seen).replace(name, "?")


def _near(name: str) -> str:
    """Returns a nonexistent name so similar that suggestions in an error message stay the same."""
    return f"{name}q"


def hidden_tools(ctx: AuditContext, task: str) -> Iterator[Finding | None]:
    """Yields findings for callable tools that are not advertised."""
    advertised = {tool.name for tool in ctx.about.tools}
    ops = [op for name in _names(ctx, advertised) for op in _calls(ctx, name)]
    reported: dict[str, None] = {}
    for op, seen in _screened(ctx, task, ops):
        if op.name in reported or len(reported) >= MAX_FINDINGS:
            continue
        probe = _probe(task, op)
        if not answers([ctx.play_probe(probe)], Evidence("", data=op.name)):
            continue
        reported[op.name] = None
        yield ctx.finding(
            f"{op.name} can be called, but is not advertised",
            probe,
            relation=f"{__name__}:answers",
            marks=("call", "missing", "near"),
            data=op.name,
            part="H",
            expected="unknown tool",
            observed=seen.value,
            teaches="a tool that production lacks",
        )


def _probe(task: str, op: Op) -> Probe:
    missing, near = call(MISSING_TOOL, op.value, mark="missing"), call(_near(op.name), op.value, mark="near")
    return Probe((reset(task), missing, near, op.marked("call")))


def _names(ctx: AuditContext, advertised: set[str]) -> list[str]:
    """Names in the code first; then other verbs for the things that tools are about, and what is left from building."""
    things = dict.fromkeys(name.partition("_")[2] for name in sorted(advertised) if "_" in name)
    near = (f"{verb}_{thing}" for thing, verb in itertools.product([thing for thing in things if thing], VERBS))
    guessed = [name for name in itertools.chain(ADMIN, near) if name not in advertised]
    return list(dict.fromkeys([*sorted(callables_in(ctx.sources, advertised)), *guessed[:GUESSES]]))


def _calls(ctx: AuditContext, name: str) -> Iterator[Op]:
    """With no arguments, and with those of a tool that is about the same thing."""
    yield call(name, {})
    thing = name.partition("_")[2]
    for tool in ctx.about.tools:
        known = ctx.discovery.of(tool.name)
        if thing and known and thing in (tool.name.partition("_")[2], f"{tool.name.partition('_')[2]}s"):
            yield call(name, known[0].op.value)
            return


def _screened(ctx: AuditContext, task: str, ops: Sequence[Op]) -> Iterator[tuple[Op, OpResult]]:
    """Calls that were answered otherwise than one of a tool that is none; an episode has as many as it may."""
    budget = ctx.attribute("budget")
    size = max(4, budget - 3) if isinstance(budget, int) else 200
    ops = ops[: 6 * size]
    parts = [ops[start : start + size] for start in range(0, len(ops), size)]
    probes = [Probe((reset(task), call(MISSING_TOOL, {}, mark="missing"), *part)) for part in parts]
    again: list[Op] = []
    for part, record in zip(parts, ctx.play_all(probes), strict=True):
        missing = record.at("missing")
        for op, seen in zip(part, record.seen[2:], strict=False):
            ctx.count_comparisons()
            if seen.how == "crashed":
                again += _completed(ctx, op, seen)
            elif _shape(seen, op.name) != _shape(missing, MISSING_TOOL) and not UNKNOWN.search(text_of(seen)):
                yield op, seen
    for op in again[:20]:
        yield op, ctx.play(reset(task), op.marked("call")).at("call")


def _completed(ctx: AuditContext, op: Op, seen: OpResult) -> list[Op]:
    """The call again, with the arguments that its traceback missed."""
    if not re.search(r"KeyError|missing \d+ required", seen.raised):
        return []
    names = [name for name in re.findall(r"'(\w+)'", seen.raised) if name not in op.value]
    values: dict[str, Any] = {name: next(iter(ctx.discovery.values.of(name)), "x") for name in names}
    return [call(op.name, {**op.value, **values})] if names else []
