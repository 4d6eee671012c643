"""Texts that determine a seed: the source of its module, and of its author's modules that this one imports.

Imports are read from the text, also those within functions, and followed to the modules that they name; the packages
around these count only if they are named too. A module is the author's if it is in the same package as the seed, or
outside the folders where Python installs packages. Installed packages, Quintain itself and the interpreter count by
their version. Files that a seed reads do not count.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.util
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from quintain import codec

_US = __name__.partition(".")[0]


@functools.cache
def of(function: types.FunctionType) -> tuple[bytes, ...] | None:
    """Returns names and texts in a fixed order; None if a text is missing."""
    start = function.__module__ or ""  # of a function that was never in a module
    path = _file(start)
    if path is None or path.resolve() != Path(function.__code__.co_filename).resolve():
        return None
    texts: dict[str, bytes] = {}
    versions = {"python": str(sys.implementation.cache_tag)}
    todo = [(start, path)]
    while todo:
        name, path = todo.pop()
        if name in texts:
            continue
        texts[name] = path.read_bytes()
        for other, found in _imported(texts[name], name, is_package=path.name == "__init__.py"):
            if found is not None and _is_own(other, found, start):
                todo.append((other, found))
            elif _top(other) not in versions:
                versions[_top(other)] = _version(_top(other))
    words = [f"{start}.{function.__qualname__}", *map(str, sorted(versions.items()))]
    for name in sorted(texts):
        words += [name, codec.digest(texts[name])]
    return tuple(word.encode() for word in words)


def _imported(text: bytes, module: str, *, is_package: bool) -> Iterator[tuple[str, Path | None]]:
    """Yields every module that a text may import, and the path of its text; none of the standard library."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in _statements(ast.parse(text)):
        names: list[tuple[str, ...]] = []
        if isinstance(node, ast.Import):
            names = [(alias.name,) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*base, node.module] if node.module else base)
            names = [(f"{origin}.{alias.name}", origin) for alias in node.names]
        for candidates in names:
            if _top(candidates[0]) not in sys.stdlib_module_names:
                known = ((name, path) for name in candidates if (path := _file(name)))
                yield next(known, (candidates[-1], None))


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields all of them, however deep; expressions, of which there are many more, hold no imports."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner: object = getattr(node, field, None)
            if isinstance(inner, list):
                todo += cast(list[ast.AST], inner)


def _file(name: str) -> Path | None:
    """Returns the path of a module's text, without importing it."""
    module = sys.modules.get(name)
    parent, _, last = name.rpartition(".")
    path: Path | None = None
    if module is not None:
        path = Path(getattr(module, "__file__", None) or "")
    elif not parent:
        with contextlib.suppress(ValueError):
            spec = importlib.util.find_spec(name)
            path = Path(spec.origin or "") if spec else None
    else:
        around = _file(parent)
        if around is not None and around.name == "__init__.py":
            beside = (around.parent / f"{last}.py", around.parent / last / "__init__.py")
            path = next((one for one in beside if one.is_file()), None)
    return path if path is not None and path.suffix == ".py" and path.is_file() else None


def _is_own(name: str, path: Path, start: str) -> bool:
    if _top(name) == _US:
        return name.split(".")[:2] == start.split(".")[:2]
    return _top(name) == _top(start) or not any(path.is_relative_to(folder) for folder in _installed())


@functools.cache
def _installed() -> tuple[str, ...]:
    return tuple(sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib"))


def _version(top: str) -> str:
    own: object = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(own, str):
        return own
    from importlib.metadata import PackageNotFoundError, version  # 15 ms that few sources need

    with contextlib.suppress(PackageNotFoundError):
        return version(top)
    return ""


def _top(name: str) -> str:
    return name.partition(".")[0]
