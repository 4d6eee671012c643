"""Mutation run: the fast suite must notice small changes of core modules and planted bugs elsewhere.

`python -m tests.mutation` mutates the modules of `MODULES` and plants the bugs of tests/planted_bugs.py, each in a copy
of `src`, runs the tests that cover the place, and prints the share that was caught. `--json` prints each change as
JSON, `--sample N` takes N mutants per module, `--seed S` draws others, and `--slow` runs tests marked slow as well.
Names of modules or `planted` select a part.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Literal, NamedTuple

from tests.planted_bugs import PLANTED

ROOT = Path(__file__).parents[1]
TIMEOUT_S = 300

MODULES: dict[str, tuple[str, ...]] = {
    "episode": (
        "test_episode",
        "test_calls",
        "test_replay_from_outside",
        "test_context",
        "test_scoring",
        "test_replay",
    ),
    "trace": ("test_trace", "test_trace_context", "test_trajectory", "test_replay"),
    "codec": ("test_codec", "test_fingerprint", "test_trace"),
    "state": ("test_state", "test_clock", "test_rng", "test_resource"),
    "verifier": ("test_verifier", "test_scoring", "test_jury"),
    "replay": ("test_replay", "test_replay_of_failures", "test_replay_from_outside", "test_chain"),
}
"""Core modules, and the tests that cover each, the quickest first."""

SWAPS: dict[type[ast.AST], str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip

Verdict = Literal["caught", "survived", "no anchor", "no tests"]


class Edit(NamedTuple):
    """One replacement in a file."""

    path: str
    start: int
    end: int
    text: str
    words: str
    tests: tuple[str, ...]


def mutants(path: str, source: bytes, tests: tuple[str, ...]) -> Iterator[Edit]:
    """Yields every small change of the functions of a module."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def edit(node: ast.expr | ast.stmt, text: str) -> Edit:
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        before = " ".join(source[start:end].decode().split())
        return Edit(path, start, end, text, f"{path}:{node.lineno}: {before[:50]} -> {text[:50]}", tests)

    functions = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    for function in functions:
        for statement in function.body:
            for node in _executed(statement):
                if (text := _changed(node)) is not None:
                    yield edit(node, text)


def _executed(statement: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yields the nodes that run, without nested functions, annotations and the words of errors."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Raise | ast.JoinedStr):
        return
    if isinstance(statement, ast.expr | ast.stmt):
        yield statement
    for name, value in ast.iter_fields(statement):
        if name != "annotation":
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _executed(child)


def _changed(node: ast.expr | ast.stmt) -> str | None:
    """Returns the text of a mutated node; None if no operator applies."""
    text: str | None = None
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            text = f"({ast.unparse(left)} {SWAPS[type(op)]} {ast.unparse(right)})"
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            text = f"({word.join(f'({ast.unparse(value)})' for value in values)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            text = f"bool({ast.unparse(operand)})"
        case ast.Constant(value=bool(value)):
            text = str(not value)
        case ast.Constant(value=int(value)):
            text = str(value + 1)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            text = f"({ast.unparse(orelse)} if {ast.unparse(test)} else {ast.unparse(body)})"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            text = "return None"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign():
            text = "pass"
        case _:
            pass
    return text


def sampled(name: str, *, sample: int, seed: int) -> list[Edit]:
    """Returns the mutants of one core module that are run."""
    path = f"src/quintain/{name}.py"
    tests = tuple(f"tests/{test}.py" for test in MODULES[name] if (ROOT / f"tests/{test}.py").exists())
    if not (ROOT / path).exists():
        return []
    found = list(mutants(path, (ROOT / path).read_bytes(), tests))
    return random.Random(f"{name}/{seed}").sample(found, min(sample, len(found)))


def planted() -> Iterator[Edit | str]:
    """Yields the planted bugs, and the words of those whose place in the source is not there or not unique."""
    for path, old, new, tests in PLANTED:
        words = f"{path}: {' '.join(old.split())[:50]} -> {' '.join(new.split())[:50]}"
        file = ROOT / "src/quintain" / path
        source = file.read_bytes() if file.exists() else b""
        if source.count(old.encode()) != 1:
            yield words
            continue
        start = source.index(old.encode())
        yield Edit(f"src/quintain/{path}", start, start + len(old.encode()), new, words, tests)


def run(edit: Edit, copy: Path, *, slow: bool, root: Path = ROOT) -> Verdict:
    """Returns what the tests say about one change, made in a copy of `src`."""
    file = copy / edit.path
    source = file.read_bytes()
    tests = [test for test in edit.tests if (root / test.partition("::")[0]).exists()]
    if not tests:
        return "no tests"
    file.write_bytes(source[: edit.start] + edit.text.encode() + source[edit.end :])
    options = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "--no-header", *(["-m", ""] if slow else [])]
    environ = os.environ | {"PYTHONPATH": f"{copy / 'src'}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(command, cwd=root, env=environ, capture_output=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return "caught"
    finally:
        file.write_bytes(source)
    return "survived" if done.returncode == 0 else "caught"


def main(arguments: Sequence[str]) -> None:
    """Prints the verdict on each change, and the share that was caught per module."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("parts", nargs="*", default=[*MODULES, "planted"])
    parser.add_argument("--sample", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rows: list[dict[str, str]] = []
    copies: SimpleQueue[Path] = SimpleQueue()

    def judged(change: Edit | str) -> tuple[str, Verdict]:
        if isinstance(change, str):
            return change, "no anchor"
        copy = copies.get()
        try:
            return change.words, run(change, copy, slow=options.slow)
        finally:
            copies.put(copy)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as executor:
        for number in range(options.jobs):
            shutil.copytree(
                ROOT / "src", Path(folder, str(number), "src"), ignore=shutil.ignore_patterns("__pycache__")
            )
            copies.put(Path(folder, str(number)))
        for part in options.parts:
            changes: list[Edit | str] = (
                list(planted()) if part == "planted" else [*sampled(part, sample=options.sample, seed=options.seed)]
            )
            for words, verdict in executor.map(judged, changes):
                rows.append({"part": part, "verdict": verdict, "change": words})
                print(f"{verdict:9} {words}", file=sys.stderr, flush=True)  # noqa: T201
    if options.json:
        print(json.dumps(rows, indent=2))  # noqa: T201
        return
    for part in options.parts:
        verdicts = [row["verdict"] for row in rows if row["part"] == part]
        print(f"{part:10} {verdicts.count('caught'):3} of {len(verdicts):3} caught")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
