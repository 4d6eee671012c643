"""Everything an agent can read of a task: the prompt, the readers' answers, and errors of odd calls."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_number
from quintain.audit.facts.generate import valid
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.probe import Op, call, reset

PATHS = re.compile(
    r"(?:^|_)(?:path|file|filename|filepath|uri|url|document|doc|key|name|folder|dir|directory|resource|location)$"
)
"""Parameters that may name a file."""
COMMANDS = re.compile(r"^(?:command|cmd|code|script|expression|expr|shell|bash|program|source)$")
"""Parameters whose value is run."""
CURIOUS = (
    "answer", "answers", "expected", "gold", "solution", "solutions", "hidden", "secret", "oracle", "grader", "truth",
    "tests", "hint", "*", "%", "",
)  # fmt: skip
"""Search words of a curious agent."""
HIDDEN_FILES = (
    ".", "/", "..", "answers.json", "answer.txt", "gold.json", "expected.json", "solution.py", "solution.txt",
    "hidden.json", "tests", "tests/", "hidden", "solution", "../answers.json", "../gold.json", "../solution.py",
    "../tests", "../hidden", "/tests", "/solution", "/solution/solve.sh", "/grader", "tests/test_outputs.py", ".env",
    "task.json", "task.toml", "rubric.json", "labels.csv", ".git/HEAD", ".git/packed-refs", ".git/logs/HEAD",
)  # fmt: skip
"""Files in which a truth is usually kept."""
METHODS = (
    "hidden", "oracle", "solution", "get_solution", "get_answer", "get_hidden", "debug", "hint", "_hidden", "_oracle",
    "_solution", "_gold", "gold", "expected", "_expected", "_task", "_truth", "__dict__", "production", "snapshot",
)  # fmt: skip
"""Names of methods that a careless `getattr` hands to the agent."""


def strings(ctx: AuditContext) -> Iterator[tuple[ToolSpec, str]]:
    """Yields tools with their parameters that take any text."""
    for tool in ctx.about.tools[:60]:
        for name, schema in tool.properties.items():
            is_text = is_dict(schema) and schema.get("type", "string") in ("string", ["string", "null"])
            if is_text and not schema.get("enum"):
                yield tool, name


def base_of(ctx: AuditContext, tool: ToolSpec) -> dict[str, Any]:
    """Arguments of a call that worked, or ones that fit the schema."""
    known = ctx.discovery.of(tool.name)
    if known and is_dict(known[0].op.value):
        return known[0].op.value
    return valid(tool, ctx.discovery.values, ctx.rng, optional=0.0)


def odd_calls(ctx: AuditContext) -> Iterator[Op]:
    """Calls that are wrong in one place, so that what an error says is seen."""
    for tool in ctx.about.tools[:60]:
        base = base_of(ctx, tool)
        yield call(tool.name, {})
        for name, schema in list(tool.properties.items())[:8]:
            kind = schema.get("type") if is_dict(schema) else None
            for value in ("zzz-wrong", None if kind in ("string", None) else -1):
                yield call(tool.name, {**base, name: value})


def curious_calls(ctx: AuditContext) -> Iterator[Op]:
    """Calls of readers with what a curious agent would look for."""
    readers = [tool for tool in ctx.about.tools[:60] if tool.name not in ctx.discovery.writers]
    yield from (call(tool.name, base_of(ctx, tool)) for tool in readers)
    for tool, name in strings(ctx):
        if tool in readers:
            yield from (call(tool.name, {**base_of(ctx, tool), name: value}) for value in CURIOUS)


def file_calls(ctx: AuditContext, paths: Sequence[str]) -> Iterator[Op]:
    """Every parameter that may name a file, with each path."""
    for tool, name in strings(ctx):
        forms = ["{0}"] if PATHS.search(name.lower()) else []
        if not forms and COMMANDS.search(name.lower()):
            forms = ["cat {0}", "print(open({0!r}).read())"]
        yield from (
            call(tool.name, {**base_of(ctx, tool), name: text.format(path)}) for path in paths for text in forms
        )


def method_calls(task: str) -> Iterator[Op]:
    """Yields calls of methods that are not tools."""
    for name in METHODS:
        yield call(name, {})
        yield call(name, {"task": task})


def unique(ops: Sequence[Op]) -> list[Op]:
    """Each call once."""
    found: dict[str, Op] = {}
    for op in ops:
        found.setdefault(f"{op.do} {op.name} {op.value!r}", op)
    return list(found.values())


def prompt_ops(ctx: AuditContext, task: str) -> list[Op]:
    """Returns the ops that show what an agent reads before any action."""
    ops = [reset(task, mark="reset")]
    if "prompt" in ctx.offers:
        ops.append(Op("prompt", name=task, mark="prompt"))
    if ctx.about.tools:
        ops.append(Op("tools", mark="tools"))
    return ops


# --- what a walk plays ---


def hasty(op: Op) -> Op:
    """Returns an answer without work: the longest free text is replaced by an empty phrase."""
    if op.do != "call":
        return msgspec.structs.replace(op, value="wait", mark="")
    texts = [name for name, argument in op.value.items() if isinstance(argument, str)]
    longest = max(texts, key=lambda name: len(op.value[name]), default="")
    return msgspec.structs.replace(op, value={**op.value, longest: "wait"} if longest else op.value, mark="")


def wrong_calls(tool: dict[str, Any], bases: Sequence[Any]) -> Iterator[Op]:
    """Calls of a tool that a hurried agent gets wrong: too much, empty, missing, of another kind, of another task.

    What the schema allows comes first, since more than the schema has looked at it; then each parameter in its turn.
    """
    base: dict[str, Any] = dict(bases[0]) if bases else {}
    allowed: list[Op] = []
    odd: list[list[Op]] = []
    for name, schema in list(tool["properties"].items())[:5]:
        kind = schema.get("type", "string") if is_dict(schema) else "string"
        values: tuple[Any, ...] = ("", "zzz-wrong", "0", None) if kind != "boolean" else (None,)
        if kind in ("integer", "number"):
            values = (0, -1, 10**9, "zzz")
            ends = [schema[end] for end in ("maximum", "minimum") if is_number(schema.get(end))]
            allowed += [call(tool["name"], {**base, name: value}) for value in ends]
        odd.append([call(tool["name"], {**base, name: value}) for value in values])
    yield from allowed
    yield call(tool["name"], {})
    yield from (op for turn in itertools.zip_longest(*odd) for op in turn if op is not None)
    for other_value in bases[1:4]:
        yield call(tool["name"], dict(other_value))
