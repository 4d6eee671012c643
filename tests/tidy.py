"""Laws of structure: each law is a function from sources to violations, and a violation says what to do.

`tests/test_tidy.py` runs the laws over this repository, and shows for each law a source that it catches.
"""

from __future__ import annotations

import ast
import functools
import io
import itertools
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")  # the fields of a node that hold statements

# --- the tables ---

CORE: tuple[tuple[str, ...], ...] = (
    # A module of layers 0-4 may import those of lower layers, and those before it in its own.
    ("codec", "errors", "config"),  # 0 foundation
    ("resource", "state", "contract", "trace", "tools"),  # 1 the world and its record
    ("noise", "task", "harness", "verifier", "executor"),  # 2 the components that ask, drive and score
    ("environment",),  # 3 the equation
    (
        "context",
        "scoring",
        "episode",
        "record",
        "gate",
        "rollout",
        "replay",
        "chain",
        "rollouts",
    ),  # 4 play
)
ROOT = "__init__"  # the public names; extensions and applications may import it
EXTENSIONS = (  # 5: each may import the core, and nothing of another extension
    "resources", "harnesses", "models", "judges", "tasks", "audit", "serve", "train", "adapters", "distributed",
    "studio", "authoring", "products", "testing", "report", "rescore", "trajectory", "layered", "table", "plugins",
    "changes",
)  # fmt: skip
IN_ROOT = {"serve", "table", "trajectory"}  # extensions with public names in the root
SHARED = {"layered", "table", "plugins", "changes"}  # extensions that the others may import
USES = {  # extensions that import others
    "adapters": {"harnesses", "judges", "resources"},  # tau2 searches documents; data sets of programs need a sandbox
    "products": {"resources"},  # a product is a world on a database
    "train": {"models"},  # the local endpoint speaks chat completions
}
APPLICATIONS = ("environments", "cli", "__main__")  # 6: in this order

ASYNC = {"executor", "rollouts"}  # the core's only modules that know an event loop
THIRD_PARTY = {"msgspec"}  # the core's only dependency
BANNED = {  # in the core: calls that make a replay differ, and their replacements
    "copy.deepcopy": "State.copy()",
    "random": "the world's rng",
    "time.time": "the world's clock",
    "time.time_ns": "the world's clock",
    "uuid.uuid1": "new_id()",
    "uuid.uuid4": "new_id()",
}

FILE_LINES = 600  # aim at 200
FUNCTION_LINES = 50
LINE_COLUMNS = 120
POSITIONAL = 3
CORE_LINES = 3000
PUBLIC_NAMES = 30

RATCHET: dict[str, int] = {
    # Exceptions: "path", "path::function", "path::public names" or "layers 0-4" -> its size. A size may shrink,
    # and this table with it, never grow.
}

# --- a source ---


@dataclass(frozen=True, eq=False)
class Source:
    """One Python file of the repository; it is parsed once for all laws."""

    path: str
    """From the repository's root, with forward slashes."""
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @functools.cached_property
    def docstring(self) -> str:
        return ast.get_docstring(self.tree) or ""

    @functools.cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree, each before its children."""
        return tuple(ast.walk(self.tree))

    @functools.cached_property
    def statements(self) -> tuple[ast.AST, ...]:
        """The module, its statements, handlers and cases, each before its own: a twelfth of the nodes."""
        return (self.tree, *_statements(self.tree))

    @functools.cached_property
    def documented(self) -> tuple[tuple[ast.AST, str, str], ...]:
        """(node, name, docstring) of the module, its classes and its functions."""
        nodes = (node for node in self.statements if isinstance(node, ast.Module | ast.ClassDef | Function))
        texts = ((node, getattr(node, "name", "<module>"), ast.get_docstring(node)) for node in nodes)
        return tuple((node, name, text) for node, name, text in texts if text is not None)

    @functools.cached_property
    def functions(self) -> tuple[tuple[str, Function, bool], ...]:
        """(qualified name, node, True if the first parameter is self or cls) of each function, outermost first."""
        return tuple(_functions(self.tree))

    @functools.cached_property
    def tokens(self) -> tuple[tokenize.TokenInfo, ...]:
        return tuple(tokenize.generate_tokens(io.StringIO(self.text).readline))

    @functools.cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @functools.cached_property
    def unit(self) -> str | None:
        """Name of the module or folder directly in the package, which has a layer; None outside the package."""
        top, _, rest = self.path.partition("src/quintain/")
        return rest.partition("/")[0].removesuffix(".py") if rest and not top else None

    @property
    def package(self) -> tuple[str, ...]:
        """Names of the package that a relative import starts from."""
        return tuple(self.path.removeprefix("src/").split("/")[:-1])

    @property
    def is_core(self) -> bool:
        return self.unit in ORDER

    def at(self, node: ast.AST, words: str) -> str:
        return f"{self.path}:{getattr(node, 'lineno', 1)}: {words}"


Law = Callable[[Sequence[Source]], Iterator[str]]
ORDER = {unit: place for place, unit in enumerate(unit for layer in CORE for unit in layer)}


AS_WRITTEN = tuple(f"bench/audit/unseen_{one}/" for one in "bcdef")
"""Folders whose worlds, and bugs, the audit had not seen."""


def sources(root: Path) -> list[Source]:
    """Returns every Python file below `src`, `tests` and `bench`, but for worlds that stay as others wrote them."""
    paths = (path for folder in ("src", "tests", "bench") for path in sorted((root / folder).rglob("*.py")))
    found = [Source(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")) for path in paths]
    return [source for source in found if not source.path.startswith(AS_WRITTEN)]


# --- imports ---


def listed(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each module and folder of the package that has no place in the layers."""
    known = {*ORDER, ROOT, *EXTENSIONS, *APPLICATIONS}
    for unit in sorted({source.unit for source in tree if source.unit} - known):
        yield f"src/quintain/{unit}: has no layer yet; add it to CORE, EXTENSIONS or APPLICATIONS in tests/tidy.py"


def downward(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each import that goes up the layers, or from one extension into another."""
    for source in tree:
        for node, target in _own_imports(source):
            if source.unit and not _may_import(source.unit, target):
                yield source.at(node, f"{source.unit} must not import {target}: imports go down the layers")


def third_party(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each import of the core that is neither of the standard library nor msgspec."""
    allowed = sys.stdlib_module_names | THIRD_PARTY | {"quintain"}
    for source in _core(tree):
        for node, name in _foreign_names(source):
            if isinstance(node, ast.Import | ast.ImportFrom) and name.partition(".")[0] not in allowed:
                yield source.at(node, f"imports {name}: layers 0-4 import nothing third-party but msgspec")


def event_loop(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each use of asyncio in a module of the core that is not in `ASYNC`."""
    for source in _core(tree):
        for node, name in _foreign_names(source):
            if name.partition(".")[0] == "asyncio" and source.unit not in ASYNC:
                yield source.at(node, f"uses {name}: of layers 0-4 only {', '.join(sorted(ASYNC))} may")


def banned(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each call of the core that makes a replay differ."""
    for source in _core(tree):
        for node, name in _foreign_names(source):
            for thing, instead in BANNED.items():
                if name == thing or name.startswith(f"{thing}."):
                    yield source.at(node, f"uses {name}: take {instead}, or a replay differs")


def _core(tree: Sequence[Source]) -> Iterator[Source]:
    return (source for source in tree if source.is_core)


def _may_import(unit: str, target: str) -> bool:
    if unit in ORDER:
        return target in ORDER and ORDER[target] < ORDER[unit]
    if unit == ROOT:
        return target in {*ORDER, *IN_ROOT}
    if unit in APPLICATIONS:
        return target not in APPLICATIONS or APPLICATIONS.index(target) <= APPLICATIONS.index(unit)
    return target in ORDER or target in {ROOT, unit, *SHARED, *USES.get(unit, ())}


def _own_imports(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Yields (node, unit) for each import from this package."""
    for node in source.statements:
        if isinstance(node, ast.Import):
            modules = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = source.package[: len(source.package) - node.level + 1] if node.level else ()
            base = (*base, *(node.module.split(".") if node.module else ()))
            modules = [(*base, alias.name) for alias in node.names]
        else:
            continue
        for package, *rest in modules:
            if package == "quintain":
                yield node, rest[0] if rest and rest[0] in {*ORDER, *EXTENSIONS, *APPLICATIONS} else ROOT


def _foreign_names(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Yields (node, dotted name) for each absolute import, and for each attribute of an imported module."""
    aliases: dict[str, str] = {}
    for node in source.statements:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                aliases[alias.asname or top] = alias.name if alias.asname else top
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield node, f"{aliases[node.value.id]}.{node.attr}"


# --- sizes ---


def file_size(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each file that is longer than `FILE_LINES`."""
    for source in tree:
        yield from _ratchet(source.path, source.path, len(source.lines), FILE_LINES)


def function_size(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each function that is longer than `FUNCTION_LINES`."""
    for source in tree:
        for name, node, _ in source.functions:
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield from _ratchet(
                f"{source.path}::{name}", f"{source.path}:{node.lineno}: {name}", length, FUNCTION_LINES
            )


def line_length(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each line that is longer than `LINE_COLUMNS`."""
    for source in tree:
        for number, line in enumerate(source.lines, 1):
            if len(line) > LINE_COLUMNS:
                yield f"{source.path}:{number}: {len(line)} columns, at most {LINE_COLUMNS} are allowed"


def positional(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each function with too many positional parameters.

    Tools are left out, because a call of a tool names its arguments, and tests, because pytest does the same.
    """
    for source in tree:
        for name, node, is_method in source.functions:
            count = len(node.args.posonlyargs) + len(node.args.args) - is_method
            if source.unit and count > POSITIONAL and "tool" not in _decorators(node):
                yield source.at(
                    node, f"{name} takes {count} positional parameters, at most {POSITIONAL}; put a * before"
                )


def core_size(tree: Sequence[Source]) -> Iterator[str]:
    """Yields the size of layers 0-4 where it is above `CORE_LINES` lines of code, without comments and docstrings."""
    total = sum(_code_lines(source) for source in _core(tree))
    yield from _ratchet("layers 0-4", "layers 0-4 together", total, CORE_LINES)


def _code_lines(source: Source) -> int:
    """Returns the number of lines that hold a token of code: neither blank, nor comment, nor docstring."""
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    held: set[int] = set()
    for token in source.tokens:
        if token.type not in silent:
            held |= set(range(token.start[0], token.end[0] + 1))
    for node in source.statements:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            held -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(held)


def _ratchet(key: str, place: str, size: int, limit: int, unit: str = "lines") -> Iterator[str]:
    granted = RATCHET.get(key)
    if granted is None and size > limit:
        yield f"{place}: {size} {unit}, at most {limit} are allowed"
    if granted is not None and size > granted:
        yield f"{place}: {size} {unit}, grew beyond its {granted} in RATCHET"
    if granted is not None and size < granted:
        yield f"{place}: {size} {unit}; " + (f"lower RATCHET to {size}" if size > limit else "take it out of RATCHET")


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the statements, handlers and cases directly in a node."""
    return itertools.chain.from_iterable(getattr(node, block, ()) for block in BLOCKS)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for child in _children(node):
        yield child
        yield from _statements(child)


def _functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function, bool]]:
    for child in _children(node):
        name = f"{prefix}{child.name}" if isinstance(child, Function | ast.ClassDef) else ""
        if isinstance(child, Function):
            yield name, child, isinstance(node, ast.ClassDef) and "staticmethod" not in _decorators(child)
        yield from _functions(child, f"{name}." if name else prefix)


def _decorators(node: Function) -> set[str]:
    """Returns the last names of a function's decorators: {"tool"} for `@qn.tool(role="user")`."""
    called = (item.func if isinstance(item, ast.Call) else item for item in node.decorator_list)
    return {ast.unparse(item).rpartition(".")[2] for item in called}


# --- names, words, habits ---


def namespace(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each statement of the root that is not an import written `x as x`, and does not rename."""
    for source in (source for source in tree if source.unit == ROOT):
        for node in source.tree.body:
            if _is_renaming(node):
                continue
            if isinstance(node, ast.ImportFrom):
                plain = [alias.name for alias in node.names if alias.asname != alias.name]
                yield from (source.at(node, f"write `{name} as {name}`: that makes it public") for name in plain)
            elif not _is_docstring(node) and not _is_version(node):
                yield source.at(node, "nothing but public names may happen when the package is imported")


def _is_renaming(node: ast.AST) -> bool:
    """True for what lets names of the version before be imported, unseen by type checkers."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "not TYPE_CHECKING":
        return [getattr(line, "name", "") for line in node.body] == ["__getattr__"] and not node.orelse
    return ast.unparse(node) == "from typing import TYPE_CHECKING"


def publicity(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each package of `src` that has more than `PUBLIC_NAMES` public names."""
    for source in tree:
        if source.unit and source.path.endswith("/__init__.py"):
            key = f"{source.path}::public names"
            yield from _ratchet(key, source.path, len(public_names(source)), PUBLIC_NAMES, "public names")


def public_names(source: Source) -> list[str]:
    """Returns the names that a source imports as `x as x`, and those that it defines without an underscore."""
    names: list[str] = []
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom):
            names += [alias.name for alias in node.names if alias.asname == alias.name]
        elif isinstance(node, Function | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [target.id for target in targets if isinstance(target, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def words(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each comment that leaves something to do, which belongs in an issue."""
    left = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    for source in (source for source in tree if left.search(source.text)):
        for token in source.tokens:
            if token.type == tokenize.COMMENT and (found := left.search(token.string)):
                yield f"{source.path}:{token.start[0]}: {found[0]} in a comment; do it, or open an issue"


def handlers(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each handler that swallows an error."""
    for source in tree:
        for node in (node for node in source.statements if isinstance(node, ast.ExceptHandler)):
            if node.type is None:
                yield source.at(node, "a bare except catches Ctrl-C too; name what you expect")
            if all(isinstance(line, ast.Pass) or _is_docstring(line) for line in node.body):
                yield source.at(node, "the error is swallowed; say contextlib.suppress, or handle it")


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_version(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__"


LAWS: Iterable[Law] = (
    listed, downward, third_party, event_loop, banned,
    file_size, function_size, line_length, positional, core_size,
    namespace, publicity, words, handlers,
)  # fmt: skip
