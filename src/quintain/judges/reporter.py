"""Program that runs the tests of one file inside a sandbox; it is sent there as text.

The tests share its process with the code under test. So this program decides nothing: it reports the events of each
test, and whether a function of the test framework was replaced. It does not know which of the tests must fail.
"""

from __future__ import annotations

import json
import os
import sys
import types
import unittest
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

SEALED = ("builtins", "json", "unittest", "pytest", "_pytest", "pluggy")
"""Packages whose functions must stay the same while the tests run."""
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type, classmethod, staticmethod, property)

Add = Callable[[str, str], None]
Seal = tuple[Any, str, Any, Any]


def seals() -> list[Seal]:
    """Returns the functions of the test framework, each with its namespace, name and code."""
    found: list[Seal] = []
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in SEALED:
            spaces: list[Any] = [vars(module), *(vars(one) for one in vars(module).values() if isinstance(one, type))]
            found += [(space, key, value, _code(value)) for space in spaces for key, value in space.items()]
    return [seal for seal in found if isinstance(seal[2], FUNCTIONS)]


def _code(value: Any) -> Any:
    return getattr(getattr(value, "__func__", value), "__code__", None)


def path() -> None:
    """Puts the repository on the path, for this process and for those that the tests start."""
    folders = [str(one) for one in (Path.cwd() / "src", Path.cwd()) if one.is_dir()]
    sys.path[:0] = folders
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)


EVENTS = {
    "startTest": "setup passed",
    "addSuccess": "call passed",
    "addError": "call failed",
    "addFailure": "call failed",
    "addSkip": "call skipped",
    "addExpectedFailure": "call failed as expected",
    "addUnexpectedSuccess": "call passed unexpectedly",
    "stopTest": "teardown passed",
}
"""Methods of unittest's result, and what they mean in the phases of pytest."""


def result_of(names: dict[int, str], add: Add) -> unittest.TestResult:
    """Returns a result that adds an event for each call, under the name of the test."""

    def method(original: Callable[..., None], event: str) -> Callable[..., None]:
        def record(self: Any, test: Any, *rest: Any) -> None:
            original(self, test, *rest)
            whole = getattr(test, "test_case", test)  # A subtest counts for its test.
            add(names.get(id(whole), str(whole)), event)

        return record

    methods = {name: method(getattr(unittest.TestResult, name), event) for name, event in EVENTS.items()}
    result: unittest.TestResult = type("Outcomes", (unittest.TestResult,), methods)()
    return result


def run_unittest(names: list[str], add: Add, kept: list[Seal]) -> int:
    """Runs tests by their dotted names, and returns the status that unittest gives."""
    kept += seals()
    path()
    loaded = [unittest.defaultTestLoader.loadTestsFromName(name) for name in names]
    tests = [next(iter(cast(Iterable[Any], suite)), suite) for suite in loaded]
    result = result_of({id(test): name for test, name in zip(tests, names, strict=True)}, add)
    unittest.TestSuite(tests).run(result)
    return 0 if result.wasSuccessful() else 1


def run_pytest(names: list[str], add: Add, kept: list[Seal]) -> int:
    """Runs tests by their node ids, and returns the status that pytest gives."""
    import pytest

    class Plugin:
        def pytest_load_initial_conftests(self) -> None:
            kept.extend(seals())  # Plugins of the interpreter are loaded, and nothing of the repository is.
            path()

        def pytest_runtest_logreport(self, report: Any) -> None:
            note = " with a mark" if hasattr(report, "wasxfail") else ""
            add(report.nodeid, f"{report.when} {report.outcome}{note}")

    options = ["-q", "--tb=no", "--maxfail=0", "-p", "no:cacheprovider", f"--rootdir={Path.cwd()}"]
    return int(pytest.main([*options, *names], plugins=[Plugin()]))


def main() -> None:
    """Reads the names from standard input, runs them, and writes one line of JSON."""
    job = json.load(sys.stdin)
    dumps, write, leave = json.dumps, os.write, os._exit  # The code under test may replace them.
    report, nothing = os.dup(1), os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    sys.modules["__main__"] = types.ModuleType("__main__")
    word, kept = job.pop("word"), list[Seal]()
    found: dict[str, Any] = {"events": [], "replaced": []}

    def check() -> None:
        different = [key for space, key, value, code in kept if space.get(key) is not value or _code(value) is not code]
        found["replaced"] = sorted({*found["replaced"], *different})[:5]

    def add(name: str, event: str) -> None:
        if event.startswith("teardown"):
            check()
        found["events"].append([name, event])

    status = 1
    try:
        status = (run_pytest if job["kind"] == "pytest" else run_unittest)(job["names"], add, kept)
    except ImportError as error:
        if kept:
            raise
        found["broken"] = f"the interpreter cannot import pytest ({error})"
    write(report, dumps({"word": word, **found}).encode() + b"\n")
    leave(status)  # Without exit handlers and threads of the code.


if __name__ == "__main__":
    main()
