"""A repair shop for small formulas: one function of a module is wrong, its comment says what it should compute.

Sources are a small part of Python (functions that return one expression), which an evaluator of our own runs with
bounded numbers, depth and steps; nothing is handed to `exec`. The verdict runs hidden cases on the final module, and
nothing but that module may have changed.
"""

from __future__ import annotations

import ast
import copy
import operator
from collections.abc import Callable
from typing import Any

from .common import BackendError, ToolError, World, rng, text, tool

Data = Any
Row = dict[str, Data]
STEPS, DEPTH, BIGGEST = 2000, 20, 10**12
FAULTS = ("timeout", "out_of_memory", "500", "cancelled")
# name: (parameters, what the comment says, right, wrong, arguments to try)
BANK: dict[str, tuple[str, str, str, str, list[tuple[int, ...]]]] = {
    "discount": ("price, percent", "price less percent of it, rounded down", "price - price * percent // 100",
                 "price - percent", [(200, 10), (99, 50), (80, 0), (1000, 7), (250, 100)]),
    "postage": ("grams", "5 up to and with 500 grams, else 9", "5 if grams <= 500 else 9",
                "5 if grams < 500 else 9", [(10,), (501,), (500,), (499,), (2000,)]),
    "clamp": ("value, low, high", "value, at least low and at most high", "max(low, min(value, high))",
              "min(low, max(value, high))", [(5, 1, 9), (0, 1, 9), (12, 1, 9), (9, 1, 9), (-4, -2, 0)]),
    "pages": ("items, size", "how many pages of that size hold the items", "(items + size - 1) // size",
              "items // size", [(10, 5), (0, 5), (11, 5), (1, 5), (14, 7)]),
    "leap": ("year", "1 in a leap year of the Gregorian calendar, else 0",
             "1 if year % 4 == 0 and year % 100 != 0 or year % 400 == 0 else 0",
             "1 if year % 4 == 0 else 0", [(2023,), (2024,), (1900,), (2000,), (2100,)]),
    "overtime": ("hours, wage", "wage for each hour, half as much again beyond 40, rounded down",
                 "hours * wage + max(0, hours - 40) * wage // 2", "hours * wage",
                 [(38, 20), (40, 20), (45, 20), (50, 31), (41, 7)]),
}  # fmt: skip
BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
BUILTINS: dict[str, Callable[..., Any]] = {"min": min, "max": max}


class BadSourceError(Exception):
    """A module that cannot be read or run."""


class Module:
    """Functions of one source, ready to be called."""

    def __init__(self, source: str) -> None:
        try:
            body = ast.parse(source).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise BadSourceError(f"the module cannot be read: {type(error).__name__}") from error
        self.functions: dict[str, ast.FunctionDef] = {}
        self.steps = 0
        for node in body:
            if not isinstance(node, ast.FunctionDef) or not isinstance(node.body[0], ast.Return):
                raise BadSourceError("a module holds functions that return one expression, and nothing else")
            self.functions[node.name] = node

    def run(self, name: str, arguments: tuple[int, ...], depth: int = 0) -> int:
        """Returns the result of a function.

        Raises:
            BadSourceError: The function is missing, uses unsupported code, or runs too long.
        """
        node = self.functions.get(name)
        if node is None or len(node.args.args) != len(arguments) or depth > DEPTH:
            raise BadSourceError(f"{name} cannot be called so")
        names = {arg.arg: value for arg, value in zip(node.args.args, arguments, strict=True)}
        returned = node.body[0]
        if not isinstance(returned, ast.Return) or returned.value is None:
            raise BadSourceError(f"{name} returns nothing")
        return self.value(returned.value, names, depth)

    def value(self, node: ast.expr, names: dict[str, int], depth: int) -> int:
        self.steps += 1
        if self.steps > STEPS:
            raise BadSourceError("it takes too many steps")
        match node:
            case ast.Constant(value=int(number)):
                found: int = number
            case ast.Name(id=name) if name in names:
                found = names[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                found = -self.value(inner, names, depth)
            case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
                found = self.binary(op, self.value(left, names, depth), self.value(right, names, depth))
            case ast.BoolOp(op=op, values=values):
                found = self.logic(isinstance(op, ast.And), values, names, depth=depth)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                found = self.value(body if self.value(test, names, depth) else orelse, names, depth)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                given = tuple(self.value(one, names, depth) for one in arguments)
                found = (
                    BUILTINS[name](*given) if name in BUILTINS and len(given) > 1 else self.run(name, given, depth + 1)
                )
            case _:
                raise BadSourceError(f"{type(node).__name__} is not part of the language")
        if abs(found) > BIGGEST:
            raise BadSourceError("a number is too big")
        return found

    @staticmethod
    def binary(op: ast.AST, left: int, right: int) -> int:
        if type(op) not in BINARY or (isinstance(op, ast.FloorDiv | ast.Mod) and right == 0):
            raise BadSourceError(f"{type(op).__name__} cannot be computed here")
        return int(BINARY[type(op)](left, right))

    def logic(self, every: bool, values: list[ast.expr], names: dict[str, int], *, depth: int) -> int:  # noqa: FBT001
        found = 0
        for one in values:
            found = self.value(one, names, depth)
            if bool(found) != every:
                break
        return found


PATH = text("A file's path.", 80)
TOOLS = (
    tool("list_files", "List the files."),
    tool("read_file", "Show a file.", path=PATH),
    tool("search", "Show the lines of all files that hold a text.", query=text("What to look for.", 80)),
    tool("write_file", "Write a file, a new one too.", path=PATH, content=text("All of it.", 5000)),
    tool(
        "replace",
        "Put a text in the place of another that occurs once.",
        path=PATH,
        old=text("What is there.", 2000),
        new=text("What shall be there.", 2000),
    ),
    tool("run_tests", "Run the visible cases of tests/cases.txt on the module."),
)
MODULE, CASES = "src/formulas.py", "tests/cases.txt"


class Repair(World):
    """One repository; a session of its own per instance."""

    TOOLS = TOOLS

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, str] = {}
        self.initial: dict[str, str] = {}

    # --- tasks ---

    def tasks(self) -> list[str]:
        return [f"{name}-{number}" for number in range(2) for name in BANK]

    def wrong(self, task: str) -> str:
        """The function that is broken."""
        if task not in self.tasks():
            raise LookupError(f"no such task: {task!r}")
        return task.partition("-")[0]

    def line(self, name: str, *, right: bool) -> str:
        return f"    return {BANK[name][2 if right else 3]}"

    def others(self, task: str) -> list[str]:
        return rng("repair", task).sample([name for name in BANK if name != self.wrong(task)], 3)

    def source(self, task: str, order: list[str]) -> str:
        parts = [
            f"def {name}({BANK[name][0]}):  # {BANK[name][1]}\n{self.line(name, right=name != self.wrong(task))}\n"
            for name in order
        ]
        return "\n\n".join(parts)

    def cases(self, name: str, *, hidden: bool) -> list[str]:
        right = Module(f"def {name}({BANK[name][0]}):\n{self.line(name, right=True)}\n")
        tried = BANK[name][4][2:] if hidden else BANK[name][4][:2]
        return [f"{name}{str(given).replace(',)', ')')} == {right.run(name, given)}" for given in tried]

    def prompt(self, task: str) -> str:
        return (
            f"The function {self.wrong(task)} in {MODULE} does not do what its comment says. Correct it, and change no "
            f"other file. A function returns one expression of whole numbers."
        )

    def oracle(self, task: str) -> list[list[Data]] | None:
        name = self.wrong(task)
        texts = {"old": self.line(name, right=False), "new": self.line(name, right=True)}
        return [["read_file", {"path": MODULE}], ["replace", {"path": MODULE, **texts}], ["run_tests", {}]]

    def hidden(self, task: str) -> Row:
        name = self.wrong(task)
        return {"solution": self.line(name, right=True).strip(), "cases": self.cases(name, hidden=True)}

    # --- the episode ---

    def reset(self, task: str, seed: int) -> str:
        names = [self.wrong(task), *self.others(task)]
        rng("repair", task, seed).shuffle(names)
        visible = [case for name in names for case in self.cases(name, hidden=False)]
        readme = f"# formulas\n\n{len(names)} functions for the back office, in {MODULE}.\n"
        self.files = {"README.md": readme, MODULE: self.source(task, names), CASES: "\n".join(visible) + "\n"}
        self.initial = dict(self.files)
        self.task, self.fault = task, None
        return self.prompt(task)

    def state(self) -> Row:
        return {"files": [{"path": path, "content": content} for path, content in sorted(self.files.items())]}

    def snapshot(self) -> Data:
        return copy.deepcopy(vars(self))

    def restore(self, saved: Data) -> None:
        vars(self).update(copy.deepcopy(saved))

    def inject(self, fault: str) -> None:
        if fault not in FAULTS:
            raise ValueError(f"cannot inject {fault!r}")
        self.fault = fault

    # --- the tools ---

    def file(self, path: str) -> str:
        if path not in self.files:
            raise ToolError(f"no such file: {path}")
        return self.files[path]

    def _list_files(self) -> Data:
        return {"files": sorted(self.files)}

    def _read_file(self, path: str) -> Data:
        return {"content": self.file(path)}

    def _search(self, query: str) -> Data:
        if not query.strip():
            raise ToolError("look for something")
        found = [f"{path}: {line}" for path, lines in sorted(self.files.items()) for line in lines.splitlines()]
        return {"lines": [line for line in found if query in line]}

    def _write_file(self, path: str, content: str) -> Data:
        if not path or path.startswith("/") or ".." in path or not path.isprintable():
            raise ToolError("a path leads into the repository")
        self.files[path] = content
        return {"ok": True}

    def _replace(self, path: str, old: str, new: str) -> Data:
        before = self.file(path)
        if not old or before.count(old) != 1:
            raise ToolError(f"the text occurs {before.count(old) if old else 0} times")
        self.files[path] = before.replace(old, new)
        return {"ok": True}

    def _run_tests(self) -> Data:
        lines = self.outcomes(self.file(MODULE), self.file(CASES).splitlines())
        return {"passed": sum(not line.startswith("FAILED") for line in lines), "of": len(lines), "lines": lines}

    # --- the tests ---

    def outcomes(self, source: str, cases: list[str]) -> list[str]:
        self.backend()
        found: list[str] = []
        for case in cases[:200]:
            try:
                verdict = "ok" if self.holds(source, case) else "FAILED"
            except BadSourceError as error:
                verdict = f"FAILED ({error})"
            found.append(f"{verdict} {case[:100]}")
        return found

    @staticmethod
    def holds(source: str, case: str) -> bool:
        """True if a case such as `pages(11, 5) == 3` holds."""
        module = Module(source)
        try:
            node = ast.parse(case, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise BadSourceError("the case cannot be read") from error
        try:
            return bool(module.value(node, {}, 0))
        except RecursionError as error:
            raise BadSourceError("it is nested too deeply") from error

    # --- the verdict ---

    def score(self) -> float | None:
        if self.task is None:
            return None
        try:
            lines = self.outcomes(self.files.get(MODULE, ""), self.verdict_cases(self.task))
        except BackendError:
            return None
        return float(self.untouched() and not any(line.startswith("FAILED") for line in lines))

    def verdict_cases(self, task: str) -> list[str]:
        names = [self.wrong(task), *self.others(task)]
        return [case for name in names for case in self.cases(name, hidden=False) + self.cases(name, hidden=True)]

    def untouched(self) -> bool:
        before = {path: content for path, content in self.initial.items() if path != MODULE}
        return {path: content for path, content in self.files.items() if path != MODULE} == before
