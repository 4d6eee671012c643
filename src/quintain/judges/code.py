"""Code verifier: hidden tests against the code of an agent, in a sandbox, with a verdict that the code cannot write."""

from __future__ import annotations

import ast
import json
import secrets
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec

from quintain.errors import EpisodeError, UsageError
from quintain.verifier import Criterion, EpisodeView, Score, reward

from .extract import last_block

DRIVER = (Path(__file__).parent / "driver.py").read_text("utf-8")


class _Result(Protocol):
    @property
    def status(self) -> int: ...
    @property
    def out(self) -> str: ...
    @property
    def err(self) -> str: ...
    @property
    def reason(self) -> str: ...


class Runner(Protocol):
    """A sandbox, such as `quintain.resources.sandbox.Sandbox`."""

    @property
    def policy(self) -> Any: ...

    async def run(self, files: Any, argv: Sequence[str], /, *, stdin: bytes) -> _Result: ...


class HiddenTest(msgspec.Struct, frozen=True):
    """A test that the agent never sees.

    Attributes:
        name: Its name in the record.
        code: Python source that raises if the code under test is wrong. It runs in a process of its own. The functions
            in `HiddenTests.names` call the code under test; `run(source)` runs source in its process and returns the
            value of the last expression. Arguments and values are plain data: None, bool, numbers, text, bytes, lists,
            tuples, sets and dicts. An exception comes back as one of its nearest built-in class.
    """

    name: str
    code: str


class HiddenTests(msgspec.Struct, frozen=True, kw_only=True):
    """Tests of one task.

    Attributes:
        tests: At least one, with distinct names.
        names: Functions of the code under test, by the name that the tests call them by.
        setup: Source that runs before each test, in its process: imports and helpers.
        seconds: Longest time of one answer of the code under test.
    """

    tests: tuple[HiddenTest, ...]
    names: dict[str, str] = {}
    setup: str = ""
    seconds: float = 5.0

    def __post_init__(self) -> None:
        names = [test.name for test in self.tests]
        if not names or len(set(names)) != len(names):
            raise UsageError(f"hidden tests need distinct names, at least one, got {names}")
        for name, source in (("setup", self.setup), *((test.name, test.code) for test in self.tests)):
            try:
                parsed(source)
            except (SyntaxError, ValueError) as error:
                raise UsageError(f"hidden test {name!r} is not Python: {error}") from error


def parsed(source: str) -> ast.Module:
    """Returns the tree of Python source, without the warnings of the compiler about it.

    Raises:
        SyntaxError, ValueError: It is not Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


class TestOutcome(msgspec.Struct, frozen=True):
    """Result of one hidden test; `failure` is empty if it passed."""

    name: str
    failure: str = ""


async def run_tests(sandbox: Runner, files: Any, tests: HiddenTests, *, code: str = "") -> list[TestOutcome]:
    """Runs hidden tests and returns their outcomes, in order; each test gets a new process of the code under test.

    The tests and their results stay in a process whose memory and files the code under test cannot open; the verdict
    counts only with the word that this process was sent. A run that ends early, without a word or with another number
    of tests, fails all of them.

    Args:
        sandbox: Where the code runs.
        files: Workspace that the code finds as its folder. It stays as it is.
        tests: The tests.
        code: Source that runs first in each process, where the code under test is not a file of the workspace.

    Raises:
        EpisodeError: Component V, `verifier_error`: a helper of the tests is wrong.
    """
    word = secrets.token_hex(16)  # Not part of the verdict, so a replay need not have the same.
    payload = {"word": word, "code": code, **msgspec.to_builtins(tests)}
    command = [sandbox.policy.python, "-I", "-c", DRIVER]
    result = await sandbox.run(files.fork(), command, stdin=json.dumps(payload).encode())
    found = reported(result.out, word)
    if "broken" in found:
        raise EpisodeError(f"setup of the hidden tests: {found['broken']}", component="V", kind="verifier_error")
    names, outcomes = [test.name for test in tests.tests], found.get("outcomes", [])
    if result.status == 0 and [name for name, _ in outcomes] == names:
        return [TestOutcome(name, failure) for name, failure in outcomes]
    limit = f", stopped by the limit of {result.reason}" if result.reason else ""
    why = f"the tests did not report: the run ended with status {result.status}{limit}"
    return [TestOutcome(name, why) for name in names]


def reported(out: str, word: str) -> dict[str, Any]:
    """Returns the report in the line that begins with the word; empty if there is none."""
    lines = [line for line in out.splitlines() if line.startswith(f'{{"word": "{word}"')]
    return json.loads(lines[0]) if lines else {}


def passes_tests(
    sandbox: Runner | Callable[[EpisodeView[Any]], Runner],
    files: Any,
    *,
    tests: Callable[[EpisodeView[Any]], HiddenTests] | None = None,
    partial: bool = False,
    code: Callable[[EpisodeView[Any]], str] | None = None,
) -> Criterion[Any]:
    """Returns a criterion that runs hidden tests on the agent's code.

    The value is 1 if all pass, else 0; with `partial`, the number of tests that passed / the number of tests.

    Args:
        sandbox: Where the code runs; or a function from the view to it.
        files: Workspace in which it runs; or a function from the view to it.
        tests: Function from the view to the tests; None if the truth of the task is a `HiddenTests`.
        partial: Count each test.
        code: Function from the view to source that runs first in each process, such as `answer_code`; None if the code
            under test is in the workspace.
    """

    @reward
    async def passes_tests(view: EpisodeView[Any]) -> Score:
        hidden: object = tests(view) if tests else view.task.truth
        if not isinstance(hidden, HiddenTests):
            raise TypeError(f"the tests of task {view.task.id!r} must be a HiddenTests, got {type(hidden).__name__}")
        source = code(view) if code else ""
        outcomes = await run_tests(_of(sandbox, view), _of(files, view), hidden, code=source)
        return verdict(outcomes, partial=partial)

    return passes_tests


def answer_code(view: EpisodeView[Any]) -> str:
    """Returns the last fenced block of the agent's last words; all of them if there is none, with their indentation."""
    return last_block(view.answer) if "```" in view.answer else view.answer


def verdict(outcomes: Sequence[TestOutcome], *, partial: bool = False) -> Score:
    """Returns the score of test outcomes; its details name the failure of each test that failed."""
    failed = {one.name: one.failure for one in outcomes if one.failure}
    passed = len(outcomes) - len(failed)
    value = passed / len(outcomes) if partial else float(not failed)
    first = next(iter(failed.items()), None)
    reason = f"{passed} of {len(outcomes)} hidden tests passed" + (f"; {first[0]}: {first[1]}" if first else "")
    return Score(value, reason, {"passed": passed, "tests": len(outcomes), "failed": failed})


def _of(given: Any, view: EpisodeView[Any]) -> Any:
    return cast(Callable[[Any], Any], given)(view) if callable(given) else given
