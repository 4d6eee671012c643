"""`help()` of every public name shows real parameters and a docstring.

Public are the names of `quintain`, those that a package re-exports or lists in `__all__`, and those that the code
blocks of the documentation import.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quintain.errors import UsageError

from . import tidy

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
UNCLEAR = re.compile(r"\*args|\*\*kwargs|\bat 0x|\b_[A-Z]\w*")
"""What no signature shows: parameters without a name, the address of an object, a private class."""
FUNCTION = re.compile(r"<function (\w+) at 0x\w+>")
"""A default that is a function; its name is clear."""
ANYTHING = ("Any", "object", Any, object, inspect.Parameter.empty)
"""Annotations that do not say what a parameter takes."""
IMPORT = re.compile(r"^ *(from quintain[\w.]* import (?:\([^)]*\)|[^\n(]+))$", re.MULTILINE)


def exported() -> Iterator[tuple[str, str]]:
    """Yields module and name of what the package's `__init__.py` files export."""
    for path in sorted((SRC / "quintain").rglob("__init__.py")):
        module = ".".join(path.parent.relative_to(SRC).parts)
        listed = getattr(importlib.import_module(module), "__all__", ())
        names = {*tidy.public_names(tidy.Source(str(path), path.read_text())), *listed}
        yield from ((module, name) for name in sorted(names))


def documented() -> Iterator[tuple[str, str]]:
    """Yields module and name of what the pages import."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for statement in IMPORT.findall(page.read_text()):
            (node,) = ast.parse(statement).body
            assert isinstance(node, ast.ImportFrom)
            yield from ((str(node.module), alias.name) for alias in node.names)


def faults(label: str, given: Any) -> Iterator[str]:
    """Yields what `help()` of a function or class does not say, and the same for the methods of a class."""
    if inspect.isclass(given):
        if not (getattr(given, "_is_protocol", False) or issubclass(given, Exception)):
            # A protocol is not constructed, and users do not construct exceptions.
            yield from _unclear(label, given)
        for name, member in vars(given).items():
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function) and not name.startswith(("_", "test_")):
                yield from _unclear(f"{label}.{name}", function)
    elif inspect.isfunction(given):
        yield from _unclear(label, given)


def _unclear(label: str, given: Callable[..., Any]) -> Iterator[str]:
    doc = inspect.getdoc(given) or ""
    if not doc:
        yield f"{label} has no docstring"
    signature = inspect.signature(given)
    if found := UNCLEAR.search(FUNCTION.sub(r"\1", str(signature))):
        yield f"{label} shows {found[0]!r} in {signature}"
    for parameter in signature.parameters.values():
        is_open = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if is_open and parameter.annotation in ANYTHING and not re.search(rf"\b{parameter.name}\b", doc):
            yield f"{label} takes {parameter}, and its docstring does not say which"


def test_help_shows_real_parameters_of_every_public_name() -> None:
    names = sorted({*exported(), *documented()})
    found = [
        fault
        for module, name in names
        for fault in faults(f"{module}.{name}", getattr(importlib.import_module(module), name, None))
    ]
    assert not found, "\n" + "\n".join(found)
    assert len(names) > 150


def _silent(count: int) -> None: ...


def _any(**names: Any) -> None:
    """Does something."""


def _told(**names: Any) -> None:
    """Does something; `names` are fields of the trace."""


def _private(source: tidy.Source, error: UsageError | None = None, then: Callable[[], object] = object) -> None:
    """Does something."""


class _Silent:
    """Class with a method without a docstring."""

    def run(self) -> None: ...


def _default(then: Callable[[], object] = lambda: 0) -> None:
    """Does something."""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (_silent, ["x has no docstring"]),
        (_any, ["x takes **names: 'Any', and its docstring does not say which"]),
        (_told, []),
        (_private, []),
        (_Silent, ["x.run has no docstring"]),
        (_default, ["x shows 'at 0x' in "]),
    ],
)
def test_fault_of_help_is_named(given: Any, says: list[str]) -> None:
    found = list(faults("x", given))
    assert len(found) == len(says)
    assert all(fault.startswith(start) for fault, start in zip(found, says, strict=True))
