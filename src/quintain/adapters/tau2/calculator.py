"""Arithmetic as the reference does it: the expression is Python's, and so are the complaints that the model reads.

Nothing is handed to `eval`, and powers are bounded: `9**9**9**9` must not stop the world.
"""

from __future__ import annotations

import ast
import operator
import warnings
from typing import Any

_ALPHABET = "0123456789+-*/(). "
_OPERATIONS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.UAdd: "pos",
    ast.USub: "neg",
}
"""Names in the module `operator`."""
_POWER_BITS = 2**20
"""Longest power that is worked out; a float ends at 2**10 bits."""


def calculated(expression: str) -> str:
    """Returns the value, rounded to two decimals.

    Raises:
        ValueError: A character that no arithmetic needs.
        SyntaxError, TypeError, ArithmeticError: What Python says of the expression.
    """
    if not all(char in _ALPHABET for char in expression):
        raise ValueError("Invalid characters in expression")
    if not isinstance(expression, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("eval() arg 1 must be a string, bytes or code object")
    source = expression.lstrip(" \t")
    with warnings.catch_warnings(action="ignore"):  # "perhaps you missed a comma?" is not news for the model
        compile(source, "<string>", "eval")  # finds what parsing alone lets pass
        tree = ast.parse(source, "<string>", "eval")
    return str(round(float(_value(tree.body)), 2))


def _value(node: ast.AST) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.BinOp(op=ast.Pow()):
            return _power(_value(node.left), _value(node.right))
        case ast.BinOp():
            return _apply(node.op, _value(node.left), _value(node.right))
        case ast.UnaryOp():
            return _apply(node.op, _value(node.operand))
        case ast.Tuple(elts=[]):
            return ()
        case ast.Call():
            raise TypeError(_not_callable(_value(node.func), [*node.args, *node.keywords]))
        case _:
            raise ValueError(f"{type(node).__name__} is not arithmetic")


def _apply(operation: ast.AST, *operands: Any) -> Any:
    return getattr(operator, _OPERATIONS[type(operation)])(*operands)


def _not_callable(called: Any, arguments: list[Any]) -> str:
    """Returns the error of calling a number; its arguments are checked first."""
    for argument in arguments:
        match argument:
            case ast.Starred():
                if not isinstance(value := _value(argument.value), tuple):
                    return f"{called} argument after * must be an iterable, not {type(value).__name__}"
            case ast.keyword():
                return f"{called} argument after ** must be a mapping, not {type(_value(argument.value)).__name__}"
            case _:
                _value(argument)
    return f"'{type(called).__name__}' object is not callable"


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * exponent > _POWER_BITS:
        raise OverflowError("int too large to convert to float")
    return base**exponent
