"""Hints from the source about swallowed failures, without running it.

Each pattern is legitimate somewhere (a page that does not exist is `[]`), so these are hints for a reader, at most one
of each kind in a file; where the pattern stands around a reward it is a warning.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding, Severity
from quintain.audit.kernel.loader import Component

Function = ast.FunctionDef | ast.AsyncFunctionDef
_REWARD = re.compile(r"reward|score|grade|verdict|judge|verif|criteri|\bpaid|rubric|evaluate", re.IGNORECASE)
_RESULT = re.compile(r"reward|score|grade|result|verdict|passed|status", re.IGNORECASE)
_WIDE = {"Exception", "BaseException", "TimeoutError", "OSError", "ConnectionError", "asyncio.TimeoutError"}
_WRITES = re.compile(r"\.(write|write_text|write_bytes|execute|commit|save|update|append|insert|remove|unlink|send)$")
_VALIDATES = re.compile(r"^(is_|_is_|has_|check_?|_check|valid|_valid|verify|_verify)", re.IGNORECASE)


class SwallowedError(msgspec.Struct, frozen=True):
    """A place in the source that deserves a look.

    Attributes:
        kind: What is swallowed, or how.
    """

    kind: str
    title: str
    part: Component
    where: str
    near_reward: bool


@check("x.swallowed_code", "silent_default", level="static", needs=("sources",), value=60, severity="note")
def swallowed(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no exception handler, default or suppression in the code turns a failure into a value."""
    for place in _places(ctx):
        severity: Severity = "warning" if place.near_reward else "note"
        yield ctx.finding(
            place.title,
            part=place.part,
            where=place.where,
            severity=severity,
            at_most="hint",
            teaches="that a failure is a fact about the world",
        )


def _places(ctx: AuditContext) -> Iterator[SwallowedError]:
    names: dict[str, list[str]] = {}
    parts: dict[str, Component] = {}
    for source in ctx.sources:
        names.setdefault(source.path, []).extend(source.names)
        parts.setdefault(source.path, source.part)
    for path, own in names.items():
        file = Path(path)
        if file.suffix != ".py" or not file.is_file():
            continue
        ctx.count_comparisons()
        kept: dict[str, SwallowedError] = {}
        for place in _HandlerFile(
            _used_part(ast.parse(file.read_text("utf-8"), path), own), path, parts[path]
        ).places():
            if place.kind not in kept or (place.near_reward and not kept[place.kind].near_reward):
                kept[place.kind] = place
        yield from kept.values()


def _used_part(tree: ast.Module, names: list[str]) -> list[ast.stmt]:
    """Top-level statements that define these names or what they use; all where no name is given."""
    if not names:
        return tree.body
    made: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef):
            made[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            made |= {target.id: node for target in targets if isinstance(target, ast.Name)}
    todo, used = [name for name in names if name in made], dict[str, ast.stmt]()
    while todo:
        name = todo.pop()
        if name not in used:
            used[name] = made[name]
            todo += [child.id for child in ast.walk(made[name]) if isinstance(child, ast.Name) and child.id in made]
    return [node for node in tree.body if node in used.values()]


class _HandlerFile:
    """One file, read."""

    def __init__(self, body: list[ast.stmt], path: str, part: Component) -> None:
        self._body, self._path = body, path
        self._part: Component = part
        self._function: Function | None = None

    def places(self) -> Iterator[SwallowedError]:
        for top in self._body:
            for function in (node for node in ast.walk(top) if isinstance(node, Function)):
                self._function = function
                for node in ast.walk(function):
                    yield from self._handler(node)
                    yield from self._expression(node)
                yield from self._unread(function)
                yield from self._always(function)

    def _place(self, kind: str, title: str, node: ast.AST) -> SwallowedError:
        function = self._function
        name = function.name if function else ""
        line = getattr(node, "lineno", 0)
        near = self._part == "V" or _REWARD.search(name) is not None
        return SwallowedError(kind, f"{name} {title}", "V" if near else self._part, f"{self._path}:{line}", near)

    def _handler(self, node: ast.AST) -> Iterator[SwallowedError]:
        if isinstance(node, ast.ExceptHandler):
            caught = _names(node.type)
            wide = not caught or caught & _WIDE
            if wide and all(
                isinstance(statement, ast.Pass | ast.Continue | ast.Expr) and _idle(statement)
                for statement in node.body
            ):
                yield self._place("passes", f"catches {_listed(caught)} and does nothing", node)
            for statement in node.body:
                if wide and isinstance(statement, ast.Return | ast.Assign) and _is_default(statement.value):
                    value = ast.unparse(statement.value) if statement.value else "None"
                    yield self._place("defaults", f"makes {value} of {_listed(caught)}", statement)
            raises = any(isinstance(child, ast.Raise) for child in ast.walk(node))
            if (not caught or "BaseException" in caught) and not raises:
                yield self._place("everything", "catches even what ends the process, and goes on", node)
        if isinstance(node, ast.With):
            for item in node.items:
                text = ast.unparse(item.context_expr)
                inner = ast.unparse(ast.Module(node.body, []))
                if "suppress(" in text and re.search(r"Exception|OSError|Error", text) and _writes(node.body):
                    yield self._place("suppresses", f"suppresses what fails in `{inner.splitlines()[0][:60]}`", node)

    def _expression(self, node: ast.AST) -> Iterator[SwallowedError]:
        if isinstance(node, ast.Call):
            text = ast.unparse(node.func)
            if text.endswith(".get") and len(node.args) == 2 and _is_number(node.args[1]):
                key = ast.unparse(node.args[0])
                if _RESULT.search(key) or _RESULT.search(text):
                    yield self._place("missing", f"takes {ast.unparse(node.args[1])} for a missing {key}", node)
            if any(word.arg == "errors" and _text(word.value) in ("ignore", "replace") for word in node.keywords):
                yield self._place("decoding", "decodes with errors ignored or replaced", node)
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and _is_number(node.values[-1]):
            last, text = ast.unparse(node.values[-1]), ast.unparse(node)
            if _RESULT.search(text):
                yield self._place("or", f"takes {last} for nothing: `{text[:60]}`", node)

    def _unread(self, function: Function) -> Iterator[SwallowedError]:
        """Parameters that the function never reads; those of an interface (one statement, `_x`, `seed`...) aside."""
        if len(function.body) < 3 or function.decorator_list:
            return
        read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        listed = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        left = [item.arg for item in listed if item.arg not in {"self", "cls", *read} and not item.arg.startswith("_")]
        if left and not (function.name.startswith("__") and function.name != "__init__"):
            yield self._place("unread", f"never reads its parameter {left[0]}", function)

    def _always(self, function: Function) -> Iterator[SwallowedError]:
        """A validator whose every way ends in True."""
        if not _VALIDATES.match(function.name):
            return
        returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        raises = any(isinstance(node, ast.Raise | ast.Assert) for node in ast.walk(function))
        says = bool(returned) and all(isinstance(node, ast.Constant) and node.value is True for node in returned)
        if says and not raises:
            yield self._place("always", "can only say True", function)


def _names(node: ast.expr | None) -> set[str]:
    if node is None:
        return set()
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    return {ast.unparse(child) for child in nodes}


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "everything"


def _idle(node: ast.stmt) -> bool:
    return not isinstance(node, ast.Expr) or isinstance(node.value, ast.Constant)


def _is_default(node: ast.expr | None) -> bool:
    """A constant, or an empty container."""
    if node is None or isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return not node.elts
    return isinstance(node, ast.Dict) and not node.keys


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _writes(body: list[ast.stmt]) -> bool:
    calls = (node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(_WRITES.search(ast.unparse(node.func)) for node in calls)
