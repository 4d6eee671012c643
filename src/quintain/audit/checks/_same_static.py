"""Hints from the source without running it: data kept between episodes, machine-dependent values, caches.

All of it is legitimate somewhere (a memo of a pure function, a clock in a log line), so these are hints for a reader.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.loader import Component

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MUTABLE = {"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque"}
_CHANGES = {
    "append", "add", "update", "extend", "insert", "setdefault", "pop", "popitem", "remove", "discard", "clear",
    "appendleft",
}  # fmt: skip
_DRAWS = re.compile(
    r"(random|np\.random|numpy\.random)\.(random|randint|randrange|choice|choices|shuffle|sample|uniform|gauss|seed|"
    r"normal|rand|randn|integers|permutation|betavariate|expovariate|getrandbits)$|secrets\.\w+$|os\.urandom$|"
    r"uuid\.uuid[14]$|uuid[14]$"
)
_CLOCKS = re.compile(
    r"(.*\.)?(datetime|date)\.(now|utcnow|today)$|time\.(time|time_ns|localtime|gmtime|ctime|strftime)$"
)
_SURROUNDINGS = re.compile(r"os\.(getenv|getcwd|environ\.get|getlogin|getpid)$|getpass\.getuser$|Path\.(cwd|home)$")
_LIVE = re.compile(r"(requests|httpx|urllib\.request|aiohttp|socket)\.\w+$|urlopen$")
_LIMITS = re.compile(r"signal\.(alarm|setitimer|signal)$|(.*\.)?wait_for$|(.*\.)?timeout$")
_CACHED = re.compile(r"(functools\.)?(lru_cache|cache)$|(.*\.)?(ttl_cache|cached|memoize|TTLCache)$")
_CACHE_NAME = re.compile(r"cache|memo(?!ry)|_seen_answers|last_result", re.IGNORECASE)


class Hint(msgspec.Struct, frozen=True):
    """A place in the source that deserves a look.

    Attributes:
        about: "kept", "drawn", "order", "clock", "surroundings", "live", "limit", "cache".
        function: In which function it stands; empty outside of all.
    """

    about: str
    title: str
    part: Component
    where: str
    function: str = ""


def order_hints(ctx: AuditContext) -> Iterator[Hint]:
    """Yields hints about sets that are iterated in hash order."""
    return _of(ctx, {"order"})


def _of(ctx: AuditContext, about: set[str]) -> Iterator[Hint]:
    """The hints of these kinds, each file once.

    A file that cannot be parsed belongs to another language, and has nothing to say here.
    """
    seen: set[str] = set()
    names: dict[str, list[str]] = {}
    for source in ctx.sources:
        names.setdefault(source.path, []).extend(source.names)
    for source in ctx.sources:
        path = Path(source.path)
        if source.path in seen or path.suffix != ".py" or not path.is_file():
            continue
        seen.add(source.path)
        ctx.count_comparisons()
        tree = _used_part(ast.parse(path.read_text("utf-8"), source.path), names[source.path])
        yield from (hint for hint in _ModuleFile(tree, source.path, source.part).hints() if hint.about in about)


def _used_part(tree: ast.Module, names: list[str]) -> ast.Module:
    """The part of a file that these top-level names use, directly or not; all of it where no name is given."""
    if not names:
        return tree
    made: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        defined = [node.name] if isinstance(node, Function | ast.ClassDef) else map(_text, _targets(node))
        for name in defined:
            made.setdefault(name, []).append(node)
    todo, used = list(names), set[str]()
    while todo:
        name = todo.pop()
        if name not in used:
            used.add(name)
            todo += [child.id for node in made.get(name, ()) for child in ast.walk(node) if isinstance(child, ast.Name)]
    kept = [node for node in tree.body if any(node in made.get(name, ()) for name in used)]
    return ast.Module(kept, [])


class _ModuleFile:
    """One file, read."""

    def __init__(self, tree: ast.Module, path: str, part: Component) -> None:
        self._tree = tree
        self._path = path
        self._part: Component = part
        self._function = ""

    def hints(self) -> Iterator[Hint]:
        yield from self._module_state()
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ClassDef):
                yield from self._class_state(node)
            if isinstance(node, Function):
                self._function = node.name
                yield from self._decorated(node)
                yield from self._keys(node)
                for inner in _own(node):
                    yield from self._inside(inner)

    def _hint(self, about: str, title: str, node: ast.AST) -> Hint:
        line = getattr(node, "lineno", 0)
        return Hint(about, title, self._part, f"{self._path}:{line}", self._function)

    def _module_state(self) -> Iterator[Hint]:
        held = dict(_containers(self._tree.body))
        for function in (node for node in ast.walk(self._tree) if isinstance(node, Function)):
            local = {name.id for name in ast.walk(function) if isinstance(name, ast.Name) and _is_stored(name)}
            for node in ast.walk(function):
                name = _changed(node)
                if name in held and name not in local:
                    self._function = function.name
                    yield self._hint("kept", f"{function.name} changes {name}, which belongs to the module", node)
                if isinstance(node, ast.Global):
                    self._function = function.name
                    yield self._hint("kept", f"{function.name} sets the global {', '.join(node.names)}", node)

    def _class_state(self, owner: ast.ClassDef) -> Iterator[Hint]:
        copied = self._copies_defaults(owner)  # Then each instance has its own copy of an annotated field.
        body = [node for node in owner.body if not (copied and _is_field(node))]
        held = dict(_containers(body))
        own = {
            target.attr
            for node in ast.walk(owner)
            for target in _targets(node)
            if isinstance(target, ast.Attribute) and _text(target.value) == "self"
        }
        for node in ast.walk(owner):
            name = _changed(node)
            root, _, attribute = name.partition(".")
            if attribute in held and attribute not in own and root in ("self", "cls", owner.name):
                title = f"{attribute} belongs to the class {owner.name}, so all sessions change one and the same"
                yield self._hint("kept", title, held[attribute])

    def _copies_defaults(self, owner: ast.ClassDef) -> bool:
        """True if a class or its base is a struct, a model or defined in another file."""
        classes = {node.name: node for node in self._tree.body if isinstance(node, ast.ClassDef)}
        bases, seen = [owner], set[str]()
        while bases:
            for base in (_text(base).partition("[")[0] for base in bases.pop().bases):
                if base not in classes and not hasattr(builtins, base):
                    return True
                if base in classes and base not in seen:
                    seen.add(base)
                    bases.append(classes[base])
        return False

    def _decorated(self, function: Function) -> Iterator[Hint]:
        first = next((item.arg for item in function.args.args), "")
        for node in function.decorator_list:
            text = _text(node.func if isinstance(node, ast.Call) else node)
            if _CACHED.match(text):
                whose = "a method, so that it outlives episodes" if first == "self" else "it"
                yield self._hint("cache", f"{function.name} remembers its answers: {text} stands on {whose}", node)
                if first == "self":
                    yield self._hint("kept", f"{text} on the method {function.name} outlives episodes", node)

    def _keys(self, function: Function) -> Iterator[Hint]:
        """Yields hints about `cache[key] = ...` where the key omits a parameter."""
        names = [
            item.arg for item in (*function.args.args, *function.args.kwonlyargs) if item.arg not in ("self", "cls")
        ]
        known = _meanings(function)
        for node in ast.walk(function):
            for target in _targets(node):
                if not isinstance(target, ast.Subscript) or not _CACHE_NAME.search(_text(target.value)):
                    continue
                used = _names(target.slice, known)
                left = [name for name in names if name not in used]
                if left:
                    title = f"the key of {_text(target.value)} in {function.name} leaves out {', '.join(left)}"
                    yield self._hint("cache", title, node)

    def _inside(self, node: ast.AST) -> Iterator[Hint]:
        if isinstance(node, ast.Call):
            yield from self._called(node)
        loops: list[ast.expr] = []
        if isinstance(node, ast.For):
            loops = [node.iter]
        if isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
            loops = [generator.iter for generator in node.generators]
        for loop in loops:
            if _is_set(loop):
                yield self._hint("order", f"{self._function} goes through a set, whose order is the hash seed's", loop)
        if isinstance(node, ast.Subscript) and _text(node.value) == "os.environ":
            yield self._hint("surroundings", f"{self._function} reads os.environ", node)

    def _called(self, node: ast.Call) -> Iterator[Hint]:
        text, where = _text(node.func), self._function
        rules: list[tuple[str, Callable[[str], object], str]] = [
            ("drawn", _DRAWS.match, f"{where} calls {text}, which no seed of the episode decides"),
            ("clock", _CLOCKS.match, f"{where} asks the machine for the time: {text}"),
            ("surroundings", _SURROUNDINGS.match, f"{where} asks the machine's surroundings: {text}"),
            ("live", _LIVE.match, f"{where} uses the network: {text}"),
            ("limit", _LIMITS.match, f"{where} depends on how fast the machine is: {text}"),
        ]
        for about, fits, title in rules:
            if fits(text):
                yield self._hint(about, title, node)
        if text == "hash" and where not in ("__hash__", "__eq__"):
            yield self._hint("order", f"{where} calls hash(), which is another one under another hash seed", node)
        orders = text in ("list", "tuple", "sum", "next", "iter", "enumerate") or text.endswith(".join")
        if orders and node.args and _is_set(node.args[0]):
            yield self._hint("order", f"{where} puts a set in order: {text}(set)", node)


def _own(function: Function) -> Iterator[ast.AST]:
    """Nodes of a function, not those of functions inside it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            todo += ast.iter_child_nodes(node)


def _containers(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Names to which a mutable container is given at this level."""
    for node in body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        literal = isinstance(value, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp)
        called = isinstance(value, ast.Call) and _text(value.func).rpartition(".")[2] in _MUTABLE
        if literal or called:
            yield from ((target.id, node) for target in _targets(node) if isinstance(target, ast.Name))


def _is_field(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and "ClassVar" not in _text(node.annotation)


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else []


def _changed(node: ast.AST) -> str:
    """The dotted name of what a statement changes in place; "" for none."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
        return _text(node.func.value)
    targets = node.targets if isinstance(node, ast.Delete) else _targets(node)
    return next((_text(target.value) for target in targets if isinstance(target, ast.Subscript)), "")


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _is_set(node: ast.expr) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    return isinstance(node, ast.Call) and _text(node.func) in ("set", "frozenset")


def _meanings(function: Function) -> dict[str, set[str]]:
    """Local names, and the names that stand in what they were given."""
    return {
        target.id: {child.id for child in ast.walk(node.value) if isinstance(child, ast.Name)}
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _names(key: ast.AST, known: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = {child.id for child in ast.walk(key) if isinstance(child, ast.Name)}
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo |= known.get(name, set())
    return found


def _text(node: ast.AST) -> str:
    """A dotted name as it is written; what is none is its source."""
    return ast.unparse(node)
