"""Checks a judge's code: unpinned models, temperature, loose parsing of verdicts, made-up grades."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding

from ._judge_models import is_model, is_pinned

VERDICTS = frozenset(("yes", "no", "correct", "incorrect", "true", "pass", "fail", "good", "right", "a", "b", "1", "0"))


class Smell(msgspec.Struct, frozen=True):
    """A suspicious place in a judge's source."""

    title: str
    line: int
    expected: str
    observed: str


@check("x.judge_code", "judge", level="static", needs=("sources",), value=62, severity="warning")
def code(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the judge's code pins its model, uses temperature 0, and parses verdicts strictly."""
    read = [source for source in ctx.sources if source.part == "V" or "judge" in ctx.offers]
    for path in dict.fromkeys(source.path for source in read):
        try:
            tree = ast.parse(Path(path).read_text("utf-8"))
        except (OSError, SyntaxError, ValueError):
            continue
        ctx.count_comparisons()
        for smell in smells(tree):
            yield ctx.finding(
                smell.title,
                part="V",
                where=f"{path}:{smell.line}",
                expected=smell.expected,
                observed=smell.observed,
                teaches="the judge's habits, not right work",
                at_most="hint",
            )


def smells(tree: ast.AST) -> Iterator[Smell]:
    """Yields the suspicious places in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from _membership(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_model(node.value):
            if not is_pinned(node.value):
                yield Smell("the judge's model is not pinned to a version", node.lineno, "a dated version", node.value)
        elif isinstance(node, ast.keyword) and node.arg == "temperature":
            yield from _heat(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _judges(node):
            yield from _made_up(node)


def _membership(node: ast.Compare) -> Iterator[Smell]:
    word = node.left
    if isinstance(word, ast.Constant) and isinstance(word.value, str) and isinstance(node.ops[0], ast.In):
        lowered = ast.unparse(node.comparators[0])
        if word.value.lower().strip() in VERDICTS and re.search(
            r"repl|respon|verdict|output|text|answer|said", lowered
        ):
            yield Smell(
                f"a verdict is looked for anywhere in a text: {word.value!r} in {lowered}",
                node.lineno,
                "the whole reply compared, or a marked place in it",
                ast.unparse(node),
            )


def _heat(node: ast.keyword) -> Iterator[Smell]:
    value = node.value
    if isinstance(value, ast.Constant) and isinstance(value.value, int | float) and value.value > 0:
        yield Smell("the judge is asked at a temperature above 0", value.lineno, "0", str(value.value))


def _judges(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return bool(re.search(r"judge|grade|verdict|parse", node.name.lower()))


def _made_up(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Smell]:
    for handler in ast.walk(node):
        if not isinstance(handler, ast.ExceptHandler):
            continue
        for statement in handler.body:
            value = statement.value if isinstance(statement, ast.Return) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
                yield Smell(
                    "a judge that fails returns a grade",
                    statement.lineno,
                    "no verdict, or the error",
                    ast.unparse(statement),
                )
