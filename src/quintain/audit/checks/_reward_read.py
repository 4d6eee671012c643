"""Checks the source of a scorer: code that it would run, overlook, or let pass."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Source

_SCORES = re.compile(r"score|reward|grade|verif|judge|check|correct|evaluate|is_right|passes", re.IGNORECASE)
_SUBMITTED = re.compile(
    r"answer|prediction|response|completion|output|said|submission|reply|text|words|guess", re.IGNORECASE
)
_RIGHT = re.compile(r"gold|target|expected|truth|reference|solution|answer|label|correct|want", re.IGNORECASE)


@check("x.scorer_code", "reward_hack", level="static", needs=("sources",), value=72, severity="warning")
def scorer_code(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the scorer runs no agent text, and decides by more than an accident of it."""
    for source in ctx.sources:
        for function in scorers(source):
            ctx.count_comparisons()
            for line, said, why in faults(function):
                yield ctx.finding(
                    f"the scorer {said}",
                    part="V",
                    at_most="hint",
                    where=f"{source.path}:{line}",
                    expected=why,
                    observed=f"{function.name}() {said}",
                    teaches="inputs that slip through the scorer",
                )


def scorers(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions that judge, as their names or the file's letter say."""
    path = Path(source.path)
    if not path.is_file():
        return
    for top in ast.parse(path.read_text("utf-8"), source.path).body:
        if source.names and getattr(top, "name", None) not in source.names:
            continue
        for node in ast.walk(top):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if source.part == "V" or _SCORES.search(node.name):
                yield node


def faults(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, str, str]]:
    """Line, what it does, and what would be right."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            yield from _call(node)
        elif isinstance(node, ast.Compare):
            yield from _contained(node)
        elif isinstance(node, ast.ExceptHandler):
            yield from _swallowed(node)


def _call(node: ast.Call) -> Iterator[tuple[int, str, str]]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    given = [ast.unparse(child) for child in node.args]
    if name in ("eval", "exec") and given and not isinstance(node.args[0], ast.Constant):
        yield node.lineno, f"calls {name} on what it is given", "parse it: ast.literal_eval, json, a number"
    if name == "bool" and given and _SUBMITTED.search(given[0]):
        yield node.lineno, "takes any answer that is not empty for true", "compare it with the right one"
    if name in ("min", "max") and len(given) == 2 and any(isinstance(child, ast.Constant) for child in node.args[:1]):
        yield (
            node.lineno,
            f"bounds by {name}({given[0]}, ...), which lets NaN become the bound",
            "refuse what is not finite",
        )
    searched = attribute in ("search", "match", "findall") and isinstance(node.func, ast.Attribute)
    if searched and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "re" and node.args:
        shown = given[0]
        if attribute in ("search", "match") and _RIGHT.search(shown) and "escape" not in shown and "$" not in shown:
            yield node.lineno, "matches a pattern made of the right answer, not anchored", "re.fullmatch and re.escape"


def _contained(node: ast.Compare) -> Iterator[tuple[int, str, str]]:
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return
    left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
    if _RIGHT.search(left) and _SUBMITTED.search(right) and left != right and isinstance(node.ops[0], ast.In):
        yield node.lineno, "pays when the right answer stands anywhere in the text", "compare the answer as a whole"
    if _SUBMITTED.search(left) and _RIGHT.search(right) and left != right and ".lower" in f"{left}{right}":
        yield node.lineno, "pays when the answer is a part of the right one", "compare the answer as a whole"


def _swallowed(node: ast.ExceptHandler) -> Iterator[tuple[int, str, str]]:
    for statement in node.body:
        value = statement.value if isinstance(statement, ast.Return) else None
        if isinstance(value, ast.Constant) and value.value in (1, 1.0, True):
            yield node.lineno, "pays in full when it breaks", "let the error out: no verdict"
