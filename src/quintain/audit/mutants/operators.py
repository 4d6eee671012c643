"""Mutation operators: small changes of the functions of a Python file, as edits of its text.

In the verifier, conditions, numbers and return values are mutated. In tools, a write is skipped or changed, or a guard
is removed. An edit replaces one expression or one simple statement. Texts without effect on behaviour are left alone:
messages, docstrings, annotations.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

Part = Literal["V", "S"]

WATCH = "__import__('quintain.audit.mutants.loading', fromlist=['saw']).saw"


class CodeChange(msgspec.Struct, frozen=True):
    """One edit, as in `loading.Mutant`, of a function.

    `watched` is the same edit for the whole enclosing expression, which then records whether its value differs; None if
    evaluating the expression twice could have side effects.
    """

    operator: str
    description: str
    owner: str
    lines: tuple[int, int]
    at: int
    before: str
    after: str
    watched: tuple[int, str, str] | None = None


def changes(source: bytes, part: Part) -> list[CodeChange]:
    """Returns all changes of a file; raises SyntaxError or UnicodeDecodeError if it is not Python in UTF-8."""
    tree = ast.parse(source.decode())
    text = _TextMutations(source)
    return [one for owner, function in _functions(tree, "") for one in _of_function(text, owner, function, part=part)]


class _TextMutations:
    """Source text, addressed by syntax nodes."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._starts = [0, *itertools.accumulate(len(line) + 1 for line in source.split(b"\n"))]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first = self._starts[node.lineno - 1] + node.col_offset
        return first, self._starts[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.expr | ast.stmt) -> str:
        first, last = self.span(node)
        return self._source[first:last].decode()


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(node: ast.AST, owner: str) -> Iterator[tuple[str, _Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function | ast.ClassDef):
            name = f"{owner}.{child.name}" if owner else child.name
            if not isinstance(child, ast.ClassDef):
                yield name, child
            yield from _functions(child, name)
        else:
            yield from _functions(child, owner)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of a function at any depth, without those of nested functions and classes."""
    for one in body:
        if not isinstance(one, _Function | ast.ClassDef):
            yield one
            inner = (*getattr(one, "handlers", []), *getattr(one, "cases", []))
            for some in (
                *(getattr(one, field, []) for field in ("body", "orelse", "finalbody")),
                *(x.body for x in inner),
            ):
                yield from _statements(some)


def _of_function(text: _TextMutations, owner: str, function: _Function, *, part: Part) -> Iterator[CodeChange]:
    for one in _statements(function.body):
        if part == "S" and _writes(one):
            lines, before = (one.lineno, one.end_lineno or one.lineno), text.of(one)
            words = f"`{_flat(before)}` is skipped"
            yield CodeChange("skip write", words, owner, lines, text.span(one)[0], before, "pass")
        for whole in _expressions(one):
            found = _judged(one, whole, function) if part == "V" else _guarding(one, whole)
            for operator, node, after in found:
                if _words(node) == _words(ast.parse(after, mode="eval").body):
                    continue  # It says so already.
                (first, last), (begin, _) = text.span(node), text.span(whole)
                around = text.of(whole)
                cut = around.encode()
                mutated = (cut[: first - begin] + after.encode() + cut[last - begin :]).decode()
                # Of a condition only the truth value matters.
                kind = "bool" if isinstance(one, ast.If | ast.While) and whole is one.test else ""
                both = f"{WATCH}({kind}({around}), {kind}({mutated}))"
                yield CodeChange(
                    operator=operator,
                    description=f"`{_flat(around)}` becomes `{_flat(mutated)}`",
                    owner=owner,
                    lines=(whole.lineno, whole.end_lineno or whole.lineno),
                    at=first,
                    before=text.of(node),
                    after=after,
                    watched=(begin, around, both) if _is_pure(one, whole) else None,
                )


def _words(node: ast.expr) -> str:
    """Returns an expression in words; equal numbers read the same."""
    value = node.value if isinstance(node, ast.Constant) else None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else ast.unparse(node)


def _flat(code: str) -> str:
    return re.sub(r"\s+", " ", code)[:160]


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yields the outermost expressions of a statement, without those of nested statements."""
    if isinstance(statement, ast.With | ast.AsyncWith):
        yield from (item.context_expr for item in statement.items)
        return
    targets = {id(one) for one in (*getattr(statement, "targets", ()), getattr(statement, "target", None))}
    targets |= {id(statement.annotation)} if isinstance(statement, ast.AnnAssign) else set()
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr) and id(child) not in targets:
            yield child


def _is_pure(statement: ast.stmt, whole: ast.expr) -> bool:
    """True if an expression may be evaluated twice, as far as its names show."""
    if isinstance(statement, ast.Expr | ast.Raise | ast.For | ast.AsyncFor | ast.With | ast.AsyncWith):
        return False
    banned = (ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Await)
    return not any(isinstance(one, banned) or _mutates(one) or _called(one) == "next" for one in ast.walk(whole))


# --- what the verifier says ---

_COMPARED: dict[type[ast.cmpop], tuple[str, str, str]] = {
    ast.Eq: ("==", "!=", ""), ast.NotEq: ("!=", "==", ""), ast.Lt: ("<", ">=", "<="), ast.GtE: (">=", "<", ">"),
    ast.Gt: (">", "<=", ">="), ast.LtE: ("<=", ">", "<"), ast.In: ("in", "not in", ""), ast.NotIn: ("not in", "in", ""),
    ast.Is: ("is", "is not", ""), ast.IsNot: ("is not", "is", ""),
}  # fmt: skip
"""Each comparison with its opposite, and with the one that has the other border; empty without one."""
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
}  # fmt: skip
_OTHER = {"min": "max", "max": "min", "any": "all", "all": "any"}
_ANSWERS = {"bool": ("True", "False"), "float": ("1.0", "0.0"), "int": ("1", "0"), "str": ("''",), "list": ("[]",)}

_Found = Iterator[tuple[str, ast.expr, str]]


def _judged(statement: ast.stmt, whole: ast.expr, function: _Function) -> _Found:
    if isinstance(statement, ast.Return) and whole is statement.value:
        yield from _returned(whole, function)
    if isinstance(statement, ast.If) and whole is statement.test and _leaves(statement.body):
        yield "drop condition", whole, "False"
    if isinstance(statement, ast.Raise | ast.Assert):
        return
    for node in _inside(whole):
        yield from _condition(node)
        yield from _number(node)


def _inside(whole: ast.expr) -> Iterator[ast.expr]:
    """Yields an expression and its subexpressions, except in f-strings, which have no positions before Python 3.12."""
    yield whole
    for child in ast.iter_child_nodes(whole):
        inner = [child.value] if isinstance(child, ast.keyword) else [child]
        if isinstance(child, ast.comprehension):
            inner = [child.iter, *child.ifs]
        for one in inner:
            if isinstance(one, ast.expr) and not isinstance(one, ast.JoinedStr):
                yield from _inside(one)


def _condition(node: ast.expr) -> _Found:
    if isinstance(node, ast.Compare):
        for place, op in enumerate(node.ops):
            _, opposite, border = _COMPARED[type(op)]
            yield "negate comparison", node, _compared(node, place, opposite)
            if border:
                yield "move border", node, _compared(node, place, border)
    elif isinstance(node, ast.BoolOp):
        word = " and " if isinstance(node.op, ast.And) else " or "
        for gone in range(len(node.values)):
            kept = [f"({ast.unparse(one)})" for place, one in enumerate(node.values) if place != gone]
            yield ("drop conjunct" if word == " and " else "drop alternative"), node, f"({word.join(kept)})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "drop not", node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.IfExp):
        yield from (("choose one side", node.test, word) for word in ("True", "False"))
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        yield from (("drop filter", one, "True") for loop in node.generators for one in loop.ifs)


def _compared(node: ast.Compare, place: int, op: str) -> str:
    description = f"({ast.unparse(node.left)})"
    for at, (each, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
        description += f" {op if at == place else _COMPARED[type(each)][0]} ({ast.unparse(right)})"
    return f"({description})"


def _number(node: ast.expr) -> _Found:
    if _is_number(node):
        yield "change number", node, _next(node)
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC and not _speaks(node):
        sign, other = _ARITHMETIC[type(node.op)]
        left, right = ast.unparse(node.left), ast.unparse(node.right)
        yield f"{sign} becomes {other}", node, f"(({left}) {other} ({right}))"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in _OTHER:
            yield f"{node.func.id} becomes {_OTHER[node.func.id]}", node.func, _OTHER[node.func.id]
        elif node.func.id == "round" and node.args:
            yield "do not round", node, f"({ast.unparse(node.args[0])})"


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _next(node: ast.expr) -> str:
    value = node.value if isinstance(node, ast.Constant) else 0
    return repr(value + 1 if isinstance(value, int) else value * 2 if isinstance(value, float) and value else 1.0)


def _speaks(node: ast.expr) -> bool:
    said = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
    return any(isinstance(one, str) for one in said) or any(isinstance(one, ast.JoinedStr) for one in ast.walk(node))


def _returned(value: ast.expr, function: _Function) -> _Found:
    kind = function.returns.id if isinstance(function.returns, ast.Name) else ""
    if isinstance(function.returns, ast.Subscript) and isinstance(function.returns.value, ast.Name):
        kind = function.returns.value.id
    if not kind:
        kind = "bool" if _is_truth(value) else "float" if _counts(value) else ""
    for answer in _ANSWERS.get(kind, ()):
        yield f"return {answer}", value, answer
    if isinstance(value, ast.Call) and value.args and (_counts(value.args[0]) or _is_truth(value.args[0])):
        yield from ((f"give {answer}", value.args[0], answer) for answer in _ANSWERS["float"])


def _is_truth(node: ast.expr) -> bool:
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return is_not or isinstance(node, ast.Compare | ast.BoolOp) or _called(node) in ("any", "all", "bool")


def _counts(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _counts(node.body) or _counts(node.orelse)
    is_sum = isinstance(node, ast.BinOp) and not _speaks(node)
    return is_sum or _is_number(node) or _called(node) in ("float", "max", "min", "round", "sum")


def _called(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


# --- what tools write ---

_MUTATING = frozenset((
    "append", "add", "pop", "update", "remove", "discard", "clear", "extend", "insert", "setdefault", "popitem", "set",
    "delete", "put", "write", "save", "store", "insert_one", "update_one", "delete_one", "set_value", "create",
))  # fmt: skip
_SQL = re.compile(r"^\s*(insert|update|delete|replace)\b", re.IGNORECASE)


def _mutates(node: ast.AST) -> bool:
    """True if a call changes its receiver, by the method's name or by the SQL that it executes."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    if node.func.attr in ("execute", "executemany", "run"):
        first = node.args[0] if node.args else None
        words = first.values[0] if isinstance(first, ast.JoinedStr) and first.values else first
        return isinstance(words, ast.Constant) and isinstance(words.value, str) and bool(_SQL.match(words.value))
    return node.func.attr in _MUTATING


def _writes(one: ast.stmt) -> bool:
    if isinstance(one, ast.Assign | ast.Delete):
        return any(isinstance(target, ast.Attribute | ast.Subscript) for target in one.targets)
    if isinstance(one, ast.AugAssign):
        return isinstance(one.target, ast.Attribute | ast.Subscript)
    if isinstance(one, ast.Expr):
        value = one.value.value if isinstance(one.value, ast.Await) else one.value
        return _mutates(value)
    return False


def _guarding(statement: ast.stmt, whole: ast.expr) -> _Found:
    """Yields changes that remove a guard, swap two arguments or write another value."""
    if isinstance(statement, ast.If) and whole is statement.test and _leaves(statement.body):
        yield "drop guard", whole, "False"
        return
    if isinstance(statement, ast.Raise | ast.Assert | ast.Return | ast.If | ast.While):
        return
    for node in _inside(whole):
        if isinstance(node, ast.Call):
            yield from _swapped(node)
    for node in _inside(whole) if _writes(statement) and not isinstance(statement, ast.Delete) else ():
        named = [one.value for one in node.keywords] if isinstance(node, ast.Call) else []
        for value in (*named, *([whole] if node is whole else [])):
            constant = value.value if isinstance(value, ast.Constant) else None
            if isinstance(constant, str) and constant:
                yield "write another word", value, repr(f"{constant}?")
            elif isinstance(constant, bool):
                yield "write another truth", value, repr(not constant)
        if _is_number(node):
            yield "change number", node, _next(node)


def _swapped(node: ast.Call) -> _Found:
    for left, right in itertools.pairwise(node.args):
        both = isinstance(left, ast.Name | ast.Attribute) and isinstance(right, ast.Name | ast.Attribute)
        if both and type(left) is type(right) and len({"self", ast.unparse(left), ast.unparse(right)}) == 3:
            places = {id(left): right, id(right): left}
            args = [places.get(id(one), one) for one in node.args]
            yield "swap arguments", node, ast.unparse(ast.Call(node.func, args, node.keywords))
